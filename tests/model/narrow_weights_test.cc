// A stack that keeps weights narrow, with fp32 masters in the optimizer.

#include <doctest/doctest.h>

#include "model/kernels.h"
#include "model/memory.h"

namespace trainfare::model {
namespace {

Workload BertBaseInFp16() {
  Workload w;
  w.architecture = FindArchitecture("bert-base-uncased");
  w.batch = 4;
  w.sequence_length = 64;
  w.precision = Precision::kFp16;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  return w;
}

int64_t CastsIn(const KernelList& list) {
  int64_t casts = 0;
  for (const Kernel& kernel : list.kernels) {
    if (kernel.name.starts_with("cast")) ++casts;
  }
  return casts;
}

}  // namespace

// Autocast: 28 P in the fused AdamW update (tests/model/kernels_test.cc). With
// masters there come 2 + 4 to unscale the gradients, 4 + 2 to write parameters.
TEST_CASE("masters add two passes over the parameters") {
  Workload w = BertBaseInFp16();
  const KernelList autocast = ExpandKernels(w);
  w.stack.narrow_weights = true;
  const KernelList masters = ExpandKernels(w);
  const auto bytes = [](const KernelList& list) {
    const PhaseCounts counts = list.Counts(Phase::kOptimizer);
    return counts.bytes_read + counts.bytes_written;
  };
  const int64_t parameters = TotalParameters(w.architecture);
  const int64_t added = bytes(masters) - bytes(autocast);
  // Each launch drops less than one byte of each of its two sums.
  const int64_t launches = masters.Counts(Phase::kOptimizer).launches;
  CHECK(added <= 12 * parameters);
  CHECK(added > 12 * parameters - 2 * launches);
  CHECK(autocast.Counts(Phase::kForward).matrix_flops ==
        masters.Counts(Phase::kForward).matrix_flops);
}

TEST_CASE("narrow weights need no casts") {
  Workload w = BertBaseInFp16();
  CHECK(CastsIn(ExpandKernels(w)) > 0);
  CHECK(Autocasts(w));
  w.stack.narrow_weights = true;
  CHECK(CastsIn(ExpandKernels(w)) == 0);
  CHECK_FALSE(Autocasts(w));
}

TEST_CASE("in fp32 there is nothing narrow") {
  Workload w = BertBaseInFp16();
  w.precision = Precision::kFp32;
  const PhaseCounts plain = ExpandKernels(w).Counts(Phase::kOptimizer);
  w.stack.narrow_weights = true;
  const PhaseCounts same = ExpandKernels(w).Counts(Phase::kOptimizer);
  CHECK(plain.launches == same.launches);
  CHECK(plain.bytes_read == same.bytes_read);
}

}  // namespace trainfare::model
