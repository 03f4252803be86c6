#include "model/distinct_kernels.h"

#include <bit>

namespace trainfare::model {
namespace {

// By what most kernels differ in; its upper bits hang on all of it.
uint64_t HashOf(const Kernel& kernel) {
  constexpr uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
  uint64_t hash = 0;
  for (const int64_t part : {kernel.matrix_flops,
                             kernel.vector_flops,
                             kernel.bytes_read,
                             kernel.bytes_written,
                             kernel.gemm.n}) {
    hash = (hash ^ static_cast<uint64_t>(part)) * kOdd;
  }
  return hash >> 32;
}

bool AskTheSame(Kernel one, const Kernel& other) {
  one.name = other.name;
  one.launches = other.launches;
  return one == other;
}

}  // namespace

DistinctKernels::DistinctKernels(size_t kernels)
    : slots_(std::bit_ceil(2 * kernels + 1), kEmpty) {
  kernels_.reserve(kernels);
}

size_t DistinctKernels::NumberOf(const Kernel& kernel) {
  const size_t mask = slots_.size() - 1;
  for (size_t slot = HashOf(kernel) & mask;; slot = (slot + 1) & mask) {
    uint32_t& number = slots_[slot];
    if (number == kEmpty) {
      number = static_cast<uint32_t>(kernels_.size());
      kernels_.push_back(&kernel);
      return number;
    }
    if (AskTheSame(kernel, *kernels_[number])) return number;
  }
}

}  // namespace trainfare::model
