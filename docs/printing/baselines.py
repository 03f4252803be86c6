"""docs/results/baselines.md: predictions beside two simpler models of a step.

Both stand in `validate`'s rows: each kernel at the datasheet's peak or at its
bandwidth (a roofline), and model FLOPs at the peak, which over one MFU is a rule
of thumb. That MFU is the median of the table's other devices, so that no model
of the three has seen a row of the device that it predicts.
"""

import statistics

from .measured_tables import TABLES
from .pages import Page, table

PROTOCOL = "leave-device-out"
ABOUT = """
Means of the absolute errors in percent of steps on devices that no model of the three has seen
(`trainfare validate TABLE.csv --protocol leave-device-out --format json`): of the prediction; of a
roofline, each kernel at the datasheet's peak of its products or at its bandwidth (`roofline_s`); of
one MFU, model FLOPs at the peak (`at_peak_s`) over the median MFU of the table's other devices.
What a network adds is in the prediction alone.
[What misses, and why](../models/misses.md).
"""
AIMS = {"neusight_labels": "8", "nvidia_dle_training": "9",
        "nvidia_dle_inference": "12",
        "lambda_deeplearning_benchmark": "9, several 12",
        "optimum_habana_ci": "15"}


def others_mfu(rows, device):
    """The median MFU of the other devices; None: there is none."""
    known = [row["at_peak_s"] / row["measured_s"] for row in rows
             if row["device"] != device]
    return statistics.median(known) if known else None


def steps_of(answer):
    """Whole steps, with what one MFU makes of each."""
    rows = [row for row in answer["rows"] if "at_peak_s" in row]
    mfu = {device: others_mfu(rows, device)
           for device in {row["device"] for row in rows}}
    for row in rows:
        share = mfu[row["device"]]
        row["one_mfu_s"] = row["at_peak_s"] / share if share else None
    return rows


def mean_error(rows, key):
    errors = [100 * abs(row[key] / row["measured_s"] - 1) for row in rows
              if row[key] is not None]
    return f"{statistics.mean(errors):.1f}" if errors else "-"


def line(names, rows):
    return [*names, str(len(rows)),
            *(mean_error(rows, key)
              for key in ("predicted_s", "roofline_s", "one_mfu_s"))]


def parts(rows, *keys):
    """Rows by what these keys say, in order."""
    named = {}
    for row in rows:
        named.setdefault(tuple(str(row[key]) for key in keys), []).append(row)
    return sorted(named.items())


def beside(given):
    steps = []
    for name in TABLES:
        answer = given.program.json("validate",
                                    str(given.tables / f"{name}.csv"),
                                    "--protocol", PROTOCOL)
        for row in steps_of(answer):
            steps.append({**row, "table": name,
                          "several": "several" if row["devices"] > 1
                          else "one"})
    columns = ["rows", "prediction", "roofline", "one MFU"]

    def section(title, headings, keys):
        return [f"\n## {title}\n",
                *table([*headings, *columns], "l" * len(keys) + "rrrr",
                       [line(names, rows)
                        for names, rows in parts(steps, *keys)])]
    tables = [[*line(names, rows), AIMS.get(names[0], "-")]
              for names, rows in parts(steps, "table", "several")]
    return ["## By table, on one device and on several\n",
            *table(["table", "devices", *columns, "aim"], "llrrrrl", tables),
            *section("By precision", ["table", "precision"],
                     ["table", "precision"]),
            *section("By device", ["device"], ["device"]),
            *section("By model", ["model"], ["model"])]


PAGES = [Page("baselines", "Beside a roofline and one MFU", ABOUT, beside,
              needs_tables=True)]
