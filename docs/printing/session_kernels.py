"""Sections of sessions.md about kernels by themselves: of this processor, and
of GPUs that others timed."""

import csv
import json
import pathlib
import re
import shutil
import statistics
import tempfile

from .measuring import Bench, Section, step_of, step_request
from .pages import ROOT, table

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
    model/internal/forward_kernels.cc counts it.
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


def kernel_priors(given):
    with open(given.asked("tables") / f"{TABLE}.csv", encoding="utf-8",
              newline="") as file:
        rows = list(csv.DictReader(file))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        data_without_fits(folder, {row["device"] for row in rows})
        records = folder / "kernels.jsonl"
        records.write_text("".join(json.dumps(record_of(*one)) + "\n"
                                   for one in enumerate(rows, 1)))
        answer = given.program.json("validate", str(records),
                                    TRAINFARE_DATA_DIR=temporary)
    errors = {}
    for row in answer["rows"]:
        errors.setdefault(row["operation"], []).append(row["error_percent"])
    return table(["kernels", "rows", "median, %", "90 % below, %", "bias, %"],
                 "lrrrr", [error_row(*one) for one in errors.items()])


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
""", kernel_priors)]
