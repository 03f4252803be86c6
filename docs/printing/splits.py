"""docs/results/splits.md: models that several ranks have together, as shipped.

Every table that has such runs, by how the model is divided; rows of whole
models beside them, where the table has any.
"""

import statistics

from .pages import Page, table

TABLES = ["vtrain_gpt", "llm/nanotron_h100", "llm/sailor", "llm/simumax_b200",
          "llm/nvidia_nemo", "llm/nvidia_dgxc", "llm/torchtitan",
          "llm/pretrain_misc", "llm/oneflow_v100", "llm/mlperf_llm",
          "llm/mlperf_lora", "llm/bigscience_a100"]
DEVICES_OF_HOST = 8  # of most here: layers are seldom divided over more
WAYS = ["whole", "layers", "layers over hosts", "stages", "layers and stages",
        "sequences", "experts"]

INTRODUCTION = """
Runs whose ranks have a part of a model each ([how that is counted](../models/splits.md)), predicted
as shipped: no row of a divided model is in a fit. *Layers*: of every layer a part (tensor
parallel), within a host or over several; *stages*: some of its blocks (pipeline parallel);
*sequences*: of every sequence a part (context parallel), *experts*: some of these (expert
parallel), whatever else is divided beside. Errors are absolute in %, of the median and the mean;
*off* is the median with its sign; *inside* how many of a hundred are in their 80 % interval.

Chosen in sight of rows: what a launch takes between Megatron's modules, on `vtrain_gpt`. How
stages are cut, which sums go on beside products, whether ranks divide tokens, which recipes leave
experts whole and how tokens go to them are facts of programs
(`calibrate/records/import/tables.yaml`); the last two were looked up in sight of the rows that they
are of. [What misses, and why](../models/misses.md#models-that-several-ranks-have).
"""


def way_of(row):
    """How a row's model is divided."""
    parallel = row["workload"]["parallel"]
    tensor, pipeline = parallel["tensor"], parallel["pipeline"]
    if parallel["expert"] > 1:
        return "experts"
    if parallel["context"] > 1:
        return "sequences"
    if tensor > DEVICES_OF_HOST:
        return "layers over hosts"
    if pipeline == 1:
        return "layers" if tensor > 1 else "whole"
    return "layers and stages" if tensor > 1 else "stages"


def cells(rows):
    off = [100 * (row["predicted_s"] / row["measured_s"] - 1) for row in rows]
    inside = sum(row["covered"] for row in rows)
    return [str(len(rows)), f"{statistics.median(map(abs, off)):.1f}",
            f"{statistics.mean(map(abs, off)):.1f}",
            f"{statistics.median(off):+.1f}", f"{100 * inside / len(rows):.0f}"]


def answer_of(given, name):
    """None where nothing in a table can be used."""
    try:
        return given.program.json("validate",
                                  str(given.tables / f"{name}.csv"))
    except SystemExit:
        return None


def by_way(answer):
    """Rows of a table by how their models are divided."""
    ways = {}
    for row in answer["rows"]:
        if row.get("predicted_s") and row.get("measured_s"):
            ways.setdefault(way_of(row), []).append(row)
    return ways


def peaks_of(answer):
    """The rows of memory that are of divided models."""
    return [row for row in (answer.get("memory") or {"rows": []})["rows"]
            if way_of(row) != "whole"]


def peak_lines(name, rows):
    """The line of a table, none where none of these rows fitted."""
    fitted = [row for row in rows if row["measured_bytes"] is not None]
    if not fitted:
        return []
    right = sum(row["fits"] == (row["measured_bytes"] is not None)
                for row in rows)
    off = [100 * (row["predicted_bytes"] / row["measured_bytes"] - 1)
           for row in fitted]
    inside = sum(row["predicted_low_bytes"] <= row["measured_bytes"]
                 <= row["predicted_high_bytes"] for row in fitted)
    return [[name, str(len(fitted)), f"{statistics.median(map(abs, off)):.1f}",
             f"{max(map(abs, off)):.0f}", f"{statistics.median(off):+.1f}",
             f"{100 * inside / len(fitted):.0f}", str(len(rows)),
             f"{100 * right / len(rows):.1f}"]]


def body(given):
    answers = {name: answer_of(given, name) for name in TABLES}
    lines, peaks = [], []
    everything = {}
    for name, answer in answers.items():
        if answer is None:
            continue
        short = f"`{name.split('/')[-1]}`"
        ways = by_way(answer)
        for way in WAYS:
            if way in ways and set(ways) != {"whole"}:
                lines.append([short, way, *cells(ways[way])])
                everything.setdefault(way, []).extend(ways[way])
        peaks += peak_lines(short, peaks_of(answer))
    all_of = [["all", way, *cells(everything[way])]
              for way in WAYS if way in everything]
    return [
        "## Time\n",
        *table(["table", "model", "rows", "median, %", "mean, %", "off, %",
                "inside, %"], "llrrrrr", lines + all_of),
        "\n## Peak memory of divided models\n",
        "Of the fullest device; *right*: of those that fitted and that ran out "
        "together, how many of a\nhundred are said so.\n",
        *table(["table", "peaks", "median, %", "worst, %", "off, %",
                "inside, %", "fitted or not", "right, %"], "lrrrrrrr", peaks)]


PAGES = [Page("splits", "Models that several ranks have together", INTRODUCTION,
              body, needs_tables=True)]
