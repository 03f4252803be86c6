#!/usr/bin/env python3
"""Prints tests/model/parameter_counts.inc: parameters that Transformers builds
on the meta device for presets of model/decoder_presets.cc and
model/encoder_presets.cc, with the head that each has: a language model's, or of
an encoder two labels.

Needs torch and transformers 4.57 (tests/trainer/reference_env.sh makes such an
environment); nothing is downloaded. Values are those of each model's
config.json.

    tests/model/parameter_counts.py > tests/model/parameter_counts.inc
"""

import torch
import transformers as t


def llama(layers, hidden, heads, kv, inner, vocabulary, tied=False,
          config=t.LlamaConfig, **more):
    return config(num_hidden_layers=layers, hidden_size=hidden,
                  num_attention_heads=heads, num_key_value_heads=kv,
                  intermediate_size=inner, vocab_size=vocabulary,
                  pad_token_id=None, tie_word_embeddings=tied, **more)


def bigcode(layers, hidden, heads, vocabulary, positions):
    return t.GPTBigCodeConfig(n_layer=layers, n_embd=hidden, n_head=heads,
                              vocab_size=vocabulary, n_positions=positions)


def qwen2(*size, tied=False):
    return llama(*size, tied=tied, config=t.Qwen2Config)


def qwen3(*size, tied=False):
    return llama(*size, tied=tied, config=t.Qwen3Config, head_dim=128)


def qwen3_moe(*size, inner):
    return llama(*size, config=t.Qwen3MoeConfig, head_dim=128, num_experts=128,
                 num_experts_per_tok=8, moe_intermediate_size=inner)


def gemma(*size, head, config=t.GemmaConfig):
    return llama(*size, tied=True, config=config, head_dim=head)


def deepseek(config, *size, q_rank, experts, per_token, inner, shared, dense):
    return llama(*size, config=config, q_lora_rank=q_rank, kv_lora_rank=512,
                 n_routed_experts=experts, num_experts_per_tok=per_token,
                 moe_intermediate_size=inner, n_shared_experts=shared,
                 first_k_dense_replace=dense)


def opt(layers, hidden, heads, words=None, **more):
    return t.OPTConfig(num_hidden_layers=layers, hidden_size=hidden,
                       num_attention_heads=heads, ffn_dim=4 * hidden,
                       word_embed_proj_dim=words or hidden, vocab_size=50272,
                       **more)


def electra(layers, hidden, heads, words):
    return t.ElectraConfig(num_hidden_layers=layers, hidden_size=hidden,
                           num_attention_heads=heads,
                           intermediate_size=4 * hidden, embedding_size=words)


def neox(layers, hidden, heads, inner):
    return t.GPTNeoXConfig(num_hidden_layers=layers, hidden_size=hidden,
                           num_attention_heads=heads, intermediate_size=inner,
                           vocab_size=50432)


def gpt_oss(layers, experts):
    return t.GptOssConfig(num_hidden_layers=layers, num_local_experts=experts)


def t5(layers, hidden, heads, inner, **more):
    return t.T5Config(num_layers=layers, d_model=hidden, num_heads=heads,
                      d_ff=inner, **more)


def t5_gated(*size):
    return t5(*size, feed_forward_proj="gated-gelu",
              tie_word_embeddings=False)


def bart(layers, hidden, heads, inner):
    return t.BartConfig(encoder_layers=layers, decoder_layers=layers,
                        d_model=hidden, encoder_attention_heads=heads,
                        decoder_attention_heads=heads, encoder_ffn_dim=inner,
                        decoder_ffn_dim=inner)


def modernbert(layers, hidden, heads, inner):
    return t.ModernBertConfig(num_hidden_layers=layers, hidden_size=hidden,
                              num_attention_heads=heads,
                              intermediate_size=inner)


PRESETS = {
    "santacoder": bigcode(24, 2048, 16, 49280, 2048),
    "starcoder": bigcode(40, 6144, 48, 49152, 8192),
    "llama-2-7b": llama(32, 4096, 32, 32, 11008, 32000),
    "llama-2-13b": llama(40, 5120, 40, 40, 13824, 32000),
    "llama-2-70b": llama(80, 8192, 64, 8, 28672, 32000),
    "llama-3.1-8b": llama(32, 4096, 32, 8, 14336, 128256),
    "llama-3.1-70b": llama(80, 8192, 64, 8, 28672, 128256),
    "llama-3.1-405b": llama(126, 16384, 128, 8, 53248, 128256),
    "llama-3.2-1b": llama(16, 2048, 32, 8, 8192, 128256, True),
    "llama-3.2-3b": llama(28, 3072, 24, 8, 8192, 128256, True),
    "tinyllama-1.1b": llama(22, 2048, 32, 4, 5632, 32000),
    "smollm2-135m": llama(30, 576, 9, 3, 1536, 49152, True),
    "smollm2-360m": llama(32, 960, 15, 5, 2560, 49152, True),
    "smollm2-1.7b": llama(24, 2048, 32, 32, 8192, 49152, True),
    "smollm3-3b": llama(36, 2048, 16, 4, 11008, 128256, True,
                        config=t.SmolLM3Config),
    "mistral-7b": llama(32, 4096, 32, 8, 14336, 32768, config=t.MistralConfig),
    "mistral-nemo-12b": llama(40, 5120, 32, 8, 14336, 131072,
                              config=t.MistralConfig, head_dim=128),
    "mixtral-8x7b": llama(32, 4096, 32, 8, 14336, 32000,
                          config=t.MixtralConfig, num_local_experts=8),
    "mixtral-8x22b": llama(56, 6144, 48, 8, 16384, 32000,
                           config=t.MixtralConfig, num_local_experts=8),
    "qwen2.5-0.5b": qwen2(24, 896, 14, 2, 4864, 151936, tied=True),
    "qwen2.5-1.5b": qwen2(28, 1536, 12, 2, 8960, 151936, tied=True),
    "qwen2.5-3b": qwen2(36, 2048, 16, 2, 11008, 151936, tied=True),
    "qwen2.5-7b": qwen2(28, 3584, 28, 4, 18944, 152064),
    "qwen2.5-14b": qwen2(48, 5120, 40, 8, 13824, 152064),
    "qwen2.5-32b": qwen2(64, 5120, 40, 8, 27648, 152064),
    "qwen2.5-72b": qwen2(80, 8192, 64, 8, 29568, 152064),
    "qwen3-0.6b": qwen3(28, 1024, 16, 8, 3072, 151936, tied=True),
    "qwen3-1.7b": qwen3(28, 2048, 16, 8, 6144, 151936, tied=True),
    "qwen3-4b": qwen3(36, 2560, 32, 8, 9728, 151936, tied=True),
    "qwen3-8b": qwen3(36, 4096, 32, 8, 12288, 151936),
    "qwen3-14b": qwen3(40, 5120, 40, 8, 17408, 151936),
    "qwen3-32b": qwen3(64, 5120, 64, 8, 25600, 151936),
    "qwen3-30b-a3b": qwen3_moe(48, 2048, 32, 4, 6144, 151936, inner=768),
    "qwen3-235b-a22b": qwen3_moe(94, 4096, 64, 4, 12288, 151936, inner=1536),
    "qwen1.5-moe-a2.7b": llama(24, 2048, 16, 16, 5632, 151936,
                               config=t.Qwen2MoeConfig, num_experts=60,
                               num_experts_per_tok=4,
                               moe_intermediate_size=1408,
                               shared_expert_intermediate_size=5632),
    "gemma-2b": gemma(18, 2048, 8, 1, 16384, 256000, head=256),
    "gemma-7b": gemma(28, 3072, 16, 16, 24576, 256000, head=256),
    "gemma-2-2b": gemma(26, 2304, 8, 4, 9216, 256000, head=256,
                        config=t.Gemma2Config),
    "gemma-2-9b": gemma(42, 3584, 16, 8, 14336, 256000, head=256,
                        config=t.Gemma2Config),
    "gemma-2-27b": gemma(46, 4608, 32, 16, 36864, 256000, head=128,
                         config=t.Gemma2Config),
    "gemma-3-1b": gemma(26, 1152, 4, 1, 6912, 262144, head=256,
                        config=t.Gemma3TextConfig),
    "phi-3-mini": llama(32, 3072, 32, 32, 8192, 32064, config=t.Phi3Config),
    "phi-4": llama(40, 5120, 40, 10, 17920, 100352, config=t.Phi3Config),
    "olmo-2-7b": llama(32, 4096, 32, 32, 11008, 100352,
                       config=t.Olmo2Config),
    "deepseek-v2-lite": deepseek(t.DeepseekV2Config, 27, 2048, 16, 16, 10944,
                                 102400, q_rank=None, experts=64, per_token=6,
                                 inner=1408, shared=2, dense=1),
    "deepseek-v2": deepseek(t.DeepseekV2Config, 60, 5120, 128, 128, 12288,
                            102400, q_rank=1536, experts=160, per_token=6,
                            inner=1536, shared=2, dense=1),
    "deepseek-v3": deepseek(t.DeepseekV3Config, 61, 7168, 128, 128, 18432,
                            129280, q_rank=1536, experts=256, per_token=8,
                            inner=2048, shared=1, dense=3),
    "gpt-oss-20b": gpt_oss(24, 32),
    "gpt-oss-120b": gpt_oss(36, 128),
    "pythia-6.9b": neox(32, 4096, 32, 16384),
    "gpt-neox-20b": neox(44, 6144, 64, 24576),
    "falcon-7b": t.FalconConfig(num_hidden_layers=32, hidden_size=4544,
                                num_attention_heads=71, vocab_size=65024),
    "mpt-7b": t.MptConfig(d_model=4096, n_heads=32, n_layers=32,
                          vocab_size=50432),
    "opt-125m": opt(12, 768, 12),
    "opt-350m": opt(24, 1024, 16, 512, do_layer_norm_before=False),
    "opt-1.3b": opt(24, 2048, 32),
    "opt-6.7b": opt(32, 4096, 32),
    "electra-small": electra(12, 256, 4, 128),
    "electra-base": electra(12, 768, 12, 768),
    "electra-large": electra(24, 1024, 16, 1024),
    "modernbert-base": modernbert(22, 768, 12, 1152),
    "modernbert-large": modernbert(28, 1024, 16, 2624),
    "t5-small": t5(6, 512, 8, 2048),
    "t5-base": t5(12, 768, 12, 3072),
    "t5-large": t5(24, 1024, 16, 4096),
    "t5-v1.1-base": t5_gated(12, 768, 12, 2048),
    "t5-v1.1-large": t5_gated(24, 1024, 16, 2816),
    "bart-base": bart(6, 768, 12, 3072),
    "bart-large": bart(12, 1024, 16, 4096),
}


def head(config):
    if config.is_encoder_decoder:
        return t.AutoModelForSeq2SeqLM
    if config.model_type in ("electra", "modernbert"):
        return t.AutoModelForSequenceClassification
    return t.AutoModelForCausalLM


def count(config):
    with torch.device("meta"):
        model = head(config).from_config(config)
    model.tie_weights()
    return sum(p.numel() for p in model.parameters())  # a tied one once


def main():
    print(f"// Printed by tests/model/parameter_counts.py with Transformers "
          f"{t.__version__}.")
    print("constexpr auto kParameterCounts =")
    print("    std::to_array<std::pair<std::string_view, int64_t>>({")
    for name, config in PRESETS.items():
        print(f'        {{"{name}", {count(config)}}},', flush=True)
    print("    });")


if __name__ == "__main__":
    main()
