#include "hardware/models/gpu/power.h"

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
  CHECK(share(1.0) == Near(0.7466, 1e-4));
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
  CHECK(share(200, 72, 267) == Near(909.0 / 1028.0, 0.05));
  CHECK(share(117, 28, 179) == Near(2952.0 / 3472.0, 0.05));
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
  CHECK(clock(150) == Near(0.848, 1e-3));
  CHECK(clock(100) == Near(0.2855 / 0.49, 1e-3));
  CHECK(clock(240) == Near(1.0));
  d.generation->least_voltage = 0.6;
  CHECK(clock(100) == Near(std::cbrt(0.2855), 1e-3));

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

}  // namespace
}  // namespace trainfare::hardware::models
