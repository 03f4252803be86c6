// The fits that ship, against the model and the measurements as they are.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_file.h"
#include "calibrate/fit/joined_devices.h"
#include "calibrate/fit/own_figures.h"
#include "calibrate/fit/posterior.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/rank_step.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/engine_profile.h"
#include "calibrate/records/import/observation_files.h"
#include "calibrate/records/import/observations.h"
#include "calibrate/records/import/published_reader.h"
#include "calibrate/records/import/published_records.h"
#include "calibrate/records/import/table.h"
#include "hardware/models/device_models.h"
#include "model/kernels.h"
#include "model/units.h"
#include "tests/near.h"
#include "tests/shared_data.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

const fs::path kFits = fs::path(TRAINFARE_ROOT) / "calibrate" / "fits";
constexpr const char* kTrainingTable = "measurements/nvidia_dle_training.csv";

// What the model that ships makes of a step by a fit's values; of several
// devices by its shares of their links, too.
model::Seconds<> ModelledBy(const Fit& fit,
                            const hardware::Device& device,
                            const Step& measured) {
  const Observation& row = measured.observation;
  const model::Workload workload = OnDevices(row.workload, row.device_count);
  const std::vector<double> values = fit.Values();
  const auto step =
      hardware::EstimateStep<double>(device,
                                     workload,
                                     model::ExpandKernels(workload),
                                     std::span<const double>(values));
  if (!measured.joined) return PartOf(step, row.quantity);
  return StepOverRanks(workload,
                       step,
                       DatasheetRanks(*measured.joined,
                                      NumbersOf(device.kind, fit.joined)))
      .total();
}

struct Sources {
  std::vector<Observation> observations;
  std::vector<EngineProfile> profiles;
  std::vector<Observation> over_ranks;
};

// Runs of our own, which lie beside the tests.
void AddOwnRuns(Sources& sources) {
  const fs::path folder = TRAINFARE_ROOT "/tests/measurements";
  std::vector<std::string> files;
  for (const char* name : {"h200_sxm/calibration.jsonl",
                           "h200_sxm/unseen.jsonl",
                           "h200_sxm/energy.jsonl",
                           "h200_transformers.csv"}) {
    files.push_back((folder / name).string());
  }
  for (Observation& o : ReadObservations(files).observations) {
    if (o.label.find('/') != std::string::npos) {
      o.label = fs::path(o.label).filename().string();
    }
    sources.observations.push_back(std::move(o));
  }
}

// What GPUs' and NeuronCores' fits were made of; rows of tables by the file's
// name.
Sources SourcesOfFits() {
  ObservationFiles published =
      RecordsOf(LoadPublished(TRAINFARE_ROOT "/scenarios/published"));
  Sources sources{std::move(published.observations),
                  std::move(published.profiles),
                  std::move(published.ranks.observations)};
  for (const char* file : {"nvidia_dle_training.csv",
                           "lambda_deeplearning_benchmark.csv",
                           "neusight_labels.csv",
                           "deepspeed_bert.csv",
                           "nvidia_dle_inference.csv",
                           "aws_neuron.csv"}) {
    for (Observation& o :
         ReadTable((fs::path(SharedPath("measurements")) / file).string())
             .observations) {
      o.label = fs::path(o.label).filename().string();
      sources.observations.push_back(std::move(o));
    }
  }
  AddOwnRuns(sources);
  return sources;
}

// The steps of a device by label and quantity; more rows than one have a label
// where a table has a run in parts.
using StepsOfDevice = std::map<std::pair<std::string, Quantity>, Step>;

StepsOfDevice StepsOf(const hardware::Device& device, const Sources& sources) {
  OwnFigures own = OfDevice(device, sources.observations, {}, sources.profiles);
  StepsOfDevice steps;
  for (Step& step : own.steps) {
    const auto key =
        std::pair(step.observation.label, step.observation.quantity);
    steps.insert_or_assign(key, std::move(step));
  }
  for (const EngineProfile& profile : own.profiles) {
    if (!profile.step) continue;
    Observation of_profile;
    of_profile.workload = profile.workload;
    of_profile.measured = *profile.step;
    of_profile.assumed = profile.assumed;
    steps.insert_or_assign(std::pair(profile.label, Quantity::kStep),
                           Step{std::move(of_profile), std::nullopt});
  }
  return steps;
}

// A fit that another version of the model made would say so nowhere.
TEST_CASE("shipped fits are of the model that ships" *
          doctest::test_suite("shared/measurements") *
          doctest::skip(!SharedHasMeasurements())) {
  const Sources sources = SourcesOfFits();
  int64_t compared = 0;
  std::set<std::string> neuron;
  std::set<std::string> profiled;
  int64_t of_ranks = 0;
  for (const fs::path& path : fs::directory_iterator(kFits)) {
    if (path.extension() != ".yaml") continue;
    const Fit fit = LoadFit(path.string());
    const hardware::Device& device =
        hardware::DeviceCatalog::Shipped().Find(fit.device);
    const bool of_neuron = device.kind == hardware::DeviceKind::kNeuron;
    if (!of_neuron && device.kind != hardware::DeviceKind::kGpu) continue;
    if (of_neuron) neuron.insert(device.name);
    CAPTURE(fit.device);
    const StepsOfDevice known = StepsOf(device, sources);
    for (const RankFit& ranks : fit.ranks) {
      for (const FittedRun& run : ranks.runs) {
        CAPTURE(run.label);
        const auto found = std::find_if(sources.over_ranks.begin(),
                                        sources.over_ranks.end(),
                                        [&](const Observation& o) {
                                          return o.label == run.label &&
                                                 o.quantity == run.quantity;
                                        });
        REQUIRE(found != sources.over_ranks.end());
        CHECK(found->assumed == run.assumed);
        ++of_ranks;
      }
    }
    for (const FittedProfile& profile : fit.profiles) {
      CAPTURE(profile.label);
      const auto found = std::find_if(
          sources.profiles.begin(),
          sources.profiles.end(),
          [&](const EngineProfile& p) { return p.label == profile.label; });
      REQUIRE(found != sources.profiles.end());
      CHECK(found->assumed == profile.assumed);
      profiled.insert(device.name);
    }
    for (const FittedRun& run : fit.runs) {
      CAPTURE(run.label);
      const auto found = known.find({run.label, run.quantity});
      REQUIRE(found != known.end());
      const Observation& row = found->second.observation;
      CHECK(Describe(row.workload) == run.workload);
      CHECK(row.assumed == run.assumed);
      CHECK(model::ToSeconds(row.measured) ==
            Near(model::ToSeconds(run.measured), 1e-5));
      CHECK(model::ToSeconds(ModelledBy(fit, device, found->second)) ==
            Near(model::ToSeconds(run.modelled), 1e-6));
      ++compared;
    }
  }
  CHECK(compared > 400);
  CHECK(of_ranks == 8);
  CHECK(profiled == std::set<std::string>{"trainium1", "trainium1_core"});
  CHECK(neuron ==
        std::set<std::string>{
            "inferentia2", "inferentia2_core", "trainium1", "trainium1_core"});
}

// The refits tell how far the leverages may be trusted: not further than the
// rows scatter anyway.
TEST_CASE("rows left out by leverage are as their refits" *
          doctest::test_suite("shared/measurements/nvidia_dle_training") *
          doctest::skip(!SharedHas(kTrainingTable))) {
  FitOptions by_leverage;
  by_leverage.name_runs = false;
  FitOptions by_refits = by_leverage;
  by_refits.largest_leverage = 0;
  const std::vector<Observation> rows =
      ReadTable(SharedPath(kTrainingTable).string()).observations;
  for (const char* name :
       {"a100_sxm4_40gb", "v100_sxm2_16gb", "v100_sxm3_32gb"}) {
    CAPTURE(name);
    const hardware::Device& device =
        hardware::DeviceCatalog::Shipped().Find(name);
    const Fit fit = FitDevice(device, rows, by_leverage);
    const Fit refits = FitDevice(device, rows, by_refits);
    REQUIRE(fit.runs.size() == refits.runs.size());
    double sum = 0;
    for (size_t i = 0; i < fit.runs.size(); ++i) {
      REQUIRE(fit.runs[i].left_out.has_value());
      REQUIRE(refits.runs[i].left_out.has_value());
      const double apart =
          std::abs(std::log(*fit.runs[i].left_out / *refits.runs[i].left_out));
      CHECK(apart < refits.residual_scatter);
      sum += apart;
    }
    CHECK(sum / static_cast<double>(fit.runs.size()) <
          0.1 * refits.residual_scatter);
    CHECK(std::abs(fit.LeftOutError().value() - refits.LeftOutError().value()) <
          0.1 * refits.residual_scatter);
  }
}

// A workload's time by the formula at a fit's values, and its standard error by
// the parameters alone.
struct ByFormula {
  model::Seconds<> time;
  double log_sigma = 0;
};

ByFormula FormulaOf(const Fit& fit,
                    const hardware::Device& device,
                    const model::Workload& workload) {
  const std::vector<double> values = fit.Values();
  const StepAndSlopes step =
      EvaluateStep(device, workload, model::ExpandKernels(workload), values);
  const auto slopes = step.log_times.GradientOf(Quantity::kStep);
  double variance = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = 0; j < values.size(); ++j) {
      variance += slopes[i] * fit.covariance[i * values.size() + j] * slopes[j];
    }
  }
  return {step.time.total(), std::sqrt(variance)};
}

double LogRatio(const ByFormula& a, const ByFormula& b) {
  return std::abs(std::log(a.time / b.time));
}

// The same of whole fits without a workload, in two steps.
//
// Beside a refit that holds what the fit to all holds, the leverages leave out
// what is of second order in them: a run left out moves its own prediction by
// h / (1 - h) of its residual, h kLargestLeverage at most, so that what is left
// is of the size of h^2 residuals, and residuals are as large as they scatter.
//
// A fit of its own decides anew what it holds and how far runs are believed.
// What either holds costs it no more than 0.5 in the log of the probability
// (kIndifferentCost), which is what one standard deviation costs: each prediction
// is within its standard error by the parameters of what is most probable, and
// both within the sum of theirs of each other.
TEST_CASE("fits without a workload are as fits to the others" *
          doctest::test_suite("shared/measurements/nvidia_dle_training") *
          doctest::skip(!SharedHas(kTrainingTable))) {
  FitOptions options;
  options.leave_one_out = false;
  options.name_runs = false;
  FitOptions refitted = options;
  refitted.largest_leverage = 0;
  const std::vector<Observation> table =
      ReadTable(SharedPath(kTrainingTable).string()).observations;
  for (const char* name : {"a100_sxm4_40gb", "v100_sxm3_32gb"}) {
    CAPTURE(name);
    const hardware::Device& device =
        hardware::DeviceCatalog::Shipped().Find(name);
    const std::vector<Step> steps = OfDevice(device, table, {}, {}).steps;
    std::map<std::string, std::vector<Observation>> works;
    std::vector<Observation> rows;
    for (const Step& step : steps) {
      rows.push_back(step.observation);
      works[Describe(step.observation.workload)].push_back(step.observation);
    }
    const FitsWithout fits(device, rows, options);
    const FitsWithout refits(device, rows, refitted);
    double sum = 0;
    double sum_of_sigmas = 0;
    double scatter = 0;
    double count = 0;
    for (const auto& of_work : works) {
      CAPTURE(of_work.first);
      const std::vector<Observation>& left_out = of_work.second;
      std::set<std::string> labels;
      for (const Observation& o : left_out) labels.insert(o.label);
      std::vector<Observation> others = rows;
      std::erase_if(others, [&](const Observation& o) {
        return labels.contains(o.label);
      });
      const std::optional<Fit> by_leverage = fits.Of(labels);
      REQUIRE(by_leverage.has_value());
      const std::optional<Fit> refit = refits.Of(labels);
      REQUIRE(refit.has_value());
      const Fit own = FitDevice(device, others, options);
      REQUIRE(by_leverage->runs.size() == own.runs.size());
      CHECK(by_leverage->provenance.observations ==
            own.provenance.observations);
      CHECK(by_leverage->range.max_tokens == own.range.max_tokens);
      CHECK(by_leverage->range.settings == own.range.settings);
      const model::Workload& asked = left_out.front().workload;
      const ByFormula of_leverage = FormulaOf(*by_leverage, device, asked);
      const ByFormula of_own = FormulaOf(own, device, asked);
      CHECK(LogRatio(of_leverage, of_own) <
            of_own.log_sigma + of_leverage.log_sigma);
      sum += LogRatio(of_leverage, FormulaOf(*refit, device, asked));
      const StepPrediction a = Predictor(device, *by_leverage).Predict(asked);
      const StepPrediction b = Predictor(device, own).Predict(asked);
      CHECK(a.grade == b.grade);
      sum_of_sigmas += std::abs(std::log(a.log_sigma / b.log_sigma));
      scatter += own.residual_scatter;
      ++count;
    }
    CHECK(sum < kLargestLeverage * kLargestLeverage * scatter);
    // A standard deviation of n numbers is known to 1 / sqrt(2 n) of itself.
    CHECK(sum_of_sigmas / count <
          1 / std::sqrt(2.0 * static_cast<double>(rows.size())));
  }
}

}  // namespace
}  // namespace trainfare::calibrate
