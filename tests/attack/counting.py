"""What the attacks have in common: a seed, a loop, a count of how each ended."""

import argparse
import collections
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOLD_EVERY = 50  # attacks


def program(path):
    return str(Path(path).resolve())


class Finding(Exception):
    """What must not happen. The folder of the attack is kept."""


def options_of(description):
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, help="attacks of each kind")
    parser.add_argument("--seconds", type=float, default=float("inf"),
                        help="of each kind at most")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--first", type=int, default=0,
                        help="the number of a finding, to repeat it")
    parser.add_argument("--only", help="kinds of attack, between commas")
    parser.add_argument("--keep", type=Path, help="where findings go")
    return parser


def tagged_processes(tag):
    """Those with ATTACK=tag in their environment, and no zombies."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"ATTACK=" + tag.encode() in environment:
            found.append(int(folder.name))
    return found


def expect_no_orphan(tag, seconds=2.0):
    """No process of the attack is left so long after its end."""
    end = time.monotonic() + seconds
    left = tagged_processes(tag)
    while left and time.monotonic() < end:
        time.sleep(0.02)
        left = tagged_processes(tag)
    if left:
        raise Finding(f"processes {left} are left after {seconds} s")


def attack(name, once, options, short):
    """Runs once(random, folder), of which the word is counted, many times;
    the number of findings."""
    count = options.count if options.count is not None else short
    if count == 0:  # by hand alone: other tests have a short one
        return 0
    seed = options.seed
    if seed is None:
        seed = int.from_bytes(os.urandom(4), "little")
    outcomes = collections.Counter()
    findings = 0
    begin = time.monotonic()
    done = 0

    def tell(how_far):
        told = ", ".join(f"{n} {what}" for what, n in outcomes.most_common())
        print(f"{name}: {how_far}{done} attacks, seed {seed}, "
              f"{time.monotonic() - begin:.0f} s: {findings} findings; {told}",
              flush=True)

    for number in range(options.first, options.first + count):
        if time.monotonic() - begin > options.seconds or findings >= 10:
            break
        folder = Path(tempfile.mkdtemp(prefix="trainfare_attack_"))
        # Each attack of its own: one is repeated without those before.
        own = random.Random(f"{name} {seed} {number}")
        try:
            outcomes[once(own, folder)] += 1
        except (Finding, subprocess.TimeoutExpired) as finding:
            findings += 1
            kept = folder
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                kept = options.keep / f"{name}-{seed}-{number}"
                shutil.move(folder, kept)
            print(f"{name}: FINDING {number} of seed {seed}: {finding} "
                  f"({kept})", flush=True)
            folder = None
        done += 1
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        if done % TOLD_EVERY == 0 and done < count:
            tell("so far ")  # A long one that is stopped has been counted.
    tell("")
    return findings


def run_all(kinds, options):
    """kinds: {name: (once, how often by default)}; the exit code."""
    chosen = options.only.split(",") if options.only else list(kinds)
    findings = 0
    for name in chosen:
        once, short = kinds[name]
        findings += attack(name, once, options, short)
    sys.exit(1 if findings else 0)
