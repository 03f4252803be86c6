#!/usr/bin/env python3
"""Prints what one block of Llama keeps for its backward pass below PEFT's
adapters, and without any where scores are tensors, in bytes a token, as
tests/model/adapters_test.cc and memory_test.cc have it: each storage that
autograd saves once, but for weights and copies of weights.

Needs torch 2.11, transformers 4.57 (tests/trainer/reference_env.sh makes such
an environment) and peft 0.21; nothing is downloaded.

    tests/model/kept_by_adapters.py
"""

import contextlib

import peft
import torch
import transformers as t

HIDDEN, HEADS, KEY_HEADS, INNER, RANK = 512, 8, 2, 1408, 16
BATCH, LENGTH = 2, 96
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
FEED_FORWARD = ["gate_proj", "up_proj", "down_proj"]


def saved_by(forward):
    """Sizes of storages that autograd saves while `forward` runs, by address."""
    saved = {}

    def pack(tensor):
        # Held, so that no other storage gets its address.
        storage = tensor.untyped_storage()
        saved.setdefault(storage.data_ptr(), (storage, tensor.shape))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        forward()
    return saved


def kept(matrices, wide=False, attention="sdpa"):
    """Bytes a token; `wide` adapters are in fp32, under autocast."""
    config = t.LlamaConfig(
        hidden_size=HIDDEN, num_attention_heads=HEADS,
        num_key_value_heads=KEY_HEADS, intermediate_size=INNER,
        num_hidden_layers=1, vocab_size=1000, attn_implementation=attention)
    model = t.LlamaForCausalLM(config).to(torch.bfloat16)
    inner = model.model
    if matrices:
        model = peft.get_peft_model(
            model, peft.LoraConfig(r=RANK, target_modules=matrices),
            autocast_adapter_dtype=wide)
    model.train()
    hidden = torch.randn(BATCH, LENGTH, HIDDEN, dtype=torch.bfloat16,
                         requires_grad=True)
    positions = torch.arange(LENGTH)[None]
    rotary = inner.rotary_emb(hidden, positions)
    autocast = torch.autocast("cpu", torch.bfloat16)
    with autocast if wide else contextlib.nullcontext():
        saved = saved_by(lambda: inner.layers[0](
            hidden, position_embeddings=rotary, position_ids=positions))
    others = {tensor.untyped_storage().data_ptr()
              for tensor in [*model.parameters(), *rotary]}
    # Autocast's copies of weights and what flash attention says of its draws
    # have no dimension of tokens.
    tokens = BATCH * LENGTH
    return sum(storage.nbytes() for address, (storage, shape) in saved.items()
               if address not in others and shape.numel() % tokens == 0 and
               (LENGTH in shape or tokens in shape)) / tokens


def main():
    for name, matrices in (("all", ATTENTION + FEED_FORWARD),
                           ("query, value", ["q_proj", "v_proj"]),
                           ("attention", ATTENTION),
                           ("feed-forward", FEED_FORWARD)):
        print(f"{name}: {kept(matrices):.0f}, "
              f"in fp32 {kept(matrices, wide=True):.0f}")
    print(f"none, {LENGTH} tokens, scores as tensors: "
          f"{kept([], attention='eager'):.0f}")


if __name__ == "__main__":
    main()
