#include "model/offload.h"

#include <string_view>

#include "model/activations.h"
#include "model/frozen_base.h"
#include "model/optimizer_kernels.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model {
namespace {

bool OffloadsState(const Parallel& p) { return p.offload != Offload::kNone; }

// Elements of the state that one rank's host updates.
int64_t Updated(const Workload& w) {
  return ShareOf(TrainableParameters(w), w.parallel);
}

// Whether the parameters on the host are what it updates, not narrow ones
// beside their masters.
bool UpdatesParameters(const Workload& w) {
  return MastersAreShard(w) || !KeepsMasters(w);
}

// Bytes of a weight as products take it.
int64_t BytesOfWeight(const Workload& w) {
  return NarrowWeights(w) ? BytesPerElement(w.precision) : BytesOfState(w);
}

// Bytes of `elements` parameters, `quantised` of them in few bits, `trained` of
// them as the update has them where they are the same.
int64_t OnHost(const Workload& w, const ShardUnit& unit) {
  const int64_t trained = UpdatesParameters(w) ? unit.trained : 0;
  const int64_t rest = unit.elements - unit.quantised - trained;
  return ShareOf(trained, w.parallel) * BytesOfState(w) +
         ShareOf(rest, w.parallel) * BytesOfWeight(w) +
         BaseBytes(w, ShareOf(unit.quantised, w.parallel));
}

ShardUnit WholeModel(const Workload& w) {
  ShardUnit whole;
  whole.elements = ParametersInAll(w);
  whole.trained = TrainableParameters(w);
  whole.quantised = QuantisedElements(w);
  return whole;
}

}  // namespace

bool SendsGradientsToHost(const Parallel& p) {
  return OffloadsState(p) && p.shard != Shard::kZero1;
}

int64_t ParametersFromHost(const Workload& w, const ShardUnit& unit) {
  return w.parallel.offload == Offload::kParameters ? OnHost(w, unit) : 0;
}

int64_t GradientsToHost(const Workload& w, int64_t elements) {
  return OffloadsState(w.parallel)
             ? ShareOf(elements, w.parallel) * BytesOfState(w)
             : 0;
}

int64_t UpdatedFromHost(const Workload& w) {
  if (w.parallel.offload != Offload::kOptimizer) return 0;
  return Updated(w) * BytesOfWeight(w);
}

int64_t HostUpdateBytes(const Workload& w) {
  if (!OffloadsState(w.parallel) || w.work != Work::kTraining) return 0;
  const int64_t state = OperationsOf(w).state_tensors;
  const int64_t narrow =
      UpdatesParameters(w) ? 0 : BytesPerElement(w.precision);
  return Updated(w) * ((3 + 2 * state) * BytesOfState(w) + narrow);
}

std::vector<MemoryTerm> HostMemoryOf(const Workload& w) {
  std::vector<MemoryTerm> terms;
  const auto add = [&](std::string_view name, int64_t bytes) {
    if (bytes > 0) {
      terms.push_back({name, Byte(static_cast<double>(bytes))});
    }
  };
  int64_t state = 0;
  const auto add_state = [&](std::string_view name, int64_t bytes) {
    state += bytes;
    add(name, bytes);
  };
  const bool trains = w.work == Work::kTraining && OffloadsState(w.parallel);
  const int64_t of_one = trains ? Updated(w) * BytesOfState(w) : 0;
  if (w.parallel.offload == Offload::kParameters) {
    add_state("parameters", OnHost(w, WholeModel(w)));
    if (!UpdatesParameters(w)) add_state("master weights", of_one);
  } else {
    add_state("master weights", of_one);
  }
  add_state("gradients", of_one);
  add_state("optimizer state", of_one * OperationsOf(w).state_tensors);
  add("buffers", state / 2);
  if (w.parallel.offload_activations && w.work != Work::kForward) {
    add("activations", KeptByBlocks(w));
  }
  return terms;
}

}  // namespace trainfare::model
