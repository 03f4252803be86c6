"""What will be run: the calibration, and points that are not among it."""

import json
import math
import random
import sys

from .predict import predict
from .records import now, read_records, run_checked, write_json

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
# Of the memory: what a point may take of it, as calibrate's own plan.
MEMORY_SHARE = 0.85


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
