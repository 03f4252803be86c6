"""A program that is interrupted or killed loses nothing."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import program
from program import Case, GOOD, PROGRAM


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


if __name__ == "__main__":
    program.main()
