"""Runs a program as in a terminal of a given width, and reads what it shows."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

SECONDS = 120  # without a word, and no program of ours still answers
LINES = 50


def shown(arguments, *, columns, environment, folder=None, errors=None):
    """The bytes that the terminal got, and the exit code. Standard error goes
    there, too, or to `errors`, as subprocess takes it."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ,
                struct.pack("HHHH", LINES, columns, 0, 0))  # fmt: skip
    with subprocess.Popen(
        arguments, stdout=follower, cwd=folder, env=environment,
        stderr=follower if errors is None else errors,
    ) as process:  # fmt: skip
        os.close(follower)
        try:
            return _read(leader), process.wait()
        finally:
            os.close(leader)
            process.kill()


def _read(leader):
    text = b""
    end = time.monotonic() + SECONDS
    while select.select([leader], [], [], max(0, end - time.monotonic()))[0]:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # the program closed its side
            break
        if not piece:
            break
        text += piece
    return text
