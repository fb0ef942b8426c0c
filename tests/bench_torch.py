"""PyTorch's side of `bench kernels`: reads ops from standard input, writes what they take in seconds.

A line is operands, a tab and statements:  a:f32:1000,1000:0 b:f32:1000:0<tab>y = aten.add.Tensor(a, b)
The answer is the median of nine repetitions on one thread, less what a call on one element takes: the time of the
kernel, not of Python. An op that this PyTorch lacks answers why. A view is copied, since it would cost nothing.
"""
import statistics
import sys
import time

import torch

torch.set_num_threads(1)

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "i64": torch.int64,
          "i32": torch.int32, "u8": torch.uint8, "bool": torch.bool, "c64": torch.complex64}
NAMES = dict(DTYPES, aten=torch.ops.aten, none=None, true=True, false=False, inf=float("inf"))


def make(dtype, dims, values):
    """values: 0 = any, 1 = positive, 2 = below 1000, as bench_kernels.h names them."""
    dims = [int(d) for d in dims.split(",")]
    if dtype == "bool":
        return torch.rand(dims) < 0.5
    if DTYPES[dtype].is_complex:
        return torch.complex(torch.rand(dims) - 0.5, torch.rand(dims) - 0.5)
    if not DTYPES[dtype].is_floating_point:
        return torch.randint(1, 1000 if values == "2" else 7, dims, dtype=DTYPES[dtype])
    x = torch.rand(dims) + 1 / 1024
    return (x * 4 if values == "1" else x - 0.5).to(DTYPES[dtype])


def compiled(statements, operands):
    scope = dict(NAMES)
    body = "\n    ".join(statements.split("; "))
    exec("def run(%s):\n    %s\n    return y" % (", ".join(operands), body), scope)
    return scope["run"]


def seconds(call, least=0.005):
    """Processor time of one call: counted so that a repetition takes `least`."""
    call()
    call()
    count = 1
    while True:
        begin = time.process_time()
        for _ in range(count):
            call()
        if time.process_time() - begin > least:
            break
        count *= 2
    times = []
    for _ in range(9):
        begin = time.process_time()
        for _ in range(count):
            call()
        times.append((time.process_time() - begin) / count)
    return statistics.median(times)


def measure(line, overhead):
    described, statements = line.split("\t")
    operands = {}
    for operand in described.split():
        name, dtype, dims, values = operand.split(":")
        operands[name] = make(dtype, dims, values)
    run = compiled(statements, operands)
    x = list(operands.values())
    y = run(*x)
    if any(y.storage().data_ptr() == operand.storage().data_ptr() for operand in x):
        return seconds(lambda: run(*x).contiguous()) - overhead
    return seconds(lambda: run(*x)) - overhead


def main():
    one = torch.ones(1)
    with torch.inference_mode():
        overhead = seconds(lambda: torch.ops.aten.neg.default(one))
        for line in sys.stdin:
            try:
                print("%.9g" % measure(line.rstrip("\n"), overhead), flush=True)
            except Exception as error:  # whatever an op may raise; the next one is another matter
                print("PyTorch:", str(error).split("\n")[0][:80], flush=True)


main()
