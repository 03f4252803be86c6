// The formulas of the GPU model, each worked by hand in docs/models/gpu.md.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "hardware/models/device_models.h"
#include "model/presets.h"

namespace trainfare::hardware::models {
namespace {

using doctest::Approx;

Approx Near(double value) { return Approx(value).epsilon(1e-9).scale(0); }

// Dimensions of a V100-PCIE.
Device Volta() {
  Device d;
  d.name = "volta";
  d.kind = DeviceKind::kGpu;
  d.generation = GpuGeneration{model::JoulesPerFlop<>(17.3e-12),
                               0.23,
                               0.117,
                               /*tensor_cores_at_limit=*/true};
  d.other_work_power_share = 0.72;
  d.memory_capacity = model::GiB(16);
  d.memory_bandwidth = model::GBPerSecond(900);
  d.on_chip_memory = model::MiB(6);
  d.peak.fp32 = model::TFlopPerSecond(14);
  d.peak.fp16 = model::TFlopPerSecond(112);
  d.peak.vector = model::TFlopPerSecond(14);
  d.cores = 80;
  d.clock = model::Megahertz(1380);
  d.warps_per_core = 64;
  d.registers_per_core = 65536;
  d.shared_memory_per_core = model::KiB(96);
  return d;
}

std::vector<double> Priors() {
  std::vector<double> values;
  for (const ParameterInfo& info : ParametersOf(DeviceKind::kGpu)) {
    values.push_back(info.prior);
  }
  return values;
}

model::Workload GpuBert(int64_t batch, int64_t length) {
  model::Workload w;
  w.architecture = model::FindArchitecture("bert-base-uncased");
  w.batch = batch;
  w.sequence_length = length;
  w.optimizer.implementation = model::OptimizerImplementation::kFused;
  return w;
}

model::Workload In(model::Precision precision) {
  model::Workload w = GpuBert(8, 128);
  w.precision = precision;
  return w;
}

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

StepTime<double> GpuStepOf(const Device& device,
                           const model::Workload& workload,
                           const std::vector<double>& values) {
  return GpuStep<double>(
      device, workload, model::ExpandKernels(workload), values);
}

}  // namespace

// A warp of 112 registers a thread takes 3584; eight of them 28,672 of 65,536:
// 2 blocks. 32 registers: 8 blocks fill the 64 warps. 40 KiB of 96: 2 blocks.
TEST_CASE("occupancy from registers, warps and shared memory") {
  const Device d = Volta();
  const Occupancy product = OccupancyOf(
      d, {.threads = 256, .registers_per_thread = 112, .shared_memory = 16384});
  CHECK(product.blocks == 2);
  CHECK(product.warps == 16);
  CHECK(product.limit == OccupancyLimit::kRegisters);

  const Occupancy elementwise = OccupancyOf(
      d, {.threads = 256, .registers_per_thread = 32, .shared_memory = 0});
  CHECK(elementwise.blocks == 8);
  CHECK(elementwise.warps == 64);
  CHECK(elementwise.limit == OccupancyLimit::kWarps);

  const Occupancy shared = OccupancyOf(
      d, {.threads = 128, .registers_per_thread = 32, .shared_memory = 40960});
  CHECK(shared.warps == 8);
  CHECK(shared.limit == OccupancyLimit::kSharedMemory);

  const Occupancy small = OccupancyOf(
      d, {.threads = 32, .registers_per_thread = 32, .shared_memory = 0});
  CHECK(small.blocks == 16);
  CHECK(small.limit == OccupancyLimit::kBlocks);
}

// 900 GB/s x 600 ns = 540,000 B under way, 6,750 B an SM, 512 B a warp.
TEST_CASE("warps that hide the latency of memory") {
  CHECK(WarpsToHideLatency<double>(Volta(), model::Seconds<>(600e-9)) ==
        Near(6750.0 / 512.0));
}

// 1024 x 1024 x 1024 in fp32: 64 tiles of 128 x 128 on 80 SMs are one wave,
// 64/80 full; the pipeline of depth 8 leaves 1024/1032 of it. 128 tiles of
// 128 x 64 are two waves, equally full, at 0.98 of the rate.
TEST_CASE("the tile with the most useful work") {
  const TileChoice choice =
      GemmTiles(Volta(), GpuEngine::kLanes, 14e12, 4.0)
          .Choose({.batch = 1, .m = 1024, .n = 1024, .k = 1024});
  CHECK(choice.waves == 1);
  CHECK(choice.share == Near(0.8 * 1024.0 / 1032.0));
  CHECK(choice.operand_bytes_per_flop == Near(1.0 / 32.0));
  CHECK(choice.active_warps == Near(8.0));
}

// 512 x 512 x 8192: 16 tiles of 128 x 128 would leave 64 SMs idle; k is split
// 80/16 = 5 times, so that 80 blocks of depth 1638.4 fill one wave.
TEST_CASE("a deep product is split along k") {
  const TileChoice choice =
      GemmTiles(Volta(), GpuEngine::kLanes, 14e12, 4.0)
          .Choose({.batch = 1, .m = 512, .n = 512, .k = 8192});
  CHECK(choice.waves == 1);
  CHECK(choice.share == Near(1638.4 / 1646.4));
}

// One tile more than a wave holds costs a wave.
TEST_CASE("a wave for one tile") {
  const auto waves = [](int64_t m) {
    return GemmTiles(Volta(), GpuEngine::kLanes, 14e12, 4.0)
        .Choose({.batch = 2, .m = m, .n = 128, .k = 64})
        .waves;
  };
  CHECK(waves(40 * 128) == 1);
  CHECK(waves(40 * 128 + 1) > 1);
}

// 160 products of 128 x 64: two waves of 80 tiles of 128 x 64, each full, at
// 0.98; in tiles of 128 x 128 the same two waves, half of each empty.
TEST_CASE("a generation whose batched products have the largest tile alone") {
  const model::GemmExtents heads = {.batch = 160, .m = 128, .n = 64, .k = 1024};
  Device device = Volta();
  const auto share = [&](GpuEngine engine) {
    return GemmTiles(device, engine, 14e12, 4.0).Choose(heads).share;
  };
  const double pipeline = 1024.0 / (1024.0 + 8.0);
  CHECK(share(GpuEngine::kLanes) == Near(0.98 * pipeline));
  const double on_tensor_cores = share(GpuEngine::kTensorCores);
  device.generation->one_batched_tile = true;
  CHECK(share(GpuEngine::kLanes) == Near(0.5 * pipeline));
  CHECK(share(GpuEngine::kTensorCores) == on_tensor_cores);
}

// 128 x 128 in fp16: 256 operands of 2 B for 32,768 FLOPs, 1/64 B a FLOP. At
// 112 TFLOP/s 1.75 TB/s, of the 2.43 TB/s of the cache:
// 1 / sqrt(1 + 0.7202^2) = 0.8115.
TEST_CASE("the cache feeds the tensor cores") {
  CHECK(OperandBytesPerFlop(FactsOfGpus().tensor_cores.tiles[1], 2.0) ==
        Near(1.0 / 64.0));
  const double load = 112e12 / 64.0 / 2.43e12;
  CHECK(FedShare(112e12, 1.0 / 64.0, 2.43e12) ==
        Near(1.0 / std::sqrt(1.0 + load * load)));
  CHECK(FedShare(112e12, 1.0 / 64.0, 2.43e12) ==
        Approx(0.8115).epsilon(1e-4).scale(0));
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
  CHECK(again(reduction(kThrice, 100'000, 8192, 4)) ==
        Approx(2 * 0.98828).epsilon(1e-4).scale(0));
  CHECK(again(reduction(kTwice, 100'000, 8192, 4)) ==
        Approx(0.98828).epsilon(1e-4).scale(0));
  CHECK(again(reduction(kNorm, 100'000, 768, 2)) ==
        Approx(0.0944).epsilon(2e-3).scale(0));
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
TEST_CASE("attention by the instructions of its generation") {
  const auto rates = [](const char* device, model::Attention attention) {
    model::Workload w = LlamaWithFlash(1, 16384);
    w.stack.attention = attention;
    return AttentionTflopPerSecond(
        hardware::DeviceCatalog::Shipped().Find(device), w);
  };
  using enum model::Attention;
  CHECK(rates("h100_sxm", kFlash3).at(0) == Approx(640).epsilon(0.1));
  CHECK(rates("h100_sxm", kFlash2) == rates("h100_sxm", kFlash));
  CHECK(rates("b200_sxm", kFlash2).at(0) == Approx(352).epsilon(0.15));
  // LibTorch's is cuDNN's there.
  CHECK(rates("b200_sxm", kFlash) == rates("b200_sxm", kFlash3));
  CHECK(rates("b200_sxm", kFlash3).at(0) == Approx(1418).epsilon(0.1));
  CHECK(rates("b200_sxm", kFlash3).at(1) == Approx(1165).epsilon(0.1));
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

// 8.1 TFLOP/s x 0.93 at 17.3 pJ would draw 130.32 W, 27 of them at rest. Within
// 70 W 43 of 103.32 W are left: the cube root, 0.7466 of the clock. Half the
// load leaves 0.8324, 0.9407 of it. 50 W leave 0.2226, whose root is below the
// least voltage: 0.2226 / 0.49.
TEST_CASE("a board's power limit holds back long products") {
  Device d = Volta();
  d.peak.fp32 = model::TFlopPerSecond(8.1);
  d.cores = 40;
  d.clock = model::Megahertz(1590);
  d.max_power = model::Watt(70);
  d.idle_power = model::Watt(27);
  const auto share = [&](double load) {
    return ClockWithinLimit(d, model::Precision::kFp32, *d.peak.fp32).At(load);
  };
  const double demanded = 17.3e-12 * 8.1e12 * 0.93;
  const double left = 43.0 / (demanded - 27.0);
  CHECK(share(1.0) == Near(std::cbrt(left)));
  CHECK(share(1.0) == Approx(0.7466).epsilon(1e-4).scale(0));
  CHECK(share(0.5) == Near(std::cbrt(2.0 * left)));
  CHECK(share(0.25) == 1.0);
  d.max_power = model::Watt(50);
  CHECK(share(1.0) == Near(23.0 / (demanded - 27.0) / 0.49));
  // Where nobody read it, a share of the limit is what it draws at rest.
  d.idle_power.reset();
  d.rest_power_share = 0.54;
  CHECK(share(1.0) == Near(23.0 / (demanded - 27.0) / 0.49));
  d.max_power = model::Watt(300);
  CHECK(share(1.0) == 1.0);
  d.max_power.reset();
  CHECK(share(1.0) == 1.0);
}

// A small product leaves most of the board's power unused: its limit holds back
// the large one alone.
TEST_CASE("small products are within the power limit") {
  Device d = Volta();
  const auto slowdown = [&](int64_t side) {
    model::Kernel k;
    k.kind = model::KernelKind::kGemm;
    k.gemm = {.batch = 1, .m = side, .n = side, .k = side};
    k.matrix_flops = 2 * side * side * side;
    k.bytes_read = 8 * side * side;
    k.bytes_written = 4 * side * side;
    const auto compute = [&] {
      return GpuKernelTime<double>(
                 d, RatesOf(d, model::Precision::kFp32, false), k, Priors())
          .compute.base();
    };
    d.max_power.reset();
    const double free = compute();
    d.max_power = model::Watt(120);
    return compute() / free;
  };
  CHECK(slowdown(256) == 1.0);
  CHECK(slowdown(4096) > 1.1);
}

// Batched products of an L4 have tiles of 128 x 128: half of one that is beyond
// the edge of the result is multiplied, too, and draws as much.
TEST_CASE("what tiles compute beyond a result takes power") {
  Device d = DeviceCatalog::Shipped().Find("l4");
  d.memory_bandwidth = model::GBPerSecond(3000);  // so that it hides nothing
  const auto compute = [&](int64_t rows) {
    model::Kernel k;
    k.kind = model::KernelKind::kBatchedGemm;
    k.gemm = {.batch = 5800, .m = rows, .n = 128, .k = 1024};
    k.matrix_flops = 2 * k.gemm.batch * rows * 128 * 1024;
    k.bytes_read = 4 * k.gemm.batch * (rows + 128) * 1024;
    k.bytes_written = 4 * k.gemm.batch * rows * 128;
    return GpuKernelTime<double>(
               d, RatesOf(d, model::Precision::kFp32, false), k, Priors())
        .compute.base();
  };
  CHECK(compute(64) == Near(compute(128)));
  const double limited = compute(64);
  d.max_power.reset();
  CHECK(compute(64) < 0.6 * limited);
}

// BERT-base in fp32 at batch 32, epochs over that without a limit
// (ml-energy/zeus@75a8b93, summary_power_*): an A40 at 200 W took 1028 s for
// 909, a P100 at batch 24 drawing 117 W of its 179 took 3472 s for 2952. The
// least voltage was read off a V100's.
TEST_CASE(
    "clocks under limits as measured on boards that nothing was read off") {
  const auto share = [](double limit, double rest, double demanded) {
    Device d = Volta();
    d.max_power = model::Watt(limit);
    d.idle_power = model::Watt(rest);
    d.generation->lanes = model::JoulesPerFlop<>(
        demanded / (d.peak.fp32->base() * FactsOfGpus().lanes.reach));
    return ClockWithinLimit(d, model::Precision::kFp32, *d.peak.fp32).At(1.0);
  };
  CHECK(share(200, 72, 267) == Approx(909.0 / 1028.0).epsilon(0.05).scale(0));
  CHECK(share(117, 28, 179) == Approx(2952.0 / 3472.0).epsilon(0.05).scale(0));
}

TEST_CASE("what a board draws in each kind of work") {
  Device d = Volta();
  d.max_power = model::Watt(250);
  CHECK_FALSE(PowerLevelsOf(d, In(model::Precision::kFp32)).has_value());
  d.idle_power = model::Watt(56);
  // fp32: 17.3 pJ x 14 TFLOP/s x 0.93 = 225.2 W; other work 0.72 x 250 W.
  const auto fp32 = PowerLevelsOf(d, In(model::Precision::kFp32));
  REQUIRE(fp32.has_value());
  CHECK(model::ToWatts(fp32->idle) == Near(56));
  CHECK(model::ToWatts(fp32->products) == Near(17.3 * 14 * 0.93));
  CHECK(model::ToWatts(fp32->others) == Near(180));
  // Tensor cores of its age: the limit.
  const auto fp16 = PowerLevelsOf(d, In(model::Precision::kFp16));
  CHECK(model::ToWatts(fp16->products) == Near(250));
  // A generation whose energy nobody knows: the limit, too.
  d.generation.reset();
  CHECK(
      model::ToWatts(PowerLevelsOf(d, In(model::Precision::kFp32))->products) ==
      Near(250));
  // A precision that it lacks has no power.
  CHECK_FALSE(PowerLevelsOf(d, In(model::Precision::kTf32)).has_value());
}

// By hand: 60 and 30 % of products at 225.2 W and other work at 180 W, 56 W at
// rest, draw 194.7 W. Of no more than 150 W they draw 140.6 W: 84.6 of 138.7 W
// beyond rest, whose cube root is 0.848. 100 W leave 39.6 of them, 0.286, whose
// root is below the least voltage: 0.286 / 0.49.
TEST_CASE("a limit that is set slows a run by its mean power") {
  Device d = Volta();
  d.max_power = model::Watt(250);
  d.idle_power = model::Watt(56);
  const BusyShares<double> shares{0.6, 0.3};
  model::Workload w = GpuBert(32, 128);
  const auto clock = [&](double limit) {
    w.power_limit = model::Watt(limit);
    return ClockWithinSetLimit(d, w, shares);
  };
  CHECK(clock(150) == Approx(0.848).epsilon(1e-3).scale(0));
  CHECK(clock(100) == Approx(0.2855 / 0.49).epsilon(1e-3).scale(0));
  CHECK(clock(240) == Near(1.0));
  d.generation->least_voltage = 0.6;
  CHECK(clock(100) == Approx(std::cbrt(0.2855)).epsilon(1e-3).scale(0));

  // In a step all that the device does takes as much longer, and no more is
  // drawn in any kind of work.
  const auto step = [&](double limit) {
    w.power_limit = model::Watt(limit);
    return GpuStep<double>(
        d, w, model::ExpandKernels(w), std::span<const double>(Priors()));
  };
  const StepTime<double> free = step(0);
  const StepTime<double> limited = step(150);
  const double slower = 1.0 / ClockWithinSetLimit(d, w, BusySharesOf(free));
  CHECK(slower > 1.1);
  CHECK(limited.backward.matrix.base() ==
        Near(slower * free.backward.matrix.base()));
  CHECK(limited.optimizer.memory.base() ==
        Near(slower * free.optimizer.memory.base()));
  CHECK(limited.other == free.other);
  CHECK(step(250).total() == free.total());
  CHECK(step(400).total() == free.total());
  w.power_limit = model::Watt(150);
  CHECK(model::ToWatts(PowerLevelsOf(d, w)->products) == Near(150));
  CHECK(model::ToWatts(PowerLevelsOf(d, w)->others) == Near(150));
}

// The published energies of a V100 PCIe over the measured run times
// (scenarios/published/imdb_gpu_runs.yaml), with the shares of products and of
// other work that the model gives their steps: docs/models/energy.md.
TEST_CASE("mean power of the published V100 runs") {
  struct Run {
    model::Precision precision;
    double products;
    double others;
    double measured_w;
  };
  constexpr auto kFp32 = model::Precision::kFp32;
  constexpr auto kFp16 = model::Precision::kFp16;
  const std::vector<Run> runs = {{kFp32, 0.66, 0.28, 224.3},
                                 {kFp32, 0.72, 0.26, 220.0},
                                 {kFp16, 0.27, 0.67, 188.1},
                                 {kFp32, 0.79, 0.20, 231.4},
                                 {kFp16, 0.37, 0.58, 218.5},
                                 {kFp16, 0.36, 0.44, 153.0},
                                 {kFp16, 0.22, 0.25, 141.0}};
  const Device& v100 = DeviceCatalog::Shipped().Find("v100_pcie_16gb");
  std::vector<double> errors;
  std::vector<double> bound_errors;
  for (const Run& run : runs) {
    const auto levels = PowerLevelsOf(v100, In(run.precision));
    REQUIRE(levels.has_value());
    const double power_w =
        model::ToWatts(MeanPower(*levels, run.products, run.others));
    errors.push_back(std::abs(power_w / run.measured_w - 1.0));
    bound_errors.push_back(
        std::abs(model::ToWatts(*v100.max_power) / run.measured_w - 1.0));
  }
  std::sort(errors.begin(), errors.end());
  std::sort(bound_errors.begin(), bound_errors.end());
  CHECK(errors[3] < 0.09);
  CHECK(errors.back() < 0.18);
  CHECK(bound_errors[3] > 0.14);
  CHECK(bound_errors.back() > 0.7);
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
        doctest::Approx(2 * compiled.forward.memory.base()));
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
