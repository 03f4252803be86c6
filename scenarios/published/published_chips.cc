// Dataflow chips: Cerebras, SambaNova, Groq.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "calibrate/records/statistics.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/kernel_time.h"
#include "model/kernels.h"
#include "scenarios/published/least_squares.h"
#include "scenarios/published/published_systems.h"

namespace trainfare::scenarios {

using hardware::Device;
using model::InputError;
using model::Seconds;

namespace {

// t = c + m - w min(c, m): compute a sample, a stream of weights, overlap.
double CerebrasStep(double batch, const std::vector<double>& p) {
  return ToSeconds(model::KernelTime<double>(Seconds<>(batch * p[0]),
                                             Seconds<>(p[1]),
                                             std::min(p[2], 1.0),
                                             Seconds<>())
                       .total());
}

double TasksOf(const PublishedRun& run) {
  const std::string setting = run.setting.value_or("");
  const size_t equals = setting.find('=');
  const auto tasks = equals == std::string::npos
                         ? std::nullopt
                         : hardware::ParseInteger(setting.substr(equals + 1));
  if (!tasks) throw InputError("the tasks are not stated");
  return static_cast<double>(*tasks);
}

// Share of a PCI Express link's rate that is payload: packets of 256 bytes, the
// largest that hosts commonly allow, with 26 bytes of header, sequence number,
// checksum and framing (Neugebauer et al., SIGCOMM 2018, section 3).
constexpr double kPciePayloadShare = 256.0 / (256.0 + 26.0);

}  // namespace

PublishedPrediction Cerebras(const PublishedRuns& runs,
                             const PublishedRow& row) {
  const PublishedRun& run = runs.RunOf(row);
  PublishedPrediction p;
  if (row.quantity == "samples_in_run") {
    p.value = static_cast<double>(*run.batch * *run.steps);
    p.how = "batch times steps";
    return p;
  }
  std::vector<const PublishedRow*> others;
  for (const PublishedRow* other : runs.RowsToFit("run_time", row.run)) {
    if (other->group == row.group) others.push_back(other);
  }
  const double overlap = hardware::models::kDataflowParameters
                             .at(hardware::models::kDataflowOverlap)
                             .prior;
  // The model's size is not stated: nothing is known of rate and stream.
  const std::vector<FreeParameter> priors = {
      {1e-4, 3.0}, {0.1, 3.0}, {overlap, 0.3}};
  const auto values = FitToPriors(priors, [&](const auto& v) {
    std::vector<double> residuals;
    for (const PublishedRow* other : others) {
      const PublishedRun& seen = runs.RunOf(*other);
      const double step = other->value.low / static_cast<double>(*seen.steps);
      residuals.push_back(
          std::log(CerebrasStep(static_cast<double>(*seen.batch), v) / step) /
          0.01);
    }
    return residuals;
  });
  p.value = CerebrasStep(static_cast<double>(*run.batch), values) *
            static_cast<double>(*run.steps);
  p.how = fmt::format(
      "{:.3f} ms a sample beside a stream of {:.0f} ms from "
      "{} other batches",
      values[0] * 1e3,
      values[1] * 1e3,
      others.size());
  return p;
}

PublishedPrediction SambaNova(const PublishedRuns& runs,
                              const PublishedRow& row) {
  const PublishedRun& run = runs.RunOf(row);
  std::vector<double> rates;
  for (const PublishedRow* other : runs.RowsToFit("throughput", row.run)) {
    if (other->group != row.group) continue;
    rates.push_back(other->value.low / TasksOf(runs.RunOf(*other)));
  }
  if (rates.empty()) throw InputError("no other job to fit to");
  const double rate = calibrate::Median(rates) * TasksOf(run);
  PublishedPrediction p;
  p.how = fmt::format("{:.1f} samples/s a task from {} other job",
                      calibrate::Median(rates),
                      rates.size());
  if (row.quantity == "throughput") p.value = rate;
  if (row.quantity == "token_rate") {
    p.value = rate * static_cast<double>(*run.sequence_length);
  }
  if (row.quantity == "run_time") {
    p.value = static_cast<double>(*run.samples_in_run) / rate;
  }
  return p;
}

PublishedPrediction Groq(const PublishedRuns& runs, const PublishedRow& row) {
  const PublishedRun& run = runs.RunOf(row);
  if (!run.device) {
    throw InputError("the processor beside the card is not named");
  }
  // The enumerators of one model, by their own names.
  // NOLINTNEXTLINE(google-build-using-namespace)
  using namespace hardware::models;
  const auto time =
      [&](const PublishedRun& of, bool on_chip, const std::vector<double>& p) {
        const Described d = runs.Describe(of);
        std::vector<double> values;
        for (const auto& info : kDataflowParameters)
          values.push_back(info.prior);
        values[kDataflowRateEfficiency] = std::min(p[0], 1.0);
        values[kDataflowStageLatency] = p[1];
        values[kDataflowStepOverhead] = p[2];
        const auto step =
            hardware::EstimateStep<double>(FindDevice(*of.device),
                                           d.workload,
                                           ExpandKernels(d.workload),
                                           std::span<const double>(values));
        if (on_chip) return ToSeconds(step.total() - step.other);
        // Tokens are embedded on the host: what crosses the link grows with the
        // length, besides the fixed part.
        const Device& chip = FindDevice(*of.device);
        Seconds<> transfer;
        if (chip.host_bandwidth) {
          transfer = model::Byte(static_cast<double>(
                         d.workload.tokens() * d.workload.architecture.hidden *
                         model::BytesPerElement(d.workload.precision))) /
                     (*chip.host_bandwidth * kPciePayloadShare);
        }
        return ToSeconds(step.total() + transfer);
      };
  std::vector<const PublishedRow*> others;
  for (const PublishedRow* other : runs.RowsToFit("throughput", row.run)) {
    if (other->group == row.group) others.push_back(other);
  }
  const auto prior = [](DataflowParameter which) {
    return FreeParameter{kDataflowParameters.at(which).prior,
                         kDataflowParameters.at(which).prior_sigma};
  };
  const std::vector<FreeParameter> priors = {prior(kDataflowRateEfficiency),
                                             prior(kDataflowStageLatency),
                                             prior(kDataflowStepOverhead)};
  const auto values = FitToPriors(priors, [&](const auto& p) {
    std::vector<double> residuals;
    for (const PublishedRow* other : others) {
      const double modelled =
          time(runs.RunOf(*other), other->part == "on chip", p);
      residuals.push_back(std::log(modelled * other->value.low) / kTimeSigma);
    }
    return residuals;
  });
  PublishedPrediction p;
  const double seconds = time(run, row.part == "on chip", values);
  p.value = row.quantity == "throughput" ? 1.0 / seconds : seconds;
  p.how = fmt::format(
      "pipeline of the chip, transfer {:.0f} us, from {} "
      "figures of the other length",
      values[2] * 1e6,
      others.size());
  return p;
}

}  // namespace trainfare::scenarios
