"""docs/results/llm.md: errors on tables of decoders of today."""

import collections
import math
import statistics
import sys

from .measured_tables import what_was_chosen
from .pages import Page, percentile, table
from .whole_models import of_whole_models

FOLDER = "llm/"
PROTOCOLS = ["as-shipped", "added-runs=1", "added-runs=5"]
# BERT under limits of power, whose lengths are not stated: a page of its own.
APART = "zeus_bert_power"
# The tables and sources whose peaks have a goal.
OF_GOAL = {"torchtitan", "fms_acceleration", "mlperf_llm", "mlperf_lora",
           "nanotron_h100"}
FINETUNE_OF_GOAL = {"QwenLM/Qwen", "pytorch/torchtune"}
INTRODUCTION = """
Rows of whole models; those that ranks have parts of have [a page of their own](splits.md).
`trainfare validate TABLE.csv --protocol PROTOCOL`. `added-runs=N` adds N rows of each device and
stack to the fit that ships and predicts the others. A cell: absolute error in percent, median, what
90 % of the rows stay below, worst; behind the semicolon, percent of the rows inside their 80 %
interval, and the rows. *chosen*: in sight of a table's rows. The aims of "all" are 12, 30 % as
shipped, 6, 15 with one row and 4, 12 with five. Lengths of `zeus_bert_power` are not stated
([power](power.md)). [What misses, and why](../models/misses.md).
"""


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


def measurer(peak):
    """The repository, without the folders of its submitters."""
    return "/".join(peak["measured_by"].split("/")[:2])


def of_goal(peak):
    """Whether the goal of peaks counts it: of nvidia-smi's it has none."""
    return peak["table"] in OF_GOAL or (
        peak["table"] == "finetune" and measurer(peak) in FINETUNE_OF_GOAL)


def share_within(deviations, width):
    return sum(one <= width for one in deviations) / len(deviations)


def width_of(groups):
    """The least in which 80 % of the deviations are, every group alike."""
    return min(width for group in groups for width in group
               if statistics.mean(share_within(one, width)
                                  for one in groups) >= 0.8)


def width_row(name, figures, peaks):
    """Of sources that are left out, by the widths that the others have."""
    groups = collections.defaultdict(list)
    for peak in peaks:
        if peak["figure"] in figures and peak["measured_bytes"]:
            groups[measurer(peak)].append(abs(math.log(
                peak["measured_bytes"] / peak["predicted_bytes"])))
    held, rows = [], 0
    for source, own in groups.items():
        others = [one for other, one in groups.items() if other != source]
        held.append(share_within(own, width_of(others)))
        rows += held[-1] * len(own)
    count = sum(map(len, groups.values()))
    return [name, str(len(groups)), str(count),
            f"{math.exp(width_of(list(groups.values()))):.3f}",
            f"{100 * rows / count:.0f}", f"{100 * statistics.mean(held):.0f}"]


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
    with of_whole_models(given) as whole:
        return body_of_whole_models(whole)


def body_of_whole_models(given):
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
    """By table, by source and by what was measured; and who fits."""
    measured = [peak for peak in peaks if peak["measured_bytes"]]
    found = collections.defaultdict(list)
    sources = collections.defaultdict(list)
    for peak in measured:
        found[f"{peak['table']}, {peak['figure']}"].append(peak)
        found[f"all, {peak['figure']}"].append(peak)
        sources[f"{measurer(peak)}, {peak['figure']}"].append(peak)
    goal = [peak for peak in measured
            if of_goal(peak) and peak["figure"] != "used"]
    died = len(peaks) - len(measured)
    right = sum(peak["fits"] == (peak["measured_bytes"] is not None)
                for peak in peaks)
    alike = 100 * statistics.mean(statistics.mean(map(inside, rows))
                                  for rows in sources.values())
    columns = ["rows", "median, %", "90 % below, %", "worst, %",
               "inside 80 %, %"]
    return [
        *table(["table, figure", *columns], "lrrrrr",
               [memory_row("all", measured), memory_row("of the goal", goal),
                *(memory_row(*item) for item in sorted(found.items()))]),
        "\n*Of the goal*: torchtitan, fms-acceleration as allocated, MLPerf's "
        "LoRA, nanotron, Qwen, torchtune\n(median 3 %, worst 12 %).\n",
        *table(["measured by, figure", *columns], "lrrrrr",
               [memory_row(*item) for item in sorted(sources.items())]),
        f"\nOf {len(measured)} runs that fitted and {died} that ran out "
        f"{100 * right / len(peaks):.1f} % are said right. Every figure of a\n"
        f"source counting alike, {alike:.0f} % of the peaks are inside.",
        "\n## Widths of memory's intervals\n",
        "A factor to either side that holds 80 %, every source counting alike; "
        "*left out*: percent of a\nsource's peaks within the factor that the "
        "others have, of all rows and every source alike. Where the\nfigure is "
        "not stated, an interval is from the low end of what tensors take to "
        "the high end of\nwhat is used.\n",
        *table(["figure", "sources", "rows", "factor", "left out, %",
                "alike, %"], "lrrrrr",
               [width_row("allocated", ["allocated"], measured),
                width_row("reserved, used", ["reserved", "used"], measured)])]


PAGES = [Page("llm", "Tables of decoders of today", INTRODUCTION, body,
              needs_tables=True)]
