"""Runs trainfare for the scripts of docs/."""

import json
import os
import subprocess
import tempfile


class Program:
    """trainfare without the fits of whoever runs the script."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.home = tempfile.TemporaryDirectory()

    def run(self, arguments, cwd=None):
        """What it printed on standard output; a failure is an error."""
        home = self.home.name
        done = subprocess.run(
            [self.path, *arguments], capture_output=True, text=True, cwd=cwd,
            env={**os.environ, "HOME": home, "XDG_CONFIG_HOME": home,
                 "XDG_DATA_HOME": home, "TRAINFARE_FITS": home,
                 "NO_COLOR": "1"})
        if done.returncode not in (0, 3):
            raise SystemExit(f"trainfare {' '.join(arguments)}: exit "
                             f"{done.returncode}: {done.stderr}")
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.run([*arguments, "--format", "json"]))
