"""`predict` as a person asks it."""

import csv
import io
import json
import os
import shutil
import threading

import program
from program import CONFIG, Case, GOOD


class Predict(Case):
    def test_the_default_device_is_this_processor(self):
        json_ = self.json_of("predict", self.write("s.yaml", GOOD))
        self.assertEqual(json_["device"], "cpu")
        self.assertIsNone(json_["fit"])

    def test_what_does_not_fit_has_no_time_and_exit_code_3(self):
        command = ("predict", "squad_bert_large", "--device", "t4")
        json_ = self.json_of(*command, "--batch", "512", code=3)
        prediction = json_["predictions"][0]
        self.assertFalse(prediction["fits"])
        self.assertNotIn("step_time_s", prediction)
        self.assertRegex(prediction["reason"], r"^does not fit memory by .* GiB$")
        largest = prediction["largest_batch"]
        self.assertTrue(
            self.json_of(*command, "--batch", str(largest))["predictions"][0][
                "fits"
            ]
        )

    def test_a_model_alone_is_a_job(self):
        asked = ("--model", "gpt2", "--samples", "800", "--length", "128")
        alone = self.json_of("predict", *asked, "--device", "a10g", "--batch", "2")
        self.assertEqual(alone["scenario"]["model"], "gpt2")
        self.assertEqual(alone["scenario"]["train_samples"], 800)
        self.assertEqual(alone["predictions"][0]["sequence_length"], 128)
        # What init writes is the same job.
        self.good("init", *asked, "--output", self.path("job.yaml"))
        written = self.json_of(
            "predict", self.path("job.yaml"), "--device", "a10g", "--batch", "2"
        )
        self.assertEqual(alone["predictions"], written["predictions"])
        self.refused(
            1,
            "job.yaml: expected a new file, this one is there",
            "init",
            *asked,
            "--output",
            self.path("job.yaml"),
        )

    def test_init_writes_what_is_asked(self):
        """As `predict` has it with the same flags, which refuses the same."""
        asked = ("--model", "gpt2", "--samples", "800", "--length", "128")
        flags = ("--batch", "4", "--precision", "fp16", "--set", "optimizer.name=sgd",
                 "--set", "model.vocabulary=50304", "--set", "trainable.lora.rank=8",
                 "--set", "padding={ static: 64 }", "--set", "accumulation=2")
        self.good("init", *asked, *flags, "--output", self.path("asked.yaml"))
        written = self.json_of("predict", self.path("asked.yaml"), "--device", "a10g")
        # --length of predict goes before the padding of --set.
        alone = self.json_of("predict", *asked[:4], "--length", "64", *flags[:-4],
                             "--set", "accumulation=2", "--device", "a10g")
        self.assertEqual(alone["predictions"], written["predictions"])
        self.begins(1, '--precision: unknown precision "fp15"', "init", *asked,
                     "--precision", "fp15")
        self.begins(1, "--batch: expected an integer from 1 to", "init", *asked,
                     "--batch", "0")
        self.begins(1, "--set: unknown key", "init", *asked, "--set", "optimzer=sgd")

    def test_init_names_files_from_where_it_writes(self):
        for folder in ("mm", "sub"):
            os.makedirs(self.path(folder))
        self.write("mm/config.json", CONFIG)
        job = ("--samples", "1000", "--length", "32")
        for i, model in enumerate(("mm/config.json", "mm", self.path("mm"))):
            file = f"sub/{i}.yaml"
            self.good("init", "--model", model, *job, "--output", file,
                      cwd=self.folder)
            # From wherever it is asked about.
            for where, name in ((self.folder, file), ("/", self.path(file))):
                said = self.good("predict", name, cwd=where).stdout
                self.assertTrue(said.startswith("mm takes "), said)

    def test_a_batch_asked_for_is_the_one_that_is_counted(self):
        """Not the file's, which may be too large to be."""
        asked = ("--model", "llama-3.1-8b", "--samples", "100", "--length", "200000",
                 "--device", "h100_sxm", "--devices", "8", "--set",
                 "parallel.shard=fsdp", "--set", "parallel.context=8", "--set",
                 "gradient_checkpointing=true", "--set", "stack=liger")
        by_flag = self.json_of("predict", *asked, "--batch", "1")
        by_key = self.json_of("predict", *asked, "--set", "batch=1")
        said = "--model llama-3.1-8b: batch 8 x length 200000 of a model"
        self.assertEqual(by_flag["predictions"], by_key["predictions"])
        self.begins(1, said, "predict", *asked)
        self.begins(1, said, "predict", *asked,
                    "--batch", "8")

    def test_what_trains_is_taken_off(self):
        whole = self.json_of("predict", "llama_8b_lora", "--set", "trainable=null",
                             "--device", "b200_sxm", "--batch", "1")
        self.assertEqual(whole["scenario"]["trainable_parameters"],
                         whole["scenario"]["parameters"])
        again = self.json_of("predict", "llama_8b_lora", "--set", "trainable.lora=~",
                             "--device", "b200_sxm", "--batch", "1")
        self.assertEqual(whole["predictions"], again["predictions"])

    def test_a_name_longer_than_any_file_is_unknown(self):
        self.begins(1, 'unknown scenario "aaa', "predict", "a" * 300)

    def test_a_model_comes_through_a_pipe(self):
        """It is read once: nobody writes into it again."""
        job = ("--samples", "100", "--length", "64")

        def predicted(*asked, **options):
            result = self.good("predict", *asked, "--device", "l4", "--format",
                               "json", **options)
            scenario = json.loads(result.stdout)["scenario"]
            return scenario["name"], scenario["model"]

        named = self.path("pipe.json")
        os.mkfifo(named)
        for asked, name in ((("--model", named, *job), "llama"),
                            (("emotion_bert_base", "--model", named),
                             "emotion_bert_base")):
            threading.Thread(target=self.write, args=("pipe.json", CONFIG),
                             daemon=True).start()
            self.assertEqual(predicted(*asked), (name, "llama"))

        def through_a_pipe(run, *arguments):
            # As the shell's <(..) names it, without an end that says what it is.
            read, write = os.pipe()
            os.write(write, CONFIG.encode())
            os.close(write)
            try:
                return run(*arguments, "--model", f"/dev/fd/{read}", *job,
                           pass_fds=(read,))
            finally:
                os.close(read)

        self.assertEqual(through_a_pipe(predicted), ("llama", "llama"))
        for command in (("predict", "--device", "l4"),
                        ("recommend", "--instance", "aws/g6.xlarge")):
            # Whoever asks again has the model in the answer.
            saved, page = self.path("saved.json"), self.path("page.html")
            through_a_pipe(self.good, *command, "--export", saved, "--export", page)
            with open(saved, encoding="utf-8") as file:
                self.assertEqual(self.good("replay", saved).stdout, file.read())
            with open(page, encoding="utf-8") as file:
                self.assertIn("--model &#39;{&quot;hidden_size&quot;:64,", file.read())
            self.assertIn("hidden: 64",
                          through_a_pipe(self.good, *command, "--dry-run").stdout)
        self.assertEqual(predicted("--model", CONFIG, *job), ("llama", "llama"))
        self.assertEqual(predicted("--model", "\n " + CONFIG, *job), ("llama", "llama"))
        wrong = CONFIG.replace("64", "65", 1)
        self.refused(1, "--model:2:25: num_attention_heads: expected a divisor of "
                     "hidden_size = 65, got 4", "predict", "--model", wrong, *job)
        self.begins(1, "--model: expected a name or a file that stays, which is what "
                    'a scenario names, got "{', "init", "--model", CONFIG, *job)
        result = through_a_pipe(self.run_it, "init")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("trainfare: --model: expected a name or a file that stays, which "
                      'is what a scenario names, got "/dev/fd/', result.stderr)

    def test_a_device_of_ones_own_beside_an_installation(self):
        """docs/guide/devices.md, "Beside an installation"."""
        data = self.path("data")
        hardware = os.path.join(program.ROOT, "hardware")
        for name in ("devices", "interconnects", "instances", "prices"):
            shutil.copytree(os.path.join(hardware, name), os.path.join(data, name))
        with open(os.path.join(hardware, "devices", "p40.yaml"),
                  encoding="utf-8") as file:
            text = file.read()
        own = text.replace("Tesla P40", "My GPU").replace('aliases:\n  - "P40"\n', "")
        self.write("data/devices/my_gpu.yaml", own)
        of_own = {"environment": {"TRAINFARE_DATA_DIR": data}}
        listed = self.good("list", "devices", "my_gpu", **of_own).stdout
        with open(os.path.join(program.ROOT, "docs/guide/devices.md"),
                  encoding="utf-8") as page:
            self.assertIn(f"```text\n{listed}```\n", page.read())
        said = self.good("predict", "emotion_bert_base", "--device", "my_gpu",
                         "--precision", "fp32", **of_own).stdout
        self.assertIn(" on my_gpu (My GPU)", said)
        self.refused(1, "data/devices/my_gpu.yaml:10:9: peak.fp32: expected at most the "
                     "1 TFLOP/s of bf16_dense, got 11.76 TFLOP/s", "list", "devices",
                     environment={"TRAINFARE_DATA_DIR": self.with_peak(own)})

    def with_peak(self, own):
        """The folder with a peak of bf16 that no device has."""
        self.write("data/devices/my_gpu.yaml", own.replace(
            "  fp32: 11.76 TFLOP/s", "  fp32: 11.76 TFLOP/s\n  bf16_dense: 1 TFLOP/s"))
        return self.path("data")

    def test_a_folder_names_a_model_wherever_a_file_does(self):
        os.mkdir(self.path("small"))
        self.write("small/config.json", CONFIG)
        job = ("--samples", "100", "--length", "64")

        def asked(*arguments, cwd=self.folder):
            result = self.good("predict", *arguments, "--device", "l4", "--format",
                               "json", cwd=cwd)
            scenario = json.loads(result.stdout)["scenario"]
            return scenario["name"], scenario["model"]

        self.assertEqual(asked("--model", "small", *job), ("small", "llama"))
        self.assertEqual(asked("--model", "small/", *job), ("small", "llama"))
        self.assertEqual(asked("--model", "small/config.json", *job), ("small", "llama"))
        self.assertEqual(asked("--model", ".", *job, cwd=self.path("small")),
                         ("small", "llama"))
        self.assertEqual(asked("emotion_bert_base", "--set", "model=small"),
                         ("emotion_bert_base", "llama"))
        written = self.good("init", "--model", "small", *job, cwd=self.folder).stdout
        self.assertIn("model: 'small'\n", written)
        # Beside the scenario, not where people are.
        self.write("job.yaml", written)
        self.assertEqual(asked(self.path("job.yaml"), cwd="/")[1], "llama")
        self.write("trainfare.yaml", "model: small\n")
        self.assertEqual(asked(*job), ("small", "llama"))
        # What is no file is a name there.
        self.write("trainfare.yaml", "model: openai-community/gpt2\n")
        self.assertEqual(asked(*job), ("gpt2", "gpt2"))
        # Nor is a text, whatever it is called.
        text = json.dumps({**json.loads(CONFIG), "_name_or_path": "a/small"})
        self.write("trainfare.yaml", f"model: '{text}'\n")
        self.assertEqual(asked(*job), ("small", "a/small"))
        for written in ("model=small", "\"model='small'\"", "'model=\"s\\x6dall\"'"):
            self.write("trainfare.yaml", f"set: [{written}]\n")
            self.assertEqual(asked("emotion_bert_base")[1], "llama")
        # A folder is no file that a setting could read, but a model's.
        os.mkdir(self.path("bf16"))
        self.write("trainfare.yaml", "set: [precision=bf16]\n")
        self.assertEqual(asked("emotion_bert_base")[1], "bert-base-uncased")
        os.remove(self.path("trainfare.yaml"))
        os.mkdir(self.path("empty"))
        self.refused(1, "--set: model: empty/config.json: cannot be opened: No such "
                     "file or directory", "predict", "emotion_bert_base", "--set",
                     "model=empty", cwd=self.folder)

    def test_any_key_can_be_set(self):
        asked = ("predict", self.write("s.yaml", GOOD), "--device", "t4")
        plain = self.json_of(*asked)["scenario"]
        changed = self.json_of(
            *asked,
            "--set",
            "dataset.train=77",
            "--set",
            "optimizer={ name: sgd, implementation: fused }",
            "--model",
            "bert-large-uncased",
        )["scenario"]
        self.assertNotEqual(plain["train_samples"], 77)
        self.assertEqual(changed["train_samples"], 77)
        self.assertEqual(changed["optimizer"], "sgd")
        self.assertEqual(changed["model"], "bert-large-uncased")
        winner = self.good("recommend", asked[1], "--set", "batch=4").stdout
        self.assertIn("batch 4 a device", winner)

    def test_a_list_that_is_set_needs_no_brackets(self):
        job = ("predict", "--model", "gpt2", "--samples", "100", "--length", "64",
               "--device", "l4", "--set", "trainable.lora.rank=4", "--set")  # fmt: skip

        def matrices(text):
            answer = self.json_of(*job, f"trainable.lora.matrices={text}")
            return answer["scenario"]["workload"]["trainable"]["lora"]["matrices"]

        for text in ("q_proj,v_proj", "[query, value]", "query, value"):
            self.assertEqual(matrices(text), ["query", "value"], text)
        self.assertEqual(matrices("output"), ["output"])
        self.begins(1, '--set: trainable.lora.matrices: unknown matrix "qury"; did you',
                    *job, "trainable.lora.matrices=value,qury")  # fmt: skip
        self.begins(1, "--set: trainable.lora.matrices[1]: expected a text, got an empty",
                    *job, "trainable.lora.matrices=query,")  # fmt: skip
        # Numbers, too; a text in quotes is one.
        buckets = self.json_of("predict", "emotion_bert_base", "--device", "l4", "--set",
                               "padding={ buckets: [16] }", "--set",
                               "padding.buckets=32,64")  # fmt: skip
        self.assertEqual(buckets["scenario"]["padding"], "buckets 32, 64")
        self.begins(1, '--set: trainable.lora.matrices: unknown matrix "query,value"',
                    *job, "trainable.lora.matrices=['query,value']")  # fmt: skip

    def test_one_dimension_of_a_model_is_set(self):
        job = ("--samples", "100", "--length", "64", "--device", "l4")
        wide = ("predict", "--model", "gpt2", *job, "--set", "model.vocabulary=50304")
        answer = self.json_of(*wide)
        model = answer["scenario"]["workload"]["model"]
        self.assertEqual(model["name"], "gpt2 with vocabulary 50304")
        self.assertEqual((model["vocabulary"], model["intermediate"]), (50304, 3072))
        self.assertFalse(model["pooler"])
        self.assertEqual(answer["scenario"]["title"], "gpt2 with vocabulary 50304")
        # 47 rows of 768 more.
        self.assertEqual(answer["scenario"]["parameters"], 124439808 + 47 * 768)
        self.assertIn("gpt2 with vocabulary 50304 takes ", self.good(*wide).stdout)
        # What is said as it is anyway is no other model.
        same = self.json_of("predict", "--model", "gpt2", *job, "--set", "model.layers=12")
        self.assertEqual(same["scenario"]["model"], "gpt2")
        # The same of a file, and in a file.
        config = self.write("own.json", CONFIG)
        own = self.json_of("predict", "--model", config, *job, "--set", "model.layers=8")
        self.assertEqual(own["scenario"]["title"], "own.json with layers 8")
        self.assertEqual(own["scenario"]["model"], "llama with layers 8")
        written = self.write("s.yaml", GOOD.replace(
            "bert-base-uncased", "{ of: bert-base-uncased, layers: 6, heads: 8 }"))  # fmt: skip
        of_file = self.json_of("predict", written, "--device", "l4")
        self.assertEqual(of_file["scenario"]["model"],
                         "bert-base-uncased with heads 8, layers 6")  # fmt: skip
        named = self.json_of("predict", written, "--device", "l4",
                             "--set", "model.name=mine")  # fmt: skip
        self.assertEqual(named["scenario"]["model"], "mine")
        set_ = self.json_of("predict", self.write("t.yaml", GOOD), "--device", "l4",
                            "--set", "model.layers=6", "--set", "model.heads=8")  # fmt: skip
        self.assertEqual(set_["predictions"], of_file["predictions"])
        self.assertEqual(set_["scenario"]["title"],
                         "a job, as bert-base-uncased with heads 8, layers 6")  # fmt: skip
        # Whose place is taken is not named.
        whole = self.json_of(
            "predict", "--model", "gpt2", *job, "--set",
            "model={name: gpt2v, family: decoder, layers: 2, hidden: 64, heads: 4,"
            " vocabulary: 100}")  # fmt: skip
        self.assertEqual(whole["scenario"]["title"], "gpt2v")

    def test_a_dimension_that_cannot_be_is_refused(self):
        job = ("predict", "--model", "gpt2", "--samples", "100", "--length", "64",
               "--device", "l4", "--set")  # fmt: skip
        self.begins(1, "--set: model.layers: expected an integer from 1 to", *job,
                    "model.layers=0")  # fmt: skip
        self.begins(1, '--set: model: unknown key "layer"; did you mean "layers"', *job,
                    "model.layer=4")  # fmt: skip
        self.begins(1, "--set: model.heads: expected a divisor of hidden = 768, got 7",
                    *job, "model.heads=7")  # fmt: skip
        file = self.write("s.yaml", GOOD.replace(
            "bert-base-uncased", "{ of: bert-bsae-uncased, layers: 6 }"))  # fmt: skip
        self.begins(1, f'{file}:2:14: model.of: unknown model "bert-bsae-uncased"; did you',
                    "predict", file)  # fmt: skip

    def test_a_hint_is_of_the_fault_that_is_said(self):
        job = ("predict", "--model", "qwen2.5-7b", "--samples", "100", "--length", "64",
               "--device", "tpu_v5e", "--precision", "tf32")  # fmt: skip
        self.refused(1, "--precision: tpu_v5e has no tf32; it runs bf16; hint: --precision "
                        "bf16", *job)  # fmt: skip
        said = self.begins(1, "parallel.offload: expected none on tpu_v5e",
                           *job, "--set", "parallel.offload=optimizer")  # fmt: skip
        self.assertNotIn("hint", said)

    def test_where_any_batch_fits_it_is_said(self):
        job = ("predict", "--model", "gpt2", "--samples", "100", "--length", "128",
               "--device", "cerebras_wse2", "--precision", "fp16")  # fmt: skip
        answer = self.json_of(*job)["predictions"][0]
        self.assertTrue(answer["any_batch_fits"])
        largest = self.json_of(*job, "--largest", "batch")
        self.assertTrue(largest["any_batch_fits"])
        self.assertEqual(largest["largest"], answer["largest_batch"])
        words = "any batch fits, {} is the largest that can be counted"
        self.assertIn(words.format(answer["largest_batch"]), self.good(*job).stdout)
        self.assertIn("gpt2: any batch fits cerebras_wse2, ",
                      self.good(*job, "--largest", "batch").stdout)  # fmt: skip
        # Memory ends on others.
        gpu = (*job[:-4], "--device", "l4", "--precision", "fp16")
        self.assertFalse(self.json_of(*gpu)["predictions"][0]["any_batch_fits"])
        self.assertFalse(self.json_of(*gpu, "--largest", "batch")["any_batch_fits"])
        self.assertFalse(self.json_of(*gpu, "--largest", "length")["any_batch_fits"])

    def test_a_family_of_one_device_is_taken_as_it(self):
        job = ("predict", "--model", "gpt2", "--samples", "100", "--length", "64",
               "--precision", "fp16", "--device")  # fmt: skip
        answer = self.json_of(*job, "P100")
        self.assertEqual(answer["device"], "p100_pcie_16gb")
        self.assertIn("P100 is taken as p100_pcie_16gb, the only one known",
                      answer["notes"])  # fmt: skip
        self.assertEqual(self.json_of(*job, "v100")["device"], "v100_sxm2_32gb")

    def test_a_job_that_is_not_whole_is_refused(self):
        alone = ("predict", "--model", "bert-base-uncased", "--samples", "9")
        self.refused(
            2,
            "--model: without a SCENARIO, expected also --samples N and --length N",
            *alone,
        )
        self.refused(
            1,
            "--length: padding: expected a length of at most 512, the positions of "
            "bert-base-uncased, got 1000",
            *alone,
            "--length",
            "1000",
        )
        self.refused(
            2,
            "expected a SCENARIO, or --model NAME with --samples N and --length N",
            "predict",
        )
        self.refused(
            1,
            'unknown scenario "bert-tiny"; that is a model, did you mean --model '
            "bert-tiny?",
            "predict",
            "bert-tiny",
        )
        self.refused(
            1,
            '--set: epochs: expected an integer from 1 to 1000000, got "many"',
            "predict",
            "emotion_bert_base",
            "--set",
            "epochs=many",
        )

    def test_a_list_may_have_spaces(self):
        asked = self.write("s.yaml", GOOD), "--device", "t4"
        self.assertEqual(
            self.good("predict", *asked, "--batch", "8, 16").stdout,
            self.good("predict", *asked, "--batch", "8,16").stdout,
        )
        self.assertEqual(
            self.good("recommend", asked[0], "--cloud", "aws, gcp").stdout,
            self.good("recommend", asked[0], "--cloud", "aws,gcp").stdout,
        )

    def test_devices_and_precisions_may_be_lists(self):
        asked = ("predict", self.write("s.yaml", GOOD))
        whole = self.json_of(*asked, "--device", "l4,t4", "--precision",
                             "fp32, fp16", "--batch", "8,16")  # fmt: skip
        self.assertIsNone(whole["device"])
        got = whole["predictions"]
        self.assertEqual(
            [(p["device"], p["precision"], p["batch"]) for p in got],
            [(device, precision, batch) for device in ("l4", "t4")
             for precision in ("fp32", "fp16") for batch in (8, 16)],
        )  # fmt: skip
        # Each is what it is by itself.
        for prediction in got:
            one = self.json_of(
                *asked, "--device", prediction["device"], "--precision",
                prediction["precision"], "--batch", str(prediction["batch"]),
            )  # fmt: skip
            # Of one alone also what its step consists of.
            self.assertTrue(one["predictions"][0].pop("kernels"))
            self.assertEqual(one["predictions"], [prediction])
            self.assertEqual(one["device"], prediction["device"])
        lists = ("--device", "l4,t4", "--precision", "fp32,fp16")
        text = self.good(*asked, *lists).stdout
        self.assertRegex(text, r"\ndevice  precision  batch")
        self.assertRegex(text, r"\nt4      fp16           8")
        rows = list(csv.DictReader(io.StringIO(
            self.good(*asked, *lists, "--format", "csv").stdout)))
        self.assertEqual([row["device"] for row in rows], ["l4"] * 2 + ["t4"] * 2)

    def test_several_instances_are_rows_with_their_prices(self):
        names = ["aws/g5.xlarge", "gcp/g2-standard-4"]
        whole = self.json_of("predict", self.write("s.yaml", GOOD),
                             "--instance", ",".join(names))  # fmt: skip
        rows = whole["predictions"]
        self.assertEqual([row["instance"] for row in rows], names)
        self.assertEqual([row["device"] for row in rows], ["a10g", "l4"])
        self.assertIsNone(whole["instance"])
        self.assertEqual(
            sorted(whole["price_catalogs"]), ["aws", "gcp"])
        for row in rows:
            one = self.json_of("predict", self.write("s.yaml", GOOD),
                               "--instance", row["instance"])  # fmt: skip
            self.assertTrue(one["predictions"][0].pop("kernels"))
            self.assertEqual(one["predictions"], [row])
            self.assertEqual(one["price"], row["price"])

    def test_limits_are_read_as_people_type_them(self):
        asked = ("recommend", self.write("s.yaml", GOOD))
        exact = self.json_of(*asked, "--deadline", "5400s", "--budget", "5 USD",
                             "--cloud", "aws")  # fmt: skip
        typed = self.json_of(*asked, "--deadline", "1h30min", "--budget", "$5",
                             "--cloud", "AWS")  # fmt: skip
        for answer in (exact, typed):
            for changing in ("timestamp", "arguments", "command"):
                answer.pop(changing, None)
        self.assertEqual(exact, typed)
        self.assertEqual(exact["deadline_s"],
                         self.json_of(*asked, "--deadline", "90m")["deadline_s"])

    def test_what_a_device_cannot_run_says_who_asked_for_it(self):
        path = self.write("s.yaml", GOOD.replace("fp32", "bf16"))
        asked = ("predict", path, "--device", "t4")
        self.begins(1, f"{path}:8:12: precision: t4 has no bf16", *asked)
        self.begins(1, "--set: precision: t4 has no fp8",
                    *asked, "--set", "precision=fp8")  # fmt: skip
        self.begins(1, "--precision: t4 has no fp8",
                    *asked, "--set", "precision=fp32", "--precision", "fp8")  # fmt: skip
        few = self.write("few.yaml", GOOD.replace("fp32", "bf16") + (
            "trainable:\n  lora:\n    rank: 4\n    base_bits: 4\n"))  # fmt: skip
        self.begins(1, f"{few}:14:16: trainable.lora.base_bits: expected 0 on tpu_v4",
                    "predict", few, "--device", "tpu_v4")  # fmt: skip
        # A text that nobody wrote has no place.
        self.begins(1, "precision: t4 has no bf16", "predict", "--model", "gpt2",
                    "--samples", "9", "--length", "9", "--device", "t4")  # fmt: skip

    def test_ranks_that_flags_find_are_those_of_an_update_in_the_pass_backward(self):
        asked = ("predict", "--model", "llama-3.2-3b", "--samples", "1000", "--length", "2048",
                 "--batch", "1", "--device", "h200_sxm", "--set", "narrow_weights=true",
                 "--set", "optimizer.masters=none", "--set", "attention=flash",
                 "--set", "optimizer.in_backward=true")  # fmt: skip
        self.good(*asked)
        self.begins(1, "optimizer.in_backward: expected false where ranks sum gradients",
                    *asked, "--devices", "2")  # fmt: skip
        self.good(*asked, "--devices", "2", "--set", "parallel.shard=fsdp")

    def test_a_step_of_ones_own_stands_beside_the_predicted_one(self):
        asked = ("predict", "llama_8b_lora", "--device", "h100_sxm")
        step = self.json_of(*asked)["predictions"][0]["step_time_s"]
        measured = self.json_of(*asked, "--measured", f"{step}s")["predictions"][0]["measured"]
        self.assertAlmostEqual(measured["ratio"], 1.0, 6)
        self.assertTrue(measured["inside_80"])
        self.assertEqual(measured["would_be"], [])
        self.begins(1, "--measured: expected a step's time, a rate or a share of the peak",
                    *asked, "--measured", "3200tok/s")  # fmt: skip
        self.begins(2, "--measured: give one --batch", *asked, "--batch", "1,2",
                    "--measured", "1s")  # fmt: skip
        self.begins(2, "--largest: not with --measured", *asked, "--largest", "batch",
                    "--measured", "1s")  # fmt: skip

    def test_of_a_list_what_a_device_cannot_run_is_left_out(self):
        asked = ("predict", self.write("s.yaml", GOOD), "--device", "l4,t4")
        whole = self.json_of(*asked, "--precision", "bf16,fp16")
        self.assertEqual(
            [(p["device"], p["precision"]) for p in whole["predictions"]],
            [("l4", "bf16"), ("l4", "fp16"), ("t4", "fp16")])  # fmt: skip
        reason = "precision: t4 has no bf16; it runs fp32, fp16"
        self.assertIn(f"left out: {reason}", whole["notes"])
        self.refused(1, f"--{reason}; hint: --precision fp16",
                     "predict", asked[1], "--device", "t4", "--precision", "bf16")
        for more, message in (
            (("--instance", "aws/g6.xlarge"),
             "--device and --instance: give one device, that of the instance"),
            (("--largest", "length"),
             "--largest: give one --batch, --seq, --precision, --device and "
             "--instance"),
        ):  # fmt: skip
            self.refused(2, message, *asked, "--precision", "fp16", *more)
        self.refused(
            2,
            "recommend: give one --seq, it compares instances",
            "recommend", asked[1], "--seq", "32,64")  # fmt: skip
        self.refused(
            2, "--dry-run: not with --global-batch, of which each candidate "
            "has a job of its own",
            "recommend", asked[1], "--global-batch", "64", "--dry-run")  # fmt: skip
        for of_all in self.json_of("recommend", asked[1], "--precision",
                                   "bf16,fp16")["candidates"]:  # fmt: skip
            if of_all["device"] == "t4":
                self.assertEqual(of_all["precision"], "fp16")

    def test_a_word_behind_a_list_is_not_of_it(self):
        file = self.write("s.yaml", GOOD)
        flags = ("--device", "l4", "--batch", "4,8", "--set", "epochs=2",
                 "--fail-if", "mfu>100%", "--export", self.path("a.md"))  # fmt: skip
        self.assertEqual(self.good("predict", file, *flags).stdout,
                         self.good("predict", *flags, file).stdout)  # fmt: skip

    def test_forward_passes_on_a_chip_for_inference(self):
        asked = (
            self.write("s.yaml", GOOD.replace("bert-base-uncased", "bert-tiny")),
            "--device",
            "groq_lpu",
            "--precision",
            "fp16",
        )
        self.assertIn(
            "runs inference only; expected work: forward",
            self.run_it("predict", *asked).stderr,
        )
        forward = self.json_of("predict", *asked, "--work", "forward")
        self.assertEqual(forward["scenario"]["work"], "forward")
        self.assertEqual(forward["predictions"][0]["fit_figures"], 4)
        table = self.good("predict", *asked, "--work", "forward").stdout
        self.assertIn("forward passes only", table)

    def test_devices_that_nobody_rents_out(self):
        asked = (
            "recommend",
            "emotion_bert_base",
            "--cloud",
            "aws",
            "--also",
            "sambanova_sn30,ipu_gc200",
        )
        table = self.good(*asked).stdout
        self.assertRegex(table, r"1 x sambanova_sn30 .*no instance, so no price")
        self.assertRegex(table, r"1 x ipu_gc200 .*has no bf16")

    def test_a_file_and_its_name_are_the_same_scenario(self):
        listed = self.json_of("list", "scenarios")["rows"]
        self.assertIn("emotion_bert_base", [row["scenario"] for row in listed])

    def test_devices_share_the_work(self):
        command = ("predict", "imdb_bert_base", "--device", "a100_sxm4_80gb")
        times = [
            self.json_of(*command, "--devices", str(n))["predictions"][0][
                "run_time_s"
            ]
            for n in (1, 2, 4)
        ]
        self.assertGreater(times[0], times[1])
        self.assertGreater(times[1], times[2])
        self.assertGreater(times[2], times[0] / 4)

    def test_more_devices_than_samples_is_said(self):
        asked = (self.write("s.yaml", GOOD), "--device", "a100_sxm4_80gb")
        note = "the global batch of 1600 is more than the 1000 samples of an "
        self.assertIn(note, self.good("predict", *asked, "--devices", "200").stdout)
        self.assertNotIn(
            "global batch", self.good("predict", *asked, "--devices", "100").stdout
        )


if __name__ == "__main__":
    program.main()
