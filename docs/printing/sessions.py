"""docs/results/sessions.md: what this machine measures, a section each.

A section runs its measurement and prints its figures under its own heading,
with its own line of who made them. What other processors measured for it stays
beside them, as the other sections stay.
"""

import re
import sys

from . import session_fits, session_kernels, session_others, session_stacks
from .pages import Missing, Page, made_by, write

INTRODUCTION = """
What one machine measured for one section each, unless a section says so on a processor in fp32 with
fused AdamW and materialised attention, with nothing beside it. Errors are absolute, of a
prediction against the median of what was measured; *inside*, in the 80 % interval. A section is
made anew by `docs/results.py sessions --section NAME`; what another processor measured stays.
"""

# What a section was made by, above its figures; it ends with the processor.
MADE_BY = re.compile(r"^Made by `.*?\bprocessor\s(?P<processor>.*?)\.\n\n",
                     re.MULTILINE | re.DOTALL)

SECTIONS = [*session_others.SECTIONS[:1], *session_fits.SECTIONS,
            *session_stacks.SECTIONS, *session_kernels.SECTIONS,
            *session_others.SECTIONS[1:]]
NAMES = [section.name for section in SECTIONS]


def command_of(section, given):
    """The command that makes it, with what makes a trial of it shorter."""
    flags = "".join(f" --{name} {value}" for name, value in
                    (("budget", given.budget), ("points", given.points))
                    if value is not None)
    return f"docs/results.py sessions --section {section.name}{flags}"


def not_made(section):
    return (f"Not made yet: `docs/results.py sessions --section "
            f"{section.name}`.\n")


def processor_of(text):
    return " ".join(MADE_BY.match(text)["processor"].split())


def printed_before(page):
    """What the page has below each section's explanation, by heading and
    processor."""
    if not page.path.exists():
        return {}
    text = page.path.read_text(encoding="utf-8")
    found = {}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, rest = part.split("\n", 1)
        starts = [made.start() for made in MADE_BY.finditer(rest)]
        for start, end in zip(starts, [*starts[1:], len(rest)]):
            block = rest[start:end].strip("\n") + "\n"
            found.setdefault(heading, {})[processor_of(block)] = block
    return found


def page_lines(texts):
    """All sections, those without a text as not made yet."""
    lines = []
    for section in SECTIONS:
        lines += [section.head(), *(texts.get(section.heading, {}).values()
                                    or [not_made(section)])]
    return lines


class Sessions(Page):
    """Written section by section, so that what was measured is kept."""

    def write(self, given):
        texts = printed_before(self)
        left = []
        for section in SECTIONS:
            if section.name not in (given.sections or NAMES):
                continue
            print(f"sessions: {section.name}", file=sys.stderr, flush=True)
            try:
                lines = section.body(given)
            except Missing as reason:
                left.append(f"{section.name}: {reason}")
                continue
            text = "\n".join([made_by(command_of(section, given)),
                              *lines]).rstrip() + "\n"
            if not section.measures_this_machine:
                texts.pop(section.heading, None)
            texts.setdefault(section.heading, {})[processor_of(text)] = text
            write(self, page_lines(texts))
        write(self, page_lines(texts))
        if left:
            raise Missing("; ".join(left))


PAGES = [Sessions("sessions", "Measuring sessions", INTRODUCTION, None)]
