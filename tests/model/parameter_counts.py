#!/usr/bin/env python3
"""Prints tests/model/parameter_counts.inc, and of Transformers 5
parameter_counts_5.inc: parameters that Transformers builds on the meta device for
presets of model/internal/presets/ and model/encoder_presets.cc, with the head
that each has: a language model's, or of an encoder two labels. The second has
those whose types are newer than Transformers 4.57.

Needs torch and transformers 4.57 (tests/trainer/reference_env.sh makes such an
environment), or 5.24; nothing is downloaded. Values are those of each model's
config.json.

    tests/model/parameter_counts.py > tests/model/parameter_counts.inc
    tests/model/parameter_counts.py > tests/model/parameter_counts_5.inc
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


def neox(layers, hidden, heads, inner, vocabulary=50432):
    return t.GPTNeoXConfig(num_hidden_layers=layers, hidden_size=hidden,
                           num_attention_heads=heads, intermediate_size=inner,
                           vocab_size=vocabulary)


def bloom(layers, hidden, heads):
    return t.BloomConfig(n_layer=layers, hidden_size=hidden, n_head=heads,
                         vocab_size=250880)


def starcoder2(layers, hidden, heads, kv, inner):
    return t.Starcoder2Config(num_hidden_layers=layers, hidden_size=hidden,
                              num_attention_heads=heads,
                              num_key_value_heads=kv, intermediate_size=inner,
                              vocab_size=49152)


def phi(layers, hidden, heads, inner):
    return t.PhiConfig(num_hidden_layers=layers, hidden_size=hidden,
                       num_attention_heads=heads, intermediate_size=inner,
                       vocab_size=51200)


def glm_moe(*size, dense, experts, inner, norm):
    return llama(*size, config=t.Glm4MoeConfig, head_dim=128,
                 attention_bias=True, use_qk_norm=norm,
                 n_routed_experts=experts, num_experts_per_tok=8,
                 moe_intermediate_size=inner, n_shared_experts=1,
                 first_k_dense_replace=dense)


def bert(config, layers, hidden, heads, vocabulary, **more):
    return config(num_hidden_layers=layers, hidden_size=hidden,
                  num_attention_heads=heads, intermediate_size=4 * hidden,
                  vocab_size=vocabulary, **more)


def albert(*size):
    return bert(t.AlbertConfig, *size, 30000)


def roberta(*size):
    return bert(t.RobertaConfig, *size, max_position_embeddings=514,
                type_vocab_size=1)


def nemotron(*size, head):
    return llama(*size, 256000, config=t.NemotronConfig, head_dim=head)


def cohere(*size, config=t.CohereConfig, **more):
    return llama(*size, 256000, True, config=config, **more)


def granite33(*size):
    return llama(*size, 49159, True, config=t.GraniteConfig)


def granite4(hidden, heads, kv, inner, shared, vocabulary, state_heads,
             experts=0, per_token=0):
    return t.GraniteMoeHybridConfig(
        hidden_size=hidden, num_attention_heads=heads, num_key_value_heads=kv,
        intermediate_size=inner, shared_intermediate_size=shared,
        num_local_experts=experts, num_experts_per_tok=per_token,
        num_hidden_layers=40, vocab_size=vocabulary, tie_word_embeddings=True,
        layer_types=4 * (5 * ["mamba"] + ["attention"] + 4 * ["mamba"]),
        mamba_n_heads=state_heads, mamba_d_head=64, mamba_d_state=128)


def bamba():
    return t.BambaConfig(vocab_size=128256, mamba_d_state=128,
                         attn_layer_indices=[9, 18, 27])


def olmo3(*size):
    return llama(*size, 100278, config=t.Olmo3Config)


def glm4(*size, bias):
    return llama(*size, 151552, config=t.Glm4Config, head_dim=128,
                 attention_bias=bias)


def gpt_oss(layers, experts):
    return t.GptOssConfig(num_hidden_layers=layers, num_local_experts=experts)


def llama4(experts, step, norm):
    return t.Llama4TextConfig(num_local_experts=experts, use_qk_norm=norm,
                              interleave_moe_layer_step=step)


def dbrx():
    return t.DbrxConfig(
        d_model=6144, n_heads=48, n_layers=40, vocab_size=100352,
        attn_config={"clip_qkv": 8, "kv_n_heads": 8},
        ffn_config={"ffn_hidden_size": 10752, "moe_num_experts": 16,
                    "moe_top_k": 4})


def t5(layers, hidden, heads, inner, **more):
    return t.T5Config(num_layers=layers, d_model=hidden, num_heads=heads,
                      d_ff=inner, **more)


def t5_gated(*size, **more):
    return t5(*size, feed_forward_proj="gated-gelu",
              tie_word_embeddings=False, **more)


def bart(layers, hidden, heads, inner):
    return t.BartConfig(encoder_layers=layers, decoder_layers=layers,
                        d_model=hidden, encoder_attention_heads=heads,
                        decoder_attention_heads=heads, encoder_ffn_dim=inner,
                        decoder_ffn_dim=inner)


def modernbert(layers, hidden, heads, inner, **more):
    return t.ModernBertConfig(num_hidden_layers=layers, hidden_size=hidden,
                              num_attention_heads=heads,
                              intermediate_size=inner, **more)


PRESETS = {
    "distilgpt2": t.GPT2Config(n_layer=6),
    "starcoder2-3b": starcoder2(30, 3072, 24, 2, 12288),
    "starcoder2-7b": starcoder2(32, 4608, 36, 4, 18432),
    "santacoder": bigcode(24, 2048, 16, 49280, 2048),
    "starcoder": bigcode(40, 6144, 48, 49152, 8192),
    "llama-30b": llama(60, 6656, 52, 52, 17920, 32000),
    "llama-65b": llama(80, 8192, 64, 64, 22016, 32000),
    "llama-2-7b": llama(32, 4096, 32, 32, 11008, 32000),
    "llama-2-13b": llama(40, 5120, 40, 40, 13824, 32000),
    "llama-2-70b": llama(80, 8192, 64, 8, 28672, 32000),
    "llama-3.1-8b": llama(32, 4096, 32, 8, 14336, 128256),
    "llama-3.1-70b": llama(80, 8192, 64, 8, 28672, 128256),
    "llama-3.1-405b": llama(126, 16384, 128, 8, 53248, 128256),
    "llama-3.2-1b": llama(16, 2048, 32, 8, 8192, 128256, True),
    "llama-3.2-3b": llama(28, 3072, 24, 8, 8192, 128256, True),
    "llama-4-scout-17b-16e": llama4(16, 1, True),
    "llama-4-maverick-17b-128e": llama4(128, 2, False),
    "llama-3.1-minitron-4b-width": llama(32, 3072, 32, 8, 9216, 128256,
                                         head_dim=128),
    "codellama-7b": llama(32, 4096, 32, 32, 11008, 32016),
    "codellama-13b": llama(40, 5120, 40, 40, 13824, 32016),
    "codellama-34b": llama(48, 8192, 64, 8, 22016, 32000),
    "yi-6b": llama(32, 4096, 32, 4, 11008, 64000),
    "yi-1.5-9b": llama(48, 4096, 32, 4, 11008, 64000),
    "yi-34b": llama(60, 7168, 56, 8, 20480, 64000),
    "deepseek-llm-7b": llama(30, 4096, 32, 32, 11008, 102400),
    "deepseek-llm-67b": llama(95, 8192, 64, 8, 22016, 102400),
    "solar-10.7b": llama(48, 4096, 32, 8, 14336, 32000),
    "granite-3.1-2b": llama(40, 2048, 32, 8, 8192, 49155, True,
                            config=t.GraniteConfig),
    "granite-3.1-8b": llama(40, 4096, 32, 8, 12800, 49155, True,
                            config=t.GraniteConfig),
    "granite-3.3-2b": granite33(40, 2048, 32, 8, 8192),
    "granite-3.3-8b": granite33(40, 4096, 32, 8, 12800),
    "granite-4.0-h-micro": granite4(2048, 32, 8, 8192, 8192, 100352, 64),
    "granite-4.0-h-tiny": granite4(1536, 12, 4, 512, 1024, 100352, 48, 64, 6),
    "granite-4.0-h-small": granite4(4096, 32, 8, 768, 1536, 100352, 128, 72,
                                    10),
    "granite-4.0-tiny-preview": granite4(1536, 12, 4, 512, 1024, 49160, 48, 62,
                                         6),
    "bamba-9b": bamba(),
    "qwen3-next-80b-a3b": t.Qwen3NextConfig(),
    "stablelm-3b": llama(32, 2560, 32, 32, 6912, 50304,
                         config=t.StableLmConfig),
    "stablelm-2-1.6b": llama(24, 2048, 32, 32, 5632, 100352,
                             config=t.StableLmConfig, use_qkv_bias=True),
    "tinyllama-1.1b": llama(22, 2048, 32, 4, 5632, 32000),
    "smollm2-135m": llama(30, 576, 9, 3, 1536, 49152, True),
    "smollm2-360m": llama(32, 960, 15, 5, 2560, 49152, True),
    "smollm2-1.7b": llama(24, 2048, 32, 32, 8192, 49152, True),
    "smollm3-3b": llama(36, 2048, 16, 4, 11008, 128256, True,
                        config=t.SmolLM3Config),
    "mistral-7b": llama(32, 4096, 32, 8, 14336, 32768, config=t.MistralConfig),
    "mistral-7b-v0.2": llama(32, 4096, 32, 8, 14336, 32000,
                             config=t.MistralConfig),
    "mistral-nemo-minitron-8b": llama(40, 4096, 32, 8, 11520, 131072,
                                      config=t.MistralConfig, head_dim=128),
    "mistral-nemo-12b": llama(40, 5120, 32, 8, 14336, 131072,
                              config=t.MistralConfig, head_dim=128),
    "ministral-8b": llama(36, 4096, 32, 8, 12288, 131072,
                          config=t.MistralConfig, head_dim=128),
    "codestral-22b": llama(56, 6144, 48, 8, 16384, 32768,
                           config=t.MistralConfig),
    "mistral-small-24b": llama(40, 5120, 32, 8, 32768, 131072,
                               config=t.MistralConfig, head_dim=128),
    "mistral-large-123b": llama(88, 12288, 96, 8, 28672, 32768,
                                config=t.MistralConfig),
    "mixtral-8x7b": llama(32, 4096, 32, 8, 14336, 32000,
                          config=t.MixtralConfig, num_local_experts=8),
    "mixtral-8x22b": llama(56, 6144, 48, 8, 16384, 32000,
                           config=t.MixtralConfig, num_local_experts=8),
    "mixtral-8x22b-v0.3": llama(56, 6144, 48, 8, 16384, 32768,
                                config=t.MixtralConfig, num_local_experts=8),
    "qwen1.5-0.5b": qwen2(24, 1024, 16, 16, 2816, 151936, tied=True),
    "qwen1.5-1.8b": qwen2(24, 2048, 16, 16, 5504, 151936),
    "qwen1.5-4b": qwen2(40, 2560, 20, 20, 6912, 151936),
    "qwen1.5-7b": qwen2(32, 4096, 32, 32, 11008, 151936),
    "qwen1.5-14b": qwen2(40, 5120, 40, 40, 13696, 152064),
    "qwen2.5-0.5b": qwen2(24, 896, 14, 2, 4864, 151936, tied=True),
    "qwen2.5-1.5b": qwen2(28, 1536, 12, 2, 8960, 151936, tied=True),
    "qwen2.5-3b": qwen2(36, 2048, 16, 2, 11008, 151936, tied=True),
    "qwen2.5-7b": qwen2(28, 3584, 28, 4, 18944, 152064),
    "qwen2.5-14b": qwen2(48, 5120, 40, 8, 13824, 152064),
    "qwen2.5-32b": qwen2(64, 5120, 40, 8, 27648, 152064),
    "qwen2.5-72b": qwen2(80, 8192, 64, 8, 29568, 152064),
    "deepseek-r1-distill-qwen-1.5b": qwen2(28, 1536, 12, 2, 8960, 151936),
    "qwen3-0.6b": qwen3(28, 1024, 16, 8, 3072, 151936, tied=True),
    "qwen3-1.7b": qwen3(28, 2048, 16, 8, 6144, 151936, tied=True),
    "qwen3-4b": qwen3(36, 2560, 32, 8, 9728, 151936, tied=True),
    "qwen3-8b": qwen3(36, 4096, 32, 8, 12288, 151936),
    "qwen3-14b": qwen3(40, 5120, 40, 8, 17408, 151936),
    "qwen3-32b": qwen3(64, 5120, 64, 8, 25600, 151936),
    "qwen3-30b-a3b": qwen3_moe(48, 2048, 32, 4, 6144, 151936, inner=768),
    "qwen3-235b-a22b": qwen3_moe(94, 4096, 64, 4, 12288, 151936, inner=1536),
    "qwen3-coder-480b-a35b": llama(62, 6144, 96, 8, 8192, 151936,
                                   config=t.Qwen3MoeConfig, head_dim=128,
                                   num_experts=160, num_experts_per_tok=8,
                                   moe_intermediate_size=2560),
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
    "gemma-3-270m": gemma(18, 640, 4, 1, 2048, 262144, head=256,
                          config=t.Gemma3TextConfig),
    "gemma-3-4b": gemma(34, 2560, 8, 4, 10240, 262208, head=256,
                        config=t.Gemma3TextConfig),
    "gemma-3-12b": gemma(48, 3840, 16, 8, 15360, 262208, head=256,
                         config=t.Gemma3TextConfig),
    "gemma-3-27b": gemma(62, 5376, 32, 16, 21504, 262208, head=128,
                         config=t.Gemma3TextConfig),
    "gemma-3-1b": gemma(26, 1152, 4, 1, 6912, 262144, head=256,
                        config=t.Gemma3TextConfig),
    "phi-3-mini": llama(32, 3072, 32, 32, 8192, 32064, config=t.Phi3Config),
    "phi-1.5": phi(24, 2048, 32, 8192),
    "phi-2": phi(32, 2560, 32, 10240),
    "phi-4-mini": llama(32, 3072, 24, 8, 8192, 200064, True,
                        config=t.Phi3Config),
    "phi-4": llama(40, 5120, 40, 10, 17920, 100352, config=t.Phi3Config),
    "phi-3.5-moe": t.PhimoeConfig(attention_bias=True, lm_head_bias=True),
    "dbrx": dbrx(),
    "olmo-1b": llama(16, 2048, 16, 16, 8192, 50304, True,
                     config=t.OlmoConfig),
    "olmo-7b": llama(32, 4096, 32, 32, 11008, 50304, config=t.OlmoConfig),
    "olmo-2-1b": llama(16, 2048, 16, 16, 8192, 100352, config=t.Olmo2Config),
    "olmo-2-13b": llama(40, 5120, 40, 40, 13824, 100352,
                        config=t.Olmo2Config),
    "olmo-2-32b": llama(64, 5120, 40, 8, 27648, 100352, config=t.Olmo2Config),
    "olmo-3-7b": olmo3(32, 4096, 32, 32, 11008),
    "olmo-3-32b": olmo3(64, 5120, 40, 8, 27648),
    "olmoe-1b-7b": llama(16, 2048, 16, 16, 1024, 50304, config=t.OlmoeConfig,
                         num_experts=64, num_experts_per_tok=8),
    "glm-4-9b": llama(40, 4096, 32, 2, 13696, 151552, config=t.GlmConfig,
                      head_dim=128, attention_bias=True),
    "glm-4-9b-0414": glm4(40, 4096, 32, 2, 13696, bias=True),
    "glm-4-32b-0414": glm4(61, 6144, 48, 2, 23040, bias=False),
    "seed-oss-36b": llama(64, 5120, 80, 8, 27648, 155136,
                          config=t.SeedOssConfig),
    "exaone-4.0-1.2b": llama(30, 2048, 32, 8, 4096, 102400, True,
                             config=t.Exaone4Config, sliding_window=None,
                             layer_types=30 * ["full_attention"]),
    "exaone-4.0-32b": llama(64, 5120, 40, 8, 27392, 102400,
                            config=t.Exaone4Config),
    "hunyuan-7b": llama(32, 4096, 32, 8, 14336, 128167, True,
                        config=t.HunYuanDenseV1Config, head_dim=128),
    "ernie-4.5-0.3b": t.Ernie4_5Config(),
    "ernie-4.5-21b-a3b": t.Ernie4_5_MoeConfig(),
    "afm-4.5b": llama(36, 2560, 20, 4, 18432, 128004, config=t.ArceeConfig,
                      head_dim=128),
    "nemotron-3-8b": nemotron(32, 4096, 32, 32, 16384, head=128),
    "nemotron-4-15b": nemotron(32, 6144, 48, 8, 24576, head=128),
    "nemotron-4-340b": nemotron(96, 18432, 96, 8, 73728, head=192),
    "minitron-4b": nemotron(32, 3072, 24, 8, 9216, head=128),
    "minitron-8b": nemotron(32, 4096, 48, 8, 16384, head=128),
    "command-r-v01": cohere(40, 8192, 64, 64, 22528),
    "command-r-08-2024": cohere(40, 8192, 64, 8, 24576),
    "command-r-plus": cohere(64, 12288, 96, 8, 33792, use_qk_norm=True),
    "aya-expanse-8b": cohere(32, 4096, 32, 8, 14336),
    "command-r7b-12-2024": cohere(32, 4096, 32, 8, 14336,
                                  config=t.Cohere2Config),
    "command-a-03-2025": cohere(64, 12288, 96, 8, 36864,
                                config=t.Cohere2Config),
    "glm-4.5-air": glm_moe(46, 4096, 96, 8, 10944, 151552, dense=1,
                           experts=128, inner=1408, norm=False),
    "glm-4.5": glm_moe(92, 5120, 96, 8, 12288, 151552, dense=3, experts=160,
                       inner=1536, norm=True),
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
    "kimi-k2": deepseek(t.DeepseekV3Config, 61, 7168, 64, 64, 18432, 163840,
                        q_rank=1536, experts=384, per_token=8, inner=2048,
                        shared=1, dense=1),
    "gpt-oss-20b": gpt_oss(24, 32),
    "gpt-oss-120b": gpt_oss(36, 128),
    "gpt-j-6b": t.GPTJConfig(n_layer=28, n_embd=4096, n_head=16,
                             vocab_size=50400),
    "pythia-70m": neox(6, 512, 8, 2048, 50304),
    "pythia-160m": neox(12, 768, 12, 3072, 50304),
    "pythia-410m": neox(24, 1024, 16, 4096, 50304),
    "pythia-1b": neox(16, 2048, 8, 8192, 50304),
    "pythia-1.4b": neox(24, 2048, 16, 8192, 50304),
    "pythia-2.8b": neox(32, 2560, 32, 10240, 50304),
    "pythia-12b": neox(36, 5120, 40, 20480, 50688),
    "pythia-6.9b": neox(32, 4096, 32, 16384),
    "gpt-neox-20b": neox(44, 6144, 64, 24576),
    "falcon-7b": t.FalconConfig(num_hidden_layers=32, hidden_size=4544,
                                num_attention_heads=71, vocab_size=65024),
    "falcon-40b": t.FalconConfig(num_hidden_layers=60, hidden_size=8192,
                                 num_attention_heads=128, num_kv_heads=8,
                                 new_decoder_architecture=True,
                                 vocab_size=65024),
    "bloom-560m": bloom(24, 1024, 16),
    "bloom-1b1": bloom(24, 1536, 16),
    "bloom-1b7": bloom(24, 2048, 16),
    "bloom-3b": bloom(30, 2560, 32),
    "bloom-7b1": bloom(30, 4096, 32),
    "bloom-176b": bloom(70, 14336, 112),
    "mpt-7b": t.MptConfig(d_model=4096, n_heads=32, n_layers=32,
                          vocab_size=50432),
    "opt-125m": opt(12, 768, 12),
    "opt-350m": opt(24, 1024, 16, 512, do_layer_norm_before=False),
    "opt-1.3b": opt(24, 2048, 32),
    "opt-2.7b": opt(32, 2560, 32),
    "opt-6.7b": opt(32, 4096, 32),
    "opt-13b": opt(40, 5120, 40),
    "opt-30b": opt(48, 7168, 56),
    "opt-66b": opt(64, 9216, 72),
    "bert-base-multilingual-cased": bert(t.BertConfig, 12, 768, 12, 119547),
    "minilm-l6-h384": bert(t.BertConfig, 6, 384, 12, 30522),
    "distilroberta-base": roberta(6, 768, 12, 50265),
    "xlm-roberta-base": roberta(12, 768, 12, 250002),
    "xlm-roberta-large": roberta(24, 1024, 16, 250002),
    "distilbert-base-cased": t.DistilBertConfig(vocab_size=28996),
    "albert-base-v2": albert(12, 768, 12),
    "albert-large-v2": albert(24, 1024, 16),
    "albert-xlarge-v2": albert(24, 2048, 16),
    "albert-xxlarge-v2": albert(12, 4096, 64),
    "electra-small": electra(12, 256, 4, 128),
    "electra-base": electra(12, 768, 12, 768),
    "electra-large": electra(24, 1024, 16, 1024),
    "modernbert-base": modernbert(22, 768, 12, 1152),
    "modernbert-large": modernbert(28, 1024, 16, 2624),
    "t5-small": t5(6, 512, 8, 2048),
    "t5-base": t5(12, 768, 12, 3072),
    "t5-large": t5(24, 1024, 16, 4096),
    "t5-3b": t5(24, 1024, 32, 16384, d_kv=128),
    "t5-11b": t5(24, 1024, 128, 65536, d_kv=128),
    "t5-v1.1-small": t5_gated(8, 512, 6, 1024),
    "t5-v1.1-xl": t5_gated(24, 2048, 32, 5120),
    "t5-v1.1-xxl": t5_gated(24, 4096, 64, 10240),
    "mt5-small": t5_gated(8, 512, 6, 1024, vocab_size=250112),
    "mt5-base": t5_gated(12, 768, 12, 2048, vocab_size=250112),
    "mt5-large": t5_gated(24, 1024, 16, 2816, vocab_size=250112),
    "t5-v1.1-base": t5_gated(12, 768, 12, 2048),
    "t5-v1.1-large": t5_gated(24, 1024, 16, 2816),
    "bart-base": bart(6, 768, 12, 3072),
    "bart-large": bart(12, 1024, 16, 4096),
}


def qwen3_5(layers, hidden, heads, kv, inner, value_heads, tied=False):
    return t.Qwen3_5TextConfig(
        num_hidden_layers=layers, hidden_size=hidden,
        num_attention_heads=heads, num_key_value_heads=kv,
        intermediate_size=inner, linear_num_value_heads=value_heads,
        tie_word_embeddings=tied)


def qwen3_5_moe(layers, hidden, heads, inner, value_heads, experts, per_token):
    return t.Qwen3_5MoeTextConfig(
        num_hidden_layers=layers, hidden_size=hidden,
        num_attention_heads=heads, moe_intermediate_size=inner,
        shared_expert_intermediate_size=inner, num_experts=experts,
        num_experts_per_tok=per_token, linear_num_value_heads=value_heads)


def ministral3(*size, tied=False):
    return llama(*size, 131072, tied, config=t.Ministral3Config, head_dim=128)


def gemma4(*size, full, config=t.Gemma4TextConfig, **more):
    return llama(*size, 262144, True, config=config, attention_k_eq_v=True,
                 num_global_key_value_heads=full,
                 hidden_size_per_layer_input=0, **more)


def small_gemma4(*size, period, shared, **more):
    words = ["full_attention" if block % period == period - 1
             else "sliding_attention" for block in range(size[0])]
    return llama(*size, 262144, True, config=t.Gemma4TextConfig,
                 layer_types=words, num_kv_shared_layers=shared, **more)


def nanochat(layers):
    return t.NanoChatConfig(num_hidden_layers=layers, hidden_size=64 * layers,
                            num_attention_heads=layers // 2,
                            num_key_value_heads=layers // 2,
                            intermediate_size=256 * layers, vocab_size=65536)


def of_shared(*size, experts, per_token, inner, shared=1, dense=1):
    """Qwen3's attention and shared experts: Hy3's class, and Ling's own code."""
    return llama(*size, config=t.HYV3Config, head_dim=128, num_experts=experts,
                 num_experts_per_tok=per_token, moe_intermediate_size=inner,
                 num_shared_experts=shared,
                 mlp_layer_types=(dense * ["dense"]
                                  + (size[0] - dense) * ["sparse"]))


def lfm2(layers, attention, hidden, inner, config=t.Lfm2Config, **more):
    words = ["full_attention"] * attention + ["conv"] * (layers - attention)
    return config(num_hidden_layers=layers, hidden_size=hidden,
                  num_attention_heads=hidden // 64, num_key_value_heads=8,
                  intermediate_size=inner, layer_types=words, **more)


def lfm2_moe(layers, attention, inner, experts, width):
    return lfm2(layers, attention, 2048, inner, config=t.Lfm2MoeConfig,
                num_experts=experts, moe_intermediate_size=width)


def apertus(layers, hidden, heads, inner):
    return llama(layers, hidden, heads, 8, inner, 131072,
                 config=t.ApertusConfig)


def trinity(*size, experts, per_token, inner, dense):
    return llama(*size, 200192, config=t.AfmoeConfig, num_experts=experts,
                 num_experts_per_tok=per_token, moe_intermediate_size=inner,
                 num_shared_experts=1, num_dense_layers=dense)


def newer():
    """Of the values that classes have where they are those of the model."""
    return {
        "ministral-3-3b": ministral3(26, 3072, 32, 8, 9216, tied=True),
        "ministral-3-8b": ministral3(34, 4096, 32, 8, 14336),
        "ministral-3-14b": ministral3(40, 5120, 32, 8, 16384),
        "hyperclovax-seed-think-14b": llama(
            38, 6144, 48, 8, 14336, 110592, config=t.HyperCLOVAXConfig),
        "internlm3-8b": t.InternLM3Config(),
        "helium-1-preview-2b": llama(24, 2560, 20, 20, 7040, 48000,
                                     config=t.HeliumConfig),
        "vaultgemma-1b": gemma(26, 1152, 4, 4, 6912, 256000, head=256,
                               config=t.VaultGemmaConfig),
        "gemma-4-12b": gemma4(48, 3840, 16, 8, 15360, full=1,
                              config=t.Gemma4UnifiedTextConfig),
        "gemma-4-26b-a4b": gemma4(
            30, 2816, 16, 8, 2112, full=2, enable_moe_block=True,
            num_experts=128, top_k_experts=8, moe_intermediate_size=704),
        "gemma-4-e2b": small_gemma4(35, 1536, 8, 1, 6144, period=5, shared=20,
                                    use_double_wide_mlp=True),
        "gemma-4-e4b": small_gemma4(42, 2560, 8, 2, 10240, period=6,
                                    shared=18),
        "gemma-4-31b": gemma4(60, 5376, 32, 16, 21504, full=4),
        "mimo-v2-flash": t.MiMoV2FlashConfig(),
        "nanochat-d20": nanochat(20),
        "nanochat-d32": nanochat(32),
        "nanochat-d34": nanochat(34),
        "jais-2-8b": t.Jais2Config(),
        "ernie-4.5-300b-a47b": llama(
            54, 8192, 64, 8, 28672, 103424, config=t.Ernie4_5_MoeConfig,
            moe_k=8, moe_num_shared_experts=0, moe_intermediate_size=3584,
            moe_layer_start_index=3),
        "minimax-m2": t.MiniMaxM2Config(),
        "glm-4.7-flash": t.Glm4MoeLiteConfig(),
        "youtu-llm-2b": t.YoutuConfig(),
        "mistral-small-4-119b": t.Mistral4Config(),
        "solar-open-100b": t.SolarOpenConfig(),
        "k-exaone-236b-a23b": llama(
            48, 6144, 64, 8, 18432, 153600, config=t.ExaoneMoeConfig,
            head_dim=128, num_experts=128, moe_intermediate_size=2048),
        "dots.llm1": llama(
            62, 4096, 32, 32, 10944, 152064, config=t.Dots1Config,
            n_routed_experts=128, n_shared_experts=2, num_experts_per_tok=6,
            first_k_dense_replace=1),
        "hunyuan-a13b": llama(
            32, 4096, 32, 8, 3072, 128167, config=t.HunYuanMoEV1Config,
            head_dim=128, num_experts=64, moe_topk=8),
        "hy3": t.HYV3Config(),
        "mellum2-12b-a2.5b": t.MellumConfig(),
        "ling-mini-2.0": of_shared(20, 2048, 16, 4, 5120, 157184, experts=256,
                                   per_token=8, inner=512),
        "bge-m3": bert(t.XLMRobertaConfig, 24, 1024, 16, 250002,
                       max_position_embeddings=8194, type_vocab_size=1),
        "camembert-base": bert(t.CamembertConfig, 12, 768, 12, 32005,
                               max_position_embeddings=514, type_vocab_size=1),
        "nomic-embed-text-v1.5": t.NomicBertConfig(),
        "minilm-l12-h384": bert(t.BertConfig, 12, 384, 12, 30522),
        "ettin-encoder-17m": modernbert(7, 256, 4, 384),
        "ettin-encoder-32m": modernbert(10, 384, 6, 576),
        "ettin-encoder-68m": modernbert(19, 512, 8, 768),
        "ettin-encoder-1b": modernbert(28, 1792, 28, 3840),
        "mmbert-small": modernbert(22, 384, 6, 1152, vocab_size=256000),
        "mmbert-base": modernbert(22, 768, 12, 1152, vocab_size=256000),
        "qwen3.5-0.8b": qwen3_5(24, 1024, 8, 2, 3584, 16, True),
        "qwen3.5-2b": qwen3_5(24, 2048, 8, 2, 6144, 16, True),
        "qwen3.5-4b": qwen3_5(32, 2560, 16, 4, 9216, 32, True),
        "qwen3.5-9b": qwen3_5(32, 4096, 16, 4, 12288, 32),
        "qwen3.5-27b": qwen3_5(64, 5120, 24, 4, 17408, 48),
        "qwen3.5-35b-a3b": qwen3_5_moe(40, 2048, 16, 512, 32, 256, 8),
        "qwen3.5-122b-a10b": qwen3_5_moe(48, 3072, 32, 1024, 64, 256, 8),
        "qwen3.5-397b-a17b": qwen3_5_moe(60, 4096, 32, 1024, 64, 512, 10),
        "lfm2-350m": lfm2(16, 6, 1024, 6656),
        "lfm2-700m": lfm2(16, 6, 1536, 10240),
        "lfm2-1.2b": lfm2(16, 6, 2048, 12288),
        "lfm2-2.6b": lfm2(30, 8, 2048, 10752, block_auto_adjust_ff_dim=False),
        "lfm2-8b-a1b": lfm2_moe(24, 6, 7168, 32, 1792),
        "lfm2-24b-a2b": lfm2_moe(40, 10, 11776, 64, 1536),
        "apertus-8b": apertus(32, 4096, 32, 21504),
        "apertus-70b": apertus(80, 8192, 64, 43008),
        "trinity-nano": trinity(56, 1024, 8, 2, 3072, experts=128, per_token=8,
                                inner=256, dense=2),
        "trinity-mini": trinity(32, 2048, 32, 4, 6144, experts=128,
                                per_token=8, inner=1024, dense=2),
        "trinity-large": trinity(60, 3072, 48, 8, 12288, experts=256,
                                 per_token=4, inner=3072, dense=6),
    }


def head(config):
    if config.model_type == "mistral4":  # which its table of heads lacks
        return t.Mistral4ForCausalLM
    if config.is_encoder_decoder:
        return t.AutoModelForSeq2SeqLM
    if config.model_type in ("albert", "bert", "camembert", "distilbert",
                             "electra", "modernbert", "nomic_bert", "roberta",
                             "xlm-roberta"):
        return t.AutoModelForSequenceClassification
    return t.AutoModelForCausalLM


def count(config):
    with torch.device("meta"):
        build = head(config)
        model = (build.from_config(config) if "Auto" in build.__name__
                 else build(config))
    model.tie_weights()
    # A tied one once; what balances ERNIE's experts does not train.
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def main():
    print(f"// Printed by tests/model/parameter_counts.py with Transformers "
          f"{t.__version__}.")
    version_5 = not t.__version__.startswith("4.")
    print(f"constexpr auto kParameterCounts{'Of5' if version_5 else ''} =")
    print("    std::to_array<std::pair<std::string_view, int64_t>>({")
    presets = newer() if version_5 else PRESETS
    for name, config in presets.items():
        print(f'        {{"{name}", {count(config)}}},', flush=True)
    print("    });")


if __name__ == "__main__":
    main()
