"""What is never written over, and what is written when a disk is full."""

import os
import resource
import signal
import subprocess

import program
from program import Case, PROGRAM, TABLE_HEADER, table_row


class Files(Case):
    def test_files_of_others_stay(self):
        def stays(code, name, text, message, *arguments):
            file = self.write(name, text)
            self.refused(code, message, *arguments)
            with open(file, encoding="utf-8") as kept:
                self.assertEqual(kept.read(), text)

        def ours(flag, name, what):
            return (f"{flag} {name}: expected a new file, or {what} to replace; "
                    "the one that is there is none")

        note = "My notes\n\n| a |\n| --- |\n"
        ask = ("predict", "emotion_bert_base", "--device", "l4", "--export")
        for name, text in (("a.json", '{"hidden_size": 768}\n'),
                           ("a.trace.json", '{"traceEvents": []}\n'),
                           ("a.html", "<!DOCTYPE html>\n<html></html>\n"),
                           ("a.md", note), ("a.csv", "device,step\nl4,1\n")):
            answer = "an answer"
            if name == "a.csv":
                answer += " of these columns"
            stays(1, name, text, ours("--export", name, answer),
                  *ask, self.path(name))
            # What is empty holds nothing, and an answer may be replaced by one
            # to another question.
            self.write(name, "")
            self.good(*ask, self.path(name))
            self.good("predict", "emotion_bert_base", "--device", "t4,l4",
                      "--precision", "fp16", "--export", self.path(name))
        self.good("recommend", "emotion_bert_base", "--export", self.path("a.json"))
        for name in ("twice.json", "./twice.json"):
            self.refused(2, "--export: expected each file once, twice.json is "
                         "given several times", *ask, "twice.json", "--export", name,
                         cwd=self.folder)
        self.assertFalse(os.path.exists(self.path("twice.json")))
        # Before the question is answered.
        os.makedirs(self.path("folder.json"))
        for target, why in (("none/a.json", "No such file or directory"),
                            ("folder.json", "Is a directory")):
            self.refused(1, f"{target}: cannot be written: {why}",
                         *ask, self.path(target))
        rows = self.path("rows.csv")
        table = TABLE_HEADER + table_row()
        reads = "expected a file of its own, FILE reads this one"
        stays(2, "rows.csv", table, f"--export rows.csv: {reads}",
              "validate", rows, "--export", rows)
        # Also where the option that reads stands behind the one that writes.
        stays(2, "s.json", '{"predict": {"batch": 8}}\n',
              f"--export s.json: {reads.replace('FILE', '--config')}",
              *ask, self.path("s.json"), "--config", self.path("s.json"))
        with open(self.path("a.json"), encoding="utf-8") as answer:
            text = answer.read()
        other = self.write("b.json", text)
        stays(2, "a.json", text, f"--export a.json: {reads.replace('FILE', 'BEFORE')}",
              "diff", self.path("a.json"), other, "--export", self.path("a.json"))
        # The answer of yesterday gives way to that of today.
        self.good("recommend", "emotion_bert_base", "--baseline",
                  self.path("a.json"), "--export", self.path("a.json"))
        plan = ("calibrate", "--device", "l4", "--budget", "20s", "--plan")
        stays(1, "p.txt", note, ours("--plan", "p.txt", "a plan"),
              *plan, self.path("p.txt"))
        script = ("calibrate", "--launch", "slurm", "--instances", "aws/g5.xlarge",
                  "--script")
        stays(1, "s.sh", "#!/bin/sh\n",
              ours("--script", "s.sh", "a script of --launch"),
              *script, self.path("s.sh"))
        for command, name in ((plan, "new.jsonl"), (script, "new.sh")):
            self.good(*command, self.path(name))
            self.good(*command, self.path(name))
        page = self.path("trainfare.1")
        stays(1, "trainfare.1", note,
              ours("--output-folder", "trainfare.1", "a page of the manual"),
              "man", "--output-folder", self.folder)
        self.assertFalse(os.path.exists(self.path("trainfare-predict.1")))
        os.remove(page)
        for _ in range(2):
            self.good("man", "--output-folder", self.folder)

    def test_unwritable_exports_and_full_disks(self):
        self.refused_after_result(
            "no/such/a.json: cannot be written: No such file or directory",
            "--export",
            self.path("no/such/a.json"),
        )
        self.assertEqual(os.listdir(self.folder), [])
        for arguments in (
            ["list", "devices"],
            ["calibrate", "--launch", "slurm", "--instances", "aws/g5.xlarge"],
        ):
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run(
                    [PROGRAM, *arguments],
                    stdout=full,
                    stderr=subprocess.PIPE,
                    text=True,
                    env=self.environment(),
                    check=False,
                )
            self.assertEqual(result.returncode, 1, arguments)
            self.assertEqual(
                result.stderr, "trainfare: standard output: cannot be written: "
                "No space left on device\n"
            )

    def test_a_file_beyond_the_limit_of_the_shell(self):
        """As a full disk: one line, and nothing half-written is left."""

        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

        whole = ["calibrate", "--launch", "slurm", "--instances",
                 "aws/g5.xlarge"]
        for arguments, file in (
                ([*whole, "--script", self.path("s.sh")], self.path("s.sh")),
                (["list", "devices", "--export", self.path("d.json")],
                 self.path("d.json"))):
            result = self.run_it(*arguments, preexec_fn=limited)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertEqual(
                result.stderr,
                f"trainfare: {file}: cannot be written: File too large\n")
            self.assertEqual(os.listdir(self.folder), [])

    def refused_after_result(self, message, *arguments):
        result = self.run_it("list", "models", *arguments)
        said = result.stderr.replace(self.folder + os.sep, "")
        self.assertEqual(said, f"trainfare: {message}\n")
        self.assertEqual(result.returncode, 1)

    def test_a_file_limit_leaves_no_half_written_export(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
            # Without it the write fails with a signal, not an error.
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        result = self.run_it(
            "recommend",
            "emotion_bert_base",
            "--quiet",
            "--export",
            self.path("big.json"),
            preexec_fn=limit,
        )
        self.assertEqual(result.returncode, 1)
        self.assertIn("big.json: cannot be written", result.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_what_cannot_be_shown_is_refused_before_a_fit_is_replaced(self):
        rows = self.write("rows.csv", TABLE_HEADER + "".join(
            table_row(batch=batch, step_ms=12 * batch) for batch in (8, 16, 32)))
        fit = self.path("t4.yaml")
        asked = ("calibrate", "--from", rows, "--device", "t4", "--output", fit)
        mine = self.write("mine.csv", "parameter,value,mine\n1,2,3\n")
        for code, message, flags in (
            (1, '--fail-if: unknown figure "foo"', ("--fail-if", "foo>1%")),
            (1, '--fail-if: unknown figure "fit.foo"', ("--fail-if", "fit.foo>1")),
            (1, "--fail-if: expected a figure", ("--fail-if", "date>1")),
            (1, '--fail-if: expected a figure, "kept" is', ("--fail-if", "kept>1")),
            (1, "--fail-if: expected a figure", ("--fail-if", "fit_path>1")),
            (1, '--fail-if: unknown figure "alone.foo"', ("--fail-if", "alone.foo>1")),
            (1, f"--export {mine}: expected a new file, or an answer of these "
             "columns to replace", ("--export", mine)),
            (2, "--export: a .trace.json is of a step",
             ("--export", self.path("a.trace.json"))),
        ):
            with self.subTest(flags):
                self.begins(code, message, *asked, *flags)
                self.assertFalse(os.path.exists(fit))
        for name in ("a.csv", "a.csv", "a.md", "a.md"):
            self.good(*asked, "--export", self.path(name))
        # No kernel was timed by itself: what is not there is not known.
        for passed in ("runs>1", "alone.value>1e9", "value>1e9", "standard_error<0"):
            self.assertEqual(self.run_it(*asked, "--fail-if", passed).returncode, 4)
        self.assertTrue(self.run_it(*asked, "--fail-if", "value>1").stderr.endswith(
            "trainfare: --fail-if: value is not known, limit value>1\n"))
        self.good(*asked, "--fail-if", "fit.runs>3")


if __name__ == "__main__":
    program.main()
