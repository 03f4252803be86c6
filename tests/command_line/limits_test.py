"""`--fail-if`."""

import os

import program
from program import Case, TABLE_HEADER, table_row


class Limits(Case):
    def passed(self, complaint, *command):
        """Exit code 4, and all that is written without a limit."""
        result = self.run_it(*command, "--quiet")
        self.assertEqual(result.returncode, 4)
        self.assertRegex(result.stderr, f"^trainfare: --fail-if: {complaint}\n$")
        at = command.index("--fail-if")
        without = (*command[:at], *command[at + 2:], "--quiet")
        self.assertEqual(result.stdout, self.good(*without).stdout)

    def test_predict(self):
        asked = ("predict", "emotion_bert_base", "--instance", "aws/g5.xlarge")
        self.good(*asked, "--fail-if", "cost_usd>100")
        self.good(*asked, "--fail-if", "run_time_s>4h", "--fail-if", "mfu<0.1%")
        self.passed(r"cost_usd is 0\.\d+, limit cost_usd>0\.001",
                    *asked, "--fail-if", "cost_usd>0.001")  # fmt: skip
        self.passed(r"run_time_s is \d+\.\d, limit run_time_s > 1 min",
                    *asked, "--fail-if", "run_time_s > 1 min")  # fmt: skip
        self.passed(
            r"batch of predictions/1 is 16\.00, limit batch>8",
            *asked, "--batch", "8,16", "--fail-if", "batch>8")  # fmt: skip
        # Nobody rents this device by itself: no price, no cost.
        self.passed(r"cost_usd is not known, limit cost_usd>9999",
                    "predict", "emotion_bert_base", "--device", "h100_sxm",
                    "--fail-if", "cost_usd>9999")  # fmt: skip
        grade = self.json_of(*asked)["predictions"][0]["grade"]
        self.refused(1, f'--fail-if: expected a figure, "grade" is "{grade}"',
                     *asked, "--fail-if", "grade>1")  # fmt: skip
        said = self.run_it(*asked, "--fail-if", "cots_usd>1").stderr
        self.assertIn('unknown figure "cots_usd"; did you mean "cost_usd"', said)

    def test_recommend_holds_the_choice_to_it(self):
        asked = ("recommend", "emotion_bert_base")
        chosen = self.json_of(*asked)["candidates"][0]
        cost = chosen["cost_usd"]
        self.good(*asked, "--fail-if", f"cost_usd>{cost}")
        self.passed(r"cost_usd is .*", *asked, "--fail-if", f"cost_usd>={cost}")
        self.passed(r"run_time_s is .*", *asked, "--fail-if", "run_time_s>1s")
        late = self.run_it(*asked, "--deadline", "1ms", "--fail-if", "cost_usd>1")
        self.assertEqual(late.returncode, 3)

    def test_diff(self):
        files = []
        for batch in ("8", "16"):
            files.append(self.path(f"{batch}.json"))
            self.good("predict", "emotion_bert_base", "--device", "h100_sxm",
                      "--batch", batch, "--export", files[-1])  # fmt: skip
        self.good("diff", *files, "--fail-if", "run_time_percent>5%")
        self.passed(r"step_time_percent is \d+\.\d+, limit .*",
                    "diff", *files, "--fail-if", "step_time_percent>1")  # fmt: skip
        self.passed(r"cost_percent is not known, limit .*",
                    "diff", *files, "--fail-if", "cost_percent>1")  # fmt: skip

    def test_what_moved_since_a_baseline(self):
        saved = self.path("before.json")
        asked = ("predict", "emotion_bert_base", "--instance", "aws/g5.xlarge")
        self.good(*asked, "--export", saved)
        since = (*asked, "--batch", "128", "--baseline", saved)
        self.good(*since, "--fail-if", "memory_percent>900%")
        self.passed(r"memory_percent is \d+\.\d+, limit memory_percent>1%",
                    *since, "--fail-if", "memory_percent>1%")  # fmt: skip
        chosen = self.path("choice.json")
        asked = ("recommend", "emotion_bert_base")
        self.good(*asked, "--discount", "gcp=0.8", "--export", chosen)
        dearer = (*asked, "--baseline", chosen)
        self.passed(r"cost_percent is 25\.00, limit cost_percent>24%",
                    *dearer, "--fail-if", "cost_percent>24%")  # fmt: skip
        self.good(*dearer, "--fail-if", "cost_percent>26%")

    def test_show_holds_the_scenario_to_it(self):
        asked = ("show", "emotion_bert_base", "--set", "batch=8")
        parameters = self.json_of(
            "predict", "emotion_bert_base", "--device", "l4")["scenario"]["parameters"]
        self.good(*asked, "--fail-if", f"parameters>{parameters}")
        file = self.path("kept.yaml")
        result = self.run_it(*asked, "--output", file, "--fail-if",
                             f"parameters>={parameters}")  # fmt: skip
        self.assertEqual((result.returncode, result.stdout), (4, ""))
        self.assertRegex(result.stderr,
                         rf"^trainfare: --fail-if: parameters is {parameters}, .*\n$")
        with open(file, encoding="utf-8") as text:
            self.assertEqual(text.read(), self.good(*asked).stdout)
        self.assertEqual(self.run_it(*asked, "--fail-if", "batch>4").returncode, 4)
        self.good(*asked, "--fail-if", "batch>8")
        said = self.run_it(*asked, "--output", self.path("none.yaml"),
                           "--fail-if", "paramters>1")  # fmt: skip
        self.assertEqual(said.returncode, 1)
        self.assertIn('unknown figure "paramters"; did you mean "parameters"', said.stderr)
        self.assertFalse(os.path.exists(self.path("none.yaml")))

    def test_every_other_command_that_answers(self):
        self.passed(r"memory_bytes of rows/\d+ is .*; and \d+ more",
                    "list", "devices", "--fail-if", "memory_bytes>1GiB")  # fmt: skip
        self.good("list", "devices", "h100_sxm", "--fail-if", "memory_bytes>1TB")
        runs = self.write("runs.csv", TABLE_HEADER + "".join(
            table_row("t4", batch, 128, "fp16", 10.0 * batch)
            for batch in (4, 8, 16, 32)))  # fmt: skip
        fit = ("calibrate", "--from", runs, "--device", "t4",
               "--output", self.path("fit.yaml"), "--quiet")  # fmt: skip
        self.good(*fit, "--fail-if", "leave_one_out_error>500%")
        self.assertEqual(
            self.run_it(*fit, "--fail-if", "leave_one_out_error>=0").returncode, 4)
        saved = self.path("again.json")
        self.good("predict", "emotion_bert_base", "--device", "l4", "--export", saved)
        self.good("replay", saved, "--fail-if", "run_time_s>1000h")
        again = self.run_it("replay", saved, "--fail-if", "run_time_s>1s")
        self.assertEqual(again.returncode, 4)
        with open(saved, encoding="utf-8") as file:
            self.assertEqual(again.stdout, file.read())


if __name__ == "__main__":
    program.main()
