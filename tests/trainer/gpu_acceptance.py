"""What the trainer and its calibration have to reach on a GPU, in one command.

    python3 tests/trainer/gpu_acceptance.py all FOLDER --device h100_sxm \\
        --trainfare build/release/bin/trainfare \\
        --trainer build/release/bin/trainfare-trainer

writes the plan, the records and the table (acceptance.md) into FOLDER, made to
be committed as it is. Where trainfare cannot be built on the GPU's machine, its
steps run apart, FOLDER going to and fro:

    plan FOLDER --trainfare .. --device ..   anywhere: what will be run
    measure FOLDER --trainer ..              on the GPU: trainer and Python alone
    predict FOLDER --trainfare ..            anywhere: the fit, the unseen points
    judge FOLDER                             anywhere: the table

`measure --parts calibration`, `predict`, `measure --parts unseen` is the order in
which the unseen points are predicted before they are measured; the table says
whether they were. Exit codes: 0 every target is met, 1 not, 77 no GPU here.
docs/guide/trainer.md, "How it is tested".
"""

import argparse
import contextlib
import datetime
import json
import math
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PARTS = ["calibration", "kernels", "step_time", "energy", "gpu_test", "unseen"]
HERE = Path(__file__).resolve().parent

# What is run, unless an option of `plan` says otherwise.
SETTINGS = {
    "models": ["bert-base-uncased", "bert-large-uncased"],
    "precisions": ["bf16", "fp32"],
    "stacks": ["eager", "fused"],
    "batches": [4, 256],
    "lengths": [32, 512],
    "budget_s": 300,
    "points": 20,
    "seed": 20,
    "optimizer_model": "bert-base-uncased",
    "copy_bytes": 1 << 30,
    "energy_seconds": 15,
    "shapes": ["8x128", "32x128", "32x512"],
    "attentions": ["materialised", "flash"],
    "compile": True,
    "rounds": 4,
    "steps": 10,
}
# Of the budget, for the fit behind the runs.
FIT_SHARE = 0.07
# Of the memory: what a point may take of it, as calibrate's own plan.
MEMORY_SHARE = 0.85

# One pass of Adan in fp32: parameter, gradient, three moments and the last
# gradient read; all but the gradient written.
ADAN_BYTES = 4 * (6 + 5)
# The four forms of Adan, and the share of the time in which kernels of the
# update ran on a V100 (scenarios/published/adan_optimizer.yaml, active_ratio).
ADAN = {"for-loop": ("for_loop", [], 18.48),
        "fused, a launch a tensor": ("fused", ["--launch-each-tensor"], 33.72),
        "multi-tensor": ("multi_tensor", [], 99.65),
        "fused": ("fused", [], 99.81)}

TARGETS = {"median": 0.03, "worst": 0.08, "copy": 0.85, "for_loop": 5.0,
           "eager": 1.0, "fused": 0.8}


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


# plan

def scenario_of(request):
    return "\n".join([
        "name: a point of the acceptance",
        f"model: {request['model']}",
        "task: sequence-classification",
        "dataset: { name: random words, train: 100000, eval: 0 }",
        "epochs: 1",
        f"batch: {request['batch']}",
        f"padding: {{ static: {request['sequence_length']} }}",
        f"precision: {request['precision']}",
        "optimizer: { name: adamw, implementation: fused }",
        f"stack: {request['stack']}", ""])


def predict(trainfare, device, request, fit=None):
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "point.yaml"
        scenario.write_text(scenario_of(request), encoding="utf-8")
        more = ["--fit", fit] if fit else []
        text = run_checked([trainfare, "predict", scenario, "--device", device,
                            "--format", "json", "--quiet", *more])
    return json.loads(text)["predictions"][0]


def log_uniform(generator, low, high):
    return round(math.exp(generator.uniform(math.log(low), math.log(high))))


def draw_points(settings, planned, fits):
    """Requests of shapes that the calibration does not run, over all models,
    precisions and stacks in turn; the seed decides all."""
    generator = random.Random(settings["seed"])
    known = {(r["batch"], r["sequence_length"]) for r in planned}
    kinds = [(model, precision, stack) for model in settings["models"]
             for precision in settings["precisions"]
             for stack in settings["stacks"]]
    points = []
    while len(points) < settings["points"]:
        model, precision, stack = kinds[len(points) % len(kinds)]
        shape = (log_uniform(generator, *settings["batches"]),
                 log_uniform(generator, *settings["lengths"]))
        request = {"model": model, "batch": shape[0],
                   "sequence_length": shape[1], "precision": precision,
                   "optimizer": {"name": "adamw", "implementation": "fused"},
                   "stack": stack, "attention": "materialised", "steps": 20,
                   "warmup": 2, "max_seconds": 20}
        if shape in known or not fits(request):
            continue
        known.add(shape)
        points.append(request)
    return points


def plan(options):
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    settings = {key: getattr(options, key) for key in SETTINGS}
    calibration = folder / "calibration.plan.jsonl"
    # More than the budget, for a device that is faster than its datasheet.
    run_checked([options.trainfare, "calibrate", "--plan", calibration,
                 "--device", options.device,
                 "--budget", f"{2 * settings['budget_s']}s",
                 "--precision", ",".join(settings["precisions"]),
                 "--models", ",".join(settings["models"])])
    planned = read_records(calibration)

    def fits(request):
        answer = predict(options.trainfare, options.device, request)
        return (answer["memory_bytes"]
                <= MEMORY_SHARE * answer["memory_capacity_bytes"])
    points = draw_points(settings, planned, fits)
    (folder / "unseen.plan.jsonl").write_text(
        "".join(json.dumps(p) + "\n" for p in points), encoding="utf-8")
    write_json(folder / "plan.json", {
        "made": now(), "device": options.device,
        "trainfare": run_checked([options.trainfare, "--version"]).strip(),
        **settings})
    print(f"{len(planned)} runs to calibrate with, {len(points)} points that "
          f"are not among them: {folder}", file=sys.stderr)


# measure

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
            entry.update(globals()[f"measure_{part}"](options, settings))
        except Missing as why:
            entry["missing"] = str(why)
            print(f"{part}: {why}", file=sys.stderr)
        entry["wall_s"] = time.monotonic() - start
        state["parts"][part] = entry
        write_json(path, state)


# predict

def predict_points(options):
    folder = options.folder
    settings = read_json(folder / "plan.json")
    fit = folder / "fit.yaml"
    start = time.monotonic()
    run_checked([options.trainfare, "calibrate", "--from",
                 folder / "calibration.jsonl", "--device", settings["device"],
                 "--output", fit, "--quiet"])
    fit_s = time.monotonic() - start
    points = []
    for request in read_records(folder / "unseen.plan.jsonl"):
        answer = predict(options.trainfare, settings["device"], request, fit)
        points.append({**request, **{key: answer[key] for key in (
            "step_time_s", "step_time_low_s", "step_time_high_s", "grade")}})
    write_json(folder / "predictions.json",
               {"made": now(), "fit_s": fit_s, "points": points})


# judge

def row(what, target, figure, met=None):
    """`met`: None where the figure is stated and has no target."""
    return {"what": what, "target": target, "figure": figure, "met": met}


def missing(what, target, why):
    return row(what, target, f"not measured: {why}",
               False if target else None)


def median_of(record, key="time_s"):
    return statistics.median(s[key] for s in record["samples"]
                             if not s.get("warmup"))


def key_of(workload):
    """Of a request and of the workload of its record."""
    model = workload["model"]
    return (model if isinstance(model, str) else model["name"],
            workload["batch"], workload["sequence_length"],
            workload["precision"], workload["stack"])


def judge_calibration(folder, settings, state):
    what = "calibration, runs and fit"
    target = f"<= {settings['budget_s']} s"
    try:
        runs_s = state["parts"]["calibration"]["runs_s"]
        fit_s = read_json(folder / "predictions.json")["fit_s"]
        records = read_records(folder / "calibration.jsonl")
    except KeyError:
        return [missing(what, target, "no calibration")]
    except Missing as why:
        return [missing(what, target, why)]
    runs = sum(r["kind"] == "step" for r in records)
    return [row(what, target, f"{runs_s:.0f} + {fit_s:.0f} s, {runs} runs",
                runs_s + fit_s <= settings["budget_s"])]


def judge_unseen(folder, settings, state):
    whats = [("error of unseen points, median", "median"),
             ("error of unseen points, worst", "worst")]
    try:
        predictions = read_json(folder / "predictions.json")
        records = read_records(folder / "unseen.jsonl")
    except Missing as why:
        return [missing(what, f"<= {TARGETS[t]:.0%}", why)
                for what, t in whats]
    measured = {key_of(r["workload"]): median_of(r, "step_s")
                for r in records if r["kind"] == "step"}
    errors = []
    inside = 0
    for point in predictions["points"]:
        if key_of(point) not in measured:
            continue
        step_s = measured[key_of(point)]
        errors.append(abs(point["step_time_s"] / step_s - 1))
        inside += (point["step_time_low_s"] <= step_s
                   <= point["step_time_high_s"])
    count = len(predictions["points"])
    if not errors:
        return [missing(what, f"<= {TARGETS[t]:.0%}", "no point ran")
                for what, t in whats]
    started = state["parts"].get("unseen", {}).get("started", "")
    before = bool(started) and predictions["made"] <= started
    figures = {"median": statistics.median(errors), "worst": max(errors)}
    complete = len(errors) == count
    rows = [row(what, f"<= {TARGETS[t]:.0%}",
                f"{figures[t]:.1%}, {len(errors)} of {count} points",
                complete and figures[t] <= TARGETS[t]) for what, t in whats]
    rows.append(row("points inside the 80 % interval", "",
                    f"{inside} of {len(errors)}"))
    rows.append(row("predicted before they were measured", "yes",
                    "yes" if before else "no, by a fit without them", before))
    return rows


def judge_kernels(folder, settings, state):
    target = f">= {TARGETS['copy']:.0%}"
    whats = [("fused Adan, of the copy's bandwidth", target),
             ("fused Adan, times the for-loop's speed",
              f">= {TARGETS['for_loop']:.0f}")]
    part = state["parts"].get("kernels", {})
    try:
        if "missing" in part:
            raise Missing(part["missing"])
        records = read_records(folder / "kernels.jsonl")
    except Missing as why:
        return [missing(what, target, why) for what, target in whats]
    copies = [r for r in records if r["kind"] == "copy"]
    adan = dict(zip(ADAN, (r for r in records if r["kind"] == "kernel")))
    copy = max(2 * r["bytes"] / median_of(r) for r in copies)
    parameters = settings_parameters(adan["fused"])
    fused_s = median_of(adan["fused"])
    bandwidth = ADAN_BYTES * parameters / fused_s
    speedup = median_of(adan["for-loop"]) / fused_s
    rows = [row(*whats[0], f"{bandwidth / copy:.1%} ({bandwidth / 1e9:.0f} of "
                f"{copy / 1e9:.0f} GB/s)",
                bandwidth >= TARGETS["copy"] * copy),
            row(*whats[1], f"{speedup:.1f}", speedup >= TARGETS["for_loop"])]
    for name, (_, _, published) in ADAN.items():
        what = f"Adan {name}: share of the time in which kernels run"
        record = adan[name]
        if "activity" not in record:
            rows.append(missing(what, "", part.get("no_activity", "unknown")))
            continue
        activity = record["activity"]
        share = activity["active_s"] / median_of(record)
        rows.append(row(what, "", f"{share:.1%}, {activity['launches']} "
                        f"launches, {1e3 * median_of(record):.3f} ms "
                        f"(published, V100: {published} %)"))
    return rows


def settings_parameters(record):
    """Parameters of the model whose update a record timed: an update reads one
    gradient an element, so the kernel's elements are they."""
    kernel = record["kernels"][0]
    return kernel["work_items"] * kernel["launches"]


def judge_step_time(folder, settings, state):
    part = state["parts"].get("step_time", {})
    rows = []
    for precision in settings["precisions"]:
        for stack in settings["stacks"]:
            what = f"step against Transformers eager, {precision}, {stack}"
            target = f"<= {TARGETS[stack]}"
            try:
                if "missing" in part:
                    raise Missing(part["missing"])
                table = read_json(folder / f"step_time_{precision}.json")
            except Missing as why:
                rows.append(missing(what, target, why))
                continue
            ratios = [r["ratio"][stack] for r in table["rows"]]
            rows.append(row(what, target, "worst "
                            f"{max(ratios):.2f} of {len(ratios)} shapes "
                            f"({', '.join(f'{r:.2f}' for r in ratios)})",
                            max(ratios) <= TARGETS[stack]))
            compiled = [r["ratio_to_compiled"].get(stack)
                        for r in table["rows"]]
            if None not in compiled:
                rows.append(row(
                    f"step against torch.compile, {precision}, {stack}", "",
                    ", ".join(f"{r:.2f}" for r in compiled)))
    return rows


def judge_energy(folder, settings, state):
    try:
        records = read_records(folder / "energy.jsonl")
    except Missing as why:
        return [missing("energy a step", "", why)]
    rows = []
    for record in records:
        if record["kind"] != "step":
            rows.append(missing("energy a step", "", record["message"]))
            continue
        model, batch, length, precision, stack = key_of(record["workload"])
        what = (f"energy a step, {model} {batch} x {length}, {precision}, "
                f"{stack}")
        energy = record["energy"]
        if "missing" in energy:
            rows.append(missing(what, "", energy["missing"]))
            continue
        steps = sum(not s["warmup"] for s in record["samples"])
        rows.append(row(what, "", f"{energy['energy_j'] / steps:.3g} J, "
                        f"{energy['energy_j'] / energy['wall_s']:.0f} W, "
                        f"{steps} steps ({energy['source']})"))
    return rows


def judge_gpu_test(folder, settings, state):
    part = state["parts"].get("gpu_test")
    what = "ctest -R trainer.gpu"
    if part is None:
        return [missing(what, "passes", "it did not run")]
    return [row(what, "passes", part["says"], part["exit_code"] == 0)]


def judge_conditions(folder, settings, state):
    disturbed = throttled = runs = 0
    for name in ("calibration", "unseen", "energy", "kernels"):
        with contextlib.suppress(Missing):
            for record in read_records(folder / f"{name}.jsonl"):
                runs += record["kind"] != "error"
                disturbed += bool(record.get("disturbed"))
                throttled += bool(record.get("gpu", {}).get("throttled"))
    return [row("records of a disturbed or throttled device", "",
                f"{disturbed} and {throttled} of {runs}")]


def table_of(folder):
    settings = read_json(folder / "plan.json")
    try:
        state = read_json(folder / "run.json")
    except Missing:
        state = {"parts": {}}
    rows = []
    for part in (judge_calibration, judge_unseen, judge_kernels,
                 judge_step_time, judge_energy, judge_gpu_test,
                 judge_conditions):
        rows += part(folder, settings, state)
    return settings, state, rows


VERDICTS = {True: "met", False: "missed", None: ""}


def judge(options):
    settings, state, rows = table_of(options.folder)
    devices = ", ".join(d.get("name", "") for d in state.get("devices", [])
                        if d["kind"] == state.get("runs_on"))
    lines = [f"# Targets on a GPU: {settings['device']}", "",
             f"Ran on {devices or 'nothing yet'}; "
             f"{state.get('trainer', 'no trainer yet')}; plan of "
             f"{settings['made']}, seed {settings['seed']}."]
    lines += [f"`{line}`" for line in state.get("driver") or []]
    lines += ["", "| | target | figure | |", "| --- | --- | --- | --- |"]
    for r in rows:
        verdict = VERDICTS[r["met"]]
        if r["figure"].startswith("not measured") and r["target"]:
            verdict = "not measured"
        lines.append(f"| {r['what']} | {r['target']} | {r['figure']} | "
                     f"{verdict} |")
    text = "\n".join(lines) + "\n"
    (options.folder / "acceptance.md").write_text(text, encoding="utf-8")
    print(text, end="")
    return 0 if all(r["met"] is not False for r in rows) else 1


def run_all(options):
    plan(options)
    options.parts = [p for p in PARTS if p != "unseen"]
    measure(options)
    predict_points(options)
    options.parts = ["unseen"]
    measure(options)
    return judge(options)


def add_plan_options(parser):
    parser.add_argument("--device", required=True,
                        help="of `trainfare list devices`: h100_sxm")
    for key, value in SETTINGS.items():
        name = "--" + key.replace("_", "-")
        if isinstance(value, bool):
            parser.add_argument(name, action=argparse.BooleanOptionalAction,
                                default=value)
        elif isinstance(value, list):
            parser.add_argument(name, nargs="+", type=type(value[0]),
                                default=value)
        else:
            parser.add_argument(name, type=type(value), default=value)


def add_measure_options(parser):
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--runs-on", choices=["cuda", "cpu"], default="cuda",
                        help="cpu: a check of this script")
    parser.add_argument("--python", default=sys.executable,
                        help="with PyTorch and Transformers, for the step time")


def parse(arguments):
    parser = argparse.ArgumentParser()
    steps = parser.add_subparsers(dest="step", required=True)
    for name in ("plan", "measure", "predict", "judge", "all"):
        step = steps.add_parser(name)
        step.add_argument("folder", type=Path)
        if name in ("plan", "predict", "all"):
            step.add_argument("--trainfare", required=True)
        if name in ("plan", "all"):
            add_plan_options(step)
        if name in ("measure", "all"):
            add_measure_options(step)
        if name == "measure":
            step.add_argument("--parts", nargs="+", choices=PARTS,
                              default=PARTS)
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse(arguments)
    steps = {"plan": plan, "measure": measure, "predict": predict_points,
             "judge": judge, "all": run_all}
    try:
        return steps[options.step](options) or 0
    except Missing as why:
        raise SystemExit(f"error: {why}") from None


if __name__ == "__main__":
    sys.exit(main())
