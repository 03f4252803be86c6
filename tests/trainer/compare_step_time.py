"""Step time of trainfare-trainer against PyTorch and Transformers, one run.

    $(tests/trainer/reference_env.sh) tests/trainer/compare_step_time.py \\
        build/release/bin/trainfare-trainer [--device cuda] \\
        [--precision bf16] [--stack eager fused] [--compile] \\
        [--markdown FILE] [--json FILE]

All train a model's dimensions from random weights: forward, backward and AdamW on
full-length sequences, the same number of threads; BERT with dropout 0.1. The
reference is BertForSequenceClassification or LlamaForCausalLM, eager, with
materialised attention and with scaled_dot_product_attention, of which the faster
counts, and torch.optim.AdamW as it comes; in bf16 and fp16 under torch.autocast,
fp16 with a GradScaler. With
--compile its compiled form runs beside it. Rounds alternate between the
programs, so that a slow minute hits all of them; the figure is the median step.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import time

import torch
import transformers

SHAPES = ["8x32", "8x128", "32x32", "32x128"]  # batch x length
# As the trainer's presets.
MODELS = {
    "bert-tiny": {"num_hidden_layers": 2, "hidden_size": 128,
                  "num_attention_heads": 2, "intermediate_size": 512},
    "bert-base-uncased": {},
    "bert-large-uncased": {"num_hidden_layers": 24, "hidden_size": 1024,
                           "num_attention_heads": 16,
                           "intermediate_size": 4096},
}
# Decoders like Llama's: of 60 M parameters, and with 2 blocks of llama-3.2-1b.
DECODERS = {
    "llama-60m": {"num_hidden_layers": 8, "hidden_size": 512,
                  "num_attention_heads": 8, "num_key_value_heads": 4,
                  "intermediate_size": 1408, "vocab_size": 32000},
    "llama-wide": {"num_hidden_layers": 2, "hidden_size": 2048,
                   "num_attention_heads": 32, "num_key_value_heads": 8,
                   "intermediate_size": 8192, "vocab_size": 32000},
}
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Reference:
    def __init__(self, options, attention, compiled=False):
        torch.manual_seed(1)
        self.device = options.device
        self.type = TYPES.get(options.precision)
        self.causal = options.model in DECODERS
        if self.causal:
            config = transformers.LlamaConfig(attn_implementation=attention,
                                              **DECODERS[options.model])
            model = transformers.LlamaForCausalLM(config)
        else:
            config = transformers.BertConfig(attn_implementation=attention,
                                             **MODELS[options.model])
            model = transformers.BertForSequenceClassification(config)
        model = model.to(self.device).train()
        self.vocabulary = config.vocab_size
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
        # A program a shape, as eager kernels have.
        self.model = torch.compile(model, dynamic=False) if compiled else model
        self.scaler = torch.amp.GradScaler(
            self.device, enabled=options.precision == "fp16")

    def _step(self, ids, labels):
        narrow = (torch.autocast(self.device, self.type) if self.type
                  else contextlib.nullcontext())
        self.optimizer.zero_grad()
        with narrow:
            loss = self.model(input_ids=ids, labels=labels).loss
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def _wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def steps(self, batch, length, count):
        ids = torch.randint(1, self.vocabulary, (batch, length))
        labels = ids if self.causal else torch.randint(0, 2, (batch,))
        times = []
        for _ in range(count + 1):
            self._wait()
            start = time.perf_counter()
            self._step(ids.to(self.device), labels.to(self.device))
            self._wait()
            times.append(time.perf_counter() - start)
        return times[1:]


def asked_model(name):
    """As the trainer's requests name it."""
    if name not in DECODERS:
        return name
    config = DECODERS[name]
    return {"name": name, "family": "decoder",
            "layers": config["num_hidden_layers"],
            "hidden": config["hidden_size"],
            "heads": config["num_attention_heads"],
            "key_value_heads": config["num_key_value_heads"],
            "intermediate": config["intermediate_size"],
            "vocabulary": config["vocab_size"], "positions": 2048,
            "token_types": 0, "embedding_layer_norm": False, "dropout": 0,
            "norm": "rms", "norm_bias": False, "norm_placement": "before",
            "position_kind": "rotary", "separate_projections": True, "attention_bias": False,
            "output_bias": False, "feed_forward_bias": False,
            "activation": "silu", "gated": True, "untied_output": True,
            "separate_projections": True, "pooler": False}


class Trainer:
    """A process of one stack and attention, which so keeps its model."""

    def __init__(self, options, stack, attention):
        self.options = options
        self.stack = stack
        self.attention = attention
        self.process = subprocess.Popen(
            [options.trainer, "measure", "--threads", str(options.threads),
             "--device", options.device], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.device = self.software = None  # as the records say

    def steps(self, batch, length, count):
        self.process.stdin.write(json.dumps(
            {"model": asked_model(self.options.model), "batch": batch,
             "sequence_length": length, "steps": count, "warmup": 1,
             "precision": self.options.precision, "stack": self.stack,
             "attention": self.attention,
             "optimizer": {"name": "adamw", "implementation":
                           self.options.implementation}}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if answer["kind"] == "error":
            sys.exit(f"error: the trainer: {answer['message']}")
        self.device = answer["device"]
        self.software = answer["software"]
        return [s["step_s"] for s in answer["samples"] if not s["warmup"]]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def contestants(options):
    """The trainers, and what is timed, by name: a function of batch, length and
    steps."""
    trainers = []
    found = {}
    for stack in options.stack:
        for attention in options.attention:
            name = f"trainer {stack}"
            if len(options.attention) > 1:
                name += f" {attention}"
            trainers.append(Trainer(options, stack, attention))
            found[name] = trainers[-1].steps
    for attention in ("eager", "sdpa"):
        found[f"Transformers {attention}"] = Reference(options, attention).steps
    if options.compile:
        found["torch.compile"] = Reference(options, "sdpa", compiled=True).steps
    return trainers, found


def compare(options, found):
    """A row a shape: medians, and ratios of the trainer's stacks."""
    for shape in options.shapes:
        batch, length = map(int, shape.split("x"))
        times = {name: [] for name in found}
        if options.compile:
            found["torch.compile"](batch, length, 1)  # compiles, not timed
        for _ in range(options.rounds):
            for name, steps in found.items():
                times[name] += steps(batch, length, options.steps)
        median = {name: statistics.median(t) for name, t in times.items()}
        row = {"batch": batch, "length": length, "samples": times,
               "median_s": median, "ratio": {}, "ratio_to_compiled": {},
               "spread": {}}
        reference = min(median["Transformers eager"],
                        median["Transformers sdpa"])
        for stack in options.stack:
            best = min((name for name in median
                        if name.split()[:2] == ["trainer", stack]),
                       key=median.get)
            row["ratio"][stack] = median[best] / reference
            row["spread"][stack] = (max(times[best]) - min(times[best])
                                    ) / median[best]
            if options.compile:
                row["ratio_to_compiled"][stack] = (median[best]
                                                   / median["torch.compile"])
        yield row


def header(options, found):
    columns = ["batch", "length", *(f"{name}, s" for name in found)]
    for stack in options.stack:
        columns.append(f"ratio to the faster ({stack})")
        if options.compile:
            columns.append(f"to torch.compile ({stack})")
        columns.append(f"spread of the trainer ({stack})")
    return [
        f"{options.model}, {options.precision}, {options.device}; PyTorch "
        f"{torch.__version__}, Transformers {transformers.__version__}, "
        f"{options.threads} threads, median of "
        f"{options.rounds * options.steps} steps each; trainer's AdamW "
        f"{options.implementation}.", "",
        "| " + " | ".join(columns) + " |",
        "|" + " ---: |" * len(columns)]


def cells(options, row):
    shown = [str(row["batch"]), str(row["length"])]
    digits = 3 if options.device == "cpu" else 5
    shown += [f"{m:.{digits}f}" for m in row["median_s"].values()]
    for stack in options.stack:
        shown.append(f"{row['ratio'][stack]:.2f}")
        if options.compile:
            shown.append(f"{row['ratio_to_compiled'][stack]:.2f}")
        shown.append(f"{row['spread'][stack]:.1%}")
    return "| " + " | ".join(shown) + " |"


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("trainer")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--model", choices=[*MODELS, *DECODERS],
                        default="bert-base-uncased")
    parser.add_argument("--precision", default="fp32",
                        choices=["fp32", "bf16", "fp16"])
    parser.add_argument("--stack", nargs="+", choices=["eager", "fused"],
                        default=["eager"])
    parser.add_argument("--attention", nargs="+", default=["materialised"],
                        choices=["materialised", "flash"],
                        help="the faster of several counts")
    parser.add_argument("--compile", action="store_true",
                        help="torch.compile beside eager")
    parser.add_argument("--shapes", nargs="+", default=SHAPES,
                        metavar="BATCHxLENGTH")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--implementation", default="fused",
                        choices=["fused", "multi_tensor", "for_loop"])
    parser.add_argument("--markdown", help="also write the table here")
    parser.add_argument("--json", help="also write all samples here")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: PyTorch finds no GPU here")
    return options


def main():
    options = parse()
    torch.set_num_threads(options.threads)
    # Of a compiled program a shape, for all of them.
    torch._dynamo.config.cache_size_limit = 64
    trainers, found = contestants(options)
    lines = header(options, found)
    print("\n".join(lines), flush=True)
    rows = []
    for row in compare(options, found):
        rows.append(row)
        lines.append(cells(options, row))
        print(lines[-1], flush=True)
    for trainer in trainers:
        trainer.close()
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"model": options.model, "precision": options.precision,
                       "device": trainers[0].device,
                       "software": trainers[0].software,
                       "torch": torch.__version__,
                       "transformers": transformers.__version__,
                       "implementation": options.implementation,
                       "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
