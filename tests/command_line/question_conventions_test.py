"""Conventions of how the program is asked: settings, names, lists, exit codes.

    python3 question_conventions_test.py PROGRAM [SUITE]

docs/guide/conventions.md says what each number is.
"""

import json
import os
import pathlib
import re

import json_schema
import program
from asked import JOB, WINNER
from program import GOOD, Case


class QuestionConventions(Case):
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
        refused(1, 'trainfare.yaml:1:14: recommend: unknown key "fit"',
                text="recommend: { fit: l4.yaml }\n")
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


if __name__ == "__main__":
    program.main()
