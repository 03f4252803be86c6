"""docs/results/stacks.md: what stacks take beyond what their kernels do.

A row's error is log(measured / predicted), as shipped, of rows that no fit that
ships was made from. Of a stack it is the mean over sources of the mean over
their devices of the median row; its standard error is by how much sources
differ. An effect that all devices share would be that far from 0.
"""

import collections
import csv
import math
import re
import statistics

from .intervals import LEFT_OUT, OTHERS
from .pages import Page, table

INTRODUCTION = """
What rows of a stack take over what is predicted of them, as shipped, of runs that made no fit: the
median of a device, the mean of a source's devices, the mean of sources. *error*: the standard error
of that mean, by how much sources differ; *apart*: two of them or more from 0, by three sources. A
row counts in each stack that its framework or its notes name. A stack's kernels, launches, sharding
and losses are [its rules](../models/counts.md#stacks); what they cost is fitted with priors that
all devices share ([GPUs](../models/gpu.md), [ranks](../models/data_parallel.md)). What is left of
a stack beyond that is here, and no answer has it added. [What misses, and
why](../models/misses.md).
"""

STACKS = [
    ("FSDP", r"fsdp|torchtitan|torchtune|llm-foundry"),
    ("DeepSpeed", r"deepspeed"),
    ("NeMo, Megatron-Core", r"nemo|megatron-core"),
    ("Liger", r"liger"),
    ("Unsloth's kernels", r"unsloth|foak|fast[_ ]kernels"),
    ("PyTorch, compiled", r"torch\.compile|inductor"),
    ("JAX (MaxText, Paxml)", r"jax|maxtext|paxml"),
    ("TensorFlow", r"tensorflow"),
    ("Habana", r"habana"),
    ("Neuron", r"neuron"),
    ("LightSeq", r"lightseq"),
]


def notes_of(given, tables):
    """Of a row, by its label, the framework and the notes of its table."""
    notes = {}
    for name in tables:
        path = given.tables / f"{name}.csv"
        with open(path, encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file), 2):
                notes[path.name, number] = " ".join(
                    row.get(key) or "" for key in ("framework", "stack_notes"))
    return notes


def line_of(label):
    return re.search(r"([^/]+\.csv):(\d+)", label).groups()


def errors(given):
    """log(measured / predicted) by stack, by source, by device."""
    tables = LEFT_OUT + OTHERS
    notes = notes_of(given, tables)
    found = collections.defaultdict(lambda: collections.defaultdict(
        lambda: collections.defaultdict(list)))
    for name in tables:
        answer = given.program.json("validate",
                                    str(given.tables / f"{name}.csv"))
        for row in answer["rows"]:
            if row["fitted"]:
                continue
            file, number = line_of(row["label"])
            words = f"{row['framework']} {notes[file, int(number)]}"
            for stack, pattern in STACKS:
                if re.search(pattern, words, re.IGNORECASE):
                    found[stack][row["measured_by"]][row["device"]].append(
                        math.log(row["measured_s"] / row["predicted_s"]))
    return found


def line(stack, sources):
    of_sources = [statistics.mean(map(statistics.median, devices.values()))
                  for devices in sources.values()]
    rows = sum(len(of) for devices in sources.values()
               for of in devices.values())
    devices = {device for of in sources.values() for device in of}
    mean = statistics.mean(of_sources)
    if len(of_sources) < 2:
        return [stack, str(rows), str(len(devices)), "1",
                f"{100 * mean:+.1f}", "-", "-"]
    error = statistics.stdev(of_sources) / math.sqrt(len(of_sources))
    apart = len(of_sources) > 2 and abs(mean) >= 2 * error
    return [stack, str(rows), str(len(devices)), str(len(of_sources)),
            f"{100 * mean:+.1f}", f"{100 * error:.1f}",
            "yes" if apart else "no"]


def body(given):
    found = errors(given)
    return table(["stack", "rows", "devices", "sources", "beyond, %",
                  "error, %", "apart"], "lrrrrrl",
                 [line(stack, found[stack]) for stack, _ in STACKS
                  if found[stack]])


PAGES = [Page("stacks", "What stacks take beyond their kernels", INTRODUCTION,
              body, needs_tables=True)]
