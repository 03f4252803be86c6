"""Sections of sessions.md about fits of this processor: points that were not
run, a decoder, kernels as what is fitted to."""

import json
import random

from .measuring import (Bench, Section, errors_of, repeats_of, step_request)
from .pages import table

HEADER = ["points", "median, %", "worst, %", "inside, %"]
REPEATS = ["repeat, median %", "repeat, worst %"]
BERT_WORKLOADS = [("bert-tiny", 8, 128), ("bert-mini", 8, 64),
                  ("bert-small", 4, 128), ("bert-medium", 4, 64)]


def unseen(given):
    bench = Bench(given)
    program, _ = bench.calibrated("120s")
    rows = []
    for number in (1, 2, 3, 4):
        records = bench.measure(f"unseen-{number}",
                                bench.unseen_points(number), times=2)
        rows.append([f"{number}", *errors_of(program, records),
                     *repeats_of(records)])
    return table(["set", *HEADER, *REPEATS], "lrrrrrr", rows)


def decoder_scenario(model):
    """A job of this model, as text; JSON is YAML."""
    from sharded_points import OF_TASK
    kept = {key: value for key, value in model.items() if key not in OF_TASK}
    return json.dumps({
        "name": "a small decoder", "model": kept, "task": model["head"],
        "dataset": {"name": "random", "train": 1000}, "epochs": 1, "batch": 4,
        "padding": {"static": 128}, "precision": "fp32", "stack": "eager",
        "optimizer": {"name": "adamw", "implementation": "fused"}})


def decoder(given):
    from sharded_points import decoder as like_llama
    bench = Bench(given)
    scenario = bench.folder / "asked.yaml"
    scenario.write_text(decoder_scenario(like_llama(8, 512)))
    program, _ = bench.calibrated("120s", "--for", scenario)
    draw = random.Random(1)
    points = [step_request(like_llama(draw.choice((4, 5, 6, 7, 8)), 512),
                           draw.choice((1, 2, 3, 4, 6)),
                           draw.choice((32, 48, 64, 96, 128)))
              for _ in range(14)]
    records = bench.measure("decoder", points, times=2)
    return [*table([*HEADER, *REPEATS], "rrrrrr",
                   [[*errors_of(program, records),
                     *repeats_of(records)]]), "",
            "The aim is 4 % in the median and 12 % at worst."]


def of_model(runs, model, count, path):
    """The first runs of a model, as a file."""
    lines = [line for line in runs.read_text().splitlines()
             if json.loads(line)["workload"]["model"]["name"] == model]
    path.write_text("\n".join(lines[:count]) + "\n")
    return path


def kernel_fits(given):
    bench = Bench(given)
    _, runs = bench.calibrated("65s")
    kernels = bench.kernels("kernels", [step_request(*one)
                                        for one in BERT_WORKLOADS])
    two = of_model(runs, "bert-tiny", 2, bench.folder / "two.jsonl")
    points = bench.measure("points", bench.unseen_points(3)[::2], times=2)
    count = len(runs.read_text().splitlines())
    operations = len(kernels.read_text().splitlines())
    rows = [[words, *errors_of(bench.fitted(*files), points)]
            for words, files in (
                (f"{count} runs", [runs]),
                (f"{count} runs, kernels", [runs, kernels]),
                ("2 runs", [two]),
                ("2 runs, kernels", [two, kernels]),
                ("kernels", [kernels]))]
    return [f"{operations} kernels.", "",
            *table(["fit to", *HEADER], "lrrrr", rows)]


SECTIONS = [
    Section("unseen", "Points that were not run", """
The points of `scenarios/validation/`, measured twice, after a `calibrate` of two minutes. A rule
of the fit was chosen in sight of set 1. Set 4 was drawn at random and is mostly of GPT-2 and
RoBERTa, whose vocabularies are large. The aim is 3 % in the median and 10 % at worst.
""", unseen),
    Section("decoder", "A decoder that was not run", """
`calibrate --for` a decoder like Llama's, then such decoders at random depths, batches and lengths,
measured twice.
""", decoder),
    Section("kernel_fits", "Fits to kernels", """
A short `calibrate`, and the kernels of four other workloads; fits to some or all of it, and every
other point of set 3.
""", kernel_fits)]
