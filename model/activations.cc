#include "model/activations.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "model/error.h"
#include "model/rounding.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model {
namespace {

constexpr int64_t kMask = 1;        // of a dropout mask's element
constexpr int64_t kIndex = 8;       // of a token id
constexpr int64_t kStatistics = 8;  // mean and deviation of a row, fp32

// Widths of what a stack keeps.
struct Widths {
  bool autocast;    // operands are narrow copies of wide tensors
  int64_t element;  // operands of matrix products
  int64_t wide;     // results of LayerNorm and softmax
  int64_t mask;     // 0 without dropout

  explicit Widths(const Workload& w)
      : autocast(Autocasts(w)),
        element(BytesPerElement(w.precision)),
        wide(autocast ? kSingle : element),
        mask(w.architecture.dropout > 0 ? kMask : 0) {}
};

bool TwoSided(const Workload& w) {
  return w.architecture.family == Family::kEncoderDecoder;
}

int64_t TargetLength(const Workload& w) {
  return w.target_length > 0 ? w.target_length : w.sequence_length;
}

// Whether the input of a matrix is kept: for the gradient of its weights, or
// of the adapter beside it. A frozen matrix needs only itself.
bool KeepsInput(const Workload& w, bool LoraMatrices::*matrix) {
  return w.trainable.lora_rank == 0 || w.trainable.lora.*matrix;
}

// Of each adapter X A, kept for B's gradient, and of those in fp32 what they
// take, narrowed again for the product: a copy of its own.
int64_t AdapterBytes(const Workload& w,
                     const std::vector<AdaptedMatrix>& matrices,
                     int64_t rows,
                     int64_t key_rows) {
  int64_t elements = 0;
  for (const AdaptedMatrix& matrix : matrices) {
    const int64_t copied = w.trainable.wide_adapters ? matrix.inputs : 0;
    elements +=
        (matrix.of_keys ? key_rows : rows) * (w.trainable.lora_rank + copied);
  }
  return elements * Widths(w).element;
}

// What a norm keeps of each element, of `width` bytes, that it takes: that. An
// RMSNorm of single operations keeps it in fp32, in place of one that is narrow,
// and for the gradient of its weights its scaled form, which is as narrow as the
// input again (LlamaRMSNorm of Transformers). T5's scales the narrow input, which
// stays beside (T5LayerNorm); those behind parts of a block narrow after the
// weights, if at all (Gemma2RMSNorm, Olmo2RMSNorm).
int64_t NormElementBytes(const Workload& w, int64_t width) {
  const Architecture& a = w.architecture;
  if (a.norm != Norm::kRms || RulesOf(w).fuses_norm) return width;
  const bool behind = a.norm_placement == NormPlacement::kBoth ||
                      a.norm_placement == NormPlacement::kOutputs;
  int64_t bytes = std::max(width, kSingle);
  if (TwoSided(w) && width < kSingle) bytes += width;
  if (w.trainable.lora_rank == 0) bytes += behind ? kSingle : width;
  return bytes;
}
int64_t NormElementBytes(const Workload& w) {
  return NormElementBytes(w, Widths(w).wide);
}

// Of the norms of a part of a block, with what each row has.
int64_t NormBytes(const Workload& w, int64_t rows) {
  const int64_t norms =
      w.architecture.norm_placement == NormPlacement::kBoth ? 2 : 1;
  return norms * rows *
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
  const bool key = KeepsInput(w, &LoraMatrices::key) ||
                   KeepsInput(w, &LoraMatrices::key_value_down);
  const bool value = KeepsInput(w, &LoraMatrices::value);
  if (Widths(w).autocast) {
    return (query ? queries : 0) + (key ? others : 0) + (value ? others : 0);
  }
  return query || key || value ? queries : 0;
}

// What is kept of scores: statistics of a row of flash attention; else
// probabilities, the mask, and what dropout or the cast made of them.
int64_t ScoreBytes(const Workload& w,
                   int64_t query_length,
                   int64_t key_length) {
  const Widths width(w);
  const int64_t rows = w.batch * w.architecture.heads * query_length;
  if (ScoresOnChip(w.stack.attention)) return rows * kSingle;
  const int64_t scores = rows * key_length;
  switch (RulesOf(w).block) {
    case BlockKernels::kByOperation: {
      const bool changed = width.mask > 0 || width.autocast;
      return scores * (width.wide + width.mask + (changed ? width.element : 0));
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

// One attention block and the residual and LayerNorm behind it.
int64_t AttentionBytes(const Workload& w,
                       int64_t query_length,
                       int64_t key_length,
                       bool cross) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  const int64_t h = a.hidden;
  const int64_t queries = w.batch * query_length;
  const int64_t keys = w.batch * key_length;
  int64_t bytes =
      ProjectionInputs(w, queries, cross ? keys : queries) * h * width.element;
  bytes += AdapterBytes(w, AdaptedOfAttention(w), queries, keys);
  // Split into heads.
  bytes +=
      (queries * a.query_width() + keys * (a.key_width() + a.value_width())) *
      width.element;
  bytes += LatentBytes(w, queries);
  if (a.query_key_norm != QueryKeyNorm::kNone) {
    // Of what a product gives, which is narrow under autocast, too.
    bytes += (queries * a.query_width() + keys * a.key_width()) *
             NormElementBytes(w, width.element);
  }

  if (!w.attention_checkpointing) {
    bytes += ScoreBytes(w, query_length, key_length);
  }
  if (KeepsInput(w, &LoraMatrices::output)) {
    bytes += queries * a.context_width() * width.element;  // context, merged
  }
  bytes += queries * h * width.mask;
  bytes += NormBytes(w, queries);
  return bytes;
}

// Bytes kept of a feed-forward over so many rows, without its input: what the
// activation took and gave; with a gate both products and theirs, and,
// operation by operation, the activation of the gate.
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
  return bytes;
}

// The same with what adapters beside its matrices keep.
int64_t AdaptedHiddenBytes(const Workload& w,
                           int64_t rows,
                           int64_t intermediate) {
  return HiddenBytes(w, rows, intermediate) +
         AdapterBytes(w, AdaptedOfFeedForward(w, intermediate), rows, rows);
}

int64_t ExpertBytes(const Workload& w, int64_t tokens) {
  const Architecture& a = w.architecture;
  const Widths width(w);
  const int64_t rows = tokens * a.experts_per_token;
  int64_t bytes = tokens * a.experts * kSingle;  // scores
  // Rows side by side, and what comes back of them before it is weighted.
  bytes += 2 * rows * a.hidden * width.element;
  bytes += AdaptedHiddenBytes(w, rows, a.expert_intermediate);
  if (a.shared_intermediate > 0) {
    bytes += AdaptedHiddenBytes(w, tokens, a.shared_intermediate) +
             tokens * a.hidden * width.element;
  }
  return bytes;
}

// How often what the feed-forward takes is kept as it comes: once, or under
// autocast a narrow copy for the product of a gate and one for that beside it.
// Experts that are routed to take copies of its rows, which ExpertBytes() has; the
// router, where it trains, and the shared experts take the rows themselves.
int64_t FeedForwardInputs(const Workload& w, bool experts) {
  const Architecture& a = w.architecture;
  if (experts && w.trainable.lora_rank > 0 && a.shared_intermediate == 0) {
    return 0;
  }
  const bool in = KeepsInput(w, &LoraMatrices::feed_forward_in);
  const bool gate = KeepsInput(w, &LoraMatrices::feed_forward_gate);
  const bool apart = Widths(w).autocast && a.gated && !a.joint_gate && !experts;
  if (apart) return (in ? 1 : 0) + (gate ? 1 : 0);
  return in || gate ? 1 : 0;
}

int64_t FeedForwardBytes(const Workload& w, int64_t tokens, bool experts) {
  const Widths width(w);
  const int64_t h = w.architecture.hidden;
  const int64_t i = w.architecture.intermediate;
  int64_t bytes =
      experts ? ExpertBytes(w, tokens) : AdaptedHiddenBytes(w, tokens, i);
  bytes += FeedForwardInputs(w, experts) * tokens * h * width.element;
  if (RulesOf(w).block == BlockKernels::kHandFused) {
    bytes += tokens * i * width.mask;
  }
  // Fairseq's translation models drop out the activation, too: its mask, and
  // what it made of the tensor.
  const bool apart = RulesOf(w).drops_activation_apart && TwoSided(w);
  if (apart && width.mask > 0) {
    bytes += tokens * i * (width.mask + width.element);
  }
  // Where the model does so what the next product takes is what dropout gives.
  const bool masked = apart || RulesOf(w).block == BlockKernels::kHandFused;
  if (w.architecture.drops_activation && !masked && !experts) {
    bytes += tokens * i * width.mask;
  }
  bytes += tokens * h * width.mask;
  bytes += NormBytes(w, tokens);
  return bytes;
}

// Rows at which the head gives logits, and how many classes each has.
struct Logits {
  int64_t rows = 0;
  int64_t classes = 0;
  bool vocabulary = false;
  int64_t heads = 1;  // that each give so many
};

Logits LogitsOf(const Workload& w) {
  const Architecture& a = w.architecture;
  const int64_t length = TwoSided(w) ? TargetLength(w) : w.sequence_length;
  switch (a.head) {
    case Head::kNone:
      return {};
    case Head::kSequenceClassification:
      return {w.batch, a.labels, false};
    case Head::kQuestionAnswering:
      return {w.batch * length, 2, false};
    case Head::kMaskedLanguageModel:
    case Head::kPreTraining:
    case Head::kCausalLanguageModel:
      return {
          w.batch * (w.predictions_per_sequence > 0 ? w.predictions_per_sequence
                                                    : length),
          a.vocabulary,
          true,
          1 + a.next_token_blocks};
  }
  ENSURE(false, "a head without logits");
}

int64_t HeadBytes(const Workload& w) {
  const Widths width(w);
  const Logits logits = LogitsOf(w);
  const Head head = w.architecture.head;
  if (head == Head::kCausalLanguageModel && !TwoSided(w)) {
    // The last norm's input, and the operand of the projection; with one more
    // in between that of it.
    const Architecture& a = w.architecture;
    const int64_t between = a.projects_embeddings() ? a.word_width() : 0;
    return w.tokens() * (a.hidden * (NormElementBytes(w) + width.element) +
                         between * width.element);
  }
  const bool transformed =
      (logits.vocabulary && head != Head::kCausalLanguageModel) ||
      (head == Head::kQuestionAnswering && w.architecture.head_norm);
  if (!transformed) return 0;
  // Dense, GELU, LayerNorm: three inputs and the operand of the projection.
  const int64_t made =
      logits.vocabulary ? w.architecture.word_width() : w.architecture.hidden;
  return logits.rows * (w.architecture.hidden * width.element +
                        made * (2 * width.element + width.wide) + kStatistics);
}

int64_t LongestQuery(const Workload& w) {
  return TwoSided(w) ? std::max(TargetLength(w), w.sequence_length)
                     : w.sequence_length;
}

// The biases of relative positions, or their gradients, which all blocks of a
// side add to: with each sequence's mask in them, operation by operation.
int64_t PositionBiasBytes(const Workload& w) {
  const Architecture& a = w.architecture;
  if (a.position_kind != PositionKind::kRelative) return 0;
  const int64_t length = LongestQuery(w);
  const bool masked = OperationByOperation(w.stack);
  return (masked ? w.batch : 1) * a.heads * length * length *
         (masked ? Widths(w).wide : Widths(w).element);
}

// Queries, keys and values, and scores beside their like where they leave the
// chip: what attention makes in a pass.
int64_t AttentionTransients(const Workload& w) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  const int64_t length = LongestQuery(w);
  const int64_t heads = w.batch * length *
                        (a.query_width() + a.key_width() + a.value_width()) *
                        width.element;
  const int64_t scores =
      ScoresOnChip(w.stack.attention)
          ? 0
          : 2 * w.batch * a.heads * length * length * width.wide;
  return heads + scores + PositionBiasBytes(w);
}

// Of the rows of all experts, to which so many tokens go, those that go through
// at once: of single experts, one after the other, those of the busiest.
int64_t RowsAtOnce(const Workload& w, int64_t tokens) {
  const Architecture& a = w.architecture;
  const int64_t rows = tokens * a.experts_per_token;
  if (RulesOf(w).experts == ExpertKernels::kGrouped) return rows;
  const auto even = static_cast<double>(CeilDivide(rows, a.experts));
  return std::min<int64_t>(tokens,
                           std::llround(std::ceil(w.load_factor * even)));
}

// Keys and values of grouped attention that single operations repeat, so that
// every head of the queries has its own (Transformers' repeat_kv).
int64_t RepeatedHeadBytes(const Workload& w, int64_t tokens) {
  const Architecture& a = w.architecture;
  if (a.latent() || !OperationByOperation(w.stack)) return 0;
  return tokens * (a.heads - a.key_heads()) *
         (a.query_head_size() + a.context_head_size()) * Widths(w).element;
}

// What a block that predicts one token further keeps besides what is of its
// block: the inputs of three norms, and of the product behind two of them.
int64_t NextTokenInputBytes(const Workload& w) {
  const Widths width(w);
  const int64_t tokens = w.batch * w.sequence_length;
  const int64_t h = w.architecture.hidden;
  return tokens * h * (3 * NormElementBytes(w) + 2 * width.element);
}

// What one block keeps once all of it is there.
int64_t WholeLayerBytes(const Workload& w, bool experts) {
  return AttentionBytes(w, w.sequence_length, w.sequence_length, false) +
         FeedForwardBytes(w, w.batch * w.sequence_length, experts) +
         WidenedBlockBytes(w);
}

// Of a block whose operations are computed again: its input, the results of its
// first, third, .. product, and attention's core.
int64_t KeptByOperations(const Workload& w) {
  const Architecture& a = w.architecture;
  const Widths width(w);
  const int64_t tokens = w.batch * w.sequence_length;
  const bool joint = RulesOf(w).joins_projections || a.joint_projection();
  // Behind queries, or all three, keys and values, the output projection.
  int64_t kept = a.query_width() + a.value_width();
  if (joint) kept += a.key_width();
  // Of both the next is the third of its row or the fifth: gate, or input, and
  // with a gate the last.
  kept += a.intermediate + (a.gated ? a.hidden : 0);
  int64_t bytes = tokens * (a.hidden * width.wide + kept * width.element);
  if (ScoresOnChip(w.stack.attention)) {
    bytes += tokens * a.context_width() * width.element +
             ScoreBytes(w, w.sequence_length, w.sequence_length);
  }
  return bytes;
}

// What is there besides of the one block that a backward pass is in, where
// parts of it are computed again.
int64_t PartsAnewBytes(const Workload& w) {
  if (w.operation_checkpointing) {
    return WholeLayerBytes(w, false) - KeptByOperations(w);
  }
  return w.attention_checkpointing
             ? ScoreBytes(w, w.sequence_length, w.sequence_length)
             : 0;
}

// What one block keeps for its backward pass, by its sort; 0: there is none.
struct BlockActivations {
  int64_t input = 0;  // of any that is computed again
  int64_t dense = 0;
  int64_t expert = 0;
  int64_t decoder = 0;
  int64_t next_token = 0;

  int64_t largest() const { return std::max({dense, expert, decoder}); }
};

BlockActivations BlockActivationsOf(const Workload& w) {
  const Architecture& a = w.architecture;
  const int64_t layers = LayersWithBackward(w);
  BlockActivations blocks;
  blocks.input = w.batch * w.sequence_length * a.hidden * Widths(w).wide;
  if (layers > a.expert_layers()) blocks.dense = LayerActivationBytes(w);
  if (std::min(layers, a.expert_layers()) > 0) {
    blocks.expert = LayerActivationBytes(w, /*experts=*/true);
  }
  if (TwoSided(w)) blocks.decoder = DecoderLayerActivationBytes(w);
  if (a.next_token_blocks > 0) {
    const bool again = w.gradient_checkpointing && w.checkpointed_blocks == 0;
    blocks.next_token =
        NextTokenInputBytes(w) +
        (again ? blocks.input : LayerActivationBytes(w, a.experts > 0));
  }
  return blocks;
}

// Blocks of each sort that keep what they keep, and those computed again, which
// are the lowest; those with experts are the upper ones.
struct KeptBlocks {
  int64_t again = 0;
  int64_t dense = 0;
  int64_t expert = 0;
};

KeptBlocks KeptBlocksOf(const Workload& w) {
  const int64_t layers = LayersWithBackward(w);
  KeptBlocks kept;
  kept.again = BlocksComputedAgain(w);
  kept.expert = std::min(layers - kept.again,
                         std::min(layers, w.architecture.expert_layers()));
  kept.dense = layers - kept.again - kept.expert;
  return kept;
}

// One block in full, with what it gives and the gradient of that, when it has
// run again.
int64_t BlockAnewBytes(const Workload& w, const BlockActivations& blocks) {
  const int64_t tokens = w.batch * w.sequence_length;
  const int64_t most = w.operation_checkpointing
                           ? WholeLayerBytes(w, false)
                           : blocks.largest() + PartsAnewBytes(w);
  return most + 2 * tokens * w.architecture.hidden * Widths(w).wide +
         RepeatedHeadBytes(w, tokens);
}

// What a block of the decoder of two sides keeps.
int64_t KeptByDecoder(const Workload& w, const BlockActivations& blocks) {
  return BlocksComputedAgain(w) > 0
             ? blocks.input / w.sequence_length * TargetLength(w)
             : blocks.decoder;
}

int64_t KeptByAll(const Workload& w, const BlockActivations& blocks) {
  const Architecture& a = w.architecture;
  const KeptBlocks kept = KeptBlocksOf(w);
  return kept.again * blocks.input + kept.dense * blocks.dense +
         kept.expert * blocks.expert +
         a.decoder_layers * KeptByDecoder(w, blocks) +
         a.next_token_blocks * blocks.next_token;
}

// What of the blocks' is on the device: all, or of two blocks, which are still
// on their way to the host.
int64_t BlocksOnDevice(const Workload& w, const BlockActivations& blocks) {
  const int64_t all = KeptByAll(w, blocks);
  if (!w.parallel.offload_activations) return all;
  const KeptBlocks kept = KeptBlocksOf(w);
  const int64_t one = std::max({kept.again > 0 ? blocks.input : 0,
                                kept.dense > 0 ? blocks.dense : 0,
                                kept.expert > 0 ? blocks.expert : 0,
                                KeptByDecoder(w, blocks),
                                blocks.next_token});
  return std::min(all, 2 * one);
}

// Inputs of the blocks above the lowest, and gradients of these, that stand
// until the backward pass ends. PyTorch's FSDP frees a frozen block once all of
// its inputs have their gradients and holds on to both until then; of a block
// that is computed again these are leaves of a graph, whose gradients
// accumulate (torch/distributed/fsdp/_runtime_utils.py,
// _register_post_backward_reshard_only_hook; reentrant checkpoints).
int64_t InputsOfFrozenBlocks(const Workload& w) {
  const bool frozen = w.trainable.lora_rank > 0;
  if (w.parallel.shard != Shard::kFsdp || !frozen) return 0;
  const int64_t above = std::max<int64_t>(0, BlocksComputedAgain(w) - 1);
  return 2 * above * w.tokens() * w.architecture.hidden * Widths(w).wide;
}

LowestBlockBytes LowestBlockOf(const Workload& w,
                               const BlockActivations& blocks) {
  const Architecture& a = w.architecture;
  const int64_t tokens = w.batch * w.sequence_length;
  const bool experts = a.expert_layers() == a.layers;
  LowestBlockBytes block;
  block.held = EmbeddingsTrain(w) ? EmbeddingBytes(w, tokens) : 0;
  block.held +=
      BlocksComputedAgain(w) > 0
          ? tokens * a.hidden * Widths(w).wide + BlockAnewBytes(w, blocks)
          : LayerActivationBytes(w, experts) + PartsAnewBytes(w);
  block.held += InputsOfFrozenBlocks(w);
  block.made = BlockGradientBytes(w, experts);
  return block;
}

}  // namespace

int64_t BytesOfWideResult(const Workload& w) { return Widths(w).wide; }

bool PredictsVocabulary(const Workload& w) { return LogitsOf(w).vocabulary; }

int64_t EmbeddingBytes(const Workload& w, int64_t tokens) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  int64_t tables = 1;
  if (a.table_rows() > 0) ++tables;
  if (a.token_types > 0) ++tables;
  int64_t bytes = tokens * tables * kIndex;
  if (a.embedding_layer_norm) {
    bytes += tokens * (a.embedding_width() * width.wide + kStatistics);
  }
  // What the product reads that widens them.
  if (a.projects_embeddings()) bytes += tokens * a.word_width() * width.element;
  return bytes + tokens * a.embedding_width() * width.mask;
}

int64_t LogitBytes(const Workload& w) {
  const Logits logits = LogitsOf(w);
  const int64_t rows = logits.heads * logits.rows;
  const int64_t kept = w.work == Work::kForward ? 1 : 2;
  // Eager causal models widen narrow logits and let these go: what stands at
  // once is widened logits, a copy of them without the last position or their
  // gradient, and, unless one kernel has them all, log-probabilities
  // (modeling_llama.py of Transformers 4.40).
  const bool widened = LossOf(w).shifts && kept == 2 &&
                       BytesPerElement(w.precision) < kSingle &&
                       w.architecture.head == Head::kCausalLanguageModel;
  const int64_t tensors = LossOf(w).fuses ? 2 : 3;
  if (widened && w.architecture.narrow_logits) {
    // One more, since logits stay; where the loss is wider, what they were
    // widened from, too. Seen in fms-acceleration's runs.
    const int64_t element = BytesPerElement(w.precision);
    const int64_t width = BytesOfLossLogit(w);
    return rows * logits.classes *
           ((tensors + 1) * width + (width > element ? element : 0));
  }
  if (widened) return tensors * rows * logits.classes * kSingle;
  if (LossOf(w).chunks && w.architecture.head == Head::kCausalLanguageModel) {
    // In place, with one fp32 copy; beside them the rows' own gradient.
    return LossChunk(w.architecture, logits.rows) * logits.classes *
               (BytesPerElement(w.precision) + kSingle) +
           rows * w.architecture.word_width() * BytesPerElement(w.precision);
  }
  if (LossOf(w).fuses && logits.vocabulary) {
    return rows * logits.classes * BytesPerElement(w.precision);
  }
  if (LossOf(w).keeps_row_sums && kept == 2) {
    // Beside them their gradient.
    return rows * logits.classes * 2 * BytesPerElement(w.precision);
  }
  return rows * logits.classes *
         (BytesPerElement(w.precision) + kept * kSingle);
}

int64_t BlockGradientBytes(const Workload& w, bool experts) {
  const Architecture& a = w.architecture;
  const int64_t tokens = w.batch * LongestQuery(w);
  const int64_t rows = experts ? tokens * a.experts_per_token : tokens;
  const int64_t at_once = experts ? RowsAtOnce(w, tokens) : rows;
  const int64_t width = experts ? a.expert_intermediate : a.intermediate;
  // Of the activation's result and what it was made of: two, with a gate three.
  // By then the result is gone, where it was kept for the matrix behind it.
  const int64_t made = (a.gated ? 3 : 2) -
                       (KeepsInput(w, &LoraMatrices::feed_forward_out) ? 1 : 0);
  // Those of attention come when the feed-forward's tensors are gone.
  return std::max(made * at_once * width * Widths(w).element,
                  AttentionTransients(w) - HiddenBytes(w, rows, width));
}

int64_t ForwardTransients(const Workload& w) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  const int64_t tokens = w.batch * LongestQuery(w);
  const int64_t inner =
      std::max(a.experts < 1 || a.dense_layers > 0 ? a.intermediate : 0,
               a.experts_per_token * a.expert_intermediate);
  // Of GELU that is written out: what it took, half of it, and what an operation
  // takes and gives.
  const int64_t feed_forward =
      WritesGeluOut(w) ? 4 * tokens * inner * width.wide
                       : (a.gated ? 3 : 2) * tokens * inner * width.element;
  const int64_t context = tokens * a.context_width() * width.element;
  return 2 * tokens * a.hidden * width.wide +
         std::max(AttentionTransients(w) + context,
                  PositionBiasBytes(w) + feed_forward);
}

ActivationBytes Activations(const Workload& w) {
  const int64_t source = w.batch * w.sequence_length;
  const int64_t target = w.batch * TargetLength(w);
  const BlockActivations blocks = BlockActivationsOf(w);
  ActivationBytes result;
  // Frozen embeddings keep nothing.
  result.kept = BlocksOnDevice(w, blocks);
  result.head = HeadBytes(w);
  if (EmbeddingsTrain(w)) {
    result.kept += EmbeddingBytes(w, source);
    if (TwoSided(w)) result.kept += EmbeddingBytes(w, target);
  }
  // The last block is computed again where all are.
  result.anew =
      AllBlocksComputedAgain(w) ? BlockAnewBytes(w, blocks) : PartsAnewBytes(w);
  result.lowest = LowestBlockOf(w, blocks);
  return result;
}

int64_t LayerActivationBytes(const Workload& w, bool experts) {
  return w.operation_checkpointing ? KeptByOperations(w)
                                   : WholeLayerBytes(w, experts);
}

int64_t KeptByBlock(const Workload& w, int64_t block) {
  const Architecture& a = w.architecture;
  const BlockActivations blocks = BlockActivationsOf(w);
  const int64_t frozen = w.trainable.frozen_layers;
  if (block < frozen) return 0;
  if (block >= a.layers + a.decoder_layers) return blocks.next_token;
  if (block >= a.layers) return KeptByDecoder(w, blocks);
  if (block < frozen + BlocksComputedAgain(w)) return blocks.input;
  return block >= a.layers - a.expert_layers() ? blocks.expert : blocks.dense;
}

int64_t KeptByBlocks(const Workload& w) {
  return KeptByAll(w, BlockActivationsOf(w));
}

int64_t LossChunk(const Architecture& a, int64_t rows) {
  const int64_t parts = CeilDivide(a.vocabulary, a.word_width());
  const int64_t least = CeilDivide(rows, parts);
  return std::min(
      rows, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(least))));
}

int64_t DecoderLayerActivationBytes(const Workload& w) {
  const int64_t target = TargetLength(w);
  return AttentionBytes(w, target, target, false) +
         AttentionBytes(w, target, w.sequence_length, true) +
         FeedForwardBytes(w, w.batch * target, false);
}

}  // namespace trainfare::model
