"""`diff`: two answers beside each other."""

import csv
import io
import json

import program
from program import Case


class Diff(Case):
    def saved(self, name, *command):
        file = self.path(name)
        self.good(*command, "--quiet", "--export", file)
        return file

    def test_the_same_answer_twice_moves_nothing(self):
        for command in (
            ("predict", "emotion_bert_base", "--device", "h100_sxm"),
            ("recommend", "emotion_bert_base", "--cloud", "aws"),
        ):
            file = self.saved("a.json", *command)
            diff = self.json_of("diff", file, file)
            self.assertEqual(diff["settings"], [])
            self.assertEqual(diff["only_before"] + diff["only_after"], [])
            for change in diff["changes"]:
                self.assertEqual(change["before"], change["after"])
                self.assertLessEqual(set(change["change"].values()), {0, None})
            self.assertIn("moved", self.good("diff", file, file).stdout)

    def test_percent_of_what_it_was(self):
        asked = ("predict", "emotion_bert_base", "--instance", "aws/g5.xlarge")
        before = self.saved("a.json", *asked, "--batch", "8,16")
        after = self.saved("b.json", *asked, "--batch", "16", "--set",
                           "stack=eager")  # fmt: skip
        diff = self.json_of("diff", before, after)
        self.assertEqual(
            [(s["key"], s["before"], s["after"]) for s in diff["settings"]],
            [("scenario.stack", "compiled", "eager")])  # fmt: skip
        (change,) = diff["changes"]
        self.assertEqual([c["batch"] for c in diff["only_before"]], [8])
        with open(before, encoding="utf-8") as file:
            was = json.load(file)["predictions"][1]
        with open(after, encoding="utf-8") as file:
            now = json.load(file)["predictions"][0]
        for key, percent in (
            ("step_time_s", "step_time_percent"),
            ("run_time_s", "run_time_percent"),
            ("cost_usd", "cost_percent"),
            ("energy_j", "energy_percent"),
            ("memory_bytes", "memory_percent"),
        ):
            self.assertEqual(change["before"][key], was[key])
            self.assertEqual(change["after"][key], now[key])
            self.assertAlmostEqual(
                change["change"][percent], 100 * (now[key] / was[key] - 1)
            )
        self.assertNotEqual(change["change"]["cost_percent"], 0)
        text = self.good("diff", before, after).stdout
        # The unit that predict has for it.
        self.assertNotIn("kWh", text)
        self.assertRegex(text, r"energy +[\d.]+ (J|Wh) +[\d.]+ (J|Wh)")
        self.assertIn(
            f"step {change['change']['step_time_percent']:+.1f} %", text)
        rows = list(csv.DictReader(io.StringIO(
            self.good("diff", before, after, "--format", "csv").stdout)))
        self.assertEqual(len(rows), 1)
        self.assertEqual(float(rows[0]["cost_after_usd"]), now["cost_usd"])

    def test_one_device_beside_another(self):
        asked = ("predict", "emotion_bert_base", "--batch", "8,16", "--device")
        diff = self.json_of(
            "diff",
            self.saved("a.json", *asked, "a100_sxm4_80gb"),
            self.saved("b.json", *asked, "h100_sxm"),
        )
        self.assertEqual(
            [(c["before"]["device"], c["after"]["device"], c["after"]["batch"])
             for c in diff["changes"]],
            [("a100_sxm4_80gb", "h100_sxm", 8), ("a100_sxm4_80gb", "h100_sxm", 16)],
        )  # fmt: skip
        for change in diff["changes"]:
            self.assertLess(change["change"]["step_time_percent"], 0)
            self.assertIsNone(change["change"]["cost_percent"])

    def test_the_choice_moves(self):
        asked = ("recommend", "emotion_bert_base", "--objective")
        cheap = self.saved("cheap.json", *asked, "cost")
        fast = self.saved("fast.json", *asked, "time")
        choice = self.json_of("diff", cheap, fast)["choice"]
        self.assertTrue(choice["moved"])
        self.assertGreater(choice["change"]["cost_percent"], 0)
        self.assertLess(choice["change"]["run_time_percent"], 0)
        text = self.good("diff", cheap, fast).stdout
        self.assertIn(
            f"the choice moves from {choice['before']['instance']}", text)
        self.assertLess(len(text.splitlines()), 40)
        # Nothing can be recommended within a millisecond.
        late = self.path("late.json")
        self.run_it("recommend", "emotion_bert_base", "--deadline", "1ms",
                    "--export", late)  # fmt: skip
        choice = self.json_of("diff", cheap, late)["choice"]
        self.assertIsNone(choice["after"])
        self.assertTrue(choice["moved"])

    def test_what_is_no_answer(self):
        good = self.saved("a.json", "predict", "emotion_bert_base", "--device",
                          "h100_sxm")  # fmt: skip
        self.saved("r.json", "recommend", "emotion_bert_base")
        schema = ("trainfare.prediction/1 or trainfare.recommendation/1, as "
                  "predict and recommend --format json write it")  # fmt: skip
        with open(good, encoding="utf-8") as file:
            answer = json.load(file)
        odd = {**answer, "predictions": [{**answer["predictions"][0],
                                          "cost_usd": "much"}]}  # fmt: skip
        none = {**answer, "predictions": []}
        for name, text, message in (
            ("b.json", None, "b.json: cannot be opened: No such file or "
             "directory"),
            ("b.json", "[]", "b.json: expected an object, got []"),
            ("b.json", "{}", f"b.json: schema: expected {schema}, got nothing"),
            ("b.json", '{"schema": "x/1"}',
             f'b.json: schema: expected {schema}, got "x/1"'),
            ("b.json", json.dumps(odd),
             'b.json: predictions[0].cost_usd: expected a number, got "much"'),
            ("b.json", json.dumps(none),
             "b.json: predictions: expected at least one answer, got []"),
            ("r.json", None,
             "r.json: schema: expected trainfare.prediction/1 as in a.json, "
             "got trainfare.recommendation/1"),
        ):  # fmt: skip
            with self.subTest(message):
                file = self.path(name) if text is None else self.write(name, text)
                self.refused(1, message, "diff", good, file)
        self.assertEqual(self.run_it("diff", good).returncode, 2)
        cut = self.write("cut.json", json.dumps(answer)[:200])
        result = self.run_it("diff", good, cut)
        self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1))


if __name__ == "__main__":
    program.main()
