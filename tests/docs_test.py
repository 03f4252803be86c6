#!/usr/bin/env python3
"""The pages of docs/: links, paths, line lengths, that commands run, and that
docs/results/ is printed whole.

  docs_test.py [TRAINFARE]

With the program, every command whose output a page shows is run once.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))
sys.dont_write_bytecode = True
import make  # noqa: E402
import results  # noqa: E402
from printing import sessions  # noqa: E402

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LONGEST = 100
# Sources whose comments name a page.
SOURCES = [path for folder in ("model", "hardware", "calibrate", "trainer",
                               "scenarios", "tests")
           for path in sorted((ROOT / folder).rglob("*"))
           if path.suffix in (".h", ".cc", ".cu", ".py", ".yaml", ".md")]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PAGE = re.compile(
    r"(?<![\w./-])docs/(?:(?:guide|models|results)/)?\w+\.md\b")
SECTION = re.compile(r'(docs/[\w/]+\.md), "([^"]+)"')
COMMENT = re.compile(r"\n\s*(?://|#) ?")
# A path of this tree in backquotes: a file, or a folder with its slash.
PATH = re.compile(
    r"`((?:model|hardware|calibrate|trainer|scenarios|tests|docs)/"
    r"[\w./-]*?(?:\.(?:h|cc|cu|py|yaml|md|sh|jsonl|csv)|/))`")
TRAINFARE = None
MADE = re.compile(r"Made by `docs/results\.py (\w+)[^`]*` on \d{4}-\d\d-\d\d "
                  r"at [0-9a-f]{7,}, on a processor ")


def place(page):
    return str(page.relative_to(ROOT))


def prose(page):
    """Numbered lines without blocks of a program's output and tables."""
    output = False
    for number, line in enumerate(
            page.read_text(encoding="utf-8").split("\n"), 1):
        if line.startswith("```"):
            output = line == "```text"
        if not output and not line.startswith("|"):
            yield number, line


def anchors(page):
    for line in page.read_text(encoding="utf-8").split("\n"):
        if line.startswith("#"):
            words = line.lstrip("#").strip().lower()
            yield re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


class Docs(unittest.TestCase):
    def test_lines_are_short(self):
        for page in PAGES:
            for number, line in prose(page):
                if LONGEST < len(line) and "<!-- output" not in line:
                    with self.subTest(f"{place(page)}:{number}"):
                        self.fail(f"{len(line)} columns, {LONGEST} at most")

    def test_links_lead_somewhere(self):
        for page in PAGES:
            for target in LINK.findall(page.read_text(encoding="utf-8")):
                if "://" in target:
                    continue
                path, _, anchor = target.partition("#")
                to = (page.parent / path).resolve() if path else page
                with self.subTest(f"{place(page)}: {target}"):
                    self.assertTrue(to.exists(), "no such file")
                    if anchor:
                        self.assertIn(anchor, list(anchors(to)))

    def test_paths_exist(self):
        for page in PAGES:
            for path in PATH.findall(page.read_text(encoding="utf-8")):
                with self.subTest(f"{place(page)}: {path}"):
                    self.assertTrue((ROOT / path).exists(), "no such file")

    def test_pages_that_sources_name_exist(self):
        for source in SOURCES:
            for page in PAGE.findall(source.read_text(encoding="utf-8")):
                if not (ROOT / page).exists():
                    with self.subTest(f"{place(source)}: {page}"):
                        self.fail("no such page")

    def test_sections_that_sources_name_exist(self):
        for source in SOURCES:
            text = COMMENT.sub(" ", source.read_text(encoding="utf-8"))
            for page, section in SECTION.findall(text):
                heads = [line.lstrip("#* ") for line in (ROOT / page).read_text(
                    encoding="utf-8").split("\n") if line[:1] in ("#", "*")]
                if not any(head.startswith(section) for head in heads):
                    with self.subTest(f"{place(source)}: {page}"):
                        self.fail(f"no section {section}")

    def test_every_page_is_linked(self):
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        for page in PAGES[1:]:
            with self.subTest(place(page)):
                self.assertIn(f"({place(page)})", readme)

    def test_the_map_names_every_header_of_the_model(self):
        page = (ROOT / "docs/code.md").read_text(encoding="utf-8")
        headers = sorted((ROOT / "model").glob("*.h"))
        self.assertTrue(headers)
        for header in headers:
            with self.subTest(place(header)):
                self.assertIn(f"`{place(header)}`", page)

    def test_every_field_of_a_workload_is_documented(self):
        if not TRAINFARE:
            self.skipTest("the command that lists them was not given")
        fields = "".join((ROOT / "model" / header).read_text(encoding="utf-8")
                         for header in ("fields.h", "architecture_fields.h"))
        pages = "".join((ROOT / "docs/guide" / page).read_text(encoding="utf-8")
                        for page in ("scenarios.md", "measurements.md"))
        pages += subprocess.run([TRAINFARE, "list", "keys"], check=True,
                                capture_output=True, text=True).stdout
        names = set(re.findall(r'\.name = "(\w+)"', fields))
        self.assertTrue(names)
        for name in sorted(names):
            with self.subTest(name):
                self.assertRegex(pages, rf"\b{name}\b")

    def test_a_folder_of_ones_own_data_holds_what_is_read_from_there(self):
        page = (ROOT / "docs/guide/changing.md").read_text(encoding="utf-8")
        copied = re.search(r"cp -r hardware/\{([\w,]+)\} /tmp/mine/", page)[1]
        read = {name for source in SOURCES if source.suffix == ".cc"
                and not source.is_relative_to(ROOT / "tests")
                for name in re.findall(r'DataDirectory\("(\w+)"\)',
                                       source.read_text(encoding="utf-8"))}
        self.assertEqual(sorted(copied.split(",")), sorted(read))

    def test_what_a_source_adds_is_what_ships(self):
        def read(path):
            return " ".join((ROOT / path).read_text(encoding="utf-8").split())
        ships = re.search(r"sources: \{ sigma: ([\d.]+)",
                          read("hardware/kinds/gpu.yaml"))[1]
        self.assertIn(f"For GPUs tau is {ships}, ", read("docs/models/calibration.md"))
        self.assertIn(f"{ships} ships.", read("docs/results/intervals.md"))

    def test_stacks_of_tables_are_those_of_the_rules(self):
        page = (ROOT / "docs/guide/measurements.md").read_text(encoding="utf-8")
        self.assertEqual(page, make.with_stacks(page), "docs/make.py was not run")
        for stack in ("compiled", "lightseq", "eager"):
            self.assertIn(f"\n|`{stack}`|", page)

    def test_days_of_prices_are_those_of_the_catalogs(self):
        page = (ROOT / "docs/guide/prices.md").read_text(encoding="utf-8")
        self.assertRegex(page, r"\n\|`aws`\|\d{4}-\d\d-\d\d\|")
        self.assertEqual(page, make.with_prices(page), "docs/make.py was not run")

    def test_examples_print_what_pages_show(self):
        if not TRAINFARE:
            self.skipTest("no program given")
        page = (ROOT / "docs/guide/answers.md").read_text(encoding="utf-8")
        self.assertRegex(page, make.EXAMPLE)
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "scenarios").symlink_to(ROOT / "scenarios")
            self.assertEqual(
                page, make.with_examples(page, make.Program(TRAINFARE), folder),
                "docs/make.py was not run")

    def test_scenarios_that_pages_write_out_are_read(self):
        if not TRAINFARE:
            self.skipTest("no program given")
        page = (ROOT / "docs/guide/from_trainer.md").read_text(encoding="utf-8")
        job, = re.findall(r"```yaml\n(name: (?:(?!```).*\n)*)```", page)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "job.yaml"
            path.write_text(job, encoding="utf-8")
            done = subprocess.run([TRAINFARE, "show", path], text=True,
                                  capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_missed_figures_are_the_programs(self):
        if not TRAINFARE:
            self.skipTest("no program given")
        page = (ROOT / "docs/models/misses.md").read_text(encoding="utf-8")
        self.assertRegex(page, make.MISSED)
        self.assertEqual(page, make.with_missed(page, make.Program(TRAINFARE)),
                         "docs/make.py was not run")

    def test_commands_run(self):
        if not TRAINFARE:
            self.skipTest("no program given")
        commands = {c for page in PAGES for c in re.findall(
            r"<!-- output.*?: trainfare (.*?) -->",
            page.read_text(encoding="utf-8"))}
        self.assertTrue(commands)
        with tempfile.TemporaryDirectory() as folder:
            for name in ("docs", "scenarios"):
                (pathlib.Path(folder) / name).symlink_to(ROOT / name)
            for command in sorted(commands):
                done = subprocess.run(
                    [TRAINFARE, *shlex.split(command)], cwd=folder,
                    capture_output=True, text=True,
                    env={**os.environ, "HOME": folder,
                         "XDG_DATA_HOME": folder, "TRAINFARE_FITS": folder})
                with self.subTest(command):
                    self.assertIn(done.returncode, (0, 3), done.stderr)
                    self.assertTrue(done.stdout)


class Results(unittest.TestCase):
    """docs/results/: written whole by docs/results.py, nothing by hand."""

    def text_of(self, page):
        return page.path.read_text(encoding="utf-8")

    def test_every_page_is_the_commands(self):
        self.assertEqual(
            sorted(page.path for page in results.PAGES.values()),
            sorted((ROOT / "docs" / "results").iterdir()))

    def test_pages_begin_as_their_modules_say(self):
        for page in results.PAGES.values():
            with self.subTest(page.name):
                self.assertTrue(self.text_of(page).startswith(page.head()),
                                f"not what docs/printing has; docs/results.py "
                                f"{page.name} writes it")

    def test_pages_say_who_made_them(self):
        for page in results.PAGES.values():
            if page.name == "sessions":
                continue  # section by section
            with self.subTest(page.name):
                said = self.text_of(page)[len(page.head()):]
                made = MADE.match(" ".join(said.split()))
                self.assertTrue(made, said[:200])
                self.assertEqual(made[1], page.name)

    def test_sections_are_the_modules_and_what_they_printed(self):
        page, = sessions.PAGES
        printed = sessions.printed_before(page)
        for heading, texts in printed.items():
            for processor, text in texts.items():
                with self.subTest(heading, processor=processor):
                    self.assertRegex(" ".join(text.split()), MADE)
        whole = "\n".join([page.head(), *sessions.page_lines(printed)])
        self.assertEqual(self.text_of(page), whole.rstrip("\n") + "\n")

    def test_tables_are_narrow(self):
        for page in results.PAGES.values():
            for number, line in enumerate(self.text_of(page).split("\n"), 1):
                with self.subTest(f"{page.name}:{number}"):
                    self.assertLessEqual(len(line), LONGEST)


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        TRAINFARE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
