"""What training saves, and goes on from.

    checkpoints_test.py TRAINER
"""

import json
import signal
import subprocess
import time

import growing_weight
import trainer_program
from trainer_program import TRAINER, Case, run


class Checkpoints(Case):
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


if __name__ == "__main__":
    trainer_program.main()
