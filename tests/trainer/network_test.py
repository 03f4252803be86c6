"""Ranks as hosts of their own: network namespaces behind shaped links.

    network_test.py TRAINER TRAINFARE DELAY_LINE [--full] [--keep FOLDER]

Each rank runs in a namespace; its link is shaped by the kernel's token bucket
(tc tbf) and leads to a switch that delays every frame (delay_line.cc; netem is
not in every kernel). Backward and step over the ranks are predicted from one
rank, timed while as many others compute beside it, and from all-reduces; the
program compares: `trainfare validate`. Exit code 77, skipped, where namespaces
cannot be made. --full: all networks of docs/results/sessions.md, minutes.

Without it one network, and no judgement of how near the prediction came: beside
other programs that is the machine's evenness, not the model's. Held are what a
shared machine cannot change: the ranks train over the shaped link, part of the
exchange hides, the recursion gives the run's own backward from its own buckets,
and the program predicts the step. Where the recursion's own run was disturbed it
is measured anew, up to ROUNDS times.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

# Six blocks of a third of BERT-base's width and a small vocabulary: as much
# computation a gradient byte as BERT-base has at a third of the batch.
MODEL = {"name": "ranks-small", "family": "encoder", "layers": 6,
         "hidden": 256, "heads": 4, "intermediate": 1024, "vocabulary": 4000,
         "positions": 128, "head": "sequence-classification", "labels": 2}
BUCKETS = ["--bucket-mib", "4", "--first-bucket-mib", "1"]
ROUNDS = 4
# The sizes of the buckets and around.
BYTES = "1310720,2621440,4194304,6291456"


class Hosts:
    """Namespaces with one veth each, all behind one switch."""

    def __init__(self, count, delay_line):
        self.prefix = f"tf{os.getpid()}"
        self.count = count
        self.delay_line = delay_line
        self.switch = None
        self.ip("netns", "add", self.name("s"))
        for i in range(count):
            self.ip("netns", "add", self.name(i))
            self.ip("link", "add", "eth0", "netns", self.name(i), "type",
                    "veth", "peer", "name", f"p{i}", "netns", self.name("s"))
            self.ip("-n", self.name("s"), "link", "set", f"p{i}", "up")
            self.ip("-n", self.name(i), "addr", "add", f"10.77.0.{i + 1}/24",
                    "dev", "eth0")
            self.ip("-n", self.name(i), "link", "set", "eth0", "up")
            self.ip("-n", self.name(i), "link", "set", "lo", "up")

    def name(self, i):
        return f"{self.prefix}{i}"

    def ip(self, *arguments):
        subprocess.run(["ip", *map(str, arguments)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def command(self, i, command):
        return ["ip", "netns", "exec", self.name(i), *map(str, command)]

    def shape(self, megabit, delay_us):
        for i in range(self.count):
            # The burst is one frame of the largest size and a little more.
            subprocess.run(
                self.command(i, ["tc", "qdisc", "replace", "dev", "eth0",
                                 "root", "tbf", "rate", f"{megabit}mbit",
                                 "burst", "128kb", "latency", "100ms"]),
                check=True, stderr=subprocess.PIPE)
        self.stop_switch()
        self.switch = subprocess.Popen(
            self.command("s", [self.delay_line, delay_us,
                               *[f"p{i}" for i in range(self.count)]]),
            stdout=subprocess.PIPE, text=True)
        if self.switch.stdout.readline() != "ready\n":
            raise RuntimeError("the switch does not start")

    def stop_switch(self):
        if self.switch:
            self.switch.kill()
            self.switch.wait()
            self.switch.stdout.close()
            self.switch = None

    def close(self):
        self.stop_switch()
        for name in ["s", *range(self.count)]:
            subprocess.run(["ip", "netns", "del", self.name(name)],
                           stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)

    def run(self, arguments, environment, output=None):
        """The trainer on every host; fails with what any of them says."""
        processes = []
        for i in range(self.count):
            settings = {**os.environ, "OMP_WAIT_POLICY": "passive",
                        "LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0",
                        **{k: str(v) for k, v in environment(i).items()}}
            processes.append(subprocess.Popen(
                self.command(i, [str(a).replace("{host}", str(i))
                                 for a in arguments]),
                env=settings, stdin=subprocess.DEVNULL, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        failed = []
        for process in processes:
            out, error = process.communicate(timeout=300)
            if process.returncode != 0:
                failed.append(error or out)
        if failed:
            raise RuntimeError("; ".join(failed))


def possible():
    if not shutil.which("ip") or not shutil.which("tc"):
        return "no ip or tc (iproute2)"
    name = f"tf{os.getpid()}try"
    made = subprocess.run(["ip", "netns", "add", name],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True)
    if made.returncode != 0:
        return "may not make network namespaces: " + made.stderr.strip()
    shaped = subprocess.run(
        ["ip", "netns", "exec", name, "sh", "-c",
         "ip link add tf0 type veth peer name tf1 && "
         "tc qdisc add dev tf0 root tbf rate 1gbit burst 128kb latency 50ms"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    subprocess.run(["ip", "netns", "del", name], check=False)
    if shaped.returncode != 0:
        return "no veth or tbf here: " + shaped.stderr.strip()
    return None


def measure(hosts, trainer, folder, batch, networks, steps):
    """Files of records, one a network."""
    count = hosts.count
    plan = folder / f"plan-{count}.jsonl"
    plan.write_text(json.dumps({"model": MODEL, "batch": batch,
                                "sequence_length": 64, "steps": steps,
                                "warmup": 2}) + "\n")
    common = ["--threads", 1, *BUCKETS]
    # One rank, while as many others compute beside it as there will be ranks:
    # they share this machine's processors and memory.
    alone = folder / f"alone-{count}-{{host}}.jsonl"
    hosts.run([trainer, "measure", "--plan", plan, "--out", alone, *common],
              lambda i: {"RANK": 0, "WORLD_SIZE": 1})
    one_rank = (folder / f"alone-{count}-0.jsonl").read_text()

    def rank(i):
        return {"RANK": i, "WORLD_SIZE": count, "MASTER_ADDR": "10.77.0.1",
                "MASTER_PORT": 29500}

    files = []
    for megabit, delay_us in networks:
        hosts.shape(megabit, delay_us)
        path = folder / f"{count}x{megabit}mbit-{delay_us}us.jsonl"
        path.write_text(one_rank)
        hosts.run([trainer, "bench", "collectives", "--bytes", BYTES,
                   "--samples", 4, "--out", path, "--threads", 1], rank)
        hosts.run([trainer, "measure", "--plan", plan, "--out", path, *common],
                  rank)
        files.append(path)
        print(f"measured {path.name}", file=sys.stderr, flush=True)
    return files


def misses(row, megabit):
    """What of one network's row cannot be, however busy the machine is."""
    link = row["link_bytes_per_s"] / (megabit / 8 * 1e6)
    measured, predicted = row["measured"], row["predicted"]
    found = []
    if abs(row["recursion_error_percent"]) > 2:
        found.append("the recursion misses backward by more than 2 %")
    if not 0 < link < 1.2:
        found.append(f"the link has {link:.2f} of its bandwidth")
    if not measured["communication_s"] > measured["exposed_s"]:
        found.append("nothing is hidden")
    for name in ("backward", "step"):
        error = predicted[f"{name}_s"] / measured[f"{name}_s"] - 1
        print(f"{name} is predicted {error:+.1%} off")
    if not predicted["step_s"] >= predicted["backward_s"] > 0:
        found.append("the step is predicted shorter than its backward")
    return found


def short_test(options, folder):
    """One network, anew in every round; the exit code."""
    megabit, delay_us = 500, 1000
    for number in range(1, ROUNDS + 1):
        own = folder / f"round-{number}"
        own.mkdir()
        hosts = Hosts(2, options.delay_line)
        try:
            path, = measure(hosts, options.trainer, own, batch=16,
                            networks=[(megabit, delay_us)], steps=6)
        finally:
            hosts.close()
        validate = [options.trainfare, "validate", path]
        text = subprocess.run([*validate, "--format", "json"], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        found = misses(json.loads(text)["rows"][0], megabit)
        if not found:
            return subprocess.run(validate, check=False).returncode
        for one in found:
            print(f"round {number}: {one}", flush=True)
    print(f"FAILED: all of {ROUNDS} rounds")
    return 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trainer")
    parser.add_argument("trainfare")
    parser.add_argument("delay_line")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--mbit", default="200,500,1000")
    parser.add_argument("--delay-us", default="0,1000")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    reason = possible()
    if reason:
        print(f"SKIPPED: {reason}")
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not options.full:
            return short_test(options, folder)
        networks = [(int(m), int(d)) for m in options.mbit.split(",")
                    for d in options.delay_us.split(",")]
        files = []
        for count in map(int, options.ranks.split(",")):
            hosts = Hosts(count, options.delay_line)
            try:
                # The same work a processor at every number of ranks.
                files += measure(hosts, options.trainer, folder,
                                 batch=32 // count if count > 1 else 32,
                                 networks=networks, steps=8)
            finally:
                hosts.close()
        return subprocess.run([options.trainfare, "validate", *files,
                               "--fail-if", "median>8%", "--fail-if",
                               "max>15%"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
