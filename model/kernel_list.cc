#include "model/kernel_list.h"

#include <cstddef>

namespace trainfare::model {

PhaseCounts KernelList::Counts(Phase phase) const {
  PhaseCounts sum;
  for (const Segment& segment : segments) {
    if (segment.phase != phase) continue;
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      const Kernel& kernel = kernels[static_cast<std::size_t>(i)];
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
