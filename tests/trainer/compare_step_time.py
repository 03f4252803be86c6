"""Step time of trainfare-trainer against PyTorch and Transformers, one run.

    $(tests/trainer/reference_env.sh) tests/trainer/compare_step_time.py \\
        build/release/bin/trainfare-trainer [--markdown FILE]

Both train bert-base-uncased's dimensions from random weights in fp32: forward,
backward and AdamW on full-length sequences, dropout 0.1, the same number of
threads. The reference is eager BertForSequenceClassification (with
materialised attention and with scaled_dot_product_attention, of which the
faster counts) and torch.optim.AdamW as it comes. Rounds alternate between the
two programs, so that a slow minute hits both; the figure is the median step.
"""

import argparse
import json
import statistics
import subprocess
import time

import torch
import transformers

SHAPES = ["8x32", "8x128", "32x32", "32x128"]  # batch x length


class Reference:
    def __init__(self, attention):
        torch.manual_seed(1)
        config = transformers.BertConfig(attn_implementation=attention)
        self.model = transformers.BertForSequenceClassification(config).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-5)

    def steps(self, batch, length, count):
        ids = torch.randint(1, self.model.config.vocab_size, (batch, length))
        labels = torch.randint(0, 2, (batch,))
        times = []
        for _ in range(count + 1):
            start = time.perf_counter()
            self.optimizer.zero_grad()
            self.model(input_ids=ids, labels=labels).loss.backward()
            self.optimizer.step()
            times.append(time.perf_counter() - start)
        return times[1:]


class Trainer:
    def __init__(self, program, threads, implementation):
        self.implementation = implementation
        self.process = subprocess.Popen(
            [program, "measure", "--threads", str(threads)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def steps(self, batch, length, count):
        self.process.stdin.write(json.dumps(
            {"model": "bert-base-uncased", "batch": batch,
             "sequence_length": length, "steps": count, "warmup": 1,
             "optimizer": {"name": "adamw",
                           "implementation": self.implementation}}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return [s["step_s"] for s in answer["samples"] if not s["warmup"]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trainer")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--shapes", nargs="+", default=SHAPES,
                        metavar="BATCHxLENGTH")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--implementation", default="fused",
                        choices=["fused", "multi_tensor", "for_loop"])
    parser.add_argument("--markdown", help="also write the table here")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    contestants = {
        "trainer": Trainer(options.trainer, options.threads,
                           options.implementation),
        "eager": Reference("eager"), "sdpa": Reference("sdpa")}
    lines = [
        f"PyTorch {torch.__version__}, Transformers "
        f"{transformers.__version__}, {options.threads} threads, median of "
        f"{options.rounds * options.steps} steps each; trainer's AdamW "
        f"{options.implementation}.",
        "",
        "| batch | length | trainer, s | Transformers eager, s | "
        "Transformers sdpa, s | ratio to the faster | spread of the trainer |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for line in lines:
        print(line, flush=True)
    for shape in options.shapes:
        batch, length = map(int, shape.split("x"))
        times = {name: [] for name in contestants}
        for _ in range(options.rounds):
            for name, contestant in contestants.items():
                times[name] += contestant.steps(batch, length, options.steps)
        median = {name: statistics.median(t) for name, t in times.items()}
        ratio = median["trainer"] / min(median["eager"], median["sdpa"])
        spread = (max(times["trainer"]) - min(times["trainer"])) / median[
            "trainer"]
        lines.append(
            f"| {batch} | {length} | {median['trainer']:.3f} | "
            f"{median['eager']:.3f} | {median['sdpa']:.3f} | {ratio:.2f} | "
            f"{spread:.1%} |")
        print(lines[-1], flush=True)
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
