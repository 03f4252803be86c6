"""Files of a folder, and programs that are run: what every step has in common."""

import datetime
import json
import subprocess
from pathlib import Path


class Missing(Exception):
    """A figure that cannot be had here, and why."""


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime(
        "%Y-%m-%dT%H:%M:%SZ")


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def read_json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Missing(f"{path.name} is not there") from None


def read_records(path):
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise Missing(f"{path.name} is not there") from None
    return [json.loads(line) for line in lines]


def run(command, **options):
    return subprocess.run(list(map(str, command)), text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          **options)


def run_checked(command):
    result = run(command)
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or ["no message"]
        raise SystemExit(f"{Path(command[0]).name} {command[1]}: {lines[-1]}")
    return result.stdout
