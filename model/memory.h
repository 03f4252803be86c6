#pragma once

// Memory of one device in training: what lives at the worst moment of a step.
//
// docs/models/memory.md derives the terms; tests/model/memory_test.cc asserts
// them and holds the verdict against runs known to have fitted or failed.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/memory_term.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::model {

// What is there besides the tensors of the model: of the framework and the
// device, not of the workload.
struct MemorySurroundings {
  Bytes<> context;    // of the driver and the framework, loaded kernels
  Bytes<> workspace;  // of the matrix library
  // Gradients have a second copy in the buckets of the all-reduce.
  bool communication_buckets = false;
};

// The moment of a step at which most memory is taken.
enum class MemoryMoment {
  kForward,        // of inference
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

struct MemoryEstimate {
  MemoryMoment moment = MemoryMoment::kBackwardStart;
  std::vector<MemoryTerm> terms;  // that are not zero; add up to total()
  // What an allocator holds for other streams, which no tensor has then:
  // PyTorch's gives nothing of a stream's to another, and its FSDP gathers
  // parameters and sums gradients in streams of their own.
  Bytes<> of_other_streams;

  Bytes<> total() const;
  Bytes<> Of(std::string_view name) const;  // 0 when there is no such term
};

// A tensor counts from when it is made to when nothing needs it. Counted are
// tensors, not the fragments between them, so an allocator may need more.
// The workload must have passed Validate().
MemoryEstimate EstimateMemory(const Workload& workload,
                              const MemorySurroundings& surroundings);

// Largest batch whose estimate is within `capacity`; nullopt when not even one
// sequence fits.
std::optional<int64_t> LargestBatch(const Workload& workload,
                                    const MemorySurroundings& surroundings,
                                    Bytes<> capacity);

}  // namespace trainfare::model
