#include "model/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/architecture.h"
#include "model/error.h"
#include "model/rounding.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model {
namespace {

ShardUnit operator-(const ShardUnit& a, const ShardUnit& b) {
  return {a.elements - b.elements,
          a.trained - b.trained,
          a.quantised - b.quantised,
          a.in_fp8 - b.in_fp8};
}

struct BlockCounts {
  int64_t layers = 0;
  int64_t dense = 0;
  int64_t decoder = 0;
  int64_t next_token = 0;
};
// All of a model with so many blocks, none of them frozen, for which `w` is
// rewritten.
ShardUnit WholeOf(Workload& w, const BlockCounts& blocks) {
  Architecture& a = w.architecture;
  a.layers = blocks.layers;
  a.dense_layers = blocks.dense;
  a.decoder_layers = blocks.decoder;
  a.next_token_blocks = blocks.next_token;
  w.trainable.frozen_layers = 0;
  const int64_t adapters = AdapterParameters(w);
  ShardUnit unit;
  unit.elements = TotalParameters(a) + adapters;
  unit.trained = w.trainable.everything() ? unit.elements : adapters;
  unit.quantised = w.trainable.base_bits > 0 ? BlockMatrixElements(a) : 0;
  unit.in_fp8 = GathersInFp8(w) ? BlockMatrixElements(a) : 0;
  return unit;
}

}  // namespace

bool MastersAreShard(const Workload& w) {
  return w.parallel.shard == Shard::kFsdp && DividesState(w.parallel) &&
         KeepsMasters(w);
}

// Blocks are alike, so that one more of them is a block: sums of counts, where
// a list of the tensors with their names would take far longer.
ShardUnits ShardUnitsOf(const Workload& w) {
  const Architecture& a = w.architecture;
  const int64_t layers = a.layers;
  const int64_t dense = std::min(a.dense_layers, layers);
  const int64_t decoder = a.decoder_layers;
  const int64_t next_token = a.next_token_blocks;
  Workload other = w;
  const ShardUnit whole = WholeOf(other, {layers, dense, decoder, next_token});
  ShardUnits units;
  units.blocks.reserve(static_cast<size_t>(layers + decoder + next_token));
  const auto append = [&](ShardUnit block, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      ShardUnit unit = block;
      // Blocks at the bottom that keep their weights.
      const auto number = static_cast<int64_t>(units.blocks.size()) + 1;
      if (number <= w.trainable.frozen_layers) unit.trained = 0;
      units.blocks.push_back(unit);
    }
  };
  const bool experts = a.experts > 0;
  const int64_t plain = experts ? dense : layers;
  if (plain > 0) {
    append(
        whole -
            WholeOf(other,
                    {layers - 1, experts ? dense - 1 : 0, decoder, next_token}),
        plain);
  }
  if (layers > plain) {
    append(whole - WholeOf(other, {layers - 1, dense, decoder, next_token}),
           layers - plain);
  }
  if (decoder > 0) {
    append(whole - WholeOf(other, {layers, dense, decoder - 1, next_token}),
           decoder);
  }
  if (next_token > 0) {
    append(whole - WholeOf(other, {layers, dense, decoder, next_token - 1}),
           next_token);
  }
  units.root = whole;
  units.root.trained = TrainableParameters(w);
  for (const ShardUnit& block : units.blocks) units.root = units.root - block;
  return units;
}

int64_t AdapterUnits(const Workload& w) {
  const LoraMatrices& lora = w.trainable.lora;
  const Architecture& a = w.architecture;
  if (!w.trainable.adapters_as_units || w.parallel.shard != Shard::kFsdp) {
    return 0;
  }
  // What one matrix makes has one adapter.
  const std::array inputs = {lora.query, lora.key, lora.value};
  const int64_t joined =
      a.joint_projection() ? std::count(inputs.begin(), inputs.end(), true) : 0;
  constexpr int64_t kMatrices = 2;  // down to the rank and up again
  return AdapterTensorCount(w) -
         kMatrices * a.layers * std::max<int64_t>(0, joined - 1);
}

bool GathersInFp8(const Workload& w) {
  return w.precision == Precision::kFp8 && w.fp8.gathered;
}

int64_t GatheredBytes(const Workload& w, const ShardUnit& unit) {
  const int64_t width =
      NarrowWeights(w) ? BytesPerElement(w.precision) : kSingle;
  return (unit.elements - unit.quantised - unit.in_fp8) * width +
         QuantisedBytes(unit.quantised, w.trainable) +
         unit.in_fp8 * kBytesOfFp8;
}

int64_t SummedBytes(const Workload& w, const ShardUnit& unit) {
  return unit.trained * GradientWidth(w);
}

int64_t GradientWidth(const Workload& w) {
  return NarrowWeights(w) && !MastersAreShard(w) ? BytesPerElement(w.precision)
                                                 : kSingle;
}

}  // namespace trainfare::model
