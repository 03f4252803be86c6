"""The trainer's runs on a GPU, part by part: it takes trainer and Python alone."""

import contextlib
import json
import math
import platform
import subprocess
import sys
import time
from pathlib import Path

from .records import Missing, now, read_json, read_records, run, run_checked, write_json

HERE = Path(__file__).resolve().parents[1]

# Of the budget, for the fit behind the runs.
FIT_SHARE = 0.07
# The four forms of Adan, and the share of the time in which kernels of the
# update ran on a V100 (scenarios/published/adan_optimizer.yaml, active_ratio).
ADAN = {"for-loop": ("for_loop", [], 18.48),
        "fused, a launch a tensor": ("fused", ["--launch-each-tensor"], 33.72),
        "multi-tensor": ("multi_tensor", [], 99.65),
        "fused": ("fused", [], 99.81)}


class Trainer:
    """`measure`, one request at a time."""

    def __init__(self, program, device):
        self.process = subprocess.Popen(
            [str(program), "measure", "--device", device], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def answer(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the trainer ended at " + json.dumps(request))
        return line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def measure_requests(options, requests, path, budget_s=math.inf):
    """Answers to as many as the budget holds; seconds, start included."""
    start = time.monotonic()
    with (Trainer(options.trainer, options.runs_on) as trainer,
          open(path, "w", encoding="utf-8") as records):
        for request in requests:
            left_s = budget_s - (time.monotonic() - start)
            if left_s <= 0:
                break
            longest_s = min(request.get("max_seconds", math.inf),
                            max(left_s, 0.1))
            if longest_s < math.inf:
                request = {**request, "max_seconds": longest_s}
            records.write(trainer.answer(request))
            records.flush()
        return time.monotonic() - start


def measure_calibration(options, settings):
    planned = read_records(options.folder / "calibration.plan.jsonl")
    return {"runs_s": measure_requests(
        options, planned, options.folder / "calibration.jsonl",
        (1 - FIT_SHARE) * settings["budget_s"])}


def measure_unseen(options, _):
    measure_requests(options,
                     read_records(options.folder / "unseen.plan.jsonl"),
                     options.folder / "unseen.jsonl")
    return {}


def bench(options, *arguments, request=None):
    result = run([options.trainer, "bench", *arguments, "--device",
                  options.runs_on],
                 input=json.dumps(request) + "\n" if request else "")
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or ["no message"]
        raise Missing(lines[-1])
    return json.loads(result.stdout.splitlines()[-1])


def measure_kernels(options, settings):
    """The optimizer's kernels between two copies, so that what changes the
    device's speed hits both."""
    def copy():
        return bench(options, "copy", "--bytes", settings["copy_bytes"])
    records = [copy()]
    result = {}
    for implementation, more, _ in ADAN.values():
        request = {"model": settings["optimizer_model"], "batch": 4,
                   "sequence_length": 32, "optimizer": {
                       "name": "adan", "implementation": implementation}}
        command = ["kernels", "--kind", "optimizer", *more]
        try:
            record = bench(options, *command, "--activity", request=request)
        except Missing as why:  # a driver may keep CUPTI for root
            result["no_activity"] = str(why)
            record = bench(options, *command, request=request)
        records.append(record)
    records.append(copy())
    (options.folder / "kernels.jsonl").write_text(
        "".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return result


def measure_energy(options, settings):
    requests = [{"model": settings["models"][0], "batch": settings["batches"][0]
                 * 8, "sequence_length": 128, "precision": precision,
                 "stack": stack, "steps": 2000, "warmup": 3,
                 "max_seconds": settings["energy_seconds"]}
                for precision in settings["precisions"]
                for stack in settings["stacks"]]
    measure_requests(options, requests, options.folder / "energy.jsonl")
    return {}


def measure_step_time(options, settings):
    probe = run([options.python, "-c", "import torch, transformers"])
    if probe.returncode != 0:
        raise Missing(f"{options.python}: "
                      + probe.stderr.strip().splitlines()[-1])
    for precision in settings["precisions"]:
        result = run([
            options.python, HERE / "compare_step_time.py", options.trainer,
            "--device", options.runs_on, "--precision", precision,
            "--model", settings["models"][0],
            "--stack", *settings["stacks"],
            "--attention", *settings["attentions"],
            "--shapes", *settings["shapes"], "--rounds", settings["rounds"],
            "--steps", settings["steps"],
            *(["--compile"] if settings["compile"] else []),
            "--json", options.folder / f"step_time_{precision}.json",
            "--markdown", options.folder / f"step_time_{precision}.md"])
        if result.returncode != 0:
            raise Missing((result.stderr.strip().splitlines()
                           or ["compare_step_time.py failed"])[-1])
    return {}


def measure_gpu_test(options, _):
    result = run([sys.executable, HERE / "gpu_test.py", options.trainer,
                  "--device", options.runs_on])
    (options.folder / "gpu_test.txt").write_text(result.stderr,
                                                 encoding="utf-8")
    last = (result.stderr.strip().splitlines() or ["no output"])[-1]
    return {"exit_code": result.returncode, "says": last}


PARTS = {"calibration": measure_calibration, "kernels": measure_kernels,
         "step_time": measure_step_time, "energy": measure_energy,
         "gpu_test": measure_gpu_test, "unseen": measure_unseen}


def driver():
    """Board, driver, clocks and limits, as nvidia-smi has them."""
    with contextlib.suppress(FileNotFoundError):
        result = run(["nvidia-smi", "--query-gpu=name,driver_version,"
                      "memory.total,clocks.max.sm,power.limit",
                      "--format=csv"])
        if result.returncode == 0:
            return result.stdout.strip().splitlines()
    return None


def measure(options):
    folder = options.folder
    settings = read_json(folder / "plan.json")
    found = [json.loads(line) for line in
             run_checked([options.trainer, "devices"]).splitlines()]
    if options.runs_on == "cuda" and not any(d["kind"] == "cuda"
                                             for d in found):
        reason = next(d["reason"] for d in found if d["kind"] == "none")
        print(f"skipped: {reason}")
        sys.exit(77)
    path = folder / "run.json"
    state = read_json(path) if path.exists() else {"parts": {}}
    state.update({
        "trainer": run_checked([options.trainer, "--version"]).strip(),
        "devices": found, "driver": driver(), "system": platform.platform(),
        "python": platform.python_version(), "runs_on": options.runs_on})
    for part in options.parts:
        print(f"{part} ...", file=sys.stderr, flush=True)
        start = time.monotonic()
        entry = {"started": now()}
        try:
            entry.update(PARTS[part](options, settings))
        except Missing as why:
            entry["missing"] = str(why)
            print(f"{part}: {why}", file=sys.stderr)
        entry["wall_s"] = time.monotonic() - start
        state["parts"][part] = entry
        write_json(path, state)
