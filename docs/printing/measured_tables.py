"""docs/results/tables.md and untouched.md: errors of tables of measurements."""

import csv
import re
import statistics
import sys

from .pages import Page, ROOT, filled, grouped, percentile, table

TABLES = ["neusight_labels", "deepspeed_bert", "nvidia_dle_training",
          "lambda_deeplearning_benchmark", "nvidia_dle_inference",
          "lightseq", "aws_neuron", "optimum_habana_ci", "vtrain_gpt",
          "mlperf_training_bert"]
# Tables whose devices ran on several numbers of hosts.
OF_HOSTS = ["aws_neuron", "mlperf_training_bert", "llm/mlperf_packed_bert",
            "llm/llm_foundry_mpt", "llm/nanotron_h100"]
# Tables with devices that ran models of several sizes, and of one size so many
# workloads that five can be drawn of them.
OF_SIZES = ["vtrain_gpt", "nvidia_dle_training", "nvidia_dle_inference",
            "lambda_deeplearning_benchmark", "aws_neuron", "llm/finetune",
            "llm/fms_acceleration", "llm/llm_foundry_mpt", "llm/pretrain_misc"]
PROTOCOLS = ["as-shipped", "leave-one-out", "leave-device-out",
             "one-run-per-device", "k-runs=5"]
# What was chosen on the rows of which table.
CHOSEN = ROOT / "calibrate/records/import/tables_chosen.csv"
# What the page of untouched tables said of each while nothing was chosen on
# it: the first time and the last, with the commit that made it. A reading
# cannot be repeated once its rows were looked at, so it is kept.
FIRST_READINGS = ROOT / "docs/printing/first_readings.csv"

BY_PROTOCOL = """
`trainfare validate TABLE.csv --protocol PROTOCOL` ([protocols](../guide/commands.md#validate)). A
cell: absolute error in percent, mean, median, what 90 % of the rows stay below, worst; behind the
semicolon, percent of the rows inside their 80 and 95 % intervals. `as-shipped` is no test of tables
whose rows made the shipped [fits](fits.md). [What misses, and why](../models/misses.md).
"""
UNTOUCHED = """
Errors of tables on which a fit, a form or a prior was chosen are too good. Here are those of the
others, by `trainfare validate TABLE.csv` as shipped ([what
misses](../models/misses.md#in-tables)), and those that the rest had while nothing was chosen on
them. `calibrate/records/import/tables_chosen.csv` says what was chosen on which; in doubt, it was.
"""


def validated(given, name, protocol):
    """What `validate` says of a table; SystemExit where it refuses."""
    return given.program.json("validate", str(given.tables / f"{name}.csv"),
                              "--protocol", protocol)


def cell(answer):
    return cell_of(answer["rows"]) if answer else "-"


def cell_of(rows):
    errors = [abs(row["error_percent"]) for row in rows]
    return (f"{statistics.mean(errors):.1f}, {statistics.median(errors):.1f}, "
            f"{percentile(errors, 0.9):.1f}, {max(errors):.0f}; "
            + ", ".join(f"{share:.0f}" for share in shares(rows)))


def count_of(answer):
    return [str(answer["overall"]["n"]), str(len(answer["skipped"]))]


def cells_of(answers):
    """Rows by table, grade and protocol."""
    cells = {}
    for (name, protocol), answer in answers.items():
        for row in answer["rows"]:
            cells.setdefault((name, row["grade"], protocol), []).append(row)
    return cells


def by_grade(cells, protocols):
    """Rows of each grade inside their intervals, a line a table and grade."""
    return [[name, grade, *(inside(cells.get((name, grade, p)))
                            for p in protocols)]
            for name in TABLES
            for grade in sorted({of[1] for of in cells
                                 if of[0] == name and of[2] in protocols})]


def shares(rows):
    """Percent of the rows inside their 80 and their 95 % interval."""
    return [100 * sum(row[key] for row in rows) / len(rows)
            for key in ("covered", "covered_95")]


def inside(rows):
    if not rows:
        return "-"
    of_80, of_95 = shares(rows)
    return f"{len(rows)}: {of_80:.0f}, {of_95:.0f}"


def in_bands(rows):
    """Whether rounded shares are in the bands that intervals aim at."""
    of_80, of_95 = (round(share) for share in shares(rows))
    return 76 <= of_80 <= 86 and 93 <= of_95 <= 98


def large_cells(cells):
    """Cells of a hundred rows and more, each with its commonest device apart."""
    large = {key: rows for key, rows in cells.items() if len(rows) >= 100}
    lines = {}
    for (name, grade, protocol), rows in sorted(large.items()):
        devices = [row["device"] for row in rows]
        most = max(sorted(set(devices)), key=devices.count)
        apart = [[row for row in rows if (row["device"] == most) == is_most]
                 for is_most in (True, False)]
        lines.setdefault(protocol, []).append(
            [name, grade, inside(rows), most, *map(inside, apart)])
    by_protocol = "; ".join(
        f"{protocol} " + inside([row for key, rows in cells.items()
                                 if key[2] == protocol for row in rows])
        for protocol in PROTOCOLS)
    return [
        filled(f"Of {len(cells)} cells "
               f"{sum(map(in_bands, cells.values()))} are inside both bands, "
               "76 to 86 and 93 to 98 %, of the "
               f"{len(large)} of a hundred rows and more "
               f"{sum(map(in_bands, large.values()))}. All rows of a protocol: "
               f"{by_protocol}. The large cells, the device with most rows "
               "apart:"),
        *(line for protocol in PROTOCOLS if protocol in lines
          for line in ["", f"`{protocol}`:", "", *table(
              ["table", "grade", "rows", "most", "of it", "of others"],
              "llllll", lines[protocol])])]


def by_protocol(given):
    """A row for each table, a column for each protocol; in parts, so that lines
    stay short."""
    answers, refused = {}, []
    for name in TABLES:
        for protocol in PROTOCOLS:
            try:
                answers[name, protocol] = validated(given, name, protocol)
            except SystemExit as refusal:
                refused.append([f"{name}, {protocol}", reason_of(refusal)])
        print(name, file=sys.stderr, flush=True)
    lines = [
        "## Fits that saw the device\n",
        *table(["table", "rows", "not predicted", *PROTOCOLS[:2]], "lrrll",
               [[name, *count_of(answers[name, PROTOCOLS[0]]),
                 *(cell(answers.get((name, p))) for p in PROTOCOLS[:2])]
                for name in TABLES]),
        "\n## Fits that saw little of it\n",
        *table(["table", *PROTOCOLS[2:4]], "lll",
               [[name, *(cell(answers.get((name, p))) for p in PROTOCOLS[2:4])]
                for name in TABLES]),
        "",
        *table(["table", PROTOCOLS[4]], "ll",
               [[name, cell(answers.get((name, PROTOCOLS[4])))]
                for name in TABLES])]
    cells = cells_of(answers)
    lines += [
        "\n## Over other numbers of hosts\n",
        *table(["table", "rows", "not predicted", "leave-hosts-out"], "lrrl",
               of_hosts(given, refused)),
        "\n## A model of another size\n",
        filled("Each size of a model by a fit to the device's rows of other "
               "sizes, alone and with five of its own that are drawn; both of "
               "the rows that were not drawn, where five leave some."),
        "",
        *table(["table", "rows", "leave-model-out", "model-runs=5"], "lrll",
               of_sizes(given)),
        "\n## Inside 80 and 95 %, by grade\n",
        "A cell: rows, percent inside their 80 %, inside their 95 % "
        "interval.\n",
        *table(["table", "grade", *PROTOCOLS[:2]], "llll",
               by_grade(cells, PROTOCOLS[:2])),
        "",
        *table(["table", "grade", *PROTOCOLS[2:]], "lllll",
               by_grade(cells, PROTOCOLS[2:])),
        "", *large_cells(cells)]
    return lines + (["", *grouped(refused)] if refused else [])


def of_hosts(given, refused):
    """A row for each table of several numbers of hosts."""
    lines = []
    for name in OF_HOSTS:
        try:
            answer = validated(given, name, "leave-hosts-out")
            lines.append([name, *count_of(answer), cell(answer)])
        except SystemExit as refusal:
            refused.append([f"{name}, leave-hosts-out", reason_of(refusal)])
    return lines


def of_sizes(given):
    """A row for each table of models of several sizes."""
    lines = []
    for name in OF_SIZES:
        drawn = validated(given, name, "model-runs=5")
        labels = {row["label"] for row in drawn["rows"]}
        without = [row for row in
                   validated(given, name, "leave-model-out")["rows"]
                   if row["label"] in labels]
        if len(without) != len(drawn["rows"]):
            sys.exit(f"{name}: expected the same rows with and without five")
        lines.append([name, str(len(without)), cell_of(without),
                      cell(drawn)])
    return lines


def said_by(refusal):
    return re.sub(r"\s+", " ", str(refusal).split("trainfare: ")[-1])


def reason_of(refusal):
    """The commonest reason why no row is used, of the refusal's list."""
    said = said_by(refusal)
    listed = re.search(r"rows are not used: (.*)", said)
    counts = [(int(n), why) for n, why in
              re.findall(r"(\d+) ([^,;:0-9][^,;:]*)", listed[1] if listed
                         else "")]
    return max(counts)[1].strip() if counts else said.split(": ", 1)[-1]


def refusals(given, path):
    """Of a table that has no row to use: how many rows, and the whole reason."""
    try:
        given.program.json("validate", path)
    except SystemExit as refusal:
        listed = said_by(refusal).split("rows are not used: ", 1)[-1]
        return [(int(n), why.strip()) for n, why in
                re.findall(r"(\d+) (.*?)(?=, \d+ |$)", listed)]
    sys.exit(f"{path}: expected no row to be used")


def what_was_chosen(tables):
    """A row for each table that is there."""
    with open(CHOSEN, encoding="utf-8", newline="") as file:
        chosen = {row["table"]: row for row in csv.DictReader(file)}
    here = {str(found.relative_to(tables).with_suffix(""))
            for found in tables.rglob("*.csv")}
    if here != set(chosen):
        sys.exit(f"{CHOSEN}: expected the tables of {tables}, got others: "
                 f"{sorted(here ^ set(chosen))}")
    return sorted(chosen.items())


def untouched_row(name, answer):
    e = answer["overall"]
    return [name, *count_of(answer),
            *(f"{e[key]:.1f}" for key in ("median", "p90", "max")),
            f"{e['coverage']:.0f}"]


def as_they_arrived(chosen):
    """Tables as this page had them before anything was chosen on their rows,
    and what it was later."""
    with open(FIRST_READINGS, encoding="utf-8", newline="") as file:
        readings = list(csv.DictReader(file))
    of_what = {r["table"]: chosen[r["table"]]["what"] for r in readings
               if chosen[r["table"]]["chosen_on_these_rows"] != "no"}
    return [
        "\n## As they arrived\n",
        filled("The first and the last reading of this page of each table "
               "before anything was chosen on its rows, at the commit that made "
               "it. What they are now is on [their page](tables.md) and on "
               "[that of decoders](llm.md), and no test any more.") + "\n",
        *table(["table", "reading", "at", "rows", "not predicted", "median, %",
                "90 % below, %", "worst, %", "inside 80 %, %"], "lllrrrrrr",
               [[r["table"], f"{r['reading']}, {r['date']}", r["at"],
                 *(r[key] for key in ("rows", "not_predicted", "median",
                                      "below_90", "worst", "inside_80"))]
                for r in readings]),
        "\nChosen on them later:\n",
        *(filled(f"- {name}: {what}", "  ") for name, what in of_what.items())]


def untouched(given):
    """As shipped, the tables on whose rows nothing was chosen."""
    read, unread, touched = [], [], []
    for name, row in what_was_chosen(given.tables):
        if row["chosen_on_these_rows"] != "no":
            touched.append([name, row["chosen_on_these_rows"]])
            continue
        try:
            read.append(untouched_row(name,
                                      validated(given, name, PROTOCOLS[0])))
        except SystemExit as refusal:
            unread.append([name, reason_of(refusal)])
    return [
        "## As they arrive\n",
        *table(["table", "rows", "not predicted", "median, %", "90 % below, %",
                "worst, %", "inside 80 %, %"], "lrrrrrr", read),
        "",
        filled("These tables have no step time that trainfare can predict. Why "
               "most of their rows are left out, and which tables:"),
        "",
        *grouped(unread),
        *as_they_arrived(dict(what_was_chosen(given.tables))),
        "\n## Chosen on them\n", *grouped(touched)]


PAGES = [Page("tables", "Measurements of others, table by table", BY_PROTOCOL,
              by_protocol, needs_tables=True),
         Page("untouched", "Tables on which nothing was chosen", UNTOUCHED,
              untouched, needs_tables=True)]
