"""Sections of sessions.md about a fresh clone, about ranks, and about PyTorch."""

import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from .measuring import Bench, Section
from .pages import Missing, ROOT, table

SCRIPTS = ROOT / "tests" / "trainer"
FIRST_ANSWER = "without a calibration, by fits that ship:"
# Models and shapes, batch x length, of compare_step_time.py.
COMPARED = {"bert-base-uncased": ["8x32", "8x128", "32x32", "32x128"],
            "llama-60m": ["4x64", "8x128"], "llama-wide": ["2x64", "2x256"]}


def stamped(command, cwd, settings):
    """Lines of both outputs with the seconds at which they came."""
    start = time.monotonic()
    process = subprocess.Popen(
        command, cwd=cwd, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        env={**os.environ, **settings})
    lines = []
    for line in process.stdout:
        lines.append((time.monotonic() - start, line.rstrip("\n")))
        print(f"{lines[-1][0]:7.1f} {lines[-1][1]}", file=sys.stderr,
              flush=True)
    if process.wait() != 0:
        raise SystemExit(f"{' '.join(command)}: exit {process.returncode}")
    return lines, time.monotonic() - start


def after(lines, words):
    """When the first line came behind one with these words."""
    for (_, said), (seconds, _) in zip(lines, lines[1:]):
        if words in said:
            return seconds
    return None


def was_there():
    """What set-up would otherwise fetch or make, by its name."""
    cache = pathlib.Path(os.environ.get("TRAINFARE_CACHE") or pathlib.Path(
        os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
        / "trainfare")
    yield "LibTorch", any(cache.glob("libtorch-*"))
    yield "compiler cache", shutil.which("ccache") is not None


def minutes(seconds):
    return "-" if seconds is None else f"{int(seconds // 60)} min {seconds % 60:.0f} s"


def clone(given):
    given.asked("trainer")  # as all that takes minutes of this machine
    there = dict(was_there())
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        subprocess.run(["git", "clone", "--quiet", ROOT, folder / "clone"],
                       check=True)
        lines, total = stamped(["./setup", "run"], folder / "clone",
                               {"TRAINFARE_FITS": str(folder / "fits")})
    there["packages"] = not any("will install with apt-get" in said
                                for _, said in lines)
    return table(
        ["cores", "first answer", "calibrated answer", "there", "not there"],
        "rrrll", [[str(os.cpu_count()), minutes(after(lines, FIRST_ANSWER)),
                   minutes(total), *(", ".join(
                       name for name, is_there in there.items()
                       if is_there == wanted) or "-"
                       for wanted in (True, False))]])


def scripted(*arguments, python=sys.executable):
    """What a script of tests/trainer/ prints; 77 says that it cannot run, 4 that
    a limit of its own was passed."""
    name, *flags = map(str, arguments)
    process = subprocess.Popen([python, SCRIPTS / name, *flags], text=True,
                               stdout=subprocess.PIPE)
    said = ""
    for line in process.stdout:
        said += line
        print(line, end="", file=sys.stderr, flush=True)
    code = process.wait()
    if code == 77:
        raise Missing(said.strip())
    if code not in (0, 4):
        raise SystemExit(f"{name}: exit {code}")
    return said


def size_row(name, rows, key):
    sizes = [abs(row[key]) for row in rows]
    return [name, str(len(sizes)), f"{statistics.median(sizes):.1f}",
            f"{max(sizes):.1f}"]


def hidden_share(row):
    m = row["measured"]
    return 100 * (1 - m["exposed_s"] / m["communication_s"])


def network(given):
    bench = Bench(given)
    few = ["--ranks", "2", "--mbit", "500"] if given.points else []
    scripted("network_test.py", bench.trainer, given.program.path,
             given.asked("delay_line"), "--full", "--keep", bench.folder, *few)
    files = sorted(map(str, bench.folder.glob("*mbit-*.jsonl")))
    rows = bench.program().json("validate", *files)["rows"]
    hidden = [hidden_share(row) for row in rows]
    return [
        f"{min(hidden):.0f} to {max(hidden):.0f} % of the communication hides.",
        "", *table(["of a rank", "networks", "median, %", "worst, %"], "lrrr",
                   [size_row("backward", rows, "backward_error_percent"),
                    size_row("step", rows, "step_error_percent")])]


def shared_state(given):
    said = scripted("sharded_points.py", given.asked("trainer"),
                    given.program.path, "--ranks", "2,4", "--points",
                    given.points or 12, "--unshared-runs", 3)
    errors, apart, inside = {}, {}, {}
    for ranks, measured, middle, low, high, repeat in re.findall(
            r"^(\d+) ranks .* measured +([\d.]+) ms, predicted +([\d.]+) "
            r"\(([\d.]+) \.\. ([\d.]+)\) .*, apart ([\d.]+)%$", said,
            re.MULTILINE):
        measured = float(measured)
        errors.setdefault(ranks, []).append(
            100 * abs(float(middle) / measured - 1))
        apart.setdefault(ranks, []).append(float(repeat))
        inside.setdefault(ranks, []).append(
            float(low) <= measured <= float(high))
    if not errors:
        raise SystemExit(f"sharded_points.py: {said}")
    return [*table(["ranks", "points", "median, %", "worst, %", "inside",
                    "repeat, median %", "repeat, worst %"], "rrrrrrr",
                   [[ranks, str(len(found)), f"{statistics.median(found):.1f}",
                     f"{max(found):.1f}", str(sum(inside[ranks])),
                     f"{statistics.median(apart[ranks]):.1f}",
                     f"{max(apart[ranks]):.1f}"]
                    for ranks, found in errors.items()]), "",
            "The aim is 8 % in the median and 15 % at worst."]


def pytorch(given):
    python, trainer = given.asked("python"), given.asked("trainer")
    rows, versions = [], ""
    with tempfile.TemporaryDirectory() as temporary:
        for model, shapes in COMPARED.items():
            out = pathlib.Path(temporary) / f"{model}.json"
            short = ["--rounds", 1] if given.points else []
            scripted("compare_step_time.py", trainer, "--model", model,
                     "--json", out, *short, "--shapes",
                     *shapes[:given.points], python=python)
            answer = json.loads(out.read_text())
            versions = (f"PyTorch {answer['torch']}, Transformers "
                        f"{answer['transformers']}.")
            rows += [compared_row(model, row) for row in answer["rows"]]
    return [versions, "", *table(["model", "batch", "length", "trainer, s",
                                  "PyTorch, s", "ratio"], "lrrrrr", rows), "",
            "The aim is a ratio of 0.8."]


def compared_row(model, row):
    """The trainer beside the faster form of Transformers."""
    times = row["median_s"]
    best = {kind: min(seconds for name, seconds in times.items()
                      if name.startswith(kind))
            for kind in ("trainer", "Transformers")}
    return [model, str(row["batch"]), str(row["length"]),
            *(f"{seconds:.3f}" for seconds in best.values()),
            f"{best['trainer'] / best['Transformers']:.2f}"]


SECTIONS = [
    Section("clone", "From a fresh clone", """
`./setup run` in a clone: until it answers by shipped fits, while the trainer is not yet built, and
until it has answered by a calibration of this machine.
""", clone),
    Section("network", "Steps over ranks", """
`tests/trainer/network_test.py --full`: ranks that are hosts of their own on networks of several
speeds and delays, predicted from one rank and from all-reduces.
""", network),
    Section("shared_state", "Ranks that share state", """
`tests/trainer/sharded_points.py --ranks 2,4 --unshared-runs 3`: small decoders whose ranks share
state, by a fit to runs of one rank, collectives, and runs that share nothing. *Repeat*: how far two
measurements of a point are apart, whose middle is compared.
""", shared_state),
    Section("pytorch", "The trainer beside PyTorch", """
`tests/trainer/compare_step_time.py`: medians, beside the faster of eager and sdpa; a ratio below
one is a faster trainer.
""", pytorch)]
