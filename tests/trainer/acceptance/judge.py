"""What was measured against what is to be reached: the table."""

import contextlib
import statistics

from .measure import ADAN
from .records import Missing, read_json, read_records

# One pass of Adan in fp32: parameter, gradient, three moments and the last
# gradient read; all but the gradient written.
ADAN_BYTES = 4 * (6 + 5)

TARGETS = {"median": 0.03, "worst": 0.08, "copy": 0.85, "for_loop": 5.0,
           "eager": 1.0, "fused": 0.8}


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
