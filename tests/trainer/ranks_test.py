"""Data parallelism over ranks of this host, joined by Gloo.

    ranks_test.py TRAINER
"""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import growing_weight

TRAINER = ""

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


def listeners(pid):
    return {one.split(":")[0] for one in listening(pid)}


class DataParallel(unittest.TestCase):
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

    def test_four_ranks_train_like_one(self):
        for name, more in {
                "plain": [],
                "accumulated": ["--accumulation", 2, "--clip-norm", 1],
                "dynamic": ["--padding", "bucketed", "--optimizer", "adan"],
                "buckets": ["--bucket-mib", 0.3, "--first-bucket-mib", 0.1],
        }.items():
            with self.subTest(name):
                alone = self.folder / f"{name}-1.jsonl"
                several = self.folder / f"{name}-4.jsonl"
                own = [x for x in more if name != "buckets"]
                result = subprocess.run(
                    [TRAINER, *map(str, self.training(alone, "--batch", 8,
                                                      *own))],
                    stdout=subprocess.DEVNULL, env=clean_environment())
                self.assertEqual(result.returncode, 0)
                with start(self.training(several, "--batch", 2, *more),
                           4) as ranks:
                    self.succeed(ranks)
                self.check_same(self.losses(alone), self.losses(several))

    def test_ranks_that_share_state_train_like_one(self):
        one = self.folder / "one.jsonl"
        more = ["--clip-norm", 0.5]
        with start(self.training(one, "--batch", 8, *more), 1) as ranks:
            self.succeed(ranks)
        # The data's last batch is shared unevenly, the model's tensors too.
        for shard, count in (("zero1", 2), ("zero2", 4), ("zero3", 4),
                             ("fsdp", 2), ("fsdp", 4)):
            with self.subTest(shard=shard, ranks=count):
                out = self.folder / f"{shard}-{count}.jsonl"
                saved = self.folder / f"{shard}-{count}"
                with start(self.training(out, "--batch", 8 // count, "--shard",
                                         shard, "--save", saved, *more),
                           count) as ranks:
                    self.succeed(ranks)
                self.check_same(self.losses(out), self.losses(one))
                parallel = self.record(out)["workload"]["parallel"]
                self.assertEqual(parallel["shard"], shard)
                self.assertEqual(parallel["data"], count)
                for sample in self.record(out)["samples"]:
                    self.assertGreater(sample["waited_s"], 0)
                    self.assertLess(sample["waited_s"], sample["step_s"])
                # What it saves is the whole model.
                again = self.folder / f"again-{shard}-{count}.jsonl"
                subprocess.run([TRAINER, "train", "--model", saved, "--data",
                                self.folder / "data.jsonl", "--length", "16",
                                "--steps", "1", "--batch", "8", "--threads",
                                "1", "--out", again],
                               check=True, stdout=subprocess.DEVNULL,
                               env=clean_environment())
                self.assertLess(self.losses(again)[0], self.losses(one)[0])

    def shared_and_not(self, request, ranks):
        """Losses of a plan's run by what the ranks share."""
        words = ("none", "zero1", "zero2", "zero3", "fsdp")
        plan = self.write("plan.jsonl", [
            json.dumps({"batch": 2, "sequence_length": 16, "steps": 5,
                        "warmup": 0, **request, "parallel": {"shard": shard}})
            for shard in words])
        out = self.folder / "shared.jsonl"
        with start(["measure", "--plan", plan, "--out", out, "--threads", 1],
                   ranks) as started:
            self.succeed(started)
        records = [json.loads(l) for l in out.read_text().splitlines()]
        out.unlink()
        self.assertEqual([r["kind"] for r in records], ["step"] * len(words))
        return {shard: [s["loss"] for s in record["samples"]]
                for shard, record in zip(words, records)}

    def test_measures_ranks_that_share_state(self):
        # Without dropout, as ranks draw masks of their own.
        llama = {"name": "small", "family": "decoder", "layers": 3,
                 "hidden": 32, "heads": 4, "key_value_heads": 2,
                 "intermediate": 48, "vocabulary": 101, "positions": 0,
                 "head": "causal-language-model", "norm": "rms",
                 "norm_placement": "before", "position_kind": "rotary",
                 "activation": "silu", "gated": True, "untied_output": True,
                 "attention_bias": False, "output_bias": False,
                 "feed_forward_bias": False, "dropout": 0.0}
        both = {"name": "both", "family": "encoder-decoder", "layers": 2,
                "decoder_layers": 2, "hidden": 32, "heads": 2,
                "intermediate": 64, "vocabulary": 101,
                "head": "causal-language-model", "dropout": 0.0}
        requests = {
            "encoder": {"model": "bert-tiny"},
            "decoder": {"model": llama},
            "accumulated": {"model": llama, "accumulation": 3},
            "computed again": {"model": llama, "gradient_checkpointing": True},
            "adapters": {"model": llama, "trainable": {
                "lora": {"rank": 4, "matrices": ["query", "value"]}}},
            "frozen": {"model": llama, "trainable": {"frozen_layers": 2}},
            "two sides": {"model": both},
        }
        for name, request in requests.items():
            with self.subTest(name):
                losses = self.shared_and_not(request, 3)
                for shard, own in losses.items():
                    self.assertEqual(len(own), 5, shard)
                    self.check_same(own, losses["none"])

    def test_ranks_share_narrow_weights(self):
        # Summed in 16 bits over ranks, or in 32: a loss of 4.6 to 3 digits.
        losses = self.shared_and_not(
            {"model": "bert-tiny", "precision": "bf16",
             "narrow_weights": True}, 2)
        for shard, own in losses.items():
            for a, b in zip(own, losses["none"]):
                self.assertLess(abs(a - b), 5e-3 * abs(b), shard)

    def test_ranks_share_narrow_gradients(self):
        """Buckets of bf16 or fp16, and losses that are not rounded to it."""
        for precision in ("bf16", "fp16"):
            more = ["--precision", precision, "--narrow-weights",
                    "--accumulation", 2, "--clip-norm", 1]
            alone = self.folder / f"{precision}-1.jsonl"
            several = self.folder / f"{precision}-2.jsonl"
            subprocess.run(
                [TRAINER, *map(str, self.training(alone, "--batch", 8,
                                                  *more))],
                check=True, stdout=subprocess.DEVNULL,
                env=clean_environment())
            with start(self.training(several, "--batch", 4, *more),
                       2) as ranks:
                self.succeed(ranks)
            one, two = self.losses(alone), self.losses(several)
            # Before the first update: equal but for the order of fp32 sums;
            # then gradients differ by their rounding.
            self.assertLess(abs(one[0] - two[0]), 1e-3 * one[0])
            for a, b in zip(one, two):
                self.assertLess(abs(a - b), 0.03)
            record = self.record(several)
            self.assertEqual(sum(record["ranks"]["bucket_bytes"]),
                             2 * record["parameters"])
            self.assertTrue(record["workload"]["narrow_weights"])

    def test_a_rank_alone_trains_as_without_a_launcher(self):
        alone = self.folder / "alone.jsonl"
        rank = self.folder / "rank.jsonl"
        subprocess.run([TRAINER, *map(str, self.training(alone))], check=True,
                       stdout=subprocess.DEVNULL, env=clean_environment())
        with start(self.training(rank), 1) as ranks:
            self.succeed(ranks)
        self.check_same(self.losses(alone), self.losses(rank))

    def test_records_tell_the_buckets(self):
        out = self.folder / "rank-{rank}.jsonl"
        arguments = self.training(out, "--batch", 2, "--bucket-mib", 0.5,
                                  "--first-bucket-mib", 0.1)
        with start(arguments, 2) as ranks:
            self.succeed(ranks)
        for rank in range(2):
            record = self.record(self.folder / f"rank-{rank}.jsonl")
            self.assertEqual(record["world_size"], 2)
            self.assertEqual(record["rank"], rank)
            ranks = record["ranks"]
            self.assertEqual(ranks["backend"], "gloo")
            self.assertEqual(ranks["launcher"], "torchrun")
            buckets = ranks["bucket_bytes"]
            self.assertEqual(sum(buckets), 4 * record["parameters"])
            self.assertGreater(len(buckets), 3)
            # All but the last are as large as they were told to be.
            self.assertGreaterEqual(buckets[0], 0.1 * 2**20)
            for size in buckets[1:-1]:
                self.assertGreaterEqual(size, 0.5 * 2**20)
            self.assertIn("bert.encoder.layer.1", ranks["layers"])
            self.assertEqual(ranks["layers"][-1], "bert.embeddings")
            for sample in record["samples"]:
                ready = sample["bucket_ready_s"]
                begin = sample["bucket_start_s"]
                end = sample["bucket_end_s"]
                self.assertEqual(len(ready), len(buckets))
                self.assertEqual(len(sample["layer_ready_s"]),
                                 len(ranks["layers"]))
                for i in range(len(buckets)):
                    self.assertLess(0, ready[i])
                    self.assertLessEqual(ready[i], begin[i])
                    self.assertLess(begin[i], end[i])
                    if i:
                        self.assertGreaterEqual(begin[i], end[i - 1])
                self.assertLessEqual(ready[-1], sample["backward_compute_s"])
                self.assertLessEqual(end[-1], sample["backward_s"])

    def test_all_launchers(self):
        for launcher in (open_mpi, slurm, apart):
            out = self.folder / f"{launcher.__name__}.jsonl"
            with start(self.training(out, "--batch", 4), 2, launcher) as ranks:
                self.succeed(ranks)
            self.assertEqual(self.record(out)["world_size"], 2)

    def test_measures_over_ranks(self):
        request = {"model": "bert-tiny", "batch": 2, "sequence_length": 16,
                   "steps": 3, "warmup": 1}
        plan = self.write("plan.jsonl", [
            json.dumps(request), json.dumps({**request, "batch": 0}), "",
            json.dumps({**request, "batch": 4})])
        out = self.folder / "records.jsonl"
        with start(["measure", "--plan", plan, "--out", out, "--threads", 1],
                   3) as ranks:
            self.succeed(ranks)
        records = [json.loads(l) for l in out.read_text().splitlines()]
        self.assertEqual([r["kind"] for r in records],
                         ["step", "error", "step"])
        self.assertEqual(records[2]["workload"]["batch"], 4)
        for record in (records[0], records[2]):
            self.assertEqual(record["world_size"], 3)
            self.assertEqual(len(record["samples"]), 4)

    def long_run(self, *more):
        return self.training(self.folder / "long.jsonl", "--steps", 1000000,
                             "--batch", 2, "--lost-after", 1.5, *more)

    def wait_for(self, path, ranks):
        end = time.time() + 60
        while not path.exists() and time.time() < end:
            self.assertTrue(all(p.poll() is None for p in ranks.processes))
            time.sleep(0.01)
        self.assertTrue(path.exists())

    def test_a_lost_rank_ends_all(self):
        for launcher, lost, number in (
                (torchrun, 2, signal.SIGKILL), (torchrun, 0, signal.SIGKILL),
                (torchrun, 1, signal.SIGSTOP), (apart, 2, signal.SIGKILL),
                (apart, 0, signal.SIGKILL), (apart, 0, signal.SIGSTOP)):
            with self.subTest(f"{launcher.__name__} {lost}, {number.name}"):
                checkpoint = self.folder / (
                    f"{launcher.__name__}-{lost}-{number.name}.safetensors")
                arguments = self.long_run("--checkpoint", checkpoint,
                                          "--checkpoint-every", 3)
                arguments.remove(9)
                arguments.remove("--steps")
                with start(arguments, 3, launcher) as ranks:
                    self.wait_for(checkpoint, ranks)
                    ranks.processes[lost].send_signal(number)
                    begin = time.time()
                    others = [p for i, p in enumerate(ranks.processes)
                              if i != lost]
                    for process in others:
                        _, error = process.communicate(timeout=20)
                        self.assertLess(time.time() - begin, 6)
                        self.assertEqual(process.returncode, 1, error)
                        lines = error.strip().splitlines()
                        self.assertEqual(len(lines), 1, error)
                        self.assertRegex(
                            lines[0], rf"^error: rank {lost} .*is lost: ")

    def test_rank_0_lost_while_its_store_opens(self):
        arguments = self.training(self.folder / "out.jsonl", "--join-within",
                                  6)
        for launcher in (torchrun, apart):
            for instant in (0, 0.01, 0.02, 0.03, 0.04, 0.06):
                port = free_port()
                with self.subTest(f"{launcher.__name__}, {instant} s"), \
                        start(arguments, 3, launcher, port) as ranks:
                    wait_until_it_listens(port)
                    time.sleep(instant)
                    ranks.processes[0].kill()
                    begin = time.time()
                    for process in ranks.processes[1:]:
                        _, error = process.communicate(timeout=60)
                        self.assertLess(time.time() - begin, 6 + 9)
                        self.assertEqual(process.returncode, 1, error)
                        self.check_one_line(error, "rank 0 ")

    def test_an_update_that_leaves_no_numbers_ends_all(self):
        model = self.model_without_dropout()
        growing_weight.set_growing_weight(model)
        checkpoint = self.folder / "checkpoint"
        for step, more in ((4, ["--checkpoint", checkpoint,
                                "--checkpoint-every", 1]),
                           (100, ["--shard", "zero1"]),
                           (100, ["--shard", "fsdp"])):
            saved = self.folder / "saved"
            arguments = [*self.training(self.folder / "out.jsonl"),
                         *growing_weight.ARGUMENTS, "--save", saved, *more]
            for name, value in (("--steps", 9), ("--learning-rate", "1e-3")):
                at = arguments.index(name)
                self.assertEqual(arguments[at + 1], value)
                del arguments[at:at + 2]
            with start([*arguments, "--steps", 100], 2) as ranks:
                for code, _, error in ranks.wait():
                    self.assertEqual(code, 1, error)
                    self.check_one_line(error, f"step {step}: its update left "
                                        "parameters that are not finite")
            self.assertFalse(saved.exists())
        header = checkpoint.read_bytes()
        size = int.from_bytes(header[:8], "little")
        metadata = json.loads(header[8:8 + size])["__metadata__"]
        self.assertEqual(int(metadata["step"]), 3)

    def test_a_signal_to_one_rank_ends_the_timing_of_messages(self):
        for lost in (0, 1):
            with start(["bench", "collectives", "--bytes", 1 << 24,
                        "--samples", 100000], 2) as ranks:
                time.sleep(3)
                ranks.processes[lost].send_signal(signal.SIGTERM)
                begin = time.time()
                for code, _, error in ranks.wait():
                    self.assertEqual((code, error), (130, ""))
                self.assertLess(time.time() - begin, 6)

    def test_a_rank_that_fails_ends_all(self):
        # Only rank 1 misses the data.
        good = self.long_run()
        good.remove(9)
        good.remove("--steps")
        bad = list(good)
        bad[bad.index("--data") + 1] = "/nowhere"
        for launcher in (torchrun, apart):
            port = free_port()
            with Ranks(good, [launcher(0, 2, port)]) as first, \
                    Ranks(bad, [launcher(1, 2, port)]) as second:
                self.assertEqual(second.wait()[0][0], 1)
                code, _, error = first.wait()[0]
                self.assertEqual(code, 1)
                self.assertRegex(error, r"^error: rank 1 .*ended: .*/nowhere")

    def test_a_rank_out_of_memory_ends_all(self):
        small = {"model": "bert-tiny", "batch": 2, "sequence_length": 16,
                 "steps": 1, "warmup": 1}
        # Its embeddings alone are 16 MiB.
        large = {**small, "batch": 256, "sequence_length": 128}
        plan = self.folder / "plan"
        os.mkfifo(plan)
        out = self.folder / "records.jsonl"
        with start(["measure", "--plan", plan, "--out", out, "--threads", 1],
                   2) as ranks, open(plan, "w", encoding="utf-8") as requests:
            print(json.dumps(small), file=requests, flush=True)
            end = time.time() + 60
            while time.time() < end and not (out.exists() and
                                             out.read_text().endswith("\n")):
                time.sleep(0.01)
            pages = int(Path(f"/proc/{ranks.processes[1].pid}/statm")
                        .read_text().split()[0])
            most = pages * os.sysconf("SC_PAGE_SIZE") + (8 << 20)
            resource.prlimit(ranks.processes[1].pid, resource.RLIMIT_AS,
                             (most, most))
            print(json.dumps(large), file=requests, flush=True)
            begin = time.time()
            results = ranks.wait(60)
            self.assertLess(time.time() - begin, 10)
        for code, _, error in results:
            self.assertEqual(code, 1, error)
            self.assertIn("out of memory: bert-tiny, batch 256", error)
            self.assertEqual(len(error.strip().splitlines()), 1, error)
        self.assertRegex(results[0][2], "^error: rank 1 ")
        self.assertEqual(len(out.read_text().splitlines()), 1)

    def test_ranks_of_one_host_listen_on_its_loopback(self):
        loopback = {"0100007F", "0" * 24 + "01000000",
                    "0" * 16 + "FFFF0000" + "0100007F"}
        # Also where the launcher names the host.
        for host in ("127.0.0.1", socket.gethostname()):
            port = free_port()
            out = self.folder / "rank-{rank}.jsonl"
            arguments = self.training(out)
            arguments[arguments.index("--steps") + 1] = 100000
            with Ranks(arguments, [
                    {**torchrun(rank, 2, port), "MASTER_ADDR": host}
                    for rank in range(2)]) as ranks:
                found = set()
                end = time.time() + 60
                first = ranks.processes[0]
                while not found and time.time() < end and first.poll() is None:
                    found = listeners(first.pid)
                    time.sleep(0.05)
                self.assertTrue(found)
                time.sleep(1)
                for process in ranks.processes:
                    self.assertLessEqual(listeners(process.pid), loopback)

    def test_all_stop_behind_the_same_step(self):
        checkpoint = self.folder / "checkpoint.safetensors"
        arguments = self.long_run("--checkpoint", checkpoint,
                                  "--checkpoint-every", 2)
        arguments.remove(9)
        arguments.remove("--steps")
        out = self.folder / "stopped-{rank}.jsonl"
        arguments[arguments.index("--out") + 1] = out
        with start(arguments, 2) as ranks:
            self.wait_for(checkpoint, ranks)
            ranks.processes[1].send_signal(signal.SIGTERM)
            for code, _, error in ranks.wait():
                self.assertEqual(code, 130, error)
        steps = [len(self.losses(self.folder / f"stopped-{rank}.jsonl"))
                 for rank in range(2)]
        self.assertEqual(steps[0], steps[1])
        header = checkpoint.read_bytes()
        size = int.from_bytes(header[:8], "little")
        metadata = json.loads(header[8:8 + size])["__metadata__"]
        self.assertEqual(int(metadata["step"]), steps[0])

    def test_ranks_go_on_from_a_checkpoint_as_if_unbroken(self):
        runs = {}
        for name in ("unbroken", "broken"):
            out = self.folder / f"{name}.jsonl"
            checkpoint = self.folder / f"{name}.safetensors"
            arguments = self.training(
                out, "--steps", 60, "--batch", 2, "--precision", "fp16",
                "--accumulation", 2, "--optimizer", "adan",
                "--checkpoint", checkpoint, "--checkpoint-every", 2)
            arguments.remove(9)
            arguments.remove("--steps")
            if name == "broken":
                with start(arguments, 2) as ranks:
                    self.wait_for(checkpoint, ranks)
                    ranks.processes[1].send_signal(signal.SIGTERM)
                    for code, _, error in ranks.wait():
                        self.assertEqual(code, 130, error)
            with start(arguments, 2) as ranks:
                for code, _, error in ranks.wait():
                    self.assertEqual(code, 0, error)
            runs[name] = (
                [s["loss"] for line in out.read_text().splitlines()
                 for s in json.loads(line)["samples"]],
                checkpoint.read_bytes())
        self.assertEqual(len(runs["unbroken"][0]), 60)
        self.assertEqual(runs["unbroken"][0], runs["broken"][0])
        self.assertEqual(runs["unbroken"][1], runs["broken"][1])

    def check_one_line(self, error, *parts):
        lines = error.strip().splitlines()
        self.assertEqual(len(lines), 1, error)
        for part in parts:
            self.assertIn(part, lines[0])

    def test_ranks_that_do_not_come_together(self):
        for launcher in (torchrun, apart):
            with self.subTest(launcher.__name__):
                self.check_ranks_that_miss_each_other(launcher)

    def check_ranks_that_miss_each_other(self, launcher):
        arguments = self.training(self.folder / "out.jsonl", "--join-within",
                                  2)
        # A port in use.
        with socket.socket() as holder:
            holder.bind(("", 0))
            holder.listen()
            port = holder.getsockname()[1]
            with Ranks(arguments, [launcher(0, 2, port)]) as ranks:
                code, _, error = ranks.wait()[0]
                self.assertEqual(code, 1)
                self.check_one_line(error, f"MASTER_PORT {port}: in use")
        # Ranks that stay away.
        port = free_port()
        with Ranks(arguments, [launcher(0, 4, port),
                               launcher(2, 4, port)]) as ranks:
            code, _, error = ranks.wait()[0]
            self.assertEqual(code, 1)
            self.check_one_line(error, "ranks 1, 3 of 4 did not come within")
        # The first that gives up tells the one that would wait longer.
        port = free_port()
        patient = [*arguments[:-1], 100]
        begin = time.time()
        with Ranks(patient, [launcher(0, 3, port)]) as first, \
                Ranks(arguments, [launcher(1, 3, port)]) as second:
            for code, _, error in (*first.wait(), *second.wait()):
                self.assertEqual(code, 1)
                self.check_one_line(error, "rank 2 of 3 did not come within")
            self.assertLess(time.time() - begin, 100)
        # Nobody at all; where it is in vain it does not take much longer.
        begin = time.time()
        with Ranks(arguments, [launcher(1, 2, free_port())]) as ranks:
            code, _, error = ranks.wait()[0]
            self.assertLess(time.time() - begin, 2 + 10)
            self.assertEqual(code, 1)
            self.check_one_line(error, "no answer from rank 0 at 127.0.0.1")
        # Two of one number.
        port = free_port()
        with Ranks(arguments, [launcher(r, 3, port)
                               for r in (0, 1, 1)]) as ranks:
            for code, _, error in ranks.wait():
                self.assertEqual(code, 1)
                self.check_one_line(error, "two ranks of one number: 1 is")
        # Two ideas of how many there are.
        port = free_port()
        with Ranks(arguments, [launcher(0, 3, port),
                               launcher(1, 2, port)]) as ranks:
            for code, _, error in ranks.wait():
                self.assertEqual(code, 1)
                self.check_one_line(error, "expected a world of")
    def test_half_an_environment(self):
        arguments = self.training(self.folder / "out.jsonl")
        port = free_port()
        for missing, message in (("WORLD_SIZE", "WORLD_SIZE: missing"),
                                 ("RANK", "RANK: missing"),
                                 ("MASTER_ADDR", "MASTER_ADDR: missing")):
            environment = torchrun(0, 2, port)
            del environment[missing]
            with Ranks(arguments, [environment]) as ranks:
                code, _, error = ranks.wait()[0]
                self.assertEqual(code, 1)
                self.check_one_line(error, message)

    def test_secrets_that_differ(self):
        arguments = self.training(self.folder / "out.jsonl", "--join-within",
                                  60)
        for first, second, message in (
                ("ours", "yours", "does not accept this rank"),
                ("ours", "", "asks for a secret"),
                ("", "ours", "asks for no secret")):
            port = free_port()
            begin = time.time()
            with Ranks(arguments, [apart(0, 2, port, first)]), \
                    Ranks(arguments, [apart(1, 2, port, second)]) as ranks:
                code, _, error = ranks.wait()[0]
                self.assertLess(time.time() - begin, 60)
                self.assertEqual(code, 1)
                self.check_one_line(
                    error, f"error: rank 1: rank 0 at 127.0.0.1:{port} "
                    f"{message}; is TRAINFARE_RANKS_SECRET the same on all "
                    "hosts?")


if __name__ == "__main__":
    TRAINER = sys.argv.pop(1)
    unittest.main()
