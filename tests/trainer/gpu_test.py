"""The trainer on a GPU, end to end. Skipped, with the reason, where there is none.

    gpu_test.py TRAINER [--device cpu | --pretend FOLDER]

With `--device cpu` what does not ask for a GPU runs on the processor: a check of
the tests themselves. With `--pretend` all of it runs on the CUDA libraries of
that folder (pretend_gpu/), which do all but compute: losses are not looked at.
"""

import argparse
import functools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TRAINER = ""
DEVICE = "cuda"
GPUS = []
PRETENDED = False

# Small enough for a second a run, large enough that every kernel has a tail.
MODEL = {"layers": 2, "hidden": 96, "heads": 3, "intermediate": 200,
         "vocabulary": 211, "positions": 64, "dropout": 0.0}
REQUEST = {"model": MODEL, "batch": 3, "sequence_length": 21, "steps": 6,
           "warmup": 1, "seed": 5}
# Loss of a few steps: sums in another order, and the GPU's own exp and erf.
FP32_TOLERANCE = 1e-4
# Of 10 and 8 bits of mantissa, over 6 steps of Adam.
LOW_TOLERANCE = 5e-2


def run(*arguments, **options):
    return subprocess.run([TRAINER, *map(str, arguments)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=300, **options)


def measure(*requests, device=None, more=()):
    """Answers to requests, in their order."""
    result = run("measure", "--device", device or DEVICE, *more,
                 input="".join(json.dumps(r) + "\n" for r in requests))
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def losses(record):
    return [sample["loss"] for sample in record["samples"]]


def needs_gpu(test):
    @functools.wraps(test)
    def checked(self):
        if DEVICE == "cpu":
            self.skipTest("asks for a GPU")
        test(self)
    return checked


class Gpu(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def check_close(self, got, want, tolerance):
        self.assertEqual(len(got), len(want))
        if PRETENDED:
            return
        for a, b in zip(got, want):
            self.assertLessEqual(abs(a - b), tolerance * abs(b), (got, want))

    def check_times(self, record):
        for sample in record["samples"]:
            parts = [sample[key] for key in ("forward_s", "backward_s",
                                             "optimizer_s")]
            self.assertTrue(all(part > 0 for part in parts), sample)
            self.assertLessEqual(sum(parts), 1.02 * sample["step_s"] + 1e-4)

    @needs_gpu
    def test_the_record_proves_which_device_ran(self):
        record, = measure(REQUEST)
        device = record["device"]
        self.assertEqual(device["kind"], "cuda")
        self.assertEqual(device["name"], GPUS[0]["name"])
        self.assertEqual(device["bus_id"], GPUS[0]["bus_id"])
        self.assertGreater(device["time_s"], 0)
        self.check_times(record)

    @needs_gpu
    def test_clocks_heat_power_and_energy_are_recorded(self):
        record, = measure({**REQUEST, "steps": 400})
        gpu = record["gpu"]
        self.assertNotIn("missing", gpu)
        for key in ("sm_clock_hz", "temperature_c", "power_w"):
            self.assertLessEqual(gpu[key]["low"], gpu[key]["median"])
            self.assertLessEqual(gpu[key]["median"], gpu[key]["high"])
        self.assertGreater(gpu["sm_clock_hz"]["low"], 1e8)
        self.assertIn("throttled", gpu)
        self.assertIn("disturbed", record)
        energy = record["energy"]
        if "missing" not in energy:  # before Volta boards do not count it
            self.assertEqual(energy["source"], "nvml")
            self.assertGreater(energy["energy_j"], 0)

    def test_losses_are_those_of_the_processor(self):
        for more in ({}, {"model": {**MODEL, "family": "decoder"}},
                     {"model": {**MODEL, "family": "encoder-decoder",
                                "positions": 0, "decoder_layers": 2},
                      "target_length": 9}):
            here, = measure({**REQUEST, **more})
            there, = measure({**REQUEST, **more}, device="cpu")
            self.check_close(losses(here), losses(there), FP32_TOLERANCE)

    def test_stacks_and_attentions_agree(self):
        want, *others = measure(
            REQUEST, {**REQUEST, "stack": "fused"},
            {**REQUEST, "attention": "flash"},
            {**REQUEST, "stack": "fused", "attention": "flash"})
        for record in others:
            self.check_close(losses(record), losses(want), FP32_TOLERANCE)
        # On a GPU the stacks draw masks of their own.
        drop = {**REQUEST, "model": {**MODEL, "dropout": 0.3}}
        for record in measure(drop, {**drop, "stack": "fused"}):
            self.assertTrue(all(map(math.isfinite, losses(record))))
            if not PRETENDED:
                self.assertNotEqual(losses(record), losses(want))

    def test_optimizers_agree_and_count_their_launches(self):
        for name in ("adamw", "adan"):
            records = measure(*(
                {**REQUEST, "optimizer": {"name": name, "implementation": i}}
                for i in ("for_loop", "multi_tensor", "fused")))
            for record in records[1:]:
                self.check_close(losses(record), losses(records[0]),
                                 FP32_TOLERANCE)
            # LibTorch's operators over many tensors are several launches on
            # a GPU, and not counted there.
            counted = [r.get("launches_optimizer") for r in records]
            self.assertGreater(counted[0], 300)
            if DEVICE == "cpu":
                self.assertGreaterEqual(counted[1], counted[2])
            if name == "adan":
                self.assertEqual(counted[2], 1)

    def test_memory_is_that_of_the_device(self):
        small, large = measure(REQUEST, {**REQUEST, "batch": 96})
        for record in (small, large):
            # Parameters, gradients and AdamW's two moments, in fp32.
            self.assertGreater(record["peak_allocated_bytes"],
                               16 * record["parameters"])
            self.assertGreater(record["peak_memory_bytes"],
                               record["peak_allocated_bytes"])
        self.assertGreater(large["peak_allocated_bytes"],
                           1.3 * small["peak_allocated_bytes"])

    def test_precisions(self):
        precisions = ["bf16"] if DEVICE == "cpu" else ["tf32", "bf16", "fp16"]
        exact, *records = measure(REQUEST, *({**REQUEST, "precision": p}
                                             for p in precisions))
        for record in records:
            if "message" in record:  # a board without it says so
                self.assertIn("precision", record["message"])
                continue
            if record["workload"]["precision"] == "fp16":
                # The scale starts high; steps that overflow are skipped.
                self.assertIn("skipped_steps", record)
                self.assertTrue(all(map(math.isfinite, losses(record))))
                continue
            self.check_close(losses(record), losses(exact), LOW_TOLERANCE)

    def test_parts_of_a_step_add_up(self):
        record, = measure({**REQUEST, "layers": True})
        self.check_times(record)
        self.assertEqual(record["parts"],
                         ["embeddings", "layer 0", "layer 1", "head"])
        for sample in record["samples"]:
            for one in sample["timeline"]["passes"]:
                for key in ("forward_at_s", "backward_at_s"):
                    self.assertEqual(one[key], sorted(one[key]))
        records = self.folder / "records.jsonl"
        records.write_text(json.dumps(record) + "\n")
        trace = self.folder / "trace.json"
        self.assertEqual(run("trace", records, "--out", trace).returncode, 0)
        self.assertTrue(json.loads(trace.read_text())["traceEvents"])

    @needs_gpu
    def test_out_of_memory_is_one_line_and_not_the_end(self):
        refused, after = measure(
            {**REQUEST, "model": "bert-large-uncased", "batch": 100000,
             "sequence_length": 512}, REQUEST)
        self.assertEqual(refused["kind"], "error")
        self.assertNotIn("\n", refused["message"])
        self.assertIn("memory", refused["message"])
        self.assertEqual(after["kind"], "step")

    def test_kernels_by_themselves(self):
        result = run("bench", "kernels", "--device", DEVICE,
                     input=json.dumps(REQUEST) + "\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        records = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertGreater(len(records), 20)
        for record in records:
            self.assertEqual(record["kind"], "kernel")
            self.assertEqual(record["device"]["kind"], DEVICE)
            self.assertTrue(all(s["time_s"] > 0 for s in record["samples"]))

    def test_a_resumed_training_goes_on(self):
        lengths = self.folder / "lengths.csv"
        lengths.write_text("length,count\n5,40\n9,40\n14,20\n")
        saved = self.folder / "run.ckpt"

        def arguments(out, *more):
            return [TRAINER, "train", "--model", "bert-tiny", "--lengths",
                    lengths, "--length", 16, "--batch", 8, "--steps", 12,
                    "--device", DEVICE, "--out", out, *more]

        def all_losses(path):
            return [loss for line in path.read_text().splitlines()
                    for loss in losses(json.loads(line))]

        whole = self.folder / "whole.jsonl"
        result = run(*arguments(whole)[1:])
        self.assertEqual(result.returncode, 0, result.stderr)
        parts = self.folder / "parts.jsonl"
        command = arguments(parts, "--checkpoint", saved, "--checkpoint-every",
                            5)
        # Killed with no chance to save: the last checkpoint stands.
        with subprocess.Popen(list(map(str, command)),
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            while not saved.exists() and process.poll() is None:
                time.sleep(0.001)
            process.kill()
        parts.unlink(missing_ok=True)
        result = run(*command[1:])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("goes on from step", result.stderr)
        got = all_losses(parts)
        self.assertIn(len(got), (2, 7))
        if DEVICE == "cpu":  # a GPU draws other masks of dropout
            self.assertEqual(got, all_losses(whole)[-len(got):])
        self.assertTrue(all(map(math.isfinite, got)))

    @needs_gpu
    def test_ranks_over_nccl(self):
        if len(GPUS) < 2:
            self.skipTest("asks for two GPUs")
        environment = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR":
                       "127.0.0.1", "MASTER_PORT": "29581",
                       "LOCAL_WORLD_SIZE": "2"}
        plan = self.folder / "plan.jsonl"
        plan.write_text(json.dumps(REQUEST) + "\n")
        ranks = [subprocess.Popen(
            [TRAINER, "measure", "--device", "cuda", "--plan", str(plan)],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**environment, "RANK": str(r), "LOCAL_RANK": str(r)})
            for r in range(2)]
        outputs = [rank.communicate(timeout=300) for rank in ranks]
        for rank, (_, errors) in zip(ranks, outputs):
            self.assertEqual(rank.returncode, 0, errors)
        record = json.loads(outputs[0][0])
        self.assertEqual(record["ranks"]["backend"], "nccl")
        self.assertEqual(record["world_size"], 2)
        for sample in record["samples"]:
            for ready, start, end in zip(sample["bucket_ready_s"],
                                         sample["bucket_start_s"],
                                         sample["bucket_end_s"]):
                self.assertLess(0, ready)
                self.assertLessEqual(ready, start)
                self.assertLess(start, end)
                self.assertLessEqual(end, sample["backward_s"] * 1.02 + 1e-4)


def main():
    global TRAINER, DEVICE, GPUS, PRETENDED
    parser = argparse.ArgumentParser()
    parser.add_argument("trainer")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--pretend", metavar="FOLDER")
    options, rest = parser.parse_known_args()
    TRAINER, DEVICE = options.trainer, options.device
    if options.pretend:
        PRETENDED = True
        os.environ.update(LD_PRELOAD=f"{options.pretend}/libcudart.so.13",
                          LD_LIBRARY_PATH=options.pretend, PRETEND_GPUS="2")
    found = [json.loads(line) for line in run("devices").stdout.splitlines()]
    GPUS = [one for one in found if one["kind"] == "cuda"]
    if DEVICE == "cuda" and not GPUS:
        reason = next(one["reason"] for one in found if one["kind"] == "none")
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
