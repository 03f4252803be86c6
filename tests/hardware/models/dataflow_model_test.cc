#include <doctest/doctest.h>

#include <vector>

#include "hardware/models/dataflow.h"
#include "hardware/models/device_models.h"
#include "model/presets.h"
#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::hardware::models {
namespace {

const Device& Find(const char* name) {
  return DeviceCatalog::Shipped().Find(name);
}

model::Workload BertLarge(int64_t batch, model::Precision precision) {
  model::Workload w;
  w.architecture = model::FindArchitecture("bert-large-uncased");
  w.batch = batch;
  w.sequence_length = 128;
  w.precision = precision;
  w.stack.fusion = model::Fusion::kCompiled;
  return w;
}

std::vector<double> DataflowNumbers() {
  std::vector<double> p(kDataflowParameterCount);
  p[kDataflowRateEfficiency] = 0.25;
  p[kDataflowStreamEfficiency] = 0.1;
  p[kDataflowOverlap] = 0.5;
  p[kDataflowStageLatency] = 1e-6;
  p[kDataflowStepOverhead] = 1e-3;
  return p;
}

}  // namespace

// docs/models/dataflow.md, "A layer": 1 PFLOP over 7.5 PFLOP/s x 0.25 takes
// 533.333 ms; 1.5 GB of weights over 150 GB/s x 0.1 take 100 ms, half of them
// hidden; 10 stages fill in 10 us; the host takes 1 ms.
TEST_CASE("a stretch of a wafer, worked by hand") {
  model::Kernel product;
  product.kind = model::KernelKind::kGemm;
  product.gemm = {1, 1024, 1024, 1024};
  product.matrix_flops = 100'000'000'000'000;
  product.parameter_bytes = 150'000'000;
  product.launches = 10;
  model::KernelList kernels;
  kernels.kernels = {product};
  model::Segment segment;
  segment.end = 1;
  kernels.segments = {segment};
  const StepTime<double> step =
      DataflowStep<double>(Find("cerebras_wse2"),
                           BertLarge(1024, model::Precision::kFp16),
                           kernels,
                           DataflowNumbers());
  CHECK(model::ToMilliseconds(step.forward.matrix) == Near(533.3333, 1e-6));
  CHECK(model::ToMilliseconds(step.forward.memory) == Near(50.0));
  CHECK(model::ToMilliseconds(step.forward.overhead) == Near(0.010));
  CHECK(model::ToMilliseconds(step.total()) == Near(584.3433, 1e-6));
}

TEST_CASE("weights stream where they can come from outside") {
  CHECK(WeightStream(Find("cerebras_wse2"))->base() == 150e9);
  // Memory beside the chip.
  CHECK(WeightStream(Find("sambanova_sn10"))->base() == 153.6e9);
  CHECK(WeightStream(Find("ipu_gc200")).has_value());
  CHECK_FALSE(WeightStream(Find("groq_lpu")).has_value());
}

TEST_CASE("a forward pass with its weights on the chip streams none") {
  model::Workload w = BertLarge(64, model::Precision::kFp16);
  w.work = model::Work::kForward;
  const auto memory = [&](const char* device) {
    return DataflowStep<double>(
               Find(device), w, model::ExpandKernels(w), DataflowNumbers())
        .forward.memory.base();
  };
  CHECK(memory("cerebras_wse2") == 0);
  w.precision = model::Precision::kBf16;
  CHECK(memory("sambanova_sn10") > 0);  // 670 MB, 320 MB on chip
}

TEST_CASE("a small batch waits for the stream, a large one for the chip") {
  const auto step = [&](int64_t batch) {
    const model::Workload w = BertLarge(batch, model::Precision::kFp16);
    return DataflowStep<double>(
        Find("cerebras_wse2"), w, model::ExpandKernels(w), DataflowNumbers());
  };
  CHECK(step(64).backward.memory > step(64).backward.matrix);
  CHECK(step(4096).backward.memory < step(4096).backward.matrix);
  // The rate is steady: twice the samples of a large batch, twice the compute.
  CHECK(step(8192).backward.matrix.base() ==
        Near(2 * step(4096).backward.matrix.base(), 1e-3));
}

}  // namespace trainfare::hardware::models
