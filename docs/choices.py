#!/usr/bin/env python3
"""Whether the device that is chosen is the best, and docs/results/choices.md.

  docs/choices.py --trainfare build/release/bin/trainfare --tables FOLDER

Questions that a table answers for several devices, everything else alike: the
device that predictions choose, by time and by cost where it has a price, beside
the one that measurements would, and the probability stated of it.
"""

import argparse
import pathlib
import re
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from intervals import LEFT_OUT, OTHERS, PROTOCOLS  # noqa: E402
from make import made_by  # noqa: E402
from program import Program  # noqa: E402

NEAR = 3.0  # percent: so little between two measurements decides nothing
BINS = [0, 5, 20, 40, 60, 80, 95, 100]
MARKERS = re.compile(r"(<!-- printed -->\n).*?(<!-- /printed -->)", re.S)


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


def reliability_cells(choices, low, high):
    """Devices whose stated probability lies between, its mean, and the best."""
    inside = [d for c in choices for d in c["devices"]
              if low <= 100 * d["best_probability"] < high
              or high == 100 == 100 * d["best_probability"]]
    if not inside:
        return "0 | - | -"
    stated = sum(d["best_probability"] for d in inside)
    best = sum(d["best"] for d in inside)
    return (f"{len(inside)} | {100 * stated / len(inside):.1f} "
            f"| {100 * best / len(inside):.1f}")


def reliability_table(left_out, shipped):
    """Every device of every choice by the probability stated of it."""
    head = ["| stated between | left out: devices | stated, mean % | best, % "
            "| as shipped: devices | stated, mean % | best, % |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    return "\n".join(head + [
        f"| {low} and {high} % | {reliability_cells(left_out, low, high)} "
        f"| {reliability_cells(shipped, low, high)} |"
        for low, high in zip(BINS, BINS[1:])])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainfare", required=True)
    parser.add_argument("--tables", required=True, type=pathlib.Path)
    options = parser.parse_args()
    program = Program(options.trainfare)

    def choices_of(table, protocol):
        file = options.tables / f"{table}.csv"
        return program.json("validate", str(file),
                            "--protocol", protocol)["choices"]

    left_out = {(protocol, table): choices_of(table, protocol)
                for protocol in PROTOCOLS for table in LEFT_OUT}
    published = program.json(
        "validate", str(HERE.parent / "scenarios" / "published"),
        "--protocol", "leave-one-out")["choices"]
    shipped = {table: choices_of(table, "as-shipped") for table in OTHERS}

    def picked(protocol, objective):
        return [c for (p, _), choices in left_out.items() if p == protocol
                for c in choices if c["objective"] == objective]

    text = "\n".join([
        "", made_by("docs/choices.py --tables FOLDER"),
        "## Devices or runs left out: five tables, published figures", "",
        choice_table([(f"{protocol}, {objective}", picked(protocol, objective))
                      for protocol in PROTOCOLS
                      for objective in ("time", "cost")]
                     + [("scenarios/published, leave-one-out", published)]), "",
        "## Reliability", "",
        "Left out, published figures with them; as shipped, tables that chose "
        "nothing:", "",
        reliability_table(
            published + [c for choices in left_out.values() for c in choices],
            [c for choices in shipped.values() for c in choices]), "", ""])
    page = HERE / "results" / "choices.md"
    old = page.read_text(encoding="utf-8")
    page.write_text(MARKERS.sub(lambda m: m[1] + text + m[2], old),
                    encoding="utf-8")


if __name__ == "__main__":
    main()
