// Runs each case of a folder by ONNX Runtime and writes what it gives as test_data_set_0/output_N.pb.
//   node onnx_runtime.js FOLDER_OF_NODE_MODULES FOLDER
'use strict'
const fs = require('fs')
const path = require('path')
const ort = require(path.join(path.resolve(process.argv[2]), 'onnxruntime-node'))
const folder = process.argv[3]
const kinds = { // by name: number in ONNX, array
  float32: [1, Float32Array], uint8: [2, Uint8Array], int8: [3, Int8Array], uint16: [4, Uint16Array],
  int16: [5, Int16Array], int32: [6, Int32Array], int64: [7, BigInt64Array], bool: [9, Uint8Array],
  float16: [10, Uint16Array], float64: [11, Float64Array], uint32: [12, Uint32Array], uint64: [13, BigUint64Array]
}

function varint(x) {
  const bytes = []
  for (x = BigInt(x); x > 127n; x >>= 7n) bytes.push(Number(x & 127n) | 128)
  bytes.push(Number(x))
  return Buffer.from(bytes)
}

function proto(t) {
  const raw = Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength)
  const parts = t.dims.map((d) => Buffer.concat([varint(8), varint(d)]))
  return Buffer.concat([...parts, varint(16), varint(kinds[t.type][0]), varint(74), varint(raw.length), raw])
}

async function main() {
  for (const name of fs.readdirSync(folder).sort()) {
    const at = path.join(folder, name), set = path.join(at, 'test_data_set_0')
    if (!fs.existsSync(path.join(at, 'inputs.json'))) continue
    try {
      const session = await ort.InferenceSession.create(path.join(at, 'model.onnx'),
                                                        { graphOptimizationLevel: 'disabled', logSeverityLevel: 3 })
      const feeds = {}
      for (const i of JSON.parse(fs.readFileSync(path.join(at, 'inputs.json')))) {
        const bytes = Uint8Array.from(Buffer.from(i.data, 'base64'))
        feeds[i.name] = new ort.Tensor(i.type, new kinds[i.type][1](bytes.buffer), i.dims)
      }
      const out = await session.run(feeds)
      session.outputNames.forEach((o, i) => fs.writeFileSync(path.join(set, `output_${i}.pb`), proto(out[o])))
    } catch (e) {
      console.log(`${name}: ONNX Runtime: ${e.message}`.slice(0, 400))
      fs.rmSync(at, { recursive: true })
    }
  }
}
main()
