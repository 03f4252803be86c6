"""docs/results/cost.md: what an answer and a fit take of this machine."""

import json
import math
import os
import pathlib
import re
import shutil
import subprocess

from .pages import Missing, Page, filled, table

INTRODUCTION = """
Times are medians of repetitions in one process (`build/release/bin/trainfare_benchmark`), and say
as much as their machine; ratios and instructions say more. A *figure* is one quantity of a run:
each made-up run of few places has four, one of as many places its step alone. The exponent is that
of the time over the last two rows.
"""
REPETITIONS = 5
JOBS = {"8b_fsdp": "8 B on eight devices, FSDP", "8b_lora": "8 B with adapters on one",
        "bert_base": "BERT-base on one"}
COMMANDS = (("predict", "emotion_bert_base", "--device", "a100_sxm4_80gb"),
            ("predict", "llama_8b_fsdp", "--instance", "aws/p5.48xlarge"),
            ("recommend", "emotion_bert_base"))


def benchmarks(program, pattern):
    """Median times in ns, by name."""
    path = pathlib.Path(program.path).parent / "trainfare_benchmark"
    if not path.is_file():
        raise Missing(f"needs {path.name} beside trainfare")
    done = subprocess.run(
        [path, f"--benchmark_filter={pattern}", "--benchmark_format=json",
         f"--benchmark_repetitions={REPETITIONS}"],
        capture_output=True, text=True, check=True, env=program.environment())
    scale = {"ns": 1, "us": 1e3, "ms": 1e6}
    return {run["run_name"]: run["real_time"] * scale[run["time_unit"]]
            for run in json.loads(done.stdout)["benchmarks"]
            if run.get("aggregate_name") == "median"}


def answers(program):
    times = benchmarks(program, "EstimateOneJob")
    rows = [[words, f"{times[f'EstimateOneJob/{name}'] / 1e3:.1f}"]
            for name, words in JOBS.items()]
    return ["## One prediction", "",
            "With memory, the largest batch and the interval.", "",
            *table(["job", "us"], "lr", rows)]


FITS = (("figures of few places, all at once", "FitMeasurements/all_at_once"),
        ("and without each run", "FitMeasurements/and_leave_one_out"),
        ("steps of as many places, all at once", "FitPlaces/all_at_once"),
        ("and without each run", "FitPlaces/and_leave_one_out"),
        ("first answer by such a fit", "AnswerByPlaces"))


def fits(program):
    times = benchmarks(program, "FitMeasurements|FitPlaces|AnswerByPlaces")
    rows = []
    for words, name in FITS:
        of = {int(run[len(name) + 1:].split("/")[0]): time for run, time in times.items()
              if run.startswith(f"{name}/")}
        (n1, t1), (n2, t2) = sorted(of.items())[-2:]
        rows += [[words, f"{n:,}", f"{time / 1e9:.3f}",
                  f"{math.log(t2 / t1) / math.log(n2 / n1):.2f}" if n == n2 else ""]
                 for n, time in sorted(of.items())]
    return ["## One fit", "", *table(["fitted", "figures", "s", "exponent"], "lrrr", rows)]


def instructions(program):
    """What callgrind counts of a whole command; nothing where it is not there."""
    if not shutil.which("valgrind"):
        return ["## One command", "", "Instructions: not counted here, without valgrind."]
    rows = []
    for command in COMMANDS:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={os.devnull}",
             program.path, *command, "--quiet"],
            capture_output=True, text=True, check=True, env=program.environment())
        counted = re.search(r"Collected : (\d+)", done.stderr)
        rows.append([f"`{' '.join(command)}`", f"{int(counted.group(1)) / 1e6:.0f}"])
    return ["## One command", "",
            filled("Millions of instructions from start to end, by callgrind."), "",
            *table(["command", "million"], "lr", rows)]


def body(given):
    return [*answers(given.program), "", *fits(given.program), "", *instructions(given.program)]


PAGES = [Page("cost", "What an answer and a fit cost", INTRODUCTION, body)]
