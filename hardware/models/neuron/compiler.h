#pragma once

// What a compiler of whole graphs costs besides time on the device: its
// optimisation levels, and the memory of the host that compiles. Its figures
// are facts of the device. Check:
// tests/hardware/models/neuron/neuron_model_test.cc.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hardware/catalog/device.h"
#include "model/architecture.h"
#include "model/units.h"

namespace trainfare::hardware::models {

// Time relative to level 2, the compiler's own choice, all else equal: of the
// highest level known where a higher one is asked for.
inline double CompilerLevelFactor(const Device& device, int64_t level) {
  if (!device.compiler || device.compiler->level_times.size() < 2) return 1.0;
  const auto& times = device.compiler->level_times;
  const auto known = static_cast<int64_t>(times.size());
  const auto index =
      static_cast<size_t>(std::clamp<int64_t>(level, 1, known) - 1);
  return times[index] / times[1];
}

// Memory that compiling one graph takes on the host: proportional to the tokens
// of a micro-batch. Of another model than the one it was seen with, the
// compiler holds as much more as its blocks have tensors to place: layers times
// hidden size, an assumption.
inline model::Bytes<> CompilerMemory(const GraphMemory& memory,
                                     const model::Architecture& a,
                                     int64_t tokens) {
  const auto blocks =
      static_cast<double>((a.layers + a.decoder_layers) * a.hidden);
  return memory.per_token * static_cast<double>(tokens) *
         (blocks / memory.layer_widths);
}

enum class Compilation { kFits, kSwaps, kFails };

// Whether a graph that takes so much compiles on a host.
inline Compilation CompileOnHost(const GraphMemory& of_graph,
                                 model::Bytes<> needed,
                                 model::Bytes<> memory,
                                 model::Bytes<> swap) {
  if (needed <= memory) return Compilation::kFits;
  if (needed > memory + swap || needed > memory * of_graph.swap_limit) {
    return Compilation::kFails;
  }
  return Compilation::kSwaps;
}

}  // namespace trainfare::hardware::models
