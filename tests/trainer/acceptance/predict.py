"""The fit of what was measured, and what it says of the unseen points."""

import json
import tempfile
import time
from pathlib import Path

from .records import now, read_json, read_records, run_checked, write_json


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
