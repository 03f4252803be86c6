"""Extreme questions: answers are finite and right, or refused.

    questions.py TRAINFARE [--count N] [--seconds S] [--seed N]

Sizes are even over logarithms up to beyond the limits. Every answer is finite
and inside its interval; parameters, steps and the time of training are those
that integers of any length give; twice the price is twice the cost; another
locale, time zone and folder change no byte.
"""

import json
import math
import os
import subprocess

import counting
import files
from counting import Finding

LENGTH = 4096  # of the longest that is asked
# An answer has its time; between two that are compared a second may pass.
NOW = ("--now", "2026-05-20T12:00:00Z")
LOCALES = ("C", "de_DE.UTF-8", "tr_TR.UTF-8")
PRICES = """\
cloud: aws
currency: USD
date: 2026-05-20
source: "an attack"
billing: {{ granularity: 1 s, minimum: 0 s }}
excludes: ["disks"]
prices:
  - instance: g5.xlarge
    regions:
      us-east-1: {{ on_demand: {} USD/h }}
"""
SCENARIO = """\
name: extreme
model: {model}
task: {task}
dataset: {{ train: {train}, eval: {eval} }}
epochs: {epochs}
batch: {batch}
accumulation: {accumulation}
padding: {{ static: {length} }}
precision: {precision}
optimizer: {{ name: {optimizer}, implementation: {implementation} }}
stack: {stack}
drop_last: true
run: {{ start_up: {start_up} s }}
{less}"""


def extreme(random, largest):
    """Even over the logarithm; now and then beyond what is allowed."""
    if random.random() < 0.005:
        return random.choice((0, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 10**30))
    return max(1, min(largest, round(largest ** random.random())))


def decoder(random):
    heads = 2 ** random.randrange(8)
    model = {"layers": extreme(random, 10**random.choice((1, 2, 2, 4))),
             "hidden": heads * 2 * extreme(random, 10**random.choice((2, 3))),
             "heads": heads,
             "intermediate": extreme(random, 10**random.choice((4, 6))),
             "vocabulary": extreme(random, 10**random.choice((5, 7))),
             "positions": max(LENGTH, extreme(random, 10**6))}
    if random.random() < 0.3:
        model["head_size"] = extreme(random, 10**random.choice((2, 3)))
    if random.random() < 0.3:
        model["position_kind"] = "relative"
        model["relative_buckets"] = extreme(random, 10**random.choice((2, 5)))
    text = "".join(f", {key}: {value}" for key, value in model.items())
    return model, f"{{ family: decoder{text} }}"


def parameters_of(model):
    """Of GPT-2: Radford et al. 2019, with weights and biases of each block; heads
    as wide as they are said to be (Raffel et al. 2020), whose biases by distance,
    one for all blocks, stand in the place of a table of positions."""
    h, i = model["hidden"], model["intermediate"]
    heads = model["heads"] * model["head_size"] if "head_size" in model else h
    block = 4 * h * heads + 3 * heads + h + 2 * h * i + i + h + 4 * h
    positions = (model["relative_buckets"] * model["heads"]
                 if "relative_buckets" in model else model["positions"] * h)
    return model["vocabulary"] * h + positions + model["layers"] * block + 2 * h


def less(random, own, length):
    """Lines of a scenario in which not all trains, or is predicted."""
    text = ""
    if random.random() < 0.3:
        layers = own["layers"] if own else 12
        frozen = random.choice((layers, extreme(random, max(1, layers))))
        text += f"trainable: {{ frozen_layers: {frozen} }}\n"
    if random.random() < 0.2:
        text += f"predictions_per_sequence: {extreme(random, length)}\n"
    return text


def question(random, devices, models):
    own, model, task = None, random.choice(models), None
    if random.random() < 0.5:
        own, model = decoder(random)
        task = random.choice(("causal-language-model", "none"))
    elif model.startswith(("bert", "distilbert", "roberta")):
        task = "sequence-classification"
    else:
        task = random.choice(("causal-language-model",) * 3 + ("none",))
    asked = {
        "model": model, "task": task,
        "train": extreme(random, 10**random.choice((4, 12))),
        "eval": extreme(random, 10**random.choice((3, 12))) - 1,
        "epochs": extreme(random, 10**random.choice((1, 6))),
        "batch": extreme(random, 10**random.choice((1, 2, 3, 7))),
        "accumulation": extreme(random, 10**random.choice((1, 4))),
        "length": extreme(random, random.choice((512, LENGTH))),
        "precision": random.choice(("fp32", "fp32", "fp16", "bf16", "tf32")),
        "optimizer": random.choice(("sgd", "adamw", "adan", "muon")),
        "implementation": random.choice(("for_loop", "multi_tensor", "fused")),
        "stack": random.choice(("eager", "fused", "compiled")),
        "start_up": random.choice((0, 1, 1e-9, 86400,
                                   random.choice((1e6, 1e7, 1e308)))),
    }
    asked["less"] = less(random, own, max(1, asked["length"]))
    return own, asked, random.choice(devices)


class Questions:
    def __init__(self, program):
        self.program = program
        self.devices, self.models = (
            [line.split(",")[0] for line in subprocess.run(
                [program, "list", what, "--format", "csv"], check=True,
                capture_output=True, text=True).stdout.splitlines()[1:]]
            for what in ("devices", "models"))

    def ask(self, folder, *arguments):
        command = ["predict", "job.yaml", *arguments, *NOW, "--format", "json"]
        result = files.run(self.program, command, folder)
        files.check(result, command, "trainfare")
        return result

    def once(self, random, folder):
        own, asked, device = question(random, self.devices, self.models)
        (folder / "job.yaml").write_text(SCENARIO.format(**asked))
        priced = random.random() < 0.2
        ways = ["--device", device, "--devices",
                str(extreme(random, random.choice((1, 8, 10**4))))]
        if priced:
            price = random.choice((0.01, 1.0, 32.77, 499.0))
            for name, times in (("once", 1), ("twice", 2)):
                (folder / f"{name}.yaml").write_text(
                    PRICES.format(repr(price * times)))
            ways = ["--instance", "aws/g5.xlarge", "--prices", "once.yaml"]
        result = self.ask(folder, *ways)
        if result.returncode != 0:
            return f"exit {result.returncode}"
        answer = json.loads(result.stdout)
        self.check(answer, own, asked)
        if priced:
            twice = json.loads(self.ask(folder, *ways[:-1], "twice.yaml").stdout)
            self.check_prices(answer, twice)
        if random.random() < 0.2:
            self.check_surroundings(random, folder, ways, result.stdout)
        return "answered"

    @staticmethod
    def check(answer, own, asked):
        if own and answer["scenario"]["parameters"] != parameters_of(own):
            raise Finding(f"{answer['scenario']['parameters']} parameters, "
                          f"not {parameters_of(own)}: {asked}")
        for row in answer["predictions"]:
            for key in ("step_time", "run_time", "energy"):
                unit = "j" if key == "energy" else "s"
                point = row[f"{key}_{unit}"]
                if point is None:
                    continue
                low, high = row[f"{key}_low_{unit}"], row[f"{key}_high_{unit}"]
                if low is None or high is None:  # it has none, and says so
                    low, high = low or point, high or point
                if not 0 < low <= point <= high < math.inf:
                    raise Finding(f"{key}: {low} .. {point} .. {high}: {asked}")
            examples = asked["batch"] * asked["accumulation"] * row["devices"]
            steps = asked["train"] // examples
            if row["steps_per_epoch"] != steps:
                raise Finding(f"{row['steps_per_epoch']} steps, not {steps}: "
                              f"{asked}")
            training = steps * asked["epochs"] * row["step_time_s"]
            if abs(row["run"]["training_s"] - training) > 1e-6 * training:
                raise Finding(f"training takes {row['run']['training_s']} s, "
                              f"not {training}: {asked}")
            if row["memory_bytes"] is not None and not row["memory_bytes"] > 0:
                raise Finding(f"{row['memory_bytes']} bytes: {asked}")

    @staticmethod
    def check_prices(once, twice):
        for one, two in zip(once["predictions"], twice["predictions"]):
            if one["run_time_s"] != two["run_time_s"] or abs(
                    two["cost_usd"] / one["cost_usd"] - 2) > 1e-9:
                raise Finding(f"{one['cost_usd']} USD, {two['cost_usd']} USD at "
                              "twice the price")

    def check_surroundings(self, random, folder, ways, before):
        elsewhere = folder / "elsewhere"
        elsewhere.mkdir()
        for name in folder.glob("*.yaml"):
            (elsewhere / name.name).write_bytes(name.read_bytes())
        again = subprocess.run(
            [self.program, "predict", "job.yaml", *ways, *NOW, "--format", "json"],
            cwd=elsewhere, stdin=subprocess.DEVNULL, capture_output=True,
            check=False, env={
                "PATH": os.environ["PATH"], "HOME": str(folder),
                "TRAINFARE_FITS": str(folder / "fits"), "TZ": "Asia/Kolkata",
                "LC_ALL": random.choice(LOCALES)})
        if again.stdout != before:
            raise Finding("another locale, time zone or folder: other bytes")


def main():
    parser = counting.options_of(__doc__)
    parser.add_argument("trainfare", type=counting.program)
    options = parser.parse_args()
    counting.run_all({"questions": (Questions(options.trainfare).once, 60)},
                     options)


if __name__ == "__main__":
    main()
