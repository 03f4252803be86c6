#pragma once

// What an estimate of a device's memory is made of, and what it says.

#include <string_view>
#include <vector>

#include "model/memory_term.h"
#include "model/units.h"
#include "model/words.h"

namespace trainfare::model {

// What is there besides the tensors of the model: of the framework and the
// device, not of the workload.
struct MemorySurroundings {
  Bytes<> context;    // of the driver and the framework, loaded kernels
  Bytes<> workspace;  // of the matrix library
  // Gradients have a second copy in the buckets of the all-reduce.
  bool communication_buckets = false;
  // Weights are cast to the products' precision beside them, not where a
  // product loads them.
  bool weight_copies = true;
  friend bool operator==(const MemorySurroundings&,
                         const MemorySurroundings&) = default;
};

// The moment of a step at which most memory is taken.
enum class MemoryMoment {
  kForward,        // of inference, or its end in training
  kBackwardStart,  // every activation is held
  kLowestBlock,    // its activations, and the gradients of all above
  kBackwardEnd,    // every gradient is held
  kOptimizerStep,
};
template <>
inline constexpr auto kWords<MemoryMoment> = Words<MemoryMoment>(
    "moment of a step",
    {{MemoryMoment::kForward, "forward pass"},
     {MemoryMoment::kBackwardStart, "start of the backward pass"},
     {MemoryMoment::kLowestBlock, "backward pass of the lowest block"},
     {MemoryMoment::kBackwardEnd, "end of the backward pass"},
     {MemoryMoment::kOptimizerStep, "optimizer step"}});

// The term of MemorySurroundings::context.
inline constexpr std::string_view kFrameworkContext = "framework context";

struct MemoryEstimate {
  MemoryMoment moment = MemoryMoment::kBackwardStart;
  std::vector<MemoryTerm> terms;  // that are not zero; add up to total()
  // What an allocator holds for other streams, which no tensor has then:
  // PyTorch's gives nothing of a stream's to another, and its FSDP gathers
  // parameters and sums gradients in streams of their own.
  Bytes<> of_other_streams;
  // What it holds at most in gaps between tensors and of sizes that come no
  // more; it gives these back before it says that memory is out.
  Bytes<> in_gaps;

  Bytes<> total() const;
  // What the framework's allocator counts, which does not see its context.
  Bytes<> without_context() const { return total() - Of(kFrameworkContext); }
  Bytes<> Of(std::string_view name) const;  // 0 when there is no such term
};

}  // namespace trainfare::model
