"""How ranks come together, and how all end where one does.

    ranks_end_test.py TRAINER
"""

import json
import os
import resource
import signal
import socket
import time
import unittest
from pathlib import Path

import growing_weight
from ranks_program import (Case, Ranks, apart, free_port, start, torchrun,
                           wait_until_it_listens)


class RanksEnd(Case):
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
    unittest.main()
