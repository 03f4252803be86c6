"""What a plan or the lines of a pipe ask is measured and answered.

    measuring_test.py TRAINER
"""

import json
import os
import resource
import subprocess
from pathlib import Path

import trainer_program
from trainer_program import REQUEST, TRAINER, Case, run


class Measuring(Case):
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

    def test_a_trace_of_what_is_no_record(self):
        other = self.write("k.jsonl", "", '{"id": "a", "kind": 1}')
        self.check_fails(run("trace", other, "--out", "-"), 1,
                         f"{other}:2:21: kind: expected a text, got 1")
        for kind in ("null", '"kernel"'):
            other = self.write("k.jsonl", '{"kind": %s}' % kind)
            self.check_fails(run("trace", other, "--out", "-"), 1,
                             f"{other}: no record of a step")

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

    def test_a_file_beyond_the_limit_of_the_shell(self):
        """The lines that fit stay, and no half of the next."""
        plan = self.write("plan.jsonl", *[json.dumps(REQUEST)] * 5)
        records = self.folder / "records.jsonl"
        one = self.write("one.jsonl", json.dumps(REQUEST))
        limit = len(run("measure", "--plan", one).stdout) * 5 // 2

        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        self.check_fails(
            run("measure", "--plan", plan, "--out", records,
                preexec_fn=limited),
            1, f"{records}: cannot write: File too large")
        lines = records.read_text().splitlines(keepends=True)
        self.assertEqual(len(lines), 2)
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

    def test_a_gpu_that_is_not_there(self):
        if Path("/dev/nvidia0").exists():
            self.skipTest("this machine has a GPU")
        plan = self.write("plan.jsonl", json.dumps(REQUEST))
        self.check_fails(run("measure", "--plan", plan, "--device", "cuda"),
                         1, "cuda")


if __name__ == "__main__":
    trainer_program.main()
