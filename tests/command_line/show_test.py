"""`list`, `show` and what a shell completes."""

import shlex
import subprocess

import program
from program import Case, PROGRAM


class Show(Case):
    def test_what_is_shown_is_the_same_question(self):
        device = ("--device", "h100_sxm")
        for scenario in ("emotion_bert_base", "llama_8b_lora", "imdb_bert_base"):
            with self.subTest(scenario):
                shown = self.write("shown.yaml", self.good("show", scenario).stdout)
                asked, again = (
                    self.json_of("predict", name, *device)
                    for name in (scenario, shown)
                )
                self.assertEqual(asked["predictions"], again["predictions"])
                for key, value in asked["scenario"].items():
                    if key != "name":  # of the file
                        self.assertEqual(again["scenario"][key], value, key)

    def test_flags_are_part_of_what_is_shown(self):
        file = self.path("all.yaml")
        flags = ("--set", "stack=eager", "--batch", "4", "--seq", "48",
                 "--precision", "fp32", "--start-up", "90s")  # fmt: skip
        self.assertEqual(
            self.good("show", "emotion_bert_base", *flags, "--output", file).stdout,
            "")  # fmt: skip
        device = ("--device", "a100_sxm4_80gb")
        asked = self.json_of("predict", "emotion_bert_base", *flags, *device)
        again = self.json_of("predict", file, *device)
        self.assertEqual(asked["predictions"], again["predictions"])
        self.assertEqual(again["predictions"][0]["run"]["start_up_s"], 90)
        text = self.good("show", file).stdout
        self.assertIn("  layers: 12\n", text)
        self.assertIn("# 109486854 parameters\n", text)
        self.refused(1, "all.yaml: expected a new file, this one is there",
                     "show", "emotion_bert_base", "--output", file)  # fmt: skip
        self.refused(2, "show: give one of each, it shows one job",
                     "show", file, "--batch", "4,8")  # fmt: skip
        self.assertIn("s.yaml:1:1: missing key",
                      self.run_it("show", self.write("s.yaml", "epochs: 1\n"))
                      .stderr)  # fmt: skip


class Completion(Case):
    def words_behind(self, *line):
        """What bash offers at the end of a command line."""
        words = " ".join(shlex.quote(word) for word in line)
        script = (
            f"source <({shlex.quote(PROGRAM)} completion bash)\n"
            f'trainfare() {{ {shlex.quote(PROGRAM)} "$@"; }}\n'
            f"COMP_WORDS=({words}); COMP_CWORD={len(line) - 1}\n"
            '_trainfare; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        result = subprocess.run(
            ["bash", "-c", script],
            capture_output=True,
            text=True,
            env=self.environment(),
            timeout=60,
            check=True,
        )
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def test_bash_knows_commands_options_and_names(self):
        self.assertEqual(self.words_behind("trainfare", "pred"), ["predict"])
        self.assertEqual(
            self.words_behind("trainfare", "predict", "--len"), ["--length"]
        )
        self.assertEqual(
            self.words_behind("trainfare", "recommend", "--format", "js"), ["json"]
        )
        self.assertEqual(
            self.words_behind("trainfare", "predict", "--device", "rtx_409"),
            ["rtx_4090", "rtx_4090_d"],
        )
        self.assertIn(
            "llama-3.1-8b",
            self.words_behind("trainfare", "predict", "--model", "llama-3"),
        )

    def test_values_are_those_that_help_names(self):
        for line, expected in (
            (("predict", "emo"), ["emotion_bert_base"]),
            (("recommend", "--spot", "squ"), ["squad_bert_large"]),
            (("show", "llama_8b_l"), ["llama_8b_lora"]),
            (("calibrate", "--for", "imdb"), ["imdb_bert_base"]),
            (("recommend", "--objective", "time_"),
             ["time_cost_energy", "time_energy_cost"]),
            (("predict", "--precision", "bf16,fp"),
             ["bf16,fp32", "bf16,fp16", "bf16,fp8", "bf16,fp4"]),
            (("validate", "--protocol", "leave-s"), ["leave-source-out"]),
            (("validate", "--protocol", "leave-h"), ["leave-hosts-out"]),
            (("validate", "--repeats", ""), ["each", "median"]),
            (("recommend", "--cloud", "la"), ["lambda"]),
            (("recommend", "--color", "al"), ["always"]),
            (("list", "sc"), ["scenarios"]),
            (("prices", "im"), ["import"]),
            (("prices", "import", "--da"), ["--date"]),
            (("predict", "--batch", "emo"), []),
        ):
            with self.subTest(line):
                self.assertEqual(self.words_behind("trainfare", *line), expected)
        helped = " ".join(self.good("recommend", "--help").stdout.split())
        offered = self.words_behind("trainfare", "recommend", "--objective", "")
        self.assertIn("|".join(offered), helped)

    def test_each_shell_has_one(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("predict", self.good("completion", shell).stdout)
        self.refused(
            1,
            'completion: expected bash, zsh or fish, got "cmd"',
            "completion",
            "cmd",
        )


if __name__ == "__main__":
    program.main()
