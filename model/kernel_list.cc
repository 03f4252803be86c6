#include "model/kernel_list.h"

#include <cstddef>

namespace trainfare::model {

std::span<const Kernel> KernelList::Of(const Segment& segment) const {
  return std::span(kernels).subspan(
      static_cast<std::size_t>(segment.begin),
      static_cast<std::size_t>(segment.end - segment.begin));
}

PhaseCounts KernelList::Counts(Phase phase) const {
  PhaseCounts sum;
  for (const Segment& segment : segments) {
    if (segment.phase != phase) continue;
    for (const Kernel& kernel : Of(segment)) {
      const int64_t times = segment.repeat * kernel.launches;
      sum.matrix_flops += times * kernel.matrix_flops;
      sum.vector_flops += times * kernel.vector_flops;
      sum.special_ops += times * kernel.special_ops;
      sum.random_draws += times * kernel.random_draws;
      sum.bytes_read += times * kernel.bytes_read;
      sum.bytes_written += times * kernel.bytes_written;
      sum.launches += times;
    }
  }
  return sum;
}

}  // namespace trainfare::model
