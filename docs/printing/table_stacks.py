"""The stacks by which tables' frameworks are read, from tables.yaml: a table
for docs/guide/measurements.md, which docs/make.py puts in."""

import re

from .pages import ROOT, table

RULES = ROOT / "calibrate/records/import/tables.yaml"
STACK = re.compile(r'  - \{ words: "?(.*?)"?, stack: (\w+) \}')


def section(text, name):
    """The lines of a list of tables.yaml."""
    return re.search(rf"^{name}:\n((?:  .*\n)+)", text, re.M)[1].splitlines()


def rows():
    text = RULES.read_text(encoding="utf-8")
    words = {}
    for line in section(text, "stacks"):
        if line.strip().startswith("#"):
            continue
        word, stack = STACK.match(line).groups()
        words.setdefault(stack, []).append(word)
    words["eager"] = [re.match(r'  - "?([^"#]*[^"# ])', line)[1]
                      for line in section(text, "eager_frameworks")]
    return [[f"`{stack}`", ", ".join(of)] for stack, of in words.items()]


def lines():
    return table(["stack", "words"], "ll", rows())
