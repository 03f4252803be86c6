"""A signal ends what runs, and loses nothing that was measured.

    signals_test.py TRAINER
"""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import trainer_program
from trainer_program import (REQUEST, TRAINER, Case, processor_seconds,
                             wait_for_processor, wait_for_threads)


class Signals(Case):
    def test_interrupted_while_waiting(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen([TRAINER, "measure"], text=True,
                                  stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE) as process:
                process.stdin.write(json.dumps(REQUEST) + "\n")
                process.stdin.flush()
                json.loads(process.stdout.readline())
                time.sleep(0.2)
                process.send_signal(number)
                self.assertEqual(process.wait(30), 130)
                self.assertEqual(process.stderr.read(), "")

    def test_interrupted_while_running_keeps_whole_lines(self):
        plan = self.write("plan.jsonl", json.dumps(REQUEST), json.dumps(
            {**REQUEST, "warmup": 0, "steps": 1000000, "max_seconds": 100}))
        records = self.folder / "records.jsonl"
        with subprocess.Popen([TRAINER, "measure", "--plan", plan,
                               "--out", records]) as process:
            while not records.exists() or not records.read_text():
                time.sleep(0.05)
            time.sleep(2)  # the second run has begun by now
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(30), 130)
        text = records.read_text()
        self.assertTrue(text.endswith("\n"))
        answers = [json.loads(line) for line in text.splitlines()]
        self.assertEqual(len(answers), 2)
        self.assertTrue(any(not s["warmup"] for s in answers[1]["samples"]))

    def test_interrupted_while_it_builds_a_model(self):
        """Of many layers, which take longer than anybody waits."""
        plan = self.write("plan.jsonl", json.dumps({
            **REQUEST, "steps": 100000, "model": {
                "family": "decoder", "layers": 20000, "hidden": 8, "heads": 1,
                "vocabulary": 50}}))
        self.assertEqual(self.terminated("measure", "--plan", plan,
                                         "--threads", "1"), (130, ""))

    def test_a_signal_ends_the_reading_of_a_pipe_that_nobody_writes_to(self):
        pipe = self.folder / "lengths"
        os.mkfifo(pipe)
        self.assertEqual(self.terminated("train", "--model", "bert-tiny",
                                         "--lengths", str(pipe)), (130, ""))

    @staticmethod
    def terminated(*arguments):
        """Exit code and errors of a run that is ended while it begins."""
        with subprocess.Popen([TRAINER, *arguments], text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            # Its handlers are there before the second thread of any kind.
            wait_for_threads(process, 2)
            time.sleep(1)
            process.send_signal(signal.SIGTERM)
            _, error = process.communicate(timeout=60)
        return process.returncode, error

    def test_signals_reach_no_thread_that_computes(self):
        """Wherever a signal falls into a step, the run ends whole."""
        request = {**REQUEST, "model": "bert-small", "batch": 32,
                   "sequence_length": 128, "steps": 100000, "warmup": 0,
                   "max_seconds": 60}
        plan = self.write("plan.jsonl", json.dumps(request))
        command = [TRAINER, "measure", "--plan", str(plan), "--threads", "2"]
        seed = int.from_bytes(os.urandom(4), "little")
        instants = random.Random(seed)
        for number in (signal.SIGINT, signal.SIGTERM):
            for _ in range(2):
                with subprocess.Popen(command, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE,
                                      text=True) as process:
                    wait_for_threads(process, 3)
                    with self.subTest(seed=seed, signal=number):
                        self.assert_all_threads_block(process.pid)
                        time.sleep(instants.uniform(0, 2))
                        process.send_signal(number)
                        out, error = process.communicate(timeout=60)
                        self.assertEqual((process.returncode, error),
                                         (130, ""))
                        for line in out.splitlines():
                            json.loads(line)

    def assert_all_threads_block(self, pid):
        wanted = sum(1 << (s - 1) for s in (signal.SIGINT, signal.SIGTERM))
        open_to_them = 0
        for status in Path(f"/proc/{pid}/task").glob("*/status"):
            masks = {k: int(v, 16) for k, v in (
                line.split(":", 1) for line in status.read_text().splitlines()
                if line.startswith(("SigBlk", "SigCgt")))}
            self.assertEqual(masks["SigCgt"] & wanted, 0)  # no handler
            open_to_them += masks["SigBlk"] & wanted != wanted
        # The thread that waits for them may have them unblocked while it does.
        self.assertLessEqual(open_to_them, 1)

    def interrupted(self, *arguments, after, within):
        """What is left of a run that a signal ends some time after it has
        threads. It has so many seconds of a processor to end: those of the
        clock go by what runs beside it."""
        before = processor_seconds()
        with subprocess.Popen([TRAINER, *map(str, arguments)], text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            wait_for_threads(process, 2)
            time.sleep(after)
            if process.poll() is not None:
                self.fail(process.stderr.read())
            until_then = processor_seconds(process)
            process.send_signal(signal.SIGINT)
            try:
                out, error = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        self.assertLess(processor_seconds() - before - until_then, within)
        self.assertEqual(process.returncode, 130, error)
        for line in error.splitlines():
            self.assertIn("note: ", line)
        return out

    def test_a_signal_ends_what_is_timed_by_itself(self):
        self.assertEqual(self.interrupted(
            "bench", "copy", "--bytes", 1 << 31, "--threads", 1, after=1,
            within=1.5), "")
        plan = self.write("plan.jsonl", json.dumps(
            {**REQUEST, "model": "bert-base-uncased", "batch": 32,
             "sequence_length": 128}))
        for line in self.interrupted(
                "bench", "kernels", "--plan", plan, "--kind", "gemm",
                "--threads", 1, after=3, within=10).splitlines():
            self.assertEqual(json.loads(line)["kind"], "kernel")

    def test_a_signal_ends_a_step_of_many_layers(self):
        """Or of many micro-batches: it is not waited for, which takes 20 s and
        more of a processor."""
        small = {"family": "decoder", "hidden": 64, "heads": 1,
                 "vocabulary": 50, "layers": 2}
        deep = {"model": {**small, "layers": 3000}, "sequence_length": 128}
        for after, request in (
                (2, {"model": small, "accumulation": 1000000}),
                (2, deep), (12, deep)):
            plan = self.write("plan.jsonl", json.dumps(
                {**REQUEST, "steps": 1000, "batch": 1, **request}))
            self.interrupted("measure", "--plan", plan, "--threads", 1,
                             after=after, within=4)

    def test_a_signal_within_a_step_loses_no_step_before_it(self):
        """The step that was cut is taken again, to the bit."""
        whole = self.folder / "whole.safetensors"
        parts = self.folder / "parts.safetensors"
        arguments = [*self.long_run(), "--accumulation", 200]
        arguments[arguments.index("--steps") + 1] = 3
        self.assertEqual(self.train(*arguments, "--checkpoint",
                                    whole).returncode, 0)
        command = [TRAINER, "train", "--model", "bert-tiny", "--length", "16",
                   *map(str, arguments), "--checkpoint", str(parts)]
        for after in (1.5, 3, None):
            with subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE,
                                  text=True) as process:
                if after is not None:
                    wait_for_processor(process, after)
                    process.send_signal(signal.SIGTERM)
                process.communicate(timeout=600)
                self.assertIn(process.returncode, (0, 130))
        self.assertEqual(process.returncode, 0)
        self.assertEqual(whole.read_bytes(), parts.read_bytes())


if __name__ == "__main__":
    trainer_program.main()
