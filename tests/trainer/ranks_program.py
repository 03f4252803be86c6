"""Ranks of the trainer on this host, for the suites beside this file."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TRAINER = sys.argv.pop(1) if len(sys.argv) > 1 else ""

# Losses of one rank and of several differ by rounding alone: sums in another
# order, fp32. Relative; a few dozen steps of Adam do not blow it up.
TOLERANCE = 2e-5


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def clean_environment():
    names = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "SLURM_", "OMPI_",
             "TORCHELASTIC_", "TRAINFARE_RANKS_")
    return {k: v for k, v in os.environ.items() if not k.startswith(names)}


def torchrun(rank, ranks, port):
    return {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank,
            "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port}


def apart(rank, ranks, port, secret="ours"):
    """As on a host each, behind the door of rank 0's store."""
    return {**torchrun(rank, ranks, port), "LOCAL_RANK": 0,
            "LOCAL_WORLD_SIZE": 1, "TRAINFARE_RANKS_SECRET": secret}


def open_mpi(rank, ranks, port):
    return {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": ranks,
            "OMPI_COMM_WORLD_LOCAL_RANK": rank,
            "OMPI_COMM_WORLD_LOCAL_SIZE": ranks, "MASTER_PORT": port}


def slurm(rank, ranks, port):
    return {"SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": ranks,
            "SLURM_LOCALID": rank, "SLURM_STEP_NODELIST": "localhost",
            "SLURM_JOB_ID": 7, "MASTER_PORT": port}


class Ranks:
    """Processes of the trainer, one a rank, ended at the end of the block."""

    def __init__(self, arguments, environments):
        self.processes = [
            subprocess.Popen(
                [TRAINER, *map(str, arguments)], text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**clean_environment(), "OMP_WAIT_POLICY": "passive",
                     **{k: str(v) for k, v in environment.items()}})
            for environment in environments]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def wait(self, timeout=120):
        """[(exit code, stdout, stderr)] of all ranks."""
        results = []
        for process in self.processes:
            out, error = process.communicate(timeout=timeout)
            results.append((process.returncode, out, error))
        return results


def start(arguments, ranks, launcher=torchrun, port=None):
    port = port or free_port()
    return Ranks(arguments, [launcher(r, ranks, port) for r in range(ranks)])


def listening(pid):
    """Address:port of each socket on which a process listens, as /proc has it."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().split("\n")[1:]:
            fields = line.split()
            if fields and fields[3] == "0A" and fields[9] in inodes:
                found.add(fields[1])
    return found


def wait_until_it_listens(port, timeout=60):
    """Until somebody listens on a port of IPv4."""
    end = time.time() + timeout
    wanted = f":{port:04X} 00000000:0000 0A "
    while time.time() < end:
        if wanted in Path("/proc/net/tcp").read_text():
            return
        time.sleep(0.001)
    raise TimeoutError(f"nobody listens on port {port} after {timeout} s")


def listeners(pid):
    return {one.split(":")[0] for one in listening(pid)}


class Case(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def write(self, name, lines):
        path = self.folder / name
        path.write_text("".join(line + "\n" for line in lines))
        return path

    def model_without_dropout(self):
        """A folder with weights; without dropout all ranks compute one sum."""
        folder = self.folder / "model"
        if folder.exists():
            return folder
        lengths = self.write("lengths.csv", ["length,count", "4,1"])
        subprocess.run([TRAINER, "train", "--model", "bert-tiny", "--lengths",
                        lengths, "--steps", "1", "--batch", "1",
                        "--learning-rate", "0", "--save", folder],
                       check=True, stdout=subprocess.DEVNULL,
                       env=clean_environment())
        (folder / "config.json").write_text(json.dumps({
            "model_type": "bert", "vocab_size": 30522, "hidden_size": 128,
            "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": 512, "max_position_embeddings": 512,
            "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}))
        return folder

    def training(self, out, *more):
        # 22 examples: of the last batch of 8 there are 6, so that four ranks
        # have one or two; lengths differ.
        data = self.write("data.jsonl", [
            json.dumps({"input_ids": [5 + i] * (3 + 5 * i % 13),
                        "label": i % 2}) for i in range(22)])
        return ["train", "--model", self.model_without_dropout(), "--data",
                data, "--length", 16, "--steps", 9, "--threads", 1,
                "--learning-rate", "1e-3", "--out", out, *more]

    def record(self, path):
        lines = path.read_text().splitlines()
        self.assertEqual(len(lines), 1)
        return json.loads(lines[0])

    def losses(self, path):
        return [s["loss"] for s in self.record(path)["samples"]]

    def succeed(self, ranks):
        for code, _, error in ranks.wait():
            self.assertEqual(code, 0, error)
            self.assertEqual(error, "")

    def check_same(self, first, second):
        self.assertEqual(len(first), len(second))
        for a, b in zip(first, second):
            self.assertLess(abs(a - b), TOLERANCE * abs(a))

    def long_run(self, *more):
        return self.training(self.folder / "long.jsonl", "--steps", 1000000,
                             "--batch", 2, "--lost-after", 1.5, *more)

    def wait_for(self, path, ranks):
        end = time.time() + 60
        while not path.exists() and time.time() < end:
            self.assertTrue(all(p.poll() is None for p in ranks.processes))
            time.sleep(0.01)
        self.assertTrue(path.exists())

    def check_one_line(self, error, *parts):
        lines = error.strip().splitlines()
        self.assertEqual(len(lines), 1, error)
        for part in parts:
            self.assertIn(part, lines[0])
