#include "model/transients.h"

#include <algorithm>
#include <cmath>

#include "model/element_widths.h"
#include "model/internal/block_activations.h"
#include "model/rounding.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model {
namespace {

using internal::HiddenBytes;
using internal::NeedsInput;

int64_t LongestQuery(const Workload& w) {
  return w.architecture.two_sided()
             ? std::max(w.decoder_length(), w.sequence_length)
             : w.sequence_length;
}

// The biases of relative positions, or their gradients, which all blocks of a
// side add to: with each sequence's mask in them, operation by operation.
int64_t PositionBiasBytes(const Workload& w) {
  const Architecture& a = w.architecture;
  if (a.position_kind != PositionKind::kRelative) return 0;
  const int64_t length = LongestQuery(w);
  const bool masked = OperationByOperation(w.stack);
  return (masked ? w.batch : 1) * a.heads * length * length * w.part.context *
         (masked ? Widths(w).wide : Widths(w).element);
}

// Queries, keys and values, and scores beside their like where they leave the
// chip: what attention makes in a pass.
int64_t AttentionTransients(const Workload& w) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  const int64_t length = LongestQuery(w);
  const int64_t heads = w.batch * length *
                        (a.query_projection_width() + a.key_width() +
                         a.value_width() + a.attention_gate_width()) *
                        width.element;
  const int64_t scores = ScoresOnChip(w.stack.attention)
                             ? 0
                             : 2 * w.batch * a.heads * length * length *
                                   w.part.context * width.probability;
  return heads + scores + PositionBiasBytes(w);
}

// Of the rows of all experts, to which so many tokens go, those that go through
// at once: of single experts, one after the other, those of the busiest.
int64_t RowsAtOnce(const Workload& w, int64_t of_rank) {
  const Architecture& a = w.architecture;
  const int64_t tokens = TokensOfExperts(w, of_rank);
  if (ExpertsOf(w) == ExpertKernels::kGrouped) return RowsOfExperts(w, tokens);
  const auto even =
      static_cast<double>(CeilDivide(tokens * a.experts_per_token, a.experts));
  return std::min<int64_t>(tokens * a.expert_ranks,
                           std::llround(std::ceil(w.load_factor * even)));
}

// What a state space makes in a pass backward: the gradient of its first
// product's result beside what comes of it, the convolution's result and the
// gradient of that, scores and their gradients in fp32, and states and their
// gradients, in fp32 and then narrow (_mamba_chunk_scan_combined_bwd of
// mamba_ssm's ssd_combined.py).
int64_t StateSpaceTransients(const Workload& w) {
  const Architecture& a = w.architecture;
  const int64_t element = Widths(w).element;
  const int64_t chunk = std::min(a.state_chunk, w.sequence_length);
  const int64_t states = w.batch * CeilDivide(w.sequence_length, chunk) *
                         a.state_width() * a.state_size;
  const int64_t of_token = (a.state_projection_width() +
                            2 * a.state_channels() + 2 * a.state_width()) *
                               element +
                           2 * chunk * a.state_groups * kSingle;
  // The gradient that the kernel of all makes of its last product, where no
  // parameter waits for it.
  const bool unasked =
      w.trainable.lora_rank > 0 && !StateSpaceOutIsModule(w.stack.fusion);
  const int64_t of_weight = unasked ? a.state_width() * a.hidden * element : 0;
  return w.tokens() * of_token + states * 2 * (kSingle + element) + of_weight;
}

// Elements of the states that chunks of the delta rule begin with.
int64_t DeltaStates(const Workload& w) {
  const Architecture& a = w.architecture;
  const int64_t chunk = std::min(a.delta_chunk, w.sequence_length);
  return w.batch * CeilDivide(w.sequence_length, chunk) *
         a.delta_value_width() * a.delta_key_size;
}

// What the delta rule makes in a pass backward until it returns: gradients of
// the gate and of the result, values to write (u and those less what was taken
// off) with two gradients of them, and as wide as a key for each head of values
// what is taken off (w) with its gradient, those of queries, and two of keys;
// states and their gradients (chunk_gated_delta_rule_bwd of
// flash-linear-attention).
int64_t DeltaRuleTransients(const Workload& w) {
  const Architecture& a = w.architecture;
  const int64_t of_token =
      6 * a.delta_value_width() + 5 * a.delta_value_heads * a.delta_key_size;
  return (w.tokens() * of_token + 2 * DeltaStates(w)) * Widths(w).element;
}

// Its pass forward: what the products give and the convolution makes of it,
// laid out by heads; inverses, updates, states and the result.
int64_t DeltaRuleForwardTransients(const Workload& w) {
  const Architecture& a = w.architecture;
  if (a.delta_rule_layers == 0) return 0;
  const int64_t of_head = a.delta_key_size + 3 * a.delta_value_size +
                          std::min(a.delta_chunk, w.sequence_length);
  const int64_t of_token = a.delta_projection_width() + 2 * a.delta_channels() +
                           a.delta_value_heads * of_head;
  return (w.tokens() * of_token + DeltaStates(w)) * Widths(w).element;
}

// What a short convolution makes in a pass backward: gradients of both gates and
// of what is between them, and these three side by side.
int64_t ConvolutionTransients(const Workload& w) {
  const Architecture& a = w.architecture;
  return w.tokens() * 2 * a.convolution_projection_width() * Widths(w).element;
}

// Its pass forward: what the product gives, the convolution, and its gate.
int64_t ConvolutionForwardTransients(const Workload& w) {
  const Architecture& a = w.architecture;
  if (a.convolution_layers == 0) return 0;
  return w.tokens() *
         (a.convolution_projection_width() + 2 * a.convolution_width()) *
         Widths(w).element;
}

// Rows of a feed-forward, dense or of all experts, and the width inside.
struct Widened {
  int64_t rows;
  int64_t width;
};
Widened WidenedBy(const Workload& w, bool experts) {
  const Architecture& a = w.architecture;
  const int64_t tokens = w.batch * LongestQuery(w);
  if (!experts) return {tokens, a.intermediate};
  return {RowsOfExperts(w, TokensOfExperts(w, tokens)), a.expert_intermediate};
}

int64_t FeedForwardGradientBytes(const Workload& w, bool experts) {
  const Architecture& a = w.architecture;
  const auto [rows, width] = WidenedBy(w, experts);
  const int64_t at_once =
      experts ? RowsAtOnce(w, w.batch * LongestQuery(w)) : rows;
  // Of the activation's result and what it was made of: two, with a gate three.
  // By then the result is gone, where it was kept for the matrix behind it, or
  // was dropped out for its adapter.
  const int64_t made = (a.gated ? 3 : 2) -
                       (NeedsInput(w, &LoraMatrices::feed_forward_out) ? 1 : 0);
  // Masked loops have gradients of all rows so far, on both sides of an expert,
  // and zeros with its own.
  const int64_t masked = experts && MasksRows(ExpertsOf(w)) ? 3 : 0;
  // xIELU's both sides of 0 have a gradient each.
  const int64_t of_sides =
      WritesXieluOut(w) ? 2 * at_once * width * Widths(w).wide : 0;
  return (made * at_once * width + masked * rows * a.expert_width()) *
             Widths(w).element +
         of_sides;
}

}  // namespace

int64_t BlockGradientBytes(const Workload& w, const BlockParts& parts) {
  int64_t of_mixer = 0;
  if (parts.mixer == Mixer::kAttention) {
    of_mixer = AttentionTransients(WorkloadOfParts(w, parts).get());
  }
  if (parts.mixer == Mixer::kStateSpace) of_mixer = StateSpaceTransients(w);
  if (parts.mixer == Mixer::kDeltaRule) of_mixer = DeltaRuleTransients(w);
  if (parts.mixer == Mixer::kConvolution) of_mixer = ConvolutionTransients(w);
  if (parts.feed_forward == FeedForwardKind::kNone) return of_mixer;
  // Those of what mixes tokens come when the feed-forward's tensors are gone.
  const WorkloadOfParts of(w, parts);
  const Widened widened = WidenedBy(of.get(), parts.experts());
  return std::max(FeedForwardGradientBytes(of.get(), parts.experts()),
                  of_mixer - HiddenBytes(w, widened.rows, widened.width));
}

namespace {

// Bytes of an element within the feed-forward.
int64_t FeedForwardTransientWidth(const Workload& w) {
  const Widths width(w);
  // Of GELU that is written out: what it took, half of it, and what an operation
  // takes and gives.
  if (WritesGeluOut(w)) return 4 * width.wide;
  // Of xIELU what it took and a product of it beside both sides and the result.
  if (WritesXieluOut(w)) {
    return 2 * width.element + 3 * width.wide + kMaskBytes;
  }
  const int64_t made = w.architecture.gated ? 3 : 2;
  if (!WritesSquareOut(w)) return made * width.element;
  // ReLU's result beside, and under autocast what the square takes and gives.
  return width.autocast ? made * width.element + 2 * width.wide
                        : (made + 1) * width.element;
}

}  // namespace

int64_t ForwardTransients(const Workload& w) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  const int64_t tokens = w.batch * LongestQuery(w);
  const int64_t inner = std::max(
      tokens * (a.expert_layers() < a.feed_forwards()
                    ? std::max(a.intermediate, a.upper_intermediate)
                    : 0),
      RowsOfExperts(w, TokensOfExperts(w, tokens)) * a.expert_intermediate);
  const int64_t feed_forward = inner * FeedForwardTransientWidth(w);
  const auto attention = [&](const Workload& of) {
    return AttentionTransients(of) +
           tokens * of.architecture.context_width() * width.element;
  };
  int64_t mixed = attention(w);
  if (a.attention_differs()) {
    BlockParts full;
    full.sees_all = true;
    mixed = std::max(mixed, attention(WorkloadOfParts(w, full).get()));
  }
  // Of a state space what its products and its convolution make, and its scan.
  const int64_t state_space =
      a.state_space_layers > 0
          ? tokens *
                (a.state_projection_width() + a.state_channels() +
                 2 * a.state_width()) *
                width.element
          : 0;
  const int64_t of_blocks = tokens * a.layer_table_width() * width.wide;
  return 2 * tokens * a.hidden * width.wide + of_blocks +
         std::max({mixed,
                   PositionBiasBytes(w) + feed_forward,
                   state_space,
                   DeltaRuleForwardTransients(w),
                   ConvolutionForwardTransients(w)});
}

}  // namespace trainfare::model
