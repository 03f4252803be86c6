#!/usr/bin/env python3
"""Whether the device that is chosen is the best, and docs/results/choices.md.

  docs/choices.py --trainfare build/release/bin/trainfare --tables FOLDER

Questions that a table answers for several devices, everything else alike: the
device that predictions choose, by time and by cost where it has a price, beside
the one that measurements would, and the probability stated of it.
"""

import pathlib
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "figures")]
import chart  # noqa: E402
from intervals import LEFT_OUT, OTHERS, PROTOCOLS  # noqa: E402
from make import asked_tables, printed  # noqa: E402

NEAR = 3.0  # percent: so little between two measurements decides nothing
BINS = [0, 5, 20, 40, 60, 80, 95, 100]


def percent(part, whole):
    return f"{100 * part / whole:.0f}"


def choice_line(name, choices):
    stated = sum(c["devices"][0]["best_probability"] for c in choices)
    right = sum(c["devices"][0]["best"] for c in choices)
    near = sum(c["regret_percent"] <= NEAR for c in choices)
    regrets = sorted(c["regret_percent"] for c in choices)
    count = len(choices)
    return (f"| {name} | {count} | {percent(stated, count)} "
            f"| {percent(right, count)} | {percent(near, count)} "
            f"| {sum(regrets) / count:.1f} | {regrets[-1]:.0f} |")


def choice_table(named):
    head = ["| choices | count | stated, % | best, % | within 3 %, % "
            "| dearer or slower, mean % | at worst % |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    return "\n".join(head + [choice_line(name, choices)
                             for name, choices in named if choices])


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
        return "0 | - | -"
    stated, best, count = found
    return f"{count} | {stated:.1f} | {best:.1f}"


def reliability_table(left_out, shipped):
    """Every device of every choice by the probability stated of it; also as
    docs/figures/reliability.svg."""
    bins = list(zip(BINS, BINS[1:]))
    named = {"left out": [reliability(left_out, *one) for one in bins],
             "as shipped": [reliability(shipped, *one) for one in bins]}
    chart.reliability(
        HERE / "figures" / "reliability.svg",
        "Devices by the probability of being the best that is stated of them",
        "stated, mean of a class, %", "are the best, %",
        {name: [p for p in points if p] for name, points in named.items()})
    head = ["| stated between | left out: devices | stated, mean % | best, % "
            "| as shipped: devices | stated, mean % | best, % |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    return "\n".join(head + [
        f"| {low} and {high} % | {reliability_cells(of_left_out)} "
        f"| {reliability_cells(of_shipped)} |"
        for (low, high), of_left_out, of_shipped in zip(
            bins, named["left out"], named["as shipped"])])


def main():
    program, tables = asked_tables(__doc__)

    def choices_of(table, protocol):
        file = tables / f"{table}.csv"
        return program.json("validate", str(file),
                            "--protocol", protocol)["choices"]

    left_out = {(protocol, table): choices_of(table, protocol)
                for protocol in PROTOCOLS for table in LEFT_OUT}

    def published_by(protocol):
        return program.json(
            "validate", str(HERE.parent / "scenarios" / "published"),
            "--protocol", protocol)["choices"]

    published = published_by("leave-one-out")
    shipped = {table: choices_of(table, "as-shipped") for table in OTHERS}
    all_shipped = published_by("as-shipped") + [
        c for choices in shipped.values() for c in choices] + [
        c for table in LEFT_OUT for c in choices_of(table, "as-shipped")]

    def of_objective(choices, objective):
        return [c for c in choices if c["objective"] == objective]

    def picked(protocol, objective):
        return of_objective([c for (p, _), choices in left_out.items()
                             if p == protocol for c in choices], objective)

    printed("choices.md", [
        "## Devices or runs left out: five tables, published figures", "",
        choice_table([(f"{protocol}, {objective}", picked(protocol, objective))
                      for protocol in PROTOCOLS
                      for objective in ("time", "cost")]
                     + [("scenarios/published, leave-one-out", published)]), "",
        "## As shipped: all tables, published figures", "",
        choice_table([(objective, of_objective(all_shipped, objective))
                      for objective in ("time", "cost")]), "",
        "## Reliability", "",
        "Left out, published figures with them; as shipped, tables that no fit "
        "is made from:", "",
        reliability_table(
            published + [c for choices in left_out.values() for c in choices],
            [c for choices in shipped.values() for c in choices])],
        "docs/choices.py --tables FOLDER")


if __name__ == "__main__":
    main()
