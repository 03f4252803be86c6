// Decoders whose tokens go to some of many experts.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "hardware/files/config_json.h"
#include "hardware/files/decoder_parts.h"
#include "hardware/files/model_config_types.h"

namespace trainfare::hardware {
namespace {

using model::Architecture;
using nlohmann::json;

// A count, or a list of the same one for each block.
int64_t CountOfAll(const ConfigJson& c, const char* key, int64_t layers) {
  if (!c.Has(key)) return 1;  // of the class
  if (!c.At(key).is_array()) return c.Count(key);
  const json& list = c.List(key, layers, "counts");
  for (const json& one : list) {
    if (!one.is_number_integer() || one != list[0] || one < 0) {
      c.Expected(key, "one count for all blocks", list);
    }
  }
  return list.empty() ? 0 : list[0].get<int64_t>();
}

// `experts`: of the type's class.
Architecture ReadMixtralLike(const ConfigJson& c, int64_t experts) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(8));
  ReadWindow(c, a.layers, a);
  a.experts = c.Count("num_local_experts", experts);
  a.experts_per_token = c.Count("num_experts_per_tok", 2);
  a.expert_intermediate = a.intermediate;
  return a;
}

Architecture ReadMixtral(const ConfigJson& c) { return ReadMixtralLike(c, 8); }

// Blocks without experts by their numbers, in any order, which have to be the
// first ones.
int64_t FirstBlocks(const ConfigJson& c, const char* key) {
  if (!c.Has(key)) return 0;
  const json& list = c.At(key);
  std::set<int64_t> blocks;
  if (!list.is_array()) c.Expected(key, "a list of blocks", list);
  for (const json& block : list) {
    if (!block.is_number_integer()) {
      c.Expected(fmt::format("{}[{}]", key, blocks.size()), "a block", block);
    }
    blocks.insert(block.get<int64_t>());
  }
  const int64_t count = std::ssize(blocks);
  if (count > 0 && (*blocks.begin() != 0 || *blocks.rbegin() != count - 1)) {
    c.Expected(key, "the first blocks: 0, 1 and so on", list);
  }
  return count;
}

Architecture ReadQwenMoe(const ConfigJson& c, bool version_3) {
  Architecture a = ReadQwen(c, version_3, version_3 ? 4 : 16);
  // The third's class has windows in every block, or in none.
  if (version_3 && c.Flag("use_sliding_window", false)) {
    ReadWindow(c, a.layers, a, 4096);
  }
  a.head_size = c.PositiveCount("head_dim", 0);  // without the other's default
  a.experts = c.Count(ExpertsKey(c), version_3 ? 128 : 60);
  a.experts_per_token = c.Count("num_experts_per_tok", version_3 ? 8 : 4);
  a.expert_intermediate =
      c.Count("moe_intermediate_size", version_3 ? 768 : 1408);
  c.Expect("decoder_sparse_step", 1);
  a.dense_layers = FirstBlocks(c, "mlp_only_layers");
  if (!version_3) {
    a.attention_bias = c.Flag("qkv_bias", true);
    a.shared_intermediate = c.Count("shared_expert_intermediate_size", 5632);
    a.shared_expert_gate = true;
  }
  return a;
}

// The language model of Qwen3-VL with experts: the third's, under other values
// of its class.
Architecture ReadQwen3VlMoe(const ConfigJson& c) {
  Architecture a = ReadQwen(c, /*version_3=*/true, 16);
  a.head_size = c.PositiveCount("head_dim", 0);  // without the other's default
  a.experts = c.Count(ExpertsKey(c), 60);
  a.experts_per_token = c.Count("num_experts_per_tok", 4);
  a.expert_intermediate = c.Count("moe_intermediate_size", 1408);
  c.Expect("decoder_sparse_step", 1);
  a.dense_layers = FirstBlocks(c, "mlp_only_layers");
  return a;
}

Architecture ReadOlmoe(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  a.query_key_norm = model::QueryKeyNorm::kWhole;
  a.experts = c.Count("num_experts", 64);
  a.experts_per_token = c.Count("num_experts_per_tok", 8);
  a.expert_intermediate = a.intermediate;
  a.clipped_projections = ClipsProjections(c);
  return a;
}

// Shi et al. 2025: OLMo 2's blocks.
Architecture ReadFlexOlmo(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  a.norm_placement = model::NormPlacement::kOutputs;
  a.query_key_norm = model::QueryKeyNorm::kWhole;
  a.experts = c.Count("num_experts", 7);
  a.experts_per_token = c.Count("num_experts_per_tok", 5);
  a.expert_intermediate = a.intermediate;
  return a;
}

Architecture ReadGraniteMoe(const ConfigJson& c) {
  Architecture a = ReadGranites(c);
  a.experts = c.Count("num_local_experts", 8);
  a.experts_per_token = c.Count("num_experts_per_tok", 2);
  a.expert_intermediate = a.intermediate;
  c.Expect("position_embedding_type", "rope");
  return a;
}

// Its shared experts stand beside the routed ones.
Architecture ReadGraniteMoeShared(const ConfigJson& c) {
  Architecture a = ReadGraniteMoe(c);
  a.shared_intermediate = c.Count("shared_intermediate_size", 0);
  return a;
}

Architecture ReadGptOss(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(8));
  if (a.head_size == 0) a.head_size = 64;
  a.attention_bias = a.output_bias = c.Flag("attention_bias", true);
  ReadWindow(c, (a.layers + 1) / 2, a, 128);
  a.attention_sinks = true;
  a.experts = c.Count("num_local_experts", 128);
  a.experts_per_token =
      c.Count(c.Has("num_experts_per_tok") ? "num_experts_per_tok"
                                           : "experts_per_token",
              4);
  c.Has("experts_per_token");
  a.expert_intermediate = a.intermediate;
  a.router_bias = a.expert_bias = true;
  c.Has("initial_context_length");
  Ignore(c, {"swiglu_alpha", "swiglu_limit"});
  // Weights come in MXFP4 blocks; a step's precision is the scenario's.
  c.Has("quantization_config");
  return a;
}

// GLM-4.5 to GLM-4.7.
Architecture ReadGlm4Moe(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(8));
  // Where heads do not divide the width its class drops the rest.
  if (a.hidden % a.heads != 0 && a.head_size == 0) {
    a.head_size = a.hidden / a.heads;
  }
  a.output_bias = false;
  if (c.Flag("use_qk_norm", false)) {
    a.query_key_norm = model::QueryKeyNorm::kHead;
  }
  a.rotary_head_size = RotarySize(c, a, "partial_rotary_factor", 0.5);
  ReadExperts(c,
              {.count = 128,
               .per_token = 8,
               .intermediate = 1408,
               .shared = 1,
               .dense = 1},
              a);
  return a;
}

// Sarvam AI 2026: GLM-4.5's blocks, whose heads rotate as a whole.
Architecture ReadSarvamMoe(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(4, 64));
  // The name of its first files for it.
  a.attention_bias = c.Flag("use_qkv_bias", a.attention_bias);
  a.output_bias = false;
  if (c.Flag("use_qk_norm", true)) {
    a.query_key_norm = model::QueryKeyNorm::kHead;
  }
  a.rotary_head_size = RotarySize(c, a, "partial_rotary_factor", 1.0);
  ReadExperts(c,
              {.count = 128,
               .per_token = 6,
               .intermediate = 1024,
               .shared = 1,
               .dense = 1},
              a);
  Ignore(c, {"moe_router_enable_expert_bias", "score_function"});
  return a;
}

// Upstage 2026, Solar Open: the same without norms of queries and keys, and
// with experts in every block, so that its class has no other inner width.
Architecture ReadSolarOpen(const ConfigJson& c) {
  Architecture usual = UsualHeads(8, 128);
  usual.intermediate = c.PositiveCount("moe_intermediate_size", 1280);
  Architecture a = ReadLlama(c, /*tied=*/false, usual);
  a.output_bias = false;
  a.rotary_head_size = RotarySize(c, a, "partial_rotary_factor", 1.0);
  c.Expect("first_k_dense_replace", 0);
  c.Expect("use_qk_norm", false);
  ReadExperts(
      c, {.count = 128, .per_token = 8, .intermediate = 1280, .shared = 1}, a);
  return a;
}

// MiniMax 2025, MiniMax-M2: norms over all queries and keys. Its file may say
// either how much of a head rotates or which part of it does, and names blocks
// of attention with a number each, which are all alike.
Architecture ReadMiniMaxM2(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(8, 128));
  a.query_key_norm = model::QueryKeyNorm::kWhole;
  const auto head = static_cast<double>(a.query_head_size());
  const auto rotates =
      static_cast<double>(c.PositiveCount("rotary_dim", a.query_head_size()));
  a.rotary_head_size =
      RotarySize(c, a, "partial_rotary_factor", std::min(rotates / head, 1.0));
  a.experts = c.Count("num_local_experts", 256);
  a.experts_per_token = c.Count("num_experts_per_tok", 8);
  a.expert_intermediate = a.intermediate;
  // Its class has these alone, whatever the file says.
  c.Expect("attention_bias", false);
  c.Expect("qk_norm_type", "per_layer");
  c.Expect("shared_intermediate_size", 0);
  c.Expect("use_qk_norm", true);
  if (CountOfAll(c, "attn_type_list", a.layers) != 1) {
    c.Expected("attn_type_list", "1 of every block", c.At("attn_type_list"));
  }
  // Transformers builds no blocks that predict further tokens.
  Ignore(c,
         {"layernorm_full_attention_beta",
          "layernorm_linear_attention_beta",
          "layernorm_mlp_beta",
          "max_model_len",
          "mtp_transformer_layers",
          "num_mtp_modules",
          "quantization_config",
          "shared_moe_mode",
          "use_mtp",
          "use_routing_bias"});
  return a;
}

// Tencent 2026, Hy3: Qwen3's attention, DeepSeek-V3's experts.
Architecture ReadHunYuan3(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(8, 128));
  a.query_key_norm = model::QueryKeyNorm::kHead;
  ReadExperts(c,
              {.count = 192,
               .per_token = 8,
               .intermediate = 1536,
               .shared = 1,
               .dense = 1},
              a);
  // Published files say the width of an expert twice, and what no class reads.
  c.Expect("expert_hidden_dim", a.expert_intermediate);
  c.Expect("qk_norm", true);
  Ignore(c,
         {"enable_attention_fp32_softmax",
          "enable_lm_head_fp32",
          "enable_moe_fp32_combine",
          "moe_router_enable_expert_bias",
          "moe_router_use_sigmoid",
          "route_norm",
          "router_scaling_factor",
          "use_grouped_mm"});
  return a;
}

// LG AI Research 2025, K-EXAONE: EXAONE 4's attention behind norms, and
// DeepSeek-V3's experts. Its file says twice which blocks have them.
Architecture ReadExaoneMoe(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(32));
  a.query_key_norm = model::QueryKeyNorm::kHead;
  Ignore(c, {"sliding_window_pattern"});
  ReadWindow(c, a.layers - a.layers / 4, a, 4096);
  if (a.windowed_layers > 0) a.unrotated_layers = a.layers - a.windowed_layers;
  ReadExperts(c,
              {.count = 64,
               .per_token = 8,
               .intermediate = 1024,
               .shared = 1,
               .dense = 1},
              a);
  c.Expect("first_last_k_dense_replace", a.dense_layers);
  if (c.Has("is_moe_layer")) {
    int64_t block = 0;
    for (const json& one : c.List("is_moe_layer", a.layers, "flags")) {
      if (one != (block >= a.dense_layers)) {
        c.Expected(fmt::format("is_moe_layer[{}]", block),
                   fmt::format("false of the first {} blocks and true of those "
                               "behind them",
                               a.dense_layers),
                   one);
      }
      ++block;
    }
  }
  return a;
}

// JetBrains 2026, Mellum 2: Qwen3's blocks with experts, of which a file lists
// those with windows.
Architecture ReadMellum(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(4, 128));
  a.query_key_norm = model::QueryKeyNorm::kHead;
  ReadWindow(c, 0, a, 1024);
  ReadExperts(c, {.count = 64, .per_token = 8, .intermediate = 896}, a);
  Ignore(c,
         {"max_window_layers",
          "mtp_layer_types",
          "mtp_mlp_layer_types",
          "use_sliding_window"});
  return a;
}

// Experts from one block on to the last.
Architecture ReadErnieMoe(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/true, UsualHeads(4));
  a.experts = c.Count("moe_num_experts", 64);
  a.experts_per_token = c.Count("moe_k", 6);
  a.expert_intermediate = c.Count("moe_intermediate_size", 1536);
  a.shared_intermediate =
      c.Count("moe_num_shared_experts", 2) * a.expert_intermediate;
  a.dense_layers = c.Count("moe_layer_start_index", 1);
  c.Expect("moe_layer_interval", 1);
  // -1 is the last, too.
  if (!c.Has("moe_layer_end_index") || c.At("moe_layer_end_index") != -1) {
    c.Expect("moe_layer_end_index", a.layers - 1);
  }
  // Biases of shared experts are not counted.
  c.Expect("use_bias", false);
  Ignore(c, {"moe_capacity", "moe_gate", "moe_norm_min", "moe_use_aux_free"});
  return a;
}

// Dai et al. 2024, "DeepSeekMoE": Llama's attention. Its class does not say how
// many experts there are.
Architecture ReadFirstDeepSeek(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  ReadExperts(c, {.intermediate = 1407}, a);
  return a;
}

// Huo et al. 2025, "dots.llm1": DeepSeek-V3's experts under Qwen3's attention.
Architecture ReadDots(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(32));
  a.query_key_norm = model::QueryKeyNorm::kHead;
  const int64_t full = c.Count("max_window_layers", 62);
  ReadWindow(c, std::max<int64_t>(0, a.layers - full), a, 4096);
  c.At("n_shared_experts");  // its class is not built without
  ReadExperts(c, {.intermediate = 1408}, a);
  return a;
}

// One shared expert of the routed ones' size.
Architecture ReadHunYuanMoe(const ConfigJson& c) {
  Architecture a = ReadHunYuan(c);
  a.experts = CountOfAll(c, "num_experts", a.layers);
  a.experts_per_token = CountOfAll(c, "moe_topk", a.layers);
  a.expert_intermediate = a.shared_intermediate = a.intermediate;
  if (c.Has("num_shared_expert") &&
      CountOfAll(c, "num_shared_expert", a.layers) != 1) {
    c.Expected("num_shared_expert", "1", c.At("num_shared_expert"));
  }
  if (c.Has("moe_intermediate_size") &&
      CountOfAll(c, "moe_intermediate_size", a.layers) != a.intermediate) {
    c.Expected("moe_intermediate_size",
               fmt::format("intermediate_size = {}", a.intermediate),
               c.At("moe_intermediate_size"));
  }
  c.Expect("moe_layer_num_skipped", 0);
  c.Expect("use_mixed_mlp_moe", true);
  Ignore(c,
         {"capacity_factor",
          "group_limited_greedy",
          "moe_drop_tokens",
          "moe_random_routing_dropped_token"});
  return a;
}

// Abdin et al. 2024, Phi-3.5-MoE: LayerNorm, and biases where the file has them;
// how experts are chosen (SparseMixer) is of the routing's passes.
Architecture ReadPhiMoe(const ConfigJson& c) {
  Architecture a = ReadMixtralLike(c, 16);
  a.norm = model::Norm::kLayer;
  a.norm_bias = true;
  a.logits_bias = c.Flag("lm_head_bias", false);
  ExpectDropout(c, "hidden_dropout", 0.0, {"attention_dropout", a.dropout});
  Ignore(c, {"input_jitter_noise"});
  return a;
}

void ReadDbrxAttention(const ConfigJson& c, Architecture& a) {
  a.key_value_heads = c.PositiveCount("kv_n_heads", 1);
  a.clipped_projections = ClipsProjections(c);
  ExpectDropout(c, "attn_pdrop", 0.0, {"resid_pdrop", a.dropout});
  RefuseUnknown(c, "dbrx");
}

void ReadDbrxExperts(const ConfigJson& c, Architecture& a) {
  a.intermediate = a.expert_intermediate = c.Count("ffn_hidden_size", 3584);
  a.experts = c.Count("moe_num_experts", 4);
  a.experts_per_token = c.Count("moe_top_k", 1);
  a.activation = model::Activation::kSilu;
  if (c.Has("ffn_act_fn")) {
    const ConfigJson function = c.Within("ffn_act_fn");
    function.At("name");
    ReadActivation(function, "name", "silu", a);
    RefuseUnknown(function, "dbrx");
  }
  Ignore(c,
         {"moe_jitter_eps",
          "moe_loss_weight",
          "moe_normalize_expert_weights",
          "uniform_expert_assignment"});
  RefuseUnknown(c, "dbrx");
}

// Databricks 2024: LayerNorm without biases, one product of queries, keys and
// values, which are clipped.
Architecture ReadDbrx(const ConfigJson& c) {
  Architecture a = NextTokenDecoder();
  a.layers = c.Count("n_layers");
  a.hidden = c.Count("d_model");
  a.heads = c.PositiveCount("n_heads");
  a.vocabulary = c.Count("vocab_size");
  a.positions = c.PositiveCount("max_seq_len");
  a.norm_bias = false;
  a.norm_placement = model::NormPlacement::kBefore;
  a.position_kind = model::PositionKind::kRotary;
  a.attention_bias = a.output_bias = a.feed_forward_bias = false;
  a.gated = a.untied_output = true;
  a.dropout = c.Share("resid_pdrop");
  ExpectDropout(c, "emb_pdrop", 0.0, {"resid_pdrop", a.dropout});
  ReadDbrxAttention(c.Within("attn_config"), a);
  ReadDbrxExperts(c.Within("ffn_config"), a);
  c.Expect("num_key_value_heads", a.key_value_heads);
  c.Expect("tie_word_embeddings", false);
  return a;
}

// Of how many blocks of Llama 4 the last has experts; a list of those that have
// them counts, where there is one.
int64_t ExpertPeriod(const ConfigJson& c, int64_t layers) {
  constexpr const char* kKey = "moe_layers";
  const int64_t step = c.PositiveCount("interleave_moe_layer_step", 1);
  if (!c.Has(kKey)) return step;
  const json& listed = c.At(kKey);
  const bool numbers = listed.is_array() && !listed.empty() &&
                       listed[0].is_number_integer() && listed[0] >= 0 &&
                       listed[0] < layers;
  const int64_t period = numbers ? listed[0].get<int64_t>() + 1 : 1;
  bool regular = numbers && std::ssize(listed) == layers / period;
  int64_t wanted = period - 1;
  for (const json& block : listed) {
    regular = regular && block == wanted;
    wanted += period;
  }
  if (!regular) {
    c.Expected(kKey,
               fmt::format("the last of every so many of {} blocks", layers),
               listed);
  }
  return period;
}

// Of Llama 4: a chunk beyond the positions is all of them, as a window is.
void ReadChunks(const ConfigJson& c, Architecture& a) {
  constexpr const char* kKey = "attention_chunk_size";
  a.unrotated_layers = UnrotatedLayers(c, a.layers);
  a.windowed_layers =
      CountWords(c, "layer_types", "chunked_attention", a.layers)
          .value_or(a.layers - a.unrotated_layers);
  if (c.IsNull(kKey)) c.At(kKey);  // its class is not built without
  a.chunked_window = a.windowed_layers > 0;
  const int64_t chunk = c.PositiveCount(kKey, 8192);
  a.window = a.chunked_window ? std::min(chunk, a.positions) : 0;
}

// Meta 2025: one expert a token beside a shared one; attention within chunks,
// but in blocks without positions (iRoPE).
Architecture ReadLlama4(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(8, 128));
  a.expert_intermediate = a.shared_intermediate = a.intermediate;
  a.intermediate = c.Count("intermediate_size_mlp", 16384);
  a.experts = c.Count("num_local_experts", 16);
  a.experts_per_token = c.Count("num_experts_per_tok", 1);
  a.expert_period = ExpertPeriod(c, a.layers);
  // Its class has none, whatever the file says.
  a.attention_bias = a.output_bias = a.feed_forward_bias = false;
  if (c.Flag("use_qk_norm", true)) {
    a.query_key_norm = model::QueryKeyNorm::kRotated;
  }
  ReadChunks(c, a);
  // Queries of blocks without positions are scaled by how far in they are.
  Ignore(c,
         {"attn_scale",
          "attn_temperature_tuning",
          "floor_scale",
          "for_llm_compressor"});
  return a;
}

// IBM 2026, Granite with windows and sinks.
Architecture ReadGraniteMoeSwa(const ConfigJson& c) {
  Architecture a = ReadGraniteMoeShared(c);
  ReadWindow(c, a.layers - (a.layers + 3) / 4, a, 128);
  a.attention_sinks = true;
  a.unrotated_layers = BlocksWithoutBase(c, a.layers);
  return a;
}

// Cohere 2026, Command A+: Cohere 2's blocks, whose attention and experts read
// one norm. Blocks that see all have no positions, but first ones without
// experts where all of these see all.
Architecture ReadCohere2Moe(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/true, UsualHeads(0, 128));
  const bool rms = c.Has("rms_norm_eps");
  a.norm = rms ? model::Norm::kRms : model::Norm::kLayer;
  a.parallel_block = a.shared_norm = true;
  a.dense_layers =
      DenseBlocks(c, a.layers, c.Count("first_k_dense_replace", 0));
  const int64_t period = c.PositiveCount("sliding_window_pattern", 4);
  const int64_t first =
      c.PositiveCount("prefix_dense_sliding_window_pattern", 1);
  const int64_t behind = a.layers - a.dense_layers;
  ReadWindow(c, a.layers - a.dense_layers / first - behind / period, a, 4096);
  a.unrotated_layers =
      a.layers - a.windowed_layers - (first == 1 ? a.dense_layers : 0);
  a.experts = c.Count("num_experts", 8);
  a.experts_per_token = c.Count("num_experts_per_tok", 2);
  a.expert_intermediate = a.intermediate;
  a.shared_intermediate = c.Count("num_shared_experts", 0) * a.intermediate;
  a.intermediate =
      c.Count("prefix_dense_intermediate_size", a.expert_intermediate);
  // What published files say beside, of which its class has one form each.
  c.Expect("rotary_pct", 1.0);
  c.Expect("use_gated_activation", true);
  c.Expect("use_parallel_block", true);
  c.Expect("use_qk_norm", false);
  Ignore(c,
         {"expert_selection_fn",
          "logit_scale",
          "position_embedding_type",
          "shared_expert_combination_strategy"});
  return a;
}

// Arcee AI 2025, Trinity: gates of attention's result by a product of their
// own, norms before and behind; blocks that see all have no positions.
Architecture ReadAfmoe(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(0, 128));
  a.norm_placement = model::NormPlacement::kBoth;
  a.query_key_norm = model::QueryKeyNorm::kHead;
  a.gated_attention = a.separate_attention_gate = true;
  const int64_t period = c.PositiveCount("global_attn_every_n_layers", 4);
  ReadWindow(c, a.layers - a.layers / period, a, 1024);
  const int64_t local =
      CountWords(c, "layer_types", "sliding_attention", a.layers)
          .value_or(a.layers - a.layers / period);
  a.unrotated_layers = a.layers - local;
  ReadExperts(c,
              {.count = 64,
               .per_token = 6,
               .intermediate = 1408,
               .shared = 2,
               .dense = c.Count("num_dense_layers", 1)},
              a);
  // Of code before the class, which has one form of each.
  c.Expect("num_expert_groups", 1);
  c.Expect("num_limited_groups", 1);
  Ignore(c,
         {"load_balance_coeff",
          "mup_enabled",
          "route_norm",
          "route_scale",
          "score_func",
          "use_grouped_mm"});
  return a;
}

constexpr std::array kExpertDecoders = {
    ModelType{"afmoe", &ReadAfmoe},
    ModelType{"cohere2_moe", &ReadCohere2Moe},
    ModelType{"exaone_moe", &ReadExaoneMoe},
    ModelType{"granitemoe_swa", &ReadGraniteMoeSwa},
    ModelType{"hy_v3", &ReadHunYuan3},
    ModelType{"mellum", &ReadMellum},
    ModelType{"minimax_m2", &ReadMiniMaxM2},
    ModelType{"sarvam_moe", &ReadSarvamMoe},
    ModelType{"solar_open", &ReadSolarOpen},
    ModelType{"dbrx", &ReadDbrx},
    ModelType{"deepseek", &ReadFirstDeepSeek},
    ModelType{"dots1", &ReadDots},
    ModelType{"ernie4_5_moe", &ReadErnieMoe},
    ModelType{"flex_olmo", &ReadFlexOlmo},
    ModelType{"glm4_moe", &ReadGlm4Moe},
    ModelType{"gpt_oss", &ReadGptOss},
    ModelType{"granitemoe", &ReadGraniteMoe},
    ModelType{"granitemoeshared", &ReadGraniteMoeShared},
    ModelType{"hunyuan_v1_moe", &ReadHunYuanMoe},
    ModelType{"llama4_text", &ReadLlama4},
    ModelType{"mixtral", &ReadMixtral},
    ModelType{"olmoe", &ReadOlmoe},
    ModelType{"phimoe", &ReadPhiMoe},
    ModelType{"qwen2_moe",
              [](const ConfigJson& c) { return ReadQwenMoe(c, false); }},
    ModelType{"qwen3_moe",
              [](const ConfigJson& c) { return ReadQwenMoe(c, true); }},
    ModelType{"qwen3_vl_moe_text", &ReadQwen3VlMoe},
};

}  // namespace

std::span<const ModelType> ExpertDecoderTypes() { return kExpertDecoders; }

}  // namespace trainfare::hardware
