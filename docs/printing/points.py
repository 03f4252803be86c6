"""docs/results/points.md: what each change did to tables, before and after.

A change's readings cannot be made again without the tree that it was made on,
so they are kept beside this module, as the changelog has them.
"""

import csv
import itertools
import re

from .pages import Page, ROOT, filled, table

READINGS = ROOT / "docs/printing/points.csv"
TITLES = ["Device facts", "Power", "Products on tensor cores",
          "Rows of several devices", "A family's prior", "Rules of tables",
          "Source effects", "Intervals", "Processors", "Cost of a fit"]

INTRODUCTION = """
What each change did to the tables that it was measured on, when it was made: later ones moved the
figures again, and what they are today is on [the pages of tables](tables.md), [of
decoders](llm.md), [of intervals](intervals.md) and [of what an answer costs](cost.md). Figures are
those of the [changelog](../../CHANGELOG.md), which tells more of each change; a table that a change
was not measured on has no row. In brackets stands the commit that has the change or its figures, or
that it was tried on; *chosen*: whether the change was chosen on these rows, or in sight of them.

Of errors and costs the smaller is *nearer*, of what intervals hold what is nearer to their share,
of a probability the larger. Rows on which a change was chosen do not count for it. Changes that
follow from a source (a datasheet, a program's code) stand whatever they do to a table. [What
misses, and why](../models/misses.md).
"""


def readings():
    with open(READINGS, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def misfit(figure, unit):
    """How far a figure is from what it would best be: less is nearer."""
    value = float(figure.replace(",", ""))
    of_count = re.match(r"of (\d+) inside (\d+) %", unit)
    if of_count:
        return abs(100 * value / int(of_count[1]) - int(of_count[2]))
    inside = re.match(r"inside (\d+) %", unit)
    if inside:
        return abs(value - int(inside[1]))
    return -value if "probability" in unit else abs(value)


def judged(rows):
    """Of the rows nothing was chosen on: nearer, further, as before."""
    counts = [0, 0, 0]
    for row in rows:
        if row["chosen"] == "no":
            before, after = (misfit(row[key], row["unit"])
                             for key in ("before", "after"))
            counts[0 if after < before else 1 if after > before else 2] += 1
    return counts


def changes(rows):
    """The rows of each change, in the file's order."""
    return [list(of) for _, of in itertools.groupby(
        rows, lambda row: (row["change"], row["commit"]))]


def verdict(rows):
    nearer, further, same = judged(rows)
    kept = "kept" if rows[0]["kept"] == "yes" else "dropped"
    if not nearer + further + same:
        return f"{kept}, no other rows"
    return f"{kept}, {nearer} nearer, {further} further" + (
        f", {same} as before" if same else "")


def section(number, title, rows):
    """A list of the changes of a point, and a table of what they did."""
    lines = [f"\n## {number}. {title}\n"]
    cells = []
    for place, of in enumerate(changes(rows), 1):
        lines.append(filled(f"{place}. {of[0]['change']} (`{of[0]['commit']}`: "
                            f"{verdict(of)})", "   "))
        cells += [[str(place), row["table"], row["unit"], row["before"],
                   row["after"], row["chosen"]] for row in of]
    return lines + ["", *table(["change", "rows", "figure", "before", "after",
                                "chosen"], "rllrrl", cells)]


def summary(by_point):
    """A row for each point: of its changes those kept, and what they did to
    rows that they were not chosen on."""
    lines = []
    for number, (title, rows) in enumerate(zip(TITLES, by_point), 1):
        kept = [row for row in rows if row["kept"] == "yes"]
        dropped = [row for row in rows if row["kept"] == "no"]
        lines.append([f"{number}. {title}", *map(str, (
            len(changes(kept)), *judged(kept),
            len(changes(dropped)), *judged(dropped)))])
    return table(["point", "kept", "nearer", "further", "as before", "dropped",
                  "nearer", "further", "as before"], "lrrrrrrrr", lines)


def doubtful(rows):
    """Kept changes that brought no more of others' figures nearer than they
    sent further."""
    found = []
    for of in changes(rows):
        nearer, further, same = judged(of)
        if of[0]["kept"] == "yes" and nearer <= further and nearer + further + same:
            found.append(filled(f"- {of[0]['change']} (point {of[0]['point']}: "
                                f"{nearer} nearer, {further} further)", "  "))
    return found


def body(given):
    del given  # nothing is asked of the program: readings are kept
    rows = readings()
    by_point = [[row for row in rows if row["point"] == str(number)]
                for number in range(1, len(TITLES) + 1)]
    lines = ["On rows that changes were not chosen on:\n", *summary(by_point)]
    alone = sum(not any(judged(change)) and change[0]["kept"] == "yes"
                for change in changes(rows))
    lines += ["", filled(f"Of those kept {alone} were measured only on rows "
                         "that they were chosen on.")]
    lines += ["\nKept, though of such rows at least as many went further off as "
              "came nearer:\n", *doubtful(rows)]
    for number, (title, of) in enumerate(zip(TITLES, by_point), 1):
        lines += section(number, title, of)
    return lines


PAGES = [Page("points", "What each change did", INTRODUCTION, body)]
