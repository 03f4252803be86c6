#!/usr/bin/env python3
"""Makes what the pages of docs/ and the README show of the program's output.

  docs/make.py --trainfare build/release/bin/trainfare

An output is the block after a comment such as

  <!-- output: trainfare list models -->

and is put in anew, as a person sees it in a terminal of 100 columns; `output
lines=8:` keeps the first eight lines. The table after

  <!-- stacks of tables.yaml -->

is put in anew, too, as is that after

  <!-- dates of prices -->

the block of what a Python example prints, behind it, and what stands between

  <!-- published figures that are missed -->
  <!-- end -->

The pages of docs/results/ are written by docs/results.py, figures by
docs/figures/make.py.
"""

import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))
from printing import published_misses, table_prices, table_stacks  # noqa: E402
from printing.program import Program  # noqa: E402

OUTPUT = re.compile(
    r"(<!-- output(?: lines=(\d+))?: trainfare (.*?) -->\n+)"
    r"```text\n(?:(?!```).*\n)*```")
STACKS = re.compile(r"(<!-- stacks of tables\.yaml -->\n\n)(?:\|.*\n)*")
PRICES = re.compile(r"(<!-- dates of prices -->\n\n)(?:\|.*\n)*")
EXAMPLE = re.compile(r"(```python\n((?:(?!```).*\n)*)```\n\n)"
                     r"```text\n(?:(?!```).*\n)*```")
MISSED = re.compile(r"(<!-- published figures that are missed -->\n\n)"
                    r"[\s\S]*?(\n<!-- end -->)")


def with_missed(text, program):
    """The text of a page with the published figures that are missed now."""
    if not MISSED.search(text):
        return text
    made = "".join(line + "\n" for line in published_misses.lines(program))
    return MISSED.sub(lambda match: match[1] + made + match[2], text)


def with_stacks(text):
    """The text of a page with the table of stacks as it is now."""
    made = "".join(line + "\n" for line in table_stacks.lines())
    return STACKS.sub(lambda match: match[1] + made, text)


def with_prices(text):
    """The text of a page with the days of prices as they are now."""
    made = "".join(line + "\n" for line in table_prices.lines())
    return PRICES.sub(lambda match: match[1] + made, text)


def with_examples(text, program, folder):
    """The text of a page with what its Python examples print now, which find
    the program as a person's do."""
    path = f"{os.path.dirname(program.path)}:{os.environ['PATH']}"

    def anew(match):
        printed = subprocess.run(
            [sys.executable, "-c", match[2]], cwd=folder, check=True,
            env={**program.environment(), "PATH": path},
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return f"{match[1]}```text\n{printed.stdout}```"
    return EXAMPLE.sub(anew, text)


def refresh(page, program, folder):
    def anew(match):
        text = program.shown(shlex.split(match[3]), cwd=folder).rstrip("\n")
        lines = text.split("\n")
        if match[2] and len(lines) > int(match[2]):
            lines = lines[:int(match[2])] + ["..."]
        body = "\n".join(line.rstrip() for line in lines)
        return f"{match[1]}```text\n{body}\n```"

    old = page.read_text(encoding="utf-8")
    new = with_prices(with_stacks(OUTPUT.sub(anew, old)))
    new = with_examples(with_missed(new, program), program, folder)
    if new != old:
        page.write_text(new, encoding="utf-8")
        print(f"{page.relative_to(ROOT)}: outputs made anew")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trainfare", default="build/release/bin/trainfare")
    options = parser.parse_args()
    program = Program(options.trainfare)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("docs", "scenarios"):
            (pathlib.Path(folder) / name).symlink_to(ROOT / name)
        for page in [ROOT / "README.md", *sorted(HERE.rglob("*.md"))]:
            refresh(page, program, folder)


if __name__ == "__main__":
    main()
