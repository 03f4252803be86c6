#include "hardware/models/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/activations.h"
#include "model/architecture.h"
#include "model/bisection.h"
#include "model/error.h"
#include "model/parallel.h"
#include "model/rounding.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::hardware {
namespace {

// The workload of one core, as a compiler lays out its graph.
model::Workload OfCore(const Device& device, const model::Workload& workload) {
  model::Workload w = workload;
  w.batch = model::CeilDivide(workload.batch, device.cores);
  // What ranks share, the cores of each share, too.
  if (model::ShardsOf(w.parallel) > 1) w.parallel.data *= device.cores;
  w.optimizer.implementation = model::OptimizerImplementation::kFused;
  // However a graph was written or traced, what is kept is the compiler's.
  w.stack.fusion = model::Fusion::kXla;
  // Where products in fp32 are as fast as in bf16, their operands are rounded
  // to it, and so they are kept.
  const bool rounds = device.peak.fp32 && device.peak.bf16 &&
                      *device.peak.fp32 >= *device.peak.bf16;
  if (rounds && workload.precision == model::Precision::kFp32) {
    w.precision = model::Precision::kBf16;
  }
  return w;
}

// The plan of a device from that of one of its cores, which are all alike.
MemoryPlan OfCores(const Device& device,
                   model::MemoryEstimate one,
                   model::Bytes<> capacity) {
  const auto cores = static_cast<double>(device.cores);
  for (model::MemoryTerm& term : one.terms) term.size = term.size * cores;
  // A compiler places what a core holds: it has no allocator that keeps blocks
  // for a stream, or gaps between them.
  one.of_other_streams = {};
  one.in_gaps = {};
  return {std::move(one), capacity, {}};
}

model::MemorySurroundings InPlace(model::MemorySurroundings surroundings) {
  surroundings.communication_buckets = false;
  return surroundings;
}

// Columns within the feed-forward that a token meets, of its experts together.
int64_t ColumnsMet(const model::Architecture& a,
                   const model::BlockParts& parts) {
  return parts.experts() ? a.experts_per_token * a.expert_intermediate +
                               a.shared_intermediate
                         : a.intermediate;
}

// What all blocks of one core that have a pass backward keep less when all of
// them compute anew.
model::Bytes<> SavedAnew(const model::Workload& w) {
  const model::Architecture& a = w.architecture;
  const int64_t element = model::BytesPerElement(w.precision);
  const auto kept = [&](int64_t length, int64_t columns) {
    return w.batch * length * (6 * a.hidden + columns) * element;
  };
  int64_t saved = 0;
  const int64_t lowest = w.trainable.frozen_layers;
  for (const model::BlocksAlike& sort :
       model::BlocksByParts(a, lowest, a.layers)) {
    saved += sort.count * (model::LayerActivationBytes(w, sort.parts) -
                           kept(w.sequence_length, ColumnsMet(a, sort.parts)));
  }
  if (a.decoder_layers > 0) {
    const int64_t target = w.decoder_length();
    // Attention twice.
    saved += a.decoder_layers * (model::DecoderLayerActivationBytes(w) -
                                 kept(target, a.intermediate) -
                                 5 * w.batch * target * a.hidden * element);
  }
  return model::Byte(static_cast<double>(saved));
}

// `estimate` with so much less of its activations that `capacity` is full.
model::MemoryEstimate Filling(model::MemoryEstimate estimate,
                              model::Bytes<> capacity) {
  // A hair less, so that a sum of rounded terms is not above it.
  const model::Bytes<> excess = estimate.total() - capacity * (1.0 - 1e-9);
  for (model::MemoryTerm& term : estimate.terms) {
    if (term.name == "activations") term.size = term.size - excess;
  }
  return estimate;
}

// What stays on a chip whose weights come and go: the activations.
model::MemoryEstimate WithoutWeights(const model::Workload& w,
                                     model::MemoryEstimate all) {
  if (w.work == model::Work::kForward) {
    std::erase_if(all.terms, [](const model::MemoryTerm& term) {
      return term.name != "activations" && term.name != "logits";
    });
    return all;
  }
  model::MemoryEstimate estimate;
  estimate.terms = {{"activations",
                     model::Byte(static_cast<double>(model::KeptByBlocks(w)))}};
  return estimate;
}

}  // namespace

MemoryPlan PlanPlainMemory(const Device& /*device*/,
                           const model::Workload& workload,
                           const model::MemorySurroundings& surroundings,
                           model::Bytes<> capacity,
                           model::MemoryOfBatches& memory) {
  return {memory.Estimate(workload, surroundings), capacity, {}};
}

MemoryPlan PlanCoresMemory(const Device& device,
                           const model::Workload& workload,
                           const model::MemorySurroundings& surroundings,
                           model::Bytes<> capacity,
                           model::MemoryOfBatches& memory) {
  // A compiled graph casts a weight where it is used.
  model::MemorySurroundings compiled = InPlace(surroundings);
  compiled.weight_copies = false;
  return OfCores(
      device, memory.Estimate(OfCore(device, workload), compiled), capacity);
}

MemoryPlan PlanRecomputingMemory(const Device& device,
                                 const model::Workload& workload,
                                 const model::MemorySurroundings& surroundings,
                                 model::Bytes<> capacity,
                                 model::MemoryOfBatches& memory) {
  MemoryPlan all =
      PlanCoresMemory(device, workload, surroundings, capacity, memory);
  if (all.fits() || workload.work == model::Work::kForward ||
      model::OperationByOperation(workload.stack) ||
      workload.gradient_checkpointing) {
    return all;
  }
  // No less than where every block is computed anew from its input: what is
  // held beside activations, and at the other moments of a step, stays.
  model::Workload anew = workload;
  anew.gradient_checkpointing = true;
  model::MemoryOfBatches of_anew;
  if (!PlanCoresMemory(device, anew, surroundings, capacity, of_anew).fits()) {
    return all;
  }
  const model::Bytes<> saved =
      SavedAnew(OfCore(device, workload)) * static_cast<double>(device.cores);
  const model::Bytes<> excess = all.needed.total() - all.capacity;
  if (saved <= excess) return all;
  MemoryPlan plan = all;
  plan.anew = excess / saved;
  plan.needed = Filling(all.needed, all.capacity);
  return plan;
}

MemoryPlan PlanPipelineMemory(const Device& device,
                              const model::Workload& workload,
                              const model::MemorySurroundings& surroundings,
                              model::Bytes<> capacity,
                              model::MemoryOfBatches& memory) {
  model::Workload w = workload;
  w.optimizer.implementation = model::OptimizerImplementation::kFused;
  const auto of_part = [&](int64_t batch) {
    w.batch = batch;
    MemoryPlan plan{memory.Estimate(w, InPlace(surroundings)), capacity, {}};
    if (device.weight_bandwidth) {
      plan.needed = WithoutWeights(w, std::move(plan.needed));
    }
    return plan;
  };
  const auto fits = [&](int64_t batch) { return of_part(batch).fits(); };
  if (fits(workload.batch)) return of_part(workload.batch);
  if (!fits(1)) return of_part(1);
  return of_part(model::LargestThat(1, workload.batch, fits));
}

}  // namespace trainfare::hardware
