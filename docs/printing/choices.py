"""docs/results/choices.md: whether the device that is chosen is the best.

Questions that a table answers for several devices, everything else alike: the
device that predictions choose, by time and by cost where it has a price, beside
the one that measurements would, and the probability stated of it.
"""

import functools
import math
import random
import re
import sys

from .intervals import LEFT_OUT, OTHERS, PROTOCOLS
from .pages import Page, ROOT, table

sys.path.append(str(ROOT / "docs" / "figures"))
import chart  # noqa: E402

NEAR = 3.0  # percent: so little between two measurements decides nothing
BINS = [0, 5, 20, 40, 60, 80, 95, 100]
WORST = 3
SHARES = [0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9]
DRAWS = 1000
# The parts of a question that rows of one table do not share; a published one
# begins with its place.
QUESTION = re.compile(r"(?:^(\d+) on \d+ x |: )(\S+) .*?\b(b\d+) (s\d+) "
                      r"(\S+)(?:.*? (forward)\b)?")
Z90 = 1.2816  # half the width of an 80 % interval of a standard normal

INTRODUCTION = """
Questions that a table answers for several devices, all else alike: the device that predictions
choose beside the one that measurements would, by time, and by cost (its cheapest hour in a cloud).
*Stated*: the probability that `recommend` would give it; *regret*: by how much it is dearer or
slower than the best. [What misses, and why](../models/misses.md#choices).

![Stated probability against how often it was right](../figures/reliability.svg)
"""


def percent(part, whole):
    return f"{100 * part / whole:.0f}"


def choice_row(name, choices):
    stated = sum(c["devices"][0]["best_probability"] for c in choices)
    right = sum(c["devices"][0]["best"] for c in choices)
    near = sum(c["regret_percent"] <= NEAR for c in choices)
    regrets = sorted(c["regret_percent"] for c in choices)
    count = len(choices)
    return [name, str(count), percent(stated, count), percent(right, count),
            percent(near, count), f"{sum(regrets) / count:.1f}",
            f"{regrets[-1]:.0f}"]


def choice_table(named):
    return table(["choices", "count", "stated, %", "best, %", "within 3 %, %",
                  "mean regret, %", "worst, %"], "lrrrrrr",
                 [choice_row(*one) for one in named if one[1]])


def short_question(choice):
    """How many devices train what, with which batch, length and precision."""
    devices, *asked, forward = QUESTION.search(choice["question"]).groups()
    return " ".join([*([f"{devices} x"] if devices else []), *asked,
                     *(["forward"] if forward else [])])


def worst_table(choices):
    """The choices that cost most, each question once."""
    seen = {}
    for choice in sorted(choices, key=lambda c: -c["regret_percent"]):
        devices = choice["devices"]
        best = next(d["device"] for d in devices if d["best"])
        if choice["regret_percent"] > 0:
            seen.setdefault(
                (short_question(choice), devices[0]["device"], best),
                [f"{choice['regret_percent']:.0f}",
                 percent(devices[0]["best_probability"], 1)])
    rows = [[*asked, *cells] for asked, cells in seen.items()][:WORST]
    return table(["question", "chosen", "best", "regret, %", "stated, %"],
                 "lllrr", rows)


def reliability(choices, low, high):
    """Of devices whose stated probability lies between: how many, the mean of
    it, and how many of a hundred are the best; None where there are none."""
    inside = [d for c in choices for d in c["devices"]
              if low <= 100 * d["best_probability"] < high
              or high == 100 == 100 * d["best_probability"]]
    if not inside:
        return None
    return (100 * sum(d["best_probability"] for d in inside) / len(inside),
            100 * sum(d["best"] for d in inside) / len(inside), len(inside))


def reliability_cells(found):
    if found is None:
        return ["0", "-", "-"]
    stated, best, count = found
    return [str(count), f"{stated:.1f}", f"{best:.1f}"]


def reliability_table(left_out, shipped):
    """Every device of every choice by the probability stated of it; also as
    docs/figures/reliability.svg."""
    bins = list(zip(BINS, BINS[1:]))
    named = {"left out": [reliability(left_out, *one) for one in bins],
             "as shipped": [reliability(shipped, *one) for one in bins]}
    chart.reliability(
        ROOT / "docs" / "figures" / "reliability.svg",
        "Devices by the probability of being the best that is stated of them",
        "stated, mean of a class, %", "are the best, %",
        {name: [p for p in points if p] for name, points in named.items()})
    return table(
        ["between", "left out", "stated, %", "best, %", "as shipped",
         "stated, %", "best, %"], "lrrrrrr",
        [[f"{low} and {high} %", *reliability_cells(of_left_out),
          *reliability_cells(of_shipped)]
         for (low, high), of_left_out, of_shipped in zip(
             bins, named["left out"], named["as shipped"])])


@functools.cache
def draws(devices):
    """Errors of a question: that of the kind, and those of its devices alone."""
    draw = random.Random(1)
    return [(draw.gauss(0, 1), [draw.gauss(0, 1) for _ in range(devices)])
            for _ in range(DRAWS)]


def log_score(device):
    """A device's logarithm of what is asked for; and what z = -1 and z = 1 add
    to it, as Uncertain of scenarios/job/contest.h has it."""
    predicted = device["predicted_s"]
    return (math.log(predicted * (device["price_usd_per_hour"] or 1.0)),
            math.log(predicted / device["predicted_low_s"]) / Z90,
            math.log(device["predicted_high_s"] / predicted) / Z90)


def log_odds_of_best(choice, share):
    """log p of the device that was best as measured, were `share` of the
    variance of errors that of all devices of the kind.

    All devices of a question are taken as of one kind.
    """
    scores = [log_score(device) for device in choice["devices"]]
    of_kind, own = math.sqrt(share), math.sqrt(1 - share)
    wins = [0] * len(scores)
    for z_kind, z_own in draws(len(scores)):
        errors = [of_kind * z_kind + own * z for z in z_own]
        drawn = [value + z * (below if z < 0 else above)
                 for (value, below, above), z in zip(scores, errors)]
        wins[drawn.index(min(drawn))] += 1
    best = next(i for i, d in enumerate(choice["devices"]) if d["best"])
    return math.log((wins[best] + 0.5) / (DRAWS + 1))


def share_cell(choices, share):
    """The mean over choices, - where the program does not give intervals."""
    if not all("predicted_low_s" in d for c in choices for d in c["devices"]):
        return "-"
    found = [log_odds_of_best(choice, share) for choice in choices]
    return f"{sum(found) / len(found):.3f}"


def shipped_share():
    text = (ROOT / "scenarios/job/contest.h").read_text(encoding="utf-8")
    return re.search(r"kSharedByKind = ([\d.]+)", text)[1]


def share_table(left_out, shipped):
    """How likely each share of error between devices of a kind is."""
    return [
        f"Mean of log p, p the probability of the device that was the best; "
        f"{shipped_share()} ships.", "",
        *table(["share", "left out", "as shipped"], "rrr",
               [[f"{share:g}", share_cell(left_out, share),
                 share_cell(shipped, share)] for share in SHARES])]


class Choices:
    """The choices of all tables, and of the published figures."""

    def __init__(self, given):
        self.given = given
        self.left_out = {
            (protocol, name): self.of(name, protocol)
            for protocol in PROTOCOLS for name in LEFT_OUT}
        self.published = self.of_published("leave-one-out")
        # Of tables that no fit is made from.
        self.unfitted = [c for name in OTHERS
                         for c in self.of(name, "as-shipped")]
        self.shipped = (self.of_published("as-shipped") + self.unfitted
                        + [c for name in LEFT_OUT
                           for c in self.of(name, "as-shipped")])
        self.of_left_out = [c for choices in self.left_out.values()
                            for c in choices]

    def of(self, name, protocol):
        return self.given.program.json(
            "validate", str(self.given.tables / f"{name}.csv"),
            "--protocol", protocol)["choices"]

    def of_published(self, protocol):
        return self.given.program.json(
            "validate", str(ROOT / "scenarios" / "published"),
            "--protocol", protocol)["choices"]

    def of_protocol(self, protocol):
        return [c for (p, _), choices in self.left_out.items()
                if p == protocol for c in choices]


def of_objective(choices, objective):
    return [c for c in choices if c["objective"] == objective]


def worst_tables(found):
    """By time and by cost, as shipped and left out."""
    lines = []
    for words, choices in (("left out", found.of_left_out + found.published),
                           ("as shipped", found.shipped)):
        for objective in ("time", "cost"):
            lines += [f"\n## The worst by {objective}, {words}\n",
                      *worst_table(of_objective(choices, objective))]
    return lines


def body(given):
    found = Choices(given)
    return [
        "## Devices or runs left out: five tables, published figures\n",
        *choice_table([
            *((f"{protocol}, {objective}",
               of_objective(found.of_protocol(protocol), objective))
              for protocol in PROTOCOLS for objective in ("time", "cost")),
            ("scenarios/published, leave-one-out", found.published)]),
        "\n## As shipped: all tables, published figures\n",
        *choice_table([(objective, of_objective(found.shipped, objective))
                       for objective in ("time", "cost")]),
        *worst_tables(found),
        "\n## Reliability\n",
        "Left out, published figures with them; as shipped, tables that no fit "
        "is made from. Devices by", "what is stated of them, and how many are "
        "the best:\n",
        *reliability_table(found.published + found.of_left_out,
                           found.unfitted),
        "\n## What devices of a kind share\n",
        *share_table(found.of_left_out, found.unfitted)]


PAGES = [Page("choices", "Is the choice the best?", INTRODUCTION, body,
              needs_tables=True)]
