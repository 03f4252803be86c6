"""Of which day the prices of each cloud are, from hardware/prices/: a table for
docs/guide/prices.md, which docs/make.py puts in."""

import re

from .pages import ROOT, table

PRICES = ROOT / "hardware" / "prices"


def row(path):
    text = path.read_text(encoding="utf-8")
    cloud = re.search(r"^cloud: (\w+)$", text, re.M)[1]
    catalog = re.search(r"^date: ([\d-]+)$", text, re.M)[1]
    oldest = min([catalog, *re.findall(r"\bdate: ([\d-]+)", text)])
    return [f"`{cloud}`", catalog, "-" if oldest == catalog else oldest]


def lines():
    return table(["cloud", "prices of", "oldest, of some regions"], "lll",
                 [row(path) for path in sorted(PRICES.glob("*.yaml"))])
