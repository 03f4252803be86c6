"""Matrix products by whether their rows start at multiples of 16 bytes, on the GPU
at hand.

    python3 tests/measurements/measure_alignment.py MEASURED.csv

Forward and both gradients of a layer whose outputs are next to a multiple of 8
numbers, and the products of attention at such lengths; medians of 12.
"""

import csv
import statistics
import sys

import torch

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "tf32": torch.float32,
         "fp32": torch.float32}
SIDES = {"bf16": ((4096, 1024), (16384, 768)),
         "fp16": ((4096, 1024), (16384, 768)), "tf32": ((4096, 1024),),
         "fp32": ((4096, 1024),)}
OUTPUTS = (30720, 30721, 30722, 30724, 30728)
LENGTHS = (128, 129, 130, 132, 136)
HEADS, HEAD_SIZE = 768, 64
COLUMNS = ("precision", "batch", "rows", "inner", "columns", "forward_s",
           "input_gradient_s", "weight_gradient_s")


def time_of(product, count=12):
    for _ in range(3):
        product()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    torch.cuda.synchronize()
    events[0].record()
    for event in events[1:]:
        product()
        event.record()
    torch.cuda.synchronize()
    return statistics.median(
        a.elapsed_time(b) for a, b in zip(events, events[1:])) / 1e3


def random(precision, *sides):
    return torch.randn(*sides, device="cuda", dtype=TYPES[precision])


def layer(precision, rows, inner, outputs):
    x = random(precision, rows, inner)
    w = random(precision, outputs, inner)
    g = random(precision, rows, outputs)
    return [time_of(lambda: x @ w.t()), time_of(lambda: g @ w),
            time_of(lambda: g.t() @ x)]


def attention(precision, length):
    q = random(precision, HEADS, length, HEAD_SIZE)
    p = random(precision, HEADS, length, length)
    return [time_of(lambda: q @ q.transpose(1, 2)), time_of(lambda: p @ q),
            time_of(lambda: p.transpose(1, 2) @ q)]


def main():
    with open(sys.argv[1], "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for precision in TYPES:
            torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
            for rows, inner in SIDES[precision]:
                for outputs in OUTPUTS:
                    writer.writerow([precision, 1, rows, inner, outputs,
                                     *layer(precision, rows, inner, outputs)])
            if precision in ("bf16", "fp16"):
                for length in LENGTHS:
                    writer.writerow([precision, HEADS, length, HEAD_SIZE,
                                     length, *attention(precision, length)])


if __name__ == "__main__":
    main()
