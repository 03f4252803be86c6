#pragma once

// Llama 3.1 8B, whose numbers docs/models/sharding.md works out.

#include <cstdint>
#include <string_view>

#include "model/architecture.h"
#include "model/memory.h"
#include "model/presets.h"
#include "model/workload.h"

namespace trainfare::model::llama_8b {

inline constexpr int64_t kAll = 8'030'261'248;
inline constexpr int64_t kBlock = 218'112'000;
inline constexpr int64_t kRoot = 1'050'677'248;

// Its training over `data` ranks that share state as `shard` says.
inline Workload Llama(Shard shard, int64_t data) {
  Workload w;
  w.architecture = FindArchitecture("llama-3.1-8b");
  w.architecture.head = Head::kCausalLanguageModel;
  w.architecture.dropout = 0;
  w.sequence_length = 2048;
  w.precision = Precision::kBf16;
  w.stack.fusion = Fusion::kLiger;
  w.stack.attention = Attention::kFlash;
  w.stack.narrow_weights = true;
  w.gradient_checkpointing = true;
  w.parallel.data = data;
  w.parallel.shard = shard;
  return w;
}

// Bytes of a term of a device's memory.
inline double Held(const Workload& w, std::string_view term) {
  return ToBytes(EstimateMemory(w, {}).Of(term));
}

}  // namespace trainfare::model::llama_8b
