#include "scenarios/published/quantities.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "calibrate/records/import/published_quantity.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "scenarios/job/energy.h"
#include "scenarios/job/exchange.h"
#include "scenarios/report/answer_figures.h"

namespace trainfare::scenarios {
namespace {

using model::InputError;
using model::Seconds;

PublishedAnswer Of(double value) {
  PublishedAnswer answer;
  answer.value = value;
  return answer;
}

// A time of a step, with that standard deviation of its logarithm.
PublishedAnswer OfPart(const AskedJob& asked,
                       Seconds<> time,
                       double log_sigma) {
  const StepEstimate& step = asked.estimate.step;
  PublishedAnswer answer = Of(ToSeconds(time));
  answer.low = *answer.value * step.LowFactor(log_sigma);
  answer.high = *answer.value * step.HighFactor(log_sigma);
  return answer;
}

// What `predict` says under that key, though the job does not fit, too.
double PredictSays(const AskedJob& asked, std::string_view key) {
  const Answered answered{asked.estimate,
                          std::nullopt,
                          asked.job.scenario.epochs,
                          asked.job.device->memory_bandwidth};
  const std::optional<double> value = FigureOf(key).of(answered);
  if (!value) {
    throw InputError(fmt::format("the answer has no {} of this device", key));
  }
  return *value;
}

// The same with the ends of its 80 % interval.
PublishedAnswer PredictSays(const AskedJob& asked,
                            std::string_view key,
                            std::string_view low,
                            std::string_view high) {
  PublishedAnswer answer = Of(PredictSays(asked, key));
  answer.low = PredictSays(asked, low);
  answer.high = PredictSays(asked, high);
  return answer;
}

// A rate that is as sure as the time of `log_sigma` that it is over.
PublishedAnswer RateOf(const AskedJob& asked, double rate, double log_sigma) {
  const StepEstimate& step = asked.estimate.step;
  PublishedAnswer answer = Of(rate);
  answer.low = rate / step.HighFactor(log_sigma);
  answer.high = rate / step.LowFactor(log_sigma);
  return answer;
}

// One as sure as the step.
PublishedAnswer StepRate(const AskedJob& asked, std::string_view key) {
  return RateOf(asked, PredictSays(asked, key), asked.estimate.step.log_sigma);
}

const calibrate::EngineProfile& Engines(const AskedJob& asked) {
  if (!asked.estimate.engines) {
    throw InputError("the answer has no engines of this device");
  }
  return *asked.estimate.engines;
}

PublishedAnswer RunTime(const AskedJob& asked) {
  return PredictSays(asked, "run_time_s", "run_time_low_s", "run_time_high_s");
}

PublishedAnswer EpochTime(const AskedJob& asked) {
  return OfPart(asked,
                Seconds<>(PredictSays(asked, "epoch_time_s")),
                asked.estimate.step.log_sigma);
}

PublishedAnswer StepTime(const AskedJob& asked) {
  return PredictSays(
      asked, "step_time_s", "step_time_low_s", "step_time_high_s");
}

PublishedAnswer ForwardTime(const AskedJob& asked) {
  const StepEstimate& step = asked.estimate.step;
  return OfPart(asked, step.forward.total(), step.forward_log_sigma);
}

PublishedAnswer BackwardTime(const AskedJob& asked) {
  const StepEstimate& step = asked.estimate.step;
  return OfPart(asked, step.backward_with_messages(), step.backward_log_sigma);
}

PublishedAnswer OptimizerTime(const AskedJob& asked) {
  const StepEstimate& step = asked.estimate.step;
  return OfPart(asked, step.optimizer.total(), step.optimizer_log_sigma);
}

PublishedAnswer ActiveTime(const AskedJob& asked) {
  return OfPart(asked,
                Seconds<>(PredictSays(asked, "optimizer_busy_s")),
                asked.estimate.step.optimizer_log_sigma);
}

PublishedAnswer ActiveRatio(const AskedJob& asked) {
  return Of(PredictSays(asked, "optimizer_busy_share"));
}

PublishedAnswer Throughput(const AskedJob& asked) {
  return StepRate(asked, "samples_per_s");
}

PublishedAnswer TokenRate(const AskedJob& asked) {
  return StepRate(asked, "tokens_per_s");
}

PublishedAnswer OnChipThroughput(const AskedJob& asked) {
  const StepEstimate& step = asked.estimate.step;
  const double rate = PredictSays(asked, "samples_per_s") *
                      (step.total() / step.forward.total());
  return RateOf(asked, rate, step.forward_log_sigma);
}

PublishedAnswer Energy(const AskedJob& asked) {
  if (!asked.estimate.energy) {
    throw InputError("no power of this device is known");
  }
  if (!EnergyRangeOf(asked.estimate)) return Of(PredictSays(asked, "energy_j"));
  return PredictSays(asked, "energy_j", "energy_low_j", "energy_high_j");
}

PublishedAnswer Fits(const AskedJob& asked) {
  PublishedAnswer answer;
  answer.fits = asked.estimate.fits();
  return answer;
}

// In sequences as the run counts them: of a core where its batches are.
PublishedAnswer LargestBatch(const AskedJob& asked) {
  const int64_t sequences =
      asked.estimate.largest_batch.value_or(0) / asked.run.cores_per_batch;
  return Of(static_cast<double>(sequences));
}

PublishedAnswer MemoryUsed(const AskedJob& asked) {
  return Of(PredictSays(asked, "memory_bytes"));
}

// The framework's own count: tensors, without the driver's context.
PublishedAnswer PeakMemory(const AskedJob& asked) {
  return Of(ToBytes(asked.estimate.memory.without_context()));
}

PublishedAnswer Launches(const AskedJob& asked) {
  return Of(PredictSays(asked, "optimizer_launches"));
}

PublishedAnswer GemmShare(const AskedJob& asked) {
  return Of(PredictSays(asked, "matrix_share"));
}

PublishedAnswer FlopsOfStep(const AskedJob& asked) {
  return Of(PredictSays(asked, "step_flops"));
}

PublishedAnswer AchievedFlops(const AskedJob& asked) {
  return StepRate(asked, "flops_per_s");
}

PublishedAnswer Mfu(const AskedJob& asked) {
  return Of(PredictSays(asked, "mfu"));
}

PublishedAnswer Intensity(const AskedJob& asked) {
  return Of(PredictSays(asked, "flops_per_byte"));
}

PublishedAnswer HbmTraffic(const AskedJob& asked) {
  return Of(ToBytes(*Engines(asked).traffic));
}

PublishedAnswer Spill(const AskedJob& asked) {
  return Of(ToBytes(*Engines(asked).spill));
}

PublishedAnswer Tensor(const AskedJob& asked) {
  return Of(*Engines(asked).tensor);
}
PublishedAnswer Vector(const AskedJob& asked) {
  return Of(*Engines(asked).vector);
}
PublishedAnswer Scalar(const AskedJob& asked) {
  return Of(*Engines(asked).scalar);
}
PublishedAnswer Dma(const AskedJob& asked) { return Of(*Engines(asked).dma); }

PublishedAnswer BandwidthShare(const AskedJob& asked) {
  return Of(PredictSays(asked, "bandwidth_share"));
}

PublishedAnswer AllReduce(const AskedJob& asked) {
  if (!asked.row.size)
    throw InputError("the size of the message is not stated");
  const calibrate::MessageTime message =
      AllReduceTimeOf(asked.predictor,
                      asked.job.scenario.workload,
                      asked.job.ClusterFor(asked.predictor),
                      *asked.row.size);
  return OfPart(asked, message.time, message.log_sigma);
}

// How much faster than the run that it is held against.
PublishedAnswer SpeedUp(const AskedJob& asked) {
  if (!asked.run.against_run) {
    throw InputError("over which batches is not stated");
  }
  const JobEstimate& other = asked.other(*asked.run.against_run);
  return Of(other.run.total() / asked.estimate.run.total());
}

constexpr std::string_view kOfBatch =
    "largest_batch, of a core where the run's batches are";

constexpr auto kAnswers = std::to_array<QuantityAnswer>({
    {.name = "achieved_flops", .of_job = AchievedFlops},
    {.name = "active_ratio", .of_job = ActiveRatio},
    {.name = "active_time", .of_job = ActiveTime},
    {.name = "allreduce_time",
     .of_job = AllReduce,
     .derived = "2 (n - 1) (ring.step_latency_s + its size over n "
                "ring.link_bytes_per_s)"},
    {.name = "arithmetic_intensity", .of_job = Intensity},
    {.name = "backward_time",
     .of_job = BackwardTime,
     .derived =
         "phases.backward_s with communication_s and slowed_computation_s"},
    {.name = "energy", .of_job = Energy},
    {.name = "epoch_time", .of_job = EpochTime},
    {.name = "failing_batch",
     .of_job = LargestBatch,
     .though_it_does_not_fit = true,
     .derived = kOfBatch},
    {.name = "fits", .of_job = Fits, .though_it_does_not_fit = true},
    {.name = "flops_per_step",
     .of_job = FlopsOfStep,
     .though_it_does_not_fit = true},
    {.name = "forward_time", .of_job = ForwardTime},
    {.name = "gemm_share", .of_job = GemmShare},
    {.name = "hbm_traffic", .of_job = HbmTraffic},
    {.name = "largest_batch",
     .of_job = LargestBatch,
     .though_it_does_not_fit = true,
     .derived = kOfBatch},
    {.name = "latency", .of_job = StepTime},
    {.name = "launches", .of_job = Launches, .though_it_does_not_fit = true},
    {.name = "memory_used",
     .of_job = MemoryUsed,
     .though_it_does_not_fit = true},
    {.name = "mfu", .of_job = Mfu},
    {.name = "on_chip_latency", .of_job = ForwardTime},
    {.name = "on_chip_throughput",
     .of_job = OnChipThroughput,
     .derived = "samples_per_s times step_time_s over phases.forward_s"},
    {.name = "optimizer_time", .of_job = OptimizerTime},
    {.name = "peak_memory",
     .of_job = PeakMemory,
     .though_it_does_not_fit = true,
     .derived = "memory_bytes without the framework's context"},
    {.name = "run_time", .of_job = RunTime},
    {.name = "speedup",
     .of_job = SpeedUp,
     .derived = "run_time_s of the other run over that of this one"},
    {.name = "spill_traffic", .of_job = Spill},
    {.name = "step_time", .of_job = StepTime},
    {.name = "throughput", .of_job = Throughput},
    {.name = "token_rate", .of_job = TokenRate},
    {.name = "utilisation.bandwidth", .of_job = BandwidthShare},
    {.name = "utilisation.dma", .of_job = Dma},
    {.name = "utilisation.scalar", .of_job = Scalar},
    {.name = "utilisation.tensor", .of_job = Tensor},
    {.name = "utilisation.vector", .of_job = Vector},
});

}  // namespace

const QuantityAnswer& AnswerOf(std::string_view quantity) {
  const auto* const found = std::find_if(
      kAnswers.begin(), kAnswers.end(), [&](const QuantityAnswer& a) {
        return a.name == quantity;
      });
  static constexpr QuantityAnswer kArithmetic;
  return found == kAnswers.end() ? kArithmetic : *found;
}

std::string FigureText(const calibrate::PublishedRow& row, double value) {
  const std::string_view unit = row.measure->unit;
  if (unit == "s") return hardware::FormatTime(model::Seconds<>(value));
  if (unit == "B") return hardware::FormatDecimalBytes(model::Bytes<>(value));
  if (unit == "J") return hardware::FormatEnergy(model::Joules<>(value));
  if (unit == "USD") return hardware::FormatMoney(model::Usd<>(value));
  if (unit == "B/s") {
    return hardware::FormatBandwidth(model::BytesPerSecond<>(value));
  }
  if (unit == "FLOP") return hardware::FormatFlops(model::Flops<>(value));
  if (unit == "FLOP/s") {
    return hardware::FormatComputeRate(model::FlopsPerSecond<>(value));
  }
  if (unit == "USD/s") {
    return hardware::FormatPrice(model::UsdPerSecond<>(value));
  }
  if (unit == "W") return hardware::FormatPower(model::Watts<>(value));
  if (row.measure->share || row.quantity == "mfu") {
    return fmt::format("{:.2f} %", value * 100.0);
  }
  if (unit == "1") return fmt::format("{:.4g}", value);
  return fmt::format("{:.5g} {}", value, unit);
}

}  // namespace trainfare::scenarios
