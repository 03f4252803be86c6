"""Runs of the trainer and fits to them, for the sections of sessions.md."""

import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable

from .pages import ROOT
from .program import Program

sys.path.append(str(ROOT / "tests" / "trainer"))


@dataclasses.dataclass(frozen=True)
class Section:
    """A section of sessions.md: how it is measured, in words, and its figures,
    the lines of `body`, a function of what the command was given. What does not
    measure this machine comes out the same on every other."""
    name: str
    heading: str
    how: str
    body: Callable
    measures_this_machine: bool = True

    def head(self):
        return f"## {self.heading}\n\n{self.how.strip()}\n"


class Bench:
    """The trainer, and trainfare with fits of its own, in a folder that goes."""

    def __init__(self, given):
        self.given = given
        self.trainer = str(given.asked("trainer"))
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)

    def program(self):
        """trainfare without any fit of this machine."""
        return Program(self.given.program.path)

    def calibrated(self, budget, *options):
        """trainfare with a fit to this processor, and the fit's runs."""
        program = self.program()
        program.run(["calibrate", "--device", "cpu", "--budget",
                     self.given.budget or budget, *map(str, options)],
                    TRAINFARE_TRAINER=self.trainer)
        return program, next(pathlib.Path(program.home.name).rglob("*.jsonl"))

    def fitted(self, *files):
        """trainfare with a fit to records that are there."""
        program = self.program()
        program.run(["calibrate", "--device", "cpu", "--from",
                     *map(str, files)])
        return program

    def plan(self, name, requests):
        """A file of requests; fewer of them where a trial is asked for."""
        path = self.folder / f"{name}-plan.jsonl"
        path.write_text("".join(json.dumps(one) + "\n"
                                for one in requests[:self.given.points]))
        return path

    def unseen_points(self, number):
        path = ROOT / f"scenarios/validation/unseen_points_{number}.jsonl"
        return [json.loads(line) for line in
                path.read_text(encoding="utf-8").splitlines()]

    def measure(self, name, requests, times=1):
        """Records of the requests' steps, all of them so many times."""
        return self.trained(name, requests, ["measure"], times)

    def kernels(self, name, requests):
        """Records of all operations of the requests' steps, however long they
        take."""
        return self.trained(name, [{key: value for key, value in one.items()
                                    if key != "max_seconds"}
                                   for one in requests], ["bench", "kernels"])

    def trained(self, name, requests, command, times=1):
        plan = self.plan(name, requests)
        out = self.folder / f"{name}.jsonl"
        for _ in range(times):
            subprocess.run([self.trainer, *command, "--plan", plan, "--out",
                            out], check=True)
        return out


def step_request(model, batch, length):
    """As those of scenarios/validation/."""
    return {"model": model, "batch": batch, "sequence_length": length,
            "precision": "fp32", "steps": 7, "warmup": 2, "max_seconds": 12,
            "seed": 1}


def errors_of(program, records):
    """Points, median, worst and inside, as cells; points measured twice are
    their median."""
    overall = program.json("validate", str(records), "--repeats",
                           "median")["overall"]
    return [str(overall["n"]), f"{overall['median']:.1f}",
            f"{overall['max']:.1f}", f"{overall['coverage']:.0f}"]


def repeats_of(records):
    """How far two measurements of a point are apart, median and worst, those
    included that something else disturbed."""
    measured = {}
    for line in records.read_text().splitlines():
        record = json.loads(line)
        key = json.dumps(record["workload"], sort_keys=True)
        measured.setdefault(key, []).append(step_of(record))
    apart = [100 * (max(times) / min(times) - 1)
             for times in measured.values() if len(times) > 1]
    if not apart:
        return ["-", "-"]
    return [f"{statistics.median(apart):.1f}", f"{max(apart):.1f}"]


def step_of(record):
    """The median step of a record."""
    if record["kind"] != "step":
        raise SystemExit(f"the trainer: {record['message']}")
    return statistics.median(sample["step_s"] for sample in record["samples"]
                             if not sample["warmup"])
