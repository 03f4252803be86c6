"""docs/results/h200.md: what an H200 did, beside what was predicted."""

import csv
import re
import statistics

from .pages import ROOT, Page, filled, percentile, table

FOLDER = ROOT / "tests" / "measurements"
TABLE = FOLDER / "h200_transformers.csv"
PROTOCOLS = ("leave-device-out", "k-runs=1", "k-runs=5", "leave-one-out",
             "as-shipped")
ABOUT = """
Fifteen minutes of one H200 SXM on 2026-11-27: driver 580.159.04, 700 W, 16 cores of a Xeon in a
virtual machine, PyTorch 2.11.0 with CUDA 13.0. Records and tables lie in `tests/measurements/`,
with what made them.

Chosen in sight of these rows: [rows at odd places](../models/gpu.md#rows-at-odd-places), GPT-2's
activation by operations, attention in tf32, what an RMSNorm keeps, the allocator's gaps; errors
before that stand in [CHANGELOG](../../CHANGELOG.md). The fit that ships has these rows and those of
the trainer: `as-shipped` has seen them.
"""


def shorter(line):
    """Without what another page says, so that tables stay narrow."""
    line = line.replace("share of the time in which kernels run", "kernels run")
    line = re.sub(r" \(published, V100: [\d.]+ %\)", "", line)
    return re.sub(r"\| not measured: [^|]*\|", "| - |", line)


def cells_of(lines):
    """Of the rows of Markdown tables."""
    return [[cell.strip() for cell in line.strip("|").split("|")]
            for line in lines if line.startswith("|")]


def targets():
    """The table of gpu_acceptance.py, as it lies there."""
    text = (FOLDER / "h200_sxm" / "acceptance.md").read_text(encoding="utf-8")
    cells = cells_of(map(shorter, text.splitlines()))[2:]
    return ["## The trainer on it", "",
            filled("`tests/trainer/gpu_acceptance.py`. The points were predicted by a calibration "
                   "whose plan, cut off by the slow host, had next to nothing but short runs; "
                   "plans have been interleaved since."), "",
            *table(["", "target", "figure", ""], "llll", cells)]


def earlier_steps():
    """Tables of compare_step_time.py, each behind a line that names its model and
    precision."""
    text = (FOLDER / "h200_sxm" / "step_time_earlier.md").read_text(
        encoding="utf-8")
    lines = []
    header = run = None
    for line in text.splitlines():
        if not line.startswith("|"):
            run, header = ", ".join(line.split(", ")[:2]) or run, None
            continue
        (cells,) = cells_of([line])
        if header is None:
            header = cells
        elif cells[0].isdigit():
            row = dict(zip(header, cells))
            lines.append([run, f"{row['batch']} x {row['length']}",
                          *(row.get(f"ratio to the faster ({stack})", "-")
                            for stack in ("eager", "fused"))])
    return ["Steps of a call before it, over those of Transformers eager "
            "(aims 1.0 and 0.8):", "",
            *table(["", "batch", "eager", "fused"], "llrr", lines)]


def shown(fraction):
    return f"{100 * fraction:+.1f}"


def words_of(row):
    said = []
    if row["precision"] != "bf16":
        said.append(row["precision"])
    for word in ("autocast", "eager attention", "torch.compile"):
        if word in row["stack_notes"]:
            said.append(word)
    if row["adapter"] != "none":
        said.append(f"LoRA {row['lora_rank']}")
    if row["recompute"] != "none":
        said.append("recomputed")
    if row["grad_accum"] not in ("", "1"):
        said.append(f"{row['grad_accum']} micro-batches")
    return ", ".join(said)


def runs_by_line(path):
    with open(path, encoding="utf-8", newline="") as file:
        return {number: row for number, row in
                enumerate(csv.DictReader(file), start=2)}


def line_of(label):
    return int(label.rsplit(":", 1)[1])


def transformers(answers):
    rows = runs_by_line(TABLE)
    key = ("model", "micro_batch", "seq_len", "grad_accum", "recompute",
           "lora_rank", "precision", "stack_notes")

    def run(label):
        return tuple(rows[line_of(label)][name] for name in key)
    shipped = answers["as-shipped"]["memory"]
    memory = {run(row["label"]): row for row in shipped["rows"]
              if row["figure"] == "allocated"}
    lines = []
    for row in answers["leave-one-out"]["rows"]:
        held = memory[run(row["label"])]
        source = rows[line_of(row["label"])]
        lines.append([
            source["model"], f"{row['batch']} x {row['sequence_length']}",
            words_of(source), f"{1e3 * row['measured_s']:.1f}",
            f"{1e3 * row['predicted_s']:.1f}", f"{row['error_percent']:+.1f}",
            f"{held['measured_bytes'] / 2**30:.2f}",
            shown(held["predicted_bytes"] / held["measured_bytes"] - 1)])
    verdicts = shipped["verdicts"]
    return ["## Transformers on it", "",
            filled("`tests/measurements/measure_transformers.py`: forward, backward and a fused "
                   "AdamW, weights and states in bf16 but for those under autocast and in fp32 "
                   "and tf32; SDPA; memory as PyTorch has allocated it at most. Times by a fit to "
                   "the other rows."), "",
            *table(["model", "batch", "", "ms", "predicted", "%", "GiB", "%"],
                   "lllrrrrr", lines), "",
            filled(f"Of {verdicts['fitted'] + verdicts['ran_out']} figures of memory, "
                   f"{verdicts['ran_out']} of them of a run that was out of it, "
                   f"{verdicts['right']} are said right to fit or not.")]


def spread(errors):
    sizes = [abs(error) for error in errors]
    return statistics.median(sizes), percentile(sizes, 0.9), max(sizes)


def summary(answers):
    lines = []
    for protocol, answer in answers.items():
        rows = answer["rows"]
        median, most, worst = spread([r["error_percent"] for r in rows])
        inside = 100 * sum(r["covered"] for r in rows) / len(rows)
        lines.append([protocol, str(len(rows)), f"{median:.1f}", f"{most:.1f}",
                      f"{worst:.1f}", f"{inside:.0f}"])
    for figure in ("allocated", "reserved"):
        held = [100 * (r["predicted_bytes"] / r["measured_bytes"] - 1)
                for r in answers["as-shipped"]["memory"]["rows"]
                if r["figure"] == figure]
        median, most, worst = spread(held)
        lines.append([f"memory, {figure}", str(len(held)), f"{median:.1f}",
                      f"{most:.1f}", f"{worst:.1f}", "-"])
    return ["## In all", "",
            *table(["", "rows", "median, %", "90 % below, %", "worst, %",
                    "inside 80 %"], "lrrrrr", lines)]


def alignment():
    lines = []
    with open(FOLDER / "h200_alignment.csv", encoding="utf-8",
              newline="") as file:
        for row in csv.DictReader(file):
            sides = [int(row[k]) for k in ("batch", "rows", "inner", "columns")]
            flops = 2.0 * sides[0] * sides[1] * sides[2] * sides[3]
            lines.append([
                row["precision"], " x ".join(map(str, sides)),
                *(f"{flops / float(row[k]) / 1e12:.0f}" for k in
                  ("forward_s", "input_gradient_s", "weight_gradient_s"))])
    return ["## Products by their sides", "",
            filled("`tests/measurements/measure_alignment.py`: batch x rows x depth x columns, "
                   "TFLOP/s forward and of both gradients."), "",
            *table(["", "sides", "forward", "input", "weights"], "llrrr",
                   lines)]


def body(given):
    answers = {protocol: given.program.json("validate", str(TABLE),
                                            "--protocol", protocol)
               for protocol in PROTOCOLS}
    return [*summary(answers), "", *transformers(answers), "", *targets(), "",
            *earlier_steps(), "", *alignment()]


PAGES = [Page("h200", "An H200 beside its predictions", ABOUT, body)]
