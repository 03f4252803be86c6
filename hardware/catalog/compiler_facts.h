#pragma once

// What is known of a compiler of whole graphs.

#include <cstdint>
#include <optional>
#include <vector>

#include "model/units.h"

namespace trainfare::hardware {

// Memory that compiling one graph takes on the host.
struct GraphMemory {
  // A token of a micro-batch of a model of so many layers times hidden size.
  model::Bytes<> per_token;
  double layer_widths = 1.0;
  // Working set over memory up to which a compiler that swaps still finishes.
  double swap_limit = 1.0;
};

// What a compiler of whole graphs costs besides time on the device.
struct CompilerFacts {
  int64_t levels = 0;  // of optimisation, to choose from; 0: none
  // What one run takes at levels 1, 2, ..: their ratios count; empty: not
  // known.
  std::vector<model::Seconds<>> level_times;
  // Absent: too little to mind, or not known; nothing is refused for it.
  std::optional<GraphMemory> graph_memory;
  // Time of compiling one graph, where nobody says it: 80 % are within.
  model::Seconds<> shortest_compile;
  model::Seconds<> longest_compile;
};

}  // namespace trainfare::hardware
