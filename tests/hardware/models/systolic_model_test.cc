#include <doctest/doctest.h>

#include <vector>

#include "hardware/models/device_models.h"
#include "hardware/models/systolic.h"
#include "model/memory.h"
#include "model/presets.h"
#include "model/stack_rules.h"
#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::hardware::models {
namespace {

const Device& TpuV2() { return DeviceCatalog::Shipped().Find("tpu_v2"); }

model::Workload Bert(int64_t batch, model::Fusion fusion) {
  model::Workload w;
  w.architecture = model::FindArchitecture("bert-base-cased");
  w.batch = batch;
  w.sequence_length = 512;
  w.precision = model::Precision::kBf16;
  w.stack.fusion = fusion;
  return w;
}

std::vector<double> SystolicNumbers() {
  std::vector<double> p(kSystolicParameterCount);
  p[kSystolicGemmEfficiency] = 0.25;
  p[kSystolicVectorEfficiency] = 0.4;
  p[kSystolicBandwidthEfficiency] = 0.5;
  p[kSystolicOverlap] = 0.5;
  p[kSystolicKernelOverhead] = 3e-6;
  p[kSystolicTraceCost] = 1e-3;
  p[kSystolicStepOverhead] = 0.1;
  return p;
}

}  // namespace

TEST_CASE("products are padded to the array") {
  CHECK(SystolicShare({1, 512, 768, 768}, 128, 128) == 1.0);
  // Attention scores of BERT-base: k = 64 fills half of the rows.
  CHECK(SystolicShare({192, 512, 512, 64}, 128, 128) == 0.5);
  // Length 32: a quarter of the columns as well.
  CHECK(SystolicShare({192, 32, 32, 64}, 128, 128) == 0.125);
  // A vocabulary of 28996 is padded to 227 columns of 128.
  CHECK(SystolicShare({1, 512, 28996, 768}, 128, 128) ==
        Near(28996.0 / 29056.0, 1e-12));
  CHECK(SystolicShare({1, 5, 5, 5}, 0, 0) == 1.0);
}

// docs/models/tpu.md, "A product".
TEST_CASE("a product on two cores, worked by hand") {
  model::Kernel product;
  product.kind = model::KernelKind::kGemm;
  product.gemm = {1, 16384, 3072, 768};
  product.matrix_flops = 77'309'411'328;
  product.bytes_read = 16384LL * 768 * 2 + 768LL * 3072 * 2;
  product.bytes_written = 16384LL * 3072 * 2;
  product.parameter_bytes = 768LL * 3072 * 2;
  model::KernelList kernels;
  kernels.kernels = {product};
  model::Segment segment;
  segment.end = 1;
  kernels.segments = {segment};
  const model::Workload w = Bert(32, model::Fusion::kCompiled);
  const StepTime<double> step =
      SystolicStep<double>(TpuV2(), w, kernels, SystolicNumbers());
  CHECK(model::ToMilliseconds(step.forward.matrix) == Near(6.72256, 1e-5));
  // Each core reads all weights, 4.719 MB, and half of the activations,
  // 62.915 MB, at 175 GB/s: 386.478 us, of which half is hidden.
  CHECK(model::ToMicroseconds(step.forward.memory) == Near(193.239, 1e-5));
  CHECK(model::ToMicroseconds(step.forward.overhead) == Near(3.0));
  CHECK(model::ToMilliseconds(step.total()) ==
        Near(6.72256 + 0.193239 + 0.003 + 100, 1e-6));
}

// docs/models/tpu.md, "Softmax".
TEST_CASE("softmax of attention takes the vector unit, worked by hand") {
  model::Kernel attention;
  attention.kind = model::KernelKind::kAttention;
  attention.gemm = {1, 32768, 32768, 128};
  attention.matrix_flops = 512'000'000'000;  // of 10^9 scores
  attention.vector_flops = 5'000'000'000;
  attention.special_ops = 1'000'000'000;
  model::KernelList kernels;
  kernels.kernels = {attention};
  model::Segment segment;
  segment.end = 1;
  kernels.segments = {segment};
  std::vector<double> p = SystolicNumbers();
  p[kSystolicGemmEfficiency] = 0.95;
  p[kSystolicStepOverhead] = 0;
  const StepTime<double> step =
      SystolicStep<double>(DeviceCatalog::Shipped().Find("tpu_v5p"),
                           Bert(1, model::Fusion::kXla),
                           kernels,
                           p);
  CHECK(model::ToMilliseconds(step.total()) ==
        Near(1.17418 + 2.27273 + 0.003, 1e-5));
}

TEST_CASE("an eager stack is traced on the host, a compiled one is not") {
  const std::vector<double> p = SystolicNumbers();
  const auto overhead = [&](model::Fusion fusion, model::Precision precision) {
    model::Workload w = Bert(32, fusion);
    w.precision = precision;
    const auto step =
        SystolicStep<double>(TpuV2(), w, model::ExpandKernels(w), p);
    return (step.forward.overhead + step.backward.overhead +
            step.optimizer.overhead)
        .base();
  };
  const double compiled =
      overhead(model::Fusion::kCompiled, model::Precision::kBf16);
  const double eager = overhead(model::Fusion::kEager, model::Precision::kBf16);
  CHECK(eager > 100 * compiled);
  // bf16 autocast casts: more operations, hence slower on PyTorch/XLA.
  CHECK(eager > 1.2 * overhead(model::Fusion::kEager, model::Precision::kFp32));
}

TEST_CASE("a compiled graph casts a weight in the product that loads it") {
  const std::vector<double> p = SystolicNumbers();
  const auto passes = [&](bool narrow) {
    model::Workload w = Bert(32, model::Fusion::kCompiled);
    w.stack.narrow_weights = narrow;
    const auto step =
        SystolicStep<double>(TpuV2(), w, model::ExpandKernels(w), p);
    // Not of the tables, whose gradients are as wide as their weights.
    return (step.forward_units.layer + step.backward_units.layer).base();
  };
  REQUIRE(model::CastsWeights(Bert(32, model::Fusion::kCompiled)));
  CHECK(passes(false) == passes(true));
}

TEST_CASE("the compiler fuses an optimizer however it is written") {
  const std::vector<double> p = SystolicNumbers();
  const auto memory = [&](model::OptimizerImplementation implementation) {
    model::Workload w = Bert(32, model::Fusion::kCompiled);
    w.optimizer.implementation = implementation;
    return SystolicStep<double>(TpuV2(), w, model::ExpandKernels(w), p)
        .optimizer.memory.base();
  };
  const double fused = memory(model::OptimizerImplementation::kFused);
  CHECK(memory(model::OptimizerImplementation::kMultiTensor) ==
        Near(fused, 1e-4));
  CHECK(memory(model::OptimizerImplementation::kForLoop) == Near(fused, 1e-3));
}

TEST_CASE("the busiest of two cores has whole sequences, and every parameter") {
  model::Workload w = Bert(3, model::Fusion::kCompiled);
  CHECK(ShareOfBusiestCore(TpuV2(), w, model::Phase::kForward) ==
        Near(2.0 / 3.0, 1e-5));
  CHECK(ShareOfBusiestCore(TpuV2(), w, model::Phase::kOptimizer) == 1.0);
  w.batch = 1;
  CHECK(ShareOfBusiestCore(TpuV2(), w, model::Phase::kForward) == 1.0);
  // Muon's products are of the update, whatever the batch.
  w.architecture.head = model::Head::kNone;
  w.architecture.pooler = false;
  w.optimizer.kind = model::OptimizerKind::kMuon;
  w.stack.narrow_weights = true;
  const auto update = [&](int64_t batch) {
    w.batch = batch;
    const StepTime<double> step = SystolicStep<double>(
        TpuV2(), w, model::ExpandKernels(w), SystolicNumbers());
    return ToSeconds(step.optimizer.total());
  };
  CHECK(update(1) > 0);
  CHECK(update(2) == Near(update(1), 1e-12));
}

// docs/models/tpu.md, "What fits": the outcomes printed for one core, half of a
// chip's memory. PyTorch/XLA keeps what a compiled graph keeps; TensorFlow's
// one graph lets XLA compute activations anew.
TEST_CASE("batches that fit on one core") {
  const auto fits = [](const char* device, int64_t batch, bool recomputed) {
    model::Workload w = Bert(batch, model::Fusion::kCompiled);
    w.gradient_checkpointing = recomputed;
    const model::Bytes<> of_core =
        DeviceCatalog::Shipped().Find(device).memory_capacity / 2.0;
    return model::EstimateMemory(w, {}).total() <= of_core;
  };
  CHECK(fits("tpu_v2", 24, false));
  CHECK_FALSE(fits("tpu_v2", 32, false));
  CHECK_FALSE(fits("tpu_v2", 64, false));
  CHECK(fits("tpu_v2", 64, true));
  CHECK(fits("tpu_v3", 128, true));
}

}  // namespace trainfare::hardware::models
