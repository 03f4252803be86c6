#!/usr/bin/env python3
"""How wide 80 % intervals would have to be, and docs/results/intervals.md.

  docs/intervals.py --trainfare build/release/bin/trainfare --tables FOLDER

A row's ratio is |log(measured / predicted)| over half its interval, in
logarithms. By grade, and for one device and several, this prints which ratio
80 % of the rows stay below, every device of a table counting alike: what the
interval would have to be multiplied by so that 80 % held, given the factors
that the program has now (width_extrapolated and width_datasheet of
hardware/catalog/kind_facts.h, `intervals:` of hardware/kinds/*.yaml, and what ranks add in scenarios/job/estimate.cc). These
were chosen on the first part, whose devices or runs were left out.

The second part is of devices that several sources measured, each source
predicted from the others. It says how far all runs of a source are likeliest to
be off together, which is `sources:` of hardware/kinds/gpu.yaml.
"""

import collections
import math
import pathlib
import statistics
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from make import asked_tables, printed  # noqa: E402

LEFT_OUT = ["neusight_labels", "deepspeed_bert", "nvidia_dle_training",
            "lambda_deeplearning_benchmark", "optimum_habana_ci"]
PROTOCOLS = ["leave-device-out", "one-run-per-device", "leave-one-out"]
OTHERS = ["aws_neuron", "nvidia_dle_inference", "lightseq", "vtrain_gpt",
          "llm/finetune", "llm/fms_acceleration", "llm/google_tpu_gpu",
          "llm/llm_foundry_mpt", "llm/mlperf_llm", "llm/mlperf_packed_bert",
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
    return (f"| {name} | {len(rows)} | {len(groups)} | {inside:.0f} "
            f"| {quantile(weighted, 0.8):.2f} |")


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


def sources(program, folder):
    """Every source of a device predicted from the others; the likeliest tau."""
    answer = program.json(
        "validate", *(str(folder / f"{table}.csv") for table in LEFT_OUT),
        "--protocol", "leave-source-out")
    pairs = collections.defaultdict(list)
    for row in answer["rows"]:
        if row["devices"] == 1:
            pairs[row["device"], row["measured_by"]].append(row)
    tau = max((step / 1000 for step in range(0, 500)),
              key=lambda tau: likelihood(pairs, tau))
    ratio_of = likelihood(pairs, tau) - likelihood(pairs, 0.0)
    lines = ["| device | left out | rows | error, % | scatter, % | inside 80 %, % |",
             "| --- | --- | ---: | ---: | ---: | ---: |"]
    for (device, source), rows in sorted(pairs.items()):
        errors = [math.log(row["measured_s"] / row["predicted_s"])
                  for row in rows]
        inside = 100 * sum(row["covered"] for row in rows) / len(rows)
        lines.append(f"| {device} | {source} | {len(rows)} "
                     f"| {100 * statistics.mean(errors):+.0f} "
                     f"| {100 * statistics.pstdev(errors):.0f} "
                     f"| {inside:.0f} |")
    return "\n".join([
        f"Likeliest tau: {tau:.3f}, of {len(pairs)} pairs; the log likelihood "
        f"is {ratio_of:.0f} above that of 0.", "", *lines])


def summary(program, folder, tables, protocols, by_table):
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for protocol in protocols:
        for table in tables:
            answer = program.json("validate", str(folder / f"{table}.csv"),
                                  "--protocol", protocol)
            for row in answer["rows"]:
                if by_table and row["fitted"]:
                    continue  # a fit that ships has it
                several = "several" if row["devices"] > 1 else "one"
                seen = "" if row["source_seen"] else ", source unseen"
                name = (f"{table}, {row['grade']}{seen}" if by_table else
                        f"{protocol}, {row['grade']}, {several}")
                found[name][table, row["device"], several].append(row)
    head = ["| rows of | rows | groups | inside 80 %, % | 80 % below |",
            "| --- | ---: | ---: | ---: | ---: |"]
    return "\n".join(head + [line(*item) for item in sorted(found.items())])


def main():
    program, tables = asked_tables(__doc__)
    printed("intervals.md", [
        "## Chosen on: left out of five tables", "",
        summary(program, tables, LEFT_OUT, PROTOCOLS, False), "",
        "## Sources", "", sources(program, tables), "",
        "## Tables that no fit is made from: as shipped", "",
        summary(program, tables, OTHERS, ["as-shipped"], True)],
        "docs/intervals.py --tables FOLDER")


if __name__ == "__main__":
    main()
