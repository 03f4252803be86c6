"""gpu_acceptance.py itself, on a processor and a tiny model.

    gpu_acceptance_test.py TRAINER TRAINFARE

The figures mean nothing here; that every step runs, and that the table says what
the records hold, does. Records that stand in for a GPU's are synthetic.
"""

import contextlib
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import gpu_acceptance
from acceptance.judge import table_of
from acceptance.measure import ADAN
from acceptance.plan import SETTINGS
from acceptance.records import read_records, write_json

TRAINER = ""
TRAINFARE = ""
HERE = Path(__file__).resolve().parent

# A run of a few seconds.
TINY = ["--models", "bert-tiny", "--precisions", "fp32", "--stacks", "eager",
        "--batches", "1", "8", "--lengths", "16", "64", "--budget-s", "5",
        "--points", "2", "--optimizer-model", "bert-tiny", "--copy-bytes",
        "1048576", "--energy-seconds", "1", "--shapes", "2x16",
        "--attentions", "materialised", "--no-compile", "--rounds", "1",
        "--steps", "1"]


def reference_python():
    """One with Transformers; the present one, without, where there is none."""
    made = subprocess.run([str(HERE / "reference_env.sh")], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=False)
    return made.stdout.strip() if made.returncode == 0 else sys.executable


def call(*arguments):
    """Exit code and output."""
    shown = io.StringIO()
    try:
        with contextlib.redirect_stdout(shown):
            code = gpu_acceptance.main(list(map(str, arguments)))
    except SystemExit as end:
        code = end.code
    return code, shown.getvalue()


class Folder(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name) / "acceptance"

    def tearDown(self):
        self.temporary.cleanup()

    def rows(self):
        _, _, rows = table_of(self.folder)
        return {row["what"]: row for row in rows}


class EndToEnd(Folder):
    def test_everything_on_a_processor(self):
        python = reference_python()
        code, table = call(
            "all", self.folder, "--device", "cpu", "--runs-on", "cpu",
            "--trainfare", TRAINFARE, "--trainer", TRAINER,
            "--python", python, *TINY)
        self.assertIn(code, (0, 1))  # by figures that mean nothing here
        self.assertEqual((self.folder / "acceptance.md").read_text(), table)
        rows = self.rows()
        self.assertIn(" runs", rows["calibration, runs and fit"]["figure"])
        self.assertIn("2 of 2 points",
                      rows["error of unseen points, worst"]["figure"])
        self.assertTrue(rows["predicted before they were measured"]["met"])
        self.assertIn("GB/s",
                      rows["fused Adan, of the copy's bandwidth"]["figure"])
        for name in ADAN:
            self.assertIn(" launches", rows[
                f"Adan {name}: share of the time in which kernels run"][
                    "figure"])
        self.assertTrue(rows["ctest -R trainer.gpu"]["met"],
                        (self.folder / "gpu_test.txt").read_text())
        step = rows["step against Transformers eager, fp32, eager"]["figure"]
        if python == sys.executable:
            self.assertIn("not measured: ", step)
        else:
            self.assertIn("of 1 shapes", step)

        # The points are none of the calibration's, and the seed's alone.
        points = (self.folder / "unseen.plan.jsonl").read_text()
        measured = {(r["workload"]["batch"], r["workload"]["sequence_length"])
                    for r in read_records(
                        self.folder / "calibration.jsonl")}
        for point in map(json.loads, points.splitlines()):
            self.assertNotIn((point["batch"], point["sequence_length"]),
                             measured)
        again = self.folder.with_name("again")
        call("plan", again, "--device", "cpu", "--trainfare", TRAINFARE, *TINY)
        self.assertEqual((again / "unseen.plan.jsonl").read_text(), points)

        # Step by step: points first, then the fit; the table says so.
        call("measure", again, "--trainer", TRAINER, "--runs-on", "cpu",
             "--parts", "unseen", "calibration")
        state = json.loads((again / "run.json").read_text())
        self.assertEqual(set(state["parts"]), {"unseen", "calibration"})
        state["parts"]["unseen"]["started"] = "2000-01-01T00:00:00Z"
        (again / "run.json").write_text(json.dumps(state))
        call("predict", again, "--trainfare", TRAINFARE)
        code, table = call("judge", again)
        self.assertEqual(code, 1)
        self.assertIn("| no, by a fit without them | missed |", table)
        self.assertIn("kernels.jsonl is not there", table)

    def test_without_a_gpu_it_is_skipped(self):
        found = subprocess.run([TRAINER, "devices"], text=True, check=True,
                               stdout=subprocess.PIPE).stdout
        if '"cuda"' in found:
            self.skipTest("there is a GPU here")
        self.folder.mkdir()
        (self.folder / "plan.json").write_text("{}")
        code, shown = call("measure", self.folder, "--trainer", TRAINER)
        self.assertEqual(code, 77)
        self.assertIn("skipped: ", shown)

    def test_a_folder_without_a_plan(self):
        code, _ = call("judge", self.folder)
        self.assertEqual(code, "error: plan.json is not there")

    def test_a_device_that_is_none(self):
        code, _ = call("plan", self.folder, "--trainfare", TRAINFARE,
                       "--device", "h1000", *TINY)
        self.assertIn("unknown device \"h1000\"", code)


def step(request, step_s, **more):
    return {"kind": "step",
            "workload": {**request, "model": {"name": request["model"]}},
            "samples": [{"warmup": True, "step_s": 9},
                        {"warmup": False, "step_s": step_s}], **more}


class Judge(Folder):
    """Of a GPU that nobody has: every record is synthetic."""

    def write(self, name, *records):
        (self.folder / name).write_text(
            "".join(json.dumps(r) + "\n" for r in records))

    def setUp(self):
        super().setUp()
        self.folder.mkdir()
        settings = {**SETTINGS, "made": "2026-01-01T00:00:00Z",
                    "device": "h100_sxm", "precisions": ["bf16"]}
        write_json(self.folder / "plan.json", settings)
        self.points = [{"model": "bert-base-uncased", "batch": b,
                        "sequence_length": 77, "precision": "bf16",
                        "stack": "eager"} for b in (5, 9, 17)]
        self.state = {
            "runs_on": "cuda", "trainer": "trainer 1", "driver": ["name, x"],
            "devices": [{"kind": "cuda", "name": "GPU 0"}],
            "parts": {"calibration": {"runs_s": 270.0, "started": "1"},
                      "unseen": {"started": "2026-01-01T02:00:00Z"},
                      "gpu_test": {"exit_code": 0, "says": "OK"},
                      "kernels": {}, "step_time": {}}}
        self.predict("2026-01-01T01:00:00Z", [0.100, 0.101, 0.098])
        self.write("unseen.jsonl", *(step(p, 0.1) for p in self.points))
        self.write("calibration.jsonl", step(self.points[0], 1.0),
                   {"kind": "error", "message": "too large"})
        self.kernels(fused_s=1.0, for_loop_s=5.5, copy_s=1.0)
        self.write("energy.jsonl", step(
            self.points[0], 1.0, disturbed=True, gpu={"throttled": True},
            energy={"source": "nvml", "energy_j": 600.0, "wall_s": 2.0}))
        self.step_time({"eager": 0.9, "fused": 0.7})

    def predict(self, made, times):
        write_json(self.folder / "predictions.json", {
            "made": made, "fit_s": 20.0, "points": [
                {**p, "step_time_s": t, "step_time_low_s": 0.99 * t,
                 "step_time_high_s": 1.01 * t}
                for p, t in zip(self.points, times)]})

    def kernels(self, fused_s, for_loop_s, copy_s, activity=True):
        # 1e9 parameters, 44 GB an update; copies of 25 GB, 50 GB moved.
        def kernel(time_s, active_s):
            record = {"kind": "kernel", "samples": [{"time_s": time_s}],
                      "kernels": [{"work_items": 5 * 10**8, "launches": 2}]}
            if activity:
                record["activity"] = {"launches": 7, "active_s": active_s}
            return record
        copy = {"kind": "copy", "bytes": 25 * 10**9}
        self.write("kernels.jsonl",
                   {**copy, "samples": [{"time_s": 2 * copy_s}]},
                   kernel(for_loop_s, 1.1), kernel(3.0, 1.0),
                   kernel(1.5, 1.4), kernel(fused_s, 0.9),
                   {**copy, "samples": [{"time_s": copy_s}]})

    def step_time(self, ratios):
        write_json(self.folder / "step_time_bf16.json", {
            "rows": [{"ratio": {k: v - 0.1 for k, v in ratios.items()},
                      "ratio_to_compiled": {"eager": 1.2, "fused": 1.1}},
                     {"ratio": ratios,
                      "ratio_to_compiled": {"eager": 1.3, "fused": 1.0}}]})

    def judged(self):
        write_json(self.folder / "run.json", self.state)
        code, table = call("judge", self.folder)
        return code, table, self.rows()

    def test_all_met(self):
        code, table, rows = self.judged()
        self.assertEqual(code, 0, table)
        figures = {what: row["figure"] for what, row in rows.items()}
        self.assertEqual(figures["calibration, runs and fit"],
                         "270 + 20 s, 1 runs")
        self.assertEqual(figures["error of unseen points, median"],
                         "1.0%, 3 of 3 points")
        self.assertEqual(figures["points inside the 80 % interval"], "2 of 3")
        self.assertEqual(figures["fused Adan, of the copy's bandwidth"],
                         "88.0% (44 of 50 GB/s)")
        self.assertEqual(figures["fused Adan, times the for-loop's speed"],
                         "5.5")
        self.assertEqual(
            figures["Adan for-loop: share of the time in which kernels run"],
            "20.0%, 7 launches, 5500.000 ms (published, V100: 18.48 %)")
        self.assertEqual(
            figures["step against Transformers eager, bf16, fused"],
            "worst 0.70 of 2 shapes (0.60, 0.70)")
        self.assertEqual(figures["step against torch.compile, bf16, fused"],
                         "1.10, 1.00")
        self.assertEqual(
            figures["energy a step, bert-base-uncased 5 x 77, bf16, eager"],
            "600 J, 300 W, 1 steps (nvml)")
        self.assertEqual(
            figures["records of a disturbed or throttled device"], "1 and 1 of "
            "11")
        self.assertIn("Ran on GPU 0; trainer 1;", table)
        self.assertIn("`name, x`", table)

    def test_each_miss_is_one(self):
        misses = {
            "calibration, runs and fit": lambda: self.state["parts"][
                "calibration"].update(runs_s=281.0),
            "error of unseen points, median": lambda: self.predict(
                "2026-01-01T01:00:00Z", [0.104, 0.105, 0.1]),
            "error of unseen points, worst": lambda: self.predict(
                "2026-01-01T01:00:00Z", [0.100, 0.101, 0.091]),
            "predicted before they were measured": lambda: self.predict(
                "2026-01-01T03:00:00Z", [0.100, 0.101, 0.098]),
            "fused Adan, of the copy's bandwidth": lambda: self.kernels(
                1.1, 5.5, 1.0),
            "fused Adan, times the for-loop's speed": lambda: self.kernels(
                1.0, 4.9, 1.0),
            "step against Transformers eager, bf16, eager":
                lambda: self.step_time({"eager": 1.01, "fused": 0.7}),
            "step against Transformers eager, bf16, fused":
                lambda: self.step_time({"eager": 0.9, "fused": 0.81}),
            "ctest -R trainer.gpu": lambda: self.state["parts"][
                "gpu_test"].update(exit_code=1, says="FAILED"),
        }
        for what, spoil in misses.items():
            with self.subTest(what):
                self.tearDown()
                self.setUp()
                spoil()
                code, table, rows = self.judged()
                self.assertEqual(code, 1)
                missed = [w for w, row in rows.items() if row["met"] is False]
                self.assertEqual(missed, [what], table)

    def test_what_was_not_measured_is_not_met(self):
        self.kernels(1.0, 5.5, 1.0, activity=False)
        self.state["parts"]["kernels"]["no_activity"] = "CUPTI is for root"
        self.state["parts"]["step_time"]["missing"] = "no torch"
        del self.state["parts"]["gpu_test"]
        # One point did not run: the figures of the others are no answer.
        self.write("unseen.jsonl", *(step(p, 0.1) for p in self.points[:2]))
        (self.folder / "energy.jsonl").unlink()
        code, table, rows = self.judged()
        self.assertEqual(code, 1)
        self.assertIn("| not measured: CUPTI is for root |  |", table)
        self.assertIn("| <= 0.8 | not measured: no torch | not measured |",
                      table)
        self.assertIn("| passes | not measured: it did not run |", table)
        self.assertIn("| energy a step |  | not measured: energy.jsonl is not "
                      "there |", table)
        self.assertFalse(rows["error of unseen points, median"]["met"])
        for name in ("unseen", "calibration"):
            (self.folder / f"{name}.jsonl").unlink()
        _, table, _ = self.judged()
        self.assertIn("not measured: unseen.jsonl is not there", table)
        self.assertIn("not measured: calibration.jsonl is not there", table)


if __name__ == "__main__":
    TRAINER, TRAINFARE = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
