"""docs/results/power.md: power, and time and energy under limits of power."""

import csv
import pathlib
import statistics
import tempfile

from .measured_tables import refusals
from .pages import Page, filled, table
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


# Of MLPerf's servers: what a run is called, the folder of its readings, and the
# table and folder that tell its steps; the last two of another's, where its own
# leave the batch open.
READINGS = "llm/mlperf_power"
SMC, LENOVO = "1xSMC-H100-SXM-80GB", "SR780aV3-8xB200_SXM_180GB"
SERVERS = [
    ("BERT, 8 H100", f"smc-dc-power/results/{SMC}/bert/power",
     "mlperf_packed_bert", f"smc/results/{SMC}/bert"),
    ("LoRA of 70 B, 8 H100", f"smc-dc-power/results/{SMC}/llama2_70b_lora/power",
     "mlperf_lora", f"Lenovo/results/{LENOVO}/llama2_70b_lora"),
    ("LoRA of 70 B, 8 B200", f"Lenovo/results/{LENOVO}/llama2_70b_lora/power",
     "mlperf_lora", f"Lenovo/results/{LENOVO}/llama2_70b_lora")]
ABOUT_SERVERS = """
`{readings}` has readings of whole servers, of which `validate` uses none ("{reason}"). Of the
{rows} rows of a mean power the runs themselves are refused, too: {reasons}. Tables of their steps
say what {count} of the runs were (5 rows: most are read at the wall and behind the supplies), one
but for its batch: the H100s' LoRA is taken to have the B200s'. *Devices*: as answered; of a B200,
whose power at rest is not known, so that the answer is its limit, the share of it that an H100
draws in that job. Behind the supplies is {supplies:.3f} of what is drawn at the wall, where alone
the B200s are read (the median of {pairs} runs read in both places). *From the others*: devices, and
the mean of what the other two draw beside theirs.
"""


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def written(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, dict.fromkeys(
            key for row in rows for key in row), restval="")
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def behind_supplies(readings):
    """The share of what is drawn at the wall, of each run read in both places."""
    power = {row["source_file"]: float(row["value"]) for row in readings}
    return [power[name.replace("-ac-", "-dc-")] / watts
            for name, watts in power.items() if "-ac-" in name]


def devices_power(given, readings, supplies):
    """Of each server what is behind its supplies, and its devices' power."""
    rows, behind = [], []
    for _, read, name, steps in SERVERS:
        reading = next(row for row in readings if row["source_file"] == read)
        behind.append(float(reading["value"]) * (
            supplies if reading["measurement_type"] == "AC" else 1))
        step = next(row for row in rows_of(given.tables / f"llm/{name}.csv")
                    if row["source_file"] == steps and row["metric"] in (
                        "sequences_per_s_steady", "tokens_per_s"))
        step = {**step, **{key: reading[key] for key in
                           ("system_name", "device", "device_as_stated")}}
        rows += [step, {**step, "metric": "avg_power_w",
                        "value": f"{behind[-1] / 8:.1f}"}]
    with tempfile.TemporaryDirectory() as folder:
        answer = given.program.json("validate", written(
            pathlib.Path(folder) / "servers.csv", rows))
    of_bert, of_lora = (row["predicted_w"] for row in answer["power"]["rows"])
    tdp = {row["device"]: float(row["gpu_tdp_sum_w"]) / 8 for row in readings}
    share = of_lora / tdp["H100-SXM5-80GB"]
    return list(zip(behind, (8 * of_bert, 8 * of_lora,
                             8 * share * tdp["B200-SXM-180GB"])))


def whole_servers(given):
    """Each of MLPerf's servers from the other two."""
    path = given.tables / f"{READINGS}.csv"
    readings = [row for row in rows_of(path) if row["metric"] == "node_power_w"]
    with tempfile.TemporaryDirectory() as folder:
        # A time of any length: what is refused is the run.
        reasons = refusals(given, written(
            pathlib.Path(folder) / "steps.csv",
            [{**row, "metric": "step_s", "value": "1.5"} for row in readings]))
    supplies = behind_supplies(readings)
    found = devices_power(given, readings, statistics.median(supplies))
    beside = [behind - devices for behind, devices in found]
    lines, errors = [], []
    for at, (behind, devices) in enumerate(found):
        predicted = devices + statistics.mean(
            watts for other, watts in enumerate(beside) if other != at)
        errors.append(100 * (predicted / behind - 1))
        lines.append([SERVERS[at][0], *(f"{watts:.0f}" for watts in (
            behind, devices, beside[at], predicted)), f"{errors[-1]:+.1f}"])
    return [
        "\n## Whole servers\n",
        filled(ABOUT_SERVERS.format(
            readings=READINGS, rows=len(readings), count=len(SERVERS),
            reason=next(why for _, why in refusals(given, str(path))
                        if "power" in why),
            reasons="; ".join(f"{n} {why}" for n, why in reasons),
            supplies=statistics.median(supplies),
            pairs=len(supplies)).strip()) + "\n",
        *table(["run", "behind supplies, W", "devices", "beside them",
                "from the others", "error, %"], "lrrrrr", lines),
        "\n" + filled(
            f"The mean error is {statistics.mean(map(abs, errors)):.1f} % for 8 "
            "of the aim, of 3 runs of 20 rows, on which what products and other "
            "work draw on these devices [was chosen](../models/energy.md): no "
            "test. An answer has no server's own power.")]


def body(given):
    return [*under_limits(given), *whole_servers(given)]


PAGES = [Page("power", "Power and energy", ABOUT, body,
              needs_tables=True)]
