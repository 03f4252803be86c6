"""Answers in JSON fit their schemas, and schemas say units."""

import re

import json_schema
import program
from figure_names import has_unit
from program import COMMANDS, Case, ROOT, TABLE_HEADER, table_row


class Schemas(Case):
    """Every answer that a test reads is held to its schema (json_of); here are
    those that no other test asks for, and the schemas themselves."""

    def test_answers_conform(self):
        table = self.write("a.csv", TABLE_HEADER + table_row())
        shards = ("predict", "llama_8b_fsdp", "--instance", "aws/p5.48xlarge",
                  "--hosts", "2", "--set", "parallel.data=16")  # fmt: skip
        for command in (
            *COMMANDS,
            shards,
            ("predict", "emotion_bert_base", "--device", "trainium1"),
            ("predict", "llama_8b_lora", "--device", "h100_sxm",
             "--largest", "model"),
            ("recommend", "llama_8b_fsdp", "--hosts", "2", "--top", "9",
             "--objective", "energy"),
            ("validate", table),
            ("validate", table, "--repeats", "median"),
            ("validate", ROOT + "/docs/guide/runs.csv",
             "--protocol", "leave-one-out"),
            ("validate", ROOT + "/tests/fuzz/corpus/records/kernel.jsonl"),
            ("validate", ROOT + "/scenarios/published/"),
        ):  # fmt: skip
            with self.subTest(command):
                self.json_of(*command)
        # What does not fit, and what nothing meets, are answers, too.
        self.json_of("predict", "squad_bert_large", "--device", "t4",
                     "--batch", "512", code=3)  # fmt: skip
        self.json_of("recommend", "imdb_bert_base", "--deadline", "1ms", code=3)
        sharded = self.json_of(*shards)["predictions"][0]
        self.assertIn("shard_traffic", sharded)
        self.assertEqual(
            {one["collective"] for one in sharded["collectives"]},
            {"all_gather", "reduce_scatter"},
        )
        experts = self.json_of(
            "predict", "llama_8b_fsdp", "--model", "mixtral-8x7b",
            "--device", "h100_sxm", "--devices", "32", "--hosts", "4",
            "--set", "parallel.context=2", "--set", "parallel.expert=8",
            "--set", "parallel.data=16",
        )["predictions"][0]  # fmt: skip
        self.assertLessEqual(
            {"ring_pass", "all_to_all"},
            {one["collective"] for one in experts["collectives"]},
        )
        # What is offloaded is in the host's memory, whose update has a time.
        host = self.json_of(
            "predict", "llama_8b_fsdp", "--instance", "aws/p4d.24xlarge",
            "--set", "parallel.offload=parameters",
            "--set", "parallel.offload_activations=true",
        )["predictions"][0]  # fmt: skip
        self.assertEqual(host["host_memory"]["ranks"], 8)
        self.assertLess(host["host_memory"]["memory_bytes"],
                        host["host_memory"]["capacity_bytes"])  # fmt: skip
        self.assertGreater(host["phases"]["host_update_s"], 0)
        self.assertGreater(host["shard_traffic"][0]["host_bytes"], 0)
        full = self.json_of(
            "predict", "llama_8b_fsdp", "--instance", "aws/g5.xlarge",
            "--set", "parallel.data=0", "--set", "parallel.shard=zero2",
            "--set", "parallel.offload=optimizer", code=3,
        )["predictions"][0]  # fmt: skip
        self.assertIn("does not fit the host's memory", full["reason"])

    def test_what_does_not_conform_is_found(self):
        good = self.json_of(*COMMANDS[0])
        prediction = good["predictions"][0]

        def errors(**changed):
            return json_schema.errors_of(
                {**good, "predictions": [{**prediction, **changed}]})

        self.assertEqual(errors(), [])
        self.assertIn("cost_eur: in no schema", errors(cost_eur=1)[0])
        self.assertIn("expected number", errors(step_time_s="1 s")[0])
        self.assertIn("expected boolean", errors(fits=1)[0])
        less = {k: v for k, v in prediction.items() if k != "run_time_s"}
        self.assertIn(
            "run_time_s: missing",
            json_schema.errors_of({**good, "predictions": [less]})[0])
        self.assertIn("run_time_s: in no schema", " ".join(
            errors(run={**prediction["run"], "run_time_s": 1})))

    def test_every_number_of_a_schema_has_its_unit(self):
        for file in sorted(json_schema.FOLDER.glob("*.schema.json")):
            for key in json_schema.numbers_of(json_schema.load(file.name)):
                with self.subTest((file.name, key)):
                    self.assertTrue(has_unit(key), key)

    def test_a_workload_has_the_fields_of_the_model(self):
        model = json_schema.FOLDER.parents[2] / "model"
        source = "".join((model / header).read_text(encoding="utf-8")
                         for header in ("fields.h", "architecture_fields.h"))
        fields = set(re.findall(r'\.name = "(\w+)"', source))
        described = set()

        def collect(schema):
            for key, item in schema.get("properties", {}).items():
                described.add(key)
                collect(item)

        collect(json_schema.load("common.1.schema.json")["$defs"]["workload"])
        # In JSON a quantity's name has its unit.
        named = re.findall(r'\.json = "(\w+)"', source)
        self.assertEqual(
            described,
            fields - {name.rsplit("_", 1)[0] for name in named} | set(named)
            | {"head"})


if __name__ == "__main__":
    program.main()
