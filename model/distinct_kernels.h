#pragma once

// Kernels of a step that ask the same of a device: a block that runs again
// repeats those of its forward pass, and many a gradient is as its neighbour.
// What they take is found out once.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/kernel_list.h"

namespace trainfare::model {

class DistinctKernels {
 public:
  // For at most so many kernels that are asked about.
  explicit DistinctKernels(size_t kernels);

  // Number, from 0 on, of the kernel among all so far of which one launch asks
  // the same, whatever its name; size() before the call where there is none
  // yet. `kernel` must outlive this.
  size_t NumberOf(const Kernel& kernel);

  size_t size() const { return kernels_.size(); }

 private:
  // A table of numbers by hash, at most half full, an empty slot behind those
  // of one hash.
  static constexpr uint32_t kEmpty = 0xffff'ffff;
  std::vector<uint32_t> slots_;
  std::vector<const Kernel*> kernels_;
};

}  // namespace trainfare::model
