"""Conventions of what an answer says: the choice, how sure it is, what it warns of.

    python3 answer_conventions_test.py PROGRAM [SUITE]

docs/guide/conventions.md says what each number is.
"""

import csv
import io
import json
import os
import pathlib
import re

import json_schema
import program
from asked import JOB, WINNER
from program import TABLE_HEADER, Case, table_row

ROOT = pathlib.Path(__file__).resolve().parents[2]


class AnswerConventions(Case):
    def test_05_the_choice_is_explained(self):
        whole = self.json_of(*WINNER)
        self.assertEqual(sum(c["chosen"] for c in whole["candidates"]), 1)
        for candidate in whole["candidates"]:
            if not candidate["chosen"]:
                self.assertTrue(candidate["reason"])
        reasons = " ".join(c["reason"] for c in self.json_of(
            *WINNER, "--deadline", "5min")["candidates"] if c["reason"])
        for words in ("% dearer", "misses the deadline by", "no price"):
            self.assertIn(words, reasons)
        self.assertIn("does not fit memory by", self.good(
            "recommend", "squad_bert_large", "--batch", "64", "--all").stdout)

    def test_06_prices_say_what_they_are(self):
        done = self.good(*WINNER, "--format", "json")
        self.assertRegex(" ".join(json.loads(done.stdout)["notes"]),
                         r"prices: on demand, aws \d{4}-\d\d-\d\d.*excludes ")
        self.assertRegex(done.stderr, r"warning: the price of \S+ is \d+ days old")
        price = self.json_of(*JOB)["price"]
        less = self.json_of(*JOB, "--discount", "AWS=0.5")["price"]
        self.assertEqual(less["list_price_share"], 0.5)
        self.assertAlmostEqual(less["price_usd_per_hour"],
                               price["price_usd_per_hour"] / 2)
        text = self.good(*WINNER, "--discount", "aws=0.5,gcp=0.9").stdout
        self.assertIn(" times 0.5", text)
        self.assertIn("aws/", text.splitlines()[0])
        for bad, words in (("aws", "such as aws=0.8"), ("aws=2", "at most 1"),
                           ("aws=0", "above 0"), ("asw=0.5", 'mean "aws"'),
                           ("aws=0.5,aws=0.6", "second of its cloud")):
            done = self.run_it(*WINNER, "--discount", bad)
            self.assertEqual(done.returncode, 1, bad)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_07_a_range_not_a_number(self):
        def ranges(figures, stems):
            for stem, unit in stems:
                best, low, high = (figures[key] for key in (
                    f"{stem}_{unit}", f"{stem}_low_{unit}", f"{stem}_high_{unit}"))
                self.assertLessEqual(low, best, stem)
                self.assertLessEqual(best, high, stem)
                # A bill is rounded up to what a cloud counts, all the rest is open.
                self.assertTrue(low < best < high or stem == "cost", stem)

        stems = (("step_time", "s"), ("run_time", "s"), ("energy", "j"),
                 ("memory", "bytes"))
        (job,) = self.json_of(*JOB)["predictions"]
        ranges(job, (*stems, ("cost", "usd")))
        self.assertEqual(job["interval"], 0.8)
        for candidate in self.json_of(*WINNER)["candidates"]:
            estimate = candidate["estimate"]
            if estimate and estimate["fits"] and candidate["cost_usd"]:
                ranges(candidate, (("cost", "usd"),))
                ranges(estimate, [stem for stem in stems if stem[0] != "energy"
                                  or estimate["energy_low_j"] is not None])
        (row,) = csv.DictReader(io.StringIO(
            self.good(*JOB, "--format", "csv").stdout))
        ranges({key: float(value) for key, value in row.items()
                if re.fullmatch(r"[\d.]+", value)},
               (("step_time", "s"), ("memory", "bytes"), ("cost", "usd")))
        text = self.good(*JOB).stdout
        self.assertRegex(text.splitlines()[0], r"80 % interval \S+ min.* \.\. ")
        costs = r"\$[\d.]+ \(80 % interval \$[\d.]+ \.\. \$[\d.]+\)"
        self.assertRegex(
            self.good(*WINNER).stdout.splitlines()[0],
            r"\(80 % intervals \$[\d.]+ \.\. \$[\d.]+, \d+ min .* \.\. \d+ min")
        said = text.splitlines()
        self.assertRegex(said[0], "costs " + costs)
        self.assertRegex(said[0], r"; [\d.]+ (J|\w?Wh) \([\d.]+ \.\. [\d.]+\)")
        self.assertRegex(said[0], r"; [\d.]+ GiB a device \([\d.]+ GiB \.\. ")
        # Each of step, memory, energy and cost has its own interval.
        self.assertEqual(said[4].count("80 % from"), 4)
        memory = text.split("memory of one device")[1]
        self.assertRegex(memory, r"80 % from +[\d.]+ GiB\nto +[\d.]+ GiB")
        # What fits by its figure alone is warned of.
        tight = json.loads(self.good(
            "predict", "squad_bert_large", "--device", "t4", "--batch", "8",
            "--export", "-").stdout)
        (job,) = tight["predictions"]
        self.assertEqual(
            job["memory_high_bytes"] > job["memory_capacity_bytes"],
            "memory_in_interval" in [w["code"] for w in tight["warnings"]])
        loose = self.json_of(*JOB)
        self.assertNotIn("memory_in_interval", [w["code"] for w in loose["warnings"]])

    def test_07_how_likely_the_choice_is_right(self):
        whole = self.json_of(*WINNER, "--deadline", "6min")
        odds = [c["best_probability"] for c in whole["candidates"]
                if c["best_probability"] is not None]
        # Somebody meets the limits in nearly every draw, and one is best.
        self.assertLessEqual(sum(odds), 1 + 1e-9)
        self.assertGreater(sum(odds), 0.9)
        for candidate in whole["candidates"]:
            if candidate["best_probability"] is not None:
                self.assertLessEqual(candidate["best_probability"],
                                     candidate["limits_probability"])
        self.assertEqual(whole["chosen"]["best_probability"],
                         whole["candidates"][0]["best_probability"])
        self.assertRegex(" ".join(whole["notes"]),
                         r"cheapest with a probability of \d+ % and meets the "
                         r"limits with \d+ %")
        self.assertEqual(whole["seed"], 1)
        # What would decide it, where that is worth more than it costs.
        asked = ("recommend", "imdb_bert_base", "--cloud", "azure",
                 "--set", "epochs=1000")
        whole = self.json_of(*asked)
        decides = whole["next_calibration"]
        self.assertGreater(decides["best_probability"],
                           whole["chosen"]["best_probability"])
        self.assertRegex(
            " ".join(self.good(*asked).stdout.split()),
            rf"one calibration on {decides['instance']} \(\$[\d.]+, 5 min \d+ s\) "
            r"would raise the odds of the right choice from \d+ to \d+ %")
        whole = self.json_of(*WINNER)
        self.assertIsNone(whole["next_calibration"])
        # Without limits all meet them.
        self.assertEqual({c["limits_probability"]
                          for c in whole["candidates"]}, {1, None})
        priced = [c for c in whole["candidates"] if c["cost_usd"] and not (
            c["reason"] or "").startswith(("misses", "over"))]
        for one in priced:
            beaten = any(
                other["cost_usd"] < one["cost_usd"]
                and other["estimate"]["run_time_s"] < one["estimate"]["run_time_s"]
                for other in priced)
            self.assertEqual(beaten and one["on_front"], False)
        self.assertTrue(whole["candidates"][0]["on_front"])

    def test_08_warnings_have_codes_and_say_what_to_do(self):
        known = json_schema.load("common.1.schema.json")["$defs"]["answer"][
            "properties"]["warnings"]["items"]["properties"]["code"]["enum"]
        self.assertEqual(known, sorted(set(known)))
        page = (ROOT / "docs" / "guide" / "commands.md").read_text(encoding="utf-8")
        for code in known:
            self.assertIn(f"`{code}`", page)

        def codes(*command, code=0, **options):
            done = self.run_it(*command, "--format", "json", **options)
            self.assertEqual(done.returncode, code, done.stderr)
            whole = json.loads(done.stdout)
            for warning in whole["warnings"]:
                # Whatever standard error and the notes warn of.
                self.assertIn(warning["message"],
                              done.stderr + "\n".join(whole["notes"]))
            for line in done.stderr.splitlines():
                if line.startswith("trainfare: warning: "):
                    self.assertIn(line.removeprefix("trainfare: warning: "),
                                  [w["message"] for w in whole["warnings"]])
            return {w["code"]: w["message"] for w in whole["warnings"]}

        self.assertIn("--start-up", codes(*JOB)["start_up_assumed"])
        self.assertNotIn("start_up_assumed", codes(*JOB, "--start-up", "0"))
        self.assertIn("calibrate", codes(*JOB)["source_unseen"])
        self.assertIn("prices import", codes(*WINNER)["price_old"])
        self.assertNotIn("price_old", codes(*WINNER, "--now", "2026-07-21T00:00:00Z"))
        self.assertIn("run.compile_per_shape", codes(
            "predict", "emotion_bert_base", "--device", "tpu_v3")[
                "compile_time_unknown"])
        self.assertIn("--network", codes(
            "predict", "emotion_bert_base", "--device", "h100_sxm", "--hosts",
            "2")["network_unnamed"])
        self.assertIn("cannot_run", codes(
            "predict", "emotion_bert_base", "--device", "t4,l4"))
        self.assertIn("deadline_in_interval", codes(*WINNER, "--deadline", "6min"))
        whole = (ROOT / "scenarios/emotion_bert_base.yaml").read_text(encoding="utf-8")
        for command in ("predict", "recommend"):
            for text, cut in ((whole, False), (whole.rstrip("\n"), True)):
                job = self.write("job.yaml", text)
                known = codes(command, job, *(
                    ("--device", "a10g") if command == "predict" else ()))
                self.assertEqual("file_cut_off" in known, cut)
        os.mkdir(self.path("fits"))
        self.write("fits/a10g.yaml", "device: a10g\nfit: none\n")
        self.assertIn("a10g.yaml", codes(*JOB)["fit_unreadable"])

    def test_15_two_answers_compared(self):
        files = []
        for batch in ("32", "64"):
            files.append(self.path(batch + ".json"))
            self.good(*JOB, "--batch", batch, "--export", files[-1])
        (change,) = self.json_of("diff", *files)["changes"]
        self.assertNotEqual(change["change"]["run_time_percent"], 0)
        self.assertIn("nothing moved", self.good("diff", files[0], files[0]).stdout)
        # The same beside an answer.
        whole = self.json_of(*JOB, "--batch", "64", "--baseline", files[0])
        self.assertEqual(whole["baseline"]["changes"][0]["change"], change["change"])
        text = self.good(*JOB, "--batch", "64", "--baseline", files[0]).stdout
        self.assertIn(f"since {files[0]}: ", text)
        saved = self.path("winner.json")
        self.good(*WINNER, "--export", saved)
        moved = self.json_of(*WINNER, "--objective", "time", "--baseline", saved)
        self.assertTrue(moved["baseline"]["choice"]["moved"])
        self.assertEqual(moved["baseline"]["choice"]["after"]["instance"],
                         moved["chosen"]["instance"])
        bad = self.run_it(*JOB, "--baseline", saved)
        self.assertEqual((bad.returncode, bad.stdout), (1, ""))
        self.assertIn("this answer: schema: expected trainfare.recommendation/1",
                      bad.stderr)

    def test_16_seeds_are_stored(self):
        rows = self.write("a.csv", TABLE_HEADER + "".join(
            table_row(batch=batch) for batch in (4, 8, 16)))
        asked = ("validate", rows, "--protocol", "one-run-per-device")
        self.assertEqual(self.json_of(*asked)["seed"], 1)
        self.assertEqual(self.json_of(*asked, "--seed", "7")["seed"], 7)
        self.assertEqual(self.good(*asked).stdout, self.good(*asked).stdout)
        saved = self.path("saved.json")
        self.good(*WINNER, "--export", saved)
        with open(saved, encoding="utf-8") as file:
            self.assertEqual(self.good("replay", saved).stdout, file.read())


if __name__ == "__main__":
    program.main()
