"""docs/results/baselines.md: predictions beside two simpler models of a step.

Both stand in `validate`'s rows: each kernel at the datasheet's peak or at its
bandwidth (a roofline), and model FLOPs at the peak, which over one MFU is a rule
of thumb. That MFU is the median of the table's other devices, so that no model
of the three has seen a row of the device that it predicts.

Peers say of their own errors what they publish; rows of the same tables stand beside them.
"""

import csv
import statistics

from .intervals import LEFT_OUT, from_other_sources
from .llm_tables import FOLDER
from .measured_tables import TABLES, validated, what_was_chosen
from .pages import Page, filled, table

PROTOCOL = "leave-device-out"
ABOUT = """
Means of the absolute errors in percent of steps on devices that no model of the three has seen
(`trainfare validate TABLE.csv --protocol leave-device-out --format json`): of the prediction; of a
roofline, each kernel at the datasheet's peak of its products or at its bandwidth (`roofline_s`); of
one MFU, model FLOPs at the peak (`at_peak_s`) over the median MFU of the table's other devices.
What a network adds is in the prediction alone. Tables of `llm/` are of [today's decoders](llm.md).
[What misses, and why](../models/misses.md).
"""
# Means of NeuSight's own errors (sitar-lab/NeuSight, scripts/asplos/summary/summary.csv), of all its
# rows of a kind: whose devices, what was run, mean, rows.
NEUSIGHT = [("NVIDIA", "pretrain", "7.3", "26"),
            ("NVIDIA", "inference", "9.7", "54"),
            ("AMD", "pretrain", "15.7", "15")]
NEUSIGHT_TABLE = "neusight_labels"
ABOUT_NEUSIGHT = """
## Beside what NeuSight publishes of itself

Its mean errors of whole steps (sitar-lab/NeuSight, `scripts/asplos/summary/summary.csv`), of all
its rows, and ours of those that `neusight_labels` has: H100, L4 and other AMD cards are not among
them. Here the rows of each device are left out of what predicts it.
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


def by_neusight(given, steps):
    """Lines of NeuSight's kinds of rows, ours of one device beside its own."""
    with open(given.tables / f"{NEUSIGHT_TABLE}.csv", newline="",
              encoding="utf-8") as file:
        told = list(csv.DictReader(file))
    kinds = {}
    for row in steps:
        if row["table"] != NEUSIGHT_TABLE or row["devices"] > 1:
            continue
        line_number = int(row["label"].rsplit(":", 1)[1])
        source = told[line_number - 2]
        maker = "AMD" if source["device"].startswith("AMD") else "NVIDIA"
        kinds.setdefault((maker, source["task"]), []).append(row)
    return [[maker, task, theirs, rows, mean_error(ours, "predicted_s"),
             str(len(ours))]
            for maker, task, theirs, rows in NEUSIGHT
            for ours in [kinds.get((maker, task), [])]]


def without_neusight(given, steps):
    """What is said of its rows by fits to the others' rows alone."""
    ours = {row["label"]: row for row in steps
            if row["table"] == NEUSIGHT_TABLE}
    others = {row["label"]: row for row in from_other_sources(given)
              if row["label"] in ours}
    rows = list({**ours, **others}.values())
    return filled(
        f"Without NeuSight's rows all {len(rows)} are "
        f"{mean_error(rows, 'predicted_s')} % off in the mean: "
        f"{mean_error(list(others.values()), 'predicted_s')} the "
        f"{len(others)} of devices that others measured, by a fit to their "
        f"rows (`--protocol leave-source-out` of {', '.join(LEFT_OUT)}), the "
        "rest as above.")


def answers_of(given):
    """By table; those of today's decoders that have no step are left out
    (untouched.md says why)."""
    for name in TABLES:
        yield name, validated(given, name, PROTOCOL)
    for name, _ in what_was_chosen(given.tables):
        if name.startswith(FOLDER):
            try:
                yield name, validated(given, name, PROTOCOL)
            except SystemExit:
                continue


def beside(given):
    steps = []
    for name, answer in answers_of(given):
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
            *ABOUT_NEUSIGHT.splitlines(), "",
            *table(["devices", "work", "NeuSight", "rows", "prediction",
                    "rows"], "llrrrr", by_neusight(given, steps)),
            "", without_neusight(given, steps),
            *section("By precision", ["table", "precision"],
                     ["table", "precision"]),
            *section("By device", ["device"], ["device"]),
            *section("By model", ["model"], ["model"])]


PAGES = [Page("baselines", "Beside a roofline and one MFU", ABOUT, beside,
              needs_tables=True)]
