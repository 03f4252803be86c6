#include "model/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/architecture.h"
#include "model/element_widths.h"
#include "model/error.h"
#include "model/frozen_base.h"
#include "model/rounding.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model {
namespace {

// `a` without so many of `b`.
ShardUnit Without(const ShardUnit& a, const ShardUnit& b, int64_t count = 1) {
  return {a.elements - count * b.elements,
          a.trained - count * b.trained,
          a.quantised - count * b.quantised,
          a.in_fp8 - count * b.in_fp8,
          a.of_experts - count * b.of_experts,
          a.trained_of_experts - count * b.trained_of_experts};
}

struct BlockCounts {
  int64_t layers = 0;
  int64_t dense = 0;
  int64_t decoder = 0;
  int64_t next_token = 0;
  int64_t state_space = 0;
  int64_t delta_rule = 0;
  int64_t feed_forward = 0;
  int64_t convolution = 0;
  int64_t windowed = 0;
  int64_t borrowing = 0;

  // One more of such parts, of a model that has blocks of other parts.
  BlockCounts With(const BlockParts& parts) const {
    BlockCounts more = *this;
    ++more.layers;
    if (parts.mixer == Mixer::kStateSpace) ++more.state_space;
    if (parts.mixer == Mixer::kDeltaRule) ++more.delta_rule;
    if (parts.mixer == Mixer::kNone) ++more.feed_forward;
    if (parts.mixer == Mixer::kConvolution) ++more.convolution;
    if (parts.feed_forward == FeedForwardKind::kDense) ++more.dense;
    return more;
  }
};
// All of a model with so many blocks, none of them frozen, for which `w` is
// rewritten.
ShardUnit WholeOf(Workload& w, const BlockCounts& blocks) {
  Architecture& a = w.architecture;
  a.layers = blocks.layers;
  a.dense_layers = blocks.dense;
  a.decoder_layers = blocks.decoder;
  a.next_token_blocks = blocks.next_token;
  a.state_space_layers = blocks.state_space;
  a.delta_rule_layers = blocks.delta_rule;
  a.feed_forward_layers = blocks.feed_forward;
  a.convolution_layers = blocks.convolution;
  a.windowed_layers = blocks.windowed;
  a.shared_key_value_layers = blocks.borrowing;
  w.trainable.frozen_layers = 0;
  ShardUnit unit;
  unit.elements = ParametersInAll(w);
  unit.trained =
      w.trainable.everything() ? unit.elements : AdapterParameters(w);
  unit.quantised = QuantisedElements(w);
  unit.in_fp8 = GathersInFp8(w) ? BlockMatrixElements(a) : 0;
  if (a.expert_ranks > 1) {
    unit.of_experts = ExpertParametersInAll(w);
    unit.trained_of_experts = w.trainable.everything()
                                  ? unit.of_experts
                                  : TrainableExpertParameters(w);
  }
  return unit;
}

// So many blocks from one on have the same parts.
int64_t AlikeFrom(const Architecture& a, int64_t block) {
  const bool all = a.experts == 0 && !a.other_blocks() && !a.blocks_differ();
  if (all) return a.layers - block;
  const BlockParts parts = a.parts_of(block);
  int64_t end = block + 1;
  while (end < a.layers && a.parts_of(end) == parts) ++end;
  return end - block;
}

// A block of such parts of a model whose blocks differ: one of these alone, less
// none.
ShardUnit AloneOfParts(const Workload& w, const BlockParts& parts) {
  Workload of = w;
  of.architecture = WithParts(w.architecture, parts);
  of.architecture.embedded_layers = w.architecture.layers;
  BlockCounts one;
  one.layers = 1;
  one.windowed = of.architecture.windowed_layers > 0 ? 1 : 0;
  one.borrowing = parts.borrows_keys ? 1 : 0;
  one.dense = parts.experts() ? 0 : 1;
  const ShardUnit with = WholeOf(of, one);
  return Without(with, WholeOf(of, {}));
}

// A block of each sort of a model that has blocks of other parts than attention
// and a feed-forward, or that differ.
struct UnitOfParts {
  BlockParts parts;
  ShardUnit unit;
};
std::vector<UnitOfParts> OtherUnits(const Workload& w,
                                    const BlockCounts& counts,
                                    const ShardUnit& whole) {
  std::vector<UnitOfParts> units;
  const Architecture& a = w.architecture;
  if (!a.other_blocks() && !a.blocks_differ()) return units;
  Workload more = w;
  for (const BlocksAlike& sort : BlocksByParts(a, 0, a.layers)) {
    units.push_back(
        {sort.parts,
         a.blocks_differ()
             ? AloneOfParts(w, sort.parts)
             : Without(WholeOf(more, counts.With(sort.parts)), whole)});
  }
  return units;
}

// A block that predicts tokens further; one more has no weights of its own where
// they share these.
ShardUnit NextTokenUnit(Workload& w,
                        const BlockCounts& counts,
                        const ShardUnit& whole) {
  BlockCounts others = counts;
  if (w.architecture.shared_next_token) {
    others.next_token = 0;
    return Without(whole, WholeOf(w, others));
  }
  ++others.next_token;
  return Without(WholeOf(w, others), whole);
}

}  // namespace

bool MastersAreShard(const Workload& w) {
  return w.parallel.shard == Shard::kFsdp && DividesState(w.parallel) &&
         KeepsMasters(w);
}

// Blocks are alike, so that one more of them is a block: sums of counts, where
// a list of the tensors with their names would take far longer. One with experts
// comes with those without that stand before it.
ShardUnits ShardUnitsOf(const Workload& w) {
  const Architecture& a = w.architecture;
  const int64_t layers = a.layers;
  const int64_t dense = std::min(a.dense_layers, layers);
  const int64_t decoder = a.decoder_layers;
  const int64_t next_token = a.next_token_blocks;
  Workload other = w;
  // The table of embeddings of blocks stays as it is.
  other.architecture.embedded_layers = layers;
  const BlockCounts counts{layers,
                           dense,
                           decoder,
                           next_token,
                           a.state_space_layers,
                           a.delta_rule_layers,
                           a.feed_forward_layers,
                           a.convolution_layers,
                           a.windowed_layers,
                           a.shared_key_value_layers};
  const ShardUnit whole = WholeOf(other, counts);
  ShardUnits units;
  int64_t blocks = 0;
  const auto append = [&](const ShardUnit& unit, int64_t count) {
    // Blocks at the bottom keep their weights.
    const int64_t frozen =
        std::clamp<int64_t>(w.trainable.frozen_layers - blocks, 0, count);
    blocks += count;
    if (frozen > 0) {
      ShardUnit kept = unit;
      kept.trained = kept.trained_of_experts = 0;
      units.blocks.push_back({kept, frozen});
    }
    if (count > frozen) units.blocks.push_back({unit, count - frozen});
  };
  const auto more = [&](const BlockCounts& others) {
    return Without(WholeOf(other, others), whole);
  };
  const ShardUnit plain = more({layers + 1, dense + 1, decoder, next_token});
  const int64_t period = a.expert_period;
  const ShardUnit expert =
      a.experts == 0
          ? plain
          : Without(more({layers + period, dense, decoder, next_token}),
                    plain,
                    period - 1);
  const std::vector<UnitOfParts> other_parts = OtherUnits(w, counts, whole);
  const auto of_parts = [&](const BlockParts& parts) {
    for (const UnitOfParts& unit : other_parts) {
      if (unit.parts == parts) return unit.unit;
    }
    return parts.experts() ? expert : plain;
  };
  int64_t block = 0;
  while (block < layers) {
    const int64_t alike = AlikeFrom(a, block);
    append(of_parts(a.parts_of(block)), alike);
    block += alike;
  }
  if (decoder > 0) {
    append(more({layers, dense, decoder + 1, next_token}), decoder);
  }
  if (next_token > 0) {
    append(NextTokenUnit(other, counts, whole), a.next_token_weights());
  }
  units.root = whole;
  if (!w.trainable.everything()) units.root.trained = TrainableParameters(w);
  for (const ShardedBlocks& alike : units.blocks) {
    units.root = Without(units.root, alike.unit, alike.count);
  }
  return units;
}

UnitParts PartsOfUnit(const ShardUnit& unit) {
  UnitParts parts;
  parts.experts.elements = unit.of_experts;
  parts.experts.trained = unit.trained_of_experts;
  if (unit.quantised > 0) parts.experts.quantised = unit.of_experts;
  if (unit.in_fp8 > 0) parts.experts.in_fp8 = unit.of_experts;
  parts.rest = Without(unit, parts.experts);
  parts.rest.of_experts = parts.rest.trained_of_experts = 0;
  return parts;
}

EmbeddingUnits EmbeddingUnitsOf(const Workload& w) {
  const Architecture& a = w.architecture;
  EmbeddingUnits units;
  if (!w.parallel.embedding_units || !a.untied_output) return units;
  units.embeddings.elements = a.vocabulary * a.word_width();
  units.output.elements = a.vocabulary * a.word_width();
  if (w.trainable.everything()) {
    units.embeddings.trained = units.embeddings.elements;
  }
  if (w.trainable.lora_rank == 0) units.output.trained = units.output.elements;
  return units;
}

int64_t AdapterUnits(const Workload& w) {
  const bool units =
      w.trainable.adapters_as_units && w.parallel.shard == Shard::kFsdp;
  return units ? AdapterTensorCount(w) : 0;
}

int64_t ExpertModules(const Workload& w) {
  const ExpertKernels experts = ExpertsOf(w);
  if (w.parallel.shard != Shard::kZero3 || !FindsRows(experts)) return 0;
  const Architecture& a = w.architecture;
  if (experts == ExpertKernels::kShardLoop) {
    return a.expert_layers() * CeilDivide(a.experts, kExpertsOfShard);
  }
  const int64_t matrices = a.gated ? 3 : 2;
  return a.expert_layers() * a.experts * matrices;
}

int64_t ShareOfRank(const Workload& w, const DividedElements& elements) {
  const int64_t alike = std::max<int64_t>(
      1,
      ShardsOf(w.parallel) * w.part.expert_folds / w.architecture.expert_ranks);
  return ShareOf(elements.all - elements.of_experts, w.parallel) +
         CeilDivide(elements.of_experts, alike);
}

int64_t UpdatedByRank(const Workload& w) {
  const bool apart = w.architecture.expert_ranks > 1;
  return ShareOfRank(
      w, {TrainableParameters(w), apart ? TrainableExpertParameters(w) : 0});
}

bool KeepsShareOfGradients(const Workload& w) {
  return ShardsGradients(w.parallel) && !w.part.gathered_once;
}

bool GathersInFp8(const Workload& w) {
  return w.precision == Precision::kFp8 && w.fp8.gathered;
}

int64_t GatheredBytes(const Workload& w, const ShardUnit& unit) {
  const int64_t width = ParameterWidth(w);
  return (unit.elements - unit.quantised - unit.in_fp8) * width +
         BaseBytes(w, unit.quantised) + unit.in_fp8 * kBytesOfFp8;
}

int64_t SummedBytes(const Workload& w, const ShardUnit& unit) {
  return unit.trained * SumWidth(w);
}

int64_t GradientWidth(const Workload& w) {
  const bool narrow =
      NarrowWeights(w) && !MastersAreShard(w) && !SumsGradientsWide(w);
  return narrow ? BytesPerElement(w.precision) : kSingle;
}

int64_t SumWidth(const Workload& w) {
  const int64_t kept = GradientWidth(w);
  return w.compression.kind == CompressionKind::kTo16Bits
             ? std::min(kept, kHalf)
             : kept;
}

}  // namespace trainfare::model
