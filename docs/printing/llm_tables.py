"""docs/results/llm.md: errors on tables of decoders of today."""

import collections
import statistics
import sys

from .measured_tables import what_was_chosen
from .pages import Page, table

FOLDER = "llm/"
PROTOCOLS = ["as-shipped", "added-runs=1", "added-runs=5"]
# BERT under limits of power, whose lengths are not stated: a page of its own.
APART = "zeus_bert_power"
INTRODUCTION = """
`trainfare validate TABLE.csv --protocol PROTOCOL`. `added-runs=N` adds N rows of each device and
stack to the fit that ships and predicts the others. A cell: absolute error in percent, median, what
90 % of the rows stay below, worst; behind the semicolon, percent of the rows inside their 80 %
interval, and the rows. *chosen*: in sight of a table's rows. The aims of "all" are 12, 30 % as
shipped, 6, 15 with one row and 4, 12 with five. Lengths of `zeus_bert_power` are not stated
([power](power.md)). [What misses, and why](../models/misses.md).
"""


def percentile(values, share):
    """Between the two nearest, as the program has it."""
    values = sorted(values)
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def cell(rows):
    if not rows:
        return "-"
    errors = [abs(row["error_percent"]) for row in rows]
    inside = 100 * sum(row["covered"] for row in rows) / len(rows)
    return (f"{statistics.median(errors):.1f}, {percentile(errors, 0.9):.1f}, "
            f"{max(errors):.0f}; {inside:.0f}, {len(rows)}")


def inside_alike(rows):
    """Percent inside, the mean over tables and devices, one and several."""
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["source"], row["device"], row["devices"] > 1].append(
            row["covered"])
    return 100 * statistics.mean(map(statistics.mean, groups.values()))


def errors_of(rows):
    return [100 * abs(row["predicted_bytes"] / row["measured_bytes"] - 1)
            for row in rows]


def inside(row):
    return (row["predicted_low_bytes"] <= row["measured_bytes"]
            <= row["predicted_high_bytes"])


def memory_row(name, rows):
    errors = errors_of(rows)
    within = 100 * sum(map(inside, rows)) / len(rows)
    return [name, str(len(rows)), f"{statistics.median(errors):.1f}",
            f"{percentile(errors, 0.9):.1f}", f"{max(errors):.0f}",
            f"{within:.0f}"]


def answer_of(given, name, protocol):
    """Without rows where all were added."""
    try:
        return given.program.json("validate",
                                  str(given.tables / f"{name}.csv"),
                                  "--protocol", protocol)
    except SystemExit as refusal:
        if protocol != PROTOCOLS[0] and "no row could be" in str(refusal):
            return {"rows": []}
        raise


def body(given):
    times, peaks = [], []
    pooled = [[] for _ in PROTOCOLS]
    for full, row in what_was_chosen(given.tables):
        if not full.startswith(FOLDER):
            continue
        name = full[len(FOLDER):]
        try:
            answers = [answer_of(given, full, p) for p in PROTOCOLS]
        except SystemExit:
            continue  # untouched.md says which tables have no row, and why
        print(name, file=sys.stderr, flush=True)
        rows = [answer["rows"] for answer in answers]
        for every, own in zip(pooled, rows):
            every.extend(own)
        if any(rows):
            times.append([name, row["chosen_on_these_rows"],
                          *map(cell, rows)])
        peaks += [{"table": name, **peak} for peak in
                  answers[0].get("memory", {}).get("rows", [])]
    times.append(["all", "", *map(cell, pooled)])
    times.append([f"all but {APART}", "",
                  *(cell([row for row in rows if row["source"] != APART])
                    for rows in pooled)])
    alike = ", ".join(f"{inside_alike(rows):.0f}" for rows in pooled)
    return [
        "## Time\n", *table(["table", "chosen", *PROTOCOLS], "lllll", times),
        f"\nEvery device of a table counting alike, {alike} % of the rows are "
        "inside.",
        "\n## Peak memory as shipped\n", *memory_lines(peaks)]


def memory_lines(peaks):
    """By table and what was measured; and who fits."""
    found = collections.defaultdict(list)
    for peak in peaks:
        if peak["measured_bytes"]:
            found[f"{peak['table']}, {peak['figure']}"].append(peak)
            found[f"all, {peak['figure']}"].append(peak)
    died = sum(peak["measured_bytes"] is None for peak in peaks)
    right = sum(peak["fits"] == (peak["measured_bytes"] is not None)
                for peak in peaks)
    return [
        *table(["table, figure", "rows", "median, %", "90 % below, %",
                "worst, %", "inside 80 %, %"], "lrrrrr",
               [memory_row(*item) for item in sorted(found.items())]),
        "",
        f"Of {len(peaks) - died} runs that fitted and {died} that ran out "
        f"{100 * right / len(peaks):.1f} % are said right."]


PAGES = [Page("llm", "Tables of decoders of today", INTRODUCTION, body,
              needs_tables=True)]
