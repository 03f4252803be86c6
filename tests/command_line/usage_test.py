"""Flags and values that cannot be."""

import program
from program import Case


class Usage(Case):
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
                'unknown option "--bacth"; did you mean "--batch"? trainfare '
                "predict --help lists them",
            ),
            (
                ("",),
                'unknown subcommand ""; known: '
                "calibrate, predict, recommend, validate, diff, replay, list, import, init, show, prices, config, completion, man",
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
                ("predict", "emotion_bert_base", "--set", "batch=1", "--set", "epochs=1",
                 "--start-up", "0", "--start-up", "1"),
                "--start-up: expected once, given several times",
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
            (("calibrate", "--from", "runs.csv", "--add", "--force"),
             "--add: not with --force"),
            (("calibrate", "--plan", "p.jsonl", "--device", "l4", "--ranks", "2"),
             "--ranks: not with --plan"),
            (("calibrate", "--launch", "slurm", "--instances", "aws/g5.xlarge",
              "--device", "l4"),
             "--device: not with --launch"),
            (("calibrate", "--dry-run", "--until", "5%"),
             "--until: not with --dry-run"),
            (("calibrate", "--batch", "8"),
             "--batch: needs --scenario or --for, whose batch it is"),
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
            # The flag is the one that was typed.
            (
                ("predict", "emotion_bert_base", "--length", "2k"),
                '--length: expected a whole number, got "2k"; hint: 2048 or 2000',
            ),
            (
                ("predict", "emotion_bert_base", "--seq=x"),
                '--seq: expected a whole number, got "x"',
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
                "--target: expected a share from 0 to 1, such as 5% or 0.05, "
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


if __name__ == "__main__":
    program.main()
