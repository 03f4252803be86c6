"""Data parallelism over ranks of this host, joined by Gloo.

    ranks_test.py TRAINER
"""

import json
import socket
import subprocess
import time
import unittest

from ranks_program import (TRAINER, Case, Ranks, apart, clean_environment,
                           free_port, listeners, open_mpi, slurm, start,
                           torchrun)


class DataParallel(Case):
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
                 "separate_projections": True,
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


if __name__ == "__main__":
    unittest.main()
