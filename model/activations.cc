#include "model/activations.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "model/element_widths.h"
#include "model/internal/block_activations.h"
#include "model/internal/passes/blocks.h"
#include "model/logits.h"
#include "model/rounding.h"
#include "model/stack_rules.h"
#include "model/trainable.h"
#include "model/transients.h"

namespace trainfare::model {
namespace {

using internal::AttentionBytes;
using internal::ConvolutionBytes;
using internal::DeltaRuleBytes;
using internal::FeedForwardBytes;
using internal::KeepsInput;
using internal::KeptProductBytes;
using internal::kStatistics;
using internal::LayerInputBytes;
using internal::NormElementBytes;
using internal::RepeatedHeadBytes;
using internal::ScoreBytes;
using internal::StateSpaceBytes;

// So many bytes of a pass over all of a rank's blocks, as often as it keeps them
// for passes under way.
int64_t UnderWay(const Workload& w, int64_t bytes) {
  return CeilDivide(bytes * w.part.passes_kept, w.part.chunks);
}

int64_t HeadBytes(const Workload& w) {
  const Widths width(w);
  const Logits logits = LogitsOf(w);
  const Head head = w.architecture.head;
  if (head == Head::kCausalLanguageModel && !w.architecture.two_sided()) {
    // The last norm's input, and the operand of the projection; with one more
    // in between that of it.
    const Architecture& a = w.architecture;
    const int64_t between = a.projects_embeddings() ? a.word_width() : 0;
    // Rows of unit length stand as long as the logits' gradient needs them.
    const int64_t rows =
        a.unit_output_rows ? a.vocabulary * a.word_width() * width.element : 0;
    return w.part.OfTokens(w.tokens()) *
               (a.hidden * (NormElementBytes(w) + width.element) +
                between * width.element) +
           rows;
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

// What a block that predicts one token further keeps besides what is of its
// block: the inputs of three norms, and of the product behind two of them.
int64_t NextTokenInputBytes(const Workload& w) {
  const Widths width(w);
  const int64_t tokens = w.tokens();
  const int64_t h = w.architecture.hidden;
  return tokens * h * (3 * NormElementBytes(w) + 2 * width.element);
}

// What one block keeps once all of it is there.
int64_t WholeLayerBytes(const Workload& w, const BlockParts& parts) {
  int64_t bytes = WidenedBlockBytes(w);
  if (parts.mixer == Mixer::kAttention) {
    bytes += AttentionBytes(WorkloadOfParts(w, parts).get(),
                            w.sequence_length,
                            w.sequence_length,
                            false);
  } else if (parts.mixer == Mixer::kStateSpace) {
    bytes += StateSpaceBytes(w, w.tokens());
  } else if (parts.mixer == Mixer::kDeltaRule) {
    bytes += DeltaRuleBytes(w, w.tokens());
  } else if (parts.mixer == Mixer::kConvolution) {
    bytes += ConvolutionBytes(w, w.tokens());
  }
  if (parts.feed_forward != FeedForwardKind::kNone) {
    bytes += FeedForwardBytes(
        WorkloadOfParts(w, parts).get(), w.tokens(), parts.experts());
  }
  return bytes + LayerInputBytes(w, w.tokens());
}

// Of a block whose operations are computed again: its input, and the results of
// products and of attention's core.
int64_t KeptByOperations(const Workload& w, const BlockParts& parts) {
  const Architecture& a = w.architecture;
  const Widths width(w);
  const int64_t tokens = w.tokens();
  int64_t bytes = w.part.OfTokens(w.tokens()) * a.hidden * width.wide +
                  KeptProductBytes(w, parts);
  if (ScoresOnChip(w.stack.attention)) {
    const WorkloadOfParts of(w, parts);
    bytes += tokens * of.get().architecture.context_width() * width.element +
             ScoreBytes(w, w.sequence_length, w.key_length());
  }
  return bytes;
}

// What is there besides of the one block that a backward pass is in, where
// parts of it are computed again. What was kept goes as it is taken.
int64_t PartsAnewBytes(const Workload& w, const BlockParts& parts) {
  if (w.operation_checkpointing) {
    return std::max<int64_t>(
        0, WholeLayerBytes(w, parts) - KeptByOperations(w, parts));
  }
  return w.attention_checkpointing && parts.mixer == Mixer::kAttention
             ? ScoreBytes(WorkloadOfParts(w, parts).get(),
                          w.sequence_length,
                          w.key_length())
             : 0;
}

// What one block of such parts keeps for its backward pass.
struct SortActivations {
  BlockParts parts;
  int64_t bytes = 0;
};
// The same of every sort that has one; 0: there is none.
struct BlockActivations {
  int64_t input = 0;  // of any that is computed again
  std::vector<SortActivations> sorts;
  int64_t decoder = 0;
  int64_t next_token = 0;

  std::optional<int64_t> Find(const BlockParts& parts) const {
    for (const SortActivations& sort : sorts) {
      if (sort.parts == parts) return sort.bytes;
    }
    return std::nullopt;
  }
  int64_t Of(const BlockParts& parts) const { return Find(parts).value_or(0); }
};

BlockActivations BlockActivationsOf(const Workload& w,
                                    const BlockSorts& sorts) {
  const Architecture& a = w.architecture;
  BlockActivations blocks;
  blocks.input = w.part.OfTokens(w.tokens()) * a.hidden * Widths(w).wide;
  blocks.sorts.reserve(sorts.all.size());
  for (const BlocksAlike& sort : sorts.all) {
    blocks.sorts.push_back({sort.parts, LayerActivationBytes(w, sort.parts)});
  }
  if (w.architecture.two_sided())
    blocks.decoder = DecoderLayerActivationBytes(w);
  if (a.next_token_blocks > 0) {
    const bool again = w.gradient_checkpointing && w.checkpointed_blocks == 0;
    blocks.next_token =
        NextTokenInputBytes(w) +
        (again ? blocks.input : LayerActivationBytes(w, a.experts > 0));
  }
  return blocks;
}

// One block in full, with what it gives and the gradient of that, when it has
// run again.
int64_t BlockAnewBytes(const Workload& w, const BlockActivations& blocks) {
  const int64_t tokens = w.tokens();
  // Behind scores that leave the chip it keeps repeated heads itself.
  const auto repeated = [&](const Workload& of) {
    return ScoresOnChip(w.stack.attention) ? RepeatedHeadBytes(of, tokens) : 0;
  };
  int64_t most = blocks.decoder + repeated(w);
  for (const SortActivations& sort : blocks.sorts) {
    most = std::max(most,
                    sort.bytes + PartsAnewBytes(w, sort.parts) +
                        repeated(WorkloadOfParts(w, sort.parts).get()));
  }
  return most + 2 * tokens * w.architecture.hidden * Widths(w).wide;
}

// What a block of the decoder of two sides keeps.
int64_t KeptByDecoder(const Workload& w, const BlockActivations& blocks) {
  return BlocksComputedAgain(w) > 0
             ? blocks.input / w.sequence_length * w.decoder_length()
             : blocks.decoder;
}

// Keys and values that blocks above attend by, one of each sort, of blocks that
// are computed again: they stay.
int64_t SharedKeyBytes(const Workload& w, int64_t again) {
  const Architecture& a = w.architecture;
  const int64_t below = a.layers - a.shared_key_value_layers;
  if (below == a.layers || w.trainable.frozen_layers + again < below) return 0;
  int64_t width = 0;
  for (const BlocksAlike& sort : BlocksByParts(a, below, a.layers)) {
    const Architecture of = WithParts(a, sort.parts);
    width += of.key_width() + of.value_width();
  }
  return w.tokens() * width * Widths(w).element;
}

int64_t KeptByAll(const Workload& w,
                  const BlockSorts& sorts,
                  const BlockActivations& blocks) {
  const Architecture& a = w.architecture;
  int64_t bytes = sorts.again * blocks.input + SharedKeyBytes(w, sorts.again) +
                  a.decoder_layers * KeptByDecoder(w, blocks) +
                  a.next_token_blocks * blocks.next_token;
  for (const BlocksAlike& sort : sorts.kept) {
    bytes += sort.count * blocks.Of(sort.parts);
  }
  return bytes;
}

// What of the blocks' is on the device: all, or of two blocks, which are still
// on their way to the host.
int64_t BlocksOnDevice(const Workload& w,
                       const BlockSorts& sorts,
                       const BlockActivations& blocks) {
  const int64_t all = KeptByAll(w, sorts, blocks);
  if (!w.parallel.offload_activations) return all;
  int64_t one = std::max({sorts.again > 0 ? blocks.input : 0,
                          KeptByDecoder(w, blocks),
                          blocks.next_token});
  for (const BlocksAlike& sort : sorts.kept) {
    one = std::max(one, blocks.Of(sort.parts));
  }
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
                               const BlockActivations& blocks,
                               int64_t one_pass) {
  const Architecture& a = w.architecture;
  const int64_t tokens = w.tokens();
  const BlockParts parts =
      a.parts_of(std::min(w.trainable.frozen_layers, a.layers - 1));
  LowestBlockBytes block;
  block.held = EmbeddingsTrain(w) ? EmbeddingBytes(w, tokens) : 0;
  block.held += LayerEmbeddingBytes(w) + LayerEmbeddingGradientBytes(w);
  // What the passes behind this one keep.
  block.held += std::max<int64_t>(0, UnderWay(w, one_pass) - one_pass);
  if (BlocksComputedAgain(w) > 0) {
    block.held += blocks.input + BlockAnewBytes(w, blocks);
  } else {
    // One without a backward pass is not among them.
    const std::optional<int64_t> kept = blocks.Find(parts);
    block.held += (kept ? *kept : LayerActivationBytes(w, parts)) +
                  PartsAnewBytes(w, parts);
  }
  block.held += InputsOfFrozenBlocks(w);
  block.made = BlockGradientBytes(w, parts);
  return block;
}

}  // namespace

int64_t LayerEmbeddingBytes(const Workload& w) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  if (a.layer_embedding_size == 0) return 0;
  const int64_t elements = w.tokens() * a.layer_table_width();
  int64_t bytes = elements * width.wide;
  if (!LayerEmbeddingsTrain(w)) return bytes;
  bytes += elements * NormElementBytes(w, width.element) +
           elements / a.layer_embedding_size * kStatistics;
  if (KeepsInput(w, &LoraMatrices::layer_embeddings)) {
    bytes += w.tokens() * a.hidden * width.element;
  }
  return bytes;
}

int64_t LayerEmbeddingGradientBytes(const Workload& w) {
  if (!LayerEmbeddingsTrain(w)) return 0;
  const int64_t sums = OperationByOperation(w.stack) ? 2 : 1;
  return sums * w.tokens() * w.architecture.layer_table_width() *
         Widths(w).wide;
}

int64_t EmbeddingBytes(const Workload& w, int64_t tokens) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  int64_t tables = 1;
  if (a.table_rows() > 0) ++tables;
  if (a.token_types > 0) ++tables;
  int64_t bytes = tokens * tables * kIndexBytes;
  const int64_t between = w.part.OfTokens(tokens);
  if (a.embedding_layer_norm) {
    bytes += between * (a.embedding_width() * width.wide + kStatistics);
  }
  // What the product reads that widens them.
  if (a.projects_embeddings()) bytes += tokens * a.word_width() * width.element;
  return bytes + between * a.embedding_width() * width.mask;
}

BlockSorts BlockSortsOf(const Workload& w) {
  const Architecture& a = w.architecture;
  const int64_t lowest = w.trainable.frozen_layers;
  BlockSorts sorts;
  sorts.again = BlocksComputedAgain(w);
  sorts.all = BlocksByParts(a, lowest, a.layers);
  sorts.kept = sorts.again == 0
                   ? sorts.all
                   : BlocksByParts(a, lowest + sorts.again, a.layers);
  return sorts;
}

ActivationBytes Activations(const Workload& w) {
  return Activations(w, BlockSortsOf(w));
}

ActivationBytes Activations(const Workload& w, const BlockSorts& sorts) {
  const int64_t source = w.tokens();
  const int64_t target = w.decoder_tokens();
  const BlockActivations blocks = BlockActivationsOf(w, sorts);
  const int64_t on_device = BlocksOnDevice(w, sorts, blocks);
  ActivationBytes result;
  // Frozen embeddings keep nothing.
  result.kept = UnderWay(w, on_device);
  result.kept += UnderWay(w, LayerEmbeddingBytes(w));
  result.head = HeadBytes(w);
  if (EmbeddingsTrain(w)) {
    result.kept += UnderWay(w, EmbeddingBytes(w, source));
    if (w.architecture.two_sided()) result.kept += EmbeddingBytes(w, target);
  }
  // The last block is computed again where all are.
  result.anew =
      AllBlocksComputedAgain(w)
          ? BlockAnewBytes(w, blocks)
          : PartsAnewBytes(w,
                           w.architecture.parts_of(w.architecture.layers - 1));
  result.lowest = LowestBlockOf(w, blocks, on_device);
  return result;
}

int64_t LayerActivationBytes(const Workload& w, const BlockParts& parts) {
  return w.operation_checkpointing ? KeptByOperations(w, parts)
                                   : WholeLayerBytes(w, parts);
}

int64_t DecoderLayerActivationBytes(const Workload& w) {
  const int64_t target = w.decoder_length();
  return AttentionBytes(w, target, target, false) +
         AttentionBytes(w, target, w.sequence_length, true) +
         FeedForwardBytes(w, w.batch * target, false);
}

int64_t KeptByBlock(const Workload& w, int64_t block) {
  const Architecture& a = w.architecture;
  const BlockActivations blocks = BlockActivationsOf(w, BlockSortsOf(w));
  const int64_t frozen = w.trainable.frozen_layers;
  if (block < frozen) return 0;
  if (block >= a.layers + a.decoder_layers) return blocks.next_token;
  if (block >= a.layers) return KeptByDecoder(w, blocks);
  if (block < frozen + BlocksComputedAgain(w)) return blocks.input;
  return blocks.Of(a.parts_of(block));
}

int64_t KeptByBlocks(const Workload& w) {
  const BlockSorts sorts = BlockSortsOf(w);
  return KeptByAll(w, sorts, BlockActivationsOf(w, sorts));
}

}  // namespace trainfare::model
