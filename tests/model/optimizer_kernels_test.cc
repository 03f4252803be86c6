#include "model/optimizer_kernels.h"

#include <doctest/doctest.h>

#include "model/kernels.h"
#include "model/presets.h"
#include "model/trainable.h"
#include "tests/model/step_kernels.h"

namespace trainfare::model {
namespace {

// The fused update reads parameters, gradients and both moments and writes all
// but the gradients: 7 x 4 bytes a parameter.
TEST_CASE("bytes of the fused AdamW update") {
  const KernelList list = ExpandKernels(BertBase(1, 8));
  const PhaseCounts counts = list.Counts(Phase::kOptimizer);
  const int64_t parameters = 109'483'778;
  // The list spreads the bytes over ceil(201 / 36) = 6 launches.
  CHECK(counts.launches == 6);
  CHECK(counts.bytes_read + counts.bytes_written <= 28 * parameters);
  CHECK(counts.bytes_read + counts.bytes_written > 28 * parameters - 12);
}

TEST_CASE("a for-loop launches every operation for every tensor") {
  Workload w = BertBase(1, 8);
  w.architecture = FindArchitecture("bert-base-cased");
  w.optimizer = {OptimizerKind::kAdan, OptimizerImplementation::kForLoop};
  CHECK(ExpandKernels(w).Counts(Phase::kOptimizer).launches == 18 * 201);
}

// Published (s003, table 4.4), first step: the update and 4 x 201 fills.
TEST_CASE("four forms of Adan launch what their profiles show") {
  Workload w = BertBase(1, 8);
  w.architecture = FindArchitecture("bert-base-cased");
  const auto first_step = [&w](OptimizerImplementation implementation,
                               FusedAccess access) {
    w.optimizer = {OptimizerKind::kAdan, implementation};
    std::vector<Kernel> kernels;
    AppendOptimizerKernels(w, kernels, access);
    // Every state tensor is made and zeroed.
    int64_t launches = OperationsOf(w).state_tensors * TrainableTensorCount(w);
    for (const Kernel& kernel : kernels) launches += kernel.launches;
    return launches;
  };
  using enum OptimizerImplementation;
  CHECK(first_step(kForLoop, FusedAccess::kAllTensors) == 4422);
  CHECK(first_step(kFused, FusedAccess::kOneTensor) == 1407);
  CHECK(first_step(kMultiTensor, FusedAccess::kAllTensors) == 912);
  CHECK(first_step(kFused, FusedAccess::kAllTensors) == 826);
}

// docs/models/counts.md, "Learning rates", by hand: the embeddings, 12 blocks
// and the head have tensors with and without decay, 28 groups.
TEST_CASE("layer-wise decay updates each layer by itself") {
  Workload w = BertBase(1, 8);
  const auto optimizer = [&w](OptimizerImplementation implementation,
                              bool by_layer) {
    w.optimizer = {OptimizerKind::kAdamW, implementation, by_layer};
    return ExpandKernels(w).Counts(Phase::kOptimizer);
  };
  using enum OptimizerImplementation;
  CHECK(optimizer(kMultiTensor, false).launches == 8 * 6);
  CHECK(optimizer(kMultiTensor, true).launches == 8 * 28);
  CHECK(optimizer(kFused, true).launches == 28);
  CHECK(optimizer(kForLoop, true).launches ==
        optimizer(kForLoop, false).launches);
  // Nothing but launches: bytes and FLOPs are those of the parameters, to
  // within what a division by the launches leaves over.
  const auto whole = optimizer(kMultiTensor, false);
  const auto apart = optimizer(kMultiTensor, true);
  CHECK(std::abs(whole.bytes_read - apart.bytes_read) <= apart.launches);
  CHECK(std::abs(whole.bytes_written - apart.bytes_written) <= apart.launches);
}

}  // namespace
}  // namespace trainfare::model
