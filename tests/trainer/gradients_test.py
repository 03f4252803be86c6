"""Logits, loss and every gradient of trainfare-trainer against Transformers.

    gradients_test.py TRAINER

Same weights, same token ids, no dropout, fp32, and decoders like Llama's in fp64
too, whole and with adapters alone (LoRA), which are written out here. Weights are drawn at random and saved by Transformers; the trainer loads its
folder. The difference allowed is relative to the largest element of each tensor:
both sides round sums of thousands of products in another order.

Transformers computes norms, softmax, positions and the loss in fp32 whatever the
weights are in; for the comparison in fp64 these are widened (wide_islands).
"""

import contextlib
import copy
import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

TOLERANCE = 2e-5  # of the largest element; fp32 epsilon is 1.2e-7
WIDE_TOLERANCE = 1e-12  # of fp64, whose epsilon is 2.2e-16
# A gradient that is zero in exact arithmetic (that of a key's bias: softmax
# does not change when all scores move together) is rounding on both sides.
ABSOLUTE = 1e-7
WIDE_ABSOLUTE = 1e-14

BERT = dict(vocab_size=211, hidden_size=48, num_hidden_layers=3,
            num_attention_heads=4, intermediate_size=96,
            max_position_embeddings=40)


def bert(task, **changes):
    config = transformers.BertConfig(**{**BERT, **changes})
    return getattr(transformers, f"BertFor{task}")(config)


def roberta(task):
    config = transformers.RobertaConfig(
        **{**BERT, "pad_token_id": 1}, type_vocab_size=1,
        num_labels=3 if task == CLASSIFY else 2)
    return getattr(transformers, f"RobertaFor{task}")(config)


def distilbert(task):
    config = transformers.DistilBertConfig(
        vocab_size=211, dim=48, n_layers=3, n_heads=4, hidden_dim=96,
        max_position_embeddings=40)
    return getattr(transformers, f"DistilBertFor{task}")(config)


def gpt2(**changes):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**{
        **dict(vocab_size=211, n_positions=40, n_embd=48, n_layer=3, n_head=4,
               n_inner=96, pad_token_id=0), **changes}))


def marian(**changes):
    """The Transformer of 2017: what Marian calls it, with ReLU."""
    return transformers.MarianMTModel(transformers.MarianConfig(**{
        **dict(vocab_size=211, d_model=48, encoder_layers=3, decoder_layers=2,
               encoder_attention_heads=4, decoder_attention_heads=4,
               encoder_ffn_dim=96, decoder_ffn_dim=96,
               max_position_embeddings=40, activation_function="relu",
               scale_embedding=True, static_position_embeddings=True,
               pad_token_id=0, decoder_start_token_id=0, eos_token_id=1,
               forced_eos_token_id=None), **changes}))


LLAMA = dict(vocab_size=211, hidden_size=48, num_hidden_layers=3,
             num_attention_heads=4, num_key_value_heads=2, intermediate_size=80,
             max_position_embeddings=64, pad_token_id=0)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=16)


def llama(kind, **changes):
    """A decoder like Llama's: kind is Transformers' name of it."""
    config = getattr(transformers, f"{kind}Config")(**{**LLAMA, **changes})
    # The eager attention is the one whose softmax is told its type.
    config._attn_implementation = "eager"
    return getattr(transformers, f"{kind}ForCausalLM")(config)


CLASSIFY, ANSWER = "SequenceClassification", "QuestionAnswering"
# name, model, batch, padded length, shortest sequence
CASES = [
    ("BERT", lambda: bert(CLASSIFY, num_labels=5), 6, 24, 5),
    ("BERT, no padding", lambda: bert(CLASSIFY), 4, 16, 16),
    ("BERT, answers", lambda: bert(ANSWER), 6, 24, 5),
    ("RoBERTa", lambda: roberta(CLASSIFY), 6, 24, 5),
    ("RoBERTa, answers", lambda: roberta(ANSWER), 6, 24, 5),
    ("DistilBERT", lambda: distilbert(CLASSIFY), 6, 24, 5),
    ("DistilBERT, answers", lambda: distilbert(ANSWER), 6, 24, 5),
    ("bert-base-uncased's size",
     lambda: transformers.BertForSequenceClassification(
         transformers.BertConfig()), 2, 16, 9),
    ("GPT-2", gpt2, 6, 24, 5),
    ("GPT-2, no padding", gpt2, 4, 16, 16),
    ("gpt2's size", lambda: gpt2(
        vocab_size=50257, n_positions=1024, n_embd=768, n_layer=12, n_head=12,
        n_inner=None), 2, 16, 9),
    ("Transformer", marian, 6, 24, 5),
    ("Transformer, no padding", marian, 4, 16, 16),
    ("transformer-base's size", lambda: marian(
        vocab_size=37000, d_model=512, encoder_layers=6, decoder_layers=6,
        encoder_attention_heads=8, decoder_attention_heads=8,
        encoder_ffn_dim=2048, decoder_ffn_dim=2048,
        max_position_embeddings=512), 2, 16, 9),
]

# name, kind, changes, batch, padded length, shortest sequence; in fp32 and fp64
LLAMAS = [
    ("Llama", "Llama", {}, 6, 24, 5),
    ("Llama 3, scaled positions, no padding token", "Llama",
     dict(rope_theta=500000.0, rope_scaling=LLAMA3, pad_token_id=None,
          num_key_value_heads=1), 4, 40, 40),
    ("Llama, tied, biases", "Llama",
     dict(tie_word_embeddings=True, attention_bias=True, mlp_bias=True,
          rope_scaling=dict(rope_type="linear", factor=2.0)), 6, 24, 5),
    ("Mistral, a window", "Mistral", dict(sliding_window=7, head_dim=16),
     6, 24, 5),
    ("Mixtral", "Mixtral", dict(num_local_experts=5, num_experts_per_tok=2,
                                sliding_window=None), 6, 24, 5),
    ("Qwen2", "Qwen2", dict(tie_word_embeddings=True), 6, 24, 5),
    ("Qwen3", "Qwen3", dict(head_dim=24), 6, 24, 5),
    ("Qwen2 with experts", "Qwen2Moe",
     dict(num_experts=6, num_experts_per_tok=3, moe_intermediate_size=40,
          shared_expert_intermediate_size=56), 6, 24, 5),
    ("Qwen3 with experts", "Qwen3Moe",
     dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=40,
          head_dim=16, norm_topk_prob=True), 6, 24, 5),
]

# Beside which matrices of a kind adapters stand: what the trainer is told,
# nothing where it shall know, and what Transformers calls them.
ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj",
             "output": "o_proj"}
GATED = {"feed_forward_gate": "gate_proj", "feed_forward_in": "up_proj",
         "feed_forward_out": "down_proj"}
NUMBERED = {"feed_forward_gate": "w1", "feed_forward_in": "w3",
            "feed_forward_out": "w2"}
RANK, ALPHA = 3, 6
# name, as in LLAMAS; which matrices are named, and which have adapters
ADAPTED = [
    ("Llama", {}, ("q_proj", "v_proj")),
    ("Llama", {**ATTENTION, **GATED}, None),
    ("Llama, tied, biases", {**ATTENTION, **GATED}, None),
    ("Mixtral", {"query": "q_proj", "value": "v_proj"}, None),
    ("Mixtral", {**ATTENTION, **NUMBERED}, None),
    ("Qwen2 with experts", {**ATTENTION, **GATED}, None),
]


class Adapted(torch.nn.Module):
    """y = x W^T + b + alpha / rank (x A^T) B^T of a frozen linear layer."""

    def __init__(self, linear):
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias
        outputs, inputs = linear.weight.shape
        self.lora_A = torch.nn.Linear(inputs, RANK, bias=False)
        self.lora_B = torch.nn.Linear(RANK, outputs, bias=False)
        self.to(linear.weight.dtype)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight, self.bias) + (
            ALPHA / RANK * self.lora_B(self.lora_A(x)))


def adapt(model, matrices):
    """Adapters beside these matrices of all blocks train, nothing else does."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if name in matrices and isinstance(child, torch.nn.Linear):
                setattr(module, name, Adapted(child))


class Widened:
    """The module torch, with fp64 where fp32 is asked for."""

    def __getattr__(self, name):
        return getattr(torch, {"float32": "float64", "float": "float64"}.get(
            name, name))


@contextlib.contextmanager
def wide_islands(kind):
    name = kind.lower().replace("moe", "_moe")
    modules = [importlib.import_module(f"transformers.{module}") for module in (
        f"models.{name}.modeling_{name}", "modeling_rope_utils",
        "loss.loss_utils")]
    narrow = torch.Tensor.float
    for module in modules:
        module.torch = Widened()
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.Tensor.float = narrow
        for module in modules:
            module.torch = torch


def draw_examples(model, batch, length, shortest):
    pad = model.config.pad_token_id or 0
    examples = []
    for i in range(batch):
        tokens = length if i == 0 else int(
            torch.randint(shortest, length + 1, ()))
        ids = torch.randint(pad + 1, model.config.vocab_size, (tokens,))
        example = {"input_ids": ids.tolist()}
        if "QuestionAnswering" in type(model).__name__:
            example["start"] = int(torch.randint(0, tokens, ()))
            # One answer lies outside of the sequence and must be ignored.
            example["end"] = length if i == 1 else tokens - 1
        elif "Marian" in type(model).__name__:
            # Of other lengths than their sources.
            count = length if i == 2 else int(
                torch.randint(shortest, length + 1, ()))
            example["target_ids"] = torch.randint(
                pad + 1, model.config.vocab_size, (count,)).tolist()
        elif "Classification" in type(model).__name__:
            example["label"] = int(torch.randint(0, model.config.num_labels, ()))
        examples.append(example)
    return examples


def reference(model, examples, length):
    pad = model.config.pad_token_id or 0
    ids = torch.full((len(examples), length), pad)
    mask = torch.zeros_like(ids)
    for row, example in enumerate(examples):
        tokens = example["input_ids"]
        ids[row, :len(tokens)] = torch.tensor(tokens)
        mask[row, :len(tokens)] = 1
    span = "start" in examples[0]
    if "label" in examples[0]:
        targets = {"labels": torch.tensor([e["label"] for e in examples])}
    elif not span:
        labels = torch.full((len(examples), length), -100)
        for row, example in enumerate(examples):
            tokens = example.get("target_ids", example["input_ids"])
            labels[row, :len(tokens)] = torch.tensor(tokens)
        targets = {"labels": labels}
    else:
        targets = {
            "start_positions": torch.tensor([e["start"] for e in examples]),
            "end_positions": torch.tensor([e["end"] for e in examples])}
    model.eval()  # no dropout; gradients flow all the same
    output = model(input_ids=ids, attention_mask=mask, **targets)
    output.loss.backward()
    if span:
        logits = torch.stack([output.start_logits, output.end_logits], -1)
    else:
        logits = output.logits.detach().clone()
    if "labels" in targets and logits.dim() == 3:
        # What stands at padding means nothing, and differs: nobody masks it.
        logits[targets["labels"] == -100] = 0
    expected = {"logits": logits.detach(), "loss": output.loss.detach()}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:  # positions of a fixed table have none
            expected[name] = parameter.grad if parameter.grad is not None \
                else torch.zeros_like(parameter)
    return expected


def compare(name, expected, actual, wide=False):
    missing = sorted(set(expected) ^ set(actual))
    if missing:
        return [f"{name}: not on both sides: {', '.join(missing)}"], 0.0
    failures, worst = [], 0.0
    for key, want in expected.items():
        got = actual[key].reshape(want.shape)
        if key == "logits" and want.dim() == 3:
            got = torch.where(want == 0, 0, got)
        difference = float((got - want).abs().max())
        relative, absolute = (WIDE_TOLERANCE, WIDE_ABSOLUTE) if wide else (
            TOLERANCE, ABSOLUTE)
        allowed = relative * float(want.abs().max()) + absolute
        worst = max(worst, difference / allowed)
        if not difference <= allowed:  # also catches NaN
            failures.append(
                f"{name}: {key}: differs by {difference:.3g}, "
                f"allowed {allowed:.3g}")
    return failures, worst


def move(model):
    """Biases and norms start at 0 and 1: a swapped pair would go unseen."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:  # sines stay what they are
                parameter.add_(0.05 * torch.randn_like(parameter))


def check_adapters(trainer, case, matrices, usual):
    """What differs of a model with adapters in fp64, a line each."""
    name, kind, changes, *shape = next(c for c in LLAMAS if c[0] == case)
    flags = ["--fp64", "--lora-rank", str(RANK)]
    if matrices:
        flags += ["--lora-matrices", ",".join(matrices)]
    name += f", adapters of {len(matrices) or 'no'} named matrices"
    failures = []
    for again in ([], ["--gradient-checkpointing"]):
        with tempfile.TemporaryDirectory() as folder, wide_islands(kind):
            model = llama(kind, **changes).double()
            move(model)
            model.save_pretrained(folder)
            adapt(model, usual or matrices.values())
            move(model)
            # The trainer has their names, beside those of the model.
            saved = Path(folder, "model.safetensors")
            save_file({**load_file(saved),
                       **{key: value for key, value in
                          model.state_dict().items() if ".lora_" in key}},
                      saved, {"format": "pt"})
            failures += check(trainer, folder, name + ", again" * bool(again),
                              model, shape, [*flags, *again], wide=True,
                              save=False)
    return failures


def check(trainer, folder, name, model, shape, flags=(), wide=False,
          save=True):
    """What differs, a line each."""
    batch, length, shortest = shape
    if save:
        model.save_pretrained(folder)
    examples = draw_examples(model, batch, length, shortest)
    data = Path(folder, "data.jsonl")
    data.write_text("".join(json.dumps(e) + "\n" for e in examples))
    out = Path(folder, "gradients.safetensors")
    subprocess.run(
        [trainer, "gradients", "--model", folder, "--data", data,
         "--length", str(length), "--out", out, *flags], check=True)
    expected = reference(model, examples, length)
    problems, worst = compare(name, expected, load_file(out), wide)
    print(f"{name}: {len(expected)} tensors, loss "
          f"{float(expected['loss']):.6f}, largest difference "
          f"{worst:.3f} of what is allowed")
    return problems


def main():
    trainer = sys.argv[1]
    torch.manual_seed(7)
    failures = []
    for name, make, *shape in CASES:
        with tempfile.TemporaryDirectory() as folder:
            model = make()
            move(model)
            failures += check(trainer, folder, name, model, shape)
    for name, kind, changes, *shape in LLAMAS:
        with tempfile.TemporaryDirectory() as folder:
            model = llama(kind, **changes)
            move(model)
            failures += check(trainer, folder, name, copy.deepcopy(model),
                              shape)
            failures += check(trainer, folder, f"{name}, computed again",
                              model, shape, ["--gradient-checkpointing"])
        with tempfile.TemporaryDirectory() as folder, wide_islands(kind):
            model = llama(kind, **changes).double()
            move(model)
            failures += check(trainer, folder, f"{name}, fp64", model, shape,
                              ["--fp64"], wide=True)
    for case in ADAPTED:
        failures += check_adapters(trainer, *case)
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
