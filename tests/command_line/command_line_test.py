"""The program as a person runs it.

    python3 command_line_test.py PROGRAM [SUITE]

Needs nothing but the standard library. Runs see no fit of whoever runs them.
"""

import csv
import io
import json
import os
import random
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import json_schema
import pseudo_terminal

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else ""
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# What counts as now: the age of shipped prices is the same on every day.
NOW = "1795392000"  # 2026-11-23

GOOD = """\
name: a job
model: bert-base-uncased
task: sequence-classification
dataset: { train: 1000 }
epochs: 1
batch: 8
padding: { static: 32 }
precision: fp32
optimizer: { name: adamw, implementation: fused }
stack: eager
"""

# A model's config.json.
CONFIG = """\
{"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64,
 "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100,
 "max_position_embeddings": 640}
"""

TABLE_HEADER = (
    "source,source_file,system_name,device,n_devices,nodes,model,hidden,layers,"
    "heads,intermediate,vocab,seq_len,batch_per_device,grad_accum,precision,"
    "framework,stack_notes,task,metric,value,notes\n"
)


def table_row(device="t4", batch=8, length=128, precision="fp16", step_ms=100):
    return (
        f"test,file,system,{device},1,1,bert-base,768,12,12,3072,30522,{length},"
        f"{batch},1,{precision},PyTorch,,finetune,step_ms,{step_ms},\n"
    )


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = self._folder.name

    def tearDown(self):
        self._folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def environment(self, **more):
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME")}
        return {**kept, "TRAINFARE_FITS": self.path("fits"),
                "XDG_CONFIG_HOME": self.path("config"),
                "SOURCE_DATE_EPOCH": NOW, **more}

    def run_it(self, *arguments, environment=None, **options):
        return subprocess.run(
            [PROGRAM, *arguments],
            capture_output=True,
            text=True,
            env=self.environment(**(environment or {})),
            timeout=60,
            check=False,
            **options,
        )

    def good(self, *arguments, **options):
        result = self.run_it(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refused(self, code, message, *arguments, **options):
        """One line on standard error, nothing on standard output."""
        result = self.run_it(*arguments, **options)
        said = result.stderr.replace(self.folder + os.sep, "")
        self.assertEqual(said, f"trainfare: {message}\n")
        self.assertEqual(result.returncode, code)
        self.assertEqual(result.stdout, "")

    def begins(self, code, message, *arguments, **options):
        """The same line as far as it goes, paths and all."""
        result = self.run_it(*arguments, **options)
        self.assertTrue(result.stderr.startswith(f"trainfare: {message}"),
                        result.stderr)
        self.assertEqual((result.returncode, result.stdout), (code, ""))
        self.assertEqual(result.stderr.count("\n"), 1)
        return result.stderr

    def on_a_terminal(self, *arguments, **environment):
        text, code = pseudo_terminal.shown(
            [PROGRAM, *arguments], columns=200, errors=subprocess.DEVNULL,
            environment=self.environment(TERM="xterm", **environment))  # fmt: skip
        self.assertEqual(code, 0)
        return text

    def json_of(self, *arguments, code=0):
        result = self.run_it(*arguments, "--format", "json")
        self.assertEqual(result.returncode, code, result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual(json_schema.errors_of(answer), [], arguments)
        return answer


COMMANDS = (
    ("predict", "emotion_bert_base", "--device", "a100_sxm4_80gb"),
    ("predict", "imdb_bert_base", "--instance", "aws/p3.2xlarge"),
    ("recommend", "emotion_bert_base"),
    ("recommend", "squad_bert_large", "--spot"),
    ("list", "devices"),
    ("list", "instances"),
    ("list", "models"),
    ("list", "fits"),
    ("list", "scenarios"),
    ("list", "prices"),
    ("list", "keys"),
    ("list", "parameters"),
)


class Streams(Case):
    def test_json_is_alone_on_standard_output(self):
        for command in COMMANDS:
            with self.subTest(command):
                json.loads(self.good(*command, "--format", "json").stdout)

    def test_quiet_leaves_standard_error_empty(self):
        for command in COMMANDS:
            with self.subTest(command):
                self.assertEqual(self.good(*command, "--quiet").stderr, "")

    def test_works_with_standard_error_closed(self):
        result = subprocess.run(
            [PROGRAM, "recommend", "emotion_bert_base", "--format", "json"],
            stdout=subprocess.PIPE,
            preexec_fn=lambda: os.close(2),
            env=self.environment(),
            timeout=60,
            check=False,
        )
        self.assertEqual(result.returncode, 0)
        json.loads(result.stdout)

    def test_no_escape_or_carriage_return_when_piped(self):
        for command in COMMANDS:
            for style in ("table", "markdown", "csv", "json"):
                with self.subTest((command, style)):
                    result = self.good(*command, "--format", style)
                    for text in (result.stdout, result.stderr):
                        self.assertNotIn("\x1b", text)
                        self.assertNotIn("\r", text)

    def test_colour_on_a_terminal_and_not_with_no_color(self):
        command = ("recommend", "emotion_bert_base")
        self.assertIn(b"\x1b[1m", self.on_a_terminal(*command))
        self.assertNotIn(b"\x1b", self.on_a_terminal(*command, NO_COLOR="1"))
        self.assertNotIn(
            b"\x1b", self.on_a_terminal(*command, "--color", "never")
        )
        self.assertIn("\x1b[1m", self.good(*command, "--color", "always").stdout)

    def test_version_and_help_are_results(self):
        result = self.good("--version")
        self.assertRegex(result.stdout, r"^trainfare \d+\.\d+\.\d+\n$")
        self.assertEqual(result.stderr, "")
        said = self.good("--help").stdout
        self.assertIn("predict", said)
        self.assertIn("those with figures --fail-if", " ".join(said.split()))
        self.assertIn("--batch", self.good("predict", "--help").stdout)
        self.assertEqual(
            self.good("help", "predict").stdout,
            self.good("predict", "--help").stdout,
        )


class BadInput(Case):
    def scenario(self, old, new):
        self.assertIn(old, GOOD)
        return self.write("s.yaml", GOOD.replace(old, new))

    def test_scenario_files(self):
        cases = (
            (
                ("epochs: 1\n", ""),
                's.yaml:1:1: missing key "epochs", an integer from 1 to 1000000',
            ),
            (
                ("epochs: 1", "epochs: 1\nepochs: 2"),
                's.yaml:6:1: duplicate key "epochs"; first at 5:1',
            ),
            (
                ("batch: 8", "batch: 0"),
                "s.yaml:6:8: batch: expected an integer from 1 to 1048576, got 0",
            ),
            (
                ("batch: 8", "batch: .nan"),
                "s.yaml:6:8: batch: expected an integer from 1 to 1048576, got "
                '".nan"',
            ),
            (
                ("static: 32", "static: 513"),
                "s.yaml:7:10: padding: expected a length of at most 512, the "
                "positions of bert-base-uncased, got 513",
            ),
            (
                ("stack: eager", "stack: eager\nrun: { start_up: 4 GB }"),
                's.yaml:11:18: run.start_up: expected a time such as "5 us", got '
                '"4 GB"; known units: ns, us, \u00b5s, \u03bcs, ms, s, min, m, h, '
                "d",
            ),
        )
        for (old, new), message in cases:
            with self.subTest(message):
                self.refused(1, message, "predict", self.scenario(old, new))

    def test_padding_says_its_forms(self):
        forms = (
            "expected dynamic, { static: LENGTH }, { dynamic: LONGEST } or "
            "{ buckets: [LENGTH, ..] }"
        )
        for padding in ("32", "static", "{ static: 8, dynamic: 8 }"):
            with self.subTest(padding):
                self.refused(
                    1, f"s.yaml:7:10: padding: {forms}",
                    "predict", self.scenario("{ static: 32 }", padding),
                )  # fmt: skip

    def test_unknown_key_names_the_nearest(self):
        for old, new, hint in (
            ("batch: 8", "bacth: 8", 'is "bacth" at 6:1 meant?'),
            ("stack: eager", "stack: eager\natention: flash",
             'did you mean "attention"?'),
        ):  # fmt: skip
            with self.subTest(new):
                result = self.run_it("predict", self.scenario(old, new))
                self.assertEqual(result.returncode, 1)
                self.assertIn(hint, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)

    def test_empty_and_absent_files(self):
        self.refused(
            1,
            "s.yaml: expected a map of keys, got an empty file",
            "predict",
            self.write("s.yaml", ""),
        )
        for command, name in (("predict", "none.yaml"),
                              ("validate", "none.csv"),
                              ("validate", "none.jsonl")):  # fmt: skip
            self.refused(
                1,
                f"{name}: cannot be opened: No such file or directory",
                command, self.path(name),
            )  # fmt: skip
        self.refused(
            1,
            'emotion_bert_base.yaml: no such file; "emotion_bert_base" alone '
            "is the shipped one",
            "predict", self.path("emotion_bert_base.yaml"),
        )  # fmt: skip
        folder = self.path("empty")
        os.mkdir(folder)
        self.refused(
            1,
            "empty: expected measurements (.jsonl, .csv) or a folder of "
            "published figures, got a folder without any .yaml",
            "validate", folder,
        )  # fmt: skip
        self.refused(
            1,
            "empty: nothing in it can be used",
            "calibrate", "--from", folder,
        )  # fmt: skip

    def test_unknown_names_get_the_nearest(self):
        cases = (
            (
                ("predict", "emotion_bert_bse"),
                'did you mean "emotion_bert_base"?',
            ),
            (
                ("predict", "emotion_bert_base", "--device", "a100_sxm4_80gbb"),
                '"a100_sxm4_80gb"',
            ),
            (
                ("predict", "emotion_bert_base", "--instance", "g5.xlrge"),
                'did you mean "g5.xlarge"',
            ),
            (("recommend", "emotion_bert_base", "--cloud", "asw"), '"aws"'),
        )
        for command, hint in cases:
            with self.subTest(command):
                result = self.run_it(*command)
                self.assertEqual(result.returncode, 1)
                self.assertIn(hint, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)
                self.assertEqual(result.stdout, "")
        model = self.scenario("bert-base-uncased", "bert-base-uncasde")
        result = self.run_it("predict", model)
        self.assertEqual(result.returncode, 1)
        self.assertIn('"bert-base-uncased"', result.stderr)

    def test_flags_out_of_range(self):
        large = "99999999999999999999"
        for flag, most in (
            ("--batch", 1048576), ("--seq", 1048576), ("--epochs", 1000000),
            ("--devices", 1048576),
        ):  # fmt: skip
            for value in ("0", "-1", str(most + 1)):
                with self.subTest((flag, value)):
                    self.refused(
                        1,
                        f"{flag}: expected an integer from 1 to {most}, "
                        f"got {value}",
                        "predict", "emotion_bert_base", flag, value,
                    )  # fmt: skip
            for value, expected in (
                (large, "a whole number of 64 bits"),
                ("8-32", "a whole number"),
                ("1e3", "a whole number"),
                ("1.5", "a whole number"),
                ("", "a whole number"),
            ):
                with self.subTest((flag, value)):
                    self.refused(
                        1,
                        f'{flag}: expected {expected}, got "{value}"',
                        "predict", "emotion_bert_base", flag, value,
                    )  # fmt: skip
        self.refused(
            1,
            "--seq: padding: expected a length of at most 512, the positions of "
            "bert-base-uncased, got 513",
            "predict",
            "emotion_bert_base",
            "--seq",
            "32,513",
        )

    def test_a_flag_of_a_wrong_word_is_named(self):
        self.refused(
            1,
            '--work: unknown work "dream"; known: training, forward',
            "predict",
            "emotion_bert_base",
            "--work",
            "dream",
        )

    def test_usage(self):
        cases = (
            (
                ("lits", "devices"),
                'unknown subcommand "lits"; did you mean "list"? known: '
                "calibrate, predict, recommend, validate, diff, replay, list, import, init, show, prices, config, completion, man",
            ),
            (
                ("predict", "emotion_bert_base", "--bacth", "3"),
                'unknown option "--bacth"; did you mean "--batch"?; trainfare '
                "predict --help lists them",
            ),
            (("predict", "a", "b"), 'unexpected argument "b"'),
            (
                ("predict",),
                "expected a SCENARIO, or --model NAME with --samples N and --length N",
            ),
            (("prices",), "prices: expected a subcommand: import"),
            (
                ("predict", "emotion_bert_base", "--fit", "a.yaml",
                 "--fit", "b.yaml"),
                "--fit: expected once, given several times",
            ),
            (
                ("predict", "emotion_bert_base", "--format"),
                "--format: expected a value, got nothing",
            ),
            (
                ("predict", "emotion_bert_base", "--spot", "--device", "l4"),
                "--spot: needs --instance, whose price it is",
            ),
            (
                ("predict", "emotion_bert_base", "--prices", "p.yaml"),
                "--prices: needs --instance, whose price it is",
            ),
            (
                ("predict", "emotion_bert_base", "--region", "mars"),
                "--region: needs --instance, whose price it is",
            ),
            (
                ("predict", "emotion_bert_base", "--discount", "aws=0.5"),
                "--discount: needs --instance, whose price it is",
            ),
            (
                ("recommend", "emotion_bert_base", "--device", "l4",
                 "--instance", "aws/p5.48xlarge"),
                "--device, --instance: expected an instance that suits all of "
                "them, got none",
            ),
            (("prices", "imprt"),
             'prices: unknown subcommand "imprt"; did you mean "import"? known: '
             "import"),
            (("recommend", "emotion_bert_base", "--top", "3", "--all"),
             "--top: not with --all"),
            (("predict", "emotion_bert_base", "--largest", "batch", "--batch", "8"),
             "--largest: not with --batch"),
            (("predict", "emotion_bert_base", "--config", "f", "--no-config"),
             "--config: not with --no-config"),
            (("man", "predict", "--output-folder", "m"),
             "COMMAND: not with --output-folder"),
            (("calibrate", "--from", "runs.csv", "--budget", "5s"),
             "--from: not with --budget"),
            (("calibrate", "--from", "runs.csv", "--plan", "p.jsonl"),
             "--from: not with --plan"),
            (("calibrate", "--plan", "p.jsonl"),
             "--plan: say of which device, with --device"),
            (("calibrate", "--launch", "slurm"),
             "--instances: expected instances to calibrate, got none; see "
             "`trainfare list instances`"),
            (("validate", "x.csv", "./x.csv", "x.csv"),
             "validate: expected each file once, x.csv is given several times"),
        )
        for command, message in cases:
            with self.subTest(command):
                self.refused(2, message, *command)
        result = self.run_it()
        self.assertEqual(result.returncode, 2)
        self.assertIn("expected a subcommand", result.stderr)

    def test_values_that_cannot_be(self):
        cases = (
            (
                ("predict", "emotion_bert_base", "--batch", "x"),
                '--batch: expected a whole number, got "x"',
            ),
            (
                ("predict", "emotion_bert_base", "--batch", "8,,16"),
                '--batch: expected a whole number, got ""',
            ),
            (
                ("calibrate", "--models", "bert-tiny,"),
                '--models: expected a name, got ""',
            ),
            (
                ("predict", "emotion_bert_base", "--format", "xml"),
                "--format: expected table, json, csv or markdown, got "
                '"xml"',
            ),
            (
                ("predict", "emotion_bert_base", "--export", "a.txt"),
                "--export a.txt: expected a file ending in .html, .json, .csv, .md or .trace.json, or - for standard output",
            ),
            (
                ("predict", "emotion_bert_base", "--color", "blue"),
                '--color: expected auto, always or never, got "blue"',
            ),
            (
                ("recommend", "emotion_bert_base", "--deadline", "0s"),
                '--deadline: expected a time above 0 such as "4h", got "0s"',
            ),
            (
                ("recommend", "emotion_bert_base", "--budget", "-4usd"),
                '--budget: expected an amount above 0 such as "20 USD", got '
                '"-4usd"',
            ),
            (
                ("calibrate", "--target", "3"),
                "--until: expected a share from 0 to 1, such as 5% or 0.05, "
                'got "3"',
            ),
            (
                ("recommend", "emotion_bert_base", "--deadline", "4"),
                '--deadline: expected a time such as "4h", got "4"; a number '
                "needs its unit",
            ),
            (
                ("validate", "x.csv", "--fail-if", "mape>>5"),
                '--fail-if: expected a limit such as "cost_usd>100" or '
                '"mape>5%", a figure of the JSON answer, got "mape>>5"',
            ),
            (
                ("validate", "x.csv", "--fail-if", "mdian>5"),
                '--fail-if: unknown figure "mdian"; did you mean "median"? '
                "known: bias, coverage, coverage_95, mape, max, median, n, "
                "p90, with_interval",
            ),
            (("calibrate", "--batch", "0"),
             "--batch: expected an integer from 1 to 1048576, got 0"),
            (("calibrate", "--ranks", "0"),
             "--ranks: expected an integer from 1 to 1048576, got 0"),
            (("calibrate", "--device", "t5"), '--device: unknown device "t5"'),
            (("calibrate", "--dry-run", "--precision", "foo"),
             '--precision: unknown precision "foo"; known: fp32'),
            (("calibrate", "--dry-run", "--models", "foo"),
             '--models: unknown model "foo"'),
            (("predict", "emotion_bert_base", "--set", "batch"),
             '--set: expected KEY=VALUE, got "batch"; hint: --set '
             "dataset.train=1000"),
            (("predict", "emotion_bert_base", "--set", "=8"),
             '--set: expected KEY=VALUE, got "=8"; hint: '),
            (("predict", "emotion_bert_base", "--device", "t5"),
             '--device: unknown device "t5"'),
            (("predict", "emotion_bert_base", "--instance", "aws/p9"),
             '--instance: unknown instance "aws/p9"'),
            (("recommend", "emotion_bert_base", "--also", "t5"),
             '--also: unknown device "t5"'),
            (("predict", "emotion_bert_base", "--network", "x"),
             '--network: expected a rate such as 400Gbit/s, got "x"'),
            (("predict", "emotion_bert_base", "--largest", "foo"),
             '--largest: expected batch, length or model, got "foo"'),
            (("recommend", "emotion_bert_base", "--objective", "foo"),
             "--objective: expected "),
            (("validate", "x.csv", "--protocol", "x"), '--protocol: unknown "x"'),
            (("validate", "x.csv", "--seed", "-1"),
             "--seed: expected a whole number from 0 to 1000000, got -1"),
            (("completion", "cmd"),
             'completion: expected bash, zsh or fish, got "cmd"'),
            (("list", "device"), 'list: unknown "device"'),
        )
        for command, message in cases:
            with self.subTest(command):
                self.begins(1, message, *command)

    def test_an_empty_value_is_no_value(self):
        """Else a script with a variable that is not set has no limit."""
        predict = ("predict", "emotion_bert_base")
        recommend = ("recommend", "emotion_bert_base")
        for option, words, command in (
            ("--budget", "an amount", recommend),
            ("--deadline", "a time", recommend),
            ("--objective", "", recommend),
            ("--cloud", "a name", recommend),
            ("--discount", "a name", recommend),
            ("--baseline", "a file", predict),
            ("--config", "a file", predict),
            ("--now", "a time", predict),
            ("--format", "table, json, csv or markdown", predict),
            ("--color", "auto, always or never", predict),
            ("--fail-if", "a limit", predict),
            ("--export", "a file", predict),
            ("--fit", "a file", predict),
            ("--model", "a name, a file or a folder", predict),
            ("--set", "KEY=VALUE", predict),
            ("--batch", "a whole number", predict),
            ("--network", "a rate", predict),
            ("--budget", "a time", ("calibrate",)),
            ("--until", "a share", ("calibrate",)),
            ("--device", "a name", ("calibrate",)),
            ("--output", "a file", ("calibrate",)),
            ("--scenario", "a name", ("calibrate",)),
            ("--plan", "a file", ("calibrate",)),
            ("--launch", "torchrun, slurm or skypilot", ("calibrate",)),
            ("--output", "a file", ("show", "emotion_bert_base")),
            ("--output-folder", "a folder", ("man",)),
            ("--date", "a day", ("prices", "import", "x.csv", "--cloud", "aws")),
        ):
            for given in ((option, ""), (option + "=",)):
                with self.subTest((command, given)):
                    self.assertIn('got ""', self.begins(
                        1, f"{option}: expected {words}", *command, *given))
        self.refused(1, 'SCENARIO: expected a value, got ""', "predict", "")
        # A variable that is empty is one that is not set.
        self.good(*recommend, environment={"TRAINFARE_BUDGET": ""})

    def test_files_of_others_stay(self):
        def stays(code, name, text, message, *arguments):
            file = self.write(name, text)
            self.refused(code, message, *arguments)
            with open(file, encoding="utf-8") as kept:
                self.assertEqual(kept.read(), text)

        def ours(flag, name, what):
            return (f"{flag} {name}: expected a new file, or {what} to replace; "
                    "the one that is there is none")

        note = "My notes\n\n| a |\n| --- |\n"
        ask = ("predict", "emotion_bert_base", "--device", "l4", "--export")
        for name, text in (("a.json", '{"hidden_size": 768}\n'),
                           ("a.trace.json", '{"traceEvents": []}\n'),
                           ("a.html", "<!DOCTYPE html>\n<html></html>\n"),
                           ("a.md", note), ("a.csv", "device,step\nl4,1\n")):
            answer = "an answer"
            if name == "a.csv":
                answer += " of these columns"
            stays(1, name, text, ours("--export", name, answer),
                  *ask, self.path(name))
            # What is empty holds nothing, and an answer may be replaced by one
            # to another question.
            self.write(name, "")
            self.good(*ask, self.path(name))
            self.good("predict", "emotion_bert_base", "--device", "t4,l4",
                      "--precision", "fp16", "--export", self.path(name))
        self.good("recommend", "emotion_bert_base", "--export", self.path("a.json"))
        for name in ("twice.json", "./twice.json"):
            self.refused(2, "--export: expected each file once, twice.json is "
                         "given several times", *ask, "twice.json", "--export", name,
                         cwd=self.folder)
        self.assertFalse(os.path.exists(self.path("twice.json")))
        # Before the question is answered.
        os.makedirs(self.path("folder.json"))
        for target, why in (("none/a.json", "No such file or directory"),
                            ("folder.json", "Is a directory")):
            self.refused(1, f"{target}: cannot be written: {why}",
                         *ask, self.path(target))
        rows = self.path("rows.csv")
        table = TABLE_HEADER + table_row()
        reads = "expected a file of its own, FILE reads this one"
        stays(2, "rows.csv", table, f"--export rows.csv: {reads}",
              "validate", rows, "--export", rows)
        # Also where the option that reads stands behind the one that writes.
        stays(2, "s.json", '{"predict": {"batch": 8}}\n',
              f"--export s.json: {reads.replace('FILE', '--config')}",
              *ask, self.path("s.json"), "--config", self.path("s.json"))
        with open(self.path("a.json"), encoding="utf-8") as answer:
            text = answer.read()
        other = self.write("b.json", text)
        stays(2, "a.json", text, f"--export a.json: {reads.replace('FILE', 'BEFORE')}",
              "diff", self.path("a.json"), other, "--export", self.path("a.json"))
        # The answer of yesterday gives way to that of today.
        self.good("recommend", "emotion_bert_base", "--baseline",
                  self.path("a.json"), "--export", self.path("a.json"))
        plan = ("calibrate", "--device", "l4", "--budget", "20s", "--plan")
        stays(1, "p.txt", note, ours("--plan", "p.txt", "a plan"),
              *plan, self.path("p.txt"))
        script = ("calibrate", "--launch", "slurm", "--instances", "aws/g5.xlarge",
                  "--script")
        stays(1, "s.sh", "#!/bin/sh\n",
              ours("--script", "s.sh", "a script of --launch"),
              *script, self.path("s.sh"))
        for command, name in ((plan, "new.jsonl"), (script, "new.sh")):
            self.good(*command, self.path(name))
            self.good(*command, self.path(name))
        page = self.path("trainfare.1")
        stays(1, "trainfare.1", note,
              ours("--output-folder", "trainfare.1", "a page of the manual"),
              "man", "--output-folder", self.folder)
        self.assertFalse(os.path.exists(self.path("trainfare-predict.1")))
        os.remove(page)
        for _ in range(2):
            self.good("man", "--output-folder", self.folder)

    def test_what_a_dry_run_has_no_use_for(self):
        for command in ("predict", "recommend"):
            asked = (command, "emotion_bert_base", "--dry-run")
            self.good(*asked)
            for code, message, flags in (
                (2, "--format: not with --dry-run", ("--format", "json")),
                (2, "--export: not with --dry-run", ("--export", "dry.json")),
                (1, '--device: unknown device "nope"', ("--device", "nope")),
                (1, "--fail-if: unknown figure", ("--fail-if", "foo>1")),
                (1, "--fail-if: expected a limit", ("--fail-if", "foo")),
                (1, "--color: expected auto", ("--color", "x")),
                (1, "nope.json: cannot be opened", ("--baseline", "nope.json")),
            ):
                with self.subTest((command, flags)):
                    self.begins(code, message, *asked, *flags)
            # A setting is of no use there either, and nobody's fault.
            self.good(*asked, environment={"TRAINFARE_FORMAT": "json"})
        self.begins(1, "--budget: expected an amount", "recommend",
                    "emotion_bert_base", "--dry-run", "--budget", "x")
        largest = ("predict", "emotion_bert_base", "--dry-run", "--largest")
        self.good(*largest, "batch")
        self.begins(1, "--largest: expected batch, length or model", *largest, "foo")
        for flag, value in (("--batch", "8"), ("--baseline", "a.json")):
            self.begins(2, f"--largest: not with {flag}", *largest, "batch", flag, value)
        # What would not fit is asked all the same.
        self.good("predict", "llama_70b_qlora", "--device", "t4", "--precision",
                  "fp16", "--dry-run")

    def test_settings_give_way_to_the_line(self):
        asked = ("recommend", "emotion_bert_base")
        self.assertEqual(
            self.good(*asked, "--all", environment={"TRAINFARE_TOP": "3"}).stdout,
            self.good(*asked, "--all").stdout)
        both = self.write("both.yaml", "top: 3\nall: true\n")
        self.begins(1, f"{both}:2:6: --all: not with --top, which {both}:1:6 says",
                    *asked, "--config", both)
        largest = ("predict", "emotion_bert_base", "--device", "l4", "--largest",
                   "batch", "--format", "csv")
        self.assertEqual(
            self.good(*largest, environment={"TRAINFARE_BATCH": "8"}).stdout,
            self.good(*largest).stdout)

        # A flag that is off goes with anything.
        off = self.write("off.yaml", "top: 3\nall: false\n")
        self.assertEqual(self.good(*asked, "--config", off).stdout,
                         self.good(*asked, "--top", "3").stdout)

    def test_a_stronger_source_of_settings_goes_first(self):
        """Of two settings that have no use together, by where they stand."""
        asked = ("recommend", "emotion_bert_base")
        whole = self.good(*asked, "--all").stdout
        three = self.good(*asked, "--top", "3").stdout
        self.assertNotEqual(whole, three)
        here = self.path("here")
        os.makedirs(here)
        os.makedirs(self.path("config/trainfare"))

        def answer(folder, user, **environment):
            self.write("here/trainfare.yaml", folder)
            self.write("config/trainfare/config.yaml", user)
            return self.good(*asked, cwd=here, environment=environment).stdout

        nothing = "spot: false\n"
        self.assertEqual(answer("top: 3\n", nothing, TRAINFARE_ALL="true"), whole)
        self.assertEqual(answer("all: true\n", nothing, TRAINFARE_TOP="3"), three)
        self.assertEqual(answer("top: 3\n", "all: true\n"), three)
        self.assertEqual(answer("recommend: { all: true }\n", "top: 3\n"), whole)
        self.assertEqual(answer("all: true\n", nothing, TRAINFARE_ALL="false"),
                         self.good(*asked).stdout)
        # In one source what is said of the command goes before what is of all.
        self.assertEqual(answer("recommend: { all: true }\ntop: 3\n", nothing), whole)
        self.assertEqual(answer("all: true\nrecommend: { top: 3 }\n", nothing), three)
        self.write("here/trainfare.yaml", "recommend: { all: true, top: 3 }\n")
        self.begins(1, "trainfare.yaml:1:19: --all: not with --top, which "
                    "trainfare.yaml:1:30 says", *asked, cwd=here)

    def test_what_a_list_says_twice_is_said_once(self):
        for once, twice in (
            (("calibrate", "--launch", "slurm", "--instances", "aws/g5.xlarge",
              "--models", "bert-tiny", "--precision", "fp32"),
             ("calibrate", "--launch", "slurm", "--instances",
              "aws/g5.xlarge, aws/g5.xlarge", "--models",
              "bert-tiny,google/bert-tiny,bert-tiny", "--precision", "fp32,fp32")),
            (("predict", "emotion_bert_base", "--device", "l4", "--batch", "8",
              "--seq", "32,64"),
             ("predict", "emotion_bert_base", "--device", "l4,L4", "--batch", "8,8",
              "--seq", "32,64,32")),
            (("recommend", "emotion_bert_base", "--also", "groq_lpu"),
             ("recommend", "emotion_bert_base", "--also", "groq_lpu,groq_lpu")),
        ):
            with self.subTest(twice):
                self.assertEqual(self.good(*twice).stdout, self.good(*once).stdout)

    def test_where_a_job_runs_is_said_by_the_line_before_a_setting(self):
        """By a device or an instance: the line's stands alone."""
        file = self.path("trainfare.yaml")
        own = ("emotion_bert_base", "--format", "csv")

        def answer(command, setting, *flags, **environment):
            self.write("trainfare.yaml", setting)
            return self.good(command, *own, *flags, cwd=self.folder,
                             environment=environment).stdout

        instance = ("--instance", "aws/g5.xlarge")
        device = ("--device", "h100_sxm,l4")
        for command, setting, flags in (
            ("predict", "device: h100_sxm\n", instance),
            ("predict", "device: [h100_sxm, l4]\n", instance),
            ("predict", "instance: aws/g5.xlarge\n", device),
            ("recommend", "device: h100_sxm\n", instance),
            ("recommend", "cloud: gcp\n", instance),
            ("recommend", "instance: aws/g5.xlarge\n", device),
        ):
            with self.subTest((command, setting)):
                given = answer(command, setting, *flags)
                os.remove(file)
                self.assertEqual(given, self.good(command, *own, *flags).stdout)
        on_l4 = self.good("predict", *own, "--device", "l4").stdout
        # Of settings the stronger one; what both say of one file is refused.
        self.assertEqual(
            answer("predict", "instance: aws/g5.xlarge\n", TRAINFARE_DEVICE="l4"), on_l4)
        self.assertEqual(
            answer("predict", "instance: aws/g5.xlarge\npredict: { device: l4 }\n"), on_l4)
        self.write("trainfare.yaml", "device: l4\ninstance: aws/g5.xlarge\n")
        self.begins(2, "trainfare.yaml:1:9: --device and --instance: give one of them",
                    "predict", *own, cwd=self.folder)
        said = "--device, --instance: expected an instance that suits all of them"
        self.begins(2, f"trainfare.yaml:1:9: {said}", "recommend", *own,
                    cwd=self.folder)
        # A fit is of a device, too.
        fit = os.path.join(ROOT, "calibrate/fits/a10.yaml")
        self.assertEqual(answer("predict", "device: h100_sxm\n", "--fit", fit),
                         self.good("predict", *own, "--fit", fit).stdout)
        # A cloud still narrows instances; which setting is in its way is said.
        self.write("trainfare.yaml", "instance: aws/g5.xlarge\n")
        self.begins(2, "trainfare.yaml:1:11: --cloud, --instance: expected",
                    "recommend", *own, "--cloud", "gcp", cwd=self.folder)

    def test_prices_of_a_setting_wait_for_an_instance(self):
        device = ("predict", "emotion_bert_base", "--device", "l4", "--format", "csv")
        rented = ("predict", "emotion_bert_base", "--instance", "aws/g6.xlarge",
                  "--format", "csv")
        plain = self.good(*device).stdout
        for setting, flags in (("discount: aws=0.5\n", ("--discount", "aws=0.5")),
                               ("spot: true\n", ("--spot",)),
                               ("region: us-west-2\n", ("--region", "us-west-2"))):
            with self.subTest(setting):
                file = self.write("mine.yaml", setting)
                self.assertEqual(self.good(*device, "--config", file).stdout, plain)
                self.assertEqual(self.good(*rented, "--config", file).stdout,
                                 self.good(*rented, *flags).stdout)
                # Of a setting that gives way there is no instance either.
                file = self.write("mine.yaml", "instance: aws/g6.xlarge\n" + setting)
                self.assertEqual(self.good(*device, "--config", file).stdout, plain)
        self.begins(2, "--discount: needs --instance", *device, "--discount", "aws=0.5")
        # A published run has one only where its file says so.
        published = ("predict", os.path.join(
            ROOT, "scenarios/published/adan_optimizer.yaml#onestep_v100_adan_multi_fused"),
            "--format", "csv")
        file = self.write("mine.yaml", "discount: aws=0.5\n")
        self.assertEqual(self.good(*published, "--config", file).stdout,
                         self.good(*published).stdout)

    def test_largest_as_a_setting_gives_way(self):
        asked = ("predict", "emotion_bert_base", "--device", "l4", "--format", "csv")

        def given(largest, *flags):
            file = self.write("largest.yaml", f"largest: {largest}\n")
            return self.good(*asked, *flags, "--config", file).stdout

        self.assertEqual(given("batch"), self.good(*asked, "--largest", "batch").stdout)
        for largest, flags in (("batch", ("--batch", "8")), ("length", ("--seq", "48")),
                               ("model", ("--model", "bert-tiny"))):
            with self.subTest(largest):
                self.assertEqual(given(largest, *flags),
                                 self.good(*asked, *flags).stdout)
        both = self.write("both.yaml", "batch: 8\npredict: { largest: batch }\n")
        self.assertEqual(self.good(*asked, "--config", both).stdout, given("batch"))
        before = self.path("before.json")
        self.good(*asked, "--export", before)
        since = ("--baseline", before)
        self.assertEqual(given("batch", *since), self.good(*asked, *since).stdout)
        both = self.write("both.yaml", "largest: batch\nbatch: 8\n")
        self.begins(1, f"{both}:2:8: --batch: not with --largest, which "
                    f"{both}:1:10 says", *asked, "--config", both)

    def test_settings_from_a_pipe(self):
        """What stands there can be read once only."""
        asked = ("predict", "emotion_bert_base", "--config", "/dev/stdin")
        for text, message in (
            ("foo: 1\n", '1:1: unknown key "foo"'),
            ("batsh: 1\n", '1:1: unknown key "batsh"; did you mean "batch"?'),
            ("predict: { foo: 1 }\n", '1:12: predict: unknown key "foo"'),
            ("predict: 1\n", "1:10: predict: expected a map of options"),
        ):
            with self.subTest(text):
                self.begins(1, f"/dev/stdin:{message}", *asked, input=text)
        self.assertIn("batch: 8\n", self.good(*asked, "--dry-run",
                                              input="batch: 8\n").stdout)

    def test_a_model_in_place_of_a_scenario(self):
        """No place in a text that nobody wrote; what init writes can be read."""
        job = ("--samples", "100", "--length", "128")
        self.refused(
            1,
            "--model bart-base: optimizer.implementation: expected for_loop or "
            "multi_tensor beside optimizer adafactor, got fused; hint: "
            "`trainfare init` writes what stands for the rest",
            "predict", "--model", "bart-base", *job, "--device", "h100_sxm",
            "--set", "optimizer.name=adafactor",
        )
        answer = self.json_of("predict", "--model", "llama-3.2-1b", *job,
                              "--device", "h100_sxm")
        self.assertEqual(answer["scenario"]["name"], "llama-3.2-1b")
        result = self.run_it("init", "--model", "bert-base-uncased",
                             "--samples", "100", "--length", "3000")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("--model bert-base-uncased: padding: expected a length of at most "
                      "512, the positions of bert-base-uncased, got 3000\n",
                      result.stderr)

    def test_unwritable_exports_and_full_disks(self):
        self.refused_after_result(
            "no/such/a.json: cannot be written: No such file or directory",
            "--export",
            self.path("no/such/a.json"),
        )
        self.assertEqual(os.listdir(self.folder), [])
        for arguments in (
            ["list", "devices"],
            ["calibrate", "--launch", "slurm", "--instances", "aws/g5.xlarge"],
        ):
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run(
                    [PROGRAM, *arguments],
                    stdout=full,
                    stderr=subprocess.PIPE,
                    text=True,
                    env=self.environment(),
                    check=False,
                )
            self.assertEqual(result.returncode, 1, arguments)
            self.assertEqual(
                result.stderr, "trainfare: standard output: cannot be written: "
                "No space left on device\n"
            )

    def test_a_file_beyond_the_limit_of_the_shell(self):
        """As a full disk: one line, and nothing half-written is left."""

        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

        whole = ["calibrate", "--launch", "slurm", "--instances",
                 "aws/g5.xlarge"]
        for arguments, file in (
                ([*whole, "--script", self.path("s.sh")], self.path("s.sh")),
                (["list", "devices", "--export", self.path("d.json")],
                 self.path("d.json"))):
            result = self.run_it(*arguments, preexec_fn=limited)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertEqual(
                result.stderr,
                f"trainfare: {file}: cannot be written: File too large\n")
            self.assertEqual(os.listdir(self.folder), [])

    def refused_after_result(self, message, *arguments):
        result = self.run_it("list", "models", *arguments)
        said = result.stderr.replace(self.folder + os.sep, "")
        self.assertEqual(said, f"trainfare: {message}\n")
        self.assertEqual(result.returncode, 1)

    def test_a_file_limit_leaves_no_half_written_export(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
            # Without it the write fails with a signal, not an error.
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        result = self.run_it(
            "recommend",
            "emotion_bert_base",
            "--quiet",
            "--export",
            self.path("big.json"),
            preexec_fn=limit,
        )
        self.assertEqual(result.returncode, 1)
        self.assertIn("big.json: cannot be written", result.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_truncated_measurement_line(self):
        path = self.write(
            "runs.jsonl", '{"schema": "trainfare.measurement/1", "kind": "st'
        )
        result = self.run_it("validate", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("runs.jsonl:1", result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)

    def test_a_fit_of_another_device(self):
        self.write("t4.csv", TABLE_HEADER + table_row() + table_row(batch=16))
        fit = self.path("t4.yaml")
        self.good(
            "calibrate",
            "--from",
            self.path("t4.csv"),
            "--device",
            "t4",
            "--output",
            fit,
        )
        result = self.run_it(
            "predict", "emotion_bert_base", "--fit", fit, "--device", "a10g"
        )
        self.assertEqual(result.returncode, 1)
        self.assertIn("t4", result.stderr)
        self.assertIn("a10g", result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)


    def test_rows_of_other_devices_are_counted(self):
        rows = self.write("rows.csv", TABLE_HEADER + "".join(
            table_row(batch=batch, step_ms=12 * batch) for batch in (8, 16, 32))
            + table_row(device="t44") + 2 * table_row(device="l4"))
        asked = ("calibrate", "--from", rows, "--device", "t4",
                 "--output", self.path("t4.yaml"))  # fmt: skip
        said = ['1 row skipped: unknown device "t44"; did you mean "t4"?',
                "2 rows skipped: of l4"]
        warned = [(one["code"], one["message"][:len(words)]) for one, words in
                  zip(self.json_of(*asked)["warnings"], reversed(said), strict=True)]
        self.assertEqual(warned, [("rows_skipped", one) for one in reversed(said)])
        result = self.good(*asked)
        for words in said:
            self.assertIn(f"trainfare: warning: {words}", result.stderr)
        self.assertNotIn("skipped", self.good(*asked, "--quiet").stderr)
        added = self.json_of(*asked, "--add")["warnings"]
        self.assertEqual([one["message"] for one in added], said[::-1])
        # A row that stands in a table twice was not added before.
        again = self.write("again.csv", TABLE_HEADER + 2 * table_row(batch=64)
                           + table_row(batch=128))
        adding = ("calibrate", "--from", again, "--add", "--device", "t4")
        for message in ("1 row skipped: twice in the files",
                        "3 rows skipped: added before"):
            warned = self.json_of(*adding)["warnings"]
            self.assertEqual([one["message"] for one in warned], [message])
        self.refused(2, "--from: expected each file once, rows.csv is given "
                     "several times", *asked, "--from", rows)  # fmt: skip

    def test_what_cannot_be_shown_is_refused_before_a_fit_is_replaced(self):
        rows = self.write("rows.csv", TABLE_HEADER + "".join(
            table_row(batch=batch, step_ms=12 * batch) for batch in (8, 16, 32)))
        fit = self.path("t4.yaml")
        asked = ("calibrate", "--from", rows, "--device", "t4", "--output", fit)
        mine = self.write("mine.csv", "parameter,value,mine\n1,2,3\n")
        for code, message, flags in (
            (1, '--fail-if: unknown figure "foo"', ("--fail-if", "foo>1%")),
            (1, '--fail-if: unknown figure "fit.foo"', ("--fail-if", "fit.foo>1")),
            (1, "--fail-if: expected a figure", ("--fail-if", "date>1")),
            (1, '--fail-if: expected a figure, "kept" is', ("--fail-if", "kept>1")),
            (1, "--fail-if: expected a figure", ("--fail-if", "fit_path>1")),
            (1, '--fail-if: unknown figure "alone.foo"', ("--fail-if", "alone.foo>1")),
            (1, f"--export {mine}: expected a new file, or an answer of these "
             "columns to replace", ("--export", mine)),
            (2, "--export: a .trace.json is of a step",
             ("--export", self.path("a.trace.json"))),
        ):
            with self.subTest(flags):
                self.begins(code, message, *asked, *flags)
                self.assertFalse(os.path.exists(fit))
        for name in ("a.csv", "a.csv", "a.md", "a.md"):
            self.good(*asked, "--export", self.path(name))
        # No kernel was timed by itself: what is not there is not known.
        for passed in ("runs>1", "alone.value>1e9", "value>1e9", "standard_error<0"):
            self.assertEqual(self.run_it(*asked, "--fail-if", passed).returncode, 4)
        self.assertTrue(self.run_it(*asked, "--fail-if", "value>1").stderr.endswith(
            "trainfare: --fail-if: value is not known, limit value>1\n"))
        self.good(*asked, "--fail-if", "fit.runs>3")

    def test_a_log_of_another_trainer(self):
        state = self.write("trainer_state.json", json.dumps({
            "global_step": 750, "train_batch_size": 8, "log_history": [
                {"loss": 0.5, "step": 500},
                {"step": 750, "train_runtime": 150.0}]}))
        fit = self.path("t4.yaml")
        asked = (self.write("job.yaml", GOOD), "--device", "t4")
        before = self.json_of("predict", *asked)
        self.good("calibrate", "--from", state, "--scenario", *asked,
                  "--output", fit)
        after = self.json_of("predict", *asked, "--fit", fit)
        step_s = [abs(run["predictions"][0]["step_time_s"] - 0.2)
                  for run in (before, after)]
        self.assertLess(step_s[1], step_s[0])  # nearer to what was measured
        self.refused(
            1,
            "trainer_state.json: does not say what was trained on what; "
            "calibrate --from it with --scenario and --device",
            "calibrate", "--from", state, "--device", "t4")
        self.refused(
            1,
            "trainer_state.json: train_batch_size: expected the scenario's "
            "batch of 16, got 8; --batch changes it",
            "calibrate", "--from", state, "--scenario", *asked, "--batch", "16")
        self.refused(
            2,
            "--scenario: says what a log of --from trained, and there is none",
            "calibrate", "--scenario", *asked)


class Import(Case):
    # Two ranks: a bus bandwidth of 2 x 1 / 2 times the algorithm's.
    NCCL = """\
# nThread 1 nGpus 2 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1100 on     node-a device  0 [0x8d] NVIDIA L4
#  Rank  1 Group  0 Pid   1100 on     node-a device  1 [0x91] NVIDIA L4
#
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    62.50   16.78   16.78      0    62.50   16.78   16.78      0
     2097152        524288     float     sum      -1    150.0   13.98   13.98      0    150.0   13.98   13.98      0
# Avg bus bandwidth    : 13.5
"""  # fmt: skip

    def test_records_go_to_standard_output_or_a_file(self):
        log = self.write("nccl.txt", self.NCCL)
        result = self.good("import", log, log)
        records = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual(
            [(r["kind"], r["world_size"], r["bytes"], r["samples"])
             for r in records],
            2 * [("collective", 2, 1048576, [{"time_s": 6.25e-05}]),
                 ("collective", 2, 2097152, [{"time_s": 0.00015}])])  # fmt: skip
        self.assertEqual(result.stderr, "")
        file = self.path("net.jsonl")
        self.assertEqual(self.good("import", log, "--output", file).stdout, "")
        with open(file, encoding="utf-8") as written:
            self.assertEqual(
                written.read(), self.good("import", log).stdout
            )

    def test_what_is_no_such_output(self):
        self.refused(
            1,
            "nccl.txt:9: expected 13 columns (size .. #wrong), got 5; is the "
            "line cut off?",
            "import",
            self.write("nccl.txt", self.NCCL[: self.NCCL.index("    62.50")]),
        )
        cut = self.write("cut.txt", self.NCCL[: self.NCCL.index("# Avg")])
        result = self.good("import", cut)
        self.assertIn("cut.txt: the end of a run is missing", result.stderr)
        self.assertEqual(len(result.stdout.splitlines()), 2)

    def test_an_mlperf_log_moves_a_fit(self):
        def event(time_ms, key, value=None):
            return ":::MLLOG " + json.dumps({
                "namespace": "", "time_ms": time_ms,
                "event_type": "POINT_IN_TIME", "key": key, "value": value,
                "metadata": {"file": "run.py", "lineno": 1}}) + "\n"  # fmt: skip

        def log(global_batch):
            return self.write("result_0.txt", "".join((
                event(1000, "global_batch_size", global_batch),
                event(2000, "run_start"),
                event(62000, "train_samples", 8 * 300),
                event(62000, "run_stop"))))  # fmt: skip

        asked = (self.write("job.yaml", GOOD), "--device", "t4")
        for devices in (1, 2):
            fit = self.path(f"t4_{devices}.yaml")
            of_so_many = (*asked, "--devices", str(devices))
            before = self.json_of("predict", *of_so_many)
            self.good("calibrate", "--from", log(8 * devices), "--scenario",
                      *asked, "--output", fit)  # fmt: skip
            after = self.json_of("predict", *of_so_many, "--fit", fit)
            step_s = [abs(run["predictions"][0]["step_time_s"] - 0.2 * devices)
                      for run in (before, after)]  # fmt: skip
            # Nearer to what was measured.
            self.assertLess(step_s[1], step_s[0])
        self.refused(
            1,
            "result_0.txt: does not say what was trained on what; calibrate "
            "--from it with --scenario and --device",
            "calibrate", "--from", log(8), "--device", "t4")  # fmt: skip
        self.refused(
            1,
            "other.txt: expected an MLPerf log, got no line with :::MLLOG; "
            "what nccl-tests prints is read by `trainfare import`",
            "calibrate", "--from", self.write("other.txt", self.NCCL),
            "--scenario", *asked)  # fmt: skip


# What a number's key may end in, besides being a count of things.
SUFFIXES = (
    "_s", "_bytes", "_j", "_usd", "_usd_per_hour", "_w", "_percent", "_per_s",
    "_bytes_per_s", "_flops_per_s", "_per_byte",
)  # fmt: skip
COUNTS = {
    "accumulation", "batch", "data", "determined", "devices", "distinct_shapes", "epochs",
    "eval_samples", "fit_figures", "fits", "hosts", "inside", "largest", "largest_batch", "mean_length", "n",
    "parameters", "rows", "runs", "seed", "sequence_length", "steps_per_epoch",
    "ties", "train_samples", "trainable_parameters", "used", "vcpus",
    "with_interval", "without_interval",
    "fitted", "free_parameters", "global_batch", "inside_interval", "judged", "limits", "limits_met",
    "optimizer_launches", "per_step", "points", "ran_out", "ranks", "refused", "right", "seen_by_fit",
    "step_flops", "wrongly_fits", "wrongly_out",
    # Of the workload, as `trainfare list keys` has them.
    "base_bits", "checkpointed_blocks", "compiler_level", "decoder_layers", "dense_layers", "documents",
    "embedding_size",
    "expert_intermediate", "experts", "experts_per_token", "frozen_layers",
    "head_size", "heads", "hidden", "intermediate", "key_value_heads", "labels",
    "latent_key_value", "latent_query", "layers", "next_token_blocks", "position_offset",
    "positions", "predictions_per_sequence", "rank", "relative_buckets",
    "replicate", "ring_ranks", "rotary_head_size", "shared_intermediate", "state_bits", "target_length",
    "token_types",
    "unrotated_layers", "value_head_size", "vocabulary", "window", "windowed_layers",
}  # fmt: skip
# Shares of one, and errors whose unit docs/guide/commands.md gives.
SHARES = {
    "bandwidth_share", "best_probability", "dma", "dropout", "fitted_sigma", "interval", "limits_probability", "list_price_share",
    "load_factor", "log_sigma", "matrix_share", "mfu", "mfu_causal", "noise", "optimizer_busy_share", "prior_sigma", "scalar", "score", "share",
    "source_log_sigma", "speed",
    "tensor", "vector",
}  # fmt: skip
ERRORS = {"bias", "coverage", "coverage_95", "mape", "max", "median", "p90"}
# Of published figures and keys of files, whose unit stands beside them.
PUBLISHED = {"error", "least", "measured", "most", "predicted", "predicted_high", "predicted_low",
             "prior"}


def has_unit(key):
    return key.endswith(SUFFIXES) or key in COUNTS | SHARES | ERRORS | PUBLISHED


class Schemas(Case):
    """Every answer that a test reads is held to its schema (json_of); here are
    those that no other test asks for, and the schemas themselves."""

    def test_answers_conform(self):
        table = self.write("a.csv", TABLE_HEADER + table_row())
        shards = ("predict", "llama_8b_fsdp", "--instance", "aws/p5.48xlarge",
                  "--hosts", "2", "--set", "parallel.data=16")  # fmt: skip
        for command in (
            *COMMANDS,
            shards,
            ("predict", "emotion_bert_base", "--device", "trainium1"),
            ("predict", "llama_8b_lora", "--device", "h100_sxm",
             "--largest", "model"),
            ("recommend", "llama_8b_fsdp", "--hosts", "2", "--top", "9",
             "--objective", "energy"),
            ("validate", table),
            ("validate", table, "--repeats", "median"),
            ("validate", ROOT + "/docs/guide/runs.csv",
             "--protocol", "leave-one-out"),
            ("validate", ROOT + "/tests/fuzz/corpus/records/kernel.jsonl"),
            ("validate", ROOT + "/scenarios/published/"),
        ):  # fmt: skip
            with self.subTest(command):
                self.json_of(*command)
        # What does not fit, and what nothing meets, are answers, too.
        self.json_of("predict", "squad_bert_large", "--device", "t4",
                     "--batch", "512", code=3)  # fmt: skip
        self.json_of("recommend", "imdb_bert_base", "--deadline", "1ms", code=3)
        self.assertIn("shard_traffic", self.json_of(*shards)["predictions"][0])
        # What is offloaded is in the host's memory, whose update has a time.
        host = self.json_of(
            "predict", "llama_8b_fsdp", "--instance", "aws/p4d.24xlarge",
            "--set", "parallel.offload=parameters",
            "--set", "parallel.offload_activations=true",
        )["predictions"][0]  # fmt: skip
        self.assertEqual(host["host_memory"]["ranks"], 8)
        self.assertLess(host["host_memory"]["memory_bytes"],
                        host["host_memory"]["capacity_bytes"])  # fmt: skip
        self.assertGreater(host["phases"]["host_update_s"], 0)
        self.assertGreater(host["shard_traffic"][0]["host_bytes"], 0)
        full = self.json_of(
            "predict", "llama_8b_fsdp", "--instance", "aws/g5.xlarge",
            "--set", "parallel.data=0", "--set", "parallel.shard=zero2",
            "--set", "parallel.offload=optimizer", code=3,
        )["predictions"][0]  # fmt: skip
        self.assertIn("does not fit the host's memory", full["reason"])

    def test_what_does_not_conform_is_found(self):
        good = self.json_of(*COMMANDS[0])
        prediction = good["predictions"][0]

        def errors(**changed):
            return json_schema.errors_of(
                {**good, "predictions": [{**prediction, **changed}]})

        self.assertEqual(errors(), [])
        self.assertIn("cost_eur: in no schema", errors(cost_eur=1)[0])
        self.assertIn("expected number", errors(step_time_s="1 s")[0])
        self.assertIn("expected boolean", errors(fits=1)[0])
        less = {k: v for k, v in prediction.items() if k != "run_time_s"}
        self.assertIn(
            "run_time_s: missing",
            json_schema.errors_of({**good, "predictions": [less]})[0])
        self.assertIn("run_time_s: in no schema", " ".join(
            errors(run={**prediction["run"], "run_time_s": 1})))

    def test_every_number_of_a_schema_has_its_unit(self):
        for file in sorted(json_schema.FOLDER.glob("*.schema.json")):
            for key in json_schema.numbers_of(json_schema.load(file.name)):
                with self.subTest((file.name, key)):
                    self.assertTrue(has_unit(key), key)

    def test_a_workload_has_the_fields_of_the_model(self):
        source = json_schema.FOLDER.parents[2] / "model" / "fields.h"
        fields = set(re.findall(
            r'\.name = "(\w+)"', source.read_text(encoding="utf-8")))
        described = set()

        def collect(schema):
            for key, item in schema.get("properties", {}).items():
                described.add(key)
                collect(item)

        collect(json_schema.load("common.1.schema.json")["$defs"]["workload"])
        # In JSON a quantity's name has its unit.
        named = re.findall(r'\.json = "(\w+)"', source.read_text(
            encoding="utf-8"))
        self.assertEqual(
            described,
            fields - {name.rsplit("_", 1)[0] for name in named} | set(named)
            | {"head"})


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


class Predict(Case):
    def test_the_default_device_is_this_processor(self):
        json_ = self.json_of("predict", self.write("s.yaml", GOOD))
        self.assertEqual(json_["device"], "cpu")
        self.assertIsNone(json_["fit"])

    def test_what_does_not_fit_has_no_time_and_exit_code_3(self):
        command = ("predict", "squad_bert_large", "--device", "t4")
        json_ = self.json_of(*command, "--batch", "512", code=3)
        prediction = json_["predictions"][0]
        self.assertFalse(prediction["fits"])
        self.assertNotIn("step_time_s", prediction)
        self.assertRegex(prediction["reason"], r"^does not fit memory by .* GiB$")
        largest = prediction["largest_batch"]
        self.assertTrue(
            self.json_of(*command, "--batch", str(largest))["predictions"][0][
                "fits"
            ]
        )

    def test_a_model_alone_is_a_job(self):
        asked = ("--model", "gpt2", "--samples", "800", "--length", "128")
        alone = self.json_of("predict", *asked, "--device", "a10g", "--batch", "2")
        self.assertEqual(alone["scenario"]["model"], "gpt2")
        self.assertEqual(alone["scenario"]["train_samples"], 800)
        self.assertEqual(alone["predictions"][0]["sequence_length"], 128)
        # What init writes is the same job.
        self.good("init", *asked, "--output", self.path("job.yaml"))
        written = self.json_of(
            "predict", self.path("job.yaml"), "--device", "a10g", "--batch", "2"
        )
        self.assertEqual(alone["predictions"], written["predictions"])
        self.refused(
            1,
            "job.yaml: expected a new file, this one is there",
            "init",
            *asked,
            "--output",
            self.path("job.yaml"),
        )

    def test_a_model_comes_through_a_pipe(self):
        """It is read once: nobody writes into it again."""
        job = ("--samples", "100", "--length", "64")

        def predicted(*asked, **options):
            result = self.good("predict", *asked, "--device", "l4", "--format",
                               "json", **options)
            scenario = json.loads(result.stdout)["scenario"]
            return scenario["name"], scenario["model"]

        named = self.path("pipe.json")
        os.mkfifo(named)
        for asked, name in ((("--model", named, *job), "llama"),
                            (("emotion_bert_base", "--model", named),
                             "emotion_bert_base")):
            threading.Thread(target=self.write, args=("pipe.json", CONFIG),
                             daemon=True).start()
            self.assertEqual(predicted(*asked), (name, "llama"))

        def through_a_pipe(run, *arguments):
            # As the shell's <(..) names it, without an end that says what it is.
            read, write = os.pipe()
            os.write(write, CONFIG.encode())
            os.close(write)
            try:
                return run(*arguments, "--model", f"/dev/fd/{read}", *job,
                           pass_fds=(read,))
            finally:
                os.close(read)

        self.assertEqual(through_a_pipe(predicted), ("llama", "llama"))
        for command in (("predict", "--device", "l4"),
                        ("recommend", "--instance", "aws/g6.xlarge")):
            # Whoever asks again has the model in the answer.
            saved, page = self.path("saved.json"), self.path("page.html")
            through_a_pipe(self.good, *command, "--export", saved, "--export", page)
            with open(saved, encoding="utf-8") as file:
                self.assertEqual(self.good("replay", saved).stdout, file.read())
            with open(page, encoding="utf-8") as file:
                self.assertIn("--model &#39;{&quot;hidden_size&quot;:64,", file.read())
            self.assertIn("hidden: 64",
                          through_a_pipe(self.good, *command, "--dry-run").stdout)
        self.assertEqual(predicted("--model", CONFIG, *job), ("llama", "llama"))
        self.assertEqual(predicted("--model", "\n " + CONFIG, *job), ("llama", "llama"))
        wrong = CONFIG.replace("64", "65", 1)
        self.refused(1, "--model:2:25: num_attention_heads: expected a divisor of "
                     "hidden_size = 65, got 4", "predict", "--model", wrong, *job)
        self.begins(1, "--model: expected a file that stays, which is what a scenario "
                    'names, got "{', "init", "--model", CONFIG, *job)
        result = through_a_pipe(self.run_it, "init")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("trainfare: --model: expected a file that stays, which is what a "
                      'scenario names, got "/dev/fd/', result.stderr)

    def test_a_folder_names_a_model_wherever_a_file_does(self):
        os.mkdir(self.path("small"))
        self.write("small/config.json", CONFIG)
        job = ("--samples", "100", "--length", "64")

        def asked(*arguments, cwd=self.folder):
            result = self.good("predict", *arguments, "--device", "l4", "--format",
                               "json", cwd=cwd)
            scenario = json.loads(result.stdout)["scenario"]
            return scenario["name"], scenario["model"]

        self.assertEqual(asked("--model", "small", *job), ("small", "llama"))
        self.assertEqual(asked("--model", "small/", *job), ("small", "llama"))
        self.assertEqual(asked("--model", "small/config.json", *job), ("small", "llama"))
        self.assertEqual(asked("--model", ".", *job, cwd=self.path("small")),
                         ("small", "llama"))
        self.assertEqual(asked("emotion_bert_base", "--set", "model=small"),
                         ("emotion_bert_base", "llama"))
        written = self.good("init", "--model", "small", *job, cwd=self.folder).stdout
        self.assertIn("model: 'small'\n", written)
        # Beside the scenario, not where people are.
        self.write("job.yaml", written)
        self.assertEqual(asked(self.path("job.yaml"), cwd="/")[1], "llama")
        self.write("trainfare.yaml", "model: small\n")
        self.assertEqual(asked(*job), ("small", "llama"))
        # What is no file is a name there.
        self.write("trainfare.yaml", "model: openai-community/gpt2\n")
        self.assertEqual(asked(*job), ("gpt2", "gpt2"))
        # Nor is a text, whatever it is called.
        text = json.dumps({**json.loads(CONFIG), "_name_or_path": "a/small"})
        self.write("trainfare.yaml", f"model: '{text}'\n")
        self.assertEqual(asked(*job), ("small", "a/small"))
        for written in ("model=small", "\"model='small'\"", "'model=\"s\\x6dall\"'"):
            self.write("trainfare.yaml", f"set: [{written}]\n")
            self.assertEqual(asked("emotion_bert_base")[1], "llama")
        # A folder is no file that a setting could read, but a model's.
        os.mkdir(self.path("bf16"))
        self.write("trainfare.yaml", "set: [precision=bf16]\n")
        self.assertEqual(asked("emotion_bert_base")[1], "bert-base-uncased")
        os.remove(self.path("trainfare.yaml"))
        os.mkdir(self.path("empty"))
        self.refused(1, "--set: model: empty/config.json: cannot be opened: No such "
                     "file or directory", "predict", "emotion_bert_base", "--set",
                     "model=empty", cwd=self.folder)

    def test_any_key_can_be_set(self):
        asked = ("predict", self.write("s.yaml", GOOD), "--device", "t4")
        plain = self.json_of(*asked)["scenario"]
        changed = self.json_of(
            *asked,
            "--set",
            "dataset.train=77",
            "--set",
            "optimizer={ name: sgd, implementation: fused }",
            "--model",
            "bert-large-uncased",
        )["scenario"]
        self.assertNotEqual(plain["train_samples"], 77)
        self.assertEqual(changed["train_samples"], 77)
        self.assertEqual(changed["optimizer"], "sgd")
        self.assertEqual(changed["model"], "bert-large-uncased")
        winner = self.good("recommend", asked[1], "--set", "batch=4").stdout
        self.assertIn("batch 4 a device", winner)

    def test_a_job_that_is_not_whole_is_refused(self):
        alone = ("predict", "--model", "bert-base-uncased", "--samples", "9")
        self.refused(
            2,
            "--model: without a SCENARIO, expected also --samples N and --length N",
            *alone,
        )
        self.refused(
            1,
            "--length: padding: expected a length of at most 512, the positions of "
            "bert-base-uncased, got 1000",
            *alone,
            "--length",
            "1000",
        )
        self.refused(
            2,
            "expected a SCENARIO, or --model NAME with --samples N and --length N",
            "predict",
        )
        self.refused(
            1,
            'unknown scenario "bert-tiny"; that is a model, did you mean --model '
            "bert-tiny?",
            "predict",
            "bert-tiny",
        )
        self.refused(
            1,
            '--set: epochs: expected an integer from 1 to 1000000, got "many"',
            "predict",
            "emotion_bert_base",
            "--set",
            "epochs=many",
        )

    def test_a_list_may_have_spaces(self):
        asked = self.write("s.yaml", GOOD), "--device", "t4"
        self.assertEqual(
            self.good("predict", *asked, "--batch", "8, 16").stdout,
            self.good("predict", *asked, "--batch", "8,16").stdout,
        )
        self.assertEqual(
            self.good("recommend", asked[0], "--cloud", "aws, gcp").stdout,
            self.good("recommend", asked[0], "--cloud", "aws,gcp").stdout,
        )

    def test_devices_and_precisions_may_be_lists(self):
        asked = ("predict", self.write("s.yaml", GOOD))
        whole = self.json_of(*asked, "--device", "l4,t4", "--precision",
                             "fp32, fp16", "--batch", "8,16")  # fmt: skip
        self.assertIsNone(whole["device"])
        got = whole["predictions"]
        self.assertEqual(
            [(p["device"], p["precision"], p["batch"]) for p in got],
            [(device, precision, batch) for device in ("l4", "t4")
             for precision in ("fp32", "fp16") for batch in (8, 16)],
        )  # fmt: skip
        # Each is what it is by itself.
        for prediction in got:
            one = self.json_of(
                *asked, "--device", prediction["device"], "--precision",
                prediction["precision"], "--batch", str(prediction["batch"]),
            )  # fmt: skip
            # Of one alone also what its step consists of.
            self.assertTrue(one["predictions"][0].pop("kernels"))
            self.assertEqual(one["predictions"], [prediction])
            self.assertEqual(one["device"], prediction["device"])
        lists = ("--device", "l4,t4", "--precision", "fp32,fp16")
        text = self.good(*asked, *lists).stdout
        self.assertRegex(text, r"\ndevice  precision  batch")
        self.assertRegex(text, r"\nt4      fp16           8")
        rows = list(csv.DictReader(io.StringIO(
            self.good(*asked, *lists, "--format", "csv").stdout)))
        self.assertEqual([row["device"] for row in rows], ["l4"] * 2 + ["t4"] * 2)

    def test_several_instances_are_rows_with_their_prices(self):
        names = ["aws/g5.xlarge", "gcp/g2-standard-4"]
        whole = self.json_of("predict", self.write("s.yaml", GOOD),
                             "--instance", ",".join(names))  # fmt: skip
        rows = whole["predictions"]
        self.assertEqual([row["instance"] for row in rows], names)
        self.assertEqual([row["device"] for row in rows], ["a10g", "l4"])
        self.assertIsNone(whole["instance"])
        self.assertEqual(
            sorted(whole["price_catalogs"]), ["aws", "gcp"])
        for row in rows:
            one = self.json_of("predict", self.write("s.yaml", GOOD),
                               "--instance", row["instance"])  # fmt: skip
            self.assertTrue(one["predictions"][0].pop("kernels"))
            self.assertEqual(one["predictions"], [row])
            self.assertEqual(one["price"], row["price"])

    def test_limits_are_read_as_people_type_them(self):
        asked = ("recommend", self.write("s.yaml", GOOD))
        exact = self.json_of(*asked, "--deadline", "5400s", "--budget", "5 USD",
                             "--cloud", "aws")  # fmt: skip
        typed = self.json_of(*asked, "--deadline", "1h30min", "--budget", "$5",
                             "--cloud", "AWS")  # fmt: skip
        for answer in (exact, typed):
            for changing in ("timestamp", "arguments", "command"):
                answer.pop(changing, None)
        self.assertEqual(exact, typed)
        self.assertEqual(exact["deadline_s"],
                         self.json_of(*asked, "--deadline", "90m")["deadline_s"])

    def test_what_a_device_cannot_run_says_who_asked_for_it(self):
        path = self.write("s.yaml", GOOD.replace("fp32", "bf16"))
        asked = ("predict", path, "--device", "t4")
        self.begins(1, f"{path}:8:12: precision: t4 has no bf16", *asked)
        self.begins(1, "--set: precision: t4 has no fp8",
                    *asked, "--set", "precision=fp8")  # fmt: skip
        self.begins(1, "--precision: precision: t4 has no fp8",
                    *asked, "--set", "precision=fp32", "--precision", "fp8")  # fmt: skip
        few = self.write("few.yaml", GOOD.replace("fp32", "bf16") + (
            "trainable:\n  lora:\n    rank: 4\n    base_bits: 4\n"))  # fmt: skip
        self.begins(1, f"{few}:14:16: trainable.lora.base_bits: expected 0 on tpu_v4",
                    "predict", few, "--device", "tpu_v4")  # fmt: skip
        # A text that nobody wrote has no place.
        self.begins(1, "precision: t4 has no bf16", "predict", "--model", "gpt2",
                    "--samples", "9", "--length", "9", "--device", "t4")  # fmt: skip

    def test_of_a_list_what_a_device_cannot_run_is_left_out(self):
        asked = ("predict", self.write("s.yaml", GOOD), "--device", "l4,t4")
        whole = self.json_of(*asked, "--precision", "bf16,fp16")
        self.assertEqual(
            [(p["device"], p["precision"]) for p in whole["predictions"]],
            [("l4", "bf16"), ("l4", "fp16"), ("t4", "fp16")])  # fmt: skip
        reason = "precision: t4 has no bf16; it runs fp32, fp16"
        self.assertIn(f"left out: {reason}", whole["notes"])
        self.refused(1, f"--precision: {reason}; hint: --precision fp16",
                     "predict", asked[1], "--device", "t4", "--precision", "bf16")
        for more, message in (
            (("--instance", "aws/g6.xlarge"),
             "--device and --instance: give one device, that of the instance"),
            (("--largest", "length"),
             "--largest: give one --batch, --seq, --precision, --device and "
             "--instance"),
        ):  # fmt: skip
            self.refused(2, message, *asked, "--precision", "fp16", *more)
        self.refused(
            2,
            "recommend: give one --seq, it compares instances",
            "recommend", asked[1], "--seq", "32,64")  # fmt: skip
        self.refused(
            2, "--dry-run: not with --global-batch, of which each candidate "
            "has a job of its own",
            "recommend", asked[1], "--global-batch", "64", "--dry-run")  # fmt: skip
        for of_all in self.json_of("recommend", asked[1], "--precision",
                                   "bf16,fp16")["candidates"]:  # fmt: skip
            if of_all["device"] == "t4":
                self.assertEqual(of_all["precision"], "fp16")

    def test_a_word_behind_a_list_is_not_of_it(self):
        file = self.write("s.yaml", GOOD)
        flags = ("--device", "l4", "--batch", "4,8", "--set", "epochs=2",
                 "--fail-if", "mfu>100%", "--export", self.path("a.md"))  # fmt: skip
        self.assertEqual(self.good("predict", file, *flags).stdout,
                         self.good("predict", *flags, file).stdout)  # fmt: skip

    def test_forward_passes_on_a_chip_for_inference(self):
        asked = (
            self.write("s.yaml", GOOD.replace("bert-base-uncased", "bert-tiny")),
            "--device",
            "groq_lpu",
            "--precision",
            "fp16",
        )
        self.assertIn(
            "runs inference only; expected work: forward",
            self.run_it("predict", *asked).stderr,
        )
        forward = self.json_of("predict", *asked, "--work", "forward")
        self.assertEqual(forward["scenario"]["work"], "forward")
        self.assertEqual(forward["predictions"][0]["fit_figures"], 4)
        table = self.good("predict", *asked, "--work", "forward").stdout
        self.assertIn("forward passes only", table)

    def test_devices_that_nobody_rents_out(self):
        asked = (
            "recommend",
            "emotion_bert_base",
            "--cloud",
            "aws",
            "--also",
            "sambanova_sn30,ipu_gc200",
        )
        table = self.good(*asked).stdout
        self.assertRegex(table, r"1 x sambanova_sn30 .*no instance, so no price")
        self.assertRegex(table, r"1 x ipu_gc200 .*has no bf16")

    def test_a_file_and_its_name_are_the_same_scenario(self):
        listed = self.json_of("list", "scenarios")["rows"]
        self.assertIn("emotion_bert_base", [row["scenario"] for row in listed])

    def test_devices_share_the_work(self):
        command = ("predict", "imdb_bert_base", "--device", "a100_sxm4_80gb")
        times = [
            self.json_of(*command, "--devices", str(n))["predictions"][0][
                "run_time_s"
            ]
            for n in (1, 2, 4)
        ]
        self.assertGreater(times[0], times[1])
        self.assertGreater(times[1], times[2])
        self.assertGreater(times[2], times[0] / 4)

    def test_more_devices_than_samples_is_said(self):
        asked = (self.write("s.yaml", GOOD), "--device", "a100_sxm4_80gb")
        note = "the global batch of 1600 is more than the 1000 samples of an "
        self.assertIn(note, self.good("predict", *asked, "--devices", "200").stdout)
        self.assertNotIn(
            "global batch", self.good("predict", *asked, "--devices", "100").stdout
        )


class Show(Case):
    def test_what_is_shown_is_the_same_question(self):
        device = ("--device", "h100_sxm")
        for scenario in ("emotion_bert_base", "llama_8b_lora", "imdb_bert_base"):
            with self.subTest(scenario):
                shown = self.write("shown.yaml", self.good("show", scenario).stdout)
                asked, again = (
                    self.json_of("predict", name, *device)
                    for name in (scenario, shown)
                )
                self.assertEqual(asked["predictions"], again["predictions"])
                for key, value in asked["scenario"].items():
                    if key != "name":  # of the file
                        self.assertEqual(again["scenario"][key], value, key)

    def test_flags_are_part_of_what_is_shown(self):
        file = self.path("all.yaml")
        flags = ("--set", "stack=eager", "--batch", "4", "--seq", "48",
                 "--precision", "fp32", "--start-up", "90s")  # fmt: skip
        self.assertEqual(
            self.good("show", "emotion_bert_base", *flags, "--output", file).stdout,
            "")  # fmt: skip
        device = ("--device", "a100_sxm4_80gb")
        asked = self.json_of("predict", "emotion_bert_base", *flags, *device)
        again = self.json_of("predict", file, *device)
        self.assertEqual(asked["predictions"], again["predictions"])
        self.assertEqual(again["predictions"][0]["run"]["start_up_s"], 90)
        text = self.good("show", file).stdout
        self.assertIn("  layers: 12\n", text)
        self.assertIn("# 109486854 parameters\n", text)
        self.refused(1, "all.yaml: expected a new file, this one is there",
                     "show", "emotion_bert_base", "--output", file)  # fmt: skip
        self.refused(2, "show: give one of each, it shows one job",
                     "show", file, "--batch", "4,8")  # fmt: skip
        self.assertIn("s.yaml:1:1: missing key",
                      self.run_it("show", self.write("s.yaml", "epochs: 1\n"))
                      .stderr)  # fmt: skip


class Completion(Case):
    def words_behind(self, *line):
        """What bash offers at the end of a command line."""
        words = " ".join(shlex.quote(word) for word in line)
        script = (
            f"source <({shlex.quote(PROGRAM)} completion bash)\n"
            f'trainfare() {{ {shlex.quote(PROGRAM)} "$@"; }}\n'
            f"COMP_WORDS=({words}); COMP_CWORD={len(line) - 1}\n"
            '_trainfare; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        result = subprocess.run(
            ["bash", "-c", script],
            capture_output=True,
            text=True,
            env=self.environment(),
            timeout=60,
            check=True,
        )
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def test_bash_knows_commands_options_and_names(self):
        self.assertEqual(self.words_behind("trainfare", "pred"), ["predict"])
        self.assertEqual(
            self.words_behind("trainfare", "predict", "--len"), ["--length"]
        )
        self.assertEqual(
            self.words_behind("trainfare", "recommend", "--format", "js"), ["json"]
        )
        self.assertEqual(
            self.words_behind("trainfare", "predict", "--device", "rtx_409"),
            ["rtx_4090", "rtx_4090_d"],
        )
        self.assertIn(
            "llama-3.1-8b",
            self.words_behind("trainfare", "predict", "--model", "llama-3"),
        )

    def test_values_are_those_that_help_names(self):
        for line, expected in (
            (("predict", "emo"), ["emotion_bert_base"]),
            (("recommend", "--spot", "squ"), ["squad_bert_large"]),
            (("show", "llama_8b_l"), ["llama_8b_lora"]),
            (("calibrate", "--for", "imdb"), ["imdb_bert_base"]),
            (("recommend", "--objective", "time_"),
             ["time_cost_energy", "time_energy_cost"]),
            (("predict", "--precision", "bf16,fp"),
             ["bf16,fp32", "bf16,fp16", "bf16,fp8"]),
            (("validate", "--protocol", "leave-s"), ["leave-source-out"]),
            (("validate", "--protocol", "leave-h"), ["leave-hosts-out"]),
            (("validate", "--repeats", ""), ["each", "median"]),
            (("recommend", "--cloud", "la"), ["lambda"]),
            (("recommend", "--color", "al"), ["always"]),
            (("list", "sc"), ["scenarios"]),
            (("prices", "im"), ["import"]),
            (("prices", "import", "--da"), ["--date"]),
            (("predict", "--batch", "emo"), []),
        ):
            with self.subTest(line):
                self.assertEqual(self.words_behind("trainfare", *line), expected)
        helped = " ".join(self.good("recommend", "--help").stdout.split())
        offered = self.words_behind("trainfare", "recommend", "--objective", "")
        self.assertIn("|".join(offered), helped)

    def test_each_shell_has_one(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("predict", self.good("completion", shell).stdout)
        self.refused(
            1,
            'completion: expected bash, zsh or fish, got "cmd"',
            "completion",
            "cmd",
        )


class Recommend(Case):
    def test_message_table_and_json_name_one_winner(self):
        for flags in ((), ("--objective", "time"), ("--spot",), ("--cloud", "aws")):
            with self.subTest(flags):
                command = ("recommend", "imdb_bert_base", *flags)
                chosen = self.json_of(*command)["chosen"]["instance"]
                text = self.good(*command).stdout
                self.assertIn(chosen, text.splitlines()[0])
                marked = [l for l in text.splitlines() if l.startswith("*")]
                self.assertEqual(len(marked), 1)
                self.assertEqual(marked[0].split()[1], chosen)

    def test_limits_that_nothing_meets(self):
        result = self.run_it(
            "recommend", "imdb_bert_base", "--deadline", "1ms", "--quiet"
        )
        self.assertEqual(result.returncode, 3)
        self.assertIn("misses the deadline by", result.stdout)
        self.assertEqual(
            result.stderr, "trainfare: no instance fits and meets the limits\n"
        )

    def test_what_no_instance_can_run_says_why(self):
        def complaint(*flags):
            result = self.run_it("recommend", "--quiet", *flags)
            self.assertEqual(result.returncode, 3)
            self.assertEqual(result.stderr.count("\n"), 1)
            return result.stderr

        p5 = ("--instance", "aws/p5.48xlarge")
        for batch, ranks, would in (("7", 4, "4 or 8"), ("15", 8, "8 or 16")):
            # Also where no more than one candidate is listed.
            self.assertIn(
                f"limits; aws/p5.48xlarge ({ranks} x h100_sxm) cannot run it: a "
                f"global batch of {batch} does not divide over {ranks} ranks; "
                f"{would} would\n",
                complaint("llama_8b_fsdp", *p5, "--global-batch", batch, "--top", "1"),
            )
        fp8 = ("llama_8b_lora", "--precision", "fp8")
        self.assertIn(
            "cannot run it: precision: a100_sxm4_40gb has no fp8; it runs",
            complaint(*fp8, "--instance", "aws/p4d.24xlarge"),
        )

    def test_a_consumer_card_is_a_choice(self):
        command = ("recommend", "llama_8b_lora", "--device", "rtx_4090")
        chosen = self.json_of(*command)["chosen"]
        self.assertRegex(chosen["instance"], r"^vast/\dx-RTX_4090-")
        self.assertIn("vast: hosts of other people", self.good(*command).stdout)

    def test_prices_of_ones_own(self):
        catalog = self.write("vms.csv", (
            "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,"
            "GpuInfo,Price,SpotPrice,Region\n"
            "gpu_1x_a10,A10,1,30,200,,0.01,,us-east-1\n"))  # fmt: skip
        prices = self.path("lambda.yaml")
        # Of a pipe, which is read once.
        with open(catalog, encoding="utf-8") as file:
            self.good("prices", "import", "/dev/stdin", "--cloud", "lambda",
                      "--date", "2026-11-20", "--output", prices,
                      input=file.read())  # fmt: skip
        # Whatever a region is called.
        odd = self.write("odd.csv", (
            "InstanceType,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region\n"
            'gpu_1x_a10,A10,1,0.44,0.00,", CA, NA"\n'))  # fmt: skip
        odd_prices = self.path("odd.yaml")
        self.good("prices", "import", odd, "--cloud", "lambda", "--date",
                  "2026-11-20", "--output", odd_prices)  # fmt: skip
        row = self.json_of("predict", "emotion_bert_base", "--instance",
                           "gpu_1x_a10", "--prices", odd_prices)  # fmt: skip
        self.assertAlmostEqual(row["price"]["price_usd_per_hour"], 0.44)
        self.assertEqual(row["price"]["region"], ", CA, NA")
        both = self.path("both.json")
        self.refused(2, "--export both.json: expected a file of its own, --output "
                     "writes this one", "prices", "import", catalog, "--cloud", "lambda",
                     "--date", "2026-11-20", "--output", both, "--export", both)
        asked = ("emotion_bert_base", "--prices", prices)
        result = self.run_it("recommend", *asked, "--format", "json")
        self.assertNotIn("days old", result.stderr)
        json_ = json.loads(result.stdout)
        self.assertEqual(json_["chosen"]["instance"], "lambda/gpu_1x_a10")
        others = {c["instance"]: c for c in json_["candidates"]}
        # The file is all there is of its cloud; the other clouds stay.
        self.assertEqual(others["lambda/gpu_1x_a100"]["reason"], "no price")
        self.assertGreater(others["aws/g5.xlarge"]["cost_usd"], 0)
        one = self.json_of("predict", *asked, "--instance", "gpu_1x_a10")
        self.assertEqual(one["price"]["price_usd_per_hour"], 0.01)
        self.assertEqual(one["price"]["date"], "2026-11-20")
        self.refused(
            1,
            "lambda.yaml: cloud: the prices of lambda are in lambda.yaml too",
            "recommend", *asked, "--prices", prices)  # fmt: skip
        for date in ("yesterday", "2026-13-01", "2026-02-29"):
            self.refused(
                1,
                f'--date: expected a day such as 2026-05-20, got "{date}"',
                "prices", "import", catalog, "--cloud", "lambda",
                "--date", date)  # fmt: skip
        self.assertIn(
            "no instance of lambada is known, so recommend has no use for "
            'them; did you mean "lambda"?',
            self.good("prices", "import", catalog, "--cloud", "lambada",
                      "--date", "2026-11-20").stdout)  # fmt: skip
        # An empty catalog takes no one's place, and prices no other file's.
        with open(prices, encoding="utf-8") as file:
            kept = file.read()
        with open(catalog, encoding="utf-8") as file:
            header, row = file.readlines()
        for text, why in ((header, "none of 0 can be used"),
                          (header + row.replace("0.01", "x"),
                           "none of 1 can be used; 1 dropped: price is no number"),
                          (header + row.replace("0.01", "nan"),
                           "none of 1 can be used; 1 dropped: price is no number")):
            self.refused(
                1, f"vms.csv: expected rows with prices, {why}",
                "prices", "import", self.write("vms.csv", text), "--cloud",
                "lambda", "--date", "2026-11-20", "--output", prices)  # fmt: skip
            with open(prices, encoding="utf-8") as file:
                self.assertEqual(file.read(), kept)
        again = ("prices", "import", self.write(
            "vms.csv", header + row + row.replace("0.01,", "0.02,x")), "--cloud",
            "lambda", "--date", "2026-11-20", "--output")  # fmt: skip
        self.assertIn("1 row dropped: price is no number",
                      self.good(*again, prices).stdout)
        none = self.path("none.yaml")
        self.begins(1, '--fail-if: unknown figure "foo"',
                    *again, none, "--fail-if", "foo>1")
        self.assertFalse(os.path.exists(none))
        self.refused(
            1, "--output job.yaml: expected a new file, or prices to replace; "
            "the one that is there is none",
            *again, self.write("job.yaml", GOOD))  # fmt: skip

    def test_top_shows_the_best_and_counts_the_rest(self):
        command = ("recommend", "emotion_bert_base")
        whole = self.json_of(*command)
        top = self.json_of(*command, "--top", "3")
        self.assertEqual(top["candidates"], whole["candidates"][:3])
        self.assertEqual(top["chosen"], whole["chosen"])
        priced = [c for c in whole["candidates"]
                  if c["chosen"] or c["reason"].endswith("dearer")]  # fmt: skip
        self.assertIn(
            f"--top 3: {len(priced) - 3} more candidates are worse, "
            f"{len(whole['candidates']) - len(priced)} do not fit, have no "
            "price or miss a limit", top["notes"])  # fmt: skip
        self.assertEqual(self.json_of(*command, "--top", "9999")["candidates"],
                         whole["candidates"])  # fmt: skip
        self.refused(
            1, "--top: expected an integer from 1 to 1000000, got 0",
            *command, "--top", "0")  # fmt: skip

    def test_prices_of_a_region(self):
        regions = ("eu-west-1", "europe-west4")
        json_ = self.json_of(
            "recommend", "emotion_bert_base", "--region", ", ".join(regions)
        )
        seen = {}
        for c in json_["candidates"]:
            cloud = c["instance"].split("/")[0]
            if c["price"] is None:
                self.assertIsNone(c["cost_usd"])
            else:
                seen.setdefault(cloud, set()).add(c["price"]["region"])
        self.assertEqual(seen, {"aws": {"eu-west-1"}, "gcp": {"europe-west4"}})
        self.assertIn("no price in these regions",
                      [c["reason"] for c in json_["candidates"]])  # fmt: skip
        one = self.json_of("predict", "emotion_bert_base", "--instance",
                           "aws/g5.xlarge", "--region", "eu-west-1")  # fmt: skip
        self.assertEqual(one["price"]["region"], "eu-west-1")
        self.refused(
            1,
            '--region: unknown region "eu-west-11"; did you mean "eu-west-1", '
            '"eu-west1" or "us-west-1"? see: trainfare list prices',
            "recommend", "emotion_bert_base", "--region", "eu-west-11")  # fmt: skip

    def test_says_dates_market_and_what_is_left_out(self):
        text = self.good("recommend", "emotion_bert_base").stdout
        self.assertRegex(text, r"note: prices: on demand, aws \d{4}-\d\d-\d\d")
        self.assertIn("excludes", text)
        self.assertNotIn("$0.00 ", text)


class Diff(Case):
    def saved(self, name, *command):
        file = self.path(name)
        self.good(*command, "--quiet", "--export", file)
        return file

    def test_the_same_answer_twice_moves_nothing(self):
        for command in (
            ("predict", "emotion_bert_base", "--device", "h100_sxm"),
            ("recommend", "emotion_bert_base", "--cloud", "aws"),
        ):
            file = self.saved("a.json", *command)
            diff = self.json_of("diff", file, file)
            self.assertEqual(diff["settings"], [])
            self.assertEqual(diff["only_before"] + diff["only_after"], [])
            for change in diff["changes"]:
                self.assertEqual(change["before"], change["after"])
                self.assertLessEqual(set(change["change"].values()), {0, None})
            self.assertIn("moved", self.good("diff", file, file).stdout)

    def test_percent_of_what_it_was(self):
        asked = ("predict", "emotion_bert_base", "--instance", "aws/g5.xlarge")
        before = self.saved("a.json", *asked, "--batch", "8,16")
        after = self.saved("b.json", *asked, "--batch", "16", "--set",
                           "stack=eager")  # fmt: skip
        diff = self.json_of("diff", before, after)
        self.assertEqual(
            [(s["key"], s["before"], s["after"]) for s in diff["settings"]],
            [("scenario.stack", "compiled", "eager")])  # fmt: skip
        (change,) = diff["changes"]
        self.assertEqual([c["batch"] for c in diff["only_before"]], [8])
        with open(before, encoding="utf-8") as file:
            was = json.load(file)["predictions"][1]
        with open(after, encoding="utf-8") as file:
            now = json.load(file)["predictions"][0]
        for key, percent in (
            ("step_time_s", "step_time_percent"),
            ("run_time_s", "run_time_percent"),
            ("cost_usd", "cost_percent"),
            ("energy_j", "energy_percent"),
            ("memory_bytes", "memory_percent"),
        ):
            self.assertEqual(change["before"][key], was[key])
            self.assertEqual(change["after"][key], now[key])
            self.assertAlmostEqual(
                change["change"][percent], 100 * (now[key] / was[key] - 1)
            )
        self.assertNotEqual(change["change"]["cost_percent"], 0)
        text = self.good("diff", before, after).stdout
        self.assertIn(
            f"step {change['change']['step_time_percent']:+.1f} %", text)
        rows = list(csv.DictReader(io.StringIO(
            self.good("diff", before, after, "--format", "csv").stdout)))
        self.assertEqual(len(rows), 1)
        self.assertEqual(float(rows[0]["cost_after_usd"]), now["cost_usd"])

    def test_one_device_beside_another(self):
        asked = ("predict", "emotion_bert_base", "--batch", "8,16", "--device")
        diff = self.json_of(
            "diff",
            self.saved("a.json", *asked, "a100_sxm4_80gb"),
            self.saved("b.json", *asked, "h100_sxm"),
        )
        self.assertEqual(
            [(c["before"]["device"], c["after"]["device"], c["after"]["batch"])
             for c in diff["changes"]],
            [("a100_sxm4_80gb", "h100_sxm", 8), ("a100_sxm4_80gb", "h100_sxm", 16)],
        )  # fmt: skip
        for change in diff["changes"]:
            self.assertLess(change["change"]["step_time_percent"], 0)
            self.assertIsNone(change["change"]["cost_percent"])

    def test_the_choice_moves(self):
        asked = ("recommend", "emotion_bert_base", "--objective")
        cheap = self.saved("cheap.json", *asked, "cost")
        fast = self.saved("fast.json", *asked, "time")
        choice = self.json_of("diff", cheap, fast)["choice"]
        self.assertTrue(choice["moved"])
        self.assertGreater(choice["change"]["cost_percent"], 0)
        self.assertLess(choice["change"]["run_time_percent"], 0)
        text = self.good("diff", cheap, fast).stdout
        self.assertIn(
            f"the choice moves from {choice['before']['instance']}", text)
        self.assertLess(len(text.splitlines()), 40)
        # Nothing can be recommended within a millisecond.
        late = self.path("late.json")
        self.run_it("recommend", "emotion_bert_base", "--deadline", "1ms",
                    "--export", late)  # fmt: skip
        choice = self.json_of("diff", cheap, late)["choice"]
        self.assertIsNone(choice["after"])
        self.assertTrue(choice["moved"])

    def test_what_is_no_answer(self):
        good = self.saved("a.json", "predict", "emotion_bert_base", "--device",
                          "h100_sxm")  # fmt: skip
        self.saved("r.json", "recommend", "emotion_bert_base")
        schema = ("trainfare.prediction/1 or trainfare.recommendation/1, as "
                  "predict and recommend --format json write it")  # fmt: skip
        with open(good, encoding="utf-8") as file:
            answer = json.load(file)
        odd = {**answer, "predictions": [{**answer["predictions"][0],
                                          "cost_usd": "much"}]}  # fmt: skip
        none = {**answer, "predictions": []}
        for name, text, message in (
            ("b.json", None, "b.json: cannot be opened: No such file or "
             "directory"),
            ("b.json", "[]", "b.json: expected an object, got []"),
            ("b.json", "{}", f"b.json: schema: expected {schema}, got nothing"),
            ("b.json", '{"schema": "x/1"}',
             f'b.json: schema: expected {schema}, got "x/1"'),
            ("b.json", json.dumps(odd),
             'b.json: predictions[0].cost_usd: expected a number, got "much"'),
            ("b.json", json.dumps(none),
             "b.json: predictions: expected at least one answer, got []"),
            ("r.json", None,
             "r.json: schema: expected trainfare.prediction/1 as in a.json, "
             "got trainfare.recommendation/1"),
        ):  # fmt: skip
            with self.subTest(message):
                file = self.path(name) if text is None else self.write(name, text)
                self.refused(1, message, "diff", good, file)
        self.assertEqual(self.run_it("diff", good).returncode, 2)
        cut = self.write("cut.json", json.dumps(answer)[:200])
        result = self.run_it("diff", good, cut)
        self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1))


class Limits(Case):
    def passed(self, complaint, *command):
        """Exit code 4, and all that is written without a limit."""
        result = self.run_it(*command, "--quiet")
        self.assertEqual(result.returncode, 4)
        self.assertRegex(result.stderr, f"^trainfare: --fail-if: {complaint}\n$")
        at = command.index("--fail-if")
        without = (*command[:at], *command[at + 2:], "--quiet")
        self.assertEqual(result.stdout, self.good(*without).stdout)

    def test_predict(self):
        asked = ("predict", "emotion_bert_base", "--instance", "aws/g5.xlarge")
        self.good(*asked, "--fail-if", "cost_usd>100")
        self.good(*asked, "--fail-if", "run_time_s>4h", "--fail-if", "mfu<0.1%")
        self.passed(r"cost_usd is 0\.\d+, limit cost_usd>0\.001",
                    *asked, "--fail-if", "cost_usd>0.001")  # fmt: skip
        self.passed(r"run_time_s is \d+\.\d, limit run_time_s > 1 min",
                    *asked, "--fail-if", "run_time_s > 1 min")  # fmt: skip
        self.passed(
            r"batch of predictions/1 is 16\.00, limit batch>8",
            *asked, "--batch", "8,16", "--fail-if", "batch>8")  # fmt: skip
        # Nobody rents this device by itself: no price, no cost.
        self.passed(r"cost_usd is not known, limit cost_usd>9999",
                    "predict", "emotion_bert_base", "--device", "h100_sxm",
                    "--fail-if", "cost_usd>9999")  # fmt: skip
        grade = self.json_of(*asked)["predictions"][0]["grade"]
        self.refused(1, f'--fail-if: expected a figure, "grade" is "{grade}"',
                     *asked, "--fail-if", "grade>1")  # fmt: skip
        said = self.run_it(*asked, "--fail-if", "cots_usd>1").stderr
        self.assertIn('unknown figure "cots_usd"; did you mean "cost_usd"', said)

    def test_recommend_holds_the_choice_to_it(self):
        asked = ("recommend", "emotion_bert_base")
        chosen = self.json_of(*asked)["candidates"][0]
        cost = chosen["cost_usd"]
        self.good(*asked, "--fail-if", f"cost_usd>{cost}")
        self.passed(r"cost_usd is .*", *asked, "--fail-if", f"cost_usd>={cost}")
        self.passed(r"run_time_s is .*", *asked, "--fail-if", "run_time_s>1s")
        late = self.run_it(*asked, "--deadline", "1ms", "--fail-if", "cost_usd>1")
        self.assertEqual(late.returncode, 3)

    def test_diff(self):
        files = []
        for batch in ("8", "16"):
            files.append(self.path(f"{batch}.json"))
            self.good("predict", "emotion_bert_base", "--device", "h100_sxm",
                      "--batch", batch, "--export", files[-1])  # fmt: skip
        self.good("diff", *files, "--fail-if", "run_time_percent>5%")
        self.passed(r"step_time_percent is \d+\.\d+, limit .*",
                    "diff", *files, "--fail-if", "step_time_percent>1")  # fmt: skip
        self.passed(r"cost_percent is not known, limit .*",
                    "diff", *files, "--fail-if", "cost_percent>1")  # fmt: skip

    def test_what_moved_since_a_baseline(self):
        saved = self.path("before.json")
        asked = ("predict", "emotion_bert_base", "--instance", "aws/g5.xlarge")
        self.good(*asked, "--export", saved)
        since = (*asked, "--batch", "128", "--baseline", saved)
        self.good(*since, "--fail-if", "memory_percent>900%")
        self.passed(r"memory_percent is \d+\.\d+, limit memory_percent>1%",
                    *since, "--fail-if", "memory_percent>1%")  # fmt: skip
        chosen = self.path("choice.json")
        asked = ("recommend", "emotion_bert_base")
        self.good(*asked, "--discount", "gcp=0.8", "--export", chosen)
        dearer = (*asked, "--baseline", chosen)
        self.passed(r"cost_percent is 25\.00, limit cost_percent>24%",
                    *dearer, "--fail-if", "cost_percent>24%")  # fmt: skip
        self.good(*dearer, "--fail-if", "cost_percent>26%")

    def test_show_holds_the_scenario_to_it(self):
        asked = ("show", "emotion_bert_base", "--set", "batch=8")
        parameters = self.json_of(
            "predict", "emotion_bert_base", "--device", "l4")["scenario"]["parameters"]
        self.good(*asked, "--fail-if", f"parameters>{parameters}")
        file = self.path("kept.yaml")
        result = self.run_it(*asked, "--output", file, "--fail-if",
                             f"parameters>={parameters}")  # fmt: skip
        self.assertEqual((result.returncode, result.stdout), (4, ""))
        self.assertRegex(result.stderr,
                         rf"^trainfare: --fail-if: parameters is {parameters}, .*\n$")
        with open(file, encoding="utf-8") as text:
            self.assertEqual(text.read(), self.good(*asked).stdout)
        self.assertEqual(self.run_it(*asked, "--fail-if", "batch>4").returncode, 4)
        self.good(*asked, "--fail-if", "batch>8")
        said = self.run_it(*asked, "--output", self.path("none.yaml"),
                           "--fail-if", "paramters>1")  # fmt: skip
        self.assertEqual(said.returncode, 1)
        self.assertIn('unknown figure "paramters"; did you mean "parameters"', said.stderr)
        self.assertFalse(os.path.exists(self.path("none.yaml")))

    def test_every_other_command_that_answers(self):
        self.passed(r"memory_bytes of rows/\d+ is .*; and \d+ more",
                    "list", "devices", "--fail-if", "memory_bytes>1GiB")  # fmt: skip
        self.good("list", "devices", "h100_sxm", "--fail-if", "memory_bytes>1TB")
        runs = self.write("runs.csv", TABLE_HEADER + "".join(
            table_row("t4", batch, 128, "fp16", 10.0 * batch)
            for batch in (4, 8, 16, 32)))  # fmt: skip
        fit = ("calibrate", "--from", runs, "--device", "t4",
               "--output", self.path("fit.yaml"), "--quiet")  # fmt: skip
        self.good(*fit, "--fail-if", "leave_one_out_error>500%")
        self.assertEqual(
            self.run_it(*fit, "--fail-if", "leave_one_out_error>=0").returncode, 4)
        saved = self.path("again.json")
        self.good("predict", "emotion_bert_base", "--device", "l4", "--export", saved)
        self.good("replay", saved, "--fail-if", "run_time_s>1000h")
        again = self.run_it("replay", saved, "--fail-if", "run_time_s>1s")
        self.assertEqual(again.returncode, 4)
        with open(saved, encoding="utf-8") as file:
            self.assertEqual(again.stdout, file.read())


class Validate(Case):
    def setUp(self):
        super().setUp()
        rows = "".join(
            table_row(device, batch, length, "fp16", 10.0 * batch * length / 128)
            for device in ("t4", "a10g")
            for batch in (4, 8, 16)
            for length in (128, 256)
        )
        self.table = self.write("table.csv", TABLE_HEADER + rows)

    def test_the_json_has_the_documented_keys(self):
        result = self.json_of("validate", self.table)
        self.assertEqual(
            list(result["overall"])[:5], ["mape", "median", "p90", "max", "n"]
        )
        self.assertEqual(result["overall"]["n"], 12)
        self.assertEqual(len(result["groups"]), 2)
        self.assertEqual(len(result["rows"]), 12)
        errors = [abs(row["error_percent"]) for row in result["rows"]]
        self.assertAlmostEqual(
            result["overall"]["mape"], sum(errors) / 12, places=9
        )
        self.assertEqual(result["overall"]["max"], max(errors))

    # What `predict` prints of a published quantity, by its keys.
    SAID = {
        "run_time": ("run_time_s",), "step_time": ("step_time_s",), "energy": ("energy_j",),
        "throughput": ("samples_per_s",), "mfu": ("mfu",), "gemm_share": ("matrix_share",),
        "launches": ("optimizer_launches",), "memory_used": ("memory_bytes",),
        "utilisation.tensor": ("engines", "tensor"),
        "optimizer_time": ("phases", "optimizer_s"),
    }  # fmt: skip

    def test_a_published_run_is_answered_as_it_is_validated(self):
        folder = os.path.join(ROOT, "scenarios", "published")
        rows = {}  # that are predicted, by their run
        for row in self.json_of("validate", folder)["rows"]:
            if row["quantity"] in self.SAID and row["as-shipped"]["predicted"] is not None:
                rows.setdefault(row["label"].split("/")[0], []).append(row)
        files = 0
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".yaml"):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                runs = [run for run in re.findall(r"^  (\w+):$", file.read(), re.M) if run in rows]
            if not runs:
                continue
            files += 1
            with self.subTest(runs[0]):
                answer = self.json_of("predict", f"{folder}/{name}#{runs[0]}")["predictions"][0]
                for row in rows[runs[0]]:
                    said = answer
                    for key in self.SAID[row["quantity"]]:
                        said = said[key]
                    self.assertAlmostEqual(said / row["as-shipped"]["predicted"], 1, places=12)
        self.assertEqual(files, 7)  # with a run that is answered

    def test_choices_between_devices(self):
        whole = self.json_of("validate", self.table)
        # Six questions, by time and by cost; of two devices.
        self.assertEqual(len(whole["choices"]), 12)
        self.assertIn("aws", whole["price_catalogs"])
        published = self.json_of(
            "validate", os.path.join(os.path.dirname(__file__), "..", "..", "scenarios", "published"),
            "--protocol", "leave-one-out")  # fmt: skip
        for choice in whole["choices"] + published["choices"]:
            stated = [d["best_probability"] for d in choice["devices"]]
            self.assertAlmostEqual(sum(stated), 1)
            self.assertEqual(sum(d["best"] for d in choice["devices"]), 1)
        near = [c["regret_percent"] <= 8 for c in published["choices"]]
        self.assertGreater(len(near), 10)
        self.assertTrue(all(near))
        self.assertIn("choices: of 12 between devices", " ".join(whole["notes"]))

    def test_a_passed_limit_exits_4_with_the_result(self):
        result = self.run_it("validate", self.table, "--fail-if", "mape>0.001%")
        self.assertEqual(result.returncode, 4)
        self.assertIn("median error", result.stdout)
        self.assertRegex(
            result.stderr,
            r"^trainfare: --fail-if: mape is [\d.]+ %, limit mape>0\.001%\n$",
        )
        self.good("validate", self.table, "--fail-if", "mape>100000%")

    def test_protocols(self):
        counts = {
            "as-shipped": (12, 0),
            "in-sample": (12, 12),
            "leave-one-out": (12, 0),
            "leave-device-out": (12, 0),
            "one-run-per-device": (10, 2),
            "k-runs=2": (8, 4),
            "added-runs=2": (8, 4),
        }
        for protocol, (predicted, fitted) in counts.items():
            with self.subTest(protocol):
                result = self.json_of(
                    "validate", self.table, "--protocol", protocol
                )
                self.assertEqual(result["protocol"], protocol)
                self.assertEqual(result["overall"]["n"], predicted)
                self.assertEqual(len(result["fitted"]), fitted)

    def test_nothing_to_predict_is_an_error_with_its_reason(self):
        path = self.write(
            "odd.csv", TABLE_HEADER + table_row(device="GeForce Imaginary 9")
        )
        result = self.run_it("validate", path, "--format", "json")
        self.assertEqual(result.returncode, 1)
        skipped = json.loads(result.stdout)["skipped"]
        self.assertIn("GeForce Imaginary 9", skipped[0]["reason"])

    def test_rows_that_are_not_read_have_their_lines(self):
        notes = table_row().rstrip("\n") + "fwd+bwd\n"
        path = self.write("odd.csv", TABLE_HEADER + table_row() + notes)
        rows = self.json_of("validate", path)["unused"]
        self.assertEqual([row["label"] for row in rows], [path + ":3"])
        self.assertIn("with the update or without", rows[0]["reason"])
        csv = self.good("validate", path, "--format", "csv").stdout.splitlines()
        self.assertEqual(len(csv), 3)
        self.assertTrue(csv[2].startswith(path + ":3,"), csv[2])
        self.assertTrue(csv[2].endswith('update or without is not stated"'), csv[2])
        for form in ("table", "markdown"):
            text = self.good("validate", path, "--format", form).stdout
            self.assertNotIn(path + ":3", text)
            self.assertIn("1 of 2 rows are not used", text)


class Interrupt(Case):
    def test_a_closed_pipe_is_no_crash(self):
        # `trainfare list instances | head -1`
        with subprocess.Popen(
            [PROGRAM, "recommend", "emotion_bert_base", "--format", "json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment(),
        ) as process:
            process.stdout.close()
            said = process.stderr.read().decode()
            process.wait()
        self.assertNotIn("terminate", said)
        self.assertNotIn("internal error", said)
        self.assertNotEqual(process.returncode, -6)


# Answers requests as the trainer does, with synthetic times.
FAKE_TRAINER = r"""#!{python}
import json, sys, time
name = {name!r}
if sys.argv[1:] == ["devices"]:
    print(json.dumps({{"kind": "cpu", "name": name, "threads": 2}}))
    sys.exit(0)
for number, line in enumerate(sys.stdin):
    request = json.loads(line)
    time.sleep(0.15)  # so long that eight kills come before the last run
    tokens = request["batch"] * request["sequence_length"]
    step = 1.5e-3 + 13e-6 * tokens
    sample = {{"warmup": False, "step_s": step, "forward_s": 0.3 * step,
              "backward_s": 0.6 * step, "optimizer_s": 0.05 * step}}
    print(json.dumps({{
        "schema": "trainfare.measurement/1", "kind": "step",
        "id": "run-%d" % number, "world_size": 1,
        "device": {{"name": name, "kind": "cpu", "count": 1, "threads": 2}},
        "workload": {{
            "model": request["model"],
            "batch": request["batch"],
            "sequence_length": request["sequence_length"],
            "precision": request["precision"],
            "optimizer": request["optimizer"], "stack": request["stack"],
            "attention": request["attention"]}},
        "samples": [sample] * request["steps"]}}), flush=True)
"""


class Kills(Case):
    def processor(self):
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
        self.skipTest("this processor has no name")

    def test_an_interrupt_before_the_first_run_is_said(self):
        # It says that it was asked what devices are here, and never answers.
        asked = self.path("asked")
        trainer = self.write(
            "trainer", f"#!/bin/sh\n: >'{asked}'\nexec sleep 60\n")
        os.chmod(trainer, 0o755)
        with subprocess.Popen(
                [PROGRAM, "calibrate", "--output", self.path("fit.yaml")],
                env=self.environment(TRAINFARE_TRAINER=trainer),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True) as process:
            while not os.path.exists(asked):
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            said = process.communicate()[1]
        self.assertEqual(said, "trainfare: interrupted before the first run\n")
        self.assertEqual(process.returncode, 130)

    def test_a_killed_calibration_loses_no_finished_run(self):
        trainer = self.write("trainer", FAKE_TRAINER.format(
            python=sys.executable, name=self.processor()))
        os.chmod(trainer, 0o755)
        output = self.path("fit.yaml")
        command = [PROGRAM, "calibrate", "--models", "bert-tiny",
                   "--precision", "fp32", "--ranks", "1", "--budget", "15s",
                   "--target", "0", "--output", output]
        environment = self.environment(TRAINFARE_TRAINER=trainer)
        seed = int.from_bytes(os.urandom(4), "little")
        instants = random.Random(seed)

        def kept():
            lines = set()
            for name in os.listdir(self.folder):
                if ".jsonl" not in name:
                    continue
                with open(self.path(name), encoding="utf-8") as file:
                    text = file.read()
                # A line cut off is its own run's loss alone.
                for line in text.split("\n")[:-1]:
                    json.loads(line)
                    lines.add(line)
            return lines

        with self.subTest(seed=seed):
            before = set()
            for _ in range(8):
                with subprocess.Popen(command, env=environment,
                                      stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL,
                                      start_new_session=True) as process:
                    time.sleep(instants.uniform(0.05, 1.0))
                    process.kill()
                    process.wait()
                self.assertFalse(os.path.exists(output))
                after = kept()
                self.assertLessEqual(before, after)
                before = after
            self.assertTrue(before)
            result = subprocess.run(command, env=environment, check=False,
                                    capture_output=True, text=True, timeout=300)
            self.assertEqual(result.returncode, 0, result.stderr)
            answer = self.run_it("predict", self.write("job.yaml", GOOD),
                                 "--fit", output)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            self.assertEqual([name for name in os.listdir(self.folder)
                              if name.startswith("fit.yaml.")], [])


class Speed(Case):
    def test_a_prediction_takes_less_than_the_blink_of_an_eye(self):
        # 20 ms on an idle machine; tests run beside builds and sanitizers, so
        # that only a change of kind fails here.
        best = min(self.once() for _ in range(10))
        self.assertLess(best, 0.4)

    def once(self):
        start = time.monotonic()
        self.good("predict", "emotion_bert_base", "--device", "a100_sxm4_80gb")
        return time.monotonic() - start


if __name__ == "__main__":
    if not PROGRAM or not os.access(PROGRAM, os.X_OK):
        sys.exit(f"usage: {sys.argv[0]} PROGRAM [SUITE]")
    unittest.main()
