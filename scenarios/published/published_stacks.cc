// Stacks against each other: speed-ups and ratios of profiler counters.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/fit/predictor.h"
#include "hardware/models/device_models.h"
#include "hardware/models/gpu/instructions.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/memory.h"
#include "scenarios/job/estimate.h"
#include "scenarios/published/published_systems.h"
#include "scenarios/validation/translation_rates.h"

namespace trainfare::scenarios {

using hardware::Device;
using model::InputError;

namespace {

// Batches are in tokens.
constexpr std::array<int64_t, 6> kTokens = {512, 1024, 2048, 4096, 8192, 15000};

// A kernel as often as a step launches it.
struct LaunchedKernel {
  const model::Kernel* kernel;
  double launches;
};

std::vector<LaunchedKernel> LaunchesOf(const model::KernelList& list) {
  std::vector<LaunchedKernel> launched;
  for (const model::Segment& segment : list.segments) {
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      const model::Kernel& kernel = list.kernels[static_cast<size_t>(i)];
      launched.push_back(
          {&kernel, static_cast<double>(segment.repeat * kernel.launches)});
    }
  }
  return launched;
}

// The value that half of the launches do not reach.
double MedianOfLaunches(std::vector<std::pair<double, double>> values) {
  std::sort(values.begin(), values.end());
  double launches = 0;
  for (const auto& [value, times] : values) launches += times;
  double seen = 0;
  for (const auto& [value, times] : values) {
    seen += times;
    if (2.0 * seen >= launches) return value;
  }
  throw InputError("a step without kernels");
}

// What nvprof shows of a step: sums of counts, medians of efficiencies, each
// launch the same weight (correction 41).
double CounterOf(std::string_view counter,
                 const Device& device,
                 const model::Workload& workload) {
  using hardware::models::GpuInstructions;
  const model::KernelList list = ExpandKernels(workload);
  GpuInstructions all;
  double read = 0;
  double written = 0;
  std::vector<std::pair<double, double>> instructions_a_warp;
  std::vector<std::pair<double, double>> busy_cores;
  std::vector<std::pair<double, double>> occupancy;
  std::vector<std::pair<double, double>> instructions_a_cycle;
  const auto rates = hardware::models::RatesOf(device, workload.precision);
  std::vector<double> priors;
  for (const auto& info : hardware::ParametersOf(device.kind)) {
    priors.push_back(info.prior);
  }
  const auto cores = static_cast<double>(device.cores);
  for (const LaunchedKernel& launched : LaunchesOf(list)) {
    const model::Kernel& kernel = *launched.kernel;
    const GpuInstructions of_kernel =
        hardware::models::InstructionsOf(device, workload, kernel);
    all += of_kernel * launched.launches;
    read += static_cast<double>(kernel.bytes_read) * launched.launches;
    written += static_cast<double>(kernel.bytes_written) * launched.launches;
    instructions_a_warp.emplace_back(of_kernel.executed / of_kernel.warps,
                                     launched.launches);
    busy_cores.emplace_back(std::min(1.0, of_kernel.blocks / cores),
                            launched.launches);
    occupancy.emplace_back(
        of_kernel.resident_warps / static_cast<double>(device.warps_per_core),
        launched.launches);
    const model::Seconds<> time =
        hardware::models::GpuKernelTime<double>(device, rates, kernel, priors)
            .total();
    instructions_a_cycle.emplace_back(
        of_kernel.executed / (time.base() * device.clock.base() * cores),
        launched.launches);
  }
  if (counter == "dram_read_bytes" || counter == "gld_transactions") {
    return read;
  }
  if (counter == "dram_write_bytes" || counter == "gst_transactions") {
    return written;
  }
  if (counter == "inst_executed") return all.executed;
  if (counter == "flop_count_sp") return all.fp32_flops;
  if (counter == "flop_count_hp") return all.fp16_flops;
  if (counter == "inst_per_warp") {
    return MedianOfLaunches(std::move(instructions_a_warp));
  }
  if (counter == "sm_efficiency") {
    return MedianOfLaunches(std::move(busy_cores));
  }
  if (counter == "achieved_occupancy") {
    return MedianOfLaunches(std::move(occupancy));
  }
  if (counter == "ipc") {
    return MedianOfLaunches(std::move(instructions_a_cycle));
  }
  throw InputError(fmt::format("no count of \"{}\"", counter));
}

// Batches that both stacks were run with, where the table behind a range says
// so; else those of its grid that fit in memory.
std::vector<int64_t> TokensOf(const PublishedRun& run,
                              const TranslationRates& rates) {
  std::vector<int64_t> tokens;
  for (const TranslationRate& rate : rates.rates) {
    if (rate.stack == *run.stack && rate.devices == run.device_count &&
        rate.devices > 1 && rate.layers == run.architecture->layers) {
      tokens.push_back(rate.tokens);
    }
  }
  if (!tokens.empty()) return tokens;
  const Device& device = FindDevice(*run.device);
  const model::MemorySurroundings surroundings =
      SurroundingsOf(device, run.device_count);
  for (const int64_t count : kTokens) {
    const auto fits = [&](std::string_view stack) {
      return EstimateMemory(
                 TranslationWorkload(stack, *run.architecture, count),
                 surroundings)
                 .total() <= device.memory_capacity;
    };
    if (fits(*run.against) && fits(*run.stack)) tokens.push_back(count);
  }
  if (tokens.empty()) throw InputError("no batch fits on the device");
  return tokens;
}

// From the least of ratio(tokens) to the greatest.
template <class Ratio>
PublishedPrediction RangeOver(std::span<const int64_t> tokens,
                              const Ratio& ratio) {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const int64_t count : tokens) {
    const double value = ratio(count);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  PublishedPrediction p;
  p.value = low;
  p.high = high;
  return p;
}

PublishedPrediction SpeedUpOfStack(const PublishedRun& run) {
  static const TranslationRates rates = ShippedTranslationRates();
  static const std::vector<double> fitted = FitTranslation(rates);
  const Device& device = FindDevice(*run.device);
  const calibrate::Predictor predictor = TranslationPredictor(device, fitted);
  const Cluster cluster = ClusterOf(device, run.device_count);
  const std::vector<int64_t> tokens = TokensOf(run, rates);
  PublishedPrediction p = RangeOver(tokens, [&](int64_t count) {
    const auto time = [&](std::string_view stack) {
      return EstimateStep(predictor,
                          TranslationWorkload(stack, *run.architecture, count),
                          cluster)
          .total();
    };
    return time(*run.against) / time(*run.stack);
  });
  p.how = fmt::format(
      "host and rates of LightSeq's table for one GPU, {} to {} tokens, {}",
      tokens.front(),
      tokens.back(),
      run.device_count > 1 ? fmt::format("{} devices by their datasheet's link",
                                         run.device_count)
                           : "one device");
  return p;
}

}  // namespace

PublishedPrediction SpeedUp(PublishedSteps& steps, const PublishedRow& row) {
  const PublishedRuns& runs = steps.runs();
  const PublishedRun& run = runs.RunOf(row);
  PublishedPrediction p;
  if (!run.against) {
    const std::string baseline =
        row.run.substr(0, row.run.rfind('_')) + "_baseline";
    PublishedRow whole = row;
    whole.quantity = "run_time";
    whole.part.reset();
    const PublishedPrediction fast = steps.RunTime(whole);
    whole.run = baseline;
    const PublishedPrediction slow = steps.RunTime(whole);
    p.value = *slow.value / *fast.value;
    p.how = "of predicted run times";
    return p;
  }
  return SpeedUpOfStack(run);
}

PublishedPrediction ProfileRatio(const PublishedRuns& runs,
                                 const PublishedRow& row) {
  const PublishedRun& run = runs.RunOf(row);
  const Device& device = FindDevice(*run.device);
  const std::string part = row.part.value_or("");
  PublishedPrediction p = RangeOver(kTokens, [&](int64_t tokens) {
    const auto count = [&](std::string_view stack) {
      return CounterOf(
          part, device, TranslationWorkload(stack, *run.architecture, tokens));
    };
    return count(*run.stack) / count(*run.against);
  });
  p.how = "counts of the expansion, 512 to 15000 tokens";
  return p;
}

}  // namespace trainfare::scenarios
