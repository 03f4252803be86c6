#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "hardware/models/device_models.h"
#include "hardware/models/neuron/compiler.h"
#include "hardware/models/neuron/neuron.h"
#include "model/padding.h"
#include "model/presets.h"
#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::hardware::models {
namespace {

const Device& Core() { return DeviceCatalog::Shipped().Find("trainium1_core"); }

model::Workload Bert(int64_t batch, int64_t length) {
  model::Workload w;
  w.architecture = model::FindArchitecture("bert-base-uncased");
  w.batch = batch;
  w.sequence_length = length;
  w.precision = model::Precision::kBf16;
  w.stack.fusion = model::Fusion::kCompiled;
  return w;
}

std::vector<double> NeuronNumbers() {
  std::vector<double> p(kNeuronParameterCount);
  p[kNeuronTensorEfficiency] = 0.5;
  p[kNeuronVectorEfficiency] = 0.1;
  p[kNeuronScalarOp] = 40e-12;
  p[kNeuronEngineOverlap] = 0.2;
  p[kNeuronDmaEfficiency] = 0.5;
  p[kNeuronDmaOverlap] = 0.9;
  p[kNeuronActivationTraffic] = 0.6;
  p[kNeuronSpillShare] = 0.8;
  p[kNeuronKernelOverhead] = 0.3e-6;
  p[kNeuronStepOverhead] = 5e-3;
  p[kNeuronForwardOverhead] = 0.5e-3;
  p[kNeuronForwardOverlap] = 0.7;
  return p;
}

}  // namespace

// docs/models/trainium.md, "A stretch of the graph".
TEST_CASE("a product with its activation, worked by hand") {
  // (4096, 768) (768, 3072): one feed-forward product, all of it in the list.
  model::Kernel product;
  product.kind = model::KernelKind::kGemm;
  product.gemm = {1, 4096, 3072, 768};
  product.matrix_flops = 19'327'352'832;
  product.vector_flops = 1'000'000;
  product.special_ops = 1'000'000;
  product.bytes_read = 104'718'592;
  product.parameter_bytes = 4'718'592;
  model::KernelList kernels;
  kernels.kernels = {product};
  model::Segment segment;
  segment.end = 1;
  kernels.segments = {segment};
  const model::Workload w = Bert(32, 128);
  const std::vector<double> p = NeuronNumbers();

  const NeuronWork work = NeuronWorkOf(Core(), w, kernels, segment);
  CHECK(model::ToMicroseconds(work.tensor) == Near(203.446, 1e-5));
  CHECK(model::ToBytes(work.activation_bytes) == 100e6);
  CHECK(work.operations == 1);

  // As part of a pass that touches 200 MB.
  const NeuronActivity<double> busy =
      NeuronActivityOf<double>(Core(), work, model::MB(200), p);
  CHECK(model::ToMicroseconds(busy.tensor) == Near(406.892, 1e-5));
  CHECK(model::ToMicroseconds(busy.vector) == Near(4.34783, 1e-5));
  CHECK(model::ToMicroseconds(busy.scalar) == Near(40.0, 1e-12));
  CHECK(model::ToBytes(busy.spill) == Near(69.93367e6, 1e-6));
  CHECK(model::ToBytes(busy.traffic) == Near(134.65226e6, 1e-6));
  CHECK(model::ToMicroseconds(busy.dma) == Near(656.840, 1e-5));
  CHECK(model::ToMicroseconds(NeuronEngineTime<double>(busy, 0.2)) ==
        Near(442.370, 1e-5));

  // In a step of its own its pass is 100 MB: 59.867 MB spilled, 124.586 MB in
  // all, 607.736 us of DMA; 442.370 + 607.736 - 0.9 x 442.370, 0.3 and 5000 us.
  const StepTime<double> step = NeuronStep<double>(Core(), w, kernels, p);
  CHECK(model::ToMicroseconds(step.total()) ==
        Near(442.370 + 607.736 - 398.133 + 0.3 + 5000, 1e-6));
  // The terms add up, and the engines' stay whole.
  CHECK(model::ToMicroseconds(step.forward.matrix + step.forward.vector) ==
        Near(442.370, 1e-5));
  CHECK(step.forward.spill.base() > 0);

  // In fp32, at a quarter of the peak, what is lost beside it is the same.
  model::Workload wide = w;
  wide.precision = model::Precision::kFp32;
  const NeuronWork in_fp32 = NeuronWorkOf(Core(), wide, kernels, segment);
  CHECK(model::ToMicroseconds(in_fp32.tensor) == Near(813.783, 1e-5));
  CHECK(model::ToMicroseconds(
            NeuronActivityOf<double>(Core(), in_fp32, model::MB(200), p)
                .tensor) == Near(1017.229, 1e-5));

  // A forward pass alone hides 0.7 of the shorter engines, 406.892 + 0.3 x
  // 44.348, and has one call of the runtime.
  model::Workload forward = w;
  forward.work = model::Work::kForward;
  const StepTime<double> alone =
      NeuronStep<double>(Core(), forward, kernels, p);
  CHECK(model::ToMicroseconds(alone.total()) ==
        Near(420.196 + 607.736 - 378.177 + 0.3 + 500, 1e-6));
}

TEST_CASE("engines overlap between taking turns and the longest alone") {
  NeuronActivity<double> busy;
  busy.tensor = model::Milliseconds(8);
  busy.vector = model::Milliseconds(10);
  busy.scalar = model::Milliseconds(6);
  CHECK(model::ToMilliseconds(NeuronEngineTime<double>(busy, 0.0)) ==
        Near(24, 1e-5));
  CHECK(model::ToMilliseconds(NeuronEngineTime<double>(busy, 1.0)) ==
        Near(10, 1e-5));
  CHECK(model::ToMilliseconds(NeuronEngineTime<double>(busy, 0.5)) ==
        Near(17, 1e-5));
}

TEST_CASE("nothing spills while a pass fits in the SBUF") {
  CHECK(NeuronBytesPastSbuf(model::MiB(24), model::MiB(24)).base() == 0);
  CHECK(NeuronBytesPastSbuf(model::MiB(30), model::MiB(24)).base() ==
        model::MiB(6).base());
  model::Workload tiny = Bert(1, 16);
  tiny.architecture = model::FindArchitecture("bert-tiny");
  const auto kernels = model::ExpandKernels(tiny);
  CHECK(NeuronStepActivity<double>(Core(), tiny, kernels, NeuronNumbers())
            .spill.base() == 0);
}

// A block of one sequence of 128 touches 9 MB, the SBUF holds 25; twelve of
// them spill where a backward pass will ask for each.
TEST_CASE("a forward pass alone holds one block") {
  const auto spill = [](model::Work work) {
    model::Workload w = Bert(1, 128);
    w.work = work;
    const model::KernelList kernels = model::ExpandKernels(w);
    return NeuronStepActivity<double>(Core(), w, kernels, NeuronNumbers())
        .spill.base();
  };
  CHECK(spill(model::Work::kForward) == 0);
  CHECK(spill(model::Work::kForwardBackward) > 0);
}

// docs/models/trainium.md, "Spilling": 2.34 and 10.72 GB are touched by one
// pass of 32 sequences of 32 and of 128 tokens; 2 and 8.6 GB were spilled.
TEST_CASE("one spill share explains both lengths") {
  const auto touched = [](int64_t length) {
    const model::Workload w = Bert(32, length);
    return NeuronStepWorkOf(Core(), w, model::ExpandKernels(w))
        .pass_activations;
  };
  const auto share = [&](int64_t length, double spilled_gb) {
    return model::GB(spilled_gb) /
           NeuronBytesPastSbuf(touched(length), Core().on_chip_memory);
  };
  const double at_32 = share(32, 2.0);
  const double at_128 = share(128, 8.6);
  CHECK(at_32 == Near(0.864, 0.01));
  CHECK(at_128 == Near(0.804, 0.01));
  // Each predicts the other within 10 %.
  CHECK(std::abs(at_32 / at_128 - 1.0) < 0.10);
}

TEST_CASE("compiler levels and the host's memory") {
  const Device& trainium = DeviceCatalog::Shipped().Find("trainium1");
  const auto level = [&](int64_t asked) {
    return CompilerLevelFactor(trainium, asked);
  };
  CHECK(level(1) == Near(1.0370, 1e-4));
  CHECK(level(2) == 1.0);
  CHECK(level(3) == Near(0.9914, 1e-4));

  REQUIRE(trainium.compiler.has_value());
  const GraphMemory& compiler = *trainium.compiler->graph_memory;
  const auto base = model::FindArchitecture("bert-base-uncased");
  const model::Bytes<> memory = model::GB(32);
  const auto compile = [&](int64_t batch, double swap_gb) {
    return CompileOnHost(compiler,
                         CompilerMemory(compiler, base, batch * 128),
                         memory,
                         model::GB(swap_gb));
  };
  CHECK(compile(48, 0) == Compilation::kFits);
  CHECK(compile(64, 0) == Compilation::kFails);
  CHECK(compile(64, 90) == Compilation::kSwaps);
  CHECK(compile(128, 90) == Compilation::kFails);

  // A core compiles as its chip does; nobody tried others.
  const DeviceCatalog& shipped = DeviceCatalog::Shipped();
  CHECK(shipped.Find("trainium1_core").compiler->graph_memory->per_token ==
        compiler.per_token);
  for (const char* other : {"trainium2", "trainium3", "inferentia2"}) {
    CAPTURE(other);
    CHECK_FALSE(shipped.Find(other).compiler->graph_memory.has_value());
  }

  // BERT-large has 24 x 1024 for 12 x 768.
  const model::Bytes<> of_base = CompilerMemory(compiler, base, 6144);
  CHECK(model::ToBytes(of_base) == Near(27.7e9, 2e-3));
  CHECK(CompilerMemory(
            compiler, model::FindArchitecture("bert-large-uncased"), 6144) /
            of_base ==
        Near(24.0 * 1024 / (12 * 768), 1e-12));
}

// docs/models/trainium.md, "Dynamic padding".
TEST_CASE("dynamic padding compiles for hours") {
  const auto lengths = model::LengthHistogram::FromQuantiles(
      4, {{20, 0.5}, {38, 0.9}, {45, 0.95}, {57, 0.99}, {87, 1.0}});
  const std::vector<model::PaddedLength> of_batches =
      model::DynamicLengths(lengths, 8, 128);
  constexpr double kSteps = 3 * 16000.0 / 8;
  const double shapes = model::ExpectedDistinctLengths(of_batches, kSteps);
  CHECK(shapes > 65);
  CHECK(shapes <= 84);
  // A step whose length is another than the last one's.
  double same = 0;
  for (const model::PaddedLength& l : of_batches) same += l.share * l.share;
  CHECK(same < 0.06);
  // 179 s a shape: compiled once each, and anew at every change.
  const double once_h = shapes * 179 / 3600;
  const double anew_h = kSteps * (1 - same) * 179 / 3600;
  CHECK(once_h == Near(3.7, 0.1));
  CHECK(anew_h == Near(285, 0.05));
  CHECK(once_h < 77);
  CHECK(77 < anew_h);
}

}  // namespace trainfare::hardware::models
