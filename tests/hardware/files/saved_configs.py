#!/usr/bin/env python3
"""Prints tests/hardware/files/saved_configs.inc, and of Transformers 5
saved_configs_5.inc: of every model_type that hardware/files/model_config.h reads
and Transformers has, a config.json as it saves it, and the parameters that train
of what it builds of it on the meta device: encoders with a classifier of two
labels, others with a language model's head.

Needs torch and transformers 4.57 (tests/trainer/reference_env.sh makes such an
environment), or 5.24; nothing is downloaded. Values are those of each type's own
configuration class, with few blocks.

    tests/hardware/files/saved_configs.py > tests/hardware/files/saved_configs.inc
    tests/hardware/files/saved_configs.py > tests/hardware/files/saved_configs_5.inc
"""

import json

import torch
import transformers as t

FEW = {"num_hidden_layers": 4}
# Its class says nothing of how many experts a token is sent to.
DEEPSEEK = {**FEW, "num_experts_per_tok": 6}
# Nor do these of how many there are, or of which blocks are Mamba's.
DOTS = {**DEEPSEEK, "n_routed_experts": 8, "n_shared_experts": 2,
        "first_k_dense_replace": 1}
HYBRID = {**FEW, "layer_types": ["mamba", "attention", "mamba", "mamba"]}
# With all that one of them has, embeddings of each block among the class's own.
GEMMA4 = {**FEW, "attention_k_eq_v": True, "num_kv_shared_layers": 2,
          "layer_types": 2 * ["sliding_attention", "full_attention"],
          "num_global_key_value_heads": 2, "enable_moe_block": True,
          "num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 704}
TYPES = {
    "albert": FEW, "arcee": FEW, "bamba": {**FEW, "attn_layer_indices": [1]}, "bart": {}, "bert": FEW, "bloom": {}, "camembert": FEW, "codegen": {},
    "cohere": {**FEW, "use_qk_norm": True},
    "cohere2": FEW, "dbrx": {"n_layers": 4}, "deepseek_v2": DEEPSEEK, "deepseek_v3": FEW,
    "distilbert": {}, "dots1": DOTS, "electra": FEW, "ernie4_5": FEW,
    "ernie4_5_moe": FEW, "exaone4": FEW, "falcon": FEW, "flex_olmo": FEW,
    "gemma": FEW, "gemma2": FEW,
    "gemma3_text": {"num_hidden_layers": 7}, "glm": FEW, "glm4": FEW,
    "glm4_moe": {**FEW, "use_qk_norm": True}, "gpt2": {}, "gpt_bigcode": FEW,
    "gpt_neo": {}, "gpt_neox": FEW, "gpt_oss": FEW, "gptj": {}, "granite": FEW,
    "granitemoe": FEW, "granitemoehybrid": HYBRID, "granitemoeshared": FEW,
    "helium": FEW, "hunyuan_v1_dense": {**FEW, "head_dim": 128},
    "hunyuan_v1_moe": {**FEW, "head_dim": 128},
    "llama": FEW, "llama4_text": {**FEW, "interleave_moe_layer_step": 2},
    "m2m_100": {"encoder_layerdrop": 0, "decoder_layerdrop": 0},
    "marian": {"scale_embedding": True}, "mbart": {},
    "megatron-bert": FEW,
    "ministral": {**FEW, "head_dim": 128}, "mistral": FEW, "mixtral": FEW,
    "modernbert": FEW, "mpt": {}, "mt5": {}, "nemotron": {**FEW, "num_key_value_heads": 8},
    "olmo": FEW, "olmo2": FEW, "olmo3": FEW,
    "olmoe": FEW, "openai-gpt": {},
    "opt": {},
    "pegasus": {"scale_embedding": True}, "persimmon": FEW, "phi": FEW,
    "phi3": {**FEW, "pad_token_id": 0}, "phimoe": FEW, "qwen2": FEW, "qwen2_moe": FEW,
    "qwen3": FEW, "qwen3_moe": FEW, "qwen3_next": FEW, "roberta": FEW, "seed_oss": FEW,
    "smollm3": FEW, "stablelm": {**FEW, "use_qkv_bias": True},
    "starcoder2": FEW, "t5": {}, "umt5": {}, "vaultgemma": FEW, "xlm-roberta": FEW,
}
# Types that Transformers 5 alone has.
NEWER = {
    "afmoe": {**FEW, "attention_bias": True}, "apertus": FEW,
    "cohere2_moe": {**FEW, "num_key_value_heads": 8, "first_k_dense_replace": 1,
                    "prefix_dense_intermediate_size": 4096,
                    "num_shared_experts": 1},
    "cwm": FEW, "gemma4_text": GEMMA4, "gemma4_unified_text": FEW,
    "mimo_v2_flash": FEW, "exaone": FEW, "exaone_moe": FEW, "glm4_moe_lite": FEW,
    "granite_swa": FEW, "granitemoe_swa": {**FEW, "shared_intermediate_size": 1024},
    "hy_v3": FEW, "hyperclovax": FEW, "internlm3": FEW, "jais2": FEW,
    "lfm2": {**FEW, "full_attn_idxs": [2]},
    "lfm2_moe": {**FEW, "layer_types": ["conv", "conv", "full_attention", "conv"]},
    "mellum": FEW, "minimax_m2": {**FEW, "rotary_dim": 64}, "ministral3": FEW,
    "mistral4": FEW, "nanochat": {}, "nomic_bert": FEW, "qwen3_5_moe_text": FEW,
    "qwen3_5_text": FEW, "sarvam_mla": FEW, "sarvam_moe": FEW, "solar_open": FEW,
    "youtu": FEW,
}
# Transformers 5.24 builds none of this type.
UNBUILT_BY_5 = {"dbrx"}
ENCODERS = {"albert", "bert", "camembert", "distilbert", "electra", "megatron-bert",
            "modernbert", "nomic_bert", "roberta", "xlm-roberta"}


def types():
    if t.__version__.startswith("4."):
        return TYPES
    return {name: more for name, more in sorted({**TYPES, **NEWER}.items())
            if name not in UNBUILT_BY_5}


def head(config):
    if config.model_type == "mistral4":  # which its table of heads lacks
        return t.Mistral4ForCausalLM
    if config.model_type in ENCODERS:
        return t.AutoModelForSequenceClassification
    if config.is_encoder_decoder:
        return t.AutoModelForSeq2SeqLM
    return t.AutoModelForCausalLM


def main():
    print(f"// Printed by tests/hardware/files/saved_configs.py with "
          f"Transformers {t.__version__}.")
    version_5 = "" if t.__version__.startswith("4.") else "Of5"
    print(f"constexpr auto kSavedConfigs{version_5} =")
    print("    std::to_array<std::pair<std::string_view, int64_t>>({")
    for name, more in types().items():
        config = t.AutoConfig.for_model(name, **more)
        with torch.device("meta"):
            build = head(config)
            model = (build.from_config(config)
                     if hasattr(build, "from_config") and "Auto" in build.__name__
                     else build(config))
        model.tie_weights()
        count = sum(p.numel() for p in model.parameters() if p.requires_grad)
        config.architectures = [type(model).__name__]
        saved = json.dumps(json.loads(config.to_json_string()),
                           separators=(",", ":"))
        print(f'        {{R"({saved})",\n         {count}}},', flush=True)
    print("    });")


if __name__ == "__main__":
    main()
