"""Sections of sessions.md about kernels by themselves: of this processor, and
of GPUs that others timed."""

import csv
import json
import pathlib
import random
import re
import shutil
import statistics
import tempfile

from .measuring import Bench, Section, step_of, step_request
from .pages import ROOT, table
from .program import Program

TABLE = "neusight_kernels_fp32"
SHAPES = [(8, 128), (2, 32)]  # batch, length


def kernel_rows(answer):
    """All operations and each kind: their time in a step, and the error."""
    found = [dict(answer["overall"], group="all"), *answer["groups"]]
    return [[g["group"], str(g["n"]), f"{1e3 * g['measured_per_step_s']:.1f}",
             f"{1e3 * g['predicted_per_step_s']:.1f}",
             f"{100 * (g['predicted_per_step_s'] / g['measured_per_step_s'] - 1):+.1f}"]
            for g in found]


def kernels(given):
    bench = Bench(given)
    program, _ = bench.calibrated("120s")
    lines = []
    for batch, length in SHAPES:
        name = f"{batch}-{length}"
        asked = [step_request("bert-base-uncased", batch, length)]
        answer = program.json(
            "validate", str(bench.kernels(f"kernels-{name}", asked)))
        record = bench.measure(f"step-{name}", asked).read_text()
        step = step_of(json.loads(record))
        lines += [f"Batch {batch}, length {length}; the step itself takes "
                  f"{1e3 * step:.1f} ms:\n",
                  *table(["kernels", "operations", "measured, ms",
                          "predicted, ms", "error, %"], "lrrrr",
                         kernel_rows(answer)), ""]
    return lines


def counted(row):
    """The kernel of a row, as the trainer's records have it.

    A linear layer and a batched product are (M, N) times (N, K), of B pairs.
    Of reductions B is their rows, M what each is long; what they compute is as
    model/internal/passes/ counts it.
    """
    size = {key: int(row[key]) if row[key] else 1 for key in "BMNK"}
    b, m, n, k = size.values()
    if row["op"] in ("linear", "bmm"):
        return {"kind": "gemm" if row["op"] == "linear" else "batched gemm",
                "matrix_flops": 2 * b * m * n * k,
                "bytes_read": 4 * b * (m * n + n * k),
                "bytes_written": 4 * b * m * k,
                "parameter_bytes": 4 * n * k if row["op"] == "linear" else 0,
                "work_items": b * m * k,
                "gemm": {"batch": b, "m": m, "n": k, "k": n}}
    softmax = row["op"] == "softmax"
    return {"kind": "reduction", "vector_flops": (4 if softmax else 8) * b * m,
            "special_ops": b * m if softmax else 0, "bytes_read": 4 * b * m,
            "bytes_written": 4 * b * m, "work_items": b,
            "row_reads": "thrice" if softmax else "norm"}


COUNTS = ("matrix_flops", "vector_flops", "special_ops", "random_draws",
          "bytes_read", "bytes_written", "parameter_bytes",
          "parameter_bytes_written", "work_items")


# A record names a step that it is of; a kernel's time does not ask which.
WORKLOAD = {
    "model": {"name": "any", "family": "encoder", "layers": 1, "hidden": 64,
              "heads": 1, "intermediate": 64, "vocabulary": 64, "positions": 64,
              "head": "sequence-classification", "labels": 2},
    "batch": 1, "sequence_length": 64, "precision": "fp32", "stack": "eager",
    "attention": "materialised",
    "optimizer": {"name": "adamw", "implementation": "fused"}}


def record_of(number, row):
    """A row as a record of a kernel; its operation is the row's."""
    kernel = {"name": row["op"], "launches": 1, **{name: 0 for name in COUNTS},
              **counted(row)}
    return {"schema": "trainfare.measurement/1", "kind": "kernel",
            "id": f"{number}", "time": "2024-01-01T00:00:00Z",
            "device": {"name": unfitted(row["device"]), "kind": "gpu",
                       "count": 1},
            "software": {"trainer": row["source"]},
            "workload": WORKLOAD,
            "operation": row["op"], "kernel_kind": kernel["kind"],
            "phase": "forward", "per_step": 1, "kernels": [kernel],
            "samples": [{"time_s": float(row["latency_ms"]) / 1e3}]}


def unfitted(name):
    return f"{name} without a fit"


def names_of(text):
    """What a device's file says that records and tables call it."""
    reported = re.search(r"^reported_name: (.*)$", text, re.MULTILINE)
    aliases = re.findall(r'^  - "(.*)"$', text, re.MULTILINE)
    return {reported[1].strip('"'), *aliases} if reported else set()


def data_without_fits(folder, names):
    """What ships, and the named devices once more under names of no fit."""
    for room in ("devices", "kinds", "interconnects", "instances", "prices"):
        shutil.copytree(ROOT / "hardware" / room, folder / room)
    for path in sorted((folder / "devices").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        for name in names & names_of(text):
            alone = re.sub(r"^aliases:\n(  - .*\n)+", "", text,
                           flags=re.MULTILINE)
            path.with_name(f"{path.stem}_without_fit.yaml").write_text(
                re.sub(r"^reported_name: .*$",
                       f"reported_name: {unfitted(name)}", alone,
                       flags=re.MULTILINE), encoding="utf-8")


def numbered_rows(given):
    with open(given.asked("tables") / f"{TABLE}.csv", encoding="utf-8",
              newline="") as file:
        return list(enumerate(csv.DictReader(file), 1))


def records_of(rows, path):
    path.write_text("".join(json.dumps(record_of(*one)) + "\n"
                            for one in rows))
    return str(path)


def errors_of_kernels(answers):
    """The errors of validate's answers by operation, as lines of a table."""
    errors = {}
    for answer in answers:
        for row in answer["rows"]:
            errors.setdefault(row["operation"], []).append(
                row["error_percent"])
    return table(["kernels", "rows", "median, %", "90 % below, %", "bias, %"],
                 "lrrrr", [error_row(*one) for one in errors.items()])


def kernel_priors(given):
    rows = numbered_rows(given)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        data_without_fits(folder, {row["device"] for _, row in rows})
        return errors_of_kernels([given.program.json(
            "validate", records_of(rows, folder / "kernels.jsonl"),
            TRAINFARE_DATA_DIR=temporary)])


def drawn(rows, count):
    """So many rows of each operation."""
    draw = random.Random(1)
    by_operation = {}
    for one in rows:
        by_operation.setdefault(one[1]["op"], []).append(one)
    return [one for _, of_one in sorted(by_operation.items())
            for one in draw.sample(of_one, count)]


def kernels_fitted(given):
    """Each device by a fit to a few of its kernels, of all others."""
    by_device = {}
    for one in numbered_rows(given):
        by_device.setdefault(one[1]["device"], []).append(one)
    answers = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        data_without_fits(folder, set(by_device))
        for rows in by_device.values():
            program = Program(given.program.path)
            few = drawn(rows, 10)
            program.run(["calibrate", "--from",
                         records_of(few, folder / "few.jsonl")],
                        TRAINFARE_DATA_DIR=temporary)
            numbers = {number for number, _ in few}
            others = [one for one in rows if one[0] not in numbers]
            answers.append(program.json(
                "validate", records_of(others, folder / "others.jsonl"),
                TRAINFARE_DATA_DIR=temporary))
    return [*errors_of_kernels(answers), "",
            "The aim is 7 % of products and 9 % of softmaxes and norms."]


def error_row(name, errors):
    sizes = sorted(map(abs, errors))
    return [name, str(len(sizes)), f"{statistics.median(sizes):.1f}",
            f"{sizes[int(0.9 * (len(sizes) - 1))]:.1f}",
            f"{statistics.mean(errors):+.1f}"]


SECTIONS = [
    Section("kernels", "Kernels by themselves", """
`trainfare-trainer bench kernels` of BERT-base, after a `calibrate` of two minutes; each operation
times how often a step does it.
""", kernels),
    Section("kernel_priors", "GPU kernels at the priors", """
Kernels of NeuSight's GPUs, `neusight_kernels_fp32.csv`, each device without its fit; priors were
chosen on them.
""", kernel_priors, measures_this_machine=False),
    Section("kernels_fitted", "GPU kernels after 40 of a device", """
The same, each device by a fit to 10 kernels of each operation, drawn; errors of all others.
""", kernels_fitted, measures_this_machine=False)]
