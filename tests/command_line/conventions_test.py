"""Conventions of command-line tools, by their numbers.

    python3 conventions_test.py PROGRAM [SUITE]

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
import unittest

import acceptance_test
import json_schema
import program
from asked import ANSWERS, JOB, WINNER, page_of
from figure_names import has_unit
from program import GOOD, TABLE_HEADER, Case, table_row

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guide" / "conventions.md"


class Conventions(Case):
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

    def test_09_exit_codes(self):
        for code, command in (
            (0, JOB),
            (1, ("predict", "no_such_scenario")),
            (1, ("predict", "emotion_bert_base", "--batch", "many")),
            (2, ("predict", "emotion_bert_base", "--no-such-flag")),
            (3, (*WINNER, "--deadline", "1ms")),
            (4, (*JOB, "--fail-if", "cost_usd>0")),
        ):
            done = self.run_it(*command)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(bool(done.stdout), code in (0, 3, 4))

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

    def test_11_flag_before_environment_before_files(self):
        user = os.path.join(self.path("config"), "trainfare")
        os.makedirs(user)
        mine = os.path.join(user, "config.yaml")
        here = self.path("here")
        os.mkdir(here)

        def settings(path, text):
            pathlib.Path(path).write_text(text, encoding="utf-8")

        def ask(*flags, **environment):
            done = self.good(*WINNER, *flags, "--export", "-", cwd=here,
                             environment=environment)
            return json.loads(done.stdout)

        self.assertEqual(ask()["objective"], "cost")
        settings(mine, "objective: energy\n")
        self.assertEqual(ask()["objective"], "energy")
        team = os.path.join(here, "trainfare.yaml")
        settings(team, "recommend:\n  objective: time\n  cloud: [aws, gcp]\n"
                       "  spot: true\n")
        whole = ask()
        self.assertEqual((whole["objective"], whole["market"]), ("time", "spot"))
        self.assertEqual({c["instance"].split("/")[0]
                          for c in whole["candidates"]}, {"aws", "gcp"})
        other = self.write("other.yaml", "cloud: azure\n")
        whole = ask("--config", other)
        self.assertEqual((whole["objective"], list(whole["price_catalogs"])),
                         ("energy", ["azure"]))
        self.assertEqual(ask("--no-config")["objective"], "cost")
        self.assertEqual(ask(TRAINFARE_OBJECTIVE="cost")["objective"], "cost")
        self.assertEqual(ask("--objective", "energy", TRAINFARE_OBJECTIVE="cost")[
            "objective"], "energy")

        def origins(*flags, **environment):
            done = self.good("config", "show", "--origin", *flags, "--export", "-",
                             cwd=here, environment=environment)
            whole = json.loads(done.stdout)
            self.assertEqual(json_schema.errors_of(whole), [])
            return {s["setting"]: (s["values"], s["origin"])
                    for s in whole["settings"]}

        self.assertEqual(origins(TRAINFARE_BATCH="8"), {
            "batch": (["8"], "TRAINFARE_BATCH"),
            "recommend.objective": (["time"], "trainfare.yaml:2:14"),
            "recommend.cloud": (["aws", "gcp"], "trainfare.yaml:3:10"),
            "recommend.spot": (["true"], "trainfare.yaml:4:9")})
        self.assertEqual(origins("--no-config"), {})
        text = self.good("config", "show", "--origin", cwd=here).stdout
        self.assertIn("trainfare.yaml:2:14", text)
        self.assertIn(f"{mine}: read", text)
        self.assertNotIn("yaml:2:14", self.good("config", "show", cwd=here).stdout)

        # A saved answer holds what it was asked, whoever asks for it again.
        saved = self.path("saved.json")
        self.good(*WINNER, "--export", saved, cwd=here)
        with open(saved, encoding="utf-8") as file:
            self.assertEqual(self.good("replay", saved, environment={
                "TRAINFARE_OBJECTIVE": "energy"}).stdout, file.read())

        def refused(code, words, *flags, text=None, **environment):
            if text is not None:
                settings(team, text)
            done = self.run_it(*WINNER, *flags, cwd=here, environment=environment)
            self.assertEqual((done.returncode, done.stdout), (code, ""))
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

        refused(1, 'trainfare.yaml:1:1: unknown key "objektive"; did you mean '
                '"objective"', text="objektive: time\n")
        refused(1, 'unknown key "recomend"; did you mean "recommend"',
                text="recomend: { spot: true }\n")
        refused(1, 'trainfare.yaml:1:14: recommend: unknown key "network"',
                text="recommend: { network: 400Gbit/s }\n")
        refused(1, "trainfare.yaml:1:12: recommend: expected a map of options",
                text="recommend: time\n")
        refused(1, "trainfare.yaml:1:9: --budget: expected an amount such as",
                text="budget: x\n")
        # Whoever runs a command in a folder of others writes no files by it.
        refused(1, 'unknown key "export"', text="export: out.json\n")
        self.assertFalse(os.path.exists(os.path.join(here, "out.json")))
        # Nor is a line of a file shown that they only name.
        refused(1, "trainfare.yaml:1:8: --model: expected a file within the folder",
                text="model: /etc/passwd\n")
        refused(1, "trainfare.yaml:1:8: --model: expected a file beside this one",
                text="model: .\n")
        refused(1, "trainfare.yaml:1:6: --set: expected a file within the folder",
                text="set: [model=/etc/passwd]\n")
        # By what a value is read as, not as it is written.
        refused(1, "trainfare.yaml:1:6: --set: expected a file within the folder",
                text="set: [\"model='/etc/passwd'\"]\n")
        refused(1, "trainfare.yaml:1:6: --set: expected a file within the folder",
                text="set: ['model=\"\\x2fetc/passwd\"']\n")
        refused(1, "trainfare.yaml:1:6: --set: expected a file within the folder",
                text="set: ['dataset={train: 8, lengths: \"/etc\\x2fpasswd\"}']\n")
        refused(1, "trainfare.yaml:1:6: --set model:1:7: not valid YAML",
                text="set: [\"model='small\"]\n")
        os.remove(team)
        os.mkfifo(team)
        refused(1, "trainfare.yaml: expected a regular file")
        os.remove(team)
        refused(1, "trainfare.yaml:1:7: --spot: expected true or false",
                text="spot: perhaps\n")
        refused(1, "trainfare.yaml:1:11: --deadline: expected one value, got a list",
                text="deadline: [1h, 2h]\n")
        refused(1, "trainfare.yaml:1:8: --cloud: unknown cloud",
                text="cloud: asw\n")
        refused(1, "TRAINFARE_OBJECTIVE: --objective: expected", text="spot: false\n",
                TRAINFARE_OBJECTIVE="beauty")
        refused(1, "TRAINFARE_BATCH: --batch: expected", TRAINFARE_BATCH="x")
        refused(1, "no.yaml", "--config", "no.yaml")

    def test_12_the_nearest_name(self):
        def said(*flags, **environment):
            return self.good("list", "models", "bert-tiny", *flags,
                             environment=environment).stderr

        self.assertEqual(
            said(TRAINFARE_CLOD="aws"),
            "trainfare: warning: TRAINFARE_CLOD: no setting has this name; did "
            'you mean "TRAINFARE_CLOUD"?\n')
        self.assertEqual(said("--quiet", TRAINFARE_CLOD="aws"), "")
        for name in ("FITS", "CACHE", "DATA_DIR", "TRAINER", "PACKAGES",
                     "FUZZ_SEED", "CLOUD"):
            self.assertEqual(said(**{"TRAINFARE_" + name: ""}), "")

        job = self.write("s.yaml", GOOD)
        for nearest, command in (
            ("recommend", ("recomend", "emotion_bert_base")),
            ("--batch", ("predict", "emotion_bert_base", "--bacth", "8")),
            ("llama-3.1-8b", ("predict", "--model", "llama-3.1-8B1",
                              "--samples", "9", "--length", "8")),
            ("aws/g5.xlarge", ("predict", "emotion_bert_base", "--instance",
                               "aws/g5.xlrge")),
            ("h100_sxm", ("predict", "emotion_bert_base", "--device",
                          "h100_smx")),
            ("precision", ("predict", job, "--set", "precison=fp16")),
            ("cost_usd", (*JOB, "--fail-if", "cots_usd>1")),
        ):
            with self.subTest(command):
                done = self.run_it(*command)
                self.assertIn(done.returncode, (1, 2))
                meant = done.stderr.split("did you mean ")[-1].split("?")[0]
                self.assertIn(f'"{nearest}"', meant, done.stderr)
                self.assertLessEqual(meant.count('"') / 2, 3)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_13_what_would_be_asked_without_asking(self):
        shown = self.good("show", "emotion_bert_base", "--set", "batch=8").stdout
        for command in ("predict", "recommend"):
            asked = (command, "emotion_bert_base", "--set", "batch=8", "--dry-run")
            self.assertEqual(self.good(*asked).stdout, shown)
            file = self.path(command + ".json")
            bad = self.run_it(*asked, "--export", file)
            self.assertEqual((bad.returncode, bad.stdout), (2, ""))
            self.assertFalse(os.path.exists(file))
        both = self.good("predict", "emotion_bert_base", "--batch", "8,16",
                         "--dry-run").stdout.split("---\n")
        self.assertEqual([re.search("(?m)^batch: (.*)", one)[1] for one in both],
                         ["8", "16"])
        plan = self.good("calibrate", "--dry-run", "--budget", "20s").stdout
        runs = [json.loads(line) for line in plan.splitlines()]
        self.assertGreater(len(runs), 1)
        self.assertIn("model", runs[0])
        self.assertEqual(self.good("list", "fits", "--format", "json").stdout.count(
            "cpu"), 0)
        bad = self.run_it("calibrate", "--dry-run", "--from", "runs.jsonl")
        self.assertEqual(bad.returncode, 2)
        self.assertEqual(bad.stderr.count("\n"), 1)

    def test_14_lists_of_what_is_known(self):
        for what in ("devices", "instances", "models", "scenarios", "fits", "prices",
                     "keys", "parameters"):
            self.assertIn("rows", self.json_of("list", what))
        rows = self.json_of("list", "instances")["rows"]
        some = self.json_of("list", "instances", "H100", "aws")["rows"]
        self.assertTrue(some)
        self.assertEqual(some, [row for row in rows if "aws" in str(row)
                                and "h100" in str(row)])
        csv_rows = self.good("list", "instances", "h100", "aws",
                             "--format", "csv").stdout.splitlines()
        self.assertEqual(len(csv_rows), 1 + len(some))
        none = self.good("list", "devices", "abacus")
        self.assertIn('nothing has "abacus"', none.stdout + none.stderr)
        self.assertEqual(self.json_of("list", "devices", "abacus")["rows"], [])

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


class Page(unittest.TestCase):
    def test_the_page_names_every_test_and_no_other(self):
        text = PAGE.read_text(encoding="utf-8")
        named = set(re.findall(r"`(Acceptance|Conventions)\.(test_\w+)`", text))
        there = {(suite.__name__, name)
                 for suite in (acceptance_test.Acceptance, Conventions)
                 for name in vars(suite) if name.startswith("test_")}
        self.assertEqual(named, there)
        for heading, count in (("Acceptance", 10), ("Conventions", 18)):
            section = text.split(f"## {heading}")[1].split("\n## ")[0]
            items = re.findall(r"^(\d+)\. (.*(?:\n +.*)*)", section, re.MULTILINE)
            self.assertEqual([int(number) for number, _ in items],
                             list(range(1, count + 1)))
            for number, item in items:
                tests = re.findall(r"`(\w+)\.(test_\w+)`", item)
                self.assertTrue(tests)
                for suite, test in tests:
                    self.assertEqual(suite, heading)
                    self.assertTrue(test.startswith(f"test_{int(number):02}_"))


if __name__ == "__main__":
    program.main()
