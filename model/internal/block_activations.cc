#include "model/internal/block_activations.h"

#include <algorithm>
#include <vector>

#include "model/element_widths.h"
#include "model/error.h"
#include "model/rounding.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model::internal {
namespace {

// Whether each adapter keeps for A's gradient a copy of its own of what it takes:
// dropped out, or widened and narrowed again for the product. Nobody keeps what
// its matrix takes then, which is frozen. A compiler has no copies: it drops out
// again what it keeps.
bool AdaptersKeepCopies(const Workload& w) {
  if (RulesOf(w).block == BlockKernels::kCompiled) return false;
  return DropsAdapterInputs(w) || WidensAdapterInputs(w);
}

// Of each adapter X A, kept for B's gradient, with its copy of what it takes and
// dropout's mask, a byte an element (PyTorch's native_dropout).
int64_t AdapterBytes(const Workload& w,
                     const std::vector<AdaptedMatrix>& matrices,
                     int64_t rows,
                     int64_t key_rows) {
  const Widths width(w);
  const int64_t of_input = (AdaptersKeepCopies(w) ? width.element : 0) +
                           (DropsAdapterInputs(w) ? kMaskBytes : 0);
  int64_t bytes = 0;
  for (const AdaptedMatrix& matrix : matrices) {
    const int64_t row = w.trainable.lora_rank * width.element +
                        (matrix.takes ? matrix.inputs * of_input : 0);
    bytes += (matrix.of_keys ? key_rows : rows) * row;
  }
  return bytes;
}

// Of the norms of a part of a block, with what each row has.
int64_t NormBytes(const Workload& w, int64_t tokens) {
  const int64_t norms =
      w.architecture.norm_placement == NormPlacement::kBoth ? 2 : 1;
  return norms * w.part.OfTokens(tokens) *
         (w.architecture.hidden * NormElementBytes(w) + kStatistics);
}

// Bytes kept of latent attention: what the norms before its upper products
// take, and what they give, where those products or their adapters train.
int64_t LatentBytes(const Workload& w, int64_t tokens) {
  const Architecture& a = w.architecture;
  if (!a.latent()) return 0;
  const Widths width(w);
  // Keys are as many as queries; counted above as if each head had its own.
  const int64_t normed = a.latent_query + a.latent_key_value;
  int64_t kept = a.latent_query + a.key_value_down_width() - normed;
  if (KeepsInput(w, &LoraMatrices::query_up)) kept += a.latent_query;
  if (KeepsInput(w, &LoraMatrices::key_value_up)) kept += a.latent_key_value;
  return tokens *
         (kept * width.element + normed * NormElementBytes(w, width.element));
}

// Rows of `hidden` that the three projections keep as their inputs, from
// `queries` and, for keys and values, `others`: one tensor, or under autocast a
// narrow copy for each. The encoder's output, which cross-attention reads, is
// kept once for all layers when it needs no copy.
int64_t ProjectionInputs(const Workload& w, int64_t queries, int64_t others) {
  const bool query = KeepsInput(w, &LoraMatrices::query) ||
                     KeepsInput(w, &LoraMatrices::query_down);
  const bool borrows = w.architecture.borrows_keys();
  const bool key = !borrows && (KeepsInput(w, &LoraMatrices::key) ||
                                KeepsInput(w, &LoraMatrices::key_value_down));
  const bool gate = w.architecture.separate_attention_gate &&
                    KeepsInput(w, &LoraMatrices::attention_gate);
  const bool value = KeepsInput(w, &LoraMatrices::value) && !borrows &&
                     !w.architecture.shares_keys();
  // A joint projection is one product, with one copy.
  if (Widths(w).autocast && !w.architecture.joint_projection()) {
    return (query ? queries : 0) + (key ? others : 0) + (value ? others : 0) +
           (gate ? queries : 0);
  }
  const int64_t apart = Widths(w).autocast && gate ? queries : 0;
  return (query || key || value || gate ? queries : 0) + apart;
}

// The same with what adapters beside its matrices keep.
int64_t AdaptedHiddenBytes(const Workload& w,
                           int64_t rows,
                           int64_t intermediate) {
  return HiddenBytes(w, rows, intermediate) +
         AdapterBytes(w, AdaptedOfFeedForward(w, intermediate), rows, rows);
}

// What the norms of experts and of their router take: before them the hidden
// states, which the block's norm keeps, too, as they are where one kernel is all
// of a norm; and what the router takes of its own.
int64_t ExpertNormBytes(const Workload& w, int64_t tokens, int64_t sent) {
  const Architecture& a = w.architecture;
  if (!a.expert_norms) return 0;
  const int64_t element = NormElementBytes(w);
  const int64_t before = RulesOf(w).fuses_norm ? 0 : element;
  int64_t bytes = (sent * (2 * before + element) + tokens * element) * a.hidden;
  bytes += (3 * sent + tokens) * kStatistics;
  if (w.trainable.lora_rank == 0) bytes += sent * a.hidden * Widths(w).element;
  return bytes;
}

int64_t ExpertBytes(const Workload& w, int64_t tokens) {
  const Architecture& a = w.architecture;
  const Widths width(w);
  const int64_t sent = TokensOfExperts(w, tokens);
  const int64_t rows = RowsOfExperts(w, sent);
  int64_t bytes = sent * a.scored_experts() * kSingle;  // scores
  // What comes back of rows before it is weighted; the rows side by side; and
  // weighted, which a loop adds to the sum (PyTorch's index_add_ keeps it).
  const int64_t of_rows = rows * a.expert_width();
  bytes += of_rows * width.element;
  if (ExpertsOf(w) == ExpertKernels::kLoop) bytes += of_rows * width.wide;
  if (KeepsInput(w, &LoraMatrices::feed_forward_gate) ||
      KeepsInput(w, &LoraMatrices::feed_forward_in)) {
    bytes += of_rows * width.element;
  }
  bytes += HiddenBytes(w, rows, a.expert_intermediate) +
           AdapterBytes(w, AdaptedOfExpert(w), rows, rows);
  if (a.expert_latent > 0 && KeepsInput(w, &LoraMatrices::expert_latent_out)) {
    bytes += sent * a.expert_latent * width.element;
  }
  bytes += AdapterBytes(w, AdaptedOfLatent(w), sent, sent);
  if (a.shared_intermediate > 0) {
    bytes += AdaptedHiddenBytes(w, tokens, a.shared_intermediate);
    if (!a.expert_norms) bytes += tokens * a.hidden * width.element;
  }
  return bytes + ExpertNormBytes(w, tokens, sent);
}

// Bytes kept of an element that norms of queries and keys take of what a product
// gives, which is narrow under autocast, too. Blocks without positions, in which
// Llama 4 has none, are taken as the others.
int64_t HeadNormElementBytes(const Workload& w) {
  const int64_t width = Widths(w).element;
  switch (w.architecture.query_key_norm) {
    case QueryKeyNorm::kNone:
      return 0;
    case QueryKeyNorm::kRotated:  // no weights, whose gradients take more
      return RulesOf(w).fuses_norm ? width : std::max(width, kSingle);
    case QueryKeyNorm::kHead:
    case QueryKeyNorm::kEachHead:
    case QueryKeyNorm::kWhole:
      return NormElementBytes(w, width);
  }
  ENSURE(false, "a norm without bytes");
}

// The same of values, whose norm has no weights; one kernel takes keys that are
// values as the norm of keys keeps them.
int64_t ValueNormElementBytes(const Workload& w) {
  const Architecture& a = w.architecture;
  if (!a.value_norm) return 0;
  const int64_t width = Widths(w).element;
  if (!RulesOf(w).fuses_norm) return std::max(width, kSingle);
  const bool kept = a.shares_keys() && a.query_key_norm != QueryKeyNorm::kNone;
  return kept ? 0 : width;
}

// How often what the feed-forward takes is kept as it comes: once, or under
// autocast a narrow copy for the product of a gate and one for that beside it.
// Experts that are routed to take copies of its rows, which ExpertBytes() has; the
// router, where it trains, and the shared experts take the rows themselves.
int64_t FeedForwardInputs(const Workload& w, bool experts) {
  const Architecture& a = w.architecture;
  if (experts && a.expert_latent > 0 &&
      KeepsInput(w, &LoraMatrices::expert_latent_in)) {
    return 1;
  }
  if (experts && w.trainable.lora_rank > 0 && a.shared_intermediate == 0) {
    return 0;
  }
  const bool in = KeepsInput(w, &LoraMatrices::feed_forward_in);
  const bool gate = KeepsInput(w, &LoraMatrices::feed_forward_gate);
  const bool apart = Widths(w).autocast && a.gated && !a.joint_gate && !experts;
  if (apart) return (in ? 1 : 0) + (gate ? 1 : 0);
  return in || gate ? 1 : 0;
}

}  // namespace

bool NeedsInput(const Workload& w, bool LoraMatrices::*matrix) {
  return w.trainable.lora_rank == 0 || w.trainable.lora.*matrix;
}

bool KeepsInput(const Workload& w, bool LoraMatrices::*matrix) {
  return NeedsInput(w, matrix) && !AdaptersKeepCopies(w);
}

int64_t NormElementBytes(const Workload& w, int64_t width) {
  const Architecture& a = w.architecture;
  if (a.norm != Norm::kRms || RulesOf(w).fuses_norm) return width;
  const bool behind = a.norm_placement == NormPlacement::kBoth ||
                      a.norm_placement == NormPlacement::kOutputs;
  int64_t bytes = std::max(width, kSingle);
  if (w.architecture.two_sided() && width < kSingle) bytes += width;
  if (w.trainable.lora_rank == 0) bytes += behind ? kSingle : width;
  return bytes;
}

int64_t NormElementBytes(const Workload& w) {
  return NormElementBytes(w, Widths(w).wide);
}

int64_t RepeatedHeadBytes(const Workload& w, int64_t tokens) {
  const Architecture& a = w.architecture;
  if (a.latent() || !OperationByOperation(w.stack)) return 0;
  return tokens * (a.heads - a.key_heads()) *
         (a.query_head_size() + a.context_head_size()) * Widths(w).element;
}

int64_t ScoreBytes(const Workload& w,
                   int64_t query_length,
                   int64_t key_length) {
  const Widths width(w);
  const int64_t rows = w.batch * w.architecture.heads * query_length;
  if (ScoresOnChip(w.stack.attention)) return rows * kSingle;
  const int64_t scores = rows * key_length;
  switch (RulesOf(w).block) {
    case BlockKernels::kByOperation: {
      const bool changed =
          width.mask > 0 || width.autocast || width.probability > width.element;
      return scores * (width.probability + width.mask +
                       (changed ? width.element : 0)) +
             RepeatedHeadBytes(w, w.batch * key_length);
    }
    case BlockKernels::kFusedPasses:
    case BlockKernels::kHandFused:
      return scores * (width.element + width.mask +
                       (width.mask > 0 ? width.element : 0));
    case BlockKernels::kCompiled:
      // Dropout is applied again in the backward pass.
      return scores * (width.element + width.mask);
  }
  ENSURE(false, "a block without scores");
}

int64_t AttentionBytes(const Workload& w,
                       int64_t query_length,
                       int64_t key_length,
                       bool cross) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  const int64_t h = a.hidden;
  const int64_t queries = w.batch * query_length;
  const int64_t keys = w.batch * key_length;
  // Gathered for its products, and for their gradients again.
  int64_t bytes =
      w.part.OfTokens(ProjectionInputs(w, queries, cross ? keys : queries)) *
      h * width.element;
  bytes += AdapterBytes(w, AdaptedOfAttention(w), queries, keys);
  // Split into heads; of keys and values of another block it keeps them.
  const int64_t made = a.borrows_keys() ? 0 : keys;
  bytes +=
      (queries * a.query_width() + made * (a.key_width() + a.value_width())) *
      width.element;
  bytes += LatentBytes(w, queries);
  bytes += (queries * a.query_width() + made * a.key_width()) *
           HeadNormElementBytes(w);
  bytes += made * a.value_width() * ValueNormElementBytes(w);
  // What was clipped tells the gradient what was beyond; a compiler clips again.
  if (a.clipped_projections && RulesOf(w).block != BlockKernels::kCompiled) {
    bytes +=
        (queries * a.query_width() + keys * (a.key_width() + a.value_width())) *
        width.element;
  }

  if (!w.attention_checkpointing) {
    bytes += ScoreBytes(w, query_length, cross ? key_length : w.key_length());
  }
  // The context, merged: one for flash attention and for the product behind it.
  const bool of_attention =
      ScoresOnChip(w.stack.attention) && !w.attention_checkpointing;
  const bool of_product = KeepsInput(w, &LoraMatrices::output);
  if (of_attention || of_product || a.gated_attention) {
    bytes += queries * a.context_width() * width.element;
  }
  // The gate, or its sigmoid, beside the context; and what it made of that.
  if (a.gated_attention) {
    bytes += queries *
             (a.query_width() + (of_product ? a.context_width() : 0)) *
             width.element;
  }
  bytes += w.part.OfTokens(queries) * h * width.mask;
  bytes += NormBytes(w, queries);
  return bytes;
}

int64_t LayerInputBytes(const Workload& w, int64_t tokens) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  const int64_t size = a.layer_embedding_size;
  if (size == 0) return 0;
  int64_t bytes = NormElementBytes(w) * w.part.OfTokens(tokens) * a.hidden +
                  w.part.OfTokens(tokens) * kStatistics;
  if (KeepsInput(w, &LoraMatrices::layer_gate)) {
    bytes += w.part.OfTokens(tokens) * a.hidden * width.element;
  }
  // What the activation took, what it gave, where the embeddings have a
  // gradient of it, and the product of both.
  bytes += tokens * size * width.element;
  if (LayerEmbeddingsTrain(w)) bytes += tokens * size * width.element;
  if (KeepsInput(w, &LoraMatrices::layer_projection)) {
    bytes += tokens * size * width.element;
  }
  return bytes + AdapterBytes(w, AdaptedOfLayerInput(w), tokens, tokens);
}

int64_t StateSpaceBytes(const Workload& w, int64_t tokens) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  const int64_t norm_rows = tokens * a.state_groups;
  int64_t bytes = 0;
  if (KeepsInput(w, &LoraMatrices::state_space_in)) {
    bytes += w.part.OfTokens(tokens) * a.hidden * width.element;
  }
  bytes +=
      tokens * (a.state_projection_width() + a.state_width()) * width.element +
      norm_rows * kSingle;
  // Layers of a library have the norm and the last product as modules of their
  // own, which keep what they take (MambaMixer of Megatron-LM).
  if (StateSpaceOutIsModule(w.stack.fusion)) {
    const int64_t kept = KeepsInput(w, &LoraMatrices::state_space_out) ? 2 : 1;
    bytes += kept * tokens * a.state_width() * width.element;
  }
  bytes += AdapterBytes(w, AdaptedOfStateSpace(w), tokens, tokens);
  bytes += w.part.OfTokens(tokens) * a.hidden * width.mask;
  return bytes + NormBytes(w, tokens);
}

namespace {

// How often the first products of the delta rule keep what they take: once, or
// under autocast a copy each.
int64_t DeltaRuleInputs(const Workload& w) {
  using M = LoraMatrices;
  int64_t inputs = 0;
  for (bool M::*const matrix : {&M::delta_rule_in,
                                &M::delta_rule_gate,
                                &M::delta_rule_write,
                                &M::delta_rule_decay}) {
    const bool apart = matrix == &M::delta_rule_in ||
                       matrix == &M::delta_rule_write ||
                       !w.architecture.delta_joint_projections;
    if (apart && KeepsInput(w, matrix)) ++inputs;
  }
  const bool copies =
      Widths(w).autocast && RulesOf(w).block != BlockKernels::kHandFused;
  return copies ? inputs : std::min<int64_t>(inputs, 1);
}

}  // namespace

int64_t DeltaRuleBytes(const Workload& w, int64_t tokens) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  const bool hand_fused = RulesOf(w).block == BlockKernels::kHandFused;
  const int64_t heads = a.delta_value_heads;
  int64_t bytes =
      DeltaRuleInputs(w) * w.part.OfTokens(tokens) * a.hidden * width.element;
  // Megatron-LM gives each head of values queries and keys of its own.
  const int64_t key_heads = hand_fused ? heads : a.delta_key_heads;
  const int64_t chunk = std::min(a.delta_chunk, w.sequence_length);
  // The result, its gate and what the norm makes of them, of which the last is
  // what the last product takes; and values.
  const int64_t of_values =
      KeepsInput(w, &LoraMatrices::delta_rule_out) ? 4 : 3;
  const int64_t narrow = a.delta_channels() + 2 * key_heads * a.delta_key_size +
                         of_values * a.delta_value_width() +
                         heads * (chunk + 1);
  // In fp32: what softplus took and gave, sums of g, the norm's roots; and
  // those of queries and keys.
  const int64_t wide = 4 * heads + 2 * a.delta_key_heads;
  bytes += tokens * (narrow * width.element + wide * kSingle);
  // Layers of a library have the norm as a module of its own, whose result the
  // gate takes.
  if (hand_fused) bytes += tokens * a.delta_value_width() * width.element;
  bytes += AdapterBytes(w, AdaptedOfDeltaRule(w), tokens, tokens);
  bytes += w.part.OfTokens(tokens) * a.hidden * width.mask;
  return bytes + NormBytes(w, tokens);
}

int64_t ConvolutionBytes(const Workload& w, int64_t tokens) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  int64_t bytes = 0;
  if (KeepsInput(w, &LoraMatrices::convolution_in)) {
    bytes += w.part.OfTokens(tokens) * a.hidden * width.element;
  }
  // What the convolution took and gave, and that behind its gate.
  const int64_t of_channels =
      KeepsInput(w, &LoraMatrices::convolution_out) ? 3 : 2;
  bytes +=
      tokens *
      (a.convolution_projection_width() + of_channels * a.convolution_width()) *
      width.element;
  bytes += AdapterBytes(w, AdaptedOfConvolution(w), tokens, tokens);
  bytes += w.part.OfTokens(tokens) * a.hidden * width.mask;
  return bytes + NormBytes(w, tokens);
}

int64_t HiddenBytes(const Workload& w, int64_t rows, int64_t intermediate) {
  const Architecture& a = w.architecture;
  const int64_t one = rows * intermediate * Widths(w).element;
  int64_t bytes = one;
  if (KeepsInput(w, &LoraMatrices::feed_forward_out)) bytes += one;
  if (a.gated) bytes += RulesOf(w).fuses_gate ? one : 2 * one;
  // Operation by operation GPT-2's also keeps what its tanh gave, that and one,
  // and half of what it took; under autocast two of these in fp32, and that
  // which it took in place of the narrow one.
  if (WritesGeluOut(w)) {
    bytes += 3 * rows * intermediate * Widths(w).wide;
  }
  // A square keeps what it took, which is what ReLU gave and kept: under
  // autocast a wide copy of that.
  if (WritesSquareOut(w) && Widths(w).autocast) {
    bytes += rows * intermediate * Widths(w).wide;
  }
  // xIELU the products by its weights, and what it makes of what is below 0, in
  // fp32 under autocast; which of both sides each is on, a byte.
  if (WritesXieluOut(w)) {
    const int64_t wide = ActivationTrains(w) ? 3 : 2;
    bytes += rows * intermediate * (wide * Widths(w).wide + kMaskBytes);
  }
  return bytes;
}

int64_t FeedForwardBytes(const Workload& w, int64_t tokens, bool experts) {
  const Widths width(w);
  const int64_t h = w.architecture.hidden;
  const int64_t i = w.architecture.intermediate;
  int64_t bytes =
      experts ? ExpertBytes(w, tokens) : AdaptedHiddenBytes(w, tokens, i);
  bytes += FeedForwardInputs(w, experts) * w.part.OfTokens(tokens) * h *
           width.element;
  if (RulesOf(w).block == BlockKernels::kHandFused) {
    bytes += tokens * i * width.mask;
  }
  // Fairseq's translation models drop out the activation, too: its mask, and
  // what it made of the tensor.
  const bool apart =
      RulesOf(w).drops_activation_apart && w.architecture.two_sided();
  if (apart && width.mask > 0) {
    bytes += tokens * i * (width.mask + width.element);
  }
  // Where the model does so what the next product takes is what dropout gives.
  const bool masked = apart || RulesOf(w).block == BlockKernels::kHandFused;
  if (w.architecture.drops_activation && !masked && !experts) {
    bytes += tokens * i * width.mask;
  }
  bytes += w.part.OfTokens(tokens) * h * width.mask;
  bytes += NormBytes(w, tokens);
  return bytes;
}

}  // namespace trainfare::model::internal
