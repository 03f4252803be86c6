#!/usr/bin/env python3
"""Makes what the pages of docs/ and the README show of the program's output.

  docs/make.py --trainfare build/release/bin/trainfare [--tables FOLDER]
               [--untouched FOLDER]

An output is the block after a comment such as

  <!-- output: trainfare list models -->

and is put in anew, as a person sees it in a terminal of 100 columns; `output
lines=8:` keeps the first eight lines. With
--tables, the folder of the measurement tables, it also writes
docs/results/tables.md, and with --untouched docs/results/untouched.md. The
tables of docs/results/fits.md and of docs/results/validation_published.md are made each
time. The figures: docs/figures/make.py.
"""

import argparse
import csv
import datetime
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))
from program import Program  # noqa: E402

OUTPUT = re.compile(
    r"(<!-- output(?: lines=(\d+))?: trainfare (.*?) -->\n+)"
    r"```text\n(?:(?!```).*\n)*```")

TABLES = ["neusight_labels", "deepspeed_bert", "nvidia_dle_training",
          "lambda_deeplearning_benchmark", "nvidia_dle_inference",
          "lightseq", "aws_neuron", "optimum_habana_ci", "vtrain_gpt"]
PROTOCOLS = ["as-shipped", "leave-one-out", "leave-device-out",
             "one-run-per-device", "k-runs=5"]


def commit():
    """The last one that changed what predicts."""
    return subprocess.run(
        ["git", "-C", str(ROOT), "log", "-1", "--format=%h", "--", "model",
         "hardware", "calibrate", "scenarios", "main.cc"],
        capture_output=True, text=True, check=True).stdout.strip()


def machine():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def made_by(command):
    today = datetime.date.today().isoformat()
    return textwrap.fill(
        f"Made by `{command}` on {today} at {commit()}, on a processor "
        f"{machine()}.", 100, break_on_hyphens=False) + "\n"


def refresh(page, program, folder):
    def anew(match):
        text = program.shown(shlex.split(match[3]), cwd=folder).rstrip("\n")
        lines = text.split("\n")
        if match[2] and len(lines) > int(match[2]):
            lines = lines[:int(match[2])] + ["..."]
        body = "\n".join(line.rstrip() for line in lines)
        return f"{match[1]}```text\n{body}\n```"

    old = page.read_text(encoding="utf-8")
    new = OUTPUT.sub(anew, old)
    if new != old:
        page.write_text(new, encoding="utf-8")
        print(f"{page.relative_to(ROOT)}: outputs made anew")


def table(header, align, rows):
    """Lines of a Markdown table; `align` has l or r for each column."""
    bars = {"l": "---", "r": "---:"}
    return ["| " + " | ".join(cells) + " |"
            for cells in (header, [bars[a] for a in align], *rows)]


def grouped(rows):
    """A list item for each value of the second column: the names that it has."""
    names = {}
    for name, value in rows:
        names.setdefault(value, []).append(name)
    return [textwrap.fill(f"- {value}: {'; '.join(of)}", 99,
                          subsequent_indent="  ", break_long_words=False,
                          break_on_hyphens=False)
            for value, of in names.items()]


def page_of_tables(answers, skipped):
    """A row for each table, a column for each protocol of validate."""
    def cell(name, protocol):
        answer = answers.get((name, protocol))
        if not answer:
            return "-"
        e = answer["overall"]
        return (f"{e['median']:.1f}, {e['p90']:.1f}, {e['max']:.0f}; "
                f"{e['coverage']:.0f}")

    def count(name):
        answer = answers[name, PROTOCOLS[0]]
        return [name, str(answer["overall"]["n"]), str(len(answer["skipped"])),
                *(cell(name, protocol) for protocol in PROTOCOLS)]

    refused = grouped(skipped.items())
    return [
        "# Measurements of others, table by table\n",
        made_by("docs/make.py --tables FOLDER"),
        "`trainfare validate TABLE.csv --protocol PROTOCOL` ([protocols](../"
        "guide/commands.md#validate)).\nA cell: absolute error in percent,"
        " median, what 90 % of the rows stay below, worst; percent of the\n"
        "rows inside their 80 % interval. `as-shipped` is no test of tables"
        " whose rows made\nthe shipped [fits](fits.md). [What misses]"
        "(sessions.md#what-misses-in-the-tables).\n",
        *table(["table", "rows", "not predicted", *PROTOCOLS],
               "lrr" + "l" * len(PROTOCOLS),
               [count(name) for name in TABLES]),
        *(["", *refused] if refused else [])]


def results_of_tables(program, tables):
    """Every table by every protocol, a cell each, as `validate` sums it up."""
    answers, skipped = {}, {}
    for name in TABLES:
        for protocol in PROTOCOLS:
            try:
                answers[name, protocol] = program.json(
                    "validate", str(tables / f"{name}.csv"),
                    "--protocol", protocol)
            except SystemExit as refusal:
                reason = str(refusal).replace(str(tables) + "/", "").strip()
                skipped[f"{name}, {protocol}"] = reason.split("trainfare: ")[-1]
            print(name, protocol, flush=True)
    (HERE / "results" / "tables.md").write_text(
        "\n".join(page_of_tables(answers, skipped)) + "\n", encoding="utf-8")


def printed(page, lines, command="docs/make.py"):
    """Puts lines between the marks of a page of docs/results/."""
    text = "\n".join(["<!-- printed -->\n", made_by(command), *lines,
                      "\n<!-- /printed -->"])
    path = HERE / "results" / page
    path.write_text(
        re.sub(r"<!-- printed -->.*<!-- /printed -->", lambda _: text,
               path.read_text(encoding="utf-8"), flags=re.DOTALL),
        encoding="utf-8")


def asked_tables(description):
    """The program and the folder of tables that a script is called with."""
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trainfare", required=True)
    parser.add_argument("--tables", required=True, type=pathlib.Path)
    options = parser.parse_args()
    return Program(options.trainfare), options.tables


def reason_of(refusal):
    """The commonest reason why no row is used, of the refusal's list."""
    said = re.sub(r"\s+", " ", str(refusal).split("trainfare: ")[-1])
    listed = re.search(r"rows are not used: (.*)", said)
    counts = [(int(n), why) for n, why in
              re.findall(r"(\d+) ([^,;:0-9][^,;:]*)", listed[1] if listed
                         else "")]
    return max(counts)[1].strip() if counts else said.split(": ", 1)[-1]


def results_of_untouched(program, tables):
    """As shipped, the tables on whose rows nothing was chosen."""
    path = ROOT / "calibrate/records/import/tables_chosen.csv"
    with open(path, encoding="utf-8", newline="") as file:
        chosen = {row["table"]: row for row in csv.DictReader(file)}
    here = {str(found.relative_to(tables).with_suffix(""))
            for found in tables.rglob("*.csv")}
    if here != set(chosen):
        sys.exit(f"{path}: expected the tables of {tables}, got others: "
                 f"{sorted(here ^ set(chosen))}")
    read, unread, touched = [], [], []
    for name, row in sorted(chosen.items()):
        if row["chosen_on_these_rows"] != "no":
            touched.append([name, row["chosen_on_these_rows"]])
            continue
        try:
            answer = program.json("validate", str(tables / f"{name}.csv"),
                                  "--protocol", PROTOCOLS[0])
        except SystemExit as refusal:
            unread.append([name, reason_of(refusal)])
            continue
        e = answer["overall"]
        read.append([name, str(e["n"]), str(len(answer["skipped"])),
                     *(f"{e[key]:.1f}" for key in ("median", "p90", "max")),
                     f"{e['coverage']:.0f}"])
    printed("untouched.md", [
        "## As they arrive\n",
        *table(["table", "rows", "not predicted", "median, %", "90 % below, %",
                "worst, %", "inside 80 %, %"], "lrrrrrr", read),
        "\nNo row of these tells a step's time of one device or of data "
        "parallel ones; most are\n",
        *grouped(unread), "\n## Chosen on them\n", *grouped(touched)])


def errors_of(group):
    """Median and worst, those of the rows without an assumption in brackets."""
    unit = "pt" if group["measure"] == "points" else "%"
    said = []
    if group["n"]:
        text = f"{group['median']:.1f}, {group['max']:.1f} {unit}"
        stated = group["stated"]
        if 0 < stated["n"] < group["n"]:
            text += f" ({stated['median']:.1f}, {stated['max']:.1f})"
        said.append(text)
    if group["judged"]:
        said.append(f"{group['right']} of {group['judged']} right")
    if group["refused"]:
        said.append(f"{group['refused']} refused")
    return "; ".join(said) or "-"


def verdict_of(group):
    """The limits of median and worst, or all, and whether they are met."""
    if group["met"] is None or group["limit"] == "none set":
        return "-"
    limits = dict(part.split(" ", 1) for part in group["limit"].split(", "))
    said = [limits[name].removesuffix(" %") if name in limits else "-"
            for name in ("median", "worst")]
    text = "all" if said == ["-", "-"] else ", ".join(said)
    if "all" in limits and text != "all":
        text += f", all {limits['all']}"
    return f"{text}: {'met' if group['met'] else 'missed'}"


def judged(group):
    """Errors, and behind a semicolon their limits."""
    errors, verdict = errors_of(group), verdict_of(group)
    return errors if verdict == "-" else f"{errors}; {verdict}"


def results_of_published(program):
    """The groups of `validate scenarios/published/`, in their page."""
    folder = "scenarios/published/"
    answer = program.json("validate", str(ROOT / folder))
    said = program.run(["validate", folder, "--format", "markdown"], cwd=ROOT)
    shipped, left_out = ({g["group"]: g for g in answer["groups"]
                          if g["protocol"] == protocol}
                         for protocol in PROTOCOLS[:2])
    rows = []
    for name, a in shipped.items():
        b = left_out[name]
        inside = [f"{g['inside_interval']}" for g in (a, b)]
        rows.append([
            a["title"], str(a["n"] + a["judged"]), str(a["seen_by_fit"]),
            str(a["free_parameters"]), a["chosen_on_these_rows"],
            judged(a), judged(b),
            f"{', '.join(inside)} of {a['with_interval']}"
            if a["with_interval"] else "-"])
    checks = answer["data_checks"]
    wrong = [f"{c['group']} {c['right']} of {c['n']}" for c in checks
             if c["right"] < c["n"]]
    checked = (f"Arithmetic on printed figures, which is no prediction: "
               f"{sum(c['right'] for c in checks)} of "
               f"{sum(c['n'] for c in checks)} to the printed digits"
               + (f" ({', '.join(wrong)})." if wrong else "."))
    printed("validation_published.md", [
        textwrap.fill(said.split("\n", 1)[0] + ".", 100) + "\n",
        textwrap.fill("80 % intervals around the figure: " + "; ".join(
            f"{words} {i['inside']} of {i['with_interval']} rows, "
            f"{i['without_interval']} without one"
            for words, i in (
                ("as shipped", answer["intervals"]["as-shipped"]),
                ("left out", answer["intervals"]["leave-one-out"])))
            + ".", 100) + "\n",
        *table(["group", "rows", "seen", "free", "chosen", "as shipped",
                "left out", "inside"], "lrrrllll", rows),
        "", textwrap.fill(checked, 100)])


def sources_of(texts):
    """Splits a text into sources: parts that also stand elsewhere alone.

    A comma inside brackets is of one source, and so is one between two parts
    that no text has without each other.
    """
    def parts(text):
        return re.split(r", (?![^()]*\))", text)

    follows, leads = {}, {}
    for text in texts:
        items = [None, *parts(text), None]
        for a, b in zip(items, items[1:]):
            follows.setdefault(a, set()).add(b)
            leads.setdefault(b, set()).add(a)

    def split(text):
        joined = []
        for part in parts(text):
            if joined and leads[part] == {joined[-1][1]} and \
                    follows[joined[-1][1]] == {part}:
                joined[-1] = (f"{joined[-1][0]}, {part}", part)
            else:
                joined.append((part, part))
        return [name for name, _ in joined]

    return split


def results_of_fits(program):
    """The fits that ship; their sources as numbers into a list below."""
    sources, rows = [], []
    fits = program.json("list", "fits")["rows"]
    split = sources_of([fit["source"] for fit in fits])
    for fit in fits:
        numbers = []
        for source in split(fit["source"]):
            if source not in sources:
                sources.append(source)
            numbers.append(sources.index(source) + 1)
        name = fit["fit"] + (f" (ring of {fit['rings']})" if fit["rings"] else "")
        rows.append([name, str(fit["runs"]),
                     f"{fit['in_sample_error_percent']:.1f}",
                     f"{fit['leave_one_out_error_percent']:.1f}",
                     ", ".join(map(str, sorted(numbers)))])
    numbered = [textwrap.fill(f"{n}. {source}", 100, subsequent_indent="   ",
                              break_long_words=False)
                for n, source in enumerate(sources, 1)]
    printed("fits.md", [
        *table(["fit", "runs", "inside, %", "left out, %", "sources"], "lrrrl",
               rows), "", *numbered])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trainfare", default="build/release/bin/trainfare")
    parser.add_argument("--tables", type=pathlib.Path)
    parser.add_argument("--untouched", type=pathlib.Path)
    options = parser.parse_args()
    program = Program(options.trainfare)
    if options.tables:
        results_of_tables(program, options.tables.resolve())
    if options.untouched:
        results_of_untouched(program, options.untouched.resolve())
    with tempfile.TemporaryDirectory() as folder:
        for name in ("docs", "scenarios"):
            (pathlib.Path(folder) / name).symlink_to(ROOT / name)
        for page in [ROOT / "README.md", *sorted(HERE.rglob("*.md"))]:
            refresh(page, program, folder)
    results_of_published(program)
    results_of_fits(program)


if __name__ == "__main__":
    main()
