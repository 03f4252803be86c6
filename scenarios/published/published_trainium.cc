// Trainium: profiles of one core, and compilation on the host.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "calibrate/fit/profile_fit.h"
#include "calibrate/records/statistics.h"
#include "hardware/models/neuron/compiler.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/padding.h"
#include "scenarios/job/scenario.h"
#include "scenarios/published/published_systems.h"

namespace trainfare::scenarios {

using hardware::Device;
using model::InputError;
using model::Seconds;

namespace {

double StepFlops(const model::Workload& workload) {
  return 3.0 * static_cast<double>(ForwardModelFlops(workload));
}

}  // namespace

bool IsProfile(const PublishedRow& row) {
  return row.group == "trainium_step" || row.group == "utilisation_by_batch";
}

// Profiles of one core; the roofline's rate and intensity are a time and a
// traffic once the FLOPs of a step are known.
const calibrate::ProfileFit& TrainiumProfiles::Profiles() {
  if (profiles_) return *profiles_;
  std::map<std::string, calibrate::EngineProfile> by_run;
  for (const PublishedRow& row : runs_.published().rows) {
    if (!IsProfile(row) || row.use != PublishedUse::kFit) continue;
    const PublishedRun& run = runs_.RunOf(row);
    if (!run.device || !run.device->starts_with("trainium1")) continue;
    calibrate::EngineProfile& profile = by_run[run.name];
    profile.label = run.name;
    profile.workload = runs_.Describe(run).workload;
    const double value = row.value.low;
    if (row.quantity == "step_time") profile.step = Seconds<>(value);
    // What the text calls traffic of the HBM is spilling and loading again: a
    // step of length 128 moves more than 8.6 GB of weights and activations.
    if (row.quantity == "hbm_traffic") profile.spill = model::Byte(value);
    if (row.quantity == "utilisation.tensor") profile.tensor = value;
    if (row.quantity == "utilisation.vector") profile.vector = value;
    if (row.quantity == "utilisation.scalar") profile.scalar = value;
    if (row.quantity == "achieved_flops") {
      profile.step = Seconds<>(StepFlops(profile.workload) / value);
    }
    if (row.quantity == "arithmetic_intensity") {
      profile.traffic = model::Byte(StepFlops(profile.workload) / value);
    }
  }
  std::vector<calibrate::EngineProfile> profiles;
  for (auto& entry : by_run) profiles.push_back(std::move(entry.second));
  profiles_ = calibrate::FitProfiles(FindDevice("trainium1_core"), profiles);
  return *profiles_;
}

PublishedPrediction TrainiumProfiles::Predict(const PublishedRow& row) {
  PublishedPrediction p;
  const Described d = runs_.Describe(runs_.RunOf(row));
  const Device& core = FindDevice("trainium1_core");
  const double flops = StepFlops(d.workload);
  if (row.quantity == "flops_per_step") {
    p.value = flops;
    p.how = "FLOPs of the products, forward and backward";
    return p;
  }
  const calibrate::ProfileFit& fit = Profiles();
  const auto& modelled = runs_.leaves_out() ? fit.left_out : fit.modelled;
  const auto found =
      std::find_if(modelled.begin(), modelled.end(), [&](const auto& profile) {
        return profile.label == row.run;
      });
  ENSURE(found != modelled.end(), "a profile of its own for every run");
  p.how = fmt::format("fit to {} profiles of a core", modelled.size() - 1);
  const double step = ToSeconds(*found->step);
  if (row.quantity == "step_time") p.value = step;
  if (row.quantity == "hbm_traffic") p.value = found->spill->base();
  if (row.quantity == "utilisation.tensor") p.value = found->tensor;
  if (row.quantity == "utilisation.vector") p.value = found->vector;
  if (row.quantity == "utilisation.scalar") p.value = found->scalar;
  if (row.quantity == "utilisation.dma") p.value = found->dma;
  if (row.quantity == "achieved_flops") p.value = flops / step;
  if (row.quantity == "arithmetic_intensity") {
    p.value = flops / found->traffic->base();
  }
  if (row.quantity == "mfu") {
    p.value = flops / step / core.MatrixPeak(d.workload.precision)->base();
  }
  if (row.quantity == "utilisation.bandwidth") {
    p.value = found->traffic->base() / step / core.memory_bandwidth.base();
  }
  if (row.quantity == "allreduce_bandwidth") {
    AllReduceBandwidth(row, p);
  }
  if (!p.value) {
    throw InputError(
        fmt::format("{} of a profile is not modelled", row.quantity));
  }
  return p;
}

// What the step's own traffic leaves of the HBM, times a share from the
// other profile.
void TrainiumProfiles::AllReduceBandwidth(const PublishedRow& row,
                                          PublishedPrediction& p) {
  const calibrate::ProfileFit& fit = Profiles();
  const Device& core = FindDevice("trainium1_core");
  const auto free = [&](const std::string& run, bool left_out) {
    const auto& all = left_out ? fit.left_out : fit.modelled;
    for (const auto& profile : all) {
      if (profile.label != run) continue;
      return ToGBPerSecond(core.memory_bandwidth -
                           *profile.traffic / *profile.step);
    }
    throw InputError("no profile of " + run);
  };
  std::vector<double> shares;
  for (const PublishedRow* other :
       runs_.RowsToFit("allreduce_bandwidth", row.run)) {
    shares.push_back(other->value.low * 1e-9 / free(other->run, false));
  }
  if (shares.empty()) throw InputError("no other all-reduce to fit to");
  p.value = calibrate::Median(shares) * free(row.run, runs_.leaves_out()) * 1e9;
  p.how = fmt::format(
      "share of the HBM that the step leaves, from {} other "
      "profile",
      shares.size());
}

PublishedPrediction TrainiumProfiles::Dynamic() {
  // Compiling one shape, start and host: what the static run of batch 8 takes
  // beyond its steps. The dynamic run's batch is not stated; taken as the same.
  const std::string base = "emotion_trn1_baseline";
  const PublishedRun& fixed = runs_.published().runs.at(base);
  const Described d = runs_.Describe(fixed);
  const calibrate::ProfileFit& fit = Profiles();
  const auto step = [&](int64_t length) {
    model::Workload w = d.workload;
    w.sequence_length = length;
    return *calibrate::ModelProfile(
                FindDevice("trainium1_core"), base, w, fit.fit.Values())
                .step;
  };
  const int64_t steps_per_epoch =
      (fixed.train_samples->least + d.workload.batch - 1) / d.workload.batch;
  const auto steps = static_cast<double>(*fixed.epochs * steps_per_epoch);
  const Seconds<> compile = Seconds<>(runs_.Value(base + "/run_time")) -
                            step(d.workload.sequence_length) * steps;
  if (compile.base() <= 0) throw InputError("no time is left for compiling");
  const auto lengths = model::DynamicLengths(
      LoadLengths(ScenarioDirectory() + "/lengths/emotion.yaml").histogram,
      d.workload.batch,
      d.workload.sequence_length);
  Seconds<> training;
  double changes = 1.0;  // of length from one step to the next, a step
  for (const model::PaddedLength& length : lengths) {
    training += step(length.length) * (steps * length.share);
    changes -= length.share * length.share;
  }
  const double shapes = model::ExpectedDistinctLengths(lengths, steps);
  PublishedPrediction p;
  p.value = ToSeconds(compile * shapes + training);
  p.high = ToSeconds(compile * (changes * steps) + training);
  p.how = fmt::format(
      "{:.0f} s a shape, left over by the static run; {:.0f} shapes compiled "
      "once .. {:.0f} changes of shape compiled each",
      ToSeconds(compile),
      shapes,
      changes * steps);
  return p;
}

PublishedPrediction CompilesOnHost(const PublishedRuns& runs,
                                   const PublishedRow& row) {
  const PublishedRun& run = runs.RunOf(row);
  const model::Bytes<> host =
      model::Byte(runs.Value("emotion_trn1_host_memory/host_memory"));
  const auto& compiler = FindDevice(*run.device).compiler;
  ENSURE(compiler.has_value(), "a device file with its compiler's facts");
  PublishedPrediction p;
  p.how = "compiler memory a token, bounded by these outcomes";
  if (row.quantity == "largest_batch") {
    p.value = std::floor(host / (compiler->memory_per_token *
                                 static_cast<double>(*run.sequence_length)));
    return p;
  }
  const bool swaps =
      run.setting.value_or("").find("swap=90GB") != std::string::npos;
  p.fits =
      hardware::models::CompileOnHost(
          *compiler,
          compiler->memory_per_token *
              static_cast<double>(*run.batch * *run.sequence_length),
          host,
          swaps ? model::Byte(runs.Value("emotion_trn1_swap_b64/swap"))
                : model::Bytes<>()) != hardware::models::Compilation::kFails;
  return p;
}

}  // namespace trainfare::scenarios
