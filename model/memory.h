#pragma once

// Memory of one device in training: what lives at the worst moment of a step.
//
// docs/models/memory.md derives the terms; tests/model/memory_test.cc asserts
// them and holds the verdict against runs known to have fitted or failed.

#include <cstdint>
#include <memory>

#include "model/memory_estimate.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::model {

// A tensor counts from when it is made to when nothing needs it. Counted are
// tensors, not the fragments between them, so an allocator may need more.
// The workload must have passed Validate().
MemoryEstimate EstimateMemory(const Workload& workload,
                              const MemorySurroundings& surroundings);

// The same of workloads that follow each other: of one that differs from the
// last in its batch alone, what does not grow with it is not counted again.
class MemoryOfBatches {
 public:
  MemoryOfBatches();
  ~MemoryOfBatches();
  MemoryOfBatches(MemoryOfBatches&&) noexcept;
  MemoryOfBatches& operator=(MemoryOfBatches&&) noexcept;

  MemoryEstimate Estimate(const Workload& workload,
                          const MemorySurroundings& surroundings);

 private:
  struct Last;
  std::unique_ptr<Last> last_;
};

}  // namespace trainfare::model
