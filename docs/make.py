#!/usr/bin/env python3
"""Makes what the pages of docs/ and the README show of the program's output.

  docs/make.py --trainfare build/release/bin/trainfare [--tables FOLDER]

An output is the block after a comment such as

  <!-- output: trainfare list models -->

and is put in anew, as a person sees it in a terminal of 100 columns; `output
lines=8:` keeps the first eight lines. With
--tables, the folder of the measurement tables, it also writes
docs/results/tables.md. docs/results/fits.md and the tables of
docs/results/validation_published.md are made each time. The figures:
docs/figures/make.py.
"""

import argparse
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
    r"(?:```text\n(?:(?!```).*\n)*```|(?:\|.*\n)+)")

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
    return (f"Made by `{command}` on {today} at {commit()}, "
            f"on a processor {machine()}.\n")


def refresh(page, program, folder):
    def anew(match):
        printed = program.run if "--format" in match[3] else program.shown
        text = printed(shlex.split(match[3]), cwd=folder).rstrip("\n")
        lines = text.split("\n")
        if match[2] and len(lines) > int(match[2]):
            lines = lines[:int(match[2])] + ["..."]
        body = "\n".join(line.rstrip() for line in lines)
        if "--format markdown" in match[3]:
            return match[1] + body + "\n"
        return f"{match[1]}```text\n{body}\n```"

    old = page.read_text(encoding="utf-8")
    new = OUTPUT.sub(anew, old)
    if new != old:
        page.write_text(new, encoding="utf-8")
        print(f"{page.relative_to(ROOT)}: outputs made anew")


def results_of_tables(program, tables):
    """Every table by every protocol, a line each, as `validate` sums it up."""
    rows, skipped = [], {}
    for table in TABLES:
        for protocol in PROTOCOLS:
            try:
                answer = program.json("validate", str(tables / f"{table}.csv"),
                                      "--protocol", protocol)
            except SystemExit as refusal:
                reason = str(refusal).replace(str(tables) + "/", "").strip()
                skipped[f"{table}, {protocol}"] = reason.split("trainfare: ")[-1]
                continue
            e = answer["overall"]
            rows.append(
                f"| {table} | {protocol} | {e['n']} | {e['median']:.1f} % | "
                f"{e['mape']:.1f} % | {e['p90']:.1f} % | {e['max']:.0f} % | "
                f"{e['bias']:+.1f} % | {e['coverage']:.0f} % | "
                f"{len(answer['skipped'])} |")
            print(rows[-1], flush=True)
    page = [
        "# Measurements of others, table by table\n",
        made_by("docs/make.py --tables FOLDER"),
        "Each line sums up `trainfare validate TABLE.csv --protocol PROTOCOL`."
        " Errors are percent of the\nmeasured time; the protocols are those of"
        " [the command](../guide/commands.md#validate).\nMany rows of the first"
        " four tables are in the shipped fits: `as-shipped` is no test of these"
        ".\n",
        "| table | protocol | rows | median | mean | 90 % below | worst | bias"
        " | inside 80 % | not predicted |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *rows, ""]
    for what, reason in skipped.items():
        page.append(f"- {what}: {reason}")
    (HERE / "results" / "tables.md").write_text(
        "\n".join(page).rstrip("\n") + "\n", encoding="utf-8")


def results_of_published(program):
    """The table by group of `validate scenarios/published/`, in its page."""
    page = HERE / "results" / "validation_published.md"
    printed = program.run(["validate", "scenarios/published/", "--format",
                           "markdown"], cwd=ROOT)
    tables = printed[printed.index("**Groups**"):].split("\n- ")[0]
    summary = textwrap.fill(printed.split("\n", 1)[0], 100)
    text = (f"<!-- printed -->\n\n{made_by('docs/make.py')}\n{summary}\n\n"
            f"{tables.strip()}\n\n<!-- /printed -->")
    old = page.read_text(encoding="utf-8")
    page.write_text(re.sub(r"<!-- printed -->.*<!-- /printed -->",
                           lambda _: text, old, flags=re.DOTALL),
                    encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trainfare", default="build/release/bin/trainfare")
    parser.add_argument("--tables", type=pathlib.Path)
    options = parser.parse_args()
    program = Program(options.trainfare)
    if options.tables:
        results_of_tables(program, options.tables.resolve())
    with tempfile.TemporaryDirectory() as folder:
        for name in ("docs", "scenarios"):
            (pathlib.Path(folder) / name).symlink_to(ROOT / name)
        for page in [ROOT / "README.md", *sorted(HERE.rglob("*.md"))]:
            refresh(page, program, folder)
    results_of_published(program)
    fits = HERE / "results" / "fits.md"
    if fits.exists():
        lines = fits.read_text(encoding="utf-8").split("\n")
        lines[2] = made_by("docs/make.py").rstrip("\n")
        fits.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
