"""Steps of ranks that share state, at points that were not run.

    sharded_points.py TRAINER TRAINFARE [--ranks 2,4] [--points 10] [--seed 1]

A fit is made from runs of one rank and from collectives timed by themselves
(--unshared-runs: and from runs over the ranks, of which each has all); then
small decoders like Llama's at random sizes, batches and lengths train over
ranks of this host, sharing what a draw says, each twice. Prints measured and predicted step
of each, how far its two measurements are apart, and whether the 80 % interval held
their middle. Nothing is fitted to a run that
shares state. An even machine is what it asks for: minutes, nothing beside it.
"""

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SHARDS = ("zero1", "zero2", "zero3", "fsdp")
BYTES = "262144,1048576,4194304,16777216"


def decoder(layers, hidden):
    return {"name": f"{layers}x{hidden}", "family": "decoder",
            "layers": layers, "hidden": hidden, "heads": hidden // 32,
            "key_value_heads": hidden // 64, "intermediate": hidden * 8 // 3,
            "vocabulary": 4000, "positions": 2048, "token_types": 0,
            "embedding_layer_norm": False, "dropout": 0, "norm": "rms",
            "norm_bias": False, "norm_placement": "before",
            "position_kind": "rotary", "separate_projections": True, "attention_bias": False,
            "output_bias": False, "feed_forward_bias": False,
            "activation": "silu", "gated": True, "untied_output": True,
            "separate_projections": True, "pooler": False,
            "head": "causal-language-model"}


def draw(generator, steps):
    return {"model": decoder(generator.choice((2, 3, 4, 6, 8)),
                             generator.choice((192, 256, 384))),
            "batch": generator.choice((1, 2, 3, 4, 6)),
            "sequence_length": generator.choice((32, 48, 64, 96, 128)),
            "steps": steps, "warmup": 2}


def run_ranks(trainer, count, arguments):
    """The trainer as `count` ranks of this host, one thread each."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = [
        subprocess.Popen(
            [trainer, *map(str, arguments), "--threads", "1"],
            env={**os.environ, "OMP_WAIT_POLICY": "passive",
                 "RANK": str(rank), "WORLD_SIZE": str(count),
                 "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(count),
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
        for rank in range(count)]
    if max(process.wait() for process in processes) != 0:
        raise RuntimeError("a rank failed")


def write_plan(path, requests):
    path.write_text("".join(json.dumps(one) + "\n" for one in requests))
    return path


def medians(path):
    """Each workload with the median steps of its records, in their order."""
    found = {}
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if record["kind"] != "step":
            raise RuntimeError(record["message"])
        _, steps = found.setdefault(
            json.dumps(record["workload"], sort_keys=True),
            (record["workload"], []))
        steps.append(statistics.median(
            sample["step_s"] for sample in record["samples"]
            if not sample["warmup"]))
    return list(found.values())


# What a record says with the model and a scenario beside it.
OF_TASK = ("head", "labels", "dropout", "next_token_blocks")


def predicted(trainfare, folder, workload, fit, ranks):
    """The prediction of `trainfare predict` for what a record ran."""
    model = {key: value for key, value in workload["model"].items()
             if key not in OF_TASK}
    scenario = folder / "point.yaml"
    scenario.write_text(json.dumps({  # JSON is YAML
        "name": "point", "model": model, "task": workload["model"]["head"],
        "dataset": {"name": "random words", "train": 1000}, "epochs": 1,
        "batch": workload["batch"],
        "padding": {"static": workload["sequence_length"]},
        "precision": workload["precision"], "stack": workload["stack"],
        "attention": workload["attention"],
        "optimizer": {key: workload["optimizer"][key]
                      for key in ("name", "implementation")},
        "parallel": {"shard": workload["parallel"]["shard"]}}))
    text = subprocess.run(
        [trainfare, "predict", scenario, "--fit", fit, "--devices", str(ranks),
         "--start-up", "0", "--format", "json"],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(text)["predictions"][0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trainer")
    parser.add_argument("trainfare")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--one-rank-runs", type=int, default=16)
    parser.add_argument("--unshared-runs", type=int, default=0,
                        help="runs over the ranks, each with all of its state, "
                        "that the fit sees too")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    generator = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        compare(options, generator, folder)
    return 0


def compare(options, generator, folder):
    counts = [int(count) for count in options.ranks.split(",")]
    one = folder / "one.jsonl"
    plan = write_plan(folder / "one-plan.jsonl",
                      [draw(generator, options.steps)
                       for _ in range(options.one_rank_runs)])
    subprocess.run([options.trainer, "measure", "--plan", plan, "--out", one],
                   check=True)
    collectives = folder / "collectives.jsonl"
    for count in counts:
        run_ranks(options.trainer, count,
                  ["bench", "collectives", "--operations",
                   "all_reduce,all_gather,reduce_scatter", "--bytes", BYTES,
                   "--samples", 15, "--out", collectives])
        if options.unshared_runs > 0:
            unshared = write_plan(folder / "unshared-plan.jsonl",
                                  [draw(generator, options.steps)
                                   for _ in range(options.unshared_runs)])
            run_ranks(options.trainer, count,
                      ["measure", "--plan", unshared, "--out", collectives])
    fit = folder / "fit.yaml"
    subprocess.run([options.trainfare, "calibrate", "--from", one, collectives,
                    "--output", fit], check=True, stdout=subprocess.DEVNULL)
    errors = []
    inside = 0
    for count in counts:
        points = [{**draw(generator, options.steps),
                   "parallel": {"shard": SHARDS[i % len(SHARDS)]}}
                  for i in range(options.points)]
        out = folder / f"over-{count}.jsonl"
        plan = write_plan(folder / f"plan-{count}.jsonl", points)
        for _ in range(2):
            run_ranks(options.trainer, count,
                      ["measure", "--out", out, "--plan", plan])
        for workload, steps in medians(out):
            measured = statistics.median(steps)
            answer = predicted(options.trainfare, folder, workload, fit, count)
            step, low, high = (answer[f"step_time{end}_s"]
                               for end in ("", "_low", "_high"))
            errors.append(step / measured - 1)
            inside += low <= measured <= high
            print(f"{count} ranks {workload['parallel']['shard']:5} "
                  f"{workload['model']['name']:6} "
                  f"{workload['batch']}x{workload['sequence_length']:<3} "
                  f"measured {1e3 * measured:7.1f} ms, predicted "
                  f"{1e3 * step:7.1f} ({1e3 * low:.1f} .. {1e3 * high:.1f}) "
                  f"{errors[-1]:+.1%}, apart "
                  f"{max(steps) / min(steps) - 1:.1%}", flush=True)
    sizes = [abs(error) for error in errors]
    print(f"median {statistics.median(sizes):.1%}, worst {max(sizes):.1%}, "
          f"{inside} of {len(sizes)} inside")


if __name__ == "__main__":
    sys.exit(main())
