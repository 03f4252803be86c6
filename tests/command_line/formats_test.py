"""One answer in every format."""

import csv
import io

import program
from figure_names import has_unit
from program import COMMANDS, Case, TABLE_HEADER, table_row


class Formats(Case):
    def numbers(self, value, key=""):
        if isinstance(value, dict):
            for name, item in value.items():
                yield from self.numbers(item, name)
        elif isinstance(value, list):
            for item in value:
                yield from self.numbers(item, key)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield key, value

    def test_every_number_has_its_unit_in_its_key(self):
        table = self.write("a.csv", TABLE_HEADER + table_row())
        for command in (*COMMANDS, ("validate", table)):
            with self.subTest(command):
                for key, _ in self.numbers(self.json_of(*command)):
                    self.assertTrue(has_unit(key), key)

    def test_csv_parses_and_agrees_with_json(self):
        command = (
            "predict", "emotion_bert_base", "--device", "a100_sxm4_80gb",
            "--batch", "8,16", "--seq", "32,64",
        )  # fmt: skip
        text = self.good(*command, "--format", "csv").stdout
        rows = list(csv.DictReader(io.StringIO(text)))
        predictions = self.json_of(*command)["predictions"]
        self.assertEqual(len(rows), 4)
        for row, prediction in zip(rows, predictions):
            for key in ("step_time_s", "memory_bytes", "run_time_s", "mfu"):
                self.assertAlmostEqual(
                    float(row[key]) / prediction[key], 1.0, places=12
                )

    def test_exports_are_the_same_as_the_formats(self):
        command = ("recommend", "emotion_bert_base", "--quiet")
        files = [self.path(f"r.{suffix}") for suffix in ("json", "csv", "md")]
        exports = [word for file in files for word in ("--export", file)]
        self.good(*command, *exports)
        # Of a Markdown file no more would say whose it is.
        mark = "<!-- written by trainfare -->\n"
        for file, style, first in zip(files, ("json", "csv", "markdown"),
                                      ("", "", mark)):  # fmt: skip
            with open(file, encoding="utf-8") as written:
                self.assertEqual(
                    written.read(),
                    first + self.good(*command, "--format", style).stdout,
                )

    def test_markdown_tables_have_one_width(self):
        for command in COMMANDS:
            with self.subTest(command):
                text = self.good(*command, "--format", "markdown").stdout
                widths = set()
                for line in text.splitlines():
                    if line.startswith("|"):
                        widths.add(line.replace("\\|", "").count("|"))
                    else:
                        self.assertLessEqual(len(widths), 1)
                        widths = set()


if __name__ == "__main__":
    program.main()
