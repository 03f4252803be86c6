"""How alike what a formula gets wrong is from place to place.

`errors:` of hardware/kinds/any.yaml has four numbers. Each is tried beside
others in a copy of what ships, the other three as they are, and the likeliest
is the one by which rows that were left out have the greatest density,
log N(log(measured / predicted); 0, sigma^2), sigma as the answer says: the mean
over a table's rows, every table counting alike (Rasmussen & Williams 2006,
5.4.2).
"""

import contextlib
import math
import pathlib
import re
import shutil
import statistics
import tempfile

from .pages import ROOT, table
from .program import Program

KIND = "hardware/kinds/any.yaml"
MEASURED = ["neusight_labels", "deepspeed_bert", "nvidia_dle_training",
            "lambda_deeplearning_benchmark", "nvidia_dle_inference", "lightseq",
            "aws_neuron", "optimum_habana_ci", "vtrain_gpt",
            "mlperf_training_bert"]
UNSEEN = ["nvidia_dle_inference", "lightseq", "vtrain_gpt", "llm/finetune",
          "llm/fms_acceleration", "llm/llm_foundry_mpt", "llm/mlperf_packed_bert",
          "llm/nanotron_h100", "llm/nvidia_nemo", "llm/pretrain_misc",
          "llm/torchtitan"]
# By name: values beside the one that ships, and of which rows.
TRIED = {
    "reach": ([2.5, 6], [("leave-one-out", MEASURED)]),
    "other_settings": ([0.1, 0.5], [("leave-one-out", MEASURED)]),
    "beyond": ([0, 0.06, 0.1], [("as-shipped", UNSEEN), ("k-runs=5", MEASURED)]),
    "power_reach": ([1.2, 2, 3], [("added-runs=5", ["llm/zeus_bert_power"])]),
}


def shipped():
    """The numbers that ship, by name."""
    line = re.search(r"^errors: \{(.*)\}$", (ROOT / KIND).read_text(encoding="utf-8"),
                     re.MULTILINE)[1]
    return {name: float(value) for name, value in re.findall(r"(\w+): ([\d.]+)", line)}


@contextlib.contextmanager
def with_errors(program, **changed):
    """The program in a folder of its own, where what ships has other numbers."""
    numbers = {**shipped(), **changed}
    line = ", ".join(f"{name}: {value:g}" for name, value in numbers.items())
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "bin").mkdir()
        path = shutil.copy(program.path, root / "bin")
        share = root / "share" / "trainfare"
        for name in ("hardware", "calibrate", "scenarios"):
            shutil.copytree(ROOT / name, share / name,
                            ignore=shutil.ignore_patterns("*.cc", "*.h"))
        kind = share / KIND
        text = kind.read_text(encoding="utf-8")
        kind.write_text(re.sub(r"(?m)^errors: \{.*\}$", f"errors: {{ {line} }}", text),
                        encoding="utf-8")
        yield Program(path)


def density(rows):
    """Mean of the log density of rows that no fit has, without its constant."""
    logs = []
    for row in rows:
        if row["fitted"] or not row["log_sigma"]:
            continue
        error = math.log(row["measured_s"] / row["predicted_s"]) / row["log_sigma"]
        logs.append(-0.5 * error * error - math.log(row["log_sigma"]))
    return statistics.mean(logs), len(logs)


def densities(program, given, asked, found):
    """By protocol and table, the mean density and its rows: added to `found`
    where it has them not."""
    for protocol, names in asked:
        for name in names:
            if (protocol, name) not in found:
                found[protocol, name] = density(program.json(
                    "validate", str(given.tables / f"{name}.csv"),
                    "--protocol", protocol)["rows"])
    return {(protocol, name): found[protocol, name]
            for protocol, names in asked for name in names}


def compared(given, name, as_shipped):
    """A line for each value: by how much a row is likelier than as shipped."""
    values, asked = TRIED[name]
    ships = shipped()[name]
    found = {ships: densities(given.program, given, asked, as_shipped)}
    for value in values:
        with with_errors(given.program, **{name: value}) as program:
            found[value] = densities(program, given, asked, {})
    for value, by_table in sorted(found.items()):
        gains = [by_table[key][0] - found[ships][key][0] for key in by_table]
        better = sum(gain > 0 for gain in gains)
        yield [f"`{name}`", f"{value:g}", "ships" if value == ships else
               f"{100 * statistics.mean(gains):+.1f}",
               "-" if value == ships else f"{better} of {len(gains)}",
               str(sum(rows for _, rows in by_table.values()))]


def alike(given):
    as_shipped = {}
    return table(["number", "value", "log density of a row, 1/100", "tables better", "rows"],
                 "lrrrr", [line for name in TRIED for line in compared(given, name, as_shipped)])
