"""The page of conventions against the tests that it names.

    python3 conventions_test.py PROGRAM [SUITE]
"""

import pathlib
import re
import unittest

import acceptance_test
import answer_conventions_test
import output_conventions_test
import program
import question_conventions_test

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guide" / "conventions.md"
# By the headings of the page.
SUITES = {"Acceptance": [acceptance_test.Acceptance],
          "Conventions": [output_conventions_test.OutputConventions,
                          answer_conventions_test.AnswerConventions,
                          question_conventions_test.QuestionConventions]}


class Page(unittest.TestCase):
    def test_the_page_names_every_test_and_no_other(self):
        text = PAGE.read_text(encoding="utf-8")
        named = set(re.findall(r"`(\w+)\.(test_\w+)`", text))
        there = {(suite.__name__, name)
                 for suites in SUITES.values() for suite in suites
                 for name in vars(suite) if name.startswith("test_")}
        self.assertEqual(named, there)
        for heading, count in (("Acceptance", 10), ("Conventions", 18)):
            suites = {suite.__name__ for suite in SUITES[heading]}
            section = text.split(f"## {heading}")[1].split("\n## ")[0]
            items = re.findall(r"^(\d+)\. (.*(?:\n +.*)*)", section, re.MULTILINE)
            self.assertEqual([int(number) for number, _ in items],
                             list(range(1, count + 1)))
            for number, item in items:
                tests = re.findall(r"`(\w+)\.(test_\w+)`", item)
                self.assertTrue(tests)
                for suite, test in tests:
                    self.assertIn(suite, suites)
                    self.assertTrue(test.startswith(f"test_{int(number):02}_"))


if __name__ == "__main__":
    program.main()
