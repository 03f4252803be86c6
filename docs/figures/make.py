#!/usr/bin/env python3
"""The figures of docs/models/ and the README, from what trainfare prints.

  docs/figures/make.py --trainfare build/release/bin/trainfare

--tables FOLDER names the tables of measurements for the figure of the fit,
which stays as it is without them. Standard library alone.
"""

import argparse
import pathlib
import tempfile

import sys
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from printing.program import Program  # noqa: E402
import chart  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent

JOB = """name: figure
model: {model}
task: {task}
labels: 2
dataset: {{ train: 10000, eval: 0 }}
epochs: 1
batch: 8
padding: {{ static: {length} }}
precision: {precision}
optimizer: {{ name: adamw, implementation: fused }}
stack: {stack}
"""

# A term of a step has one colour in all figures.
TERMS = dict(zip(
    ("matrix products", "vector arithmetic", "memory traffic",
     "launching kernels", "the host between phases",
     "exposed communication", "spilling on-chip memory",
     "waiting for input"), chart.COLOURS))


def in_words(seconds):
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:g} s"


class Figures:
    def __init__(self, program, folder):
        self.program = program
        self.folder = pathlib.Path(folder)

    def job(self, stack="eager", length=128, precision="fp16",
            model="bert-base-uncased", task="sequence-classification"):
        path = self.folder / "job.yaml"
        path.write_text(JOB.format(model=model, task=task, length=length,
                                   precision=precision, stack=stack))
        return str(path)

    def predictions(self, job, *options):
        answer = self.program.json("predict", job, *options)
        return answer["predictions"]

    def terms(self, name, title, predictions, label, x_label):
        """Where a step goes, as shares, with its time above the bar."""
        bars = []
        for one in predictions:
            parts = {t["name"]: 100 * t["share"] for t in one["breakdown"]}
            bars.append((label(one), in_words(one["step_time_s"]), parts))
        chart.stacked_bars(HERE / f"{name}.svg", title, x_label,
                           "% of a step (its time above the bar)", bars,
                           colours=TERMS)

    def by_batch(self, name, device, batches, **job):
        found = self.predictions(self.job(**job), "--device", device,
                                 "--batch", ",".join(map(str, batches)))
        words = (f"{job.get('model', 'BERT-base')}, "
                 f"{job.get('precision', 'fp16')}, {job.get('length', 128)} "
                 f"tokens a sequence, on {device}")
        self.terms(name, words, [p for p in found if p["fits"]],
                   lambda p: str(p["batch"]), "sequences a step")

    def stacks(self):
        found = []
        for stack in ("eager", "fused", "lightseq", "compiled"):
            one = self.predictions(self.job(stack), "--device",
                                   "v100_sxm2_32gb")[0]
            found.append({**one, "stack": stack})
        self.terms("counts", "BERT-base, fp16, 8 x 128 tokens, on "
                   "v100_sxm2_32gb, by stack", found,
                   lambda p: p["stack"], "stack")

    def memory(self):
        found = self.predictions(
            self.job("eager", 384, "fp16", "bert-large-uncased",
                     "question-answering"),
            "--device", "v100_sxm2_16gb", "--batch", "1,2,4,6,8,10,12")
        bars = []
        for one in found:
            parts = {t["name"]: t["memory_bytes"] / 2**30
                     for t in one["memory_terms"]}
            bars.append((str(one["batch"]),
                         f"{one['memory_bytes'] / 2**30:.1f}", parts))
        chart.stacked_bars(
            HERE / "memory.svg", "BERT-large, SQuAD, fp16, 384 tokens, by "
            "batch, at the fullest moment of a step", "sequences a step",
            "GiB", bars,
            ("what the device has",
             found[0]["memory_capacity_bytes"] / 2**30))

    def energy(self):
        series = {}
        for device in ("v100_pcie_16gb", "a100_sxm4_40gb", "h100_sxm", "t4"):
            found = self.predictions(self.job(), "--device", device,
                                     "--batch", "1,2,4,8,16,32,64")
            series[device] = [
                (p["batch"], p["energy_j"] / p["run_time_s"])
                for p in found if p["fits"]]
        chart.lines(HERE / "energy.svg", "Mean power of BERT-base, fp16, "
                    "128 tokens a sequence", "sequences a step", "W", series)

    def data_parallel(self):
        found = []
        for devices in (1, 2, 4, 8):
            found += self.predictions(
                self.job(), "--instance", "aws/g4dn.metal", "--devices",
                str(devices), "--batch", "8")
        self.terms("data_parallel", "BERT-base, fp16, 8 x 128 tokens a "
                   "device, on aws/g4dn.metal", found,
                   lambda p: str(p["devices"]), "devices")

    def dataflow(self):
        found = self.predictions(
            self.job("compiled", 128, "bf16", "bert-large-uncased",
                     "pre-training"), "--device", "sambanova_sn30",
            "--batch", "16,32,64,128,256")
        self.terms("dataflow", "BERT-large, pre-training, bf16, 128 tokens, "
                   "on sambanova_sn30", found, lambda p: str(p["batch"]),
                   "sequences a step")

    def calibration(self, tables):
        groups = {}
        for table in ("neusight_labels", "deepspeed_bert",
                      "nvidia_dle_training"):
            answer = self.program.json(
                "validate", str(tables / f"{table}.csv"), "--protocol",
                "leave-one-out")
            groups[table] = [(r["measured_s"], r["predicted_s"])
                             for r in answer["rows"]]
        chart.scatter(HERE / "calibration.svg", "Each run predicted by a fit "
                      "to the other workloads of its device",
                      "measured step, s", "predicted step, s", groups)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainfare", default="build/release/bin/trainfare")
    parser.add_argument("--tables", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = Figures(Program(options.trainfare), folder)
        figures.by_batch("cpu", "cpu", (1, 2, 4, 8, 16, 32),
                         precision="fp32")
        figures.by_batch("gpu", "a100_sxm4_40gb", (1, 4, 16, 64, 128))
        figures.by_batch("trainium", "trainium1", (2, 8, 32, 64, 128),
                         precision="bf16", stack="compiled")
        figures.by_batch("tpu", "tpu_v3", (2, 8, 32, 64, 128),
                         precision="bf16", stack="compiled")
        figures.stacks()
        figures.memory()
        figures.energy()
        figures.data_parallel()
        figures.dataflow()
        if options.tables:
            figures.calibration(options.tables)


if __name__ == "__main__":
    main()
