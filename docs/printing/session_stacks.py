"""The section of sessions.md about the stacks of PyTorch on this processor."""

import csv
import statistics
import subprocess

from .measuring import Bench, Section
from .pages import ROOT, table

MEASURE = ROOT / "tests/measurements/measure_transformers.py"
ASKED = ROOT / "tests/measurements/cpu_transformers_asked.csv"
# How each stack is written in the table that is asked for.
STACKS = {"fp32": ("fp32", "all float32; sdpa; fused AdamW"),
          "fp32, compiled": ("fp32", "all float32; sdpa; fused AdamW; "
                                     "torch.compile"),
          "bf16 by autocast": ("bf16", "autocast to bfloat16; sdpa; "
                                       "fused AdamW"),
          "bf16": ("bf16", "all bfloat16; sdpa; fused AdamW"),
          "bf16, compiled": ("bf16", "all bfloat16; sdpa; fused AdamW; "
                                     "torch.compile")}
PROTOCOLS = ["as-shipped", "leave-one-out"]


def asked_of(count, path):
    """The runs that are asked for, of each stack so many; all without one."""
    with open(ASKED, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, reader.fieldnames)
        writer.writeheader()
        for stack in STACKS.values():
            writer.writerows([row for row in rows
                              if (row["precision"], row["stack_notes"])
                              == stack][:count])


def errors_by_stack(program, path):
    """Errors in percent by stack and protocol, in the order of the table."""
    with open(path, encoding="utf-8", newline="") as file:
        stack_of = {f"{path}:{line}": (row["precision"], row["stack_notes"])
                    for line, row in enumerate(csv.DictReader(file), 2)}
    return {protocol: [(stack_of[row["label"]], row) for row in program.json(
                "validate", str(path), "--protocol", protocol)["rows"]]
            for protocol in PROTOCOLS}


def cell(rows):
    errors = [abs(row["error_percent"]) for row in rows]
    if not errors:
        return "-"
    inside = sum(row["covered"] for row in rows)
    return (f"{statistics.median(errors):.1f}, {max(errors):.1f}; {inside} of "
            f"{len(rows)}")


def stacks(given):
    bench = Bench(given)
    asked, measured = bench.folder / "asked.csv", bench.folder / "stacks.csv"
    asked_of(given.points, asked)
    subprocess.run([given.asked("python"), MEASURE, asked, measured,
                    "--device", "cpu"], check=True)
    program, _ = bench.calibrated("120s")
    by_protocol = errors_by_stack(program, measured)
    lines = []
    for name, stack in STACKS.items():
        of_stack = [[row for of, row in by_protocol[protocol] if of == stack]
                    for protocol in PROTOCOLS]
        lines.append([name, *map(cell, of_stack)])
    lines.append(["all", *(cell([row for _, row in by_protocol[protocol]])
                           for protocol in PROTOCOLS)])
    return table(["stack", "by the trainer's fit", "each left out"], "lll",
                 lines)


SECTIONS = [
    Section("stacks", "Stacks of PyTorch", """
`tests/measurements/measure_transformers.py --device cpu` of the table beside it: small models like
BERT and Llama by Transformers. They are predicted by a `calibrate` of two minutes, which is of the
trainer in fp32, and each by a fit to the others. A cell: error in percent, median and worst, and
how many are inside.
""", stacks)]
