/* npu_report.h - a plan as one page of HTML, for people: the graph by backend, with the reasons for each op's place;
   memory over time in each region; the timeline of the last run, predicted and measured; what to implement next. The page
   needs no network and no other file. Uses public functions of npu_ir.h alone; they are static: include it where it is used.

       npu_report_desc desc = { .plan = npu_program_plan(program), .exec = exec };   // advice: see npu_plan_advise
       npu_text page = npu_text_init(NULL);
       npu_report_print(&desc, &page);
       npu_text_save(&page, "plan.html");
       npu_text_free(&page);

   CONTENTS  words as JSON - the plan - the run - the page: style, script */
#ifndef NPU_REPORT_H
#define NPU_REPORT_H

#include "../../npu_ir.h"
#include <string.h>

/* All borrowed during the call. */
typedef struct npu_report_desc {
    const npu_plan *plan;     /* required; of a program, for what its compile said counts, too */
    const npu_exec *exec;     /* NULL, or an exec of that plan: its last run, measured where npu_exec_desc.profile is set */
    const npu_advice *advice; /* rows of npu_plan_advise; its desc had the backends of the plan */
    uint32_t num_advice;
    const char *title;        /* NULL = the graph's name */
} npu_report_desc;

static inline npu_status npu_report_print(const npu_report_desc *desc, npu_text *text);

/* ---- words as JSON ----   within a script element, so that no name may close it */

static inline void npu_report__words(npu_text *text, const char *words)
{
    npu_text_append(text, "\"", 1);
    for (; *words; words++) {
        if ((unsigned char)*words < 0x20 || strchr("\"\\<>&", *words)) {
            npu_text_printf(text, "\\u%04x", (unsigned)(unsigned char)*words);
        } else {
            npu_text_append(text, words, 1);
        }
    }
    npu_text_append(text, "\"", 1);
}

/* What a printer of the library made: there, too, "<" stands in words alone. */
static inline void npu_report__document(npu_text *text, const npu_text *json)
{
    for (size_t i = 0; i < json->len; i++) {
        npu_text_append(text, json->data[i] == '<' ? "\\u003c" : &json->data[i], json->data[i] == '<' ? 6 : 1);
    }
}

/* As the text of an element. */
static inline void npu_report__escaped(npu_text *text, const char *words)
{
    for (; *words; words++) {
        const char *name = *words == '<' ? "&lt;" : *words == '&' ? "&amp;" : NULL;
        npu_text_append(text, name ? name : words, name ? strlen(name) : 1);
    }
}

/* ---- the plan ---- */

/* "%7", or the name. */
static inline void npu_report__value(npu_text *text, const npu_graph *g, uint32_t id)
{
    npu_value v = { id };
    npu_text spec = npu_text_init(NULL), label = npu_text_init(NULL);
    npu_spec_print(&spec, npu_value_spec(g, v));
    npu_text_printf(&label, "%%%u", (unsigned)id);
    npu_text_printf(text, "{\"id\": %u, \"name\": ", (unsigned)id);
    npu_report__words(text, npu_value_name(g, v)[0] || !label.data ? npu_value_name(g, v) : label.data);
    npu_text_printf(text, ", \"spec\": ");
    npu_report__words(text, spec.data ? spec.data : "");
    npu_text_printf(text, "}");
    npu_text_free(&label);
    npu_text_free(&spec);
}

/* Per op the ops that it reads from, or the values that it makes. */
static inline void npu_report__links(npu_text *text, const npu_graph *g, bool reads)
{
    npu_text_printf(text, reads ? ",\n\"reads\": {" : ",\n\"results\": {");
    for (uint32_t id = 1; id <= npu_graph_num_ops(g); id++) {
        npu_op op = { id };
        uint32_t num = reads ? npu_op_num_operands(g, op) : npu_op_num_results(g, op), written = 0;
        npu_text_printf(text, "%s\"%u\": [", id > 1 ? ", " : "", (unsigned)id);
        for (uint32_t i = 0; i < num; i++) {
            uint32_t one = reads ? npu_value_producer(g, npu_op_operand_value(g, op, i), NULL).id : npu_op_result(g, op, i).id;
            if (one) {
                npu_text_printf(text, "%s%u", written++ ? ", " : "", (unsigned)one);
            }
        }
        npu_text_printf(text, "]");
    }
    npu_text_printf(text, "}");
}

static inline void npu_report__regions(npu_text *text, const npu_plan *plan)
{
    uint32_t written = 0;
    npu_text_printf(text, ",\n\"regions\": [");
    for (uint32_t b = 0; b < npu_plan_num_backends(plan); b++) {
        npu_region_memory m;
        for (uint32_t r = 0; r < NPU_MAX_REGIONS && npu_plan_region_memory(plan, b, r, &m) == NPU_OK; r++) {
            npu_text name = npu_text_init(NULL);
            npu_text_printf(&name, "%s%s%s", npu_plan_backend(plan, b)->name, m.name && m.name[0] ? ", " : "", m.name ? m.name : "");
            npu_text_printf(text, "%s{\"backend\": %u, \"region\": %u, \"name\": ", written++ ? ", " : "", (unsigned)b, (unsigned)r);
            npu_report__words(text, name.data ? name.data : "");
            npu_text_printf(text, ", \"capacity\": %llu, \"activations\": %llu, \"weights\": %llu, \"prepared\": %llu}",
                            (unsigned long long)m.capacity, (unsigned long long)m.activations, (unsigned long long)m.weights,
                            (unsigned long long)m.prepared);
            npu_text_free(&name);
        }
    }
    npu_text_printf(text, "]");
}

static inline void npu_report__advice(npu_text *text, const npu_report_desc *desc)
{
    npu_text_printf(text, ",\n\"advice\": [");
    for (uint32_t i = 0; i < desc->num_advice; i++) {
        const npu_advice *a = &desc->advice[i];
        npu_text_printf(text, "%s{\"backend\": %u, \"kind\": ", i ? ", " : "", (unsigned)a->backend);
        npu_report__words(text, a->kind);
        npu_text_printf(text, ", \"count\": %u, \"groups\": [%u, %u], \"bytes\": [%llu, %llu], \"ns\": [%.0f, %.0f]}",
                        (unsigned)a->count, (unsigned)a->groups_before, (unsigned)a->groups_after,
                        (unsigned long long)a->bytes_before, (unsigned long long)a->bytes_after, a->ns_before, a->ns_after);
    }
    npu_text_printf(text, "]");
}

/* ---- the run ---- */

/* Whole steps only; -1 = graph inputs or outputs. */
static inline void npu_report__profile(npu_text *text, const npu_exec *exec)
{
    uint32_t count = 0, written = 0;
    const npu_profile_step *entries = npu_exec_profile(exec, &count);
    npu_text_printf(text, ",\n\"profile\": [");
    for (uint32_t i = 0; entries && i < count; i++) {
        if (!entries[i].op) {
            npu_text_printf(text, "%s{\"step\": %d, \"begin\": %llu, \"end\": %llu}", written++ ? ", " : "",
                            entries[i].step == NPU_NO_INDEX ? -1 : (int)entries[i].step,
                            (unsigned long long)entries[i].begin_ns, (unsigned long long)entries[i].end_ns);
        }
    }
    npu_text_printf(text, "]");
}

/* ---- the page ---- */

static const char *const npu_report__style[] = {
    "body { font: 14px/1.4 sans-serif; color: #111; background: #fff; margin: 1.5em; }",
    "h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin: 1.6em 0 .4em; }",
    "table { border-collapse: collapse; } td, th { border: 1px solid #999; padding: .2em .6em; text-align: "
        "right; }",
    "td:first-child, th:first-child, td.words { text-align: left; }",
    ".wide { overflow: auto; max-height: 80vh; border: 1px solid #ccc; }",
    "svg text { font: 11px sans-serif; fill: #111; pointer-events: none; }",
    "rect.block, rect.group, rect.op, rect.span, rect.swatch { stroke: #111; stroke-width: 1; }",
    "rect.refused { stroke-dasharray: 4 2; stroke-width: 2; } rect:hover, rect.chosen { stroke-width: 3; }",
    "rect.overlap { fill: #000; fill-opacity: .12; } path { fill: none; stroke: #333; }",
    "path.moved { stroke-width: 2.5; } line.bound { stroke: #111; stroke-dasharray: 6 3; } line.capacity { "
        "stroke: #111; stroke-width: 2.5; }",
    "#tip { position: fixed; display: none; max-width: 32em; background: #fff; border: 1px solid #111; "
        "padding: .4em .6em; white-space: pre-wrap; pointer-events: none; z-index: 2; }",
    "#details { position: sticky; top: 0; background: #fff; border: 1px solid #999; padding: .4em .6em; "
        "white-space: pre-wrap; min-height: 3em; max-height: 14em; overflow: auto; z-index: 1; }",
    "button { font: inherit; margin-right: .6em; } .key { display: inline-block; margin-right: 1.2em; }",
    "@media print { .wide { max-height: none; } }",
    NULL
};

static const char *const npu_report__script[] = {
    "'use strict';",
    "const data = JSON.parse(document.getElementById('data').textContent), plan = data.plan, SVG = "
        "'http://www.w3.org/2000/svg';",
    "const opOf = new Map(plan.ops.map(o => [o.id, o])), valueOf = new Map(data.values.map(v => [v.id, v]));",
    "const stepOf = new Map(), tints = ['#d9f0d3', '#d1e5f0', '#fde0b6', '#e7d4e8', '#fbd5c5', '#d4efe9'];",
    "plan.steps.forEach((s, i) => s.ops.forEach(o => stepOf.set(o, i)));",
    "",
    "// Numbers as people read them.",
    "function us(ns) { return ns < 1e3 ? ns.toFixed(0) + ' ns' : ns < 1e6 ? (ns / 1e3).toFixed(1) + ' us' : "
        "(ns / 1e6).toFixed(2) + ' ms'; }",
    "function size(n) { return n < 1024 ? n + ' B' : n < 1048576 ? (n / 1024).toFixed(1) + ' KiB' : (n / "
        "1048576).toFixed(2) + ' MiB'; }",
    "function backendName(b) { return b < 0 ? 'nobody' : plan.backends[b].name; }",
    "",
    "function element(parent, name, attributes, text) {",
    "    const e = document.createElement(name);",
    "    for (const k in attributes || {}) { e.setAttribute(k, attributes[k]); }",
    "    if (text !== undefined) { e.textContent = text; }",
    "    return parent.appendChild(e);",
    "}",
    "function draw(parent, name, attributes, text) {",
    "    const e = document.createElementNS(SVG, name);",
    "    for (const k in attributes) { e.setAttribute(k, attributes[k]); }",
    "    if (text !== undefined) { e.textContent = text; }",
    "    return parent.appendChild(e);",
    "}",
    "",
    "// Backends differ by pattern, not by colour alone: lines for all but the first, at another angle and "
        "distance for each.",
    "function fills(svg) {",
    "    const defs = draw(svg, 'defs', {});",
    "    plan.backends.forEach((b, i) => {",
    "        const p = draw(defs, 'pattern', { id: svg.id + 'fill' + i, width: 8 + 2 * (i >> 2), height: 8, "
        "patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(' + [0, 45, 135, 90][i % 4] + ')' });",
    "        draw(p, 'rect', { width: 16, height: 8, fill: tints[i % tints.length] });",
    "        if (i) { draw(p, 'rect', { width: 1, height: 8, fill: '#888' }); }",
    "    });",
    "    return b => b < 0 ? '#fff' : 'url(#' + svg.id + 'fill' + b + ')';",
    "}",
    "function picture(parent, id) { return draw(element(parent, 'div', { class: 'wide' }), 'svg', { id: id, "
        "width: 10, height: 10 }); }",
    "function resize(svg, width, height) { svg.setAttribute('width', width); svg.setAttribute('height', "
        "height); }",
    "",
    "// Words on hover; a click keeps them above.",
    "const tip = document.getElementById('tip'), details = document.getElementById('details');",
    "let chosen = null;",
    "function explain(e, words, onClick) {",
    "    e.addEventListener('mousemove', event => {",
    "        tip.textContent = words();",
    "        tip.style.display = 'block';",
    "        tip.style.left = Math.min(event.clientX + 12, Math.max(0, innerWidth - 340)) + 'px';",
    "        tip.style.top = event.clientY + 16 + 'px';",
    "    });",
    "    e.addEventListener('mouseleave', () => { tip.style.display = 'none'; });",
    "    e.addEventListener('click', () => {",
    "        if (chosen) { chosen.classList.remove('chosen'); }",
    "        chosen = e;",
    "        e.classList.add('chosen');",
    "        details.textContent = words();",
    "        if (onClick) { onClick(); }",
    "    });",
    "    return e;",
    "}",
    "function box(svg, kind, x, y, width, height, fill, label, words, onClick) {",
    "    const e = explain(draw(svg, 'rect', { class: kind, x: x, y: y, width: Math.max(width, 1), height: "
        "Math.max(height, 1), fill: fill }), words, onClick);",
    "    const room = Math.floor((width - 8) / 6.2);",
    "    if (room > 1 && height > 11) {",
    "        const text = label.length > room ? label.slice(0, room - 1) + '\\u2026' : label;",
    "        const mat = draw(svg, 'text', { x: x + 4, y: y + 13, stroke: '#fff', 'stroke-width': 3, "
        "'paint-order': 'stroke' }, text);",
    "        mat.setAttribute('class', 'label');",
    "    }",
    "    return e;",
    "}",
    "",
    "// ---- graph: a column for each backend, groups from top to bottom in the order in which they run; "
        "folded if there are many",
    "function opWords(o) {",
    "    const lines = [o.kind + (o.name && o.name !== o.kind ? '  ' + o.name : '') + '  (op ' + o.id + ')', "
        "'runs on ' + backendName(o.backend) + ': ' + o.reason + (o.words ? ': ' + o.words : '')];",
    "    o.backends.forEach((b, i) => lines.push('  ' + backendName(i) + ': ' + (b.reason === 'claimed' ? "
        "(b.ns ? us(b.ns) : 'takes it') : b.reason + (b.words ? ': ' + b.words : ''))));",
    "    (data.results[o.id] || []).forEach(v => lines.push('  makes ' + valueOf.get(v).name + ' : ' + "
        "valueOf.get(v).spec));",
    "    return lines.join('\\n');",
    "}",
    "function kindsOf(ops) {",
    "    const count = new Map();",
    "    ops.forEach(id => { const k = opOf.get(id).kind.replace(/^aten\\./, '').replace(/\\.default$/, ''); "
        "count.set(k, (count.get(k) || 0) + 1); });",
    "    return [...count].sort((a, b) => b[1] - a[1]).map(k => k[0] + (k[1] > 1 ? ' x ' + k[1] : ''));",
    "}",
    "function groupWords(i) {",
    "    const s = plan.steps[i], lines = ['step ' + i + ' on ' + backendName(s.backend) + ': ' + "
        "s.ops.length + ' ops' + (s.predicted_ns ? ', predicted ' + us(s.predicted_ns) : '')];",
    "    lines.push('  ' + kindsOf(s.ops).slice(0, 12).join(', '));",
    "    const reasons = new Map();",
    "    s.ops.map(id => opOf.get(id)).filter(o => o.reason !== 'claimed').forEach(o => { const r = o.reason "
        "+ (o.words ? ': ' + o.words : ''); reasons.set(r, (reasons.get(r) || 0) + 1); });",
    "    [...reasons].slice(0, 8).forEach(r => lines.push('  ' + r[1] + ' x ' + r[0]));",
    "    return lines.join('\\n');",
    "}",
    "function transferWords(s) {",
    "    const names = s.outputs.slice(0, 12).map(v => '  ' + valueOf.get(v).name + ' : ' + "
        "valueOf.get(v).spec);",
    "    return backendName(s.from) + ' -> ' + backendName(s.backend) + ': ' + size(s.bytes) + "
        "(s.predicted_ns ? ', predicted ' + us(s.predicted_ns) : '') + '\\n' + names.join('\\n');",
    "}",
    "// Rank of each op within its group: one more than that of what it reads there.",
    "function ranksOf(ops) {",
    "    const rank = new Map(), rows = [];",
    "    ops.forEach(id => {",
    "        let r = 0;",
    "        (data.reads[id] || []).forEach(from => { if (rank.has(from)) { r = Math.max(r, rank.get(from) + "
        "1); } });",
    "        rank.set(id, r);",
    "        (rows[r] = rows[r] || []).push(id);",
    "    });",
    "    return rows;",
    "}",
    "const unfolded = new Set();",
    "function drawGraph() {",
    "    const svg = document.getElementById('graph'), columns = plan.backends.length, width = 330, place = "
        "new Map();",
    "    svg.textContent = '';",
    "    const fill = fills(svg), under = draw(svg, 'g', {});",
    "    let y = 26;",
    "    plan.backends.forEach((b, i) => draw(svg, 'text', { x: 20 + i * width, y: 16 }, b.name));",
    "    plan.steps.forEach((s, i) => {",
    "        if (s.type !== 'partition') { return; }",
    "        const x = 20 + Math.max(s.backend, 0) * width, refused = s.ops.some(o => opOf.get(o).reason !== "
        "'claimed');",
    "        const rows = unfolded.has(i) ? ranksOf(s.ops) : [], lines = [];",
    "        rows.forEach(row => { for (let k = 0; k < row.length; k += 2) { lines.push(row.slice(k, k + "
        "2)); } });",
    "        const height = 34 + lines.length * 30, fold = () => { unfolded.has(i) ? unfolded.delete(i) : "
        "unfolded.add(i); drawGraph(); };",
    "        box(svg, refused ? 'group refused' : 'group', x, y, 270, height, fill(s.backend), "
        "(unfolded.has(i) ? '\\u2212 ' : '+ ') + 'step ' + i + ': ' + s.ops.length + ' ops' + (s.predicted_ns ? "
        "', ' + us(s.predicted_ns) : ''), () => groupWords(i), fold);",
    "        if (!lines.length) { draw(svg, 'text', { x: x + 4, y: y + 28, stroke: '#fff', 'stroke-width': "
        "3, 'paint-order': 'stroke' }, kindsOf(s.ops).join(', ').slice(0, 42)); }",
    "        place.set(i, { x: x, y: y, bottom: y + height });",
    "        const at = new Map();",
    "        lines.forEach((line, l) => line.forEach((id, k) => at.set(id, { x: x + 8 + k * 128, y: y + 24 + "
        "l * 30, width: line.length > 1 ? 122 : 250 })));",
    "        at.forEach((p, id) => (data.reads[id] || []).forEach(from => { const q = at.get(from); if (q) { "
        "draw(svg, 'path', { d: 'M' + (q.x + q.width / 2) + ' ' + (q.y + 20) + 'L' + (p.x + p.width / 2) + ' ' + "
        "p.y }); } }));",
    "        at.forEach((p, id) => { const o = opOf.get(id); box(svg, o.reason !== 'claimed' ? 'op refused' "
        ": 'op', p.x, p.y, p.width, 20, '#fff', (o.reason !== 'claimed' ? '! ' : '') + o.kind.replace(/^aten\\./, "
        "'').replace(/\\.default$/, ''), () => opWords(o)); });",
    "        y += height + 18;",
    "    });",
    "    plan.steps.forEach((s, i) => s.dependencies.forEach(d => {",
    "        const from = plan.steps[d].type === 'transfer' ? plan.steps[d].dependencies : [d], to = "
        "place.get(i), moved = plan.steps[d].type === 'transfer';",
    "        from.map(f => place.get(f)).filter(f => f && to && s.type === 'partition').forEach((f, k) => {",
    "            const across = f.x !== to.x, x1 = f.x < to.x ? f.x + 270 : f.x, x2 = f.x > to.x ? to.x + "
        "270 : to.x, bend = across ? (x1 + x2) / 2 : f.x - 14;",
    "            const begin = f.bottom - 8, end = to.y + 10, d2 = 'M' + [x1, begin].join(' ') + 'C' + "
        "[bend, begin, bend, end, x2, end].join(' ');",
    "            explain(draw(under, 'path', { class: moved ? 'moved' : 'edge', d: d2 }), () => moved ? "
        "transferWords(plan.steps[d]) : 'step ' + d + ' before step ' + i);",
    "            if (moved && k === 0) { draw(svg, 'text', { x: Math.min(x1, x2) + 4, y: (f.bottom + to.y) / "
        "2 + 4, stroke: '#fff', 'stroke-width': 3, 'paint-order': 'stroke' }, size(plan.steps[d].bytes)); }",
    "        });",
    "    }));",
    "    resize(svg, 20 + columns * width, y + 10);",
    "}",
    "function graphPart(parent) {",
    "    element(parent, 'h2', {}, 'Graph');",
    "    const all = element(parent, 'p', {}), parts = plan.steps.map((s, i) => i).filter(i => "
        "plan.steps[i].type === 'partition');",
    "    if (plan.ops.length <= 60) { parts.forEach(i => unfolded.add(i)); }",
    "    element(all, 'button', {}, 'unfold all').addEventListener('click', () => { parts.forEach(i => "
        "unfolded.add(i)); drawGraph(); });",
    "    element(all, 'button', {}, 'fold all').addEventListener('click', () => { unfolded.clear(); "
        "drawGraph(); });",
    "    element(all, 'span', {}, 'A group opens and closes by a click. Dashed and with a mark (!): not "
        "where the first choice would be; the reason is in the words.');",
    "    picture(parent, 'graph');",
    "    drawGraph();",
    "}",
    "",
    "// ---- memory: blocks by place and time, a picture for each region",
    "function memoryPart(parent) {",
    "    element(parent, 'h2', {}, 'Memory over time');",
    "    data.regions.forEach(r => {",
    "        const blocks = plan.memory.filter((m, i) => m.backend === r.backend && m.region === r.region && "
        "m.memory === 'arena' && m.root === i && m.bytes > 0);",
    "        const members = new Map();",
    "        plan.memory.forEach((m, i) => { if (m.root !== i) { const b = plan.memory[m.root]; "
        "members.set(m.root, Math.max(members.get(m.root) || b.last, m.last)); } });",
    "        const top = Math.max(1, r.activations, ...blocks.map(b => b.offset + b.bytes)), bound = "
        "plan.backends[r.backend].lower_bound, capacity = r.capacity ? Math.max(0, r.capacity - r.weights - "
        "r.prepared) : 0;",
    "        const far = capacity > 1.3 * top, scale = 240 / (far || !capacity ? top * 1.12 : Math.max(top, "
        "capacity) * 1.06), ends = plan.ops.length + 1, step = Math.min(40, Math.max(900 / ends, 900 / 4000));",
    "        element(parent, 'p', {}, r.name + ': blocks ' + size(r.activations) + ', bound ' + size(bound) "
        "+ ', weights ' + size(r.weights) + (r.prepared ? ', prepared ' + size(r.prepared) : '') + ', capacity ' "
        "+ (r.capacity ? size(r.capacity) : 'unlimited'));",
    "        if (!blocks.length) { return; }",
    "        const svg = picture(parent, 'memory' + r.backend + '_' + r.region), fill = fills(svg), height = "
        "262, y = n => height - 8 - n * scale, x = t => 8 + t * step;",
    "        blocks.forEach(b => {",
    "            const i = plan.memory.indexOf(b), last = Math.max(b.last, members.get(i) || 0);",
    "            box(svg, 'block', x(b.first), y(b.offset + b.bytes), (last - b.first + 1) * step, b.bytes * "
        "scale, fill(r.backend), b.name, () => b.name + ': ' + size(b.bytes) + ' at ' + b.offset + ', alive from "
        "op ' + b.first + ' to ' + last + plan.memory.filter((m, k) => m.root === i && k !== i).slice(0, "
        "8).map(m => '\\n  also ' + m.name).join(''));",
    "        });",
    "        const right = x(ends + 1), line = (kind, n, label) => { draw(svg, 'line', { class: kind, x1: 0, "
        "y1: n, x2: right, y2: n }); draw(svg, 'text', { x: right + 4, y: n + 4 }, label); };",
    "        line('bound', y(bound), 'bound ' + size(bound));",
    "        if (capacity) { line('capacity', far ? 6 : y(capacity), 'capacity ' + size(capacity) + (far ? ' "
        "(higher up)' : '')); }",
    "        resize(svg, right + 180, height);",
    "    });",
    "    element(parent, 'p', {}, 'From left to right: ops in the order in which they run; up: place in the "
        "region. Dashed: bytes alive at the peak, which no plan can be smaller than. Thick: what is left of the "
        "capacity beside weights.');",
    "}",
    "",
    "// ---- timeline: predicted and measured, a lane for each backend and direction of transfers",
    "function laneOf(s) { return !s ? 'inputs and outputs' : s.type === 'transfer' ? backendName(s.from) + ' "
        "-> ' + backendName(s.backend) : backendName(s.backend); }",
    "function overlapOf(spans) {",
    "    const edges = [];",
    "    spans.forEach(s => { edges.push([s.begin, 1], [s.end, -1]); });",
    "    edges.sort((a, b) => a[0] - b[0] || a[1] - b[1]);",
    "    const both = [];",
    "    let open = 0, since = 0;",
    "    edges.forEach(e => {",
    "        if (open > 1 && e[0] > since) { both.push([since, e[0]]); }",
    "        open += e[1];",
    "        since = e[0];",
    "    });",
    "    return both;",
    "}",
    "function timelinePart(parent) {",
    "    element(parent, 'h2', {}, 'Timeline of the last run');",
    "    let at = Math.max(0, plan.predicted.ns - plan.steps.reduce((n, s) => n + s.predicted_ns, 0));",
    "    const ends = at > 1 ? [{ step: -1, begin: 0, end: at }] : [];",
    "    const predicted = ends.concat(plan.steps.map((s, i) => ({ step: i, begin: at, end: at += "
        "s.predicted_ns }))).filter(s => s.end > s.begin);",
    "    const measured = data.profile.map(p => ({ step: p.step, begin: p.begin, end: p.end }));",
    "    if (!predicted.length && !measured.length) { element(parent, 'p', {}, 'The plan has no costs, and "
        "no run was measured.'); return; }",
    "    const total = Math.max(...predicted.map(s => s.end), ...measured.map(s => s.end), 1), scale = 900 / "
        "total;",
    "    const svg = picture(parent, 'timeline'), fill = fills(svg);",
    "    let y = 18;",
    "    [['predicted, in order', predicted], ['measured', measured]].forEach(([title, spans]) => {",
    "        const lanes = [...new Set(spans.map(s => laneOf(plan.steps[s.step])))], head = y;",
    "        if (!spans.length) { return; }",
    "        draw(svg, 'text', { x: 4, y: y }, title + ': ' + us(Math.max(...spans.map(s => s.end))));",
    "        y += 8;",
    "        lanes.forEach(lane => {",
    "            draw(svg, 'text', { x: 12, y: y + 14 }, lane);",
    "            spans.filter(s => laneOf(plan.steps[s.step]) === lane).forEach(s => {",
    "                const step = plan.steps[s.step], other = (title[0] === 'p' ? measured : "
        "predicted).find(o => o.step === s.step);",
    "                const words = () => (step ? step.type === 'transfer' ? transferWords(step) : "
        "groupWords(s.step) : 'graph inputs or outputs') + '\\n' + title + ': ' + us(s.begin) + ' to ' + "
        "us(s.end) + ', ' + us(s.end - s.begin) + (other ? '\\n' + (title[0] === 'p' ? 'measured' : 'predicted') "
        "+ ': ' + us(other.end - other.begin) : '');",
    "                box(svg, 'span', 150 + s.begin * scale, y, (s.end - s.begin) * scale, 18, step && "
        "step.type === 'partition' ? fill(step.backend) : '#fff', step ? String(s.step) : '', words);",
    "            });",
    "            y += 24;",
    "        });",
    "        overlapOf(spans).forEach(o => draw(svg, 'rect', { class: 'overlap', x: 150 + o[0] * scale, y: "
        "head + 6, width: Math.max(1, (o[1] - o[0]) * scale), height: y - head - 8, 'pointer-events': 'none' }));",
    "        y += 22;",
    "    });",
    "    resize(svg, 1080, y);",
    "    const both = overlapOf(measured).reduce((n, o) => n + o[1] - o[0], 0);",
    "    element(parent, 'p', { id: 'overlap' }, measured.length ? 'Two or more at once (grey) for ' + "
        "us(both) + ' of ' + us(Math.max(...measured.map(s => s.end))) + '.' : 'No run was measured: "
        "npu_exec_desc.profile.');",
    "}",
    "",
    "// ---- tables",
    "function table(parent, id, head, rows) {",
    "    const t = element(parent, 'table', { id: id }), line = element(element(t, 'thead'), 'tr'), body = "
        "element(t, 'tbody');",
    "    head.forEach(h => element(line, 'th', {}, h));",
    "    rows.forEach(r => { const tr = element(body, 'tr'); r.forEach(c => element(tr, 'td', {}, c)); });",
    "}",
    "function summaryPart(parent) {",
    "    const p = plan.predicted, count = t => plan.steps.filter(s => s.type === t).length;",
    "    element(parent, 'p', {}, plan.ops.length + ' ops in ' + count('partition') + ' groups, ' + "
        "count('transfer') + ' transfers between them; to devices ' + size(p.up_bytes) + ' and back ' + "
        "size(p.down_bytes) + ' in a run' + (p.ns ? '; predicted ' + us(p.ns) + ' (ops ' + us(p.ops_ns) + ', "
        "launches ' + us(p.launch_ns) + ', transfers ' + us(p.transfer_ns) + '), on ' + "
        "backendName(plan.backends.length - 1) + ' alone ' + us(p.last_ns) : ''));",
    "    const keys = element(parent, 'p', {});",
    "    plan.backends.forEach((b, i) => {",
    "        const key = element(keys, 'span', { class: 'key' }), svg = draw(key, 'svg', { id: 'key' + i, "
        "width: 30, height: 14 });",
    "        draw(svg, 'rect', { class: 'swatch', x: 1, y: 1, width: 26, height: 12, fill: fills(svg)(i) });",
    "        element(key, 'span', {}, b.name + ': ' + plan.ops.filter(o => o.backend === i).length + ' ops');",
    "    });",
    "}",
    "function advicePart(parent) {",
    "    element(parent, 'h2', {}, 'What to implement next');",
    "    if (!data.advice.length) { element(parent, 'p', {}, 'Nothing is refused, or no advice was asked "
        "for.'); return; }",
    "    table(parent, 'advice', ['backend', 'op', 'how many', 'groups', 'bytes moved', 'predicted', "
        "'saves'], data.advice.map(a => [backendName(a.backend), a.kind, a.count, a.groups[0] + ' -> ' + "
        "a.groups[1], size(a.bytes[0]) + ' -> ' + size(a.bytes[1]), a.ns[0] ? us(a.ns[0]) + ' -> ' + us(a.ns[1]) "
        ": '', a.ns[0] ? us(Math.max(0, a.ns[0] - a.ns[1])) : '']));",
    "}",
    "const page = document.getElementById('page');",
    "[summaryPart, graphPart, memoryPart, timelinePart, advicePart].forEach(part => part(page));",
    "document.body.setAttribute('data-ready', 'yes');",
    NULL
};

static inline void npu_report__lines(npu_text *text, const char *const *lines)
{
    for (; *lines; lines++) {
        npu_text_append(text, *lines, strlen(*lines));
        npu_text_append(text, "\n", 1);
    }
}

static inline void npu_report__data(npu_text *text, const npu_report_desc *desc)
{
    const npu_graph *g = npu_plan_graph(desc->plan);
    npu_text plan = npu_text_init(NULL);
    npu_plan_print_json(desc->plan, &plan);
    npu_text_printf(text, "{\"plan\": ");
    npu_report__document(text, &plan);
    npu_text_printf(text, ",\n\"values\": [");
    for (uint32_t id = 1; id <= npu_graph_num_values(g); id++) {
        npu_text_printf(text, id > 1 ? ", " : "");
        npu_report__value(text, g, id);
    }
    npu_text_printf(text, "]");
    npu_report__links(text, g, true);
    npu_report__links(text, g, false);
    npu_report__regions(text, desc->plan);
    npu_report__profile(text, desc->exec);
    npu_report__advice(text, desc);
    npu_text_printf(text, "}");
    text->status = text->status ? text->status : plan.status;
    npu_text_free(&plan);
}

/* Appends the page. Errors: INVALID_ARGUMENT (no plan; an exec of another plan's graph), NO_MEMORY. */
static inline npu_status npu_report_print(const npu_report_desc *desc, npu_text *text)
{
    const npu_graph *g = desc ? npu_plan_graph(desc->plan) : NULL;
    const char *title = g && desc->title ? desc->title : npu_graph_name(g);
    if (!g || !text || (desc->num_advice && !desc->advice) ||
        (desc->exec && npu_plan_graph(npu_program_plan(npu_exec_program(desc->exec))) != g)) {
        return NPU_ERR_INVALID_ARGUMENT;
    }
    npu_text_printf(text, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><link rel=\"icon\" href=\"data:,\"><title>");
    npu_report__escaped(text, title);
    npu_text_printf(text, "</title>\n<style>\n");
    npu_report__lines(text, npu_report__style);
    npu_text_printf(text, "</style></head>\n<body><h1>");
    npu_report__escaped(text, title);
    npu_text_printf(text, "</h1>\n<div id=\"details\">What is clicked is explained here.</div><div id=\"page\"></div><div id=\"tip\"></div>\n"
                          "<script type=\"application/json\" id=\"data\">");
    npu_report__data(text, desc);
    npu_text_printf(text, "</script>\n<script>\n");
    npu_report__lines(text, npu_report__script);
    npu_text_printf(text, "</script></body></html>\n");
    return text->status;
}

#endif
