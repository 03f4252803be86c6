#include "hardware/files/model_config.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/architecture.h"
#include "model/error.h"
#include "model/presets.h"

namespace trainfare::hardware {
namespace {

namespace fs = std::filesystem;

// A config.json of its own, gone with the test.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text)
      : path_(fs::temp_directory_path() / "trainfare_config_test.json") {
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { fs::remove(path_); }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

model::Architecture Read(const std::string& text) {
  const ConfigFile file(text);
  return ReadModelConfig(file.path());
}

std::string Refusal(const std::string& text) {
  try {
    Read(text);
  } catch (const model::InputError& error) {
    const std::string message = error.what();
    return message.substr(message.find(": ") + 2);
  }
  return "nothing refused";
}

const std::string kEncoder =
    R"("num_hidden_layers": 12, "hidden_size": 768,
       "num_attention_heads": 12, "intermediate_size": 3072,
       "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
       "attention_probs_dropout_prob": 0.1, "layer_norm_eps": 1e-12,
       "position_embedding_type": "absolute",)";

const std::string kSides = R"("encoder_layers": 6, "decoder_layers": 6,)";

// Parameters that Transformers 4.57 builds on the meta device of the same
// configurations: encoders with a classifier of two labels, decoders with their
// head.
TEST_CASE("parameters of a config.json are those of Transformers") {
  struct Case {
    std::string json;
    int64_t parameters;
  };
  const Case cases[] = {
      {R"({"model_type": "bert", )" + kEncoder +
           R"("vocab_size": 30522, "max_position_embeddings": 512,
              "type_vocab_size": 2, "pad_token_id": 0})",
       109483778},
      {R"({"model_type": "roberta", )" + kEncoder +
           R"("vocab_size": 50265, "max_position_embeddings": 514,
              "type_vocab_size": 1, "pad_token_id": 1})",
       124647170},
      {R"({"model_type": "electra", )" + kEncoder +
           R"("vocab_size": 30522, "max_position_embeddings": 512,
              "type_vocab_size": 2, "embedding_size": 768,
              "summary_type": "first"})",
       109483778},
      // google/electra-small-discriminator
      {R"({"model_type": "electra", "num_hidden_layers": 12,
           "hidden_size": 256, "num_attention_heads": 4,
           "intermediate_size": 1024, "embedding_size": 128,
           "vocab_size": 30522, "max_position_embeddings": 512,
           "type_vocab_size": 2, "hidden_act": "gelu"})",
       13549314},
      // facebook/opt-350m
      {R"({"model_type": "opt", "num_hidden_layers": 24,
           "hidden_size": 1024, "num_attention_heads": 16,
           "ffn_dim": 4096, "vocab_size": 50272,
           "max_position_embeddings": 2048, "word_embed_proj_dim": 512,
           "do_layer_norm_before": false,
           "_remove_final_layer_norm": false})",
       331196416},
      {R"({"model_type": "distilbert", "n_layers": 6, "dim": 768, "n_heads": 12,
           "hidden_dim": 3072, "vocab_size": 30522, "activation": "gelu",
           "max_position_embeddings": 512, "dropout": 0.1,
           "sinusoidal_pos_embds": false, "qa_dropout": 0.1})",
       66955010},
      {R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12,
           "n_positions": 1024, "n_ctx": 1024, "vocab_size": 50257,
           "n_inner": null, "activation_function": "gelu_new",
           "attn_pdrop": 0.1, "resid_pdrop": 0.1})",
       124439808},
      {R"({"model_type": "opt", "num_hidden_layers": 12, "hidden_size": 768,
           "num_attention_heads": 12, "ffn_dim": 3072, "vocab_size": 50272,
           "max_position_embeddings": 2048, "word_embed_proj_dim": 768,
           "do_layer_norm_before": true, "activation_function": "relu",
           "dropout": 0.1, "layerdrop": 0.0})",
       125239296},
      {R"({"model_type": "gpt_neox", "num_hidden_layers": 6,
           "hidden_size": 512, "num_attention_heads": 8,
           "intermediate_size": 2048, "vocab_size": 50304,
           "max_position_embeddings": 2048, "rotary_pct": 0.25,
           "hidden_act": "gelu", "use_parallel_residual": true,
           "tie_word_embeddings": false})",
       70426624},
      // As published: keys that only these files have, none of the class.
      {R"({"model_type": "llama", "is_llama_config": true,
           "rope_interleaved": false, "num_hidden_layers": 30,
           "hidden_size": 576, "num_attention_heads": 9,
           "num_key_value_heads": 3, "intermediate_size": 1536,
           "vocab_size": 49152, "max_position_embeddings": 8192,
           "tie_word_embeddings": true})",
       134515008},
      {R"({"model_type": "starcoder2", "num_hidden_layers": 30,
           "hidden_size": 3072, "num_attention_heads": 24,
           "num_key_value_heads": 2, "intermediate_size": 12288,
           "vocab_size": 49152, "max_position_embeddings": 16384,
           "mlp_type": "default", "norm_type": "layer_norm"})",
       3030371328},
      {R"({"model_type": "gemma3_text", "num_hidden_layers": 34,
           "hidden_size": 2560, "intermediate_size": 10240,
           "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
           "sliding_window": 1024})",
       3880263168},
      {R"({"model_type": "falcon", "num_hidden_layers": 60,
           "hidden_size": 8192, "num_attention_heads": 128,
           "num_kv_heads": 8, "vocab_size": 65024, "parallel_attn": true,
           "multi_query": true, "new_decoder_architecture": true,
           "apply_residual_connection_post_layernorm": false,
           "bias": false, "alibi": false})",
       41303293952},
      {R"({"model_type": "falcon", "num_hidden_layers": 32,
           "hidden_size": 4544, "num_attention_heads": 71,
           "vocab_size": 65024, "multi_query": true, "parallel_attn": true,
           "bias": false, "alibi": false, "new_decoder_architecture": false})",
       6921720704},
      {R"({"model_type": "falcon", "num_hidden_layers": 60,
           "hidden_size": 8192, "num_attention_heads": 128,
           "num_kv_heads": 8, "vocab_size": 65024, "bias": false,
           "new_decoder_architecture": true})",
       41303293952},
      {R"({"model_type": "starcoder2", "num_hidden_layers": 30,
           "hidden_size": 3072, "num_attention_heads": 24,
           "num_key_value_heads": 2, "intermediate_size": 12288,
           "vocab_size": 49152, "max_position_embeddings": 4096,
           "sliding_window": 4096, "use_bias": true,
           "hidden_act": "gelu_pytorch_tanh", "norm_epsilon": 1e-5})",
       3030371328},
      {R"({"model_type": "granite", "num_hidden_layers": 40,
           "hidden_size": 2048, "num_attention_heads": 32,
           "num_key_value_heads": 8, "intermediate_size": 8192,
           "vocab_size": 49155, "max_position_embeddings": 131072,
           "tie_word_embeddings": true, "embedding_multiplier": 12.0,
           "logits_scaling": 8.0})",
       2533531648},
      {R"({"model_type": "gpt_oss", "num_hidden_layers": 24,
           "hidden_size": 2880, "num_attention_heads": 64,
           "num_key_value_heads": 8, "head_dim": 64,
           "intermediate_size": 2880, "vocab_size": 201088,
           "max_position_embeddings": 131072, "num_local_experts": 32,
           "num_experts_per_tok": 4, "sliding_window": 128,
           "attention_bias": true, "swiglu_limit": 7.0})",
       20914757184},
      {R"({"model_type": "glm4", "num_hidden_layers": 40,
           "hidden_size": 4096, "num_attention_heads": 32,
           "num_key_value_heads": 2, "head_dim": 128,
           "intermediate_size": 13696, "vocab_size": 151552,
           "max_position_embeddings": 131072, "attention_bias": true,
           "partial_rotary_factor": 0.5})",
       9400279040},
      {R"({"model_type": "phi", "num_hidden_layers": 32,
           "hidden_size": 2560, "num_attention_heads": 32,
           "intermediate_size": 10240, "vocab_size": 51200,
           "max_position_embeddings": 2048, "partial_rotary_factor": 0.4,
           "qk_layernorm": false, "hidden_act": "gelu_new"})",
       2779683840},
      {R"({"model_type": "bloom", "n_layer": 24, "hidden_size": 1024,
           "n_head": 16, "vocab_size": 250880, "hidden_dropout": 0.0})",
       559214592},
      {R"({"model_type": "gptj", "n_layer": 28, "n_embd": 4096, "n_head": 16,
           "n_positions": 2048, "rotary_dim": 64, "vocab_size": 50400,
           "tie_word_embeddings": false})",
       6050882784},
      {R"({"model_type": "olmo", "num_hidden_layers": 16,
           "hidden_size": 2048, "num_attention_heads": 16,
           "intermediate_size": 8192, "vocab_size": 50304,
           "max_position_embeddings": 2048, "clip_qkv": null,
           "tie_word_embeddings": true})",
       1176764416},
      {R"({"model_type": "glm", "num_hidden_layers": 40,
           "hidden_size": 4096, "num_attention_heads": 32,
           "num_key_value_heads": 2, "head_dim": 128,
           "intermediate_size": 13696, "vocab_size": 151552,
           "max_position_embeddings": 131072})",
       9399951360},
      {R"({"model_type": "cohere", "num_hidden_layers": 40,
           "hidden_size": 8192, "num_attention_heads": 64,
           "intermediate_size": 22528, "vocab_size": 256000,
           "max_position_embeddings": 8192, "logit_scale": 0.0625})",
       34980831232},
      {R"({"model_type": "smollm3", "num_hidden_layers": 36,
           "hidden_size": 2048, "num_attention_heads": 16,
           "num_key_value_heads": 4, "intermediate_size": 11008,
           "vocab_size": 128256, "max_position_embeddings": 65536,
           "no_rope_layer_interval": 4, "use_sliding_window": false})",
       3075098624},
      {R"({"model_type": "modernbert", "num_hidden_layers": 22,
           "hidden_size": 768, "num_attention_heads": 12,
           "intermediate_size": 1152, "vocab_size": 50368,
           "max_position_embeddings": 8192, "local_attention": 128,
           "global_attn_every_n_layers": 3, "decoder_bias": true})",
       149606402},
      {R"({"model_type": "t5", "num_layers": 6, "d_model": 512,
           "num_heads": 8, "d_kv": 64, "d_ff": 2048, "vocab_size": 32128,
           "is_encoder_decoder": true, "n_positions": 512})",
       60506624},
      {R"({"model_type": "mt5", "num_layers": 8, "d_model": 512,
           "num_heads": 6, "d_kv": 64, "d_ff": 1024, "vocab_size": 250112,
           "feed_forward_proj": "gated-gelu"})",
       300176768},
      {R"({"model_type": "bart", )" + kSides +
           R"("encoder_attention_heads": 12, "decoder_attention_heads": 12,
              "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072,
              "d_model": 768, "vocab_size": 50265,
              "max_position_embeddings": 1024, "scale_embedding": false})",
       139420416},
      // facebook/mbart-large-cc25
      {R"({"model_type": "mbart", "encoder_layers": 12,
           "decoder_layers": 12, "encoder_attention_heads": 16,
           "decoder_attention_heads": 16, "encoder_ffn_dim": 4096,
           "decoder_ffn_dim": 4096, "d_model": 1024, "vocab_size": 250027,
           "max_position_embeddings": 1024, "scale_embedding": true,
           "add_final_layer_norm": true, "normalize_before": true,
           "normalize_embedding": true, "static_position_embeddings": false,
           "add_bias_logits": false, "is_encoder_decoder": true})",
       610851840},
      // google/umt5-small
      {R"({"model_type": "umt5", "num_layers": 8, "num_decoder_layers": 8,
           "d_model": 512, "num_heads": 6, "d_kv": 64, "d_ff": 1024,
           "vocab_size": 256384, "feed_forward_proj": "gated-gelu",
           "is_gated_act": true, "scalable_attention": true,
           "tie_word_embeddings": false})",
       306601984},
      // xlm-roberta-base, camembert-base
      {R"({"model_type": "xlm-roberta", )" + kEncoder +
           R"("vocab_size": 250002, "max_position_embeddings": 514,
              "type_vocab_size": 1, "pad_token_id": 1})",
       278045186},
      {R"({"model_type": "camembert", )" + kEncoder +
           R"("vocab_size": 32005, "max_position_embeddings": 514,
              "type_vocab_size": 1, "pad_token_id": 1})",
       110623490},
      // kyutai/helium-1-preview-2b
      {R"({"model_type": "helium", "num_hidden_layers": 24,
           "hidden_size": 2560, "num_attention_heads": 20,
           "num_key_value_heads": 20, "head_dim": 128,
           "intermediate_size": 7040, "vocab_size": 48000,
           "max_position_embeddings": 4096})",
       2172643840},
      // tencent/Hunyuan-1.8B-Instruct, Hunyuan-A13B-Instruct
      {R"({"model_type": "hunyuan_v1_dense", "num_hidden_layers": 32,
           "hidden_size": 2048, "num_attention_heads": 16,
           "num_key_value_heads": 4, "head_dim": 128,
           "intermediate_size": 6144, "vocab_size": 120818,
           "max_position_embeddings": 262144, "tie_word_embeddings": true,
           "use_qk_norm": true, "use_cla": false,
           "rope_scaling": {"alpha": 1000.0, "type": "dynamic"}})",
       1791080448},
      {R"({"model_type": "hunyuan_v1_moe", "num_hidden_layers": 32,
           "hidden_size": 4096, "num_attention_heads": 32,
           "num_key_value_heads": 8, "head_dim": 128,
           "intermediate_size": 3072, "vocab_size": 128167,
           "max_position_embeddings": 32768, "tie_word_embeddings": true,
           "num_experts": 64, "moe_topk": 8, "use_mixed_mlp_moe": true})",
       80393183232},
      {R"({"model_type": "ministral", "num_hidden_layers": 36,
           "hidden_size": 4096, "num_attention_heads": 32,
           "num_key_value_heads": 8, "head_dim": 128,
           "intermediate_size": 12288, "vocab_size": 131072,
           "max_position_embeddings": 32768})",
       8019808256},
      // google/vaultgemma-1b
      {R"({"model_type": "vaultgemma", "num_hidden_layers": 26,
           "hidden_size": 1152, "num_attention_heads": 4,
           "num_key_value_heads": 4, "head_dim": 256,
           "intermediate_size": 6912, "vocab_size": 256000,
           "max_position_embeddings": 1024})",
       1038741120},
      // rednote-hilab/dots.llm1.base
      {R"({"model_type": "dots1", "num_hidden_layers": 62,
           "hidden_size": 4096, "num_attention_heads": 32,
           "num_key_value_heads": 32, "head_dim": 128,
           "intermediate_size": 10944, "moe_intermediate_size": 1408,
           "n_routed_experts": 128, "n_shared_experts": 2,
           "num_experts_per_tok": 6, "first_k_dense_replace": 1,
           "vocab_size": 152064, "max_position_embeddings": 32768})",
       142774373888},
      // allenai/FlexOlmo-7x7B-1T
      {R"({"model_type": "flex_olmo", "num_hidden_layers": 32,
           "hidden_size": 4096, "num_attention_heads": 32,
           "num_key_value_heads": 32, "intermediate_size": 11008,
           "vocab_size": 100352, "num_experts": 7, "num_experts_per_tok": 5,
           "max_position_embeddings": 4096})",
       33270665216},
      {R"({"model_type": "granitemoeshared", "num_hidden_layers": 4,
           "hidden_size": 1024, "num_attention_heads": 16,
           "num_key_value_heads": 8, "intermediate_size": 512,
           "shared_intermediate_size": 1024, "num_local_experts": 32,
           "num_experts_per_tok": 8, "vocab_size": 49152,
           "max_position_embeddings": 4096, "tie_word_embeddings": true})",
       276964352},
      // ibm-granite/granite-4.0-micro
      {R"({"model_type": "granitemoehybrid", "num_hidden_layers": 40,
           "hidden_size": 2560, "num_attention_heads": 40,
           "num_key_value_heads": 8, "intermediate_size": 8192,
           "shared_intermediate_size": 8192, "num_local_experts": 0,
           "num_experts_per_tok": 0, "vocab_size": 100352,
           "max_position_embeddings": 131072, "tie_word_embeddings": true,
           "position_embedding_type": "rope",
           "normalization_function": "rmsnorm", "layer_types": )" +
           fmt::format("{}", std::vector<std::string>(40, "attention")) + "}",
       3402836480},
      {R"({"model_type": "granitemoehybrid", "num_hidden_layers": 2,
           "hidden_size": 512, "num_attention_heads": 8,
           "num_key_value_heads": 4, "intermediate_size": 256,
           "shared_intermediate_size": 384, "num_local_experts": 4,
           "num_experts_per_tok": 2, "vocab_size": 1000,
           "max_position_embeddings": 64, "mamba_n_heads": 16,
           "layer_types": ["attention", "attention"]})",
       6928896},
      // nvidia/Nemotron-H-8B-Base-8K and NVIDIA-Nemotron-3-Nano-30B-A3B: what is
      // by hand in tests/model/state_space_test.cc
      {R"({"model_type": "nemotron_h", "num_hidden_layers": 52,
           "hidden_size": 4096, "num_attention_heads": 32,
           "num_key_value_heads": 8, "attention_head_dim": 128,
           "intermediate_size": 21504, "vocab_size": 131072,
           "max_position_embeddings": 8192, "mamba_num_heads": 128,
           "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8,
           "chunk_size": 128, "conv_kernel": 4, "expand": 2,
           "mlp_hidden_act": "relu2", "use_conv_bias": true,
           "hybrid_override_pattern":
           "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"})",
       8100852736},
      {R"({"model_type": "nemotron_h", "num_hidden_layers": 52,
           "hidden_size": 2688, "num_attention_heads": 32,
           "num_key_value_heads": 2, "head_dim": 128,
           "intermediate_size": 1856, "vocab_size": 131072,
           "max_position_embeddings": 262144, "mamba_num_heads": 64,
           "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8,
           "n_routed_experts": 128, "num_experts_per_tok": 6,
           "moe_intermediate_size": 1856, "n_shared_experts": 1,
           "moe_shared_expert_intermediate_size": 3712, "expand": 2,
           "hybrid_override_pattern":
           "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"})",
       31577937344},
      // Qwen/Qwen3-Next-80B-A3B-Instruct
      {R"({"model_type": "qwen3_next", "num_hidden_layers": 48,
           "hidden_size": 2048, "num_attention_heads": 16,
           "num_key_value_heads": 2, "head_dim": 256,
           "intermediate_size": 5120, "vocab_size": 151936,
           "max_position_embeddings": 262144, "decoder_sparse_step": 1,
           "full_attention_interval": 4, "linear_conv_kernel_dim": 4,
           "linear_key_head_dim": 128, "linear_num_key_heads": 16,
           "linear_num_value_heads": 32, "linear_value_head_dim": 128,
           "mlp_only_layers": [], "moe_intermediate_size": 512,
           "num_experts": 512, "num_experts_per_tok": 10,
           "partial_rotary_factor": 0.25, "rope_theta": 10000000,
           "router_aux_loss_coef": 0.001, "norm_topk_prob": true,
           "shared_expert_intermediate_size": 512,
           "use_sliding_window": false})",
       79674391296},
      // Qwen/Qwen3.5-0.8B: the language model in it
      {R"({"model_type": "qwen3_5", "image_token_id": 248056,
           "tie_word_embeddings": true, "video_token_id": 248057,
           "vision_config": {"model_type": "qwen3_5", "depth": 12},
           "text_config": {"model_type": "qwen3_5_text",
               "num_hidden_layers": 24, "hidden_size": 1024,
               "num_attention_heads": 8, "num_key_value_heads": 2,
               "head_dim": 256, "intermediate_size": 3584,
               "vocab_size": 248320, "max_position_embeddings": 262144,
               "attn_output_gate": true, "full_attention_interval": 4,
               "linear_num_key_heads": 16, "linear_num_value_heads": 16,
               "linear_key_head_dim": 128, "linear_value_head_dim": 128,
               "linear_conv_kernel_dim": 4, "mamba_ssm_dtype": "float32",
               "mlp_only_layers": [], "mtp_num_hidden_layers": 1,
               "mtp_use_dedicated_embeddings": false,
               "rope_parameters": {"mrope_interleaved": true,
                   "mrope_section": [11, 11, 10], "rope_type": "default",
                   "rope_theta": 10000000, "partial_rotary_factor": 0.25},
               "tie_word_embeddings": true}})",
       752393024},
      // Qwen/Qwen3.5-35B-A3B: the same
      {R"({"model_type": "qwen3_5_moe", "tie_word_embeddings": false,
           "vision_config": {"model_type": "qwen3_5_moe", "depth": 27},
           "text_config": {"model_type": "qwen3_5_moe_text",
               "num_hidden_layers": 40, "hidden_size": 2048,
               "num_attention_heads": 16, "num_key_value_heads": 2,
               "vocab_size": 248320, "max_position_embeddings": 262144,
               "linear_num_value_heads": 32, "moe_intermediate_size": 512,
               "num_experts": 256, "num_experts_per_tok": 8,
               "shared_expert_intermediate_size": 512}})",
       34660610688},
      // nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16: by hand in
      // tests/model/latent_experts_test.cc
      {R"({"model_type": "nemotron_h", "num_hidden_layers": 88,
           "hidden_size": 4096, "num_attention_heads": 32,
           "num_key_value_heads": 2, "head_dim": 128,
           "intermediate_size": 2688, "vocab_size": 131072,
           "max_position_embeddings": 262144, "mamba_num_heads": 128,
           "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8,
           "n_routed_experts": 512, "num_experts_per_tok": 22,
           "moe_intermediate_size": 2688, "moe_latent_size": 1024,
           "n_shared_experts": 1, "moe_shared_expert_overlap": false,
           "moe_shared_expert_intermediate_size": 5376, "expand": 2,
           "num_nextn_predict_layers": 1, "mtp_hybrid_override_pattern": "*E",
           "hybrid_override_pattern": "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*)"
       R"(EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME"})",
       120668687360},
      // As Transformers 5 saves a small one, whose blocks tell their number.
      {R"({"model_type": "nemotron_h", "num_hidden_layers": null,
           "hidden_size": 512, "num_attention_heads": 8,
           "num_key_value_heads": 2, "head_dim": 64, "intermediate_size": 256,
           "vocab_size": 1000, "max_position_embeddings": 64,
           "mamba_num_heads": 16, "mamba_head_dim": 64, "ssm_state_size": 32,
           "n_groups": 2, "n_routed_experts": 4, "num_experts_per_tok": 2,
           "moe_intermediate_size": 128, "moe_latent_size": 96,
           "moe_shared_expert_intermediate_size": 384,
           "mtp_layers_block_type": ["full_attention", "moe"],
           "layers_block_type":
           ["linear_attention", "moe", "full_attention", "moe"]})",
       4519088},
      // baidu/ERNIE-4.5-21B-A3B-PT
      {R"({"model_type": "ernie4_5_moe", "num_hidden_layers": 28,
           "hidden_size": 2560, "num_attention_heads": 20,
           "num_key_value_heads": 4, "intermediate_size": 12288,
           "vocab_size": 103424, "max_position_embeddings": 131072,
           "moe_num_experts": 64, "moe_k": 6, "moe_intermediate_size": 1536,
           "moe_num_shared_experts": 2, "moe_layer_start_index": 1,
           "moe_layer_end_index": 27, "moe_layer_interval": 1})",
       21825436160},
      // Its table of sinusoids does not train.
      {R"({"model_type": "marian", )" + kSides +
           R"("encoder_attention_heads": 8, "decoder_attention_heads": 8,
              "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048,
              "d_model": 512, "vocab_size": 58101,
              "activation_function": "swish", "scale_embedding": true,
              "max_position_embeddings": 512})",
       73886208},
  };
  for (const Case& one : cases) {
    CAPTURE(one.json);
    CHECK(model::TotalParameters(Read(one.json)) == one.parameters);
  }
}

// Keys that files on Hugging Face have beside those of their class.
TEST_CASE("keys of published files that no class reads are understood") {
  const std::string sizes =
      R"(, "num_hidden_layers": 2, "hidden_size": 512, "vocab_size": 1000,
           "num_attention_heads": 32, "num_key_value_heads": 8,
           "intermediate_size": 256, "max_position_embeddings": 64)";
  const auto with = [&](std::string_view type, std::string_view keys) {
    return fmt::format(R"({{"model_type": "{}", {}{}}})", type, keys, sizes);
  };
  CHECK(Read(with("qwen2", R"("use_mrope": false)")).layers == 2);
  CHECK(Refusal(with("qwen2", R"("use_mrope": true)"))
            .starts_with("use_mrope: expected false"));
  CHECK(Read(with("llama", R"("transformers.js_config": {"dtype": "q4"})"))
            .layers == 2);
  CHECK(Read(with("phi3",
                  R"("full_attn_mod": 1, "interpolate_factor": 1,
                     "lm_head_bias": false, "mlp_bias": false)"))
            .layers == 2);
  CHECK(Refusal(with("phi3", R"("full_attn_mod": 2)"))
            .starts_with("full_attn_mod: expected 1"));
  CHECK(
      Read(with("gemma2", R"("sliding_window": 32, "sliding_window_size": 16)"))
          .window == 32);
  CHECK(Read(R"({"model_type": "falcon", "num_hidden_layers": 2,
                 "hidden_size": 48, "num_attention_heads": 4,
                 "vocab_size": 100, "ff_factor": 2, "ffn_hidden_size": 96})")
            .intermediate == 96);
  CHECK(Read(with("starcoder2",
                  R"("activation_function": "gelu",
                     "attention_softmax_in_fp32": true,
                     "layer_norm_epsilon": 1e-5,
                     "scale_attn_weights": true)"))
            .layers == 2);
  CHECK(Read(R"({"model_type": "gpt_neox", "num_hidden_layers": 2,
                 "hidden_size": 512, "num_attention_heads": 8,
                 "intermediate_size": 256, "vocab_size": 1000,
                 "max_position_embeddings": 64, "hidden_act": "gelu_fast",
                 "attention_probs_dropout_prob": 0,
                 "hidden_dropout_prob": 0})")
            .activation == model::Activation::kGeluNew);
}

// As of bart-large-cnn: two of a table's rows are padding, whatever it says.
TEST_CASE("what begins with an underscore is Transformers' own") {
  const std::string bart =
      R"({"model_type": "bart", "_num_labels": 3,
          "_attn_implementation": "eager", "extra_pos_embeddings": 0,
          "replacing_rate": 0, )" +
      kSides +
      R"("encoder_attention_heads": 12, "decoder_attention_heads": 12,
         "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072, "d_model": 768,
         "vocab_size": 50265, "max_position_embeddings": 1024})";
  CHECK(model::TotalParameters(Read(bart)) == 139420416);
  // Of those that a type reads the value still counts.
  CHECK(Read(R"({"model_type": "cohere2", "_sliding_window_pattern": 2,
                 "num_hidden_layers": 4, "hidden_size": 64,
                 "num_attention_heads": 4, "intermediate_size": 128,
                 "vocab_size": 100, "max_position_embeddings": 8192})")
            .windowed_layers == 2);
}

// Parameters of Transformers 4.57.
TEST_CASE("the first blocks without experts, by their numbers") {
  const std::string sizes =
      R"(, "num_hidden_layers": 4, "hidden_size": 64, "vocab_size": 100,
           "num_attention_heads": 4, "num_key_value_heads": 4,
           "head_dim": 16, "intermediate_size": 128, "num_experts": 8,
           "num_experts_per_tok": 2, "moe_intermediate_size": 32,
           "shared_expert_intermediate_size": 48,
           "max_position_embeddings": 64})";
  const model::Architecture two =
      Read(R"({"model_type": "qwen2_moe", "mlp_only_layers": [1, 0])" + sizes);
  CHECK(two.dense_layers == 2);
  CHECK(model::TotalParameters(two) == 246720);
}

// As albert-base-v2; groups of blocks, and dropout, which no block has of its
// second product, are not counted.
TEST_CASE("blocks of a config.json that share their weights") {
  const auto file = [](const std::string& last) {
    return R"({"model_type": "albert", "num_hidden_layers": 12,
               "hidden_size": 768, "num_attention_heads": 12,
               "intermediate_size": 3072, "vocab_size": 30000,
               "max_position_embeddings": 512, "embedding_size": 128,
               "down_scale_factor": 1, "gap_size": 0, "layers_to_keep": [],
               "net_structure_type": 0, "num_memory_blocks": 0,
               "classifier_dropout_prob": 0.1, "inner_group_num": 1,
               "hidden_act": "gelu_new", )" +
           last + "}";
  };
  const model::Architecture albert = Read(file(R"("num_hidden_groups": 1)"));
  model::Architecture preset = model::FindArchitecture("albert-base-v2");
  preset.name = albert.name;
  CHECK(albert == preset);
  CHECK(Refusal(file(R"("num_hidden_groups": 2)")) ==
        "num_hidden_groups: expected 1, got 2; nothing else is counted");
  CHECK(Refusal(file(R"("hidden_dropout_prob": 0.1)")) ==
        "hidden_dropout_prob: expected 0, got 0.1; nothing else is counted");
}

// A part of a head rotates, whichever of two keys says so; blocks that all
// attend need no heads of the delta rule.
TEST_CASE("a config.json of the delta rule says what mixes tokens") {
  const auto read = [](std::string_view keys) {
    return Read(fmt::format(R"({{"model_type": "qwen3_5_text", {}
        "num_hidden_layers": 8, "hidden_size": 512, "num_attention_heads": 4,
        "intermediate_size": 256, "vocab_size": 1000,
        "max_position_embeddings": 64}})",
                            keys));
  };
  const model::Architecture usual = read("");
  CHECK(usual.delta_rule_layers == 6);
  CHECK(usual.delta_value_heads == 32);
  CHECK(usual.gated_attention);
  CHECK(usual.query_key_norm == model::QueryKeyNorm::kHead);
  CHECK(usual.rotary_head_size == 64);
  CHECK_FALSE(usual.delta_joint_projections);
  CHECK(read(R"("partial_rotary_factor": 0.5,)").rotary_head_size == 128);
  CHECK(read(R"("partial_rotary_factor": 0.5, "rope_parameters": {
                 "rope_type": "default", "partial_rotary_factor": 1.0},)")
            .rotary_head_size == 0);
  CHECK(read(R"("full_attention_interval": 3,)").delta_rule_layers == 6);
  CHECK(read(R"("layer_types": ["linear_attention", "full_attention",
                 "linear_attention", "full_attention", "linear_attention",
                 "full_attention", "linear_attention", "full_attention"],)")
            .delta_rule_layers == 4);
  const model::Architecture attends =
      read(R"("full_attention_interval": 1, "linear_num_key_heads": 8,)");
  CHECK(attends.delta_rule_layers == 0);
  CHECK(attends.delta_key_heads == 0);
  CHECK_FALSE(attends.other_blocks());
}

TEST_CASE("groups of experts that a token goes to are read") {
  const std::string sizes =
      R"(, "num_hidden_layers": 4, "hidden_size": 64, "vocab_size": 100,
           "num_attention_heads": 4, "intermediate_size": 128,
           "n_routed_experts": 16, "num_experts_per_tok": 2,
           "max_position_embeddings": 64)";
  const auto groups = [&](const std::string& of) {
    const model::Architecture a =
        Read(R"({"model_type": ")" + of + sizes + "}");
    return std::pair(a.expert_groups, a.expert_groups_per_token);
  };
  CHECK(groups(R"(deepseek_v3")") == std::pair<int64_t, int64_t>(8, 4));
  CHECK(groups(R"(deepseek_v3", "n_group": 4, "topk_group": 2)") ==
        std::pair<int64_t, int64_t>(4, 2));
  CHECK(groups(R"(deepseek_v2", "n_group": 8, "topk_group": 3)") ==
        std::pair<int64_t, int64_t>(1, 1));
  CHECK(groups(R"(deepseek_v2", "topk_method": "group_limited_greedy",
                  "n_group": 8, "topk_group": 3)") ==
        std::pair<int64_t, int64_t>(8, 3));
}

TEST_CASE("a config.json says what no type has by its name") {
  const model::Architecture t5 = Read(
      R"({"model_type": "t5", "num_layers": 12, "d_model": 768,
          "num_heads": 12, "d_ff": 2048, "vocab_size": 32128,
          "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false})");
  model::Architecture preset = model::FindArchitecture("t5-v1.1-base");
  preset.name = t5.name;
  CHECK(t5 == preset);
  const std::string smollm =
      R"({"model_type": "smollm3", "num_hidden_layers": 4,
          "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
          "intermediate_size": 128, "max_position_embeddings": 64)";
  CHECK(Read(smollm + "}").unrotated_layers == 1);
  CHECK(
      Read(smollm + R"(, "no_rope_layers": [0, 1, 0, 1]})").unrotated_layers ==
      2);
  CHECK(Refusal(smollm + R"(, "use_sliding_window": true})")
            .starts_with("use_sliding_window: expected false"));
  // As files on Hugging Face have them: labels and how text is generated.
  CHECK(Read(smollm + R"(, "id2label": {"0": "a"}, "num_beams": 4})").layers ==
        4);
}

TEST_CASE("a config.json whose blocks are not counted is refused by name") {
  CHECK(Refusal(R"({"model_type": "longt5"})")
            .starts_with("model_type: unknown type \"longt5\""));
  CHECK(Refusal(R"({"model_type": "lama"})") ==
        "model_type: unknown type \"lama\"; did you mean \"llama\"? known: "
        "afmoe, albert, apertus, arcee, baichuan, bailing_moe, bamba, bart, "
        "bert, bloom, camembert, chatglm, codegen, cohere, cohere2, "
        "cohere2_moe, cwm, dbrx, deepseek, deepseek_v2, deepseek_v3, "
        "distilbert, dots1, electra, ernie4_5, ernie4_5_moe, exaone, "
        "exaone4, exaone_moe, falcon, flex_olmo, gemma, gemma2, "
        "gemma3_text, gemma4_text, gemma4_unified_text, glm, glm4, "
        "glm4_moe, glm4_moe_lite, gpt2, gpt_bigcode, gpt_neo, gpt_neox, "
        "gpt_oss, gptj, granite, granite_swa, granitemoe, granitemoe_swa, "
        "granitemoehybrid, granitemoeshared, helium, hunyuan_v1_dense, "
        "hunyuan_v1_moe, hy_v3, hyperclovax, internlm, internlm2, "
        "internlm3, jais2, kimi_k2, lfm2, lfm2_moe, llama, llama4_text, "
        "m2m_100, marian, mbart, megatron-bert, mellum, mimo_v2_flash, "
        "minicpm, minimax_m2, ministral, ministral3, mistral, mistral4, "
        "mixtral, modernbert, mpt, mt5, nanochat, nemotron, nemotron_h, "
        "nomic_bert, olmo, olmo2, olmo3, olmoe, openai-gpt, opt, pegasus, "
        "persimmon, phi, phi3, phimoe, qwen, qwen2, qwen2_5_vl_text, "
        "qwen2_moe, qwen2_vl_text, qwen3, "
        "qwen3_5_moe_text, qwen3_5_text, qwen3_moe, qwen3_next, "
        "qwen3_vl_moe_text, qwen3_vl_text, roberta, sarvam_mla, sarvam_moe, "
        "seed_oss, smollm3, solar_open, stablelm, starcoder2, t5, umt5, "
        "vaultgemma, xlm-roberta, youtu");
  CHECK(Refusal(R"({"model_type": "t5", "num_layers": 6, "d_model": 512,
                    "num_heads": 8, "d_ff": 2048, "vocab_size": 32128,
                    "feed_forward_proj": "gated-mish"})")
            .starts_with("feed_forward_proj: expected silu, gelu,"));
  CHECK(Refusal(R"({"model_type": "bart", )" + kSides +
                R"("encoder_attention_heads": 12, "encoder_ffn_dim": 3072,
                   "decoder_attention_heads": 6, "d_model": 768,
                   "vocab_size": 50265, "max_position_embeddings": 1024})")
            .starts_with("decoder_attention_heads: expected 12, got 6"));
  CHECK(Refusal(R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768,
                    "n_head": 12, "n_positions": 1024, "vocab_size": 50257,
                    "scale_attn_by_inverse_layer_idx": true})")
            .starts_with("scale_attn_by_inverse_layer_idx: expected false"));
  CHECK(Refusal(R"({"model_type": "granite", "num_hidden_layers": 40})")
            .starts_with("hidden_size: missing"));
}

// Published: bart-large-cnn, OPT-6.7B and Phi-2 drop nothing out of attention,
// BERT, GPT-2 and StarCoder2 as much as of hidden states.
TEST_CASE("a config.json whose shares of dropout are not one is refused") {
  constexpr std::string_view kUsual =
      R"("num_hidden_layers": 2, "hidden_size": 512, "intermediate_size": 256,
         "num_attention_heads": 32, "max_position_embeddings": 64)";
  constexpr std::string_view kFalcon =
      R"("num_hidden_layers": 2, "hidden_size": 512, "ffn_hidden_size": 256,
         "num_attention_heads": 32, "max_position_embeddings": 64)";
  constexpr std::string_view kOpt =
      R"("num_hidden_layers": 2, "hidden_size": 512, "ffn_dim": 256,
         "num_attention_heads": 32, "max_position_embeddings": 64)";
  constexpr std::string_view kGpt =
      R"("n_layer": 2, "n_embd": 512, "n_head": 32, "n_positions": 64)";
  constexpr std::string_view kDistilBert =
      R"("n_layers": 2, "dim": 512, "n_heads": 32, "hidden_dim": 256,
         "max_position_embeddings": 64)";
  constexpr std::string_view kBart =
      R"("encoder_layers": 2, "encoder_ffn_dim": 256, "d_model": 512,
         "decoder_layers": 2, "decoder_ffn_dim": 256,
         "encoder_attention_heads": 8, "decoder_attention_heads": 8,
         "max_position_embeddings": 64)";
  constexpr std::string_view kBloom =
      R"("n_layer": 2, "hidden_size": 512, "n_head": 32)";
  const std::map<std::string_view, std::string_view> sizes = {
      {"bart", kBart},
      {"bloom", kBloom},
      {"distilbert", kDistilBert},
      {"falcon", kFalcon},
      {"gpt2", kGpt},
      {"gptj", kGpt},
      {"opt", kOpt},
  };
  struct Case {
    std::string_view type;
    std::string_view keys;
    double dropout;
    std::string_view refused;  // the message; empty: it is read
  };
  const Case cases[] = {
      {"bert", R"("attention_probs_dropout_prob": 0.2)", 0.1, ""},
      {"bert",
       R"("attention_probs_dropout_prob": 0)",
       0,
       "attention_probs_dropout_prob: expected a share above 0 as "
       "hidden_dropout_prob, got 0; one share is counted for both"},
      {"roberta",
       R"("hidden_dropout_prob": 0)",
       0,
       "attention_probs_dropout_prob: expected 0 as hidden_dropout_prob, got "
       "0.1, of its class; one share is counted for both"},
      {"bert",
       R"("chunk_size_feed_forward": 64)",
       0,
       "chunk_size_feed_forward: expected 0, got 64; nothing else is counted"},
      {"bert", R"("chunk_size_feed_forward": 0)", 0.1, ""},
      {"distilbert",
       R"("attention_dropout": 0)",
       0,
       "attention_dropout: expected a share above 0"},
      {"gpt2",
       R"("attn_pdrop": 0)",
       0,
       "attn_pdrop: expected a share above 0 as resid_pdrop, got 0"},
      {"gpt2",
       R"("attn_pdrop": 0, "resid_pdrop": 0, "embd_pdrop": 0.1)",
       0,
       "embd_pdrop: expected 0 as resid_pdrop, got 0.1"},
      {"gpt2", R"("attn_pdrop": 0, "resid_pdrop": 0, "embd_pdrop": 0)", 0, ""},
      {"gptj", R"("rotary_dim": 16)", 0, ""},
      {"gptj", R"("attn_pdrop": 0.1)", 0, "attn_pdrop: expected 0"},
      {"opt", R"("attention_dropout": 0.0, "layerdrop": 0.0)", 0.1, ""},
      {"opt",
       R"("attention_dropout": 0.1, "dropout": 0)",
       0,
       "attention_dropout: expected 0 as dropout, got 0.1"},
      {"opt", R"("layerdrop": 0.2)", 0, "layerdrop: expected 0, got 0.2"},
      {"bart", R"("attention_dropout": 0.0)", 0.1, ""},
      {"bart", R"("attention_dropout": 0.1)", 0.1, ""},
      {"bart",
       R"("encoder_layerdrop": 0.5)",
       0,
       "encoder_layerdrop: expected 0, got 0.5; nothing else is counted"},
      {"bart",
       R"("decoder_layerdrop": 0.5)",
       0,
       "decoder_layerdrop: expected 0, got 0.5"},
      {"phi", R"("resid_pdrop": 0.1, "embd_pdrop": 0.0)", 0.1, ""},
      {"phi", R"("embd_pdrop": 0.1)", 0, "embd_pdrop: expected 0"},
      {"phi3", R"("resid_pdrop": 0.0, "embd_pdrop": 0.0)", 0, ""},
      {"phi3",
       R"("resid_pdrop": 0.1)",
       0,
       "resid_pdrop: expected 0 as attention_dropout, got 0.1"},
      {"phi3", R"("embd_pdrop": 0.1)", 0, "embd_pdrop: expected 0"},
      {"starcoder2",
       R"("attention_dropout": 0.1, "residual_dropout": 0.1,
          "embedding_dropout": 0.1)",
       0.1,
       ""},
      {"starcoder2",
       R"("attention_dropout": 0, "residual_dropout": 0.1)",
       0,
       "residual_dropout: expected 0 as attention_dropout, got 0.1"},
      {"starcoder2",
       R"("embedding_dropout": 0.1)",
       0,
       "embedding_dropout: expected 0"},
      {"falcon",
       R"("attention_dropout": 0.1)",
       0,
       "attention_dropout: expected 0 as hidden_dropout"},
      {"bloom",
       R"("attention_dropout": 0.1)",
       0,
       "attention_dropout: expected"},
      {"stablelm",
       R"("hidden_dropout": 0.1)",
       0,
       "attention_dropout: expected a share above 0"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.type);
    CAPTURE(one.keys);
    const auto own = sizes.find(one.type);
    const std::string text =
        fmt::format(R"({{"model_type": "{}", "vocab_size": 1000, {}, {}}})",
                    one.type,
                    own == sizes.end() ? kUsual : own->second,
                    one.keys);
    const std::string refused = Refusal(text);
    CAPTURE(refused);
    if (one.refused.empty()) {
      CHECK(Read(text).dropout == one.dropout);
    } else {
      CHECK(refused.starts_with(one.refused));
    }
  }
}

}  // namespace
}  // namespace trainfare::hardware
