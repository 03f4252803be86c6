"""`trainfare calibrate --for`: short runs of this trainer towards one question.

    calibrate_for_test.py TRAINER TRAINFARE

A decoder like Llama's that nobody calibrated here: the runs are of its own
blocks, the fit answers, and it knows more of what was asked than before.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TRAINER = TRAINFARE = ""

SCENARIO = """
name: a small decoder
model:
  name: little-llama
  family: decoder
  layers: 2
  hidden: 64
  heads: 4
  key_value_heads: 2
  intermediate: 160
  vocabulary: 500
  positions: 512
  norm: rms
  norm_placement: before
  position_kind: rotary
  attention_bias: false
  output_bias: false
  activation: silu
  gated: true
  feed_forward_bias: false
  separate_projections: true
task: causal-language-model
dataset: { name: random, train: 1000 }
epochs: 1
batch: 4
padding: { static: 64 }
precision: fp32
optimizer: { name: adamw, implementation: fused }
stack: liger
"""


class CalibrateFor(unittest.TestCase):
    def run_trainfare(self, *arguments):
        return subprocess.run(
            [TRAINFARE, *map(str, arguments)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
            env={**os.environ, "TRAINFARE_TRAINER": TRAINER})

    def test_runs_are_of_the_asked_model(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            scenario = folder / "asked.yaml"
            scenario.write_text(SCENARIO)
            fit = folder / "fit.yaml"
            result = self.run_trainfare(
                "calibrate", "--for", scenario, "--device", "cpu", "--output",
                fit, "--budget", "15s")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(fit.exists())
            # What each run is worth to the answer.
            worth = [tuple(map(float, pair)) for pair in re.findall(
                r"of the asked step \+-([\d.]+) -> \+-([\d.]+) %",
                result.stderr)]
            self.assertGreaterEqual(len(worth), 3, result.stderr)
            # Runs that others took time from may say less than none.
            if not re.search("disturbed|busy|speed changed", result.stderr):
                self.assertLess(worth[-1][1], worth[0][0])
            records = [json.loads(line) for line in
                       fit.with_suffix(".jsonl").read_text().splitlines()]
            self.assertGreaterEqual(len(records), 3)
            for record in records:
                workload = record["workload"]
                self.assertRegex(workload["model"]["name"], "^little-llama")
                self.assertEqual(workload["stack"], "eager")
                self.assertLessEqual(workload["sequence_length"], 64)
            answer = self.run_trainfare(
                "predict", scenario, "--fit", fit, "--device", "cpu",
                "--format", "json")
            self.assertEqual(answer.returncode, 0, answer.stderr)
            step = json.loads(answer.stdout)["predictions"][0]
            self.assertGreater(step["step_time_s"], 0)
            # It is what the answer says of itself.
            half = (step["step_time_high_s"] - step["step_time_low_s"]) / 2
            self.assertAlmostEqual(100 * half / step["step_time_s"],
                                   worth[-1][1], delta=0.06)

    def test_until(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            scenario = folder / "asked.yaml"
            scenario.write_text(SCENARIO.replace("liger", "eager"))
            # Reached by the first run: the datasheet alone knows less.
            result = self.run_trainfare(
                "calibrate", "--for", scenario, "--device", "cpu", "--output",
                folder / "fit.yaml", "--budget", "60s", "--until", "90%")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("the target interval is reached", result.stderr)

    def test_refusals(self):
        for arguments, part in (
                (["--for", "nothing"], "nothing"),
                (["--for", "llama_8b_lora", "--models", "bert-tiny"],
                 "--for: not with --models"),
                (["--until", "5 percent"], "--until: expected a share"),
                (["--until", "120%"], "--until: expected a share")):
            result = self.run_trainfare("calibrate", *arguments)
            self.assertIn(result.returncode, (1, 2), result.stderr)
            self.assertIn(part, result.stderr)


if __name__ == "__main__":
    TRAINER, TRAINFARE = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
