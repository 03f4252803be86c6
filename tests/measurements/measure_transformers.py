"""Step time, memory and energy of Hugging Face Transformers on the device at hand.

    python3 tests/measurements/measure_transformers.py ASKED.csv MEASURED.csv \\
        [--steps 8] [--warmup 3] [--seconds 6] [--profile FILE] [--device cpu]

ASKED names a run a row, in the columns of a table of measurements
(docs/guide/measurements.md), such as h200_transformers.csv, whose figures it leaves
aside; MEASURED has a row for each figure. Models have
random weights, tokens are random and fill the sequences. A step is forward, loss,
backward and AdamW as `torch.optim` has it (`fused`), between two waits for the
device; its figure is the median of the timed steps. Memory is PyTorch's
`max_memory_allocated` and `max_memory_reserved` of the whole run but the model's
making; power is the board's counted energy over the timed steps. `--profile` adds
a JSON line a run: kernels of one more step by name (count, seconds), and memory
before, in and behind each part of another.

`stack_notes` says what is done: "autocast" keeps weights and states in fp32, else
they are in the row's precision; "sdpa" or "eager attention"; "torch.compile".
"""

import argparse
import contextlib
import csv
import gc
import json
import pathlib
import re
import statistics
import sys
import time

import torch
import transformers

FAMILIES = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2",
            "qwen3": "Qwen3", "olmoe": "Olmoe"}
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
          "down_proj"]


def number(row, key):
    return int(row[key]) if row[key] else None


def attention_of(row):
    return "eager" if "eager attention" in row["stack_notes"] else "sdpa"


def decoder_config(row):
    family = next(v for k, v in FAMILIES.items() if row["model"].startswith(k))
    more = {}
    if family == "Mistral":
        more["sliding_window"] = None  # as from version 0.2 on
    if row["head_dim"]:
        more["head_dim"] = int(row["head_dim"])
    if row["experts"]:
        more |= {"num_experts": int(row["experts"]),
                 "num_experts_per_tok": int(row["experts_per_token"])}
    return getattr(transformers, family + "Config")(
        vocab_size=number(row, "vocab"), hidden_size=number(row, "hidden"),
        num_hidden_layers=number(row, "layers"),
        num_attention_heads=number(row, "heads"),
        num_key_value_heads=number(row, "kv_heads"),
        intermediate_size=number(row, "intermediate"),
        max_position_embeddings=max(number(row, "seq_len"), 4096),
        tie_word_embeddings=row["tied"] == "yes", use_cache=False,
        attn_implementation=attention_of(row), **more)


def make_model(row, device):
    """The model on the device, in the type that its weights stay in."""
    if row["precision"] not in ("bf16", "tf32", "fp32"):
        raise ValueError(f"precision {row['precision']}: expected bf16, tf32 or "
                         "fp32")
    narrow = row["precision"] == "bf16" and "autocast" not in row["stack_notes"]
    name = row["model"]
    if name.startswith("bert"):
        config = transformers.BertConfig(
            vocab_size=number(row, "vocab"), hidden_size=number(row, "hidden"),
            num_hidden_layers=number(row, "layers"),
            num_attention_heads=number(row, "heads"),
            intermediate_size=number(row, "intermediate"),
            attn_implementation=attention_of(row))
        kind = transformers.BertForSequenceClassification
    elif name.startswith("gpt2"):
        config = transformers.GPT2Config(
            vocab_size=number(row, "vocab"), n_embd=number(row, "hidden"),
            n_layer=number(row, "layers"),
            n_head=number(row, "heads"), use_cache=False,
            attn_implementation=attention_of(row))
        kind = transformers.GPT2LMHeadModel
    else:
        config = decoder_config(row)
        kind = getattr(transformers, type(config).__name__.replace(
            "Config", "ForCausalLM"))
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if narrow else torch.float32)
    try:
        with torch.device(device):
            model = kind(config)
    finally:
        torch.set_default_dtype(before)
    if row["adapter"].startswith("lora"):
        import peft
        model = peft.get_peft_model(model, peft.LoraConfig(
            r=number(row, "lora_rank"), target_modules=LINEAR,
            lora_dropout=0.0, task_type="CAUSAL_LM"),
            autocast_adapter_dtype=False)
    if row["recompute"] == "full":
        model.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs={"use_reentrant": False})
        if row["adapter"].startswith("lora"):
            model.enable_input_require_grads()
    return model.to(device).train(), config


def name_of(device):
    """As tables of measurements name it."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    return re.search(r"^model name\s*: (.*)$",
                     pathlib.Path("/proc/cpuinfo").read_text(),
                     re.MULTILINE)[1]


class Board:
    """The energy that the board has counted, in joules."""

    def __init__(self, device):
        self.handle = None
        if device == "cuda":
            with contextlib.suppress(ImportError):
                import pynvml
                pynvml.nvmlInit()
                self.nvml = pynvml
                self.handle = pynvml.nvmlDeviceGetHandleByIndex(0)

    def energy_j(self):
        if self.handle is None:
            return None
        return self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.handle) / 1e3


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def kernels_of(step):
    """Of a step, by name: how often, and how long in all."""
    with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    found = {}
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            entry = found.setdefault(event.name[:150], [0, 0.0])
            entry[0] += 1
            entry[1] += event.device_time * 1e-6
    return found


def memory_of(parts):
    """Bytes before, at most in, and behind each of a step's parts, in their
    order."""
    found = {}
    for name, part in parts.items():
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        part()
        torch.cuda.synchronize()
        found[name] = [before, torch.cuda.max_memory_allocated(),
                       torch.cuda.memory_allocated()]
    return found


def profile_of(step, forward, optimizer):
    kept = {}

    def call():
        kept["loss"] = forward()

    def backward():
        kept.pop("loss").backward()

    result = {"memory": memory_of({"forward": call, "backward": backward,
                                   "optimizer": optimizer.step,
                                   "zero_grad": optimizer.zero_grad})}
    result["kernels"] = kernels_of(step)
    return result


def run(row, options, board):
    """Figures by metric, what else there is to say, and the profile."""
    device = options.device
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = row["precision"] == "tf32"
    torch.backends.cudnn.allow_tf32 = row["precision"] == "tf32"
    model, config = make_model(row, device)
    trained = [p for p in model.parameters() if p.requires_grad]
    count = sum(p.numel() for p in trained)
    optimizer = torch.optim.AdamW(trained, lr=1e-5, fused=True)
    batch, length = number(row, "micro_batch"), number(row, "seq_len")
    passes = number(row, "grad_accum") or 1
    ids = torch.randint(1, config.vocab_size, (batch, length), device=device)
    labels = (torch.randint(0, 2, (batch,), device=device)
              if row["model"].startswith("bert") else ids)
    call = (torch.compile(model, dynamic=False)
            if "torch.compile" in row["stack_notes"] else model)

    def narrow():
        return (torch.autocast(device, torch.bfloat16)
                if "autocast" in row["stack_notes"]
                else contextlib.nullcontext())

    def forward():
        with narrow():
            return call(input_ids=ids, labels=labels).loss / passes

    def step():
        for _ in range(passes):
            loss = forward()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    loss = step()
    for _ in range(options.warmup - 1):
        loss = step()
    wait(device)
    times = []
    energy = board.energy_j()
    first = start = time.perf_counter()
    while len(times) < options.steps and start - first < options.seconds:
        step()
        wait(device)
        end = time.perf_counter()
        times.append(end - start)
        start = end
    spent = board.energy_j()
    figures = {"step_s": statistics.median(times)}
    if device == "cuda":
        figures["peak_memory_gib"] = torch.cuda.max_memory_allocated() / 2**30
        figures["peak_reserved_gib"] = torch.cuda.max_memory_reserved() / 2**30
    # The counter moves every 20 to 100 ms.
    if energy is not None and start - first >= 1:
        figures["avg_power_w"] = (spent - energy) / (start - first)
    says = (f"{len(times)} steps, {min(times):.5f} to {max(times):.5f} s; "
            f"{count} parameters trained; loss {float(loss):.3f}")
    profile = {}
    if options.profile and device == "cuda":
        profile = profile_of(step, forward, optimizer)
    return figures, says, profile


def attempt(row, options, board):
    try:
        return run(row, options, board)
    except torch.OutOfMemoryError as why:
        return {"oom": 1}, str(why).split(". ")[0], {}
    except Exception as why:  # the next row may do
        return {}, f"{type(why).__name__}: {str(why).splitlines()[0]}", {}


def runs_of(rows):
    """Each run once: a table of measurements has a row a figure."""
    runs = {}
    for row in rows:
        run = {key: value for key, value in row.items()
               if key not in ("metric", "value", "notes")}
        runs.setdefault(tuple(run.values()), run)
    return list(runs.values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("asked")
    parser.add_argument("measured")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--profile")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    options = parser.parse_args()
    board = Board(options.device)
    name = name_of(options.device)
    with open(options.asked, encoding="utf-8", newline="") as file:
        asked = runs_of(csv.DictReader(file))
    figures_of = ("metric", "value", "notes")
    columns = [*(c for c in asked[0] if c not in figures_of), *figures_of]
    with open(options.measured, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for row in asked:
            begin = time.monotonic()
            figures, says, profile = attempt(row, options, board)
            if profile:
                with open(options.profile, "a", encoding="utf-8") as lines:
                    lines.write(json.dumps({"row": row, **profile}) + "\n")
            torch.compiler.reset()  # lets go of what it compiled
            gc.collect()
            if options.device == "cuda":
                torch.cuda.empty_cache()
            row["device"] = name
            row["framework"] = (f"Transformers {transformers.__version__}, "
                                f"PyTorch {torch.__version__}")
            for metric, value in figures.items():
                writer.writerow({**row, "metric": metric,
                                 "value": f"{value:.6g}", "notes": says})
            file.flush()
            print(row["model"], row["micro_batch"], row["seq_len"],
                  row["precision"], row["adapter"], row["recompute"],
                  {k: float(f"{v:.4g}") for k, v in figures.items()}, says,
                  f"({time.monotonic() - begin:.1f} s)", file=sys.stderr,
                  flush=True)


if __name__ == "__main__":
    main()
