"""docs/results/fits.md: the fits that ship, and what they rest on."""

import re

from .pages import Page, filled, table

INTRODUCTION = """
Median errors over a fit's runs: *inside* by the fit to all of them, *left out* each by a fit to the
others, [corrected by nearby runs](../models/calibration.md#what-the-formula-itself-gets-wrong).
`trainfare list fits` adds dates and drivers.
"""


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


def body(given):
    """Each fit; its sources as numbers into a list below."""
    sources, rows = [], []
    fits = given.program.json("list", "fits")["rows"]
    split = sources_of([fit["source"] for fit in fits])
    for fit in fits:
        numbers = []
        for source in split(fit["source"]):
            if source not in sources:
                sources.append(source)
            numbers.append(sources.index(source) + 1)
        name = fit["fit"] + (f" (ring of {fit['rings']})" if fit["rings"] else "")
        left_out = fit["leave_one_out_error_percent"]
        rows.append([name, str(fit["runs"]),
                     f"{fit['in_sample_error_percent']:.1f}",
                     "-" if left_out is None else f"{left_out:.1f}",
                     ", ".join(map(str, sorted(numbers)))])
    return [*table(["fit", "runs", "inside, %", "left out, %", "sources"],
                   "lrrrl", rows), "",
            *(filled(f"{n}. {source}", "   ")
              for n, source in enumerate(sources, 1))]


PAGES = [Page("fits", "The fits that ship", INTRODUCTION, body)]
