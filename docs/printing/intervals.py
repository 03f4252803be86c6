"""docs/results/intervals.md: how wide 80 % intervals would have to be.

A row's ratio is |log(measured / predicted)| over half its interval, in
logarithms. By grade, and for one device and several, the page says which ratio
80 % of the rows stay below, every device of a table counting alike: what the
interval would have to be multiplied by so that 80 % held, given the factors
that the program has now (`intervals:` of hardware/kinds/gpu.yaml, and what
ranks add in scenarios/job/estimate.cc). These were chosen on the first part,
whose devices or runs were left out.

The second part is of devices that several sources measured, each source
predicted from the others. It says how far all runs of a source are likeliest to
be off together, which is `sources:` of hardware/kinds/gpu.yaml. The third is how
alike errors are from place to place (alike.py).
"""

import collections
import math
import re
import statistics

from .alike import alike
from .pages import Page, ROOT, table

INTRODUCTION = """
Of each grade 80 % of rows should be inside. *80 % below* is what the interval would have to be
multiplied by, in the logarithm, so that they were, every device of a table counting alike;
*95 / 80* is how far 95 % of rows reach over what 80 % do. [What misses, and
why](../models/misses.md). What was chosen on each section:

- *left out of five tables*: GPUs' factors beyond what was measured (`intervals:` of
  `hardware/kinds/gpu.yaml`), the tails of such answers (1.94), what unmeasured ranks add
- *sources*: what [a source](../models/calibration.md#sources) adds
- *what is alike*: how near steps are in batch, length and size of which a formula is [wrong
  alike](../models/calibration.md#what-the-formula-itself-gets-wrong) (`errors:` of
  `hardware/kinds/any.yaml`). The table has by how much rows that were left out are likelier than
  as shipped, in the mean over tables.
- *tables that no fit is made from*: on `fms_acceleration` what shared state adds
"""

LEFT_OUT = ["neusight_labels", "deepspeed_bert", "nvidia_dle_training",
            "lambda_deeplearning_benchmark", "optimum_habana_ci"]
PROTOCOLS = ["leave-device-out", "one-run-per-device", "leave-one-out"]
OTHERS = ["aws_neuron", "nvidia_dle_inference", "lightseq", "vtrain_gpt",
          "llm/finetune", "llm/fms_acceleration", "llm/google_tpu_gpu",
          "llm/llm_foundry_mpt", "llm/mlperf_llm", "llm/mlperf_lora",
          "llm/mlperf_packed_bert",
          "llm/nanotron_h100", "llm/nvidia_dgxc", "llm/nvidia_nemo",
          "llm/oneflow_v100", "llm/pretrain_misc", "llm/torchtitan"]


def ratio(row):
    half = 0.5 * math.log(row["predicted_high_s"] / row["predicted_low_s"])
    return abs(math.log(row["measured_s"] / row["predicted_s"])) / half


def quantile(weighted, share):
    """The value below which that share of the weights lies."""
    total = sum(weight for _, weight in weighted)
    below = 0.0
    for value, weight in sorted(weighted):
        below += weight
        if below >= share * total:
            return value
    return float("nan")


def line(name, groups):
    rows = [row for group in groups.values() for row in group]
    weighted = [(ratio(row), 1 / len(group))
                for group in groups.values() for row in group]
    inside = 100 * sum(row["covered"] for row in rows) / len(rows)
    inside_95 = 100 * sum(row["covered_95"] for row in rows) / len(rows)
    of_80 = quantile(weighted, 0.8)
    return [name, str(len(rows)), str(len(groups)), f"{inside:.0f}",
            f"{inside_95:.0f}", f"{of_80:.2f}",
            f"{quantile(weighted, 0.95) / of_80:.2f}"]


def likelihood(pairs, tau):
    """The log density of the errors of pairs of a device and a source.

    Of a pair they are N(0, S + v 1 1^T), S what the interval says without the
    source, v = tau^2 (1 + 1 / k), k the sources that predicted it.
    """
    total = 0.0
    for (device, _), rows in pairs.items():
        others = sum(of == device for of, _ in pairs) - 1
        v = tau ** 2 * (1 + 1 / others)
        own = [row["log_sigma"] ** 2 - row["source_log_sigma"] ** 2
               for row in rows]
        errors = [math.log(row["measured_s"] / row["predicted_s"])
                  for row in rows]
        weight = sum(1 / s for s in own)
        pull = sum(e / s for e, s in zip(errors, own))
        total -= 0.5 * (sum(math.log(s) + e * e / s
                            for e, s in zip(errors, own))
                        + math.log(1 + v * weight)
                        - v * pull ** 2 / (1 + v * weight))
    return total


def from_other_sources(given):
    """Rows of devices that several sources measured, each by the others."""
    return given.program.json(
        "validate", *(str(given.tables / f"{name}.csv") for name in LEFT_OUT),
        "--protocol", "leave-source-out")["rows"]


def left_out_sources(given):
    """Rows of one device by device and by the source that was left out."""
    pairs = collections.defaultdict(list)
    for row in from_other_sources(given):
        if row["devices"] == 1:
            pairs[row["device"], row["measured_by"]].append(row)
    return pairs


def shipped_tau():
    text = (ROOT / "hardware/kinds/gpu.yaml").read_text(encoding="utf-8")
    return re.search(r"sources: \{ sigma: ([\d.]+)", text)[1]


def source_row(device, source, rows):
    errors = [math.log(row["measured_s"] / row["predicted_s"]) for row in rows]
    inside = 100 * sum(row["covered"] for row in rows) / len(rows)
    return [device, source, str(len(rows)),
            f"{100 * statistics.mean(errors):+.0f}",
            f"{100 * statistics.pstdev(errors):.0f}", f"{inside:.0f}"]


def sources(given):
    """Every source of a device predicted from the others; the likeliest tau."""
    pairs = left_out_sources(given)
    tau = max((step / 1000 for step in range(0, 500)),
              key=lambda tau: likelihood(pairs, tau))
    above = likelihood(pairs, tau) - likelihood(pairs, 0.0)
    return [
        f"Likeliest tau: {tau:.3f}, of {len(pairs)} pairs; the log likelihood "
        f"is {above:.0f} above that of 0.", f"{shipped_tau()} ships.", "",
        *table(["device", "left out", "rows", "error, %", "scatter, %",
                "inside 80 %, %"], "llrrrr",
               [source_row(*pair, rows)
                for pair, rows in sorted(pairs.items())])]


def summary(given, tables, protocols, name_of):
    """A line for each name that rows have; a row without one does not count."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for protocol in protocols:
        for name in tables:
            answer = given.program.json(
                "validate", str(given.tables / f"{name}.csv"),
                "--protocol", protocol)
            for row in answer["rows"]:
                several = "several" if row["devices"] > 1 else "one"
                line_name = name_of(row, protocol, name, several)
                if line_name:
                    found[line_name][name, row["device"], several].append(row)
    return table(["rows of", "rows", "groups", "inside 80 %, %", "95 %, %",
                  "80 % below", "95 / 80"],
                 "lrrrrrr", [line(*item) for item in sorted(found.items())])


def by_protocol(row, protocol, name, several):
    return f"{protocol}, {row['grade']}, {several}"


def by_table(row, protocol, name, several):
    if row["fitted"]:
        return None  # a fit that ships has it
    seen = "" if row["source_seen"] else ", source unseen"
    return f"{name}, {row['grade']}{seen}"


def body(given):
    return [
        "## Chosen on: left out of five tables\n",
        *summary(given, LEFT_OUT, PROTOCOLS, by_protocol),
        "\n## Sources\n", *sources(given),
        "\n## What is alike\n", *alike(given),
        "\n## Tables that no fit is made from: as shipped\n",
        *summary(given, OTHERS, ["as-shipped"], by_table)]


PAGES = [Page("intervals", "How wide the intervals are", INTRODUCTION, body,
              needs_tables=True)]
