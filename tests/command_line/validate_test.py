"""`validate` of tables."""

import json
import os
import re

import program
from program import Case, ROOT, TABLE_HEADER, table_row


class Validate(Case):
    def setUp(self):
        super().setUp()
        rows = "".join(
            table_row(device, batch, length, "fp16", 10.0 * batch * length / 128)
            for device in ("t4", "a10g")
            for batch in (4, 8, 16)
            for length in (128, 256)
        )
        self.table = self.write("table.csv", TABLE_HEADER + rows)

    def test_the_json_has_the_documented_keys(self):
        result = self.json_of("validate", self.table)
        self.assertEqual(
            list(result["overall"])[:5], ["mape", "median", "p90", "max", "n"]
        )
        self.assertEqual(result["overall"]["n"], 12)
        self.assertEqual(len(result["groups"]), 2)
        self.assertEqual(len(result["rows"]), 12)
        errors = [abs(row["error_percent"]) for row in result["rows"]]
        self.assertAlmostEqual(
            result["overall"]["mape"], sum(errors) / 12, places=9
        )
        self.assertEqual(result["overall"]["max"], max(errors))

    # What `predict` prints of a published quantity, by its keys.
    SAID = {
        "run_time": ("run_time_s",), "step_time": ("step_time_s",), "energy": ("energy_j",),
        "throughput": ("samples_per_s",), "mfu": ("mfu",), "gemm_share": ("matrix_share",),
        "launches": ("optimizer_launches",), "memory_used": ("memory_bytes",),
        "utilisation.tensor": ("engines", "tensor"),
        "optimizer_time": ("phases", "optimizer_s"),
    }  # fmt: skip

    def test_rows_say_what_was_taken_of_them(self):
        (row, *_) = self.json_of("validate", self.table)["rows"]
        workload = row["workload"]
        self.assertEqual((workload["model"]["name"], workload["batch"]),
                         (row["model"], row["batch"]))  # fmt: skip
        self.assertEqual(workload["stack"], "eager")
        self.assertEqual(workload["optimizer"]["name"], "adamw")
        self.assertFalse(workload["gradient_checkpointing"])
        self.assertEqual(workload["parallel"]["shard"], "none")
        # In the same words as an answer of predict.
        asked = self.json_of("predict", self.write("s.yaml", program.GOOD))
        self.assertEqual(list(workload), list(asked["scenario"]["workload"]))
        self.good("validate", self.table, "--export", self.path("v.html"))
        with open(self.path("v.html"), encoding="utf-8") as page:
            self.assertIn("<!DOCTYPE html>", page.read())

    def test_a_misspelt_model_has_the_one_that_may_be_meant(self):
        wrong = [table_row().replace("bert-base,768,12,12,3072", name)
                 for name in ("llama-9b,,,,", "bert-bsae,768,12,12,3072")]  # fmt: skip
        rows = TABLE_HEADER + table_row() + "".join(wrong)
        answer = self.json_of("validate", self.write("odd.csv", rows))
        unsized, unknown = (row["reason"] for row in answer["unused"])
        self.assertTrue(unsized.startswith(
            'model: dimensions of llama-9b are not stated; did you mean "llama-7b"'), unsized)
        self.assertTrue(unknown.startswith(
            'model: bert-bsae is not known; did you mean "bert-base"'), unknown)

    def test_a_published_run_is_answered_as_it_is_validated(self):
        folder = os.path.join(ROOT, "scenarios", "published")
        rows = {}  # that are predicted, by their run
        for row in self.json_of("validate", folder)["rows"]:
            if row["quantity"] in self.SAID and row["as-shipped"]["predicted"] is not None:
                rows.setdefault(row["label"].split("/")[0], []).append(row)
        files = 0
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".yaml"):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                runs = [run for run in re.findall(r"^  (\w+):$", file.read(), re.M) if run in rows]
            if not runs:
                continue
            files += 1
            with self.subTest(runs[0]):
                answer = self.json_of("predict", f"{folder}/{name}#{runs[0]}")["predictions"][0]
                for row in rows[runs[0]]:
                    said = answer
                    for key in self.SAID[row["quantity"]]:
                        said = said[key]
                    self.assertAlmostEqual(said / row["as-shipped"]["predicted"], 1, places=12)
        self.assertEqual(files, 7)  # with a run that is answered

    def test_choices_between_devices(self):
        whole = self.json_of("validate", self.table)
        # Six questions, by time and by cost; of two devices.
        self.assertEqual(len(whole["choices"]), 12)
        self.assertIn("aws", whole["price_catalogs"])
        published = self.json_of(
            "validate", os.path.join(os.path.dirname(__file__), "..", "..", "scenarios", "published"),
            "--protocol", "leave-one-out")  # fmt: skip
        for choice in whole["choices"] + published["choices"]:
            stated = [d["best_probability"] for d in choice["devices"]]
            self.assertAlmostEqual(sum(stated), 1)
            self.assertEqual(sum(d["best"] for d in choice["devices"]), 1)
        near = [c["regret_percent"] <= 8 for c in published["choices"]]
        self.assertGreater(len(near), 10)
        self.assertTrue(all(near))
        self.assertIn("choices: of 12 between devices", " ".join(whole["notes"]))

    def test_a_passed_limit_exits_4_with_the_result(self):
        result = self.run_it("validate", self.table, "--fail-if", "mape>0.001%")
        self.assertEqual(result.returncode, 4)
        self.assertIn("median error", result.stdout)
        self.assertRegex(
            result.stderr,
            r"^trainfare: --fail-if: mape is [\d.]+ %, limit mape>0\.001%\n$",
        )
        self.good("validate", self.table, "--fail-if", "mape>100000%")

    def test_protocols(self):
        counts = {
            "as-shipped": (12, 0),
            "in-sample": (12, 12),
            "leave-one-out": (12, 0),
            "leave-device-out": (12, 0),
            "one-run-per-device": (10, 2),
            "k-runs=2": (8, 4),
            "added-runs=2": (8, 4),
        }
        for protocol, (predicted, fitted) in counts.items():
            with self.subTest(protocol):
                result = self.json_of(
                    "validate", self.table, "--protocol", protocol
                )
                self.assertEqual(result["protocol"], protocol)
                self.assertEqual(result["overall"]["n"], predicted)
                self.assertEqual(len(result["fitted"]), fitted)

    def test_nothing_to_predict_is_an_error_with_its_reason(self):
        path = self.write(
            "odd.csv", TABLE_HEADER + table_row(device="GeForce Imaginary 9")
        )
        result = self.run_it("validate", path, "--format", "json")
        self.assertEqual(result.returncode, 1)
        skipped = json.loads(result.stdout)["skipped"]
        self.assertIn("GeForce Imaginary 9", skipped[0]["reason"])

    def test_rows_that_are_not_read_have_their_lines(self):
        notes = table_row().rstrip("\n") + "fwd+bwd\n"
        path = self.write("odd.csv", TABLE_HEADER + table_row() + notes)
        rows = self.json_of("validate", path)["unused"]
        self.assertEqual([row["label"] for row in rows], [path + ":3"])
        self.assertIn("with the update or without", rows[0]["reason"])
        csv = self.good("validate", path, "--format", "csv").stdout.splitlines()
        self.assertEqual(len(csv), 3)
        self.assertTrue(csv[2].startswith(path + ":3,"), csv[2])
        self.assertTrue(csv[2].endswith('update or without is not stated"'), csv[2])
        for form in ("table", "markdown"):
            text = self.good("validate", path, "--format", form).stdout
            self.assertNotIn(path + ":3", text)
            self.assertIn("1 of 2 rows are not used", text)

    def test_what_a_table_says_beside_its_columns_is_told(self):
        table = self.write(
            "own.csv",
            "device,model,seq_len,batch_per_device,precision,framework,stack_notes,lora_r,"
            "metric,value\n"
            "RTX 4090,llama-3.1-8b,1024,1,bf16,transformers + peft,LoRA r=16,16,tokens/s,1500\n"
            "RTX 4090,llama-3.1-8b,1024,1,bf16,transformers,x,16,tokens/s,1500\n",
        )
        result = self.json_of("validate", table)
        self.assertEqual(
            [row["reason"] for row in result["unused"]],
            ["adapters in words: columns adapter, lora_rank"],
        )
        self.assertEqual([row["label"] for row in result["rows"]], [table + ":3"])
        notes = result["notes"]
        self.assertIn(table + ": columns that are not read: lora_r (lora_rank?)", notes)
        (room,) = (note for note in notes if "no room" in note)
        self.assertRegex(
            room,
            r"^a row has no room as it is read: \S+own\.csv:3 needs 1\d\d(\.\d)? GiB of 24 GiB; "
            "is it of adapters, sharded or recomputed\\?$",
        )


if __name__ == "__main__":
    program.main()
