"""Runs trainfare for the scripts of docs/."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import tempfile
import termios


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
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 50, columns, 0, 0))
        process = subprocess.Popen(
            [self.path, *arguments], stdout=its, stderr=subprocess.PIPE,
            cwd=cwd, env=self.environment())
        os.close(its)
        text = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the program closed its side
                break
            if not piece:
                break
            text += piece
        os.close(ours)
        errors = process.stderr.read().decode()
        if process.wait() not in (0, 3):
            raise SystemExit(f"trainfare {' '.join(arguments)}: {errors}")
        return text.decode().replace("\r\n", "\n")

    def json(self, *arguments, **settings):
        return json.loads(self.run([*arguments, "--format", "json"],
                                   **settings))
