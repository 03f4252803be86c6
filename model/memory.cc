#include "model/memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "model/bisection.h"
#include "model/error.h"
#include "model/offload.h"
#include "model/optimizer_kernels.h"
#include "model/rounding.h"
#include "model/sharding.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model {
namespace {

constexpr int64_t kMask = 1;        // of a dropout mask's element
constexpr int64_t kIndex = 8;       // of a token id
constexpr int64_t kStatistics = 8;  // mean and deviation of a row, fp32

// Widths of what a stack keeps.
struct Widths {
  int64_t element;  // operands of matrix products
  int64_t wide;     // results of LayerNorm and softmax
  int64_t mask;     // 0 without dropout
  bool autocast;    // operands are narrow copies of wide tensors

  explicit Widths(const Workload& w)
      : element(BytesPerElement(w.precision)),
        wide(Autocasts(w) ? kSingle : element),
        mask(w.architecture.dropout > 0 ? kMask : 0),
        autocast(Autocasts(w)) {}
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

// X A of the adapter beside a matrix, kept for B's gradient.
int64_t AdapterBytes(const Workload& w,
                     int64_t tokens,
                     bool LoraMatrices::*matrix) {
  return w.trainable.lora.*matrix
             ? tokens * w.trainable.lora_rank * Widths(w).element
             : 0;
}

// What adapters in fp32 take, narrowed again for the product: of each a copy of
// its own.
int64_t AdapterInputBytes(const Workload& w,
                          int64_t tokens,
                          int64_t width,
                          bool LoraMatrices::*matrix) {
  return w.trainable.wide_adapters && w.trainable.lora.*matrix
             ? tokens * width * Widths(w).element
             : 0;
}

// Bytes kept of latent attention: what its two products take and their norms
// give.
int64_t LatentBytes(const Workload& w, int64_t tokens) {
  const Architecture& a = w.architecture;
  if (!a.latent()) return 0;
  const Widths width(w);
  // Keys are as many as queries; counted above as if each head had its own.
  return tokens *
         (2 * (a.latent_query + a.latent_key_value) + a.rotary_head_size) *
         width.element;
}

// What an RMSNorm of single operations keeps besides its input: its scaled form
// in fp32, and that input in fp32 where it is narrow.
int64_t NormTemporaries(const Workload& w, int64_t tokens) {
  const Architecture& a = w.architecture;
  if (a.norm != Norm::kRms || RulesOf(w).fuses_norm) return 0;
  const int64_t copies = Widths(w).wide < kSingle ? 2 : 1;
  return tokens * a.hidden * copies * kSingle;
}

// Rows of `hidden` that the three projections keep as their inputs, from
// `queries` and, for keys and values, `others`: one tensor, or under autocast a
// narrow copy for each. The encoder's output, which cross-attention reads, is
// kept once for all layers when it needs no copy.
int64_t ProjectionInputs(const Workload& w, int64_t queries, int64_t others) {
  const bool query = KeepsInput(w, &LoraMatrices::query);
  const bool key = KeepsInput(w, &LoraMatrices::key);
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
  bytes += AdapterBytes(w, queries, &LoraMatrices::query) +
           AdapterBytes(w, keys, &LoraMatrices::key) +
           AdapterBytes(w, keys, &LoraMatrices::value) +
           AdapterBytes(w, queries, &LoraMatrices::output);
  bytes +=
      AdapterInputBytes(w, queries, h, &LoraMatrices::query) +
      AdapterInputBytes(w, keys, h, &LoraMatrices::key) +
      AdapterInputBytes(w, keys, h, &LoraMatrices::value) +
      AdapterInputBytes(w, queries, a.context_width(), &LoraMatrices::output);
  // Split into heads.
  bytes +=
      (queries * a.query_width() + keys * (a.key_width() + a.value_width())) *
      width.element;
  bytes += LatentBytes(w, queries) + NormTemporaries(w, queries);
  if (a.query_key_norm != QueryKeyNorm::kNone) {  // their inputs
    bytes += (queries * a.query_width() + keys * a.key_width()) * width.element;
  }

  if (!w.attention_checkpointing) {
    bytes += ScoreBytes(w, query_length, key_length);
  }
  if (KeepsInput(w, &LoraMatrices::output)) {
    bytes += queries * a.context_width() * width.element;  // context, merged
  }
  bytes += queries * h * width.mask;
  bytes += queries * (h * width.wide + kStatistics);  // input of LayerNorm
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
  return bytes;
}

int64_t ExpertBytes(const Workload& w, int64_t tokens) {
  const Architecture& a = w.architecture;
  const Widths width(w);
  const int64_t rows = tokens * a.experts_per_token;
  int64_t bytes = tokens * a.experts * kSingle;  // scores
  // Rows side by side, and what comes back of them before it is weighted.
  bytes += 2 * rows * a.hidden * width.element;
  bytes += HiddenBytes(w, rows, a.expert_intermediate);
  if (a.shared_intermediate > 0) {
    bytes += HiddenBytes(w, tokens, a.shared_intermediate) +
             tokens * a.hidden * width.element;
  }
  return bytes;
}

int64_t FeedForwardBytes(const Workload& w, int64_t tokens, bool experts) {
  const Widths width(w);
  const int64_t h = w.architecture.hidden;
  const int64_t i = w.architecture.intermediate;
  int64_t bytes = experts ? ExpertBytes(w, tokens) : HiddenBytes(w, tokens, i);
  if (KeepsInput(w, &LoraMatrices::feed_forward_in) ||
      KeepsInput(w, &LoraMatrices::feed_forward_gate)) {
    bytes += tokens * h * width.element;
  }
  bytes += NormTemporaries(w, tokens);
  bytes += AdapterBytes(w, tokens, &LoraMatrices::feed_forward_gate) +
           AdapterBytes(w, tokens, &LoraMatrices::feed_forward_in) +
           AdapterBytes(w, tokens, &LoraMatrices::feed_forward_out);
  bytes += AdapterInputBytes(w, tokens, h, &LoraMatrices::feed_forward_gate) +
           AdapterInputBytes(w, tokens, h, &LoraMatrices::feed_forward_in) +
           AdapterInputBytes(w, tokens, i, &LoraMatrices::feed_forward_out);
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
  bytes += tokens * (h * width.wide + kStatistics);
  return bytes;
}

int64_t EmbeddingBytes(const Workload& w, int64_t tokens) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  int64_t tables = 1;
  if (a.table_rows() > 0) ++tables;
  if (a.token_types > 0) ++tables;
  int64_t bytes = tokens * tables * kIndex;
  if (a.embedding_layer_norm) {
    bytes += tokens * (a.hidden * width.wide + kStatistics);
  }
  return bytes + tokens * a.hidden * width.mask;
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
  const bool transformed =
      (logits.vocabulary && head != Head::kCausalLanguageModel) ||
      (head == Head::kQuestionAnswering && w.architecture.head_norm);
  if (!transformed) return 0;
  // Dense, GELU, LayerNorm: three inputs and the operand of the projection.
  return logits.rows *
         (w.architecture.hidden * (3 * width.element + width.wide) +
          kStatistics);
}

// Logits, their log-probabilities and, in training, the gradient, in fp32.
int64_t LogitBytes(const Workload& w) {
  const Logits logits = LogitsOf(w);
  const int64_t rows = logits.heads * logits.rows;
  const int64_t kept = w.work == Work::kForward ? 1 : 2;
  // Eager causal models widen narrow logits and let these go: what stands at
  // once is widened logits, a copy of them without the last position or their
  // gradient, and log-probabilities (modeling_llama.py of Transformers 4.40).
  const bool widened = LossOf(w).shifts && kept == 2 &&
                       BytesPerElement(w.precision) < kSingle &&
                       w.architecture.head == Head::kCausalLanguageModel;
  if (widened) return 3 * rows * logits.classes * kSingle;
  if (LossOf(w).chunks && w.architecture.head == Head::kCausalLanguageModel) {
    // In place, with one fp32 copy; beside them the rows' own gradient.
    return LossChunk(w.architecture, logits.rows) * logits.classes *
               (BytesPerElement(w.precision) + kSingle) +
           rows * w.architecture.hidden * BytesPerElement(w.precision);
  }
  if (LossOf(w).fuses && logits.vocabulary) {
    return rows * logits.classes * BytesPerElement(w.precision);
  }
  return rows * logits.classes *
         (BytesPerElement(w.precision) + kept * kSingle);
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

// Tensors of the one block that a pass is in: the larger of attention, with
// `head_tensors` split into heads, and feed-forward.
int64_t BlockTransients(const Workload& w, int64_t head_tensors) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  const int64_t length = LongestQuery(w);
  const int64_t tokens = w.batch * length;
  const int64_t residual = 2 * tokens * a.hidden * width.wide;
  // Queries, keys and values, and as far as four the context.
  const int64_t widths = a.query_width() + a.key_width() + a.value_width() +
                         (head_tensors > 3 ? a.context_width() : 0);
  const int64_t heads = tokens * widths * width.element;
  const int64_t scores =
      ScoresOnChip(w.stack.attention)
          ? 0
          : 2 * w.batch * a.heads * length * length * width.wide;
  const int64_t inner =
      std::max(a.experts < 1 || a.dense_layers > 0 ? a.intermediate : 0,
               a.experts_per_token * a.expert_intermediate);
  const int64_t feed_forward =
      (a.gated ? 3 : 2) * tokens * inner * width.element;
  return residual + PositionBiasBytes(w) +
         std::max(heads + scores, feed_forward);
}

// What a backward pass holds besides what was kept for it: gradients of
// queries, keys and values.
int64_t BackwardTransients(const Workload& w) { return BlockTransients(w, 3); }

// A forward pass that keeps nothing: queries, keys, values and context.
int64_t ForwardTransients(const Workload& w) { return BlockTransients(w, 4); }

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
  return tokens * (3 * h * width.wide + 2 * h * width.element) +
         3 * NormTemporaries(w, tokens);
}

// What one block keeps once all of it is there.
int64_t WholeLayerBytes(const Workload& w, bool experts) {
  return AttentionBytes(w, w.sequence_length, w.sequence_length, false) +
         FeedForwardBytes(w, w.batch * w.sequence_length, experts);
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

// Activations while the head is at work: those that the backward pass finds,
// and of the block that it computes anew.
struct ActivationBytes {
  int64_t kept = 0;
  int64_t anew = 0;
};

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

ActivationBytes Activations(const Workload& w) {
  const Architecture& a = w.architecture;
  const int64_t source = w.batch * w.sequence_length;
  const int64_t target = w.batch * TargetLength(w);
  const BlockActivations blocks = BlockActivationsOf(w);
  ActivationBytes result;
  // Frozen embeddings keep nothing.
  result.kept = HeadBytes(w) + BlocksOnDevice(w, blocks) + PartsAnewBytes(w);
  if (w.trainable.everything()) {
    result.kept += EmbeddingBytes(w, source);
    if (TwoSided(w)) result.kept += EmbeddingBytes(w, target);
  }
  if (BlocksComputedAgain(w) > 0) {
    // One block in full, with what it gives, while it runs again.
    const int64_t whole =
        w.operation_checkpointing ? WholeLayerBytes(w, false) : 0;
    result.anew = std::max(blocks.largest(), whole) +
                  source * a.hidden * Widths(w).wide +
                  RepeatedHeadBytes(w, source);
  }
  return result;
}

// The lowest block that has a backward pass, while it is at work.
struct LowestBlockBytes {
  int64_t held = 0;  // its activations, with what stands below it
  int64_t made = 0;  // gradients of its insides
};

LowestBlockBytes LowestBlockOf(const Workload& w) {
  const Architecture& a = w.architecture;
  const int64_t tokens = w.batch * w.sequence_length;
  const bool experts = a.expert_layers() == a.layers;
  LowestBlockBytes block;
  block.held = w.trainable.everything() ? EmbeddingBytes(w, tokens) : 0;
  block.held += BlocksComputedAgain(w) > 0
                    ? tokens * a.hidden * Widths(w).wide + Activations(w).anew
                    : LayerActivationBytes(w, experts) + PartsAnewBytes(w);
  // Two of the feed-forward's width, or those of attention, which come when the
  // feed-forward's tensors are gone.
  const int64_t rows = experts ? tokens * a.experts_per_token : tokens;
  const int64_t width = experts ? a.expert_intermediate : a.intermediate;
  block.made = std::max(2 * rows * width * Widths(w).element,
                        BackwardTransients(w) - HiddenBytes(w, rows, width));
  return block;
}

// Tensors as large as the parameters that an update makes and drops, out of
// `parameters` elements: a multi-tensor update holds whole lists of them, a
// for-loop those of its largest tensor, a fused one none.
int64_t OptimizerTemporaries(const Workload& w, int64_t parameters) {
  if (w.optimizer.state_bits > 0) return 0;  // one kernel a tensor
  int64_t lists = 0;
  switch (w.optimizer.kind) {
    case OptimizerKind::kNone:
      return 0;
    case OptimizerKind::kSgd:
      break;  // updates in place
    case OptimizerKind::kAdamW:
    case OptimizerKind::kLamb:
    case OptimizerKind::kBertAdam:
      lists = 1;  // the root of the second moment
      break;
    case OptimizerKind::kLion:
      lists = 1;  // the update, of which the sign counts
      break;
    case OptimizerKind::kAdan:
      lists = 2;  // and the difference of two gradients
      break;
  }
  switch (w.optimizer.implementation) {
    case OptimizerImplementation::kForLoop: {
      int64_t largest = 0;
      for (const ParameterTensor& tensor : TrainableTensorsOf(w)) {
        largest = std::max(largest, tensor.elements);
      }
      // And its gradient in fp32.
      if (MastersInUpdate(w)) ++lists;
      return lists * ShareOf(largest, w.parallel) * BytesOfState(w);
    }
    case OptimizerImplementation::kMultiTensor:
      return lists * parameters * BytesOfState(w);
    case OptimizerImplementation::kFused:
      return 0;
  }
  ENSURE(false, "an implementation without temporaries");
}

// Bytes of a parameter as the passes take it. LightSeq2 trains narrow ones
// without fp32 masters: 2 + 2 bytes a parameter
// (published/s003_mixed_precision_bytes_per_parameter); others that keep
// weights narrow have masters; the rest casts fp32 weights.
int64_t ParameterWidth(const Workload& w) {
  return NarrowWeights(w) ? BytesPerElement(w.precision) : kSingle;
}

// What ranks that share the state hold besides their shares.
struct Gathered {
  int64_t parameters = 0;  // in whole, while blocks go by
  int64_t at_end = 0;      // of these, when the backward pass ends
  int64_t gradients = 0;   // of one unit, before they are summed
  int64_t root_gradients = 0;
  int64_t buffers = 0;  // of the collectives
  int64_t buffers_at_end = 0;
};

// The root and two blocks, the one at work and the next, in whole; without
// resharding all blocks. Beside them what one block is gathered into and its
// gradients are copied to. Source: PyTorch FSDP2 (fully_shard), and for ranks
// that hold all parameters DeepSpeed's bucket of gradients.
Gathered GatheredOf(const Workload& w) {
  Gathered held;
  if (!DividesState(w.parallel)) return held;
  if (!ShardsParameters(w.parallel)) {
    held.buffers = held.buffers_at_end =
        std::min(TrainableParameters(w), kReduceBucket) * GradientWidth(w);
    return held;
  }
  const ShardUnits units = ShardUnitsOf(w);
  const int64_t root = GatheredBytes(w, units.root);
  int64_t blocks = 0;
  int64_t block = 0;
  int64_t summed = 0;
  int64_t trained = 0;
  int64_t gathered = 0;
  const ShardUnit* last = nullptr;
  for (const ShardUnit& unit : units.blocks) {
    // Most blocks are as the one before.
    if (last == nullptr || unit.elements != last->elements ||
        unit.trained != last->trained || unit.quantised != last->quantised) {
      gathered = GatheredBytes(w, unit);
      block = std::max(block, gathered);
      summed = std::max(summed, SummedBytes(w, unit));
      trained = std::max(trained, unit.trained);
      last = &unit;
    }
    blocks += gathered;
  }
  const int64_t two = std::min(blocks, 2 * block);
  held.parameters = root + (w.parallel.reshard_after_forward ? two : blocks);
  held.at_end = root;
  const int64_t width = ParameterWidth(w);
  held.gradients = trained * width;
  held.root_gradients = units.root.trained * width;
  // One rank alone has what comes from its host where it is used.
  held.buffers = (ShardsOf(w.parallel) > 1 ? block : 0) + summed;
  held.buffers_at_end = SummedBytes(w, units.root);
  return held;
}

Bytes<> Size(int64_t bytes) { return Byte(static_cast<double>(bytes)); }

// What a moment holds, before it is known to be the worst one. Terms that are
// zero, or less by a rounded share, are none.
struct Moment {
  MemoryMoment moment = MemoryMoment::kForward;
  std::array<MemoryTerm, 14> terms = {};

  Bytes<> total() const {
    Bytes<> sum;
    for (const MemoryTerm& term : terms) {
      if (term.size.base() > 0) sum += term.size;
    }
    return sum;
  }
  MemoryEstimate Estimate() const {
    MemoryEstimate estimate;
    estimate.moment = moment;
    estimate.terms.reserve(terms.size());
    for (const MemoryTerm& term : terms) {
      if (term.size.base() > 0) estimate.terms.push_back(term);
    }
    return estimate;
  }
};

// What one rank holds, moment by moment.
class RankMemory {
 public:
  RankMemory(const Workload& w, const MemorySurroundings& surroundings)
      : w_(w),
        surroundings_(surroundings),
        shares_(DividesState(w.parallel)),
        divided_(shares_ && ShardsParameters(w.parallel)),
        updates_(w.work == Work::kTraining &&
                 w.parallel.offload == Offload::kNone),
        gathered_(GatheredOf(w)),
        elements_(TotalParameters(w.architecture) + AdapterParameters(w)),
        quantised_(w.trainable.base_bits > 0
                       ? BlockMatrixElements(w.architecture)
                       : 0),
        trained_(w.trainable.everything() ? elements_ : TrainableParameters(w)),
        updated_(Share(trained_, shares_)) {}

  Moment ForwardPass() const;
  Moment BackwardStart() const;
  Moment LowestBlock() const;
  Moment BackwardEnd() const;
  Moment OptimizerStep() const;

 private:
  // Elements that this rank has of so many, where ranks divide them.
  int64_t Share(int64_t elements, bool divided) const {
    return divided ? ShareOf(elements, w_.parallel) : elements;
  }
  // What comes and goes while a backward pass runs.
  struct Passing {
    int64_t gradients;
    int64_t activations;
    int64_t logits;
    int64_t transients;
  };
  Moment DuringBackward(MemoryMoment moment, const Passing& passing) const;
  int64_t ParameterBytes() const;
  int64_t WeightCopyBytes() const;
  int64_t GradientBytes() const;
  int64_t GradientsAboveLowest() const;
  // What is sent to other ranks, and what of it stands to the end.
  int64_t BucketBytes() const;
  int64_t LastBucketBytes() const {
    return shares_ ? gathered_.buffers_at_end : BucketBytes();
  }
  int64_t StateBytes() const {
    if (!updates_) return 0;
    return StateBytesOf(
        w_, OperationsOf(w_.optimizer.kind).state_tensors * updated_);
  }
  int64_t MasterBytes() const {
    return updates_ && KeepsMasters(w_) ? updated_ * kSingle : 0;
  }
  // Fairseq's gradients in fp32 are beside the masters all the time.
  int64_t UnscaledBytes() const {
    return RulesOf(w_).flat_masters ? MasterBytes() : 0;
  }
  // All gradients in fp32 at once, unless the update widens them itself.
  int64_t WidenedBytes() const {
    const bool widens =
        MastersInUpdate(w_) &&
        w_.optimizer.implementation != OptimizerImplementation::kMultiTensor;
    return MastersAreShard(w_) || widens ? 0 : MasterBytes();
  }

  const Workload& w_;
  const MemorySurroundings& surroundings_;
  bool shares_;   // the state is divided over ranks, or with the host
  bool divided_;  // and so are the parameters
  bool updates_;  // here, not on the host
  Gathered gathered_;
  // Elements: of all parameters, adapters included; of these, those of matrices
  // beside adapters that are kept in few bits; those that train, and of them
  // those that this rank updates.
  int64_t elements_;
  int64_t quantised_;
  int64_t trained_;
  int64_t updated_;
};

// What trains is kept as masters where these are the shard.
int64_t RankMemory::ParameterBytes() const {
  if (w_.parallel.offload == Offload::kParameters) return 0;
  const int64_t as_masters = MastersAreShard(w_) && updates_ ? trained_ : 0;
  return Share(elements_ - as_masters - quantised_, divided_) *
             ParameterWidth(w_) +
         QuantisedBytes(Share(quantised_, divided_), w_.trainable.base_bits);
}

// Narrow copies of fp32 weights: of what is gathered, where that is less than
// all.
int64_t RankMemory::WeightCopyBytes() const {
  if (!CastsWeights(w_)) return 0;
  const int64_t copied =
      divided_ ? gathered_.parameters / kSingle : elements_ - quantised_;
  return copied * BytesPerElement(w_.precision);
}

int64_t RankMemory::GradientBytes() const {
  if (SendsGradientsToHost(w_.parallel)) return 0;
  return Share(trained_, shares_ && ShardsGradients(w_.parallel)) *
         (shares_ ? GradientWidth(w_) : ParameterWidth(w_));
}

// Those of all but the lowest block that has a backward pass, of which each has
// an even share, and but the word table, unless the logits gave it one.
int64_t RankMemory::GradientsAboveLowest() const {
  const Architecture& a = w_.architecture;
  const int64_t blocks =
      LayersWithBackward(w_) + a.decoder_layers + a.next_token_blocks;
  if (trained_ == 0 || blocks == 0) return 0;
  int64_t above = trained_ / blocks * (blocks - 1);
  if (w_.trainable.everything()) {
    const bool tied = LogitsOf(w_).vocabulary && !a.untied_output;
    above = trained_ - BlockMatrixElements(a) / blocks -
            (tied ? 0 : a.vocabulary * a.hidden);
  }
  return static_cast<int64_t>(static_cast<double>(GradientBytes()) *
                              static_cast<double>(above) /
                              static_cast<double>(trained_));
}

int64_t RankMemory::BucketBytes() const {
  if (shares_) return gathered_.buffers;
  return surroundings_.communication_buckets ? GradientBytes() : 0;
}

Moment RankMemory::ForwardPass() const {
  return {MemoryMoment::kForward,
          {{{"parameters", Size(ParameterBytes())},
            {"gathered parameters", Size(gathered_.parameters)},
            {"weight copies", Size(WeightCopyBytes())},
            {"activations", Size(ForwardTransients(w_))},
            {"logits", Size(LogitBytes(w_))},
            {"workspace", surroundings_.workspace},
            {"framework context", surroundings_.context}}}};
}

Moment RankMemory::BackwardStart() const {
  // A first micro-batch makes its gradients layer by layer, while activations
  // go; a later one adds to gradients that are already there, and so do
  // buckets that stand from the beginning.
  const bool standing =
      w_.accumulation > 1 || (surroundings_.communication_buckets && !shares_);
  // Where the last block is computed again the logits are gone by then, so that
  // one or the other is the peak.
  const ActivationBytes activations = Activations(w_);
  int64_t logits = LogitBytes(w_);
  int64_t transients = BackwardTransients(w_);
  int64_t held = activations.kept;
  const int64_t again = BlocksComputedAgain(w_);
  if (again > 0 && again == LayersWithBackward(w_)) {
    if (logits > activations.anew + transients) {
      transients = 0;
    } else {
      held += activations.anew;
      logits = 0;
    }
  }
  return DuringBackward(
      MemoryMoment::kBackwardStart,
      {standing ? GradientBytes() : 0, held, logits, transients});
}

// Gradients come as activations go: what both hold together is most where one
// of them is whole.
Moment RankMemory::LowestBlock() const {
  const LowestBlockBytes block = LowestBlockOf(w_);
  return DuringBackward(MemoryMoment::kLowestBlock,
                        {GradientsAboveLowest(), block.held, 0, block.made});
}

Moment RankMemory::DuringBackward(MemoryMoment moment,
                                  const Passing& passing) const {
  return {moment,
          {{{"parameters", Size(ParameterBytes())},
            {"gathered parameters", Size(gathered_.parameters)},
            {"weight copies", Size(WeightCopyBytes())},
            {"gradients", Size(passing.gradients)},
            {"gathered gradients", Size(gathered_.gradients)},
            {"communication buckets", Size(BucketBytes())},
            {"master weights", Size(MasterBytes())},
            {"unscaled gradients", Size(UnscaledBytes())},
            {"optimizer state", Size(StateBytes())},
            {"activations", Size(passing.activations)},
            {"logits", Size(passing.logits)},
            {"backward transients", Size(passing.transients)},
            {"workspace", surroundings_.workspace},
            {"framework context", surroundings_.context}}}};
}

Moment RankMemory::BackwardEnd() const {
  const Architecture& a = w_.architecture;
  const bool everything = w_.trainable.everything();
  // Sums of a divided table are of its share.
  const bool whole_table = w_.accumulation > 1 && everything && !divided_;
  return {
      MemoryMoment::kBackwardEnd,
      {{{"parameters", Size(ParameterBytes())},
        {"gathered parameters", Size(gathered_.at_end)},
        {"gradients", Size(GradientBytes())},
        {"gathered gradients", Size(gathered_.root_gradients)},
        {"communication buckets", Size(LastBucketBytes())},
        {"master weights", Size(MasterBytes())},
        {"unscaled gradients", Size(UnscaledBytes())},
        {"optimizer state", Size(StateBytes())},
        {"activations", Size(everything ? EmbeddingBytes(w_, w_.tokens()) : 0)},
        {"embedding gradient",
         Size(whole_table ? a.vocabulary * a.hidden * kSingle : 0)},
        {"backward transients",
         Size(2 * w_.tokens() * a.hidden * Widths(w_).wide)},
        {"workspace", surroundings_.workspace},
        {"framework context", surroundings_.context}}}};
}

Moment RankMemory::OptimizerStep() const {
  const int64_t temporaries = updates_ ? OptimizerTemporaries(w_, updated_) : 0;
  return {MemoryMoment::kOptimizerStep,
          {{{"parameters", Size(ParameterBytes())},
            {"gradients", Size(GradientBytes())},
            {"communication buckets", Size(divided_ ? 0 : BucketBytes())},
            {"master weights", Size(MasterBytes())},
            {"optimizer state", Size(StateBytes())},
            {"unscaled gradients", Size(WidenedBytes())},
            {"optimizer temporaries", Size(temporaries)},
            {"workspace", surroundings_.workspace},
            {"framework context", surroundings_.context}}}};
}

}  // namespace

Bytes<> MemoryEstimate::total() const {
  Bytes<> sum;
  for (const MemoryTerm& term : terms) sum += term.size;
  return sum;
}

Bytes<> MemoryEstimate::Of(std::string_view name) const {
  Bytes<> sum;
  for (const MemoryTerm& term : terms) {
    if (term.name == name) sum += term.size;
  }
  return sum;
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
  const int64_t parts = CeilDivide(a.vocabulary, a.hidden);
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

MemoryEstimate EstimateMemory(const Workload& w,
                              const MemorySurroundings& surroundings) {
  const RankMemory rank(w, surroundings);
  if (w.work == Work::kForward) return rank.ForwardPass().Estimate();
  const std::array moments = {rank.BackwardStart(),
                              rank.LowestBlock(),
                              rank.BackwardEnd(),
                              rank.OptimizerStep()};
  return std::max_element(moments.begin(),
                          moments.end(),
                          [](const Moment& x, const Moment& y) {
                            return x.total() < y.total();
                          })
      ->Estimate();
}

std::optional<int64_t> LargestBatch(const Workload& workload,
                                    const MemorySurroundings& surroundings,
                                    Bytes<> capacity) {
  const auto fits = [&](int64_t batch) {
    Workload trial = workload;
    trial.batch = batch;
    return EstimateMemory(trial, surroundings).total() <= capacity;
  };
  if (!fits(1)) return std::nullopt;
  // The estimate never falls with the batch: double, then halve the gap.
  int64_t low = 1;
  int64_t high = 2;
  constexpr int64_t kFarTooLarge = int64_t{1} << 24;
  while (high < kFarTooLarge && fits(high)) {
    low = high;
    high *= 2;
  }
  return LargestThat(low, high, fits);
}

}  // namespace trainfare::model
