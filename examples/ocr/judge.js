// The text in pictures by ONNX Runtime, with code of its own around the same models, to compare 16_ocr with.
//   node judge.js FOLDER_OF_NODE_MODULES PICTURE.ppm ...      prints the lines, as 16_ocr does
'use strict'
const fs = require('fs')
const path = require('path')

const modules = path.resolve(process.argv[2])
const ort = require(path.join(modules, 'onnxruntime-node'))
const assets = path.join(modules, '@gutenye', 'ocr-models', 'assets')
const UNCLIP = 2.0

function readPicture(file) {
  const bytes = fs.readFileSync(file)
  const [, width, height] = /^P6\s+(\d+)\s+(\d+)\s+255\s/.exec(bytes.subarray(0, 64).toString('latin1')).map(Number)
  return { width, height, data: bytes.subarray(bytes.length - width * height * 3) }
}

// Channel c (red 0) at a place between pixels.
function sample(p, x, y, c) {
  x = Math.min(Math.max(x, 0), p.width - 1)
  y = Math.min(Math.max(y, 0), p.height - 1)
  const x0 = Math.floor(x), y0 = Math.floor(y), x1 = Math.min(x0 + 1, p.width - 1), y1 = Math.min(y0 + 1, p.height - 1)
  const at = (i, j) => p.data[(j * p.width + i) * 3 + c]
  const u = x - x0, v = y - y0
  return (at(x0, y0) * (1 - u) + at(x1, y0) * u) * (1 - v) + (at(x0, y1) * (1 - u) + at(x1, y1) * u) * v
}

async function probabilities(session, p) {
  const scale = Math.min(1, 960 / Math.max(p.width, p.height))
  const size = (x) => Math.max(1, Math.floor((x * scale) / 32 + 0.5)) * 32
  const w = size(p.width), h = size(p.height)
  const mean = [0.485, 0.456, 0.406], deviation = [0.229, 0.224, 0.225]
  const x = new Float32Array(3 * w * h)
  for (let c = 0, i = 0; c < 3; c++) {
    for (let row = 0; row < h; row++) {
      for (let column = 0; column < w; column++, i++) {
        const value = sample(p, ((column + 0.5) * p.width) / w - 0.5, ((row + 0.5) * p.height) / h - 0.5, 2 - c)
        x[i] = (value / 255 - mean[c]) / deviation[c]
      }
    }
  }
  const out = await session.run({ x: new ort.Tensor('float32', x, [1, 3, h, w]) })
  return { w, h, map: out[session.outputNames[0]].data }
}

// Components of 8 neighbours above the threshold, as lists of [x, y].
function components(m) {
  const label = new Int32Array(m.w * m.h), found = []
  for (let start = 0; start < label.length; start++) {
    if (m.map[start] <= 0.3 || label[start]) continue
    const stack = [start], points = []
    label[start] = found.length + 1
    while (stack.length) {
      const at = stack.pop(), x = at % m.w, y = (at - x) / m.w
      points.push([x, y])
      for (let j = Math.max(0, y - 1); j <= Math.min(m.h - 1, y + 1); j++) {
        for (let i = Math.max(0, x - 1); i <= Math.min(m.w - 1, x + 1); i++) {
          const next = j * m.w + i
          if (m.map[next] > 0.3 && !label[next]) {
            label[next] = found.length + 1
            stack.push(next)
          }
        }
      }
    }
    found.push(points)
  }
  return found
}

// The rectangle around points with its first side at an angle.
function rectangle(points, angle) {
  const c = Math.cos(angle), s = Math.sin(angle)
  let a0 = Infinity, a1 = -Infinity, b0 = Infinity, b1 = -Infinity
  for (const [x, y] of points) {
    const a = x * c + y * s, b = y * c - x * s
    a0 = Math.min(a0, a), a1 = Math.max(a1, a), b0 = Math.min(b0, b), b1 = Math.max(b1, b)
  }
  const a = (a0 + a1) / 2, b = (b0 + b1) / 2
  return { x: a * c - b * s, y: a * s + b * c, w: a1 - a0, h: b1 - b0, angle }
}

// The lowest and highest point of each column are all that a hull can have.
function outline(points) {
  const low = new Map(), high = new Map()
  for (const [x, y] of points) {
    if (!low.has(x) || y < low.get(x)) low.set(x, y)
    if (!high.has(x) || y > high.get(x)) high.set(x, y)
  }
  return [...low].concat([...high])
}

// All directions from a point of the outline to another that have everything on one side are sides of the hull.
function smallest(points) {
  const around = outline(points), angles = [0]
  const sorted = [...around].sort((p, q) => p[0] - q[0] || p[1] - q[1])
  for (const sign of [1, -1]) {
    const chain = []
    for (const p of sorted) {
      while (chain.length > 1) {
        const [q, r] = [chain[chain.length - 2], chain[chain.length - 1]]
        if (sign * ((r[0] - q[0]) * (p[1] - q[1]) - (r[1] - q[1]) * (p[0] - q[0])) > 0) break
        chain.pop()
      }
      chain.push(p)
    }
    for (let i = 1; i < chain.length; i++) angles.push(Math.atan2(chain[i][1] - chain[i - 1][1], chain[i][0] - chain[i - 1][0]))
  }
  let best = rectangle(around, 0)
  for (const angle of angles) {
    const quarter = angle - Math.round(angle / (Math.PI / 2)) * (Math.PI / 2)
    const next = rectangle(around, quarter)
    if (next.w * next.h < best.w * best.h - 1e-9) best = next
  }
  if (best.h > 1.5 * best.w) best = { x: best.x, y: best.y, w: best.h, h: best.w, angle: best.angle - Math.PI / 2 }
  return best
}

function boxes(p, m) {
  const found = []
  for (const points of components(m)) {
    const sure = points.reduce((sum, [x, y]) => sum + m.map[y * m.w + x], 0) / points.length
    const b = smallest(points), w = b.w + 1, h = b.h + 1
    const grow = (w * h * UNCLIP) / (2 * (w + h)), sx = p.width / m.w, sy = p.height / m.h
    if (Math.min(w, h) < 3 || sure < 0.6) continue
    found.push({ x: (b.x + 0.5) * sx - 0.5, y: (b.y + 0.5) * sy - 0.5, angle: b.angle,
                 w: (w + 2 * grow) * Math.hypot(Math.cos(b.angle) * sx, Math.sin(b.angle) * sy),
                 h: (h + 2 * grow) * Math.hypot(Math.sin(b.angle) * sx, Math.cos(b.angle) * sy) })
  }
  return found
}

async function readLine(session, letters, p, b) {
  const w = Math.min(Math.max(Math.ceil((48 * b.w) / b.h), 1), 3072), padded = Math.max(320, Math.ceil(w / 64) * 64)
  const x = new Float32Array(3 * 48 * padded), c = Math.cos(b.angle), s = Math.sin(b.angle)
  for (let channel = 0; channel < 3; channel++) {
    for (let row = 0; row < 48; row++) {
      for (let column = 0; column < w; column++) {
        const along = ((column + 0.5) / w - 0.5) * b.w, across = ((row + 0.5) / 48 - 0.5) * b.h
        const value = sample(p, b.x + along * c - across * s, b.y + along * s + across * c, 2 - channel)
        x[(channel * 48 + row) * padded + column] = value / 127.5 - 1
      }
    }
  }
  const out = await session.run({ x: new ort.Tensor('float32', x, [1, 3, 48, padded]) })
  const { data, dims } = out[session.outputNames[0]]
  let text = '', last = 0
  for (let t = 0; t < dims[1]; t++) {
    let best = 0
    for (let k = 1; k < dims[2]; k++) if (data[t * dims[2] + k] > data[t * dims[2] + best]) best = k
    if (best && best !== last) text += letters[best - 1] ?? ''
    last = best
  }
  return text.split(' ').filter((w) => w).join(' ')
}

async function main() {
  const options = { intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3 }
  const detection = await ort.InferenceSession.create(path.join(assets, 'ch_PP-OCRv4_det_infer.onnx'), options)
  const recognition = await ort.InferenceSession.create(path.join(assets, 'ch_PP-OCRv4_rec_infer.onnx'), options)
  const letters = fs.readFileSync(path.join(assets, 'ppocr_keys_v1.txt'), 'utf8').replace(/\n$/, '').split('\n').concat(' ')
  for (const file of process.argv.slice(3)) {
    const p = readPicture(file), found = boxes(p, await probabilities(detection, p))
    const row = (a, b) => Math.abs(a.y - b.y) < 0.35 * Math.min(a.h, b.h)
    const sorted = []
    for (const b of found.reverse()) {
      let at = 0
      while (at < sorted.length && (row(b, sorted[at]) ? b.x > sorted[at].x : b.y > sorted[at].y)) at++
      sorted.splice(at, 0, b)
    }
    for (let i = 0; i < sorted.length; i++) {
      const more = i + 1 < sorted.length && row(sorted[i], sorted[i + 1])
      process.stdout.write((await readLine(recognition, letters, p, sorted[i])) + (more ? ' ' : '\n'))
    }
  }
}

main().catch((e) => {
  console.error(String(e))
  process.exit(1)
})
