"""trainfare-trainer as a person runs it, for the suites beside this file."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TRAINER = sys.argv.pop(1) if len(sys.argv) > 1 else ""
REQUEST = {"model": "bert-tiny", "batch": 2, "sequence_length": 16, "steps": 2,
           "warmup": 1}


def run(*arguments, **options):
    return subprocess.run([TRAINER, *map(str, arguments)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120, **options)


def wait_for_threads(process, count):
    """Until a computation runs on several threads."""
    tasks = Path(f"/proc/{process.pid}/task")
    end = time.time() + 60
    while time.time() < end and process.poll() is None:
        if len(list(tasks.iterdir())) >= count:
            return
        time.sleep(0.02)


def processor_seconds(process=None):
    """Of a process that runs, or of all that have ended."""
    if process is None:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ended.ru_utime + ended.ru_stime
    # The name in brackets may hold anything; what follows it has no other.
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2]
    user, system = map(int, fields.split()[11:13])
    return (user + system) / os.sysconf("SC_CLK_TCK")


def wait_for_processor(process, seconds):
    """Until it has computed for so long, or has ended."""
    while process.poll() is None and processor_seconds(process) < seconds:
        time.sleep(0.02)


class Case(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def write(self, name, *lines):
        path = self.folder / name
        path.write_text("".join(line + "\n" for line in lines))
        return path

    def check_fails(self, result, code, *parts):
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        lines = result.stderr.strip().split("\n")
        self.assertEqual(len(lines), 1, result.stderr)
        for part in parts:
            self.assertIn(part, lines[0])

    def train(self, *more, model="bert-tiny"):
        return run("train", "--model", model, "--length", 16, *more)

    def long_run(self, *more):
        """Arguments of a run of 12 steps over examples of mixed length."""
        lines = [json.dumps({"input_ids": [5 + i] * (3 + 5 * i % 13),
                             "label": i % 2}) for i in range(20)]
        data = self.write("data.jsonl", *lines)
        return ["--data", data, "--batch", 3, "--steps", 12,
                "--optimizer", "adan", "--layer-decay", 0.9,
                "--clip-norm", 1, "--warmup-fraction", 0.2,
                "--learning-rate", "1e-3", "--threads", 1, *more]


def main():
    """Runs the suites of the file that was called."""
    if not os.access(TRAINER, os.X_OK):
        sys.exit(f"usage: {sys.argv[0]} TRAINER")
    unittest.main()
