"""Arguments and files of trainfare-trainer, and what it says of bad ones.

    command_test.py TRAINER
"""

import json
import subprocess

import trainer_program
from trainer_program import REQUEST, TRAINER, Case, run


class Command(Case):
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

    def test_paths_that_are_not_there(self):
        self.check_fails(run("measure", "--plan", "/nowhere/plan"),
                         1, "/nowhere/plan: cannot read")
        plan = self.write("plan.jsonl", json.dumps(REQUEST))
        self.check_fails(run("measure", "--plan", plan, "--out",
                             "/nowhere/out"), 1, "/nowhere/out: cannot write")

    def test_adapters_of_no_named_matrix(self):
        lengths = self.write("lengths.csv", "length,count", "8,4")
        self.check_fails(self.train("--lengths", lengths, "--lora-rank", 4), 1,
                         "model bert-tiny: the trainer has frozen weights, "
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


if __name__ == "__main__":
    trainer_program.main()
