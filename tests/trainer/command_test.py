"""The command line of trainfare-trainer: exit codes, messages, interruption.

    command_test.py TRAINER
"""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import growing_weight

TRAINER = ""
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


class Command(unittest.TestCase):
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

    def test_version_and_usage(self):
        result = run("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^trainfare-trainer \d+\.\d+\.\d+ ")
        self.assertEqual(run("--help").returncode, 0)
        for arguments in ([], ["trian"], ["measure", "--plam", "x"],
                          ["train", "--model", "bert-tiny"],
                          ["measure", "--threads", "-1"],
                          ["measure", "--device", "tpu"],
                          *(["train", "--model", "bert-tiny", "--lengths",
                             "x", "--seed", seed]
                            for seed in ("-1", "1000001", 2**64 - 1))):
            self.assertEqual(run(*arguments).returncode, 2, arguments)

    def test_shows_no_argument_as_it_was_given(self):
        for arguments in (["measure", "--sead"],
                          ["train", "--model", "bert-tiny", "--seed"]):
            result = subprocess.run(
                [TRAINER, *arguments, b"x\x1b[31m\xff\n"], timeout=60,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(result.returncode, 2)
            error = result.stderr.decode("utf-8")
            self.assertIn("x?[31m?", error)
            self.assertTrue(error[:-1].isprintable(), error)

    def test_an_answer_that_cannot_be_written(self):
        for arguments in (["devices"], ["--help"], ["--version"],
                          ["measure", "--help"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run(
                    [TRAINER, *arguments], stdout=full, timeout=60,
                    stderr=subprocess.PIPE, text=True)
            self.assertEqual((result.returncode, result.stderr), (
                1, "error: standard output: cannot be written\n"), arguments)

    def test_a_long_line_that_is_no_request_is_answered_by_its_front(self):
        result = run("measure", "--threads", 1, input='{"a":' * 80000)
        self.assertEqual(result.returncode, 0, result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual(answer["kind"], "error")
        self.assertIn("64 lists and objects", answer["message"])
        self.assertEqual(answer["request"], ('{"a":' * 400))

    def test_measures_what_a_plan_asks(self):
        plan = [json.dumps(REQUEST), "", json.dumps({**REQUEST, "batch": 0}),
                "not \x7fjson", json.dumps({**REQUEST, "sequence_length": 8})]
        records = self.folder / "records.jsonl"
        records.write_text('{"kind": "before"}\n')
        result = run("measure", "--out", records, "--threads", 1,
                     input="\n".join(plan) + "\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        answers = [json.loads(l) for l in records.read_text().splitlines()]
        self.assertEqual([a["kind"] for a in answers],
                         ["before", "step", "error", "error", "step"])
        self.assertEqual(answers[1]["device"]["threads"], 1)
        self.assertEqual(answers[2]["request"], {**REQUEST, "batch": 0})
        self.assertIn("batch", answers[2]["message"])
        self.assertEqual(answers[3]["request"], "not \x7fjson")
        self.assertNotIn("\x7f", records.read_text())
        self.assertEqual(answers[4]["workload"]["sequence_length"], 8)
        self.assertEqual(len(answers[4]["samples"]), 3)

    def test_a_plan_that_is_none_ends_before_its_first_run(self):
        """In a file; a program that writes one as it reads is answered."""
        for bad, message in (
                ("garbage", ":3:1: expected one JSON object a line, got"),
                ("[1]", ":3:1: expected a request, an object, got array")):
            plan = self.write("plan.jsonl", json.dumps(REQUEST), "", bad)
            for command in ("measure",), ("bench", "kernels"):
                records = self.folder / "records.jsonl"
                self.check_fails(run(*command, "--plan", plan, "--out",
                                     records), 1, f"{plan}{message}")
                self.assertFalse(records.exists())
        # What it asks for may be wrong all the same.
        plan = self.write("plan.jsonl", json.dumps(
            {**REQUEST, "seed": 1000001}), json.dumps(REQUEST))
        result = run("measure", "--plan", plan)
        self.assertEqual(result.returncode, 0, result.stderr)
        first, second = map(json.loads, result.stdout.splitlines())
        self.assertIn("seed: expected an integer from 0 to 1000000",
                      first["message"])
        self.assertEqual(second["kind"], "step")

    def test_times_kernels_by_themselves(self):
        plan = self.write("plan.jsonl", json.dumps(REQUEST), json.dumps(
            {**REQUEST, "precision": "tf32"}))
        result = run("bench", "kernels", "--plan", plan, "--kind",
                     "embedding,optimizer")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("not timed by themselves", result.stderr)
        answers = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([a["kind"] for a in answers],
                         ["kernel"] * 5 + ["error"])
        self.assertEqual({a["operation"] for a in answers[:5]},
                         {"embedding", "embedding gradient", "optimizer"})
        self.assertIn("precision", answers[5]["message"])
        for arguments in (["bench"], ["bench", "kernels", "--kind", "gem"]):
            self.assertEqual(run(*arguments).returncode, 2, arguments)

    def test_exports_a_recorded_step_as_a_trace(self):
        plan = self.write("plan.jsonl", json.dumps(REQUEST))
        records = self.folder / "records.jsonl"
        trace = self.folder / "trace.json"
        self.assertEqual(run("measure", "--plan", plan, "--out", records,
                             "--layers").returncode, 0)
        result = run("trace", records, "--out", trace, "--step", 1)
        self.assertEqual(result.returncode, 0, result.stderr)
        events = json.loads(trace.read_text())["traceEvents"]
        spans = [e for e in events if e["ph"] == "X"]
        self.assertEqual({e["name"] for e in spans},
                         {"step 1", "forward", "backward", "optimizer",
                          "embeddings", "layer 0", "layer 1", "head"})
        for event in spans:
            self.assertGreaterEqual(event["ts"], 0)
            self.assertGreater(event["dur"], 0)
        self.assertEqual(json.loads(run("trace", records, "--out", "-").stdout)
                         ["otherData"]["step"], 2)
        self.check_fails(run("trace", records, "--out", trace, "--step", 9), 1,
                         f"{records}:1: no step 9; it has 0 to 2")
        self.assertIn("step 1", trace.read_text())  # as it was
        self.check_fails(run("trace", records, "--out", "/nowhere/t"), 1,
                         "/nowhere/t: cannot be written: No such file")
        # A link under a name that could be foretold is not written through.
        other = self.write("other.txt", "somebody else's")
        (self.folder / "trace.json.partial").symlink_to(other)
        self.assertEqual(run("trace", records, "--out", trace).returncode, 0)
        self.assertEqual(other.read_text(), "somebody else's\n")
        self.check_fails(run("trace", records, "--out", trace, "--line", 2), 1,
                         f"{records}:2: no record of a step")

    def test_measures_decoders_and_encoder_decoders(self):
        size = {"layers": 2, "hidden": 32, "heads": 2, "vocabulary": 50}
        plan = self.write(
            "plan.jsonl",
            json.dumps({**REQUEST, "model": {"family": "decoder", **size}}),
            json.dumps({**REQUEST, "target_length": 9,
                        "model": {"family": "encoder-decoder",
                                  "decoder_layers": 3, **size}}))
        result = run("measure", "--plan", plan)
        self.assertEqual(result.returncode, 0, result.stderr)
        decoder, both = map(json.loads, result.stdout.splitlines())
        workload = decoder["workload"]
        self.assertEqual(workload["model"]["head"], "causal-language-model")
        self.assertFalse(workload["model"]["embedding_layer_norm"])
        self.assertEqual(workload["model"]["positions"], 1024)
        workload = both["workload"]
        self.assertEqual(workload["target_length"], 9)
        self.assertEqual(workload["model"]["decoder_layers"], 3)
        self.assertEqual(workload["model"]["positions"], 0)
        for record in (decoder, both):  # log 50 = 3.9
            self.assertLess(abs(record["samples"][0]["loss"] - 3.9), 0.5)

    def test_trains_on_pairs_by_batches_of_tokens(self):
        # Micro-batches of at most 32 tokens: three rows of 10, and two.
        data = self.write("data.jsonl", *[json.dumps(
            {"input_ids": [7 + i, 8, 9], "target_ids": [5 + i] * 10})
            for i in range(5)])
        records = self.folder / "records.jsonl"
        result = self.train("--data", data, "--batch-tokens", 32,
                            "--padding", "dynamic", "--epochs", 1, "--out",
                            records, model="transformer-base")
        self.assertEqual(result.returncode, 0, result.stderr)
        record = json.loads(records.read_text())
        self.assertEqual(len(record["samples"]), 2)
        self.assertEqual(record["workload"]["batch"], 2)  # of length 16
        self.check_fails(
            self.train("--data", data, "--batch-tokens", 15,
                       model="transformer-base"),
            1, "--batch-tokens: expected at least --length (16), got 15")
        one_sided = self.write("one.jsonl", '{"input_ids": [5, 6]}')
        self.check_fails(
            self.train("--data", one_sided, model="transformer-base"),
            1, ":1: target_text: missing")
        short = self.write("short.jsonl", '{"input_ids": [5]}')
        self.check_fails(
            self.train("--data", short, model="gpt2"),
            1, ":1: input_ids: expected two tokens or more")

    def test_stacks_and_precisions_start_alike(self):
        losses = {}
        for stack in ("eager", "fused"):
            for precision in ("fp32", "bf16", "fp16"):
                plan = self.write("plan.jsonl", json.dumps(
                    {**REQUEST, "stack": stack, "precision": precision}))
                result = run("measure", "--plan", plan)
                record = json.loads(result.stdout)
                self.assertEqual(record["kind"], "step", record)
                self.assertEqual(record["workload"]["stack"], stack)
                self.assertEqual("skipped_steps" in record,
                                 precision == "fp16")
                losses[stack, precision] = record["samples"][0]["loss"]
        for key, loss in losses.items():
            self.assertAlmostEqual(loss, losses["eager", "fp32"],
                                   delta=1e-6 if key[1] == "fp32" else 2e-2)

    def test_narrow_weights_take_the_memory_of_the_model(self):
        """The largest moment is the update (docs/models/memory.md)."""
        parameters, largest = 11171074, 30522 * 256
        rows = (  # weights, gradients, masters and state; what is widened
            ("adamw", "for_loop", 16, 8 * largest),
            ("adamw", "multi_tensor", 16, 8 * parameters),
            ("adamw", "fused", 16, 0),
            ("adan", "fused", 24, 0))
        plan = self.write("plan.jsonl", *(json.dumps({
            **REQUEST, "model": "bert-mini", "precision": "bf16",
            "narrow_weights": True,
            "optimizer": {"name": name, "implementation": implementation}})
            for name, implementation, _, _ in rows))
        result = run("measure", "--plan", plan)
        self.assertEqual(result.returncode, 0, result.stderr)
        records = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual(len(records), len(rows))
        for record, (_, implementation, width, more) in zip(records, rows):
            self.assertEqual(record["parameters"], parameters)
            said = width * parameters + more
            self.assertLess(abs(record["peak_allocated_bytes"] / said - 1),
                            0.02, implementation)

    def test_answers_before_the_next_request_is_asked(self):
        with subprocess.Popen([TRAINER, "measure"], text=True,
                              stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            for length in (8, 16):
                request = {**REQUEST, "sequence_length": length}
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
                answer = json.loads(process.stdout.readline())
                self.assertEqual(answer["workload"]["sequence_length"], length)
            process.stdin.close()
            self.assertEqual(process.wait(60), 0)

    def test_ends_a_long_run_after_max_seconds(self):
        plan = self.write("plan.jsonl", json.dumps(
            {**REQUEST, "steps": 1000000, "max_seconds": 0.2}))
        answer = json.loads(run("measure", "--plan", plan).stdout)
        timed = [s for s in answer["samples"] if not s["warmup"]]
        self.assertGreaterEqual(len(timed), 1)
        self.assertLess(len(timed), 1000000)

    def test_more_than_memory_is_an_answer(self):
        plan = self.write("plan.jsonl", json.dumps(
            {**REQUEST, "model": "bert-small", "batch": 1 << 20,
             "sequence_length": 128}), json.dumps(REQUEST))
        result = run("measure", "--plan", plan)
        self.assertEqual(result.returncode, 0, result.stderr)
        first, second = map(json.loads, result.stdout.splitlines())
        self.assertEqual(first["kind"], "error")
        self.assertRegex(
            first["message"],
            r"^out of memory: bert-small, batch 1048576 x 128, fp32, adamw "
            r"fused, eager and materialised on .*; the memory model says "
            r"\d+\.\d GB of tensors at the start of the backward pass, most of "
            r"it activations \(\d+\.\d GB\); the allocator: out of memory: ")
        self.assertEqual(second["kind"], "step")

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
        with subprocess.Popen([TRAINER, "measure", "--plan", plan,
                               "--threads", "1"], text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            # Its handlers are there before the second thread of any kind.
            wait_for_threads(process, 2)
            time.sleep(1)
            process.send_signal(signal.SIGTERM)
            _, error = process.communicate(timeout=60)
        self.assertEqual((process.returncode, error), (130, ""))

    def test_a_signal_ends_the_reading_of_a_pipe_that_nobody_writes_to(self):
        pipe = self.folder / "lengths"
        os.mkfifo(pipe)
        with subprocess.Popen([TRAINER, "train", "--model", "bert-tiny",
                               "--lengths", str(pipe)], text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            wait_for_threads(process, 2)
            time.sleep(1)
            process.send_signal(signal.SIGTERM)
            _, error = process.communicate(timeout=60)
        self.assertEqual((process.returncode, error), (130, ""))

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
        for after in (1.5, 3, 1000):
            with subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE,
                                  text=True) as process:
                try:
                    process.communicate(timeout=after)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGTERM)
                    process.communicate(timeout=60)
                self.assertIn(process.returncode, (0, 130))
        self.assertEqual(process.returncode, 0)
        self.assertEqual(whole.read_bytes(), parts.read_bytes())

    def test_a_file_beyond_the_limit_of_the_shell(self):
        """The lines that fit stay, and no half of the next."""
        plan = self.write("plan.jsonl", *[json.dumps(REQUEST)] * 5)
        records = self.folder / "records.jsonl"

        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        self.check_fails(
            run("measure", "--plan", plan, "--out", records,
                preexec_fn=limited),
            1, f"{records}: cannot write: File too large")
        lines = records.read_text().splitlines(keepends=True)
        self.assertGreater(len(lines), 0)
        for line in lines:
            self.assertEqual(json.loads(line)["kind"], "step")
            self.assertTrue(line.endswith("\n"))

    def test_full_disk_and_closed_pipe(self):
        plan = self.write("plan.jsonl", json.dumps(REQUEST))
        self.check_fails(
            run("measure", "--plan", plan, "--out", "/dev/full"),
            1, "/dev/full: cannot write: No space left on device")
        reader, writer = os.pipe()
        os.close(reader)
        result = subprocess.run([TRAINER, "measure", "--plan", plan],
                                stdout=writer, stderr=subprocess.PIPE,
                                text=True, timeout=60)
        os.close(writer)
        self.assertEqual(result.returncode, 1)
        self.assertIn("Broken pipe", result.stderr)

    def test_paths_that_are_not_there(self):
        self.check_fails(run("measure", "--plan", "/nowhere/plan"),
                         1, "/nowhere/plan: cannot read")
        plan = self.write("plan.jsonl", json.dumps(REQUEST))
        self.check_fails(run("measure", "--plan", plan, "--out",
                             "/nowhere/out"), 1, "/nowhere/out: cannot write")

    def test_adapters_of_no_named_matrix(self):
        lengths = self.write("lengths.csv", "length,count", "8,4")
        self.check_fails(self.train("--lengths", lengths, "--lora-rank", 4), 1,
                         "model bert-tiny: this trainer has frozen weights, "
                         "adapters")

    def test_bad_examples_say_file_and_line(self):
        good = json.dumps({"input_ids": [5, 6, 7], "label": 1})
        for bad, message in [
                ('{"input_ids": [5, 6', ":2:20: expected one JSON object"),
                ("[" * 80000, ":2: expected at most 64 lists"),
                ('{"input_ids": [5], "label": 1, "label": 0}',
                 ':2: the key "label" stands twice'),
                ("[1]", ":2: expected an object, got [1]"),
                ('{"label": 1}', ":2: text: missing"),
                ('{"text": "so", "label": 1}', ":2: text: needs a vocabulary"),
                ('{"input_ids": [5]}', ":2: label: missing"),
                ('{"input_ids": [5], "label": 2}',
                 ":2: label: expected an integer from 0 to 1, got 2"),
                ('{"input_ids": [5], "label": "1"}',
                 ':2: label: expected an integer from 0 to 1, got "1"'),
                ('{"input_ids": [30522], "label": 1}',
                 ":2: input_ids: expected an integer from 0 to 30521"),
                ('{"input_ids": [], "label": 1}', ":2: input_ids: expected")]:
            data = self.write("data.jsonl", good, bad)
            self.check_fails(self.train("--data", data), 1, str(data), message)
        empty = self.write("empty.jsonl", "")
        self.check_fails(self.train("--data", empty), 1, "empty data set")
        self.check_fails(self.train("--data", "/nowhere"), 1, "/nowhere")
        data = self.write("data.jsonl", good)
        self.check_fails(self.train("--data", data, model="bret-tiny"),
                         1, "bret-tiny", "bert-tiny")

    def test_bad_model_folders(self):
        data = self.write("data.jsonl", '{"input_ids": [1], "label": 0}')
        model = self.folder / "model"
        model.mkdir()

        def fails(*parts):
            self.check_fails(self.train("--data", data, model=model),
                             1, *parts)

        fails("config.json: cannot be opened")
        config = {"model_type": "bert", "vocab_size": 20, "hidden_size": 8,
                  "num_hidden_layers": 1, "num_attention_heads": 2,
                  "intermediate_size": 8, "max_position_embeddings": 16}
        path = model / "config.json"
        path.write_text(json.dumps(config)[:20])
        fails("config.json:1:21: expected a JSON value")
        path.write_text(json.dumps({**config, "model_type": "t5"}))
        fails("model_type: expected bert, roberta, distilbert, gpt2, "
              "marian, llama, mistral, mixtral, qwen2, qwen2_moe, qwen3 or "
              "qwen3_moe, got t5")
        path.write_text(json.dumps({**config, "hidden_size": "8"}))
        fails('hidden_size: expected an integer from 0 to 16777216, got "8"')
        path.write_text(json.dumps({**config, "pad_token_id": 20}))
        fails("pad_token_id: expected a token of the vocabulary of 20, got 20")
        path.write_text("{\"a\":" * 80000)
        fails("expected at most 64 lists and objects within each other")
        path.write_text(json.dumps({**config, "hidden_act": "relu"}))
        fails('hidden_act: expected "gelu", got "relu"')
        path.write_text(json.dumps(config))
        fails("model.safetensors: cannot read")
        (model / "model.safetensors").write_bytes(b"\x02" + b"\0" * 7 + b"{}")
        fails("expected a tensor bert.embeddings.word_embeddings.weight")
        (model / "vocab.txt").write_text("")
        fails("vocab.txt: expected one token a line, got none")
        (model / "vocab.txt").write_text("a\n" * 3)
        fails("vocab.txt: expected a token [UNK]")
        words = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}
        for tokenizer, message in [
                ({"model": 3}, "model: expected an object, got 3"),
                ({"model": {"type": 3, "vocab": words}},
                 "model.type: expected a text, got 3"),
                ({"model": {"type": "WordPiece", "vocab": words,
                            "continuing_subword_prefix": 7}},
                 "model.continuing_subword_prefix: expected a text, got 7"),
                ({"model": {"vocab": words,
                            "max_input_chars_per_word": "many"}},
                 "model.max_input_chars_per_word: expected a count"),
                ({"model": {"vocab": words}, "normalizer": {"type": []}},
                 "normalizer.type: expected a text, got []"),
                ({"model": {"vocab": words},
                  "normalizer": {"type": "BertNormalizer", "lowercase": 1}},
                 "normalizer.lowercase: expected true or false, got 1")]:
            (model / "tokenizer.json").write_text(json.dumps(tokenizer))
            fails("tokenizer.json: " + message)

    def test_trains_saves_and_starts_from_what_it_saved(self):
        # Words that decide the label; the rest is noise.
        lines = [json.dumps({"input_ids": [5, 100 + i, 10 + i % 2, 200 + i],
                             "label": i % 2}) for i in range(16)]
        data = self.write("data.jsonl", *lines)
        out = self.folder / "records.jsonl"
        saved = self.folder / "saved"
        result = self.train("--data", data, "--eval", data, "--batch", 8,
                            "--epochs", 40, "--learning-rate", "1e-3",
                            "--out", out, "--save", saved)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("accuracy 1.0000", result.stdout)
        self.assertEqual(result.stderr, "")
        record = json.loads(out.read_text())
        self.assertEqual(record["evaluation_accuracy"], 1.0)
        self.assertEqual(len(record["samples"]), 80)
        self.assertLess(record["samples"][-1]["loss"], 0.1)
        self.assertEqual([s["warmup"] for s in record["samples"][:4]],
                         [True, True, False, False])
        (saved / "config.json").write_text(json.dumps({
            "model_type": "bert", "vocab_size": 30522, "hidden_size": 128,
            "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": 512, "max_position_embeddings": 512}))
        result = self.train("--data", data, "--eval", data, "--steps", 1, "--learning-rate", 0, model=saved)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("accuracy 1.0000", result.stdout)

    def long_run(self, *more):
        """Arguments of a run of 12 steps over examples of mixed length."""
        lines = [json.dumps({"input_ids": [5 + i] * (3 + 5 * i % 13),
                             "label": i % 2}) for i in range(20)]
        data = self.write("data.jsonl", *lines)
        return ["--data", data, "--batch", 3, "--steps", 12,
                "--optimizer", "adan", "--layer-decay", 0.9,
                "--clip-norm", 1, "--warmup-fraction", 0.2,
                "--learning-rate", "1e-3", "--threads", 1, *more]

    def losses(self, path):
        return [s["loss"] for line in path.read_text().splitlines()
                for s in json.loads(line)["samples"]]

    def test_goes_on_from_a_checkpoint_as_if_unbroken(self):
        narrow = ["--narrow-weights", "--accumulation", 2, "--precision"]
        for padding, more in (("static", []), ("bucketed", []),
                              ("static", narrow + ["bf16"]),
                              ("static", narrow + ["fp16"])):
            self.tearDown()
            self.setUp()
            more = ["--padding", padding, *more]
            whole = self.folder / f"whole-{padding}.jsonl"
            result = self.train(*self.long_run(*more),
                                "--out", whole, "--save",
                                self.folder / "whole")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(len(self.losses(whole)), 12)

            # Killed with no chance to save: the last checkpoint stands.
            parts = self.folder / f"parts-{padding}.jsonl"
            checkpoint = self.folder / f"{padding}.safetensors"
            arguments = self.long_run(*more, "--out", parts,
                                      "--checkpoint", checkpoint,
                                      "--checkpoint-every", 5)
            command = [TRAINER, "train", "--model", "bert-tiny", "--length",
                       "16", *map(str, arguments)]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as process:
                while not checkpoint.exists() and process.poll() is None:
                    time.sleep(0.001)
                process.kill()
            self.assertTrue(checkpoint.exists())
            result = self.train(*arguments, "--save", self.folder / "parts")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stderr, "note: goes on from step (5|10) of")
            first = len(self.losses(parts))
            self.assertIn(first, (2, 7))
            self.assertEqual(self.losses(parts), self.losses(whole)[-first:])
            weights = [(self.folder / run / "model.safetensors").read_bytes()
                       for run in ("whole", "parts")]
            self.assertEqual(weights[0], weights[1])
            # Masters too: of a bf16 or fp16 weight they are not its copies.
            whole = self.folder / "whole.safetensors"
            result = self.train(*self.long_run(*more), "--checkpoint", whole)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(whole.read_bytes(), checkpoint.read_bytes())
            self.assertEqual("--narrow-weights" in more,
                             b".weight.master" in whole.read_bytes())

    def interrupt(self, arguments, checkpoint):
        """Ends a run with SIGTERM behind one of its checkpoints."""
        command = [TRAINER, "train", "--model", "bert-tiny", "--length", "16",
                   *map(str, arguments)]
        before = (checkpoint.stat().st_ino if checkpoint.exists() else None)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            while process.poll() is None and (
                    not checkpoint.exists()
                    or checkpoint.stat().st_ino == before):
                time.sleep(0.001)
            process.terminate()
            self.assertEqual(process.wait(60), 130)

    def test_the_loss_scale_goes_on_where_it_was(self):
        steps = 80
        checkpoint = self.folder / "start.safetensors"

        def run(out, at):
            return self.long_run("--precision", "fp16", "--accumulation", 2,
                                 "--steps", steps, "--out", out,
                                 "--checkpoint", at, "--checkpoint-every", 2)

        def without_first_steps(arguments):
            first = arguments.index("--steps")
            return arguments[:first] + arguments[first + 2:]

        self.interrupt(without_first_steps(run(
            self.folder / "start.jsonl", checkpoint)), checkpoint)
        # A scale whose gradients overflow: it is halved, a step each, in the
        # rest of the run.
        whole = checkpoint.read_bytes()
        size = int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8:8 + size])
        metadata = header["__metadata__"]
        done = int(metadata["step"])
        self.assertEqual(metadata["loss_scale_exponent"], "16")
        self.assertEqual(metadata["good_steps"], str(done))
        metadata["loss_scale_exponent"] = "40"
        text = json.dumps(header, separators=(",", ":")).encode()
        self.assertLessEqual(len(text), size)
        checkpoint.write_bytes(whole[:8] + text.ljust(size) +
                               whole[8 + size:])

        losses, ends, skipped = [], [], []
        for name in ("unbroken", "broken"):
            own = self.folder / f"{name}.safetensors"
            own.write_bytes(checkpoint.read_bytes())
            out = self.folder / f"{name}.jsonl"
            arguments = without_first_steps(run(out, own))
            if name == "broken":
                self.interrupt(arguments, own)
            result = self.train(*arguments)
            self.assertEqual(result.returncode, 0, result.stderr)
            losses.append(self.losses(out))
            ends.append(own.read_bytes())
            skipped.append(json.loads(
                out.read_text().splitlines()[-1])["skipped_steps"])
        self.assertEqual(len(losses[0]), steps - done)
        self.assertEqual(losses[0], losses[1])
        self.assertGreater(skipped[0], 10)
        self.assertEqual(skipped[0], skipped[1])
        # Weights, moments, scale, counts: all of it.
        self.assertEqual(ends[0], ends[1])

    def test_saves_when_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            checkpoint = self.folder / f"{number}.safetensors"
            out = self.folder / f"{number}.jsonl"
            command = [TRAINER, "train", "--model", "bert-tiny", "--length",
                       "16", *map(str, self.long_run(
                           "--steps", 100000, "--out", out,
                           "--checkpoint", checkpoint,
                           "--checkpoint-every", 10))]
            command.remove("12")
            command.remove("--steps")
            with subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE,
                                  text=True) as process:
                while not checkpoint.exists() and process.poll() is None:
                    time.sleep(0.01)
                process.send_signal(number)
                self.assertEqual(process.wait(60), 130)
                self.assertEqual(process.stderr.read(), "")
            header = checkpoint.read_bytes()
            size = int.from_bytes(header[:8], "little")
            metadata = json.loads(header[8:8 + size])["__metadata__"]
            self.assertEqual(int(metadata["step"]), len(self.losses(out)))

    def test_checkpoints_that_do_not_fit(self):
        checkpoint = self.folder / "checkpoint.safetensors"
        with_it = ["--checkpoint", checkpoint]
        result = self.train(*self.long_run(*with_it))
        self.assertEqual(result.returncode, 0, result.stderr)
        for change, message in [
                (["--batch", 4], "batch: expected 4, as this run has, got 3"),
                (["--seed", 2], "seed: expected 2"),
                (["--optimizer", "adamw"],
                 "optimizer.name: expected adamw, as this run has, got adan")]:
            arguments = self.long_run(*with_it)
            at = arguments.index(change[0]) if change[0] in arguments else 0
            if at:
                arguments[at + 1] = change[1]
            else:
                arguments += change
            self.check_fails(self.train(*arguments), 1, str(checkpoint),
                             message)
        self.check_fails(self.train(*self.long_run(*with_it),
                                    model="bert-mini"),
                         1, "model.heads: expected 4", "a checkpoint of another run")
        whole = checkpoint.read_bytes()
        for size in (0, 7, 100, len(whole) // 2, len(whole) - 1):
            checkpoint.write_bytes(whole[:size])
            self.check_fails(self.train(*self.long_run(*with_it)), 1,
                             str(checkpoint))
        self.check_fails(self.train(*self.long_run(
            "--checkpoint", "/nowhere/checkpoint")), 1, "/nowhere/checkpoint")

    def test_a_checkpoint_with_counts_that_no_run_has(self):
        checkpoint = self.folder / "checkpoint.safetensors"
        arguments = self.long_run("--checkpoint", checkpoint)
        result = self.train(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        whole = checkpoint.read_bytes()
        size = int.from_bytes(whole[:8], "little")
        for key, value, message in [
                ("position", "-100000", "position: expected an integer from 0"),
                ("position", "-7", "position: expected an integer from 0"),
                ("position", "1000000", "position: expected at most"),
                ("step", "999999", "step: expected at most"),
                ("epoch", "-1", "epoch: expected an integer from 0"),
                ("loss_scale_exponent", "2000",
                 "loss_scale_exponent: expected an integer from -126 to 126"),
                ("skipped_steps", "-1", "skipped_steps: expected")]:
            header = json.loads(whole[8:8 + size])
            header["__metadata__"][key] = value
            text = json.dumps(header, separators=(",", ":")).encode()
            text += b" " * (-len(text) % 8)
            checkpoint.write_bytes(len(text).to_bytes(8, "little") + text +
                                   whole[8 + size:])
            self.check_fails(self.train(*arguments), 1, str(checkpoint),
                             message)

    def test_a_loss_that_is_no_number_is_no_success(self):
        data = self.write("data.jsonl", *[
            json.dumps({"input_ids": [5, 6, 7], "label": i % 2})
            for i in range(8)])
        saved = self.folder / "saved"
        result = self.train("--data", data, "--epochs", 40, "--optimizer",
                            "sgd", "--implementation", "for_loop",
                            "--learning-rate", 10, "--batch", 2,
                            "--clip-norm", 0, "--weight-decay", 10,
                            "--warmup-fraction", 0, "--save", saved)
        self.check_fails(result, 1, "the loss is", "--learning-rate")
        self.assertFalse(saved.exists())

    def growing_model(self):
        """A model's folder, and arguments that break it."""
        folder = self.folder / "growing"
        lengths = self.write("lengths.csv", "length,count", "4,1")
        result = self.train("--lengths", lengths, "--steps", 1, "--batch", 1,
                            "--learning-rate", 0, "--save", folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        (folder / "config.json").write_text(json.dumps({
            "model_type": "bert", "vocab_size": 30522, "hidden_size": 128,
            "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": 512, "max_position_embeddings": 512}))
        growing_weight.set_growing_weight(folder)
        data = self.write("data.jsonl", *[
            json.dumps({"input_ids": [5, 6, 7], "label": i % 2})
            for i in range(8)])
        return folder, ["--data", data, "--batch", 2, "--threads", 1,
                        *growing_weight.ARGUMENTS]

    def test_an_update_that_leaves_no_numbers_is_no_success(self):
        model, arguments = self.growing_model()
        saved = self.folder / "saved"
        out = self.folder / "out.jsonl"
        message = ("its update left parameters that are not finite; nothing "
                   "is saved from here on")

        # Saved behind each step: the last good one stays.
        checkpoint = self.folder / "checkpoint.safetensors"
        self.check_fails(self.train(
            *arguments, "--steps", 100, "--checkpoint", checkpoint,
            "--checkpoint-every", 1, "--save", saved, "--out", out,
            model=model), 1, "step 4: " + message)
        losses = self.losses(out)
        self.assertEqual(len(losses), 4)
        self.assertTrue(all(abs(loss) < 1e6 for loss in losses), losses)
        self.assertEqual(self.step_of(checkpoint), 3)
        self.assertFalse(saved.exists())
        # And at the end, whether something is to be saved or not.
        arguments += ["--steps", 100]
        for more in (["--save", saved], [],
                     ["--checkpoint", self.folder / "none"]):
            self.check_fails(self.train(*arguments, *more, model=model), 1,
                             "step 100: " + message)
        self.assertFalse(saved.exists())
        self.assertFalse((self.folder / "none").exists())

    @staticmethod
    def step_of(checkpoint):
        whole = checkpoint.read_bytes()
        size = int.from_bytes(whole[:8], "little")
        return int(json.loads(whole[8:8 + size])["__metadata__"]["step"])

    def test_records_follow_no_link_to_a_file(self):
        plan = self.write("plan.jsonl", json.dumps(REQUEST))
        other = self.write("other", "mine")
        link = self.folder / "link"
        for target in (other, self.folder / "nowhere"):
            link.symlink_to(target)
            self.check_fails(run("measure", "--plan", plan, "--out", link), 1,
                             f"{link}: cannot write: a link to a file")
            link.unlink()
        self.assertEqual(other.read_text(), "mine\n")
        self.assertFalse((self.folder / "nowhere").exists())
        # What cannot be spoilt: a device, a pipe, and its own output.
        link.symlink_to("/dev/null")
        self.assertEqual(run("measure", "--plan", plan, "--out",
                             link).returncode, 0)
        self.assertEqual(json.loads(run("measure", "--plan", plan, "--out",
                                        "/dev/stdout").stdout)["kind"], "step")
        own = self.folder / "own"
        with open(own, "w", encoding="utf-8") as file:
            self.assertEqual(subprocess.run(
                [TRAINER, "measure", "--plan", plan, "--out", "/dev/stdout"],
                stdout=file, check=False, timeout=60).returncode, 0)
        self.assertEqual(json.loads(own.read_text())["kind"], "step")

    def test_a_saved_model_follows_no_link(self):
        model, arguments = self.growing_model()
        other = self.write("other", "mine")
        saved = self.folder / "saved"
        saved.mkdir()
        (saved / "config.json").symlink_to(other)
        self.train(*arguments, "--steps", 1, "--save", saved, model=model)
        self.assertEqual(other.read_text(), "mine\n")

    def test_a_temporary_file_follows_no_link(self):
        other = self.write("other", "mine")
        checkpoint = self.folder / "checkpoint.safetensors"
        for name in ("checkpoint.safetensors.part",
                     "checkpoint.safetensors.XXXXXX"):
            (self.folder / name).symlink_to(other)
        result = self.train(*self.long_run("--checkpoint", checkpoint))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(other.read_text(), "mine\n")
        self.assertFalse(checkpoint.is_symlink())

    def test_padding_does_not_change_what_is_predicted(self):
        results = set()
        for padding in ("static", "dynamic", "bucketed"):
            arguments = self.long_run("--padding", padding)
            arguments += ["--eval", self.folder / "data.jsonl"]
            arguments[arguments.index("--learning-rate") + 1] = 0
            result = self.train(*arguments)
            self.assertEqual(result.returncode, 0, result.stderr)
            results.add(result.stdout[result.stdout.index("accuracy"):])
        self.assertEqual(len(results), 1, results)
        self.assertEqual(
            self.train(*self.long_run("--padding", "no")).returncode, 2)

    def test_a_tokenizer_that_does_not_fit(self):
        data = self.write("data.jsonl", '{"text": "a", "label": 1}')
        folder = self.folder / "words"
        folder.mkdir()
        (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n" +
                                          "\n".join(f"w{i}"
                                                    for i in range(40000)))
        self.check_fails(self.train("--data", data, "--tokenizer", folder),
                         1, "expected a vocabulary of at most 30522 tokens")
        # Few tokens, of which one has an id that no row of the embedding has.
        (folder / "tokenizer.json").write_text(json.dumps({"model": {
            "type": "WordPiece", "vocab": {
                "[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 40000}}}))
        self.check_fails(self.train("--data", data, "--tokenizer", folder),
                         1, "at most 30522 tokens", "got 40001")

    def test_trains_on_lengths_of_a_histogram(self):
        lengths = self.write("lengths.csv", "length,count", "4,3", "12,1",
                             "99,1")
        result = self.train("--lengths", lengths, "--steps", 3, "--batch", 4,
                            "--out", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        record = json.loads(result.stdout)
        self.assertEqual(len(record["samples"]), 3)
        bad = self.write("lengths.csv", "length,count", "4;3")
        self.check_fails(self.train("--lengths", bad), 1, ":2:1:", "4;3")

    def test_a_gpu_that_is_not_there(self):
        if Path("/dev/nvidia0").exists():
            self.skipTest("this machine has a GPU")
        plan = self.write("plan.jsonl", json.dumps(REQUEST))
        self.check_fails(run("measure", "--plan", plan, "--device", "cuda"),
                         1, "cuda")


if __name__ == "__main__":
    TRAINER = sys.argv.pop(1)
    unittest.main()
