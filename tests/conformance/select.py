#!/usr/bin/env python3
"""Picks small test vectors: select.py SOURCE TARGET

SOURCE holds pairs of .cases and .bin in the format of the full vectors; TARGET gets pairs for the ops that have a row in
npu_ir.h, with a handful of cases each: every combination of dtypes, ranks and forms that is not yet covered, smallest data
first, a few hundred bytes to a few KB per case, but always one case. Cases are copied as they are, except for their number and offsets.
"""
import os
import re
import sys

WIDTH = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u8": 1, "bool": 1, "c64": 8, "c128": 16}
SPACES = {"ATEN_": "aten", "QUANTIZED": "quantized_decomposed"}
CASES_PER_OP = 26
BYTES_PER_OP = 24000
TENSOR = re.compile(r"tensor (\w+) (\d+)((?: \d+)*) @(\d+)$")


def registered_ops():
    header = os.path.join(os.path.dirname(__file__), "..", "..", "npu_ir.h")
    text = open(header).read()
    ops = []
    for space, table in re.findall(r"#define NPU_IR_OPS_(ATEN_|QUANTIZED)\w*\(X\)(.*?)\n\n", text, re.S):
        for name, overload in re.findall(r'X\(0x[0-9a-f]+,[^"]*"(\w+)(?:\.(\w+))?\(', table):
            ops.append("%s.%s.%s" % (SPACES[space], name, overload or "default"))
    return ops


def tensors(case):
    """(line index, dtype, dims, offset, bytes) of every tensor of a case."""
    for i, line in enumerate(case):
        match = TENSOR.search(line) if line.startswith(("arg ", "out ", "item ")) else None
        if match:
            dims = [int(d) for d in match.group(3).split()]
            size = WIDTH[match.group(1)]
            for dim in dims:
                size *= dim
            yield i, match.group(1), dims, int(match.group(4)), size


def features(case):
    """What a case covers; a case is worth taking when one of these is new."""
    found = set()
    dtypes = tuple(t[1] for t in tensors(case))
    found.add(("dtypes", tuple(sorted(set(dtypes)))))
    for i, dtype, dims, _, _ in tensors(case):
        role = case[i].split()[1]
        found.add(("rank", role, len(dims)))
        found.add(("empty", role, 0 in dims))
        found.add(("first dtype", role, dtype))
    for line in case:
        words = line.split()
        if words[0] == "arg" and words[2] in ("none", "int", "float", "bool", "str", "dtype"):
            value = words[3] if len(words) > 3 else ""
            small = words[2] in ("bool", "str", "dtype", "none") or value.lstrip("-") in ("0", "1", "inf", "nan")
            found.add(("arg", words[1], words[2], value if small else value[:1] == "-"))
        elif words[0] == "arg" and words[2] in ("ints", "floats", "bools", "tensors"):
            found.add(("list", words[1], words[2], words[3], "-1" in words[4:], len(set(words[4:])) > 1))
        elif words[0] == "outs":
            found.add(("outs", min(int(words[1]), 4)))
        elif words[0] == "out":
            found.add(("out", words[1], words[2]))
    return found


def read_cases(path):
    lines = open(path).read().splitlines()
    cases, case = [], None
    for line in lines[3:]:
        if line.startswith("case "):
            case = []
        case.append(line)
        if line == "end":
            cases.append(case)
    return lines[:3], cases


def choose(cases):
    """Greedy: small cases first, each only if it covers something new."""
    size = {id(c): sum(t[4] for t in tensors(c)) for c in cases}
    covered, chosen, total = set(), [], 0
    for case in sorted(cases, key=lambda c: size[id(c)]):
        new = features(case) - covered
        if not new or len(chosen) >= CASES_PER_OP or (chosen and total + size[id(case)] > BYTES_PER_OP):
            continue
        covered |= new
        chosen.append(case)
        total += size[id(case)]
    return sorted(chosen, key=cases.index)


def write(op, source, target):
    header, cases = read_cases(os.path.join(source, op + ".cases"))
    data = open(os.path.join(source, op + ".bin"), "rb").read()
    out, places, text = bytearray(), {}, list(header)
    for number, case in enumerate(choose(cases)):
        case = list(case)
        case[0] = "case %d %s" % (number, case[0].split(" ", 2)[2])
        for i, _, _, offset, size in list(tensors(case)):
            block = data[offset:offset + size]
            if block and block not in places:
                out.extend(b"\0" * (-len(out) % 64))
                places[block] = len(out)
                out.extend(block)
            case[i] = re.sub(r"@\d+$", "@%d" % places.get(block, 0), case[i])
        text.extend(case)
    with open(os.path.join(target, op + ".cases"), "w", newline="\n") as f:
        f.write("\n".join(text) + "\n")
    with open(os.path.join(target, op + ".bin"), "wb") as f:
        f.write(out)


def main():
    source, target = sys.argv[1:]
    os.makedirs(target, exist_ok=True)
    for op in registered_ops():
        if os.path.exists(os.path.join(source, op + ".cases")):
            write(op, source, target)
        else:
            print("%s: no vectors" % op)


main()
