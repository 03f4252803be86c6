// The formulas of the GPU model, each worked by hand in docs/models/gpu.md.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "hardware/models/device_models.h"
#include "model/presets.h"
#include "tests/hardware/models/gpu/volta.h"
#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::hardware::models {
namespace {

model::Workload LlamaWithFlash(int64_t batch, int64_t length) {
  model::Workload w;
  w.architecture = model::FindArchitecture("llama-2-7b");
  w.batch = batch;
  w.sequence_length = length;
  w.precision = model::Precision::kBf16;
  w.stack.attention = model::Attention::kFlash;
  return w;
}

// The rates of every kernel of attention, forward passes first.
std::vector<double> AttentionTflopPerSecond(const Device& device,
                                            const model::Workload& workload) {
  const GpuKernelRates rates(device, workload);
  const std::vector<double> p = Priors();
  std::vector<double> reached;
  for (const model::Kernel& kernel : model::ExpandKernels(workload).kernels) {
    if (kernel.kind != model::KernelKind::kAttention) continue;
    const auto time =
        GpuKernelTime<double>(device, rates.Of(kernel), kernel, p).total();
    reached.push_back(static_cast<double>(kernel.matrix_flops) /
                      ToSeconds(time) * 1e-12);
  }
  return reached;
}

}  // namespace

// 128 x 128 in fp16: 256 operands of 2 B for 32,768 FLOPs, 1/64 B a FLOP. At
// 112 TFLOP/s 1.75 TB/s, of the 2.43 TB/s of the cache:
// 1 / sqrt(1 + 0.7202^2) = 0.8115.
TEST_CASE("the cache feeds the tensor cores") {
  CHECK(OperandBytesPerFlop(FactsOfGpus().tensor_cores.tiles[1], 2.0) ==
        Near(1.0 / 64.0));
  const double load = 112e12 / 64.0 / 2.43e12;
  CHECK(FedShare(112e12, 1.0 / 64.0, 2.43e12) ==
        Near(1.0 / std::sqrt(1.0 + load * load)));
  CHECK(FedShare(112e12, 1.0 / 64.0, 2.43e12) == Near(0.8115, 1e-4));
}

// A softmax over rows of 8192 numbers in fp32: 16 warps a row, so 4 rows on
// each of 80 SMs and 320 of 32 KiB under way, 10.49 MB; of the 6 MiB cache they
// may fill 0.55, 3.46 MB. (3.46 / 10.49)^4 = 0.0119, so that 0.988 of what is
// read twice more is read from memory. A norm of 768 in fp16: 4 warps, 1280
// rows of 1.5 KiB, 1.97 MB: 1 / (1 + 1.76^4) = 0.0944 of what is read once
// more.
TEST_CASE("a reduction reads again what the cache has lost") {
  const auto reduction =
      [](model::RowReads reads, int64_t rows, int64_t length, int64_t width) {
        model::Kernel kernel;
        kernel.kind = model::KernelKind::kReduction;
        kernel.row_reads = reads;
        kernel.work_items = rows;
        kernel.bytes_read = rows * length * width;
        kernel.bytes_written = rows * length * width;
        return kernel;
      };
  const auto again = [&](const model::Kernel& kernel) {
    return BytesReadAgain(Volta(), kernel) /
           static_cast<double>(kernel.bytes_read);
  };
  using enum model::RowReads;
  CHECK(again(reduction(kThrice, 100'000, 8192, 4)) == Near(2 * 0.98828, 1e-4));
  CHECK(again(reduction(kTwice, 100'000, 8192, 4)) == Near(0.98828, 1e-4));
  CHECK(again(reduction(kNorm, 100'000, 768, 2)) == Near(0.0944, 2e-3));
  // Rows of 1024 in fp32 stay in a warp's registers; sums read once.
  CHECK(again(reduction(kThrice, 100'000, 1024, 4)) == 0.0);
  CHECK(again(reduction(kOnce, 100'000, 8192, 4)) == 0.0);
  // Few rows are all under way, and are found once more.
  CHECK(again(reduction(kThrice, 8, 8192, 4)) < 1e-4);
}

// Dao 2023, figures 4 to 6: an A100 does about 180 TFLOP/s forward and 150
// backward in causal attention of 4096 tokens and heads of 128.
TEST_CASE("attention in one kernel reaches what is published of it") {
  const std::vector<double> rates = AttentionTflopPerSecond(
      hardware::DeviceCatalog::Shipped().Find("a100_sxm4_80gb"),
      LlamaWithFlash(4, 4096));
  CHECK(rates.size() >= 2);
  for (const double rate : rates) {
    CAPTURE(rate);
    CHECK(rate > 130.0);
    CHECK(rate < 200.0);
  }
}

// Shah et al. 2024 (FlashAttention-3), section 1: FlashAttention-2, which
// LibTorch has, reaches 35 % of an H100's 989 TFLOP/s, 346; kernels of the
// generation's own instructions, as cuDNN's are, more.
TEST_CASE("attention by instructions of an older generation is slower") {
  const Device& h100 = hardware::DeviceCatalog::Shipped().Find("h100_sxm");
  model::Workload w = LlamaWithFlash(1, 16384);
  const double waits = AttentionTflopPerSecond(h100, w).at(0);
  CHECK(waits > 300.0);
  CHECK(waits < 400.0);
  w.stack.fusion = model::Fusion::kXla;
  CHECK(AttentionTflopPerSecond(h100, w).at(0) > 1.3 * waits);
  CHECK(GpuKernelRates(h100, w).Of({}).attention == 1.0);
}

// Of 3 s and 2 s the shorter is hidden but for 0.28 of it: 3.56 s, whichever is
// which; none of it by instructions that wait.
TEST_CASE("softmax runs under the products of another block, by hand") {
  const model::Seconds<> long_one(3.0);
  const model::Seconds<> short_one(2.0);
  CHECK(OverlappedTime(long_one, short_one, 0.28).base() == Near(3.56));
  CHECK(OverlappedTime(short_one, long_one, 0.28).base() == Near(3.56));
  CHECK(OverlappedTime(long_one, short_one, 1.0).base() == Near(5.0));
}

// Forward over heads of 128: FlashAttention-3 on H100 at 661 TFLOP/s (Shah et al.
// 2024, section 4.2) and 621 (meta-pytorch/tritonbench), FlashAttention-2 on B200
// at 352 (meta-pytorch/tritonbench#171), FlashAttention-4 there at 1418 with a
// causal mask and, backward, at 1118 to 1209 (Dao-AILab/flash-attention#2280).
// Backward FlashAttention-2 on H100 at 322 (Shah et al. 2024, figure 6).
TEST_CASE("attention by the instructions of its generation") {
  const auto rates = [](const char* device, model::Attention attention) {
    model::Workload w = LlamaWithFlash(1, 16384);
    w.stack.attention = attention;
    return AttentionTflopPerSecond(
        hardware::DeviceCatalog::Shipped().Find(device), w);
  };
  using enum model::Attention;
  CHECK(rates("h100_sxm", kFlash3).at(0) == Near(640, 0.1));
  CHECK(rates("h100_sxm", kFlash2) == rates("h100_sxm", kFlash));
  CHECK(rates("h100_sxm", kFlash2).at(1) == Near(322, 0.1));
  CHECK(rates("b200_sxm", kFlash2).at(0) == Near(352, 0.15));
  // LibTorch's is cuDNN's there.
  CHECK(rates("b200_sxm", kFlash) == rates("b200_sxm", kFlash3));
  CHECK(rates("b200_sxm", kFlash3).at(0) == Near(1418, 0.1));
  CHECK(rates("b200_sxm", kFlash3).at(1) == Near(1165, 0.1));
  CHECK(rates("b300_sxm", kFlash3).at(0) >
        1.05 * rates("b200_sxm", kFlash3).at(0));
  // Where there are no other instructions all are one.
  CHECK(rates("a100_sxm4_80gb", kFlash3) == rates("a100_sxm4_80gb", kFlash));
}

// Of 16 results a clock beside 64 lanes of 2 FLOPs one is worth 8, beside 128 lanes
// 16; B300 has 32 beside 128.
TEST_CASE("special functions beside lanes") {
  const auto of = [](const char* device) {
    return SpecialOpOf(hardware::DeviceCatalog::Shipped().Find(device));
  };
  for (const char* device : {"p100_pcie_16gb", "v100_pcie_16gb", "t4"}) {
    CHECK(of(device) == 8.0);
  }
  CHECK(of("a100_sxm4_80gb") == 8.0);
  CHECK(of("a40") == 16.0);
  CHECK(of("h100_sxm") == 16.0);
  CHECK(of("b300_sxm") == 8.0);
}

// In tf32 it is as fast as in fp32: both multiply on the lanes.
TEST_CASE("LibTorch's attention in one kernel has no tf32") {
  const Device& h100 = hardware::DeviceCatalog::Shipped().Find("h100_sxm");
  model::Workload w = LlamaWithFlash(1, 4096);
  w.precision = model::Precision::kFp32;
  const double fp32 = AttentionTflopPerSecond(h100, w).at(0);
  w.precision = model::Precision::kTf32;
  CHECK(AttentionTflopPerSecond(h100, w).at(0) == Near(fp32));
  w.stack.fusion = model::Fusion::kXla;
  CHECK(AttentionTflopPerSecond(h100, w).at(0) > 2.0 * fp32);
}

// 8 of the 13.18 warps that would hide everything: w = 0.607.
TEST_CASE("overlap from active against needed warps") {
  const Device d = Volta();
  const GpuRates rates = RatesOf(d, model::Precision::kFp32, false);
  model::Kernel k;
  k.kind = model::KernelKind::kGemm;
  k.gemm = {.batch = 1, .m = 1024, .n = 1024, .k = 1024};
  k.matrix_flops = int64_t{2} * 1024 * 1024 * 1024;
  k.bytes_read = 8 * 1024 * 1024;
  k.bytes_written = 4 * 1024 * 1024;
  k.parameter_bytes = k.bytes();  // so that no byte comes from the cache
  auto p = Priors();
  p[kGpuMemoryLatency] = 600e-9;
  const auto time = GpuKernelTime<double>(d, rates, k, p);
  const double memory =
      12.0 * 1024 * 1024 / (900e9 * p[kGpuBandwidthEfficiency]);
  const double hidden = 8.0 / (6750.0 / 512.0);
  CHECK(time.memory.base() == Near(memory * (1.0 - hidden)));
  CHECK(time.fixed.base() == Near(p[kGpuKernelOverhead]));
}

// 460 and 1000 FLOPs of an SM and clock: 80 x 1.38 GHz are 50.8 and 110.4
// TFLOP/s. Rows of 50,257 numbers in fp16 start at multiples of 2 bytes, of
// 50,258 and 50,260 at 4 and 8, of 50,264 at 16.
TEST_CASE("rows at odd places are read by slower instructions, by hand") {
  const Device d = Volta();
  const auto aligned = [&](int64_t vocabulary, double element) {
    model::Kernel k;
    k.gemm = {.batch = 1, .m = 4095, .n = vocabulary, .k = 768};
    return AlignmentOf(k, element);
  };
  CHECK(aligned(50257, 2) == RowAlignment::kOdd);
  CHECK(aligned(50258, 2) == RowAlignment::kEven);
  CHECK(aligned(50260, 2) == RowAlignment::kEven);
  CHECK(aligned(50264, 2) == RowAlignment::kFull);
  CHECK(aligned(50257, 4) == RowAlignment::kEven);
  CHECK(aligned(50260, 4) == RowAlignment::kFull);
  // A weight gradient sums over tokens, whose number does not matter.
  model::Kernel gradient;
  gradient.gemm = {.batch = 1, .m = 768, .n = 50264, .k = 4095};
  gradient.parameter_bytes_written = 1;
  CHECK(AlignmentOf(gradient, 2) == RowAlignment::kFull);

  gradient.gemm.n = 50257;
  CHECK(AlignmentOf(gradient, 2) == RowAlignment::kOdd);
  // Attention's products by their lengths; those of experts by their matrices.
  model::Kernel scores;
  scores.gemm = {.batch = 96, .m = 393, .n = 64, .k = 64};
  CHECK(AlignmentOf(scores, 2) == RowAlignment::kOdd);
  model::Kernel experts = scores;
  experts.parameter_bytes = 1;
  CHECK(AlignmentOf(experts, 2) == RowAlignment::kFull);

  const GpuRates rates = RatesOf(d, model::Precision::kFp16, false);
  REQUIRE(rates.most);
  CHECK((*rates.most)[1] == Near(1000.0 * 80 * 1.38e9));
  CHECK((*rates.most)[2] == Near(460.0 * 80 * 1.38e9));
  CHECK_FALSE(RatesOf(d, model::Precision::kFp16, true).most);
  CHECK_FALSE(RatesOf(d, model::Precision::kFp32, false).most);

  // A long product takes nearly what the cap says; a stack that pads does not.
  model::Workload w = GpuBert(8, 128);
  w.architecture = model::FindArchitecture("gpt2");
  w.precision = model::Precision::kFp16;
  model::Kernel k;
  k.kind = model::KernelKind::kGemm;
  k.gemm = {.batch = 1, .m = 8192, .n = 50257, .k = 4096};
  k.matrix_flops = int64_t{2} * 8192 * 50257 * 4096;
  k.bytes_read = int64_t{2} * (8192 + 50257) * 4096;
  k.bytes_written = int64_t{2} * 8192 * 50257;
  const auto rate = [&] {
    const auto time =
        GpuKernelTime<double>(d, GpuKernelRates(d, w).Of(k), k, Priors());
    return static_cast<double>(k.matrix_flops) / ToSeconds(time.total());
  };
  CHECK(rate() < 50.8e12);
  CHECK(rate() > 0.8 * 50.8e12);
  w.stack.fusion = model::Fusion::kCompiled;
  CHECK(rate() > 1.3 * 50.8e12);
}

// 64 lanes an SM issue loads beside arithmetic; 128 lanes lose a slot to each.
TEST_CASE("lanes share their issue slots with loads") {
  Device d = Volta();
  CHECK(IssueShare(d) == 1.0);
  d.peak.fp32 = model::TFlopPerSecond(28);
  CHECK(IssueShare(d) == Near(0.8));
}

TEST_CASE("engines by precision") {
  Device d = Volta();
  CHECK(EngineOf(d, model::Precision::kFp32) == GpuEngine::kLanes);
  CHECK(EngineOf(d, model::Precision::kFp16) == GpuEngine::kTensorCores);
  d.peak.fp16 = model::TFlopPerSecond(28);  // packed, as on Pascal
  CHECK(EngineOf(d, model::Precision::kFp16) == GpuEngine::kLanes);
  d.peak.tf32 = model::TFlopPerSecond(14);  // GeForce halves its tensor cores
  CHECK(EngineOf(d, model::Precision::kFp16) == GpuEngine::kTensorCores);
  CHECK(EngineOf(d, model::Precision::kTf32) == GpuEngine::kTensorCores);
}

// At batch 1 an eager step waits for the host: with a launch cost far above
// any kernel's time, the step is its launches and little else.
TEST_CASE("a small step is as long as its launches") {
  const Device d = Volta();
  const model::Workload w = GpuBert(1, 16);
  auto p = Priors();
  p[kGpuLaunchCost] = 1e-3;
  const StepTime<double> step = GpuStepOf(d, w, p);
  const model::KernelList list = model::ExpandKernels(w);
  int64_t launches = 0;
  for (const auto phase : {model::Phase::kForward,
                           model::Phase::kBackward,
                           model::Phase::kOptimizer}) {
    launches += list.Counts(phase).launches;
  }
  const double host = static_cast<double>(launches) * 1e-3;
  CHECK(step.total().base() > host);
  CHECK(step.total().base() < host * 1.02);
  CHECK(step.forward.overhead.base() > 0.9 * step.forward.total().base());
}

// Where the host is what takes time, fewer and cheaper launches are the gain.
TEST_CASE("a compiled graph launches for less") {
  const Device d = Volta();
  model::Workload w = GpuBert(1, 16);
  auto p = Priors();
  p[kGpuLaunchCost] = 1e-4;
  const double eager = GpuStepOf(d, w, p).forward.total().base();
  w.stack.fusion = model::Fusion::kCompiled;
  CHECK(GpuStepOf(d, w, p).forward.total().base() <
        p[kGpuCompiledLaunchShare] * eager);
}

// What a launch takes is the framework's, or a share that is fitted.
TEST_CASE("each stack's launches take their share of the host") {
  auto p = Priors();
  p[kGpuLaunchCost] = 8.0;
  p[kGpuLibraryLaunchShare] = 0.5;
  p[kGpuCompiledLaunchShare] = 0.25;
  const auto of_stack = [&](model::Fusion fusion) {
    return LaunchTime<double>(model::RulesOf(fusion).launches, p);
  };
  CHECK(of_stack(model::Fusion::kEager) == 8.0);
  CHECK(of_stack(model::Fusion::kFused) == 8.0);
  CHECK(of_stack(model::Fusion::kLiger) == 8.0);
  CHECK(of_stack(model::Fusion::kLightSeq) == 4.0);
  CHECK(of_stack(model::Fusion::kCompiled) == 2.0);
  CHECK(of_stack(model::Fusion::kXla) == 2.0);
  CHECK(of_stack(model::Fusion::kGraphs) == 0.0);
  CHECK(of_stack(model::Fusion::kMegatron) ==
        8.0 * FactsOfHosts().module_launch_share);
}

// A step replayed as one graph waits for no launch and does nothing a tensor.
TEST_CASE("a graph of a whole step has no host") {
  const Device d = Volta();
  model::Workload w = GpuBert(1, 16);
  w.stack.fusion = model::Fusion::kGraphs;
  auto p = Priors();
  const double step = GpuStepOf(d, w, p).total().base();
  p[kGpuLaunchCost] = 1.0;
  p[kGpuTensorOverhead] = 1.0;
  CHECK(GpuStepOf(d, w, p).total().base() == step);
}

TEST_CASE("XLA's kernels move their bytes at a share of the rate") {
  const Device d = Volta();
  model::Workload w = GpuBert(16, 128);
  auto p = Priors();
  p[kGpuCompiledEfficiency] = 0.5;
  w.stack.fusion = model::Fusion::kCompiled;
  const StepTime<double> compiled = GpuStepOf(d, w, p);
  w.stack.fusion = model::Fusion::kXla;
  const StepTime<double> xla = GpuStepOf(d, w, p);
  CHECK(xla.forward.memory.base() ==
        Near(2 * compiled.forward.memory.base(), 1e-5));
  CHECK(xla.forward.matrix.base() == compiled.forward.matrix.base());
}

TEST_CASE("a faster device never takes longer") {
  const model::Workload w = GpuBert(16, 128);
  const auto p = Priors();
  const double base = GpuStepOf(Volta(), w, p).total().base();
  Device d = Volta();
  d.memory_bandwidth = model::GBPerSecond(1800);
  CHECK(GpuStepOf(d, w, p).total().base() < base);
  d = Volta();
  d.peak.fp32 = model::TFlopPerSecond(16);
  CHECK(GpuStepOf(d, w, p).total().base() < base);
  d = Volta();
  d.on_chip_memory = model::MiB(40);
  CHECK(GpuStepOf(d, w, p).total().base() < base);
}

}  // namespace trainfare::hardware::models
