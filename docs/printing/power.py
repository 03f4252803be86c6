"""docs/results/power.md: power, and time and energy under limits of power."""

import csv
import pathlib
import statistics
import tempfile

from .pages import Page, table
from .program import Program

TABLE = "llm/zeus_bert_power"
ABOUT = """
Epochs of BERT-base on SQuAD under limits of the board's power, [their lengths
assumed](../models/misses.md#in-tables). *Over full power*: a time over that of the same batch
within the board's own limit. *Two limits*: a fit to time and power of all batches within all and
half of the board's own limit; the other limits are predicted. A cell: mean and median absolute
error in percent. Clocks within a limit were [chosen in sight of
them](../models/gpu.md#under-a-limit-that-is-set), on V100 and A40.
"""


def errors_of(answer):
    """By device, of each run: errors of time, power and energy in percent, and
    what its time is to be compared with."""
    power = {row["label"]: row for row in answer["power"]["rows"]}
    runs = {}
    for row in answer["rows"]:
        if row["label"] not in power:
            continue
        drawn = power[row["label"]]
        runs.setdefault(row["device"], []).append({
            "batch": row["batch"], "limit": drawn["power_limit_w"],
            "ratio": row["predicted_s"] / row["measured_s"],
            "time": row["error_percent"],
            "power": drawn["power_error_percent"],
            "energy": drawn["energy_error_percent"]})
    return runs


def over_full_power(runs):
    """Errors of times over those of the same batch within the highest limit."""
    most = max(run["limit"] for run in runs)
    full = {run["batch"]: run["ratio"] for run in runs if run["limit"] == most}
    return [100 * (run["ratio"] / full[run["batch"]] - 1) for run in runs
            if run["limit"] < most and run["batch"] in full]


def cell(errors):
    sizes = [abs(error) for error in errors]
    return f"{statistics.mean(sizes):.1f}, {statistics.median(sizes):.1f}"


def line(device, protocol, runs, over):
    return [device, protocol, str(len(runs)), cell(over) if over else "-",
            *(cell([run[key] for run in runs])
              for key in ("time", "power", "energy"))]


def split(path, folder):
    """The table in two: all and half of each board's limit, and the others."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    most = {}
    for row in rows:
        if row["power_limit_w"]:
            most[row["device"]] = max(most.get(row["device"], 0),
                                      float(row["power_limit_w"]))

    def known(row):
        limit = row["power_limit_w"]
        return limit and float(limit) in (most[row["device"]],
                                          most[row["device"]] / 2)
    for name, keep in (("known", known), ("others", lambda r: not known(r))):
        with open(folder / f"{name}.csv", "w", encoding="utf-8",
                  newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(row for row in rows if keep(row))


def under_limits(given):
    path = given.tables / f"{TABLE}.csv"
    shipped = errors_of(given.program.json("validate", str(path)))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        split(path, folder)
        program = Program(given.program.path)
        for device in shipped:
            program.run(["calibrate", "--from", str(folder / "known.csv"),
                         "--device", device])
        fitted = errors_of(program.json("validate",
                                        str(folder / "others.csv")))
    lines = []
    for device, runs in sorted(shipped.items()):
        lines.append(line(device, "as shipped", runs, over_full_power(runs)))
        lines.append(line(device, "two limits", fitted[device], None))
    every = [run for runs in fitted.values() for run in runs]
    lines.append(line("all", "two limits", every, None))
    return ["## Under limits\n",
            *table(["device", "known", "runs", "over full power", "time",
                    "power", "energy"], "llrllll", lines),
            "\nThe aim of two limits is 4 % of time and 5 % of energy."]


PAGES = [Page("power", "Power and energy", ABOUT, under_limits,
              needs_tables=True)]
