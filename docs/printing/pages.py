"""What pages of docs/results/ have in common: who made them, tables, writing."""

import dataclasses
import datetime
import pathlib
import subprocess
import textwrap
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
WIDTH = 100


class Missing(Exception):
    """Something that was not given, or cannot be done here."""


@dataclasses.dataclass
class Given:
    """What the command was called with."""
    program: object  # program.Program
    tables: pathlib.Path | None = None
    trainer: pathlib.Path | None = None
    python: str | None = None
    delay_line: pathlib.Path | None = None
    llm_analysis: pathlib.Path | None = None
    calculon: pathlib.Path | None = None
    budget: str | None = None
    points: int | None = None
    sections: list = dataclasses.field(default_factory=list)

    def asked(self, name):
        """What a flag gave; without the flag it is missing."""
        value = getattr(self, name)
        if value is None:
            raise Missing(f"needs --{name.replace('_', '-')}")
        return value


@dataclasses.dataclass(frozen=True)
class Page:
    """A page of docs/results/, written whole.

    The introduction says how figures are read and has none of its own. The
    body's lines are what was measured: a function of what the command was given.
    """
    name: str
    heading: str
    introduction: str
    body: Callable
    needs_tables: bool = False
    takes: str = ""  # more flags of the command that makes it

    @property
    def path(self):
        return RESULTS / f"{self.name}.md"

    def head(self):
        return f"# {self.heading}\n\n{self.introduction.strip(chr(10))}\n"

    def write(self, given):
        """Raises Missing, and leaves the page, where something is not given."""
        if self.needs_tables:
            given.asked("tables")
        command = f"docs/results.py {self.name}"
        if self.needs_tables:
            command += " --tables FOLDER"
        write(self, [made_by(command + self.takes), *self.body(given)])


def write(page, lines):
    """Its head, and lines below."""
    text = "\n".join([page.head(), *lines]).rstrip("\n") + "\n"
    page.path.write_text(text, encoding="utf-8")


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
    return filled(f"Made by `{command}` on {today} at {commit()}, on a "
                  f"processor {machine()}.") + "\n"


def filled(text, indent=""):
    return textwrap.fill(text, WIDTH, subsequent_indent=indent,
                         break_long_words=False, break_on_hyphens=False)


def percentile(values, share):
    """Between the two nearest, as the program has it."""
    values = sorted(values)
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def table(header, align, rows):
    """Lines of a Markdown table; `align` has l or r for each column.

    Cells have no blanks around them, so that lines stay short.
    """
    bars = {"l": "---", "r": "---:"}
    return ["|" + "|".join(cells) + "|"
            for cells in (header, [bars[a] for a in align], *rows)]


def grouped(rows):
    """A list item for each value of the second column: the names that it has."""
    names = {}
    for name, value in rows:
        names.setdefault(value, []).append(name)
    return [filled(f"- {value}: {'; '.join(of)}", "  ")
            for value, of in names.items()]
