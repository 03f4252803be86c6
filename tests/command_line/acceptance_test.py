"""Acceptance tests of the program, by their numbers.

    python3 acceptance_test.py PROGRAM [SUITE]

docs/guide/conventions.md says what each number is.
"""

import csv
import html.parser
import io
import json
import os
import subprocess

import json_schema
import program
from asked import ANSWERS, JOB, WINNER, page_of
from figure_names import has_unit
from program import GOOD, PROGRAM, Case


class Acceptance(Case):
    def test_01_json_is_whole_wherever_standard_error_goes(self):
        command = [PROGRAM, *WINNER, "--format", "json"]

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
                self.assertTrue(has_unit(key),
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
        self.assertIn("1 row dropped: sentinel price", said)

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
            command = (*command, "--now", "2026-11-23T18:01:31Z")
            text = page_of(self, *command)
            self.assertEqual(page_of(self, *command), text)
            self.assertLess(len(text.encode()), 1_000_000)
            reader = Requests()
            reader.asked = []
            reader.feed(text)
            self.assertEqual(reader.asked, [])
            self.assertNotRegex(text, r"url\(|@import|fetch\(|XMLHttpRequest")

    def test_09_a_saved_answer_is_made_again(self):
        job = self.write("my job.yaml", GOOD)
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
            (["predict", "/dev/fd/63", "--device=l4"],
             'arguments[1]: expected a file that is still there, got "/dev/fd/63", '
             "which was a pipe; hint: ask again, with a file"),
            (["predict", "l4.yaml", "--set=model=/dev/fd/63"],
             'arguments[2]: expected a file that is still there, got '
             '"--set=model=/dev/fd/63", which was a pipe'),
            (["predict", "--model=/dev/fd/63", "--samples=8", "--seq=8"],
             'arguments[1]: expected a file that is still there, got '
             '"--model=/dev/fd/63", which was a pipe'),
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


if __name__ == "__main__":
    program.main()
