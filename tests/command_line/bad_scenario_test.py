"""Scenarios that are refused, by place and reason."""

import os
import re

import program
from program import Case, GOOD


class Scenarios(Case):
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

    def test_a_file_of_no_published_figures_is_blamed_itself(self):
        """Not another of its folder, which need not be one either."""
        job = self.write("q.yaml", GOOD)
        self.write("b.yaml", "x: 1\n")
        missing = ('q.yaml:1:1: missing key "schema": expected a file of published '
                   "figures (trainfare.published/1)")
        self.refused(1, missing, "predict", job + "#x", "--device", "t4")
        self.refused(1, missing, "validate", job)

    def test_a_map_is_no_name_of_a_model(self):
        job = ("--samples", "100", "--length", "128", "--device", "l4")
        for text in ('{"of": "llama-3.2-1b"}', "{ of: llama-3.2-1b, layers: 2 }"):
            with self.subTest(text):
                self.refused(
                    1,
                    '--model: expected a name or a config.json, got a map with "of"; '
                    "hint: --model llama-3.2-1b --set model.KEY=VALUE",
                    "predict", "--model", text, *job,
                )  # fmt: skip
                self.refused(
                    1,
                    "--model: expected a name or a file that stays, which is what a "
                    f"scenario names, got \"{text}\"; hint: --model llama-3.2-1b, and "
                    "such a map in the scenario",
                    "init", "--model", text, *job[:4],
                )  # fmt: skip
        self.good("predict", "--model", "llama-3.2-1b", *job, "--set", "model.layers=2")

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
        # Where a graph compiler makes it, one pass is what it is.
        self.good("predict", "--model", "bart-base", *job, "--device", "h100_sxm",
                  "--set", "optimizer.name=adafactor", "--set", "stack=xla")
        for setting, hint in (
            ("trainable=lora", "trainable: { lora: { rank: RANK, matrices: "),
            ("quantization=nf4", "base_bits: 4"),
            ("parallel.cp=2", "context"),
            ("parallel.etp=2", "expert_tensor"),
            ("tensor_parallel_size=2", "parallel: { tensor: 8 }"),
            ("parallel.pp=2", "pipeline"),
            ("parallel.sequence=true", "tensor"),
            ("parallel.chunks=2", "pipeline"),
            ("parallel.reduce_dtype=bf16", "gradient_compression: half"),
            ("reduce_dtype=bf16", "gradient_compression: half"),
            ("gradient_checkpointing=selective", "operation_checkpointing or "),
            ("loss=cut_cross_entropy", "chunked is the nearest"),
            ("stack=transformer_engine", "megatron"),
            ("stack=deepspeed", "eager, with parallel.shard=zero2, zero3 or fsdp"),
            ("stack=fsdp", "eager, with parallel.shard="),
            ("stack=zero", "eager, with parallel.shard="),
            ("stack=zero3", "eager, with parallel.shard=zero3"),
            ("stack=accelerate", "eager, with parallel.shard="),
            ("precision=mxfp8", "fp8.scaling=blocks"),
            ("parallel.shard=zero3_offload", "zero3, with parallel.offload"),
        ):
            with self.subTest(setting):
                result = self.run_it("predict", "--model", "bart-base", *job,
                                     "--set", setting)
                self.assertEqual(result.returncode, 1)
                self.assertRegex(result.stderr, "; hint: .*" + re.escape(hint))
        for setting, message in (
            ("parallel.tensor=5", "expected a divisor of the"),
            ("parallel.sequence=true", "expected false where no ranks divide layers"),
            ("parallel.chunks=2", "expected 1 without a pipeline"),
            ("parallel.context=3", "expected a divisor of the"),
            ("parallel.expert=2", "expected 1 in a model without experts"),
        ):
            with self.subTest(setting):
                result = self.run_it("predict", "--model", "bart-base", *job,
                                     "--set", setting)
                self.assertEqual(result.returncode, 1)
                self.assertIn(message, result.stderr)
        answer = self.json_of("predict", "--model", "llama-3.2-1b", *job,
                              "--device", "h100_sxm")
        self.assertEqual(answer["scenario"]["name"], "llama-3.2-1b")
        result = self.run_it("init", "--model", "bert-base-uncased",
                             "--samples", "100", "--length", "3000")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("--model bert-base-uncased: padding: expected a length of at most "
                      "512, the positions of bert-base-uncased, got 3000\n",
                      result.stderr)


if __name__ == "__main__":
    program.main()
