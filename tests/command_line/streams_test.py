"""Where the program writes, and what it writes in a pipe."""

import json
import os
import re
import subprocess

import program
from program import COMMANDS, Case, PROGRAM


class Streams(Case):
    def test_json_is_alone_on_standard_output(self):
        for command in COMMANDS:
            with self.subTest(command):
                json.loads(self.good(*command, "--format", "json").stdout)

    def test_quiet_leaves_standard_error_empty(self):
        for command in COMMANDS:
            with self.subTest(command):
                self.assertEqual(self.good(*command, "--quiet").stderr, "")

    def test_works_with_standard_error_closed(self):
        result = subprocess.run(
            [PROGRAM, "recommend", "emotion_bert_base", "--format", "json"],
            stdout=subprocess.PIPE,
            preexec_fn=lambda: os.close(2),
            env=self.environment(),
            timeout=60,
            check=False,
        )
        self.assertEqual(result.returncode, 0)
        json.loads(result.stdout)

    def test_no_escape_or_carriage_return_when_piped(self):
        for command in COMMANDS:
            for style in ("table", "markdown", "csv", "json"):
                with self.subTest((command, style)):
                    result = self.good(*command, "--format", style)
                    for text in (result.stdout, result.stderr):
                        self.assertNotIn("\x1b", text)
                        self.assertNotIn("\r", text)

    def test_colour_on_a_terminal_and_not_with_no_color(self):
        command = ("recommend", "emotion_bert_base")
        self.assertIn(b"\x1b[1m", self.on_a_terminal(*command))
        self.assertNotIn(b"\x1b", self.on_a_terminal(*command, NO_COLOR="1"))
        self.assertNotIn(
            b"\x1b", self.on_a_terminal(*command, "--color", "never")
        )
        self.assertIn("\x1b[1m", self.good(*command, "--color", "always").stdout)

    def test_version_and_help_are_results(self):
        result = self.good("--version")
        self.assertRegex(result.stdout, r"^trainfare \d+\.\d+\.\d+\n$")
        self.assertEqual(result.stderr, "")
        said = self.good("--help").stdout
        self.assertIn("predict", said)
        said = " ".join(said.split())
        self.assertIn("those with figures --fail-if", said)
        # As it says of --format, so it is.
        named = re.search(r"says more\. (.*) have --format", said).group(1)
        commands = re.split(", | and ", named)
        self.assertIn("prices import", commands)
        for command in [*commands, "show", "replay", "init", "man"]:
            with self.subTest(command):
                usage = self.good(*command.split(), "--help").stdout
                self.assertEqual("\n  --format " in usage, command in commands)
        self.assertIn("--batch", self.good("predict", "--help").stdout)
        self.assertEqual(
            self.good("help", "predict").stdout,
            self.good("predict", "--help").stdout,
        )


if __name__ == "__main__":
    program.main()
