// Stacks against each other: speed-ups and ratios of profiler counters.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "calibrate/predictor.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/memory.h"
#include "scenarios/estimate.h"
#include "scenarios/internal/published_systems.h"

namespace trainfare::scenarios {

using hardware::Device;
using model::InputError;

namespace {

model::Workload TranslationWorkload(const PublishedRun& run,
                                    std::string_view stack,
                                    int64_t batch) {
  model::Workload w;
  w.architecture = *run.architecture;
  w.batch = batch;
  w.sequence_length = 32;
  w.precision = run.precision.value_or(model::Precision::kFp16);
  w.optimizer = {model::OptimizerKind::kAdamW,
                 model::OptimizerImplementation::kFused};
  w.stack.fusion =
      stack == "lightseq" ? model::Fusion::kLightSeq : model::Fusion::kFairseq;
  return w;
}

// Batches are in tokens, 512 to 15000 of them: 16 to 468 pairs of 32.
constexpr std::array<int64_t, 6> kPairs = {16, 32, 64, 128, 256, 468};

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
  const Device& device = FindDevice(*run.device);
  const calibrate::Predictor predictor(device);
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  int64_t largest = 0;
  for (const int64_t pairs : kPairs) {
    const model::MemorySurroundings surroundings =
        SurroundingsOf(device, run.device_count);
    const auto fits = [&](std::string_view stack) {
      return EstimateMemory(TranslationWorkload(run, stack, pairs),
                            surroundings)
                 .total() <= device.memory_capacity;
    };
    if (!fits(*run.against) || !fits(*run.stack)) continue;
    largest = pairs;
    const auto time = [&](std::string_view stack) {
      return predictor.Time(TranslationWorkload(run, stack, pairs)).total();
    };
    const double ratio = time(*run.against) / time(*run.stack);
    low = std::min(low, ratio);
    high = std::max(high, ratio);
  }
  if (largest == 0) throw InputError("no batch fits on the device");
  p.value = low;
  p.high = high;
  p.how = fmt::format(
      "datasheet and priors, 16 to {} pairs of length 32, one device", largest);
  return p;
}

PublishedPrediction ProfileRatio(const PublishedRuns& runs,
                                 const PublishedRow& row) {
  const PublishedRun& run = runs.RunOf(row);
  const std::string part = row.part.value_or("");
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const int64_t pairs : kPairs) {
    const auto count = [&](std::string_view stack) {
      const model::KernelList list =
          ExpandKernels(TranslationWorkload(run, stack, pairs));
      double sum = 0;
      for (const model::Phase phase : {model::Phase::kForward,
                                       model::Phase::kBackward,
                                       model::Phase::kOptimizer}) {
        const model::PhaseCounts c = list.Counts(phase);
        if (part == "dram_read_bytes" || part == "gld_transactions") {
          sum += static_cast<double>(c.bytes_read);
        } else if (part == "dram_write_bytes" || part == "gst_transactions") {
          sum += static_cast<double>(c.bytes_written);
        } else if (part == "inst_executed") {
          // A warp loads and stores 512 bytes, and does 32 operations.
          sum += static_cast<double>(c.bytes_read + c.bytes_written) / 512 +
                 static_cast<double>(c.vector_flops) / 32 +
                 static_cast<double>(c.matrix_flops) / 1024;
        } else {
          throw InputError(
              "a counter of the profiler that no term of the expansion "
              "stands for");
        }
      }
      return sum;
    };
    const double ratio = count(*run.stack) / count(*run.against);
    low = std::min(low, ratio);
    high = std::max(high, ratio);
  }
  PublishedPrediction p;
  p.value = low;
  p.high = high;
  p.how = "counts of the expansion, 16 to 468 pairs of length 32";
  return p;
}

}  // namespace trainfare::scenarios
