#include "model/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "model/error.h"
#include "model/limits.h"
#include "model/sharding.h"
#include "model/split.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model {
namespace {

void RequireCount(int64_t value,
                  int64_t least,
                  int64_t most,
                  std::string_view what) {
  if (value >= least && value <= most) return;
  throw InputError(value < least
                       ? fmt::format("{}: expected a count of at least {}, got "
                                     "{}",
                                     what,
                                     least,
                                     value)
                       : fmt::format("{}: expected a count of at most {}, got "
                                     "{}",
                                     what,
                                     most,
                                     value));
}

// Above every sum that is taken of a step's kernels and of its memory: FLOPs
// of the products (two a multiply-add; four passes where activations are
// computed again), and the bytes of all tensors, each touched many times.
double LargestSum(const Workload& w) {
  constexpr double kFlops = 2 * 4;
  constexpr double kTouchedBytes = 400;
  const Architecture& a = w.architecture;
  const auto real = [](int64_t count) { return static_cast<double>(count); };
  const double h = real(a.hidden);
  const double layers = real(a.blocks());
  const double length = real(std::max(w.sequence_length, w.target_length));
  const double tokens = real(w.batch) * length;
  // Self- and cross-attention, the feed-forward, and as much in adapters.
  const double latent = real(std::max(a.latent_query, a.latent_key_value));
  const double widest = std::max({h,
                                  latent,
                                  real(a.query_projection_width()),
                                  real(a.context_width()),
                                  real(a.heads * a.full_head_size),
                                  real(a.key_value_up_width()),
                                  real(a.state_projection_width()),
                                  real(a.delta_projection_width())});
  const double experts = real(a.experts) * real(a.expert_intermediate) +
                         real(a.shared_intermediate);
  const double block =
      (a.decoder_layers > 0 ? 8 : 4) * std::max(h, latent) * widest +
      h * real(a.attention_gate_width()) +
      4 * h * real(a.convolution_layers > 0 ? a.convolution_width() : 0) +
      3 * h * (real(a.intermediate) + experts) +
      real(a.relative_buckets) * real(a.heads);
  const double weights =
      block * (w.trainable.lora_rank > 0 ? 3 : 1) * layers +
      std::max(h, real(a.embedding_size)) *
          (4 * h + real(a.vocabulary + a.positions + a.token_types + a.labels));
  const double pairs = tokens * length * layers;
  const double activations = tokens * (h + real(a.intermediate)) * layers +
                             pairs * real(a.heads) +
                             tokens * real(a.vocabulary);
  // Of the delta rule a token of a head takes less: 22 K V + 26 C K + 14 C V +
  // 5 C C (docs/models/delta_rule.md).
  const double of_head =
      real(a.delta_key_size + a.delta_value_size + a.delta_chunk);
  const double scans =
      tokens * layers *
      (real(a.state_width()) * real(a.state_size + a.state_chunk) +
       4 * real(a.delta_value_heads) * of_head * of_head);
  const double compression = weights * real(w.compression.rank);
  // Five iterations over a matrix of m x n, m <= n: 4 m m n + 2 m m m each.
  const double muon = w.optimizer.kind == OptimizerKind::kMuon
                          ? weights * 5 * std::max(h, latent)
                          : 0;
  return kFlops * (tokens * weights + 4 * pairs * widest + 2 * scans +
                   compression + muon) +
         kTouchedBytes * (activations + scans + weights);
}

// A quarter of what 64 bits hold.
constexpr double kLargestSum = 0x1p61;

void RequireCountable(const Workload& w) {
  const double sum = LargestSum(w);
  if (sum <= kLargestSum) return;
  throw InputError(
      fmt::format("batch {} x length {} of a model with {} layers of {}: "
                  "expected a step of at most {:.2g} operations and bytes, got "
                  "{:.2g}; is one of them mistyped?",
                  w.batch,
                  std::max(w.sequence_length, w.target_length),
                  w.architecture.blocks(),
                  w.architecture.hidden,
                  kLargestSum,
                  sum));
}

// Positions, and what of a block goes with them alone.
void ValidatePositions(const Architecture& a) {
  const bool relative = a.position_kind == PositionKind::kRelative;
  RequireCount(a.relative_buckets,
               relative ? 1 : 0,
               kLargestDimension,
               "model.relative_buckets");
  if (a.relative_bias_each_block && !relative) {
    throw InputError(
        "model.relative_bias_each_block: expected false without relative "
        "positions, got true");
  }
  if (a.query_key_norm == QueryKeyNorm::kRotated &&
      a.position_kind != PositionKind::kRotary) {
    throw InputError(
        "model.query_key_norm: expected rotary positions beside rotated");
  }
  if (a.chunked_window && a.family != Family::kDecoder) {
    throw InputError(
        "model.chunked_window: expected false, or a decoder, got true");
  }
  // A window is of blocks with positions.
  RequireCount(a.unrotated_layers,
               0,
               a.layers - a.windowed_layers,
               "model.unrotated_layers");
  if (a.unrotated_layers > 0 &&
      (a.position_kind != PositionKind::kRotary || a.two_sided())) {
    throw InputError(
        fmt::format("model.unrotated_layers: expected 0 without rotary "
                    "positions on one side, got {}",
                    a.unrotated_layers));
  }
  if (!a.first_norm && !(a.closing_norm() && a.family == Family::kEncoder)) {
    throw InputError(
        "model.first_norm: expected true, or norm_placement: before in an "
        "encoder with a final_norm, got false");
  }
  if (a.joint_gate && !a.gated) {
    throw InputError("model.joint_gate: expected gated beside it, got false");
  }
}

void ValidateWindow(const Architecture& a) {
  RequireCount(a.windowed_layers, 0, a.layers, "model.windowed_layers");
  if (a.windowed_layers > 0 && a.window <= 0) {
    throw InputError(
        fmt::format("model.window: expected a window of at least 1 for {} "
                    "layers, got {}",
                    a.windowed_layers,
                    a.window));
  }
  const auto longest = a.max_sequence_length();
  if (longest && a.window > *longest) {
    throw InputError(
        fmt::format("model.window: expected at most {}, the positions of {}, "
                    "got {}",
                    *longest,
                    a.name.empty() ? "the model" : a.name,
                    a.window));
  }
}

void ValidateAttention(const Architecture& a) {
  const auto dimension = [](int64_t value, std::string_view what) {
    RequireCount(value, 0, kLargestDimension, what);
  };
  RequireCount(a.key_value_heads, 0, a.heads, "model.key_value_heads");
  if (a.heads % a.key_heads() != 0) {
    throw InputError(
        fmt::format("model.key_value_heads: expected a divisor of heads = {}, "
                    "got {}",
                    a.heads,
                    a.key_value_heads));
  }
  dimension(a.head_size, "model.head_size");
  dimension(a.value_head_size, "model.value_head_size");
  dimension(a.latent_query, "model.latent_query");
  dimension(a.latent_key_value, "model.latent_key_value");
  RequireCount(
      a.rotary_head_size, 0, a.query_head_size(), "model.rotary_head_size");
  if (a.latent_query > 0 && !a.latent()) {
    throw InputError(
        "model.latent_query: expected latent_key_value beside it, got none");
  }
  const bool plain = a.family == Family::kDecoder && !a.latent() &&
                     !a.clipped_projections &&
                     a.context_head_size() == a.query_head_size();
  if (a.gated_attention && !plain) {
    throw InputError(
        "model.gated_attention: expected false, or a decoder whose values are "
        "as wide as queries, without latent_key_value and "
        "clipped_projections, got true");
  }
  if (a.separate_attention_gate && !a.gated_attention) {
    throw InputError(
        "model.separate_attention_gate: expected gated_attention beside it, "
        "got false");
  }
  if (a.clipped_projections && a.latent()) {
    throw InputError(
        "model.clipped_projections: expected false beside latent_key_value, "
        "got true");
  }
}

// Attention of blocks that see all, where it is not that of the others.
void ValidateFullAttention(const Architecture& a) {
  RequireCount(a.full_head_size, 0, kLargestDimension, "model.full_head_size");
  RequireCount(
      a.full_key_value_heads, 0, a.heads, "model.full_key_value_heads");
  const int64_t keys = WithFullAttention(a).key_heads();
  if (a.heads % keys != 0) {
    throw InputError(
        fmt::format("model.full_key_value_heads: expected a divisor of heads = "
                    "{}, got {}",
                    a.heads,
                    keys));
  }
  const auto refuse = [](std::string_view key, std::string_view why) {
    throw InputError(fmt::format("model.{}: expected {}", key, why));
  };
  if (a.windowed_sinks && !a.attention_sinks) {
    refuse("windowed_sinks", "attention_sinks beside it, got none");
  }
  const bool differs = a.attention_differs();
  if (!differs && a.windowed_sinks) {
    refuse("windowed_sinks",
           "false unless some blocks have a window, got true");
  }
  if (!differs && (a.full_head_size > 0 || a.full_key_value_heads > 0)) {
    refuse(a.full_head_size > 0 ? "full_head_size" : "full_key_value_heads",
           "0 unless some blocks have a window and others none");
  }
  const bool plain = a.family == Family::kDecoder && !a.latent() &&
                     !a.clipped_projections && !a.other_blocks();
  struct Asked {
    std::string_view key;
    bool asked;
  };
  for (const Asked& one : std::to_array<Asked>(
           {{"full_head_size", a.full_head_size > 0},
            {"full_key_value_heads", a.full_key_value_heads > 0},
            {"windowed_sinks", a.windowed_sinks},
            {"keys_are_values", a.keys_are_values},
            {"value_norm", a.value_norm}})) {
    if (plain || !one.asked) continue;
    refuse(one.key,
           "none but in a decoder of plain attention, without "
           "latent_key_value, clipped_projections and other blocks");
  }
  if (a.keys_are_values) {
    const Architecture full = WithFullAttention(a);
    if (full.context_head_size() != full.query_head_size()) {
      refuse("keys_are_values", "values as wide as keys beside it");
    }
  }
  if (!differs) return;
  if (a.unrotated_layers > 0) {
    refuse("unrotated_layers", "0 beside attention of two shapes");
  }
  if (a.next_token_blocks > 0) {
    refuse("next_token_blocks", "0 beside attention of two shapes");
  }
  if (a.expert_period > 1) {
    refuse("expert_period", "1 beside attention of two shapes");
  }
}

bool PredictsNextToken(const Architecture& a) {
  return a.family == Family::kDecoder && a.head == Head::kCausalLanguageModel;
}

// Groups of as many experts each, those of a token together large enough for all
// of its experts.
void ValidateExpertGroups(const Architecture& a) {
  const int64_t experts = a.scored_experts();
  RequireCount(a.expert_groups, 1, experts, "model.expert_groups");
  RequireCount(a.expert_groups_per_token,
               1,
               a.expert_groups,
               "model.expert_groups_per_token");
  if (experts % a.expert_groups != 0) {
    throw InputError(
        fmt::format("model.expert_groups: expected a divisor of the {} "
                    "experts, got {}",
                    experts,
                    a.expert_groups));
  }
  const int64_t reached = experts / a.expert_groups * a.expert_groups_per_token;
  if (reached >= a.experts_per_token) return;
  throw InputError(
      fmt::format("model.expert_groups_per_token: expected groups of {} "
                  "experts in all, those of a token, got {}",
                  a.experts_per_token,
                  reached));
}

void ValidateExpertBlocks(const Architecture& a) {
  RequireCount(a.experts, 0, kMostExperts, "model.experts");
  RequireCount(
      a.shared_intermediate, 0, kLargestDimension, "model.shared_intermediate");
  RequireCount(
      a.expert_latent, 0, a.experts > 0 ? a.hidden : 0, "model.expert_latent");
  if (a.experts == 0 && a.expert_norms) {
    throw InputError(
        "model.expert_norms: expected false in a model without experts, got "
        "true");
  }
  if (a.experts == 0) return;
  if (a.activation == Activation::kXielu) {
    throw InputError(
        "model.activation: expected one without weights of its own beside "
        "experts, got xielu");
  }
  RequireCount(a.experts * a.expert_layers(),
               0,
               kMostExpertsInAll,
               "model.experts, those of all layers");
  RequireCount(
      a.experts_per_token, 1, a.scored_experts(), "model.experts_per_token");
  RequireCount(
      a.expert_intermediate, 1, kLargestDimension, "model.expert_intermediate");
  ValidateExpertGroups(a);
  if (a.expert_norms && (a.shared_intermediate == 0 || a.expert_latent > 0)) {
    throw InputError(
        "model.expert_norms: expected false, or shared_intermediate and no "
        "expert_latent beside it, got true");
  }
}

// What blocks of other parts than attention and a feed-forward are counted
// beside.
void ValidateBesideOtherBlocks(const Architecture& a) {
  struct Beside {
    std::string_view what;
    bool asked;
  };
  const int64_t others = a.other_mixers();
  std::string_view key = "single_part_blocks: expected false";
  if (a.state_space_layers > 0) key = "state_space_layers: expected 0";
  if (a.delta_rule_layers > 0) key = "delta_rule_layers: expected 0";
  if (a.convolution_layers > 0) key = "convolution_layers: expected 0";
  for (const Beside& one : std::to_array<Beside>(
           {{"a family that is no decoder", a.family != Family::kDecoder},
            {"state_space_layers",
             a.state_space_layers > 0 && a.state_space_layers < others},
            {"delta_rule_layers",
             a.delta_rule_layers > 0 && a.delta_rule_layers < others},
            {"windowed_layers", a.windowed_layers > 0},
            {"unrotated_layers", a.unrotated_layers > 0},
            {"relative positions", a.position_kind == PositionKind::kRelative},
            {"parallel_block", a.parallel_block || a.shared_norm},
            {"dense_layers", a.dense_layers > 0 && a.single_part_blocks},
            {"expert_period", a.expert_period > 1}})) {
    if (!one.asked) continue;
    throw InputError(fmt::format("model.{} beside {}", key, one.what));
  }
}

void ValidateStateSpace(const Architecture& a) {
  RequireCount(a.state_heads, 1, kLargestDimension, "model.state_heads");
  RequireCount(
      a.state_head_size, 1, kLargestDimension, "model.state_head_size");
  RequireCount(a.state_width(),
               1,
               kLargestDimension,
               "model.state_heads x state_head_size");
  RequireCount(a.state_size, 1, kLargestDimension, "model.state_size");
  RequireCount(a.state_groups, 1, a.state_heads, "model.state_groups");
  if (a.state_heads % a.state_groups != 0) {
    throw InputError(
        fmt::format("model.state_groups: expected a divisor of state_heads = "
                    "{}, got {}",
                    a.state_heads,
                    a.state_groups));
  }
  RequireCount(
      a.state_groups * a.state_size, 1, kLargestDimension, "model.state_size");
  RequireCount(
      a.state_convolution, 1, kLargestDimension, "model.state_convolution");
  RequireCount(a.state_chunk, 1, kLongestSequence, "model.state_chunk");
}

void ValidateDeltaRule(const Architecture& a) {
  RequireCount(
      a.delta_key_heads, 1, kLargestDimension, "model.delta_key_heads");
  RequireCount(
      a.delta_value_heads, 1, kLargestDimension, "model.delta_value_heads");
  if (a.delta_value_heads % a.delta_key_heads != 0) {
    throw InputError(
        fmt::format("model.delta_value_heads: expected a multiple of "
                    "delta_key_heads = {}, got {}",
                    a.delta_key_heads,
                    a.delta_value_heads));
  }
  RequireCount(a.delta_key_size, 1, kLargestDimension, "model.delta_key_size");
  RequireCount(
      a.delta_value_size, 1, kLargestDimension, "model.delta_value_size");
  RequireCount(a.delta_value_heads * a.delta_key_size,
               1,
               kLargestDimension,
               "model.delta_value_heads x delta_key_size");
  RequireCount(a.delta_value_width(),
               1,
               kLargestDimension,
               "model.delta_value_heads x delta_value_size");
  RequireCount(
      a.delta_convolution, 1, kLargestDimension, "model.delta_convolution");
  RequireCount(a.delta_chunk, 1, kLongestSequence, "model.delta_chunk");
}

void ValidateConvolution(const Architecture& a) {
  RequireCount(a.convolution_channels,
               0,
               kLargestDimension / 3,
               "model.convolution_channels");
  RequireCount(a.convolution_projection_width(),
               1,
               kLargestDimension,
               "three times the channels of a convolution");
  RequireCount(
      a.convolution_reach, 1, kLargestDimension, "model.convolution_reach");
}

// Blocks that are no Transformer's: of state spaces, the delta rule or a short
// convolution, or of one part each.
void ValidateOtherBlocks(const Architecture& a) {
  RequireCount(a.feed_forward_layers,
               0,
               a.single_part_blocks ? a.layers : 0,
               "model.feed_forward_layers");
  RequireCount(a.state_space_layers, 0, a.mixers(), "model.state_space_layers");
  RequireCount(a.delta_rule_layers, 0, a.mixers(), "model.delta_rule_layers");
  RequireCount(a.convolution_layers, 0, a.mixers(), "model.convolution_layers");
  if (a.state_space_layers > 0) ValidateStateSpace(a);
  if (a.delta_rule_layers > 0) ValidateDeltaRule(a);
  if (a.convolution_layers > 0) ValidateConvolution(a);
  if (a.other_blocks()) ValidateBesideOtherBlocks(a);
}

// The same of what a step does with them.
void ValidateStepOfOtherBlocks(const Workload& w) {
  if (!w.architecture.other_blocks()) return;
  struct Beside {
    std::string_view key;
    bool asked;
  };
  for (const Beside& one : std::to_array<Beside>(
           {{"trainable.frozen_layers", w.trainable.frozen_layers > 0},
            {"checkpointed_blocks", w.checkpointed_blocks > 0},
            {"operation_checkpointing", w.operation_checkpointing}})) {
    if (!one.asked) continue;
    throw InputError(
        fmt::format("{}: expected none with model.{}, where it is not counted",
                    one.key,
                    w.architecture.other_blocks_key()));
  }
}

// FlashAttention's own kernels take heads of up to 256 (its README); what of a
// framework is "flash" turns to others (Dao-AILab/flash-attention, issue 2427).
void ValidateFlashHeads(const Workload& w) {
  constexpr int64_t kWidest = 256;
  const Attention attention = w.stack.attention;
  if (!ScoresOnChip(attention) || attention == Attention::kFlash) return;
  const Architecture& a = w.architecture;
  const int64_t widest =
      std::max({a.query_head_size(), a.context_head_size(), a.full_head_size});
  if (widest <= kWidest) return;
  throw InputError(
      fmt::format("attention: expected flash or materialised of heads of {}, "
                  "got {}, which takes up to {}; hint: flash",
                  widest,
                  ToText(attention),
                  kWidest));
}

// The parts of today's blocks, and that they go together.
void ValidateBlock(const Architecture& a) {
  ValidateAttention(a);
  ValidateWindow(a);
  ValidateFullAttention(a);
  ValidatePositions(a);
  if (a.unit_output_rows && !(PredictsNextToken(a) && a.untied_output)) {
    throw InputError(
        "model.unit_output_rows: expected false, or a decoder that predicts "
        "tokens by untied_output, got true");
  }
  RequireCount(a.dense_layers, 0, a.layers, "model.dense_layers");
  RequireCount(a.expert_period, 1, kMostLayers, "model.expert_period");
  ValidateOtherBlocks(a);
  ValidateExpertBlocks(a);
  RequireCount(a.next_token_blocks, 0, kMostLayers, "model.next_token_blocks");
  if (a.next_token_blocks > 0 && !PredictsNextToken(a)) {
    throw InputError(
        fmt::format("model.next_token_blocks: expected 0, or a decoder that "
                    "predicts tokens, got {} in a {} for {}",
                    a.next_token_blocks,
                    ToText(a.family),
                    ToText(a.head)));
  }
}

void ValidateEmbeddings(const Architecture& a) {
  RequireCount(a.embedding_size, 0, kLargestDimension, "model.embedding_size");
  if (!a.projects_embeddings()) return;
  const bool two_sided = a.two_sided();
  if (!two_sided && a.next_token_blocks == 0) return;
  throw InputError(fmt::format(
      "model.embedding_size: expected hidden = {} or 0 in {}, got "
      "{}",
      a.hidden,
      two_sided ? "an encoder-decoder" : "a model with next_token_blocks",
      a.embedding_size));
}

void ValidateArchitecture(const Architecture& a) {
  const auto dimension = [](int64_t value, std::string_view what) {
    RequireCount(value, 1, kLargestDimension, what);
  };
  RequireCount(a.layers, 1, kMostLayers, "model.layers");
  const bool two_sided = a.two_sided();
  RequireCount(a.decoder_layers,
               two_sided ? 1 : 0,
               two_sided ? kMostLayers : 0,
               "model.decoder_layers");
  dimension(a.hidden, "model.hidden");
  dimension(a.heads, "model.heads");
  dimension(a.intermediate, "model.intermediate");
  dimension(a.vocabulary, "model.vocabulary");
  ValidateEmbeddings(a);
  RequireCount(a.positions, 0, kLargestDimension, "model.positions");
  RequireCount(
      a.position_offset, 0, kLargestDimension, "model.position_offset");
  RequireCount(a.token_types, 0, kLargestDimension, "model.token_types");
  RequireCount(a.labels,
               a.head == Head::kSequenceClassification ? 1 : 0,
               kLargestDimension,
               "model.labels");
  if (a.head_size == 0 && a.hidden % a.heads != 0) {
    throw InputError(
        fmt::format("model.heads: expected a divisor of hidden = {}, got {}",
                    a.hidden,
                    a.heads));
  }
  ValidateBlock(a);
}

// Blocks that share their weights: what divides, freezes, adapts or runs again
// some of them is not counted.
void ValidateSharedBlocks(const Workload& w) {
  const Architecture& a = w.architecture;
  if (!a.shared_blocks) return;
  struct Beside {
    std::string_view what;
    bool asked;
  };
  const Parallel& p = w.parallel;
  for (const Beside& one : std::to_array<Beside>(
           {{"a family that is no encoder", a.family != Family::kEncoder},
            {"experts", a.experts > 0},
            {"windowed_layers", a.windowed_layers > 0},
            {"unrotated_layers", a.unrotated_layers > 0},
            {"relative_bias_each_block", a.relative_bias_each_block},
            {"first_norm: false", !a.first_norm},
            {"trainable", !w.trainable.everything()},
            {"optimizer.by_layer", w.optimizer.by_layer},
            {"checkpointing",
             w.gradient_checkpointing || w.attention_checkpointing ||
                 w.operation_checkpointing},
            {"parallel.shard", p.shard != Shard::kNone},
            {"parallel.tensor, context or pipeline",
             p.tensor > 1 || p.context > 1 || p.pipeline > 1}})) {
    if (!one.asked) continue;
    throw InputError(fmt::format(
        "model.shared_blocks: expected false beside {}, got true", one.what));
  }
}

// What of a model tells which matrices it has.
std::string_view WhatModelHas(const Architecture& a) {
  if (a.state_space_layers > 0) return "beside state spaces";
  if (a.delta_rule_layers > 0) return "beside the delta rule";
  if (a.convolution_layers > 0) return "beside short convolutions";
  return a.latent() ? "in latent attention" : "without latent attention";
}

// Latent attention has matrices of its own in the place of others.
void RequireMatricesOfModel(const LoraMatrices& matrices,
                            const Architecture& a) {
  const std::vector<std::string> known = ToWords(LoraMatricesOf(a));
  for (const std::string& word : ToWords(matrices)) {
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    throw InputError(
        fmt::format("trainable.lora.matrices: expected some of {} {}, got {}",
                    fmt::join(known, ", "),
                    WhatModelHas(a),
                    word));
  }
}

// A matrix of k inputs and n outputs is no sum of more than min(k, n) of rank 1.
void RequireRoomForRank(const Workload& w) {
  const int64_t rank = w.trainable.lora_rank;
  const auto smallest = SmallestAdapted(w);
  if (!smallest || rank <= smallest->smaller_side()) return;
  throw InputError(
      fmt::format("trainable.lora.rank: expected a count of at most {}, the "
                  "smaller side of {} ({} x {}), got {}",
                  smallest->smaller_side(),
                  smallest->module,
                  smallest->inputs,
                  smallest->outputs,
                  rank));
}

// Adapters: the matrices that they stand beside, and their rank.
void ValidateAdapters(const Workload& w) {
  const Trainable& t = w.trainable;
  const Architecture& a = w.architecture;
  if (t.lora.feed_forward_gate && !a.gated) {
    throw InputError(
        "trainable.lora.matrices: expected a gated feed-forward for "
        "feed_forward_gate");
  }
  RequireCount(t.lora_rank, 0, kLargestDimension, "trainable.lora.rank");
  if (t.lora_rank == 0) return;
  RequireMatricesOfModel(t.lora, a);
  const LoraMatrices modules = Modules(w.stack.fusion, t.lora);
  if (t.lora.state_space_out != modules.state_space_out) {
    throw InputError(
        fmt::format("trainable.lora.matrices: expected no state_space_out "
                    "(out_proj) in stack {}, where the scan's kernel takes "
                    "that weight and runs no adapter; hint: state_space_in, or "
                    "stack megatron",
                    ToText(w.stack.fusion)));
  }
  if (t.lora != modules) {
    throw InputError(
        fmt::format("trainable.lora.matrices: expected of the delta rule "
                    "delta_rule_in and delta_rule_out in stack {}, which has "
                    "one first product; hint: delta_rule_in",
                    ToText(w.stack.fusion)));
  }
  RequireRoomForRank(w);
  if (a.next_token_blocks > 0) {
    throw InputError(fmt::format(
        "model.next_token_blocks: expected 0 beside adapters, got {}",
        a.next_token_blocks));
  }
  if (t.frozen_layers > 0) {
    throw InputError(
        "trainable: expected frozen layers or adapters, got both; adapters "
        "freeze all layers");
  }
  if (t.lora == LoraMatrices{}) {
    throw InputError(
        "trainable.lora.matrices: expected at least one matrix, got none");
  }
}

// What goes with adapters alone.
void ValidateBesideAdapters(const Workload& w) {
  const Trainable& t = w.trainable;
  const Architecture& a = w.architecture;
  if (!(t.lora_dropout >= 0 && t.lora_dropout < 1) ||
      (t.lora_dropout > 0 && t.lora_rank == 0)) {
    throw InputError(fmt::format(
        "trainable.lora.dropout: expected 0 to below 1 beside adapters, got {}",
        t.lora_dropout));
  }
  if (t.base_bits != 0 &&
      (t.lora_rank == 0 || (t.base_bits != 4 && t.base_bits != 8))) {
    throw InputError(fmt::format(
        "trainable.lora.base_bits: expected 4 or 8 beside adapters, got {}",
        t.base_bits));
  }
  if (t.embeddings_beside_adapters &&
      (t.lora_rank == 0 || !EmbeddingsMayTrainBesideAdapters(a))) {
    throw InputError(
        "trainable.lora.embeddings: expected false but beside adapters of a "
        "causal language model whose embeddings have no norm or projection, "
        "got true");
  }
  if (t.base_by_operations && (!WidensBase(w) || !OperationsMayWidenBase(a))) {
    throw InputError(
        "trainable.lora.base_by_operations: expected false but over base_bits "
        "that products do not take as they are, without experts, blocks that "
        "are no Transformer's or a second side, got true");
  }
}

void ValidateTrainable(const Workload& w) {
  const Trainable& t = w.trainable;
  const Architecture& a = w.architecture;
  if (t.frozen_layers < 0 || t.frozen_layers > a.layers) {
    throw InputError(
        fmt::format("trainable.frozen_layers: expected 0 to {}, the layers of "
                    "{}, got {}",
                    a.layers,
                    a.name.empty() ? "the model" : a.name,
                    t.frozen_layers));
  }
  ValidateAdapters(w);
  ValidateBesideAdapters(w);
  if (t.frozen_layers > 0 && TrainableTensorCount(w) == 0) {
    throw InputError(
        fmt::format("trainable.frozen_layers: expected something left to train "
                    "above the frozen layers of {}, got {} of {}",
                    a.name.empty() ? "the model" : a.name,
                    t.frozen_layers,
                    a.layers));
  }
}

// What is computed again, and that it is of the model.
void ValidateCheckpointing(const Workload& w) {
  const Architecture& a = w.architecture;
  RequireCount(w.checkpointed_blocks, 0, a.layers, "checkpointed_blocks");
  if (w.checkpointed_blocks > 0 &&
      (!w.gradient_checkpointing || a.decoder_layers > 0)) {
    throw InputError(fmt::format("checkpointed_blocks: expected {}, got {}",
                                 w.gradient_checkpointing
                                     ? "0, which is all, in models of two sides"
                                     : "gradient_checkpointing beside it",
                                 w.checkpointed_blocks));
  }
  if (w.attention_checkpointing && w.gradient_checkpointing &&
      w.checkpointed_blocks == 0) {
    throw InputError(
        "attention_checkpointing: expected false where gradient_checkpointing "
        "computes all of every block again, got true; hint: "
        "checkpointed_blocks, or one of the two");
  }
  if (w.attention_checkpointing && a.decoder_layers > 0) {
    throw InputError(
        "attention_checkpointing: expected false in models of two sides, got "
        "true; hint: gradient_checkpointing");
  }
  if (!w.operation_checkpointing) return;
  const auto refuse = [](const char* where) {
    throw InputError(
        fmt::format("operation_checkpointing: expected false {}, got true; "
                    "hint: gradient_checkpointing",
                    where));
  };
  if (w.gradient_checkpointing && w.checkpointed_blocks == 0) {
    refuse("where gradient_checkpointing computes all of every block again");
  }
  if (w.attention_checkpointing) refuse("beside attention_checkpointing");
  if (a.decoder_layers > 0) refuse("in models of two sides");
  if (a.next_token_blocks > 0) refuse("with next-token blocks");
}

// An expert gets a token once at most.
void ValidateLoadFactor(const Workload& w) {
  const Architecture& a = w.architecture;
  if (a.experts == 0) {
    if (w.load_factor == 1) return;
    throw InputError(
        fmt::format("load_factor: expected 1 in a model without experts, got "
                    "{}; hint: model.experts",
                    w.load_factor));
  }
  const double most = static_cast<double>(a.scored_experts()) /
                      static_cast<double>(a.experts_per_token);
  if (w.load_factor >= 1 && w.load_factor <= most) return;
  throw InputError(
      fmt::format("load_factor: expected 1 to {}, where one of {} experts gets "
                  "all tokens that go to {} each, got {}",
                  most,
                  a.experts,
                  a.experts_per_token,
                  w.load_factor));
}

// Rows that each expert finds are as many as they are: the host waits for their
// number, which a step that is replayed whole and a graph of fixed shapes do
// without.
void ValidateExperts(const Workload& w) {
  const ExpertKernels asked = w.stack.experts;
  if (asked == ExpertKernels::kOfStack) return;
  if (w.architecture.experts == 0) {
    throw InputError(fmt::format(
        "experts: expected of_stack in a model without experts, got "
        "{}; hint: model.experts",
        ToText(asked)));
  }
  const Fusion stack = w.stack.fusion;
  if (FindsRows(asked) &&
      (RulesOf(stack).launches == Launches::kOnce || stack == Fusion::kXla)) {
    throw InputError(
        fmt::format("experts: expected grouped or split in stack {}, whose "
                    "shapes are fixed, got {}",
                    ToText(stack),
                    ToText(asked)));
  }
}

// Blocks in 16 bits among those that narrow their operands.
void ValidateWideBlocks(const Workload& w) {
  if (w.wide_blocks == 0) return;
  RequireCount(w.wide_blocks, 0, w.architecture.layers, "wide_blocks");
  const auto require_none = [&](bool beside, std::string_view what) {
    if (!beside) return;
    throw InputError(
        fmt::format("wide_blocks: expected 0 {}, got {}", what, w.wide_blocks));
  };
  require_none(w.architecture.two_sided(), "of a model of two sides");
  require_none(BaseAsProducts(w),
               "beside a base in the bits of its products "
               "(trainable.lora.base_bits)");
  require_none(GathersInFp8(w), "where blocks are gathered in 8 bits");
}

void ValidateFp8(const Workload& w) {
  if (!w.fp8.gathered) return;
  if (!ShardsParameters(w.parallel)) {
    throw InputError(
        fmt::format("fp8.gathered: expected false where nothing is gathered "
                    "(parallel.shard: {}), got true; hint: zero3 or fsdp",
                    ToText(w.parallel.shard)));
  }
  if (w.trainable.base_bits > 0) {
    throw InputError(
        fmt::format("fp8.gathered: expected false beside a base of {} bits, "
                    "which is gathered as it is, got true",
                    w.trainable.base_bits));
  }
}

void ValidateNarrowOperands(const Workload& w) {
  ValidateFp8(w);
  ValidateWideBlocks(w);
}

// Muon and Adafactor look at whole matrices, each in the framework's own
// operations, which only the compiler of a whole graph makes one pass of.
void ValidateOptimizer(const Workload& w) {
  const Optimizer& o = w.optimizer;
  if (o.state_bits != 0 && o.state_bits != 8 && o.state_bits != 16) {
    throw InputError(
        fmt::format("optimizer.state_bits: expected 8, 16, or 0 for as wide as "
                    "the update, got {}",
                    o.state_bits));
  }
  if (o.state_bits == 16 &&
      o.implementation != OptimizerImplementation::kFused) {
    throw InputError(
        fmt::format("optimizer.state_bits: expected 0 or 8 beside "
                    "implementation {}, got 16; hint: fused",
                    ToText(o.implementation)));
  }
  // DeepSpeed's and FSDP's updates on the host are by fp32 state.
  if (o.state_bits != 0 && w.parallel.offload != Offload::kNone) {
    throw InputError(fmt::format(
        "optimizer.state_bits: expected 0 beside parallel.offload: {}, whose "
        "host updates state as wide as masters, got {}",
        ToText(w.parallel.offload),
        o.state_bits));
  }
  const bool muon = o.kind == OptimizerKind::kMuon;
  if (!muon && o.kind != OptimizerKind::kAdafactor) return;
  const auto refuse = [&](std::string_view key,
                          std::string_view expected,
                          std::string_view got) {
    throw InputError(fmt::format("{}: expected {} beside optimizer {}, got {}",
                                 key,
                                 expected,
                                 ToText(o.kind),
                                 got));
  };
  if (w.parallel.offload != Offload::kNone) {
    refuse("parallel.offload", "none", ToText(w.parallel.offload));
  }
  if (o.state_bits != 0) {
    refuse("optimizer.state_bits", "0", fmt::to_string(o.state_bits));
  }
  if (o.by_layer) refuse("optimizer.by_layer", "false", "true");
  if (o.masters == Masters::kInUpdate) {
    refuse("optimizer.masters", "apart or none", ToText(o.masters));
  }
  const bool is_graph =
      w.stack.fusion == Fusion::kXla || w.stack.fusion == Fusion::kCompiled;
  if (!muon && !is_graph &&
      o.implementation == OptimizerImplementation::kFused) {
    refuse("optimizer.implementation",
           "for_loop or multi_tensor",
           ToText(o.implementation));
  }
}

void ValidatePowerLimit(const Workload& w) {
  const double power_limit = w.power_limit.base();
  if (power_limit >= 0.0 && power_limit <= kMostPower) return;
  throw InputError(
      fmt::format("power_limit: expected 0 to {} W, 0 for the board's own, "
                  "got {}",
                  kMostPower,
                  power_limit));
}

}  // namespace

// Gradients that go as they come are of one micro-batch, and nobody else waits
// for them whole.
void RequireUpdateInBackward(const Workload& w) {
  if (!w.optimizer.in_backward) return;
  const auto require_none = [](bool beside, std::string_view what) {
    if (!beside) return;
    throw InputError(fmt::format(
        "optimizer.in_backward: expected false {}, got true", what));
  };
  require_none(w.accumulation > 1,
               "where micro-batches add up gradients (accumulation: 1)");
  require_none(RanksThatSum(w.parallel) > 1 && !ShardsParameters(w.parallel),
               "where ranks sum gradients of all (parallel.shard: zero3 or "
               "fsdp)");
  require_none(w.parallel.pipeline > 1, "under a pipeline");
  require_none(w.parallel.offload != Offload::kNone, "beside parallel.offload");
  require_none(KeepsMasters(w),
               "beside masters of narrow weights, without which "
               "optimizer.masters is none");
  require_none(Autocasts(w) && w.precision == Precision::kFp16,
               "in fp16, whose gradients are unscaled together");
  require_none(w.optimizer.wide_gradients, "beside wide_gradients");
  require_none(w.optimizer.by_layer, "beside learning_rate.layer_decay");
  require_none(w.optimizer.kind == OptimizerKind::kMuon, "beside muon");
  require_none(w.compression.kind != CompressionKind::kNone,
               "beside gradient_compression");
}

int64_t LargestCountableBatch(const Workload& workload) {
  Workload one = workload;
  one.batch = 1;
  // What does not grow with it is counted as if it did.
  const double batch = std::min(kLargestSum / LargestSum(one),
                                static_cast<double>(kLargestBatch));
  return std::max<int64_t>(1, static_cast<int64_t>(batch));
}

void Validate(const Workload& w) {
  const Architecture& a = w.architecture;
  RequireCount(w.batch, 1, kLargestBatch, "batch");
  RequireCount(w.sequence_length, 1, kLongestSequence, "sequence_length");
  RequireCount(w.target_length, 0, kLongestSequence, "target_length");
  RequireCount(w.documents, 1, w.key_length(), "documents");
  RequireCount(w.accumulation, 1, kLargestBatch, "accumulation");
  RequireCount(w.predictions_per_sequence,
               0,
               w.target_length > 0 ? w.target_length : w.sequence_length,
               "predictions_per_sequence");
  ValidatePowerLimit(w);
  ValidateArchitecture(a);
  // Sums are taken from here on.
  RequireCountable(w);
  ValidateSharedBlocks(w);
  ValidateStepOfOtherBlocks(w);
  ValidateFlashHeads(w);
  ValidateTrainable(w);
  ValidateLoadFactor(w);
  ValidateExperts(w);
  if (w.stack.compiler_level < 1 || w.stack.compiler_level > 3) {
    throw InputError(fmt::format("compiler_level: expected 1, 2 or 3, got {}",
                                 w.stack.compiler_level));
  }
  ValidateNarrowOperands(w);
  RequireUpdateInBackward(w);
  ValidateOptimizer(w);
  if (w.compression.kind == CompressionKind::kPowerSgd) {
    RequireCount(w.compression.rank,
                 1,
                 kLargestDimension,
                 "gradient_compression.power_sgd");
  }
  auto fault = FaultOf(w.parallel);
  if (!fault && DividesModel(w.parallel)) fault = FaultOfSplit(w);
  RequireNone(fault);
  if (w.parallel.shard != Shard::kNone &&
      w.compression.kind == CompressionKind::kPowerSgd) {
    throw InputError(
        fmt::format("gradient_compression: expected none or half beside "
                    "sharded state (parallel.shard: {}), got {}",
                    ToText(w.parallel.shard),
                    ToText(w.compression.kind)));
  }
  ValidateCheckpointing(w);
  const auto longest = a.longest_of_table();
  const int64_t length = std::max(w.sequence_length, w.target_length);
  if (longest && length > *longest) {
    throw InputError(fmt::format(
        "sequence_length: expected at most {}, the positions of {}, got {}",
        *longest,
        a.name.empty() ? "the model" : a.name,
        length));
  }
}

}  // namespace trainfare::model
