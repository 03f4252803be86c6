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
HOSTS = 8  # devices of most hosts here, over which layers are seldom divided

INTRODUCTION = """
Runs whose ranks have a part of a model each ([how that is counted](../models/splits.md)), predicted
as shipped: no row of a divided model is in a fit. *Layers*: of every layer a part (tensor
parallel), within a host or over several; *stages*: some of its blocks (pipeline parallel);
*sequences*: of every sequence a part (context parallel), *experts*: some of these (expert
parallel), whatever else is divided beside. Nothing was chosen in sight of rows of the last two.
Errors are absolute in %, of the median and the mean; *off* is the median with its sign; *inside*
how many of a hundred are in their 80 % interval.

Chosen in sight of rows: what a launch takes between Megatron's modules, on `vtrain_gpt`. How
stages are cut, which sums go on beside products and whether ranks divide tokens are facts of
programs (`calibrate/records/import/tables.yaml`). [What misses, and
why](../models/misses.md#models-that-several-ranks-have).
"""


def divided(row):
    parallel = row["workload"]["parallel"]
    tensor, pipeline = parallel["tensor"], parallel["pipeline"]
    if parallel["expert"] > 1:
        return "experts"
    if parallel["context"] > 1:
        return "sequences"
    if tensor > HOSTS:
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


def found(given, name):
    """Rows of a table by how their models are divided."""
    path = str(given.tables / f"{name}.csv")
    try:
        rows = given.program.json("validate", path)["rows"]
    except SystemExit:  # nothing in it can be used
        return {}
    ways = {}
    for row in rows:
        if row.get("predicted_s") and row.get("measured_s"):
            ways.setdefault(divided(row), []).append(row)
    return ways


WAYS = ["whole", "layers", "layers over hosts", "stages", "layers and stages",
        "sequences", "experts"]


def body(given):
    by_table = {name: found(given, name) for name in TABLES}
    lines = []
    everything = {}
    for name, ways in by_table.items():
        for way in WAYS:
            if way in ways and set(ways) != {"whole"}:
                lines.append([f"`{name.split('/')[-1]}`", way, *cells(ways[way])])
                everything.setdefault(way, []).extend(ways[way])
    all_of = [["all", way, *cells(everything[way])]
              for way in WAYS if way in everything]
    return table(["table", "model", "rows", "median, %", "mean, %", "off, %",
                  "inside, %"], "llrrrrr", lines + all_of)


PAGES = [Page("splits", "Models that several ranks have together", INTRODUCTION,
              body, needs_tables=True)]
