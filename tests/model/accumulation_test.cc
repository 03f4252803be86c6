// Gradients of micro-batches, added up.

#include <doctest/doctest.h>

#include "model/kernels.h"
#include "model/optimizer_kernels.h"
#include "model/trainable.h"
#include "tests/model/decoder_workloads.h"
#include "tests/model/step_kernels.h"
#include "tests/near.h"

namespace trainfare::model {
namespace {

Segment AddingOf(const KernelList& list) {
  for (const Segment& segment : list.segments) {
    if (segment.role == SegmentRole::kAccumulation) return segment;
  }
  FAIL("no gradients are added up");
  return {};
}

}  // namespace

// docs/models/counts.md, by hand: 1,235,814,400 parameters of 146 tensors in
// bf16; each micro-batch but the first reads its gradients and those that stand,
// and writes: 6 x 1,235,814,400 = 7,414,886,400 bytes.
TEST_CASE("each micro-batch but the first adds to gradients that stand") {
  Workload w = Narrow("llama-3.2-1b", 1, 512);
  CHECK(SumsOf(w, "gradient add", Phase::kBackward).launches == 0);
  w.accumulation = 8;
  const KernelList list = ExpandKernels(w);
  CHECK(PassesInStep(w, AddingOf(list)) == 7);
  CHECK(PassesInStep(w, list.segments.front()) == 8);
  const KernelSums sums = SumsOf(w, "gradient add", Phase::kBackward);
  CHECK(sums.launches == 146);
  CHECK(sums.bytes == Near(7'414'886'400.0, 1e-6));
  // Ranks add to what they keep of the sums.
  w.parallel.data = 8;
  w.parallel.shard = Shard::kZero1;
  CHECK(SumsOf(w, "gradient add", Phase::kBackward).bytes == sums.bytes);
  w.parallel.shard = Shard::kZero2;
  CHECK(SumsOf(w, "gradient add", Phase::kBackward).bytes ==
        Near(7'414'886'400.0 / 8, 1e-5));
  // In fp32 without autocast 12 bytes a parameter.
  w.parallel = {};
  w.precision = Precision::kFp32;
  CHECK(SumsOf(w, "gradient add", Phase::kBackward).bytes ==
        Near(12 * 1'235'814'400.0, 1e-6));
}

// XLA adds in the product: what stands is read, the sum written in place of what
// the product would have written; of a sum in fp32 of gradients in bf16 2 more.
TEST_CASE("a compiler of the whole step adds in the product") {
  Workload w = Narrow("llama-3.2-1b", 1, 512);
  w.stack.fusion = Fusion::kXla;
  w.accumulation = 8;
  CHECK(SumsOf(w, "gradient add", Phase::kBackward).bytes ==
        Near(2 * 1'235'814'400.0, 1e-6));
  w.optimizer.wide_gradients = true;
  CHECK(SumsOf(w, "gradient add", Phase::kBackward).bytes ==
        Near((4 + 2) * 1'235'814'400.0, 1e-6));
}

// Sums in fp32 of gradients in bf16: 2 + 4 read, 4 written, by every micro-batch;
// nothing is left to widen for the masters.
TEST_CASE("sums in fp32 are added to by every micro-batch") {
  Workload w = Narrow("llama-3.2-1b", 1, 512);
  const auto widened = [&] {
    return SumsOf(w, "unscale gradients", Phase::kOptimizer).bytes;
  };
  CHECK(widened() == Near(6 * 1'235'814'400.0, 1e-6));
  w.optimizer.wide_gradients = true;
  CHECK(PassesInStep(w, AddingOf(ExpandKernels(w))) == 1);
  CHECK(SumsOf(w, "gradient add", Phase::kBackward).bytes ==
        Near(10 * 1'235'814'400.0, 1e-6));
  CHECK(widened() == 0);
  w.accumulation = 4;
  CHECK(PassesInStep(w, AddingOf(ExpandKernels(w))) == 4);
}

}  // namespace trainfare::model
