"""The section of sessions.md about the stacks of PyTorch on this processor."""

import csv
import statistics
import subprocess

from .measuring import Bench, Section
from .pages import ROOT, table

MEASURE = ROOT / "tests/measurements/measure_transformers.py"
ASKED = ROOT / "tests/measurements/cpu_transformers_asked.csv"
PROTOCOLS = ["as-shipped", "leave-one-out"]


def stack_of(row):
    """In the words of the table that is asked for."""
    return f"{row['precision']}, {row['stack_notes']}"


def asked_of(count, path):
    """The runs that are asked for, of each stack so many; all without one."""
    with open(ASKED, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        of_stack = {}
        for row in reader:
            of_stack.setdefault(stack_of(row), []).append(row)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, reader.fieldnames)
        writer.writeheader()
        for rows in of_stack.values():
            writer.writerows(rows[:count])


def rows_by_stack(program, path, protocol):
    """What `validate` says of each stack's rows, in the table's order."""
    with open(path, encoding="utf-8", newline="") as file:
        names = {f"{path}:{line}": stack_of(row)
                 for line, row in enumerate(csv.DictReader(file), 2)}
    found = {name: [] for name in names.values()}
    for row in program.json("validate", str(path), "--protocol",
                            protocol)["rows"]:
        found[names[row["label"]]].append(row)
    return found


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
    found = [rows_by_stack(program, measured, one) for one in PROTOCOLS]
    lines = [[name, *(cell(of_stack[name]) for of_stack in found)]
             for name in found[0]]
    lines.append(["all", *(cell([row for rows in of_stack.values()
                                 for row in rows]) for of_stack in found)])
    return table(["stack", "by the trainer's fit", "each left out"], "lll",
                 lines)


SECTIONS = [
    Section("stacks", "Stacks of PyTorch", """
`tests/measurements/measure_transformers.py --device cpu` of the table beside it: small models like
BERT and Llama by Transformers. They are predicted by a `calibrate` of two minutes, which is of the
trainer in fp32, and each by a fit to the others. A cell: error in percent, median and worst, and
how many are inside.
""", stacks)]
