"""What a terminal shows: no line beyond its width, on either stream.

    python3 terminal_test.py PROGRAM [SUITE]

Needs nothing but the standard library. Runs see no fit of whoever runs them.
"""

import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unicodedata
import unittest

import pseudo_terminal
import skipping

PROGRAM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""
ROOT = pathlib.Path(__file__).resolve().parents[2]
NOW = "1795392000"  # 2026-11-23, before shipped prices are old
LATER = "1827000000"  # when they are
SCENARIOS = sorted(path.stem for path in (ROOT / "scenarios").glob("*.yaml"))
RUNS = "runs.csv"


def columns(line):
    """How many columns a terminal takes for it."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF"
               else 0 if unicodedata.combining(c) else 1 for c in line)  # fmt: skip


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = self._folder.name
        # By a short name: a path is not broken, wherever the checkout is.
        os.symlink(ROOT / "docs" / "guide" / "runs.csv", self.path("runs.csv"))
        os.symlink(ROOT / "scenarios" / "published", self.path("published"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def tearDown(self):
        self._folder.cleanup()

    def environment(self, **more):
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME")}
        return {**kept, "TRAINFARE_FITS": self.path("fits"),
                "XDG_CONFIG_HOME": self.path("config"),
                "SOURCE_DATE_EPOCH": NOW, "TERM": "xterm", "NO_COLOR": "1",
                **more}  # fmt: skip

    def shown(self, *arguments, width=80, **environment):
        """All that a terminal of so many columns gets, of both streams."""
        text, self.code = pseudo_terminal.shown(
            [PROGRAM, *arguments], columns=width, folder=self.folder,
            environment=self.environment(**environment))  # fmt: skip
        return text.decode("utf-8").replace("\r\n", "\n")


class Width(Case):
    def fits(self, *arguments, codes=(0,), width=80, **environment):
        text = self.shown(*arguments, width=width, **environment)
        with self.subTest(" ".join(arguments), width=width):
            self.assertIn(self.code, codes, text)
            self.assertTrue(text)
            # A line of progress is drawn over the one before.
            drawn = re.split("[\r\n]", text)
            long = [line for line in drawn if columns(line) > width]
            self.assertEqual(long, [])
        return text

    def both(self, *arguments, **options):
        for width in (80, 60):
            self.fits(*arguments, width=width, **options)

    def test_recommend(self):
        for scenario in SCENARIOS:
            self.both("recommend", scenario, SOURCE_DATE_EPOCH=LATER)
        asked = ("recommend", "llama_8b_lora")
        for more in (
            ("--spot",),
            ("--all",),
            ("--global-batch", "64"),
            ("--batch", "1,2,4", "--precision", "bf16,fp16"),
            ("--also", "groq_lpu,cerebras_wse2"),
            ("--objective", "time_cost_energy", "--top", "30"),
        ):
            self.both(*asked, *more)
        self.both("recommend", "emotion_bert_base", "--deadline", "1ms", codes=(3,))

    def test_predict(self):
        for scenario in SCENARIOS:
            self.both("predict", scenario, "--device", "h100_sxm", codes=(0, 1, 3))
        for device in ("trainium1", "tpu_v3", "cerebras_wse2", "gaudi"):
            self.both("predict", "llama_8b_lora", "--device", device, codes=(0, 1, 3))
        self.both("predict", "llama_8b_fsdp", "--instance", "aws/p5.48xlarge",
                  "--hosts", "2", "--set", "parallel.data=16")  # fmt: skip
        self.both("predict", "emotion_bert_base", "--batch", "8,32", "--seq",
                  "32,128", "--device", "a100_sxm4_80gb,l4", "--precision",
                  "fp32,bf16")  # fmt: skip
        self.both("predict", "llama_8b_lora", "--device", "rtx_4090",
                  "--largest", "batch", codes=(0, 3))  # fmt: skip

    def test_lists(self):
        for what in ("devices", "instances", "models", "fits", "scenarios",
                     "prices", "keys", "parameters"):  # fmt: skip
            self.both("list", what)
        self.both("list", "devices", "nothing", "has", "these")

    def test_validate(self):
        self.both("validate", RUNS)
        self.both("validate", RUNS, "--protocol", "leave-one-out", "--repeats",
                  "median", "--group-by", "model")  # fmt: skip
        self.both("validate", "published")

    def test_what_is_written_down(self):
        for scenario in SCENARIOS:
            text = self.shown("show", scenario)
            self.assertEqual(self.code, 0)
            for line in text.split("\n"):
                # Only what YAML has no other form for stays long: one text.
                if columns(line) > 80:
                    self.assertNotIn(", ", re.sub('"[^"]*"', "", line))
                    self.assertFalse(line.startswith("#"), line)
        self.both("init", "--model", "llama-3.1-8b", "--samples", "10000",
                  "--length", "2048")  # fmt: skip

    def test_the_rest_that_answers(self):
        for file, batch in (("a.json", "8"), ("b.json", "16")):
            self.fits("predict", "emotion_bert_base", "--device", "h100_sxm",
                      "--batch", batch, "--export", file)  # fmt: skip
        self.both("diff", "a.json", "b.json")
        self.both("predict", "emotion_bert_base", "--device", "l4",
                  "--baseline", "a.json")  # fmt: skip
        self.fits("recommend", "emotion_bert_base", "--export", "c.json")
        self.both("recommend", "imdb_bert_base", "--baseline", "c.json")
        for width in (80, 60):
            self.fits("calibrate", "--from", RUNS, "--device", "v100_sxm2_32gb",
                      "--output", f"fit{width}.yaml", width=width)  # fmt: skip
        with open(self.path("trainfare.yaml"), "w", encoding="utf-8") as file:
            file.write("recommend:\n  cloud: [aws, gcp, azure, lambda]\n"
                       "discount: aws=0.8\n")  # fmt: skip
        self.both("config", "show", "--origin")

    def test_errors(self):
        self.both("predict", "emotion_bert_base", "--device", "h100_sxn", codes=(1,))
        self.both("recommend", "emotion_bert_base", "--objective", "x", codes=(1,))
        self.both("list", "nothing", codes=(1,))
        self.both("nothing", codes=(2,))
        self.both(codes=(2,))

    def test_help(self):
        self.both("--help")
        for command in ("calibrate", "predict", "recommend", "validate", "diff",
                        "replay", "list", "import", "init", "show", "prices",
                        "config", "completion", "man"):  # fmt: skip
            self.both(command, "--help")
        self.both("prices", "import", "--help")
        self.both("config", "show", "--help")

    def test_another_width_is_used(self):
        asked = ("recommend", "llama_8b_fsdp")
        narrow, wide = (
            max(columns(line) for line in
                self.fits(*asked, width=width).split("\n"))
            for width in (80, 140))  # fmt: skip
        self.assertGreater(wide, 100)
        self.assertLessEqual(narrow, 80)

    def test_reasons_are_whole(self):
        for scenario in SCENARIOS:
            words = self.fits("recommend", scenario).split()
            self.assertEqual([w for w in words if w.endswith("...")], [])


class Progress(Case):
    """Of a validation that takes one processor some seconds."""

    HEADER = (
        "source,source_file,system_name,device,n_devices,nodes,model,hidden,layers,"
        "heads,intermediate,vocab,seq_len,batch_per_device,grad_accum,precision,"
        "framework,stack_notes,task,metric,value,notes\n")  # fmt: skip

    def setUp(self):
        super().setUp()
        processors = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(processors)})
        self.addCleanup(os.sched_setaffinity, 0, processors)
        if Progress.rows is None:
            Progress.rows = self.enough_rows()
        if not self.rows:
            self.skipTest("validations are over before anybody waits")
        self.write_rows(self.rows)

    rows = None

    def enough_rows(self):
        """As many as take this program long enough here, or none."""
        for rows in (10, 20, 40, 80, 160):
            self.write_rows(rows)
            began = time.monotonic()
            self.run_piped()
            if time.monotonic() - began > 4:
                return rows
        return 0

    def write_rows(self, count):
        points = itertools.product(
            ("t4", "v100_sxm2_16gb", "a10", "l4"), (4, 8, 12, 16, 24, 32, 48, 64),
            (32, 64, 128, 256, 512))  # fmt: skip
        rows = [
            f"test,file,system,{device},1,1,bert-base,768,12,12,3072,30522,{length},"
            f"{batch},1,fp16,PyTorch,,finetune,step_ms,"
            f"{0.02 * batch * length * (1 + 0.1 * (i % 7))},\n"
            for i, (device, batch, length) in enumerate(
                itertools.islice(points, count))
        ]  # fmt: skip
        with open(self.path("many.csv"), "w", encoding="utf-8") as file:
            file.write(self.HEADER + "".join(rows))

    def run_piped(self):
        return subprocess.run(
            [PROGRAM, *self.asked], capture_output=True, text=True, check=True,
            env=self.environment(), cwd=self.folder)  # fmt: skip

    asked = ("validate", "many.csv", "--protocol", "leave-one-out")

    def test_a_long_validation_says_how_far_it_is(self):
        text = self.shown(*self.asked)
        self.assertEqual(self.code, 0, text)
        drawn = text.split("\r")
        pattern = rf"\d+ of {self.rows} fits(, about (\d+ min )?\d+ s left|, finishing)? *"
        lines = [line for line in drawn if re.fullmatch(pattern, line)]
        self.assertGreater(len(lines), 1, text[:400])
        # It is gone before the answer stands in its place.
        answer = drawn[-1]
        self.assertRegex(answer, rf"^{self.rows} rows of many.csv")
        self.assertRegex(drawn[-2], "^ +$")

    def test_not_with_quiet_and_not_in_a_pipe(self):
        self.assertNotIn("fits", self.shown(*self.asked, "--quiet"))
        piped = self.run_piped()
        self.assertEqual(piped.stderr, "")
        self.assertNotIn("\r", piped.stdout)


if __name__ == "__main__":
    skipping.main(verbosity=2)
