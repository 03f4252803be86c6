#include <doctest/doctest.h>

#include <cmath>
#include <string_view>

#include "hardware/models/gpu/instructions.h"
#include "model/architecture.h"
#include "model/error.h"

namespace trainfare::hardware::models {
namespace {

const Device& V100() { return DeviceCatalog::Shipped().Find("v100_sxm2_16gb"); }

// 64 pairs of 32 tokens: 2048 a side.
model::Workload Translation(model::Fusion fusion) {
  model::Workload w;
  w.architecture = model::FindArchitecture("transformer-big");
  w.batch = 64;
  w.sequence_length = 32;
  w.precision = model::Precision::kFp16;
  w.optimizer = {model::OptimizerKind::kAdamW,
                 model::OptimizerImplementation::kFused};
  w.stack.fusion = fusion;
  return w;
}

GpuInstructions Of(const model::Workload& w, model::KernelName name) {
  for (const model::Kernel& kernel : ExpandKernels(w).kernels) {
    if (kernel.name == name) return InstructionsOf(V100(), w, kernel);
  }
  FAIL("no such kernel");
  return {};
}

GpuInstructions Sum(const model::Workload& w, bool products) {
  const model::KernelList list = ExpandKernels(w);
  GpuInstructions sum;
  for (const model::Segment& segment : list.segments) {
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      const model::Kernel& kernel = list.kernels[static_cast<size_t>(i)];
      if ((kernel.matrix_flops > 0) != products) continue;
      sum += InstructionsOf(V100(), w, kernel) *
             static_cast<double>(segment.repeat * kernel.launches);
    }
  }
  return sum;
}

}  // namespace

// docs/models/counts.md, "Instructions": by hand.
TEST_CASE("an addition of halves is 34 instructions for 4 elements") {
  const GpuInstructions add =
      Of(Translation(model::Fusion::kFairseq), "residual add");
  CHECK(add.warps == 16'384);  // 2048 x 1024 / 4 / 32
  CHECK(add.executed == 34 * 16'384);
  CHECK(add.blocks == 4'096);
  CHECK(add.resident_warps == 64);  // 204.8 to an SM, so all that it holds
  // Two halves are widened, one multiply-add made, for each element.
  CHECK(add.fp16_flops == 2 * 2048 * 1024);
  CHECK(add.fp32_flops == 2 * 2048 * 1024);
}

TEST_CASE(
    "a product on tensor cores: 512 FLOPs an instruction and its operands") {
  const GpuInstructions product =
      Of(Translation(model::Fusion::kLightSeq), "feed-forward in");
  // 2048 x 4096 x 1024 in tiles of 128 x 128, warps of 64 x 32.
  const double tensor = 2.0 * 2048 * 4096 * 1024 / 512;
  CHECK(tensor == 33'554'432);
  const double outputs = 2048.0 * 4096;
  CHECK(product.executed ==
        doctest::Approx(tensor * (1.0 + 2.0 / 64 + 2.0 / 32 + 4.0 / 128) +
                        3.0 * outputs / 32)
            .epsilon(1e-12)
            .scale(0));
  CHECK(product.fp32_flops == outputs);
  CHECK(product.fp16_flops == 0);
  CHECK(product.warps == 16 * 32 * 8);
  CHECK(product.resident_warps == 16);  // two blocks, docs/models/gpu.md
  // Fairseq adds its product to a bias that was laid out.
  const GpuInstructions added =
      Of(Translation(model::Fusion::kFairseq), "feed-forward in");
  CHECK(added.executed - product.executed ==
        doctest::Approx(1.2 * outputs / 32).epsilon(1e-9).scale(0));
  CHECK(added.fp16_flops == outputs);
}

// What the published ratios come to, and why
// (docs/results/validation_published.md): products are three quarters of all
// instructions and the same in both.
TEST_CASE("LightSeq2 over Fairseq, 2048 tokens") {
  const model::Workload fairseq = Translation(model::Fusion::kFairseq);
  const model::Workload lightseq = Translation(model::Fusion::kLightSeq);
  const GpuInstructions fairseq_products = Sum(fairseq, true);
  const GpuInstructions lightseq_products = Sum(lightseq, true);
  CHECK(lightseq_products.executed / fairseq_products.executed ==
        doctest::Approx(1.0).epsilon(0.005).scale(0));
  GpuInstructions of_fairseq = Sum(fairseq, false);
  of_fairseq += fairseq_products;
  GpuInstructions of_lightseq = Sum(lightseq, false);
  of_lightseq += lightseq_products;
  CHECK(fairseq_products.executed / of_fairseq.executed > 0.75);
  const auto ratio = [&](double GpuInstructions::*counter) {
    return of_lightseq.*counter / (of_fairseq.*counter);
  };
  CHECK(ratio(&GpuInstructions::executed) ==
        doctest::Approx(0.960).epsilon(0.001).scale(0));
  CHECK(ratio(&GpuInstructions::fp32_flops) ==
        doctest::Approx(0.865).epsilon(0.001).scale(0));
  CHECK(ratio(&GpuInstructions::fp16_flops) ==
        doctest::Approx(1.105).epsilon(0.001).scale(0));
}

TEST_CASE("the elements of a reduction follow from its bytes") {
  for (const auto fusion :
       {model::Fusion::kFairseq, model::Fusion::kLightSeq}) {
    const GpuInstructions norm = Of(Translation(fusion), "layer norm");
    // 8 elements a thread.
    CHECK(norm.warps == 2048 * 1024 / 8 / 32);
    // The first is that of the last block's output: logits have no bias.
    CHECK(Of(Translation(fusion), "bias gradient").fp32_flops == 2048 * 1024);
  }
  CHECK(Of(Translation(model::Fusion::kLightSeq), "loss").warps ==
        2048 * 37'000 / 32);
}

TEST_CASE("a kernel that nobody counted is refused") {
  model::Workload eager = Translation(model::Fusion::kEager);
  CHECK_THROWS_WITH_AS(
      Of(eager, "layer norm"),
      "instructions: nobody counted those of \"layer norm\" in stack eager",
      model::InputError);
}

}  // namespace trainfare::hardware::models
