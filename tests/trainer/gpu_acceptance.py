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
docs/guide/changing.md, "How the trainer is tested".
"""

import argparse
import sys
from pathlib import Path

from acceptance.judge import judge
from acceptance.measure import PARTS, measure
from acceptance.plan import SETTINGS, plan
from acceptance.predict import predict_points
from acceptance.records import Missing


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
                              default=list(PARTS))
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
