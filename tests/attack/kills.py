"""Kills and signals at random instants, counted.

    kills.py TRAINFARE TRAINER [--count N] [--seconds S] [--seed N]

calibrate   SIGKILL, SIGINT or SIGTERM of a calibration: no finished run is
            lost, the fit that was there is whole and no worse, and no process
            is left two seconds later; of every tenth the trainer is the real one
checkpoint  SIGKILL of a run that saves behind every step: the file is whole and
            never goes back
ranks       SIGKILL of one of three ranks, from its first instant on, a third of
            them while rank 0's store opens: the others end within 30 s with one
            line that names a rank
signals     SIGINT or SIGTERM of a trainer that computes: 130, and whole lines
"""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import counting
from counting import Finding

TESTS = Path(__file__).resolve().parents[1]
RANKS_END_SECONDS = 30
SMALL = {"model_type": "bert", "vocab_size": 512, "hidden_size": 32,
         "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 64, "max_position_embeddings": 64}


def load(path, program):
    """A test as a module; it takes its program from the command line."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    kept, sys.argv = sys.argv, [str(path), program]
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.argv = kept
    return module


class Calibrate:
    KILLS = 5  # in a row, each going on from the one before

    def __init__(self, program, trainer):
        self.program, self.trainer = program, trainer
        words = load(TESTS / "command_line" / "kills_test.py", program)
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            name = next(line.split(":", 1)[1].strip() for line in file
                        if line.startswith("model name"))
        self.fake = words.FAKE_TRAINER.format(python=sys.executable, name=name)

    def command(self, output, budget):
        return [self.program, "calibrate", "--models", "bert-tiny",
                "--precision", "fp32", "--ranks", "1", "--budget", budget,
                "--target", "0", "--output", str(output)]

    @staticmethod
    def kept(folder):
        lines = set()
        for path in folder.glob("fit*.jsonl*"):
            for line in path.read_text("utf-8").split("\n")[:-1]:
                json.loads(line)
                lines.add(line)
        return lines

    def runs_of(self, output, folder):
        """Of the fit; it is read by the program first."""
        answer = subprocess.run(
            [self.program, "predict", "emotion_bert_base", "--fit", output],
            cwd=folder, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            raise Finding(f"the fit cannot be read: {answer.stderr}")
        return int(re.search(r"\n  runs: (\d+)", output.read_text())[1])

    def once(self, random, folder):
        real = random.random() < 0.1
        trainer = Path(self.trainer)
        if not real:
            trainer = folder / "trainer"
            trainer.write_text(self.fake)
            trainer.chmod(0o755)
        tag = f"calibrate-{os.getpid()}-{folder.name}"
        environment = {**os.environ, "TRAINFARE_TRAINER": str(trainer),
                       "TRAINFARE_FITS": str(folder / "fits"), "ATTACK": tag,
                       "OMP_WAIT_POLICY": "passive"}
        output = folder / "fit.yaml"
        whole = subprocess.run(self.command(output, "2s" if not real else "6s"),
                               env=environment, capture_output=True, text=True,
                               cwd=folder, check=False)
        if whole.returncode != 0:
            raise Finding(f"not killed, and {whole.returncode}: {whole.stderr}")
        runs, lines = self.runs_of(output, folder), self.kept(folder)
        told = []
        for _ in range(self.KILLS):
            number = random.choice((signal.SIGKILL, signal.SIGINT,
                                    signal.SIGTERM))
            told.append(number.name)
            with subprocess.Popen(self.command(output, "30s"), env=environment,
                                  cwd=folder, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True) as process:
                time.sleep(random.uniform(0.02, 5.0 if real else 1.2))
                process.send_signal(number)
                _, error = process.communicate(timeout=60)
            # Before it watches for signals they end it as they end anything.
            if process.returncode not in (130, -number, 0):
                raise Finding(f"{told}: {process.returncode}: {error}")
            counting.expect_no_orphan(tag)
            now = self.runs_of(output, folder)
            if now < runs:
                raise Finding(f"{told}: a fit of {runs} runs became {now}")
            runs, before, lines = now, lines, self.kept(folder)
            if not before <= lines:
                raise Finding(f"{told}: {len(before - lines)} runs are lost")
        return "real trainer" if real else "synthetic times"


class Trained:
    """A small model in a folder, and data for it."""

    def __init__(self, trainer, folder):
        self.trainer = trainer
        self.model = folder / "model"
        self.data = folder / "data.jsonl"
        if self.model.exists():
            return
        self.data.write_text("".join(json.dumps(
            {"input_ids": [5 + i] * (3 + 5 * i % 13), "label": i % 2}) + "\n"
            for i in range(22)))
        files = load(TESTS / "attack" / "files.py", trainer)
        made = files.small_model(trainer, folder, SMALL)
        made.rename(self.model)

    def arguments(self, *more):
        return ["train", "--model", str(self.model), "--data", str(self.data),
                "--length", "16", "--batch", "2", "--threads", "1", "--epochs",
                "1000000", *map(str, more)]


class Checkpoint(Trained):
    @staticmethod
    def step_of(path):
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + size])
        end = max(entry["data_offsets"][1] for name, entry in header.items()
                  if name != "__metadata__")
        if len(data) != 8 + size + end:
            raise Finding(f"{len(data)} bytes, not {8 + size + end}")
        return int(header["__metadata__"]["step"])

    def once(self, random, folder):
        checkpoint = folder / "checkpoint.safetensors"
        command = [self.trainer, *self.arguments(
            "--checkpoint", checkpoint, "--checkpoint-every", 1)]
        before = 0
        for _ in range(5):
            with subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True) as process:
                end = time.monotonic() + 60
                # Most of them where it writes.
                while (random.random() < 0.999 and process.poll() is None and
                       time.monotonic() < end and
                       (not checkpoint.exists() or
                        self.step_of(checkpoint) == before)):
                    time.sleep(0.005)
                time.sleep(random.uniform(0, 0.3))
                process.kill()
                _, error = process.communicate()
            if process.returncode != -signal.SIGKILL:
                raise Finding(f"{process.returncode}: {error}")
            if checkpoint.exists():
                step = self.step_of(checkpoint)
                if step < before:
                    raise Finding(f"step {step} behind step {before}")
                before = step
        return "5 kills"


class Ranks(Trained):
    def __init__(self, trainer, folder):
        super().__init__(trainer, folder)
        self.ranks = load(TESTS / "trainer" / "ranks_program.py", trainer)

    def once(self, random, folder):
        lost = random.randrange(3)
        port = self.ranks.free_port()
        longest = random.choice((0.1, 1.5, 8))
        start = time.monotonic()
        with self.ranks.start(self.arguments(), 3, port=port) as ranks:
            if longest < 1:
                self.ranks.wait_until_it_listens(port)
            time.sleep(random.uniform(0, longest))
            ranks.processes[lost].kill()
            begin = time.monotonic()
            others = [p for i, p in enumerate(ranks.processes) if i != lost]
            told = f"rank {lost} killed after {begin - start:.2f} s"
            slowest = 0
            for process in others:
                left = RANKS_END_SECONDS - (time.monotonic() - begin)
                try:
                    _, error = process.communicate(timeout=max(left, 0.1))
                except subprocess.TimeoutExpired as late:
                    raise Finding(f"{told}: not over in {RANKS_END_SECONDS} s"
                                  ) from late
                slowest = time.monotonic() - begin
                lines = error.strip().splitlines()
                if process.returncode != 1 or len(lines) != 1 or not re.match(
                        r"error: .*\brank", lines[0]):
                    raise Finding(f"{told}: {process.returncode}: {error}")
                if not re.search(rf"\branks? ([\d, ]*\b)?{lost}\b", lines[0]):
                    raise Finding(f"{told}, but {error}")
        return "over in " + ("5 s" if slowest < 5 else
                             "20 s" if slowest < 20 else "30 s")


class Signals:
    # Products large enough for the kernels of AVX-512 that run on stacks of
    # their own: with a handler on every thread 6 of 12 such runs broke the heap.
    REQUEST = {"model": {"family": "encoder", "layers": 2, "hidden": 256,
                         "heads": 4, "vocabulary": 1000,
                         "head": "sequence-classification"},
               "batch": 16, "sequence_length": 128, "steps": 100000,
               "warmup": 0, "max_seconds": 60}

    def __init__(self, trainer):
        self.trainer = trainer

    def once(self, random, folder):
        plan = folder / "plan.jsonl"
        plan.write_text(json.dumps(self.REQUEST) + "\n")
        number = random.choice((signal.SIGINT, signal.SIGTERM))
        out = folder / "out.jsonl"
        with subprocess.Popen(
                [self.trainer, "measure", "--plan", str(plan), "--out",
                 str(out), "--threads", "2"],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                text=True) as process:
            # Its threads are there once it computes.
            tasks = Path(f"/proc/{process.pid}/task")
            end = time.monotonic() + 60
            while (process.poll() is None and time.monotonic() < end and
                   len(list(tasks.iterdir())) < 3):
                time.sleep(0.01)
            time.sleep(random.uniform(0, 1))
            process.send_signal(number)
            # Of a busy machine it may get little; how soon is not promised.
            _, error = process.communicate(timeout=600)
        if (process.returncode, error) != (130, ""):
            raise Finding(f"{number.name}: {process.returncode}: {error}")
        steps = 0
        if out.exists():
            for line in out.read_text().splitlines():
                steps += len(json.loads(line)["samples"])
        return f"{number.name}, " + ("with steps" if steps else "before a step")


def main():
    parser = counting.options_of(__doc__)
    parser.add_argument("trainfare", type=counting.program)
    parser.add_argument("trainer", type=counting.program)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        counting.run_all({
            "calibrate": (Calibrate(options.trainfare, options.trainer).once, 1),
            "checkpoint": (Checkpoint(options.trainer, folder).once, 1),
            "ranks": (Ranks(options.trainer, folder).once, 1),
            "signals": (Signals(options.trainer).once, 3),
        }, options)


if __name__ == "__main__":
    main()
