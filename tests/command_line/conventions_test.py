"""Acceptance tests and conventions of command-line tools, by their numbers.

    python3 conventions_test.py PROGRAM [SUITE]

docs/guide/conventions.md says what each number is, and which are not there yet.
"""

import csv
import html.parser
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import command_line_test
import json_schema

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guide" / "conventions.md"
ANSWERS = (
    ("predict", "emotion_bert_base", "--device", "a100_sxm4_80gb"),
    ("predict", "emotion_bert_base", "--instance", "aws/g5.xlarge"),
    ("recommend", "emotion_bert_base"),
    ("list", "devices"),
)
JOB = ("predict", "emotion_bert_base", "--instance", "aws/g5.xlarge")
WINNER = ("recommend", "emotion_bert_base")


def page_of(case, *command):
    file = case.path("report.html")
    case.good(*command, "--quiet", "--export", file)
    return pathlib.Path(file).read_text(encoding="utf-8")


class Acceptance(command_line_test.Case):
    def test_01_json_is_whole_wherever_standard_error_goes(self):
        command = [command_line_test.PROGRAM, *WINNER, "--format", "json"]

        def run(extra=(), **streams):
            done = subprocess.run(
                [*command, *extra], stdout=subprocess.PIPE, check=False,
                env=self.environment(), timeout=60, **streams)
            self.assertEqual(done.returncode, 0)
            return json.loads(done.stdout)

        closed = run(preexec_fn=lambda: os.close(2))
        with open(self.path("log"), "w", encoding="utf-8") as log:
            to_file = run(stderr=log)
        merged = run(["--quiet"], stderr=subprocess.STDOUT)
        self.assertEqual(closed, to_file)
        self.assertEqual(closed, merged)

    def test_02_no_escapes_unless_a_terminal_wants_them(self):
        for command in ANSWERS:
            for style in ("table", "markdown", "csv", "json"):
                done = self.good(*command, "--format", style)
                for text in (done.stdout, done.stderr):
                    self.assertNotRegex(text, "[\x1b\r]")
        self.assertIn(b"\x1b", self.on_a_terminal(*WINNER))
        self.assertNotIn(b"\x1b", self.on_a_terminal(*WINNER, NO_COLOR="1"))

    def test_03_every_number_of_a_schema_has_its_unit(self):
        files = sorted(json_schema.FOLDER.glob("*.schema.json"))
        self.assertGreater(len(files), 5)
        for file in files:
            for key in json_schema.numbers_of(json_schema.load(file.name)):
                self.assertTrue(command_line_test.has_unit(key),
                                (file.name, key))

    def test_04_no_price_is_no_zero_and_never_wins(self):
        whole = self.json_of("recommend", "emotion_bert_base", "--spot")
        unpriced = [c for c in whole["candidates"] if c["price"] is None]
        self.assertTrue(unpriced)
        for candidate in unpriced:
            self.assertIsNone(candidate["cost_usd"])
            self.assertFalse(candidate["chosen"])
        for command in (WINNER, ("list", "instances"), ("list", "prices")):
            self.assertNotRegex(self.good(*command).stdout,
                                r"(?<![\d.])\$?0\.0+(?![\d])")
        catalog = self.write("vms.csv", (
            "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,"
            "GpuInfo,Price,SpotPrice,Region\n"
            "tpu-v2-8,tpu-v2-8,1,96,334,,4.5,1.35,us-central1\n"
            "tpu-v3-8,tpu-v3-8,1,96,334,,700,,us-central1\n"))
        said = self.good("prices", "import", catalog, "--cloud", "gcp",
                         "--date", "2026-11-20").stdout
        self.assertIn("1 rows dropped: sentinel price", said)

    def test_05_an_instance_of_gcp_costs_host_and_accelerator(self):
        (price,) = [row["price_usd_per_hour"]
                    for row in self.json_of("list", "prices")["rows"]
                    if (row["instance"], row["region"])
                    == ("gcp/a2-highgpu-1g", "us-central1")]
        self.assertAlmostEqual(price, 3.673, places=3)

    def test_06_one_winner_in_words_table_and_json(self):
        for flags in ((), ("--objective", "time"), ("--objective", "energy"),
                      ("--spot",), ("--cloud", "aws")):
            command = (*WINNER, *flags)
            chosen = self.json_of(*command)["chosen"]["instance"]
            lines = self.good(*command).stdout.splitlines()
            self.assertIn(f" {chosen} ", lines[0])
            self.assertEqual([line.split()[1] for line in lines
                              if line.startswith("*")], [chosen])
            self.assertEqual(lines[-1], lines[0])
            rows = csv.DictReader(io.StringIO(
                self.good(*command, "--format", "csv").stdout))
            self.assertEqual([row["instance"] for row in rows
                              if row["chosen"] == "yes"], [chosen])

    def test_07_memory_says_what_it_is_of(self):
        asked = ("predict", "squad_bert_large", "--device", "h100_sxm")
        (title,) = [line for line in self.good(*asked).stdout.splitlines()
                    if line.startswith("memory of one device")]
        for words in ("batch 8", "length 384", "fp16", "adamw",
                      "all activations kept"):
            self.assertIn(words, title)
        self.assertIn("activations checkpointed", self.good(
            *asked, "--set", "gradient_checkpointing=true").stdout)

    def test_08_a_report_asks_for_nothing(self):
        class Requests(html.parser.HTMLParser):
            asked = []

            def handle_starttag(self, tag, attrs):
                self.asked += [(tag, name, value) for name, value in attrs
                               if name in ("src", "href", "srcset", "data")
                               and not value.startswith("#")]
                if tag in ("link", "script", "iframe", "object", "embed"):
                    self.asked += [(tag, name, value) for name, value in attrs
                                   if name in ("src", "href")]

        for command in (WINNER, JOB):
            text = page_of(self, *command)
            self.assertLess(len(text.encode()), 1_000_000)
            reader = Requests()
            reader.asked = []
            reader.feed(text)
            self.assertEqual(reader.asked, [])
            self.assertNotRegex(text, r"url\(|@import|fetch\(|XMLHttpRequest")

    def test_09_a_saved_answer_is_made_again(self):
        job = self.write("my job.yaml", command_line_test.GOOD)
        for command in (
            JOB,
            ("predict", "--batch", "8, 16", "--precision=fp32", job,
             "--device", "l4,t4", "--set", "epochs=2", "--set", "drop_last=true"),
            (*WINNER, "--spot", "--cloud", "aws,gcp", "--deadline", "1h"),
            (*WINNER, "--deadline", "1ms"),
            (*JOB, "--largest", "batch"),
        ):
            saved = self.path("saved.json")
            first = self.run_it(*command, "--export", saved)
            again = self.run_it("replay", saved)
            with open(saved, encoding="utf-8") as file:
                self.assertEqual(again.stdout, file.read())
            self.assertEqual(again.returncode, first.returncode)
            self.assertEqual(len(again.stderr) > 0, again.returncode == 3)
        for arguments, message in (
            (None, "expected what predict or recommend was asked, got nothing"),
            ([], "expected what predict or recommend was asked, got []"),
            (["calibrate"], 'arguments[0]: expected predict or recommend, got '
             '"calibrate"'),
            (["predict", 3], "arguments[1]: expected a text, got 3"),
            (["predict", "emotion_bert_base", "--export=x.csv"],
             'arguments[2]: expected a question, got "--export=x.csv", which '
             "writes a file"),
        ):
            answer = {} if arguments is None else {"arguments": arguments}
            done = self.run_it("replay", self.write("a.json", json.dumps(answer)))
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_10_a_limit_exits_4_with_the_result(self):
        done = self.run_it(*JOB, "--fail-if", "cost_usd>0.001")
        self.assertEqual(done.returncode, 4)
        self.assertEqual(done.stdout, self.good(*JOB).stdout)
        self.assertEqual(
            self.run_it(*JOB, "--fail-if", "cost_usd>100").returncode, 0)


class Conventions(command_line_test.Case):
    def test_01_results_alone_on_standard_output(self):
        file = self.path("a.json")
        done = self.good(*JOB, "--format", "json", "--export", file)
        json.loads(done.stdout)
        self.assertIn(f"written: {file}", done.stderr)
        self.assertEqual(
            self.good(*JOB, "--quiet", "--export", file).stderr, "")

    def test_03_machine_formats_have_base_units(self):
        for command in ANSWERS:
            rows = csv.DictReader(io.StringIO(
                self.good(*command, "--format", "csv").stdout))
            for row in rows:
                for key, value in row.items():
                    if re.fullmatch(r"-?\d+\.\d+", value):
                        self.assertTrue(command_line_test.has_unit(key), key)
        cell = self.json_of(*JOB)["predictions"][0]
        (row,) = csv.DictReader(io.StringIO(
            self.good(*JOB, "--format", "csv").stdout))
        for key in ("step_time_s", "run_time_s", "energy_j", "cost_usd"):
            self.assertAlmostEqual(float(row[key]) / cell[key], 1, places=12)

    def test_05_the_choice_is_explained(self):
        whole = self.json_of(*WINNER)
        self.assertEqual(sum(c["chosen"] for c in whole["candidates"]), 1)
        for candidate in whole["candidates"]:
            if not candidate["chosen"]:
                self.assertTrue(candidate["reason"])
        reasons = " ".join(c["reason"] for c in self.json_of(
            *WINNER, "--deadline", "5min")["candidates"] if c["reason"])
        for words in ("% dearer", "misses the deadline by", "no price"):
            self.assertIn(words, reasons)
        self.assertIn("does not fit memory by", self.good(
            "recommend", "squad_bert_large", "--batch", "64", "--all").stdout)

    def test_06_prices_say_what_they_are(self):
        done = self.good(*WINNER, "--format", "json")
        self.assertRegex(" ".join(json.loads(done.stdout)["notes"]),
                         r"prices: on demand, aws \d{4}-\d\d-\d\d.*excludes ")
        self.assertRegex(done.stderr, r"warning: the price of \S+ is \d+ days old")
        price = self.json_of(*JOB)["price"]
        less = self.json_of(*JOB, "--discount", "AWS=0.5")["price"]
        self.assertEqual(less["list_price_share"], 0.5)
        self.assertAlmostEqual(less["price_usd_per_hour"],
                               price["price_usd_per_hour"] / 2)
        text = self.good(*WINNER, "--discount", "aws=0.5,gcp=0.9").stdout
        self.assertIn(" times 0.5", text)
        self.assertIn("aws/", text.splitlines()[0])
        for bad, words in (("aws", "such as aws=0.8"), ("aws=2", "at most 1"),
                           ("aws=0", "above 0"), ("asw=0.5", 'mean "aws"'),
                           ("aws=0.5,aws=0.6", "second of its cloud")):
            done = self.run_it(*WINNER, "--discount", bad)
            self.assertEqual(done.returncode, 1, bad)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_09_exit_codes(self):
        for code, command in (
            (0, JOB),
            (1, ("predict", "no_such_scenario")),
            (2, ("predict", "emotion_bert_base", "--no-such-flag")),
            (3, (*WINNER, "--deadline", "1ms")),
            (4, (*JOB, "--fail-if", "cost_usd>0")),
        ):
            done = self.run_it(*command)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(bool(done.stdout), code in (0, 3, 4))

    def test_10_colour(self):
        def coloured(*flags, **environment):
            return b"\x1b" in self.on_a_terminal(*WINNER, *flags, **environment)

        self.assertTrue(coloured())
        self.assertFalse(coloured(NO_COLOR="1"))
        self.assertFalse(coloured("--color", "never"))
        self.assertTrue(coloured("--color", "always", NO_COLOR="1"))
        self.assertNotIn("\x1b", self.good(*WINNER).stdout)
        self.assertIn("\x1b", self.good(*WINNER, "--color", "always").stdout)
        # Nothing is said by colour alone: without it the text is the same.
        plain = self.good(*WINNER).stdout
        shown = self.good(*WINNER, "--color", "always").stdout
        self.assertEqual(re.sub("\x1b\\[[0-9]*m", "", shown), plain)

    def test_12_the_nearest_name(self):
        job = self.write("s.yaml", command_line_test.GOOD)
        for nearest, command in (
            ("recommend", ("recomend", "emotion_bert_base")),
            ("--batch", ("predict", "emotion_bert_base", "--bacth", "8")),
            ("llama-3.1-8b", ("predict", "--model", "llama-3.1-8B1",
                              "--samples", "9", "--length", "8")),
            ("aws/g5.xlarge", ("predict", "emotion_bert_base", "--instance",
                               "aws/g5.xlrge")),
            ("h100_sxm", ("predict", "emotion_bert_base", "--device",
                          "h100_smx")),
            ("precision", ("predict", job, "--set", "precison=fp16")),
            ("cost_usd", (*JOB, "--fail-if", "cots_usd>1")),
        ):
            with self.subTest(command):
                done = self.run_it(*command)
                self.assertIn(done.returncode, (1, 2))
                meant = done.stderr.split("did you mean ")[-1].split("?")[0]
                self.assertIn(f'"{nearest}"', meant, done.stderr)
                self.assertLessEqual(meant.count('"') / 2, 3)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_13_what_would_be_asked_without_asking(self):
        shown = self.good("show", "emotion_bert_base", "--set", "batch=8").stdout
        for command in ("predict", "recommend"):
            asked = (command, "emotion_bert_base", "--set", "batch=8", "--dry-run")
            self.assertEqual(self.good(*asked).stdout, shown)
            file = self.path(command + ".json")
            self.good(*asked, "--export", file)
            self.assertFalse(os.path.exists(file))
        both = self.good("predict", "emotion_bert_base", "--batch", "8,16",
                         "--dry-run").stdout.split("---\n")
        self.assertEqual([re.search("(?m)^batch: (.*)", one)[1] for one in both],
                         ["8", "16"])
        plan = self.good("calibrate", "--dry-run", "--budget", "20s").stdout
        runs = [json.loads(line) for line in plan.splitlines()]
        self.assertGreater(len(runs), 1)
        self.assertIn("model", runs[0])
        self.assertEqual(self.good("list", "fits", "--format", "json").stdout.count(
            "cpu"), 0)
        bad = self.run_it("calibrate", "--dry-run", "--from", "runs.jsonl")
        self.assertEqual(bad.returncode, 2)
        self.assertEqual(bad.stderr.count("\n"), 1)

    def test_14_lists_of_what_is_known(self):
        for what in ("devices", "instances", "models", "scenarios", "fits", "prices"):
            self.assertIn("rows", self.json_of("list", what))
        rows = self.json_of("list", "instances")["rows"]
        some = self.json_of("list", "instances", "H100", "aws")["rows"]
        self.assertTrue(some)
        self.assertEqual(some, [row for row in rows if "aws" in str(row)
                                and "h100" in str(row)])
        csv_rows = self.good("list", "instances", "h100", "aws",
                             "--format", "csv").stdout.splitlines()
        self.assertEqual(len(csv_rows), 1 + len(some))
        none = self.good("list", "devices", "abacus")
        self.assertIn('nothing has "abacus"', none.stdout + none.stderr)
        self.assertEqual(self.json_of("list", "devices", "abacus")["rows"], [])

    def test_15_two_answers_compared(self):
        files = []
        for batch in ("32", "64"):
            files.append(self.path(batch + ".json"))
            self.good(*JOB, "--batch", batch, "--export", files[-1])
        (change,) = self.json_of("diff", *files)["changes"]
        self.assertNotEqual(change["change"]["run_time_percent"], 0)
        self.assertIn("nothing moved", self.good("diff", files[0], files[0]).stdout)

    def test_16_seeds_are_stored(self):
        rows = self.write("a.csv", command_line_test.TABLE_HEADER + "".join(
            command_line_test.table_row(batch=batch) for batch in (4, 8, 16)))
        asked = ("validate", rows, "--protocol", "one-run-per-device")
        self.assertEqual(self.json_of(*asked)["seed"], 1)
        self.assertEqual(self.json_of(*asked, "--seed", "7")["seed"], 7)
        self.assertEqual(self.good(*asked).stdout, self.good(*asked).stdout)
        saved = self.path("saved.json")
        self.good(*WINNER, "--export", saved)
        with open(saved, encoding="utf-8") as file:
            self.assertEqual(self.good("replay", saved).stdout, file.read())

    def test_17_completion_and_manual_from_one_definition(self):
        folder = self.path("man1")
        self.good("man", "--output-folder", folder)
        commands = re.findall(r"(?m)^  ([a-z]+) +[A-Z]", self.good("--help").stdout)
        self.assertGreater(len(commands), 8)
        self.assertEqual(sorted(os.listdir(folder)), sorted(
            ["trainfare.1", *(f"trainfare-{name}.1" for name in commands)]))
        shells = {shell: self.good("completion", shell).stdout
                  for shell in ("bash", "zsh", "fish")}
        for name in commands:
            page = self.good("man", name).stdout
            self.assertTrue(page.startswith(
                f'.TH "TRAINFARE-{name.upper()}" 1 "" "trainfare '))
            options = re.findall(r"(?m)^  (?:-\w,)?(--[a-z-]+)",
                                 self.good(name, "--help").stdout)
            self.assertIn("--help", options)
            for option in options:
                self.assertIn(option.replace("-", "\\-"), page)
                self.assertIn(option, shells["bash"])
                self.assertIn(f"-l {option[2:]}", shells["fish"])
            if shutil.which("groff"):
                done = subprocess.run(
                    ["groff", "-man", "-ww", "-z", "-Tutf8"], input=page, text=True,
                    stderr=subprocess.PIPE, check=True)
                self.assertEqual(done.stderr, "")
        bad = self.run_it("man", "predcit")
        self.assertEqual(bad.returncode, 2)
        self.assertIn('did you mean "predict"', bad.stderr)

    def test_18_a_report_is_one_file_with_its_tables(self):
        text = page_of(self, *WINNER)
        self.assertIn("prefers-color-scheme", text)
        self.assertIn("@media print", text)
        whole = self.json_of(*WINNER)
        for candidate in whole["candidates"][:10]:
            self.assertIn(candidate["instance"], text)
        hostile = self.write("s.yaml", command_line_test.GOOD.replace(
            "a job", "'<script>alert(1)</script>'"))
        text = page_of(self, "predict", hostile, "--device", "t4")
        self.assertNotIn("<script>alert", text)
        self.assertIn("&lt;script&gt;alert", text)


class Page(unittest.TestCase):
    def test_the_page_names_every_test_and_no_other(self):
        text = PAGE.read_text(encoding="utf-8")
        named = set(re.findall(r"`(Acceptance|Conventions)\.(test_\w+)`", text))
        there = {(suite.__name__, name) for suite in (Acceptance, Conventions)
                 for name in vars(suite) if name.startswith("test_")}
        self.assertEqual(named, there)
        for heading, count in (("Acceptance", 10), ("Conventions", 18)):
            section = text.split(f"## {heading}")[1].split("\n## ")[0]
            numbers = re.findall(r"^\| (\d+) \|", section, re.MULTILINE)
            self.assertEqual([int(n) for n in numbers],
                             list(range(1, count + 1)))
            for number, suite, test in re.findall(
                    r"^\| (\d+) \|.*`(\w+)\.(test_\w+)`", section, re.MULTILINE):
                self.assertEqual(suite, heading)
                self.assertTrue(test.startswith(f"test_{int(number):02}_"))


if __name__ == "__main__":
    if not os.access(command_line_test.PROGRAM, os.X_OK):
        sys.exit(f"usage: {sys.argv[0]} PROGRAM [SUITE]")
    unittest.main()
