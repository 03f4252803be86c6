#pragma once

// What the Neuron compiler costs besides time on the device: its optimisation
// levels, and the memory of the host that compiles.
//
// docs/models/trainium.md, "Compiler", has the runs that each number rests on;
// check: tests/hardware/models/neuron/neuron_model_test.cc.

#include <cstdint>

#include "model/architecture.h"
#include "model/units.h"

namespace trainfare::hardware::models {

// Time relative to level 2, all else equal: runs of 132.10, 127.39 and 126.30 s
// of one published ablation at levels 1, 2 and 3, compilation included.
constexpr double NeuronLevelTimeFactor(int64_t level) {
  if (level <= 1) return 132.10 / 127.39;
  return level == 2 ? 1.0 : 126.30 / 127.39;
}

// Memory that compiling one graph takes on the host: proportional to the tokens
// of a micro-batch. Two published outcomes on 32 GB bound the factor: 48
// sequences of 128 compile, 64 do not without swap, so 3.91 to 5.21 MB a
// token; the value is their geometric mean.
inline constexpr double kNeuronCompilerBytesPerToken = 4.51e6;

// Working set over memory up to which a compiler that swaps still finishes: 64
// sequences (1.15 times 32 GB) do, 128 (2.31 times) do not, with swap to spare.
inline constexpr double kNeuronCompilerSwapLimit = 1.63;

inline model::Bytes<> NeuronCompilerMemory(int64_t tokens) {
  return model::Byte(kNeuronCompilerBytesPerToken *
                     static_cast<double>(tokens));
}

// The outcomes are of BERT-base. Of another model the compiler holds as much
// more as its blocks have tensors to place: layers times hidden, an assumption.
inline model::Bytes<> NeuronCompilerMemory(const model::Architecture& a,
                                           int64_t tokens) {
  constexpr double kBertBase = 12.0 * 768.0;
  const auto blocks =
      static_cast<double>((a.layers + a.decoder_layers) * a.hidden);
  return NeuronCompilerMemory(tokens) * (blocks / kBertBase);
}

enum class NeuronCompilation { kFits, kSwaps, kFails };

// Whether a graph that takes so much compiles on a host.
inline NeuronCompilation CompileOnHost(model::Bytes<> needed,
                                       model::Bytes<> memory,
                                       model::Bytes<> swap) {
  if (needed <= memory) return NeuronCompilation::kFits;
  if (needed > memory + swap || needed > memory * kNeuronCompilerSwapLimit) {
    return NeuronCompilation::kFails;
  }
  return NeuronCompilation::kSwaps;
}

}  // namespace trainfare::hardware::models
