"""Conventions of what the program writes: streams, formats, reports, manual.

    python3 output_conventions_test.py PROGRAM [SUITE]

docs/guide/conventions.md says what each number is.
"""

import calendar
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import program
from asked import ANSWERS, JOB, WINNER, page_of
from figure_names import has_unit
from program import GOOD, TABLE_HEADER, Case, table_row

ROOT = pathlib.Path(__file__).resolve().parents[2]


class OutputConventions(Case):
    def test_01_results_alone_on_standard_output(self):
        file = self.path("a.json")
        done = self.good(*JOB, "--format", "json", "--export", file)
        json.loads(done.stdout)
        self.assertIn(f"written: {file}", done.stderr)
        self.assertEqual(
            self.good(*JOB, "--quiet", "--export", file).stderr, "")

    def test_02_one_flag_for_the_format_one_for_files(self):
        file = self.path("a.json")
        text = self.good(*JOB, "--format", "json", "--export", file).stdout
        self.assertEqual(pathlib.Path(file).read_text(encoding="utf-8"), text)
        for target, style in (("-", "json"), ("-.json", "json"), ("-.csv", "csv"),
                              ("-.md", "markdown")):
            done = self.good(*JOB, "--export", target)
            self.assertEqual(done.stdout, self.good(*JOB, "--format", style).stdout)
            self.assertNotIn("written", done.stderr)
        self.assertIn("<!DOCTYPE html>", self.good(*JOB, "--export", "-.html").stdout)
        for code, flags, words in (
            (2, ("--format", "csv", "--export", "-"), "by --format csv"),
            (2, ("--export", "-.csv", "--export", "-"), "by --export -.csv"),
            (1, ("--export", "a.pdf"), "or .trace.json, or - for standard output"),
        ):
            done = self.run_it(*JOB, *flags)
            self.assertEqual((done.returncode, done.stdout), (code, ""))
            self.assertIn(words, done.stderr)
        done = self.run_it("list", "devices", "--export", self.path("a.trace.json"))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertFalse(os.path.exists(self.path("a.trace.json")))

    def spans_of(self, *command):
        """The spans of each lane of the one process that a trace has."""
        file = self.path("step.trace.json")
        self.good(*command, "--export", file)
        with open(file, encoding="utf-8") as text:
            trace = json.load(text)
        self.assertEqual(trace["displayTimeUnit"], "ms")
        lanes = {}
        names = {}
        for event in trace["traceEvents"]:
            self.assertEqual(event["pid"], 1)
            if event["ph"] == "M":
                names[event["tid"]] = event["args"]["name"]
            else:
                self.assertEqual(event["ph"], "X")
                start = round(event["ts"] * 1e3)  # whole nanoseconds
                lanes.setdefault(names[event["tid"]], []).append(
                    (event["name"], start, start + round(event["dur"] * 1e3)))
        # What a viewer asks for: spans of a lane lie beside or within another.
        for spans in lanes.values():
            for _, first, last in spans:
                for _, start, end in spans:
                    self.assertFalse(first < start < last < end)
        return lanes

    def test_02_a_step_as_a_trace(self):
        sharded = ("predict", "llama_8b_fsdp", "--instance", "aws/p5.48xlarge",
                   "--hosts", "2", "--set", "parallel.data=16")
        for command in (
            JOB, sharded,
            ("predict", "llama_70b_splits", "--instance", "aws/p5.48xlarge",
             "--hosts", "8"),
            ("predict", "squad_bert_large", "--instance", "aws/p4d.24xlarge"),
            ("predict", "emotion_bert_base", "--device", "tpu_v3"),
        ):
            lanes = self.spans_of(*command)
            (job,) = self.json_of(*command)["predictions"]
            computing = lanes["computation"]
            step = max(end for spans in lanes.values() for _, _, end in spans)
            self.assertAlmostEqual(step / 1e9, job["step_time_s"], places=8)
            for phase, key in (("forward", "forward_s"), ("backward", "backward_s"),
                               ("update", "optimizer_s")):
                ((start, end),) = [(a, b) for name, a, b in computing
                                   if name == phase]
                self.assertAlmostEqual((end - start) / 1e9, job["phases"][key],
                                       places=8)
                inside = [(a, b) for name, a, b in computing
                          if name != phase and a >= start and b <= end and b > a]
                self.assertEqual(sum(b - a for a, b in inside), end - start)
            exposed = sum(b - a for name, a, b in lanes.get(
                "exchange between ranks", []) if name.endswith("exposed"))
            self.assertAlmostEqual(exposed / 1e9, job["phases"]["communication_s"],
                                   places=8)
        self.assertTrue(any(name.endswith("hidden") for name, _, _ in self.spans_of(
            *sharded)["exchange between ranks"]))
        # Of recommend a step of the choice.
        self.assertIn("computation", self.spans_of(*WINNER))

    def test_03_machine_formats_have_base_units(self):
        for command in ANSWERS:
            rows = csv.DictReader(io.StringIO(
                self.good(*command, "--format", "csv").stdout))
            for row in rows:
                for key, value in row.items():
                    if re.fullmatch(r"-?\d+\.\d+", value):
                        self.assertTrue(has_unit(key), key)
        cell = self.json_of(*JOB)["predictions"][0]
        (row,) = csv.DictReader(io.StringIO(
            self.good(*JOB, "--format", "csv").stdout))
        for key in ("step_time_s", "run_time_s", "energy_j", "cost_usd"):
            self.assertAlmostEqual(float(row[key]) / cell[key], 1, places=12)

    def test_04_a_versioned_format(self):
        table = self.write("a.csv", TABLE_HEADER + table_row())
        catalog = self.write("vms.csv", (
            "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,"
            "GpuInfo,Price,SpotPrice,Region\n"
            "g5.xlarge,A10G,1,4,16,,1.006,0.4,us-east-1\n"))
        saved = self.path("saved.json")
        self.good(*JOB, "--export", saved)
        for command in (
            *ANSWERS, (*JOB, "--largest", "batch"), ("validate", table),
            ("diff", saved, saved), ("list", "prices"), ("config", "show"),
            ("prices", "import", catalog, "--cloud", "aws", "--date", "2026-05-20"),
            ("calibrate", "--from", str(ROOT / "docs" / "guide" / "runs.csv"),
             "--device", "v100_sxm2_32gb", "--output", self.path("fit.yaml")),
        ):
            with self.subTest(command):
                whole = self.json_of(*command)  # held to its schema
                self.assertRegex(whole["schema"], r"^trainfare\.[a-z_]+/\d+$")
                self.assertEqual(whole["timestamp"], "2026-11-23T00:00:00Z")
                self.assertEqual(whole["arguments"][0], command[0])
                self.assertIn("seed", whole)
        self.assertEqual(self.json_of(*JOB)["price_catalogs"]["aws"]["date"],
                         self.json_of(*JOB)["price"]["date"])
        self.assertEqual(set(self.json_of(*WINNER)["price_catalogs"]),
                         {"aws", "azure", "gcp", "lambda"})
        self.assertEqual(self.json_of(*WINNER, "--top", "1")["price_catalogs"],
                         self.json_of(*WINNER)["price_catalogs"])
        # Now is the clock, unless somebody says what it is.
        one, two = (self.json_of(*JOB, "--now", now)["timestamp"]
                    for now in ("2026-11-23T18:01:31Z", "2030-01-01T00:00:00Z"))
        self.assertEqual((one, two),
                         ("2026-11-23T18:01:31Z", "2030-01-01T00:00:00Z"))
        before = time.time()
        clock = json.loads(self.good(*JOB, "--format", "json", environment={
            "SOURCE_DATE_EPOCH": ""}).stdout)["timestamp"]
        told = calendar.timegm(time.strptime(clock, "%Y-%m-%dT%H:%M:%SZ"))
        self.assertLessEqual(int(before), told)
        self.assertLessEqual(told, time.time())
        # An answer of another day is made again as it was.
        self.good(*WINNER, "--now", "2026-08-01T00:00:00Z", "--export", saved)
        with open(saved, encoding="utf-8") as file:
            self.assertEqual(self.good("replay", saved).stdout, file.read())
        for bad in ("today", "2026-02-30T00:00:00Z", "2026-11-23T24:00:00Z",
                    "2026-11-23"):
            done = self.run_it(*JOB, "--now", bad)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(f'such as 2026-11-23T18:01:31Z, got "{bad}"', done.stderr)
        for bad in ("-1", "now", "999999999999999"):
            done = self.run_it(*JOB, environment={"SOURCE_DATE_EPOCH": bad})
            self.assertEqual(done.returncode, 1)
            self.assertIn("SOURCE_DATE_EPOCH: expected seconds", done.stderr)

    def test_10_colour(self):
        def coloured(*flags, **environment):
            return b"\x1b" in self.on_a_terminal(*WINNER, *flags, **environment)

        self.assertTrue(coloured())
        self.assertFalse(coloured(NO_COLOR="1"))
        self.assertFalse(coloured("--color", "never"))
        self.assertTrue(coloured("--color", "always", NO_COLOR="1"))
        self.assertNotIn("\x1b", self.good(*WINNER).stdout)
        self.assertIn("\x1b", self.good(*WINNER, "--color", "always").stdout)
        # Nothing is said by colour alone: without it the text is the same.
        plain = self.good(*WINNER).stdout
        shown = self.good(*WINNER, "--color", "always").stdout
        self.assertEqual(re.sub("\x1b\\[[0-9]*m", "", shown), plain)

    def test_17_completion_and_manual_from_one_definition(self):
        folder = self.path("man1")
        self.good("man", "--output-folder", folder)
        commands = re.findall(r"(?m)^  ([a-z]+) +[A-Z]", self.good("--help").stdout)
        self.assertGreater(len(commands), 8)
        self.assertEqual(sorted(os.listdir(folder)), sorted(
            ["trainfare.1", *(f"trainfare-{name}.1" for name in commands)]))
        shells = {shell: self.good("completion", shell).stdout
                  for shell in ("bash", "zsh", "fish")}
        for name in commands:
            page = self.good("man", name).stdout
            self.assertTrue(page.startswith(
                f'.TH "TRAINFARE-{name.upper()}" 1 "" "trainfare '))
            options = re.findall(r"(?m)^  (?:-\w,)?(--[a-z-]+)",
                                 self.good(name, "--help").stdout)
            self.assertIn("--help", options)
            for option in options:
                self.assertIn(option.replace("-", "\\-"), page)
                self.assertIn(option, shells["bash"])
                self.assertIn(f"-l {option[2:]}", shells["fish"])
            if shutil.which("groff"):
                done = subprocess.run(
                    ["groff", "-man", "-ww", "-z", "-Tutf8"], input=page, text=True,
                    stderr=subprocess.PIPE, check=True)
                self.assertEqual(done.stderr, "")
        bad = self.run_it("man", "predcit")
        self.assertEqual(bad.returncode, 1)
        self.assertIn('did you mean "predict"', bad.stderr)

    def test_18_a_report_is_one_file_with_its_tables(self):
        text = page_of(self, *WINNER)
        self.assertIn("prefers-color-scheme", text)
        self.assertIn("@media print", text)
        whole = self.json_of(*WINNER)
        for candidate in whole["candidates"][:10]:
            self.assertIn(candidate["instance"], text)
        hostile = self.write("s.yaml", GOOD.replace(
            "a job", "'<script>alert(1)</script>'"))
        text = page_of(self, "predict", hostile, "--device", "t4")
        self.assertNotIn("<script>alert", text)
        self.assertIn("&lt;script&gt;alert", text)


if __name__ == "__main__":
    program.main()
