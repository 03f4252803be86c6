#!/usr/bin/env python3
"""Writes the pages of docs/results/, each whole, from what is measured now.

  docs/results.py --trainfare build/release/bin/trainfare [--tables FOLDER]
                  [--trainer build/release/bin/trainfare-trainer]
                  [--python PYTHON] [--delay-line PROGRAM]
                  [--llm-analysis FOLDER] [--calculon FOLDER]
                  [--section NAME ...] [PAGE ...]

All pages, or those named, without .md; what cannot be made with what was given
is named, and left as it was. Of the page sessions a section can be made alone,
and the others stay; each says what it runs (docs/printing/sessions.py), which
takes minutes of a machine with nothing beside it. --tables is the folder of the
measurement tables; --python one that has torch and transformers
(tests/trainer/reference_env.sh prints its path); --delay-line the switch of
tests/trainer/network_test.py; --llm-analysis and --calculon the folders where
those programs' modules are. --budget and --points make a trial of sections
short. Standard library alone.
"""

import argparse
import pathlib
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from printing import (baselines, choices, cost, fits, intervals,  # noqa: E402
                      llm_tables, measured_tables, own_gpu, parameters,
                      peers, points, power, published, sessions, splits,
                      stacks)
from printing.pages import Given, Missing  # noqa: E402
from printing.program import Program  # noqa: E402

PAGES = {page.name: page for module in (measured_tables, baselines, llm_tables, own_gpu, parameters,
                                        power, peers, published, fits, intervals, choices,
                                        stacks, points, cost, splits, sessions)
         for page in module.PAGES}


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE",
                        help=", ".join(PAGES))
    parser.add_argument("--trainfare", required=True)
    for name in ("tables", "trainer", "delay-line", "llm-analysis",
                 "calculon"):
        parser.add_argument(f"--{name}",
                            type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--python")
    parser.add_argument("--section", nargs="+", default=[], dest="sections",
                        choices=sessions.NAMES)
    parser.add_argument("--budget", help="of a calibration: 15s")
    parser.add_argument("--points", type=int, help="at most so many a plan")
    options = parser.parse_args()
    unknown = [name for name in options.pages if name not in PAGES]
    if unknown:
        parser.error(f"no page {', '.join(unknown)}; known: {', '.join(PAGES)}")
    return options


def main():
    options = parse()
    names = options.pages or (["sessions"] if options.sections else PAGES)
    given = Given(**{key: value for key, value in vars(options).items()
                     if key not in ("pages", "trainfare")},
                  program=Program(options.trainfare))
    left = 0
    for name in names:
        try:
            PAGES[name].write(given)
            print(f"docs/results/{name}.md: made")
        except Missing as reason:
            left += 1
            print(f"docs/results/{name}.md: left as it was: {reason}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
