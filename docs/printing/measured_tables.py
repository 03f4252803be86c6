"""docs/results/tables.md and untouched.md: errors of tables of measurements."""

import csv
import re
import sys

from .pages import Page, ROOT, filled, grouped, table

TABLES = ["neusight_labels", "deepspeed_bert", "nvidia_dle_training",
          "lambda_deeplearning_benchmark", "nvidia_dle_inference",
          "lightseq", "aws_neuron", "optimum_habana_ci", "vtrain_gpt",
          "mlperf_training_bert"]
# Tables whose devices ran on several numbers of hosts.
OF_HOSTS = ["aws_neuron", "mlperf_training_bert", "llm/mlperf_packed_bert",
            "llm/llm_foundry_mpt", "llm/nanotron_h100"]
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
    if not answer:
        return "-"
    e = answer["overall"]
    return (f"{e['mape']:.1f}, {e['median']:.1f}, {e['p90']:.1f}, "
            f"{e['max']:.0f}; {e['coverage']:.0f}, {e['coverage_95']:.0f}")


def count_of(answer):
    return [str(answer["overall"]["n"]), str(len(answer["skipped"]))]


def by_grade(answers, protocols):
    """Rows of each grade inside their intervals, a line a table and grade."""
    lines = []
    for name in TABLES:
        of_grade = {}
        for protocol in protocols:
            answer = answers.get((name, protocol))
            for row in answer["rows"] if answer else []:
                key = row["grade"], protocol
                of_grade.setdefault(key, []).append(row)
        for grade in sorted({grade for grade, _ in of_grade}):
            lines.append([name, grade, *(inside(of_grade.get((grade, p)))
                                         for p in protocols)])
    return lines


def inside(rows):
    if not rows:
        return "-"
    share = [100 * sum(row[key] for row in rows) / len(rows)
             for key in ("covered", "covered_95")]
    return f"{len(rows)}: {share[0]:.0f}, {share[1]:.0f}"


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
    lines += [
        "\n## Over other numbers of hosts\n",
        *table(["table", "rows", "not predicted", "leave-hosts-out"], "lrrl",
               of_hosts(given, refused)),
        "\n## Inside 80 and 95 %, by grade\n",
        "A cell: rows, percent inside their 80 %, inside their 95 % "
        "interval.\n",
        *table(["table", "grade", *PROTOCOLS[:2]], "llll",
               by_grade(answers, PROTOCOLS[:2])),
        "",
        *table(["table", "grade", *PROTOCOLS[2:]], "lllll",
               by_grade(answers, PROTOCOLS[2:]))]
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


def reason_of(refusal):
    """The commonest reason why no row is used, of the refusal's list."""
    said = re.sub(r"\s+", " ", str(refusal).split("trainfare: ")[-1])
    listed = re.search(r"rows are not used: (.*)", said)
    counts = [(int(n), why) for n, why in
              re.findall(r"(\d+) ([^,;:0-9][^,;:]*)", listed[1] if listed
                         else "")]
    return max(counts)[1].strip() if counts else said.split(": ", 1)[-1]


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
        "\nNo row of these tells a step's time of one device or of data "
        "parallel ones; most are\n",
        *grouped(unread),
        *as_they_arrived(dict(what_was_chosen(given.tables))),
        "\n## Chosen on them\n", *grouped(touched)]


PAGES = [Page("tables", "Measurements of others, table by table", BY_PROTOCOL,
              by_protocol, needs_tables=True),
         Page("untouched", "Tables on which nothing was chosen", UNTOUCHED,
              untouched, needs_tables=True)]
