"""The action for pull requests, with a stand-in for GitHub's program.

    python3 action_test.py PROGRAM
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else ""
ROOT = pathlib.Path(__file__).resolve().parents[2]
ACTION = ROOT / ".github" / "actions" / "trainfare"
ASK = "predict emotion_bert_base --instance aws/g5.xlarge"

# Keeps every call; answers a list with the comments that are there.
GH = """\
#!/usr/bin/env python3
import json, os, sys
calls = open(os.environ["CALLS"], "a")
body = next((a[6:] for a in sys.argv if a.startswith("body=@")), None)
call = {"arguments": sys.argv[1:], "mark": os.environ.get("MARK"),
        "body": open(body).read() if body else None}
print(json.dumps(call), file=calls)
if "--paginate" in sys.argv:
    print(os.environ.get("EXISTING", ""), end="")
sys.exit(int(os.environ.get("GH_EXIT", "0")))
"""


class Action(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        gh = self.folder / "bin" / "gh"
        gh.parent.mkdir()
        gh.write_text(GH, encoding="utf-8")
        gh.chmod(0o755)
        self.baseline = self.folder / "before.json"
        self.trainfare(*ASK.split(), "--batch", "32", "--export", self.baseline)

    def environment(self, **more):
        home = str(self.folder)
        return {**os.environ, "HOME": home, "XDG_DATA_HOME": home,
                "XDG_CONFIG_HOME": home, "TRAINFARE_FITS": home,
                "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                "RUNNER_TEMP": home, "CALLS": str(self.folder / "calls"),
                "GITHUB_REPOSITORY": "owner/jobs", "PROGRAM": PROGRAM,
                "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
                "GITHUB_OUTPUT": str(self.folder / "output"), **more}

    def trainfare(self, *arguments):
        return subprocess.run([PROGRAM, *map(str, arguments)], check=True,
                              capture_output=True, text=True,
                              env=self.environment())

    def ask(self, **more):
        return subprocess.run(
            [ACTION / "answer.sh", "ask"], capture_output=True, text=True,
            env=self.environment(**{"ASK": ASK, **more}))

    def calls(self):
        file = self.folder / "calls"
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def test_what_moved_is_the_comment(self):
        done = self.ask(BASELINE=str(self.baseline), PULL_REQUEST="7",
                        FAIL_IF="cost_percent>900%\n\nrun_time_s>40h\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        listed, posted = self.calls()
        self.assertIn("repos/owner/jobs/issues/7/comments", listed["arguments"])
        self.assertIn("POST", posted["arguments"])
        self.assertTrue(posted["body"].startswith(f"<!-- trainfare {ASK} -->\n"))
        self.assertRegex(posted["body"], r"\| step +\|")
        answer = json.loads((self.folder / "trainfare.json").read_text())
        self.assertEqual(answer["schema"], "trainfare.prediction/1")
        self.assertIn("trainfare.json", (self.folder / "output").read_text())
        self.assertIn("since ", (self.folder / "summary").read_text())

    def test_a_comment_that_is_there_is_written_anew(self):
        self.ask(PULL_REQUEST="7", EXISTING="42\n43\n")
        self.assertIn("repos/owner/jobs/issues/comments/42",
                      self.calls()[1]["arguments"])
        self.assertIn("PATCH", self.calls()[1]["arguments"])

    def test_a_limit_fails_the_job_behind_the_comment(self):
        done = self.ask(BASELINE=str(self.baseline), PULL_REQUEST="7",
                        FAIL_IF="cost_usd>0.001")
        self.assertEqual(done.returncode, 4)
        self.assertIn("--fail-if: cost_usd is", done.stderr)
        self.assertIn("--fail-if: cost_usd is", self.calls()[1]["body"])

    def test_a_fork_may_not_comment(self):
        done = self.ask(PULL_REQUEST="7", GH_EXIT="1")
        self.assertEqual(done.returncode, 0)
        self.assertIn("::warning::", done.stdout)

    def test_no_comment_without_a_pull_request_or_where_none_is_wanted(self):
        self.assertEqual(self.ask().returncode, 0)
        self.assertEqual(self.ask(PULL_REQUEST="7", COMMENT="false").returncode, 0)
        self.assertEqual(self.calls(), [])
        self.assertIn("BERT-base", (self.folder / "summary").read_text())

    def test_a_bad_question_comments_nothing(self):
        done = self.ask(ASK="predict no_such_job", PULL_REQUEST="7")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no_such_job", done.stderr)
        self.assertEqual(self.calls(), [])
        # A word is a word, whatever a shell would make of it.
        self.ask(ASK=f"predict $(touch {self.folder}/ran);touch {self.folder}/ran")
        self.assertFalse((self.folder / "ran").exists())

    def test_the_hash_is_of_the_sources(self):
        tree = self.folder / "tree"
        shutil.copytree(ACTION, tree / ".github" / "actions" / "trainfare")
        script = tree / ".github" / "actions" / "trainfare" / "answer.sh"
        (tree / "build").mkdir()

        def said():
            return subprocess.run([script, "sources"], check=True, text=True,
                                  capture_output=True).stdout
        first = said()
        self.assertIn(f"root={tree}\n", first)
        (tree / "build" / "made").write_text("x")
        self.assertEqual(said(), first)
        (tree / "main.cc").write_text("x")
        self.assertNotEqual(said(), first)
        self.assertEqual((tree / "main.cc").stat().st_mtime, 1e9)
        self.assertNotEqual((tree / "build" / "made").stat().st_mtime, 1e9)

    def test_the_action_and_the_workflow_of_the_guide(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("no PyYAML")
        action = yaml.safe_load((ACTION / "action.yml").read_text())
        self.assertEqual(action["runs"]["using"], "composite")
        for step in action["runs"]["steps"]:
            self.assertTrue("uses" in step or step["shell"] == "bash")
            # Words of a pull request reach scripts by the environment alone.
            self.assertNotIn("${{", step.get("run", ""))
        guide = (ROOT / "docs" / "guide" / "commands.md").read_text()
        workflow = yaml.safe_load(
            guide.split("## On a pull request")[1].split("```yaml\n")[1]
            .split("```")[0])
        (job,) = workflow["jobs"].values()
        (step,) = [s for s in job["steps"] if "trainfare" in s["uses"]]
        self.assertLessEqual(set(step["with"]), set(action["inputs"]))
        self.assertEqual(job["permissions"]["pull-requests"], "write")

    def test_shellcheck(self):
        if not shutil.which("shellcheck"):
            self.skipTest("no shellcheck")
        subprocess.run(["shellcheck", ACTION / "answer.sh"], check=True)


if __name__ == "__main__":
    if not PROGRAM or not os.access(PROGRAM, os.X_OK):
        sys.exit(f"usage: {sys.argv[0]} PROGRAM")
    unittest.main()
