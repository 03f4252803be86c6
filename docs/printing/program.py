"""Runs trainfare for the scripts of docs/."""

import json
import os
import subprocess
import sys
import tempfile

from .pages import ROOT

sys.path.append(str(ROOT / "tests" / "command_line"))
import pseudo_terminal  # noqa: E402


class Program:
    """trainfare without the fits of whoever runs the script."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.home = tempfile.TemporaryDirectory()

    def environment(self):
        home = self.home.name
        return {**os.environ, "HOME": home, "XDG_DATA_HOME": home,
                "XDG_CONFIG_HOME": home,
                "TRAINFARE_FITS": home, "NO_COLOR": "1", "TERM": "xterm"}

    def run(self, arguments, cwd=None, **settings):
        """What it printed on standard output; a failure is an error. Settings
        are variables of its environment."""
        done = subprocess.run(
            [self.path, *arguments], capture_output=True, text=True, cwd=cwd,
            env={**self.environment(), **settings})
        if done.returncode not in (0, 3):
            raise SystemExit(f"trainfare {' '.join(arguments)}: exit "
                             f"{done.returncode}: {done.stderr}")
        return done.stdout

    def shown(self, arguments, cwd, columns=100):
        """What a person sees in a terminal of so many columns."""
        with tempfile.TemporaryFile() as errors:
            text, code = pseudo_terminal.shown(
                [self.path, *arguments], columns=columns, folder=cwd,
                errors=errors, environment=self.environment())
            errors.seek(0)
            if code not in (0, 3):
                raise SystemExit(f"trainfare {' '.join(arguments)}: exit "
                                 f"{code}: {errors.read().decode()}")
        return text.decode().replace("\r\n", "\n")

    def json(self, *arguments, **settings):
        return json.loads(self.run([*arguments, "--format", "json"],
                                   **settings))
