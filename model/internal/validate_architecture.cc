#include "model/internal/validate_architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "model/error.h"
#include "model/internal/require_count.h"
#include "model/limits.h"

namespace trainfare::model::internal {
namespace {

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

// Keys and values that blocks share.
void ValidateSharedKeys(const Architecture& a) {
  RequireCount(a.shared_key_value_layers,
               0,
               std::max<int64_t>(0, a.layers - 1),
               "model.shared_key_value_layers");
  RequireCount(a.upper_intermediate,
               0,
               a.shared_key_value_layers > 0 ? kLargestDimension : 0,
               "model.upper_intermediate");
  if (a.shared_key_value_layers == 0) return;
  const int64_t below = a.layers - a.shared_key_value_layers;
  const int64_t full = a.full_layers_below(below);
  if (a.attention_differs() && (full == 0 || full == below)) {
    throw InputError(
        fmt::format("model.shared_key_value_layers: expected blocks of both "
                    "sorts of attention below the {} that share keys and "
                    "values, got {} of {} that see all",
                    a.shared_key_value_layers,
                    full,
                    below));
  }
  struct Beside {
    std::string_view what;
    bool asked;
  };
  for (const Beside& one : std::to_array<Beside>(
           {{"a family that is no decoder", a.family != Family::kDecoder},
            {"latent_key_value", a.latent()},
            {"clipped_projections", a.clipped_projections},
            {"blocks of other parts", a.other_blocks()},
            {"shared_blocks", a.shared_blocks},
            {"unrotated_layers", a.unrotated_layers > 0},
            {"next_token_blocks", a.next_token_blocks > 0},
            {"upper_intermediate and experts",
             a.upper_intermediate > 0 && a.experts > 0},
            {"expert_period", a.expert_period > 1}})) {
    if (!one.asked) continue;
    throw InputError(
        fmt::format("model.shared_key_value_layers: expected 0 beside {}, got "
                    "{}",
                    one.what,
                    a.shared_key_value_layers));
  }
}

// Embeddings of each block.
void ValidateLayerEmbeddings(const Architecture& a) {
  RequireCount(a.layer_embedding_size,
               0,
               kLargestDimension / std::max<int64_t>(1, a.layers),
               "model.layer_embedding_size");
  const bool any = a.layer_embedding_size > 0;
  RequireCount(a.layer_vocabulary,
               0,
               any ? kLargestDimension : 0,
               "model.layer_vocabulary");
  const bool plain = a.family == Family::kDecoder && !a.other_blocks() &&
                     !a.projects_embeddings() && !a.shared_blocks &&
                     a.next_token_blocks == 0 &&
                     a.activation != Activation::kXielu;
  if (any && !plain) {
    throw InputError(
        fmt::format("model.layer_embedding_size: expected 0, or a decoder of "
                    "attention and feed-forwards, without embedding_size, "
                    "shared_blocks, next_token_blocks and xielu, got {}",
                    a.layer_embedding_size));
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

// The parts of today's blocks, and that they go together.
void ValidateBlock(const Architecture& a) {
  ValidateAttention(a);
  ValidateWindow(a);
  ValidateFullAttention(a);
  ValidateSharedKeys(a);
  ValidateLayerEmbeddings(a);
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

}  // namespace

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

}  // namespace trainfare::model::internal
