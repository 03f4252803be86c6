#!/usr/bin/env python3
"""Bytes that PyTorch holds at most for each logit of a cross entropy.

Needs torch 2.11 (tests/trainer/reference_env.sh makes such an environment).

    tests/model/kept_by_loss.py

Allocations of the CPU, as the profiler has them, of an output layer and the loss over it: in
training, and of a pass forward alone. The logits go with the call, as with Transformers'
Trainer. docs/models/memory.md has the figures.
"""

import contextlib

import torch
import torch.nn.functional as functional
from torch.profiler import ProfilerActivity, profile

ROWS, WIDTH, CLASSES = 512, 64, 8192


def most_held(work):
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        work()
    events = [event for event in watched.profiler.kineto_results.events()
              if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most


def bytes_of_a_logit(autocast, trains):
    weights = torch.nn.Parameter(torch.randn(CLASSES, WIDTH))
    hidden, labels = torch.randn(ROWS, WIDTH), torch.randint(0, CLASSES, (ROWS,))

    def loss():
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            return functional.cross_entropy(functional.linear(hidden, weights), labels)

    def work():
        with contextlib.nullcontext() if trains else torch.no_grad():
            value = loss()
        if trains:
            value.backward()

    return most_held(work) / (ROWS * CLASSES)


def main():
    for autocast in (False, True):
        for trains in (True, False):
            print(f"{'autocast' if autocast else 'fp32'}, "
                  f"{'training' if trains else 'forward'}: "
                  f"{bytes_of_a_logit(autocast, trains):.1f}")


if __name__ == "__main__":
    main()
