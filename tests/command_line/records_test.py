"""Measurements and fits that are of something else."""

import json
import os

import program
from program import Case, GOOD, TABLE_HEADER, table_row


class Records(Case):
    def test_a_truncated_measurement_line(self):
        path = self.write(
            "runs.jsonl", '{"schema": "trainfare.measurement/1", "kind": "st'
        )
        result = self.run_it("validate", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("runs.jsonl:1", result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)

    def test_a_fit_of_another_device(self):
        self.write("t4.csv", TABLE_HEADER + table_row() + table_row(batch=16))
        fit = self.path("t4.yaml")
        self.good(
            "calibrate",
            "--from",
            self.path("t4.csv"),
            "--device",
            "t4",
            "--output",
            fit,
        )
        result = self.run_it(
            "predict", "emotion_bert_base", "--fit", fit, "--device", "a10g"
        )
        self.assertEqual(result.returncode, 1)
        self.assertIn("t4", result.stderr)
        self.assertIn("a10g", result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)

    def test_rows_of_other_devices_are_counted(self):
        rows = self.write("rows.csv", TABLE_HEADER + "".join(
            table_row(batch=batch, step_ms=12 * batch) for batch in (8, 16, 32))
            + table_row(device="t44") + 2 * table_row(device="l4"))
        asked = ("calibrate", "--from", rows, "--device", "t4",
                 "--output", self.path("t4.yaml"))  # fmt: skip
        said = ['1 row skipped: unknown device "t44"; did you mean "t4"?',
                "2 rows skipped: of l4"]
        warned = [(one["code"], one["message"][:len(words)]) for one, words in
                  zip(self.json_of(*asked)["warnings"], reversed(said), strict=True)]
        self.assertEqual(warned, [("rows_skipped", one) for one in reversed(said)])
        result = self.good(*asked)
        for words in said:
            self.assertIn(f"trainfare: warning: {words}", result.stderr)
        self.assertNotIn("skipped", self.good(*asked, "--quiet").stderr)
        added = self.json_of(*asked, "--add")["warnings"]
        self.assertEqual([one["message"] for one in added], said[::-1])
        # A row that stands in a table twice was not added before.
        again = self.write("again.csv", TABLE_HEADER + 2 * table_row(batch=64)
                           + table_row(batch=128))
        adding = ("calibrate", "--from", again, "--add", "--device", "t4")
        for message in ("1 row skipped: twice in the files",
                        "3 rows skipped: added before"):
            warned = self.json_of(*adding)["warnings"]
            self.assertEqual([one["message"] for one in warned], [message])
        self.refused(2, "--from: expected each file once, rows.csv is given "
                     "several times", *asked, "--from", rows)  # fmt: skip

    def test_a_log_of_another_trainer(self):
        state = self.write("trainer_state.json", json.dumps({
            "global_step": 750, "train_batch_size": 8, "log_history": [
                {"loss": 0.5, "step": 500},
                {"step": 750, "train_runtime": 150.0}]}))
        fit = self.path("t4.yaml")
        asked = (self.write("job.yaml", GOOD), "--device", "t4")
        before = self.json_of("predict", *asked)
        self.good("calibrate", "--from", state, "--scenario", *asked,
                  "--output", fit)
        after = self.json_of("predict", *asked, "--fit", fit)
        step_s = [abs(run["predictions"][0]["step_time_s"] - 0.2)
                  for run in (before, after)]
        self.assertLess(step_s[1], step_s[0])  # nearer to what was measured
        self.refused(
            1,
            "trainer_state.json: does not say what was trained on what; "
            "calibrate --from it with --scenario and --device",
            "calibrate", "--from", state, "--device", "t4")
        self.refused(
            1,
            "trainer_state.json: train_batch_size: expected the scenario's "
            "batch of 16, got 8; --batch changes it",
            "calibrate", "--from", state, "--scenario", *asked, "--batch", "16")
        self.refused(
            2,
            "--scenario: says what a log of --from trained, and there is none",
            "calibrate", "--scenario", *asked)
        # What says itself what was trained has no use for another's words.
        table = self.write("t4.csv", TABLE_HEADER + table_row())
        self.refused(
            2,
            "--scenario, --batch: say what a log of --from trained, and there "
            "is none; t4.csv says so itself",
            "calibrate", "--from", table, "--scenario", *asked, "--batch", "4")
        cut = self.write("cut.json", '{"log_history": [')
        self.begins(1, f"{cut}:1", "calibrate", "--from", cut, "--scenario",
                    *asked)
        self.good("calibrate", "--from", state, table, "--scenario", *asked,
                  "--output", fit)

    def test_one_workload_leaves_no_error_to_know(self):
        rows = self.write("rows.csv", TABLE_HEADER + 5 * table_row())
        asked = ("calibrate", "--from", rows, "--device", "t4",
                 "--output", self.path("t4.yaml"))  # fmt: skip
        self.assertIn("t4: 1 run, median error ", self.good(*asked).stdout)
        self.assertIn(" % inside, - left out\n", self.good(*asked).stdout)
        self.assertIsNone(self.json_of(*asked)["fit"]["leave_one_out_error"])
        with open(self.path("t4.yaml"), encoding="utf-8") as file:
            self.assertNotIn("leave_one_out", file.read())
        result = self.run_it(*asked, "--fail-if", "leave_one_out_error>10%")
        self.assertEqual(result.returncode, 4)
        self.assertIn("leave_one_out_error is not known, limit "
                      "leave_one_out_error>10%", result.stderr)

    def test_a_fit_takes_no_place_of_another_file(self):
        rows = self.write("rows.csv", TABLE_HEADER + "".join(
            table_row(batch=batch, step_ms=12 * batch) for batch in (8, 16, 32)))
        asked = ("calibrate", "--from", rows, "--device", "t4", "--output")
        mine = self.write("z.yaml", GOOD)
        older = self.write("z.yaml.old", "an older one\n")
        self.refused(1, "z.yaml: expected a new file, or a fit to replace; the "
                     "one that is there is none", *asked, mine)  # fmt: skip
        for path, text in ((mine, GOOD), (older, "an older one\n")):
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), text)
        # Nor is a folder made that was named by mistake.
        self.refused(1, "none/y.yaml: cannot be written: No such file or "
                     "directory", *asked, self.path("none/y.yaml"))  # fmt: skip
        self.assertFalse(os.path.exists(self.path("none")))

    def test_a_file_that_is_not_there(self):
        for command in (("validate",), ("calibrate", "--from")):
            self.refused(1, "nofile: cannot be opened: No such file or directory",
                         *command, self.path("nofile"))  # fmt: skip


if __name__ == "__main__":
    program.main()
