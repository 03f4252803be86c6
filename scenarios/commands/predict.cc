#include "scenarios/commands/predict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/parallel.h"
#include "scenarios/commands/asked_targets.h"
#include "scenarios/commands/faster_settings.h"
#include "scenarios/commands/largest.h"
#include "scenarios/commands/measured_step.h"
#include "scenarios/commands/nearest_runs.h"
#include "scenarios/commands/prediction_charts.h"
#include "scenarios/commands/prediction_report.h"
#include "scenarios/commands/prediction_trace.h"
#include "scenarios/job/estimate.h"
#include "scenarios/published/published_job.h"
#include "scenarios/report/result_json.h"

namespace trainfare::scenarios {
namespace {

using model::InputError;

// Why a target cannot run it, "precision: ..", at its place; of a precision
// that the device lacks with the flag for one that it has, as bf16 may be
// nobody's choice.
std::string ReasonOf(std::string_view fault,
                     const PredictionTarget& target,
                     const Scenario& scenario) {
  std::string reason = scenario.WithPlace(std::string(fault));
  const hardware::Device& device = target.predictor.device();
  const model::Precision asked = scenario.workload.precision;
  const auto instead = hardware::NearestPrecision(device, asked);
  if (fault.starts_with("precision: ") && instead &&
      !device.MatrixPeak(asked)) {
    reason += fmt::format("; hint: --precision {}", model::ToText(*instead));
  }
  return reason;
}

// Throws InputError where the devices of an instance do not divide into the
// ranks of a model, with what would.
void RequireDivisible(const model::Parallel& parallel,
                      const PredictionTarget& target) {
  const int64_t ranks = model::RanksOfModel(parallel);
  const Cluster& cluster = target.cluster;
  if (target.instance == nullptr || cluster.devices % ranks == 0) return;
  const int64_t of_host =
      DevicesOf(*target.instance, target.predictor.device());
  throw InputError(fmt::format(
      "parallel.{}: expected ranks of a model that divide the {} devices, got "
      "{}; hint: {}",
      model::FieldOfModelRanks(parallel),
      cluster.devices,
      ranks,
      ranks <= of_host
          ? fmt::format("--devices {}", of_host / ranks * ranks)
          : fmt::format(
                "--hosts {}{}",
                std::lcm(ranks, of_host) / of_host,
                cluster.idle_devices > 0 ? ", without --devices" : "")));
}

// Every variant on every target. Of several, one that a device cannot run is
// left out with its reason; throws InputError where none is left.
std::vector<Prediction> PredictionsOf(
    const std::vector<PredictionTarget>& targets,
    const std::vector<Scenario>& variants,
    std::vector<Note>& notes) {
  std::vector<Prediction> predictions;
  std::string first_reason;
  for (const PredictionTarget& target : targets) {
    for (const Scenario& variant : variants) {
      try {
        RequireDivisible(variant.workload.parallel, target);
        predictions.push_back(
            {&target, EstimateJob(variant, target.predictor, target.cluster)});
      } catch (const InputError& error) {
        if (first_reason.empty()) {
          first_reason = ReasonOf(error.what(), target, variant);
        }
        const Note note(fmt::format("left out: {}", error.what()),
                        Caution::kCannotRun);
        if (std::find(notes.begin(), notes.end(), note) == notes.end()) {
          notes.push_back(note);
        }
      }
    }
  }
  if (predictions.empty()) throw InputError(first_reason);
  return predictions;
}

// The notes of every target; one that only some have says which.
void AddNotes(const std::vector<PredictionTarget>& targets,
              const std::vector<Prediction>& predictions,
              const Scenario& scenario,
              bool spot,
              std::vector<Note>& notes) {
  std::vector<Note> order;
  std::map<std::string, std::vector<std::string>> devices;
  for (const PredictionTarget& target : targets) {
    std::vector<JobEstimate> jobs;
    for (const Prediction& prediction : predictions) {
      if (prediction.target == &target) jobs.push_back(prediction.job);
    }
    if (jobs.empty()) continue;
    for (const Note& note : PredictionNotes(target, jobs, scenario, spot)) {
      if (!devices.contains(note.text)) order.push_back(note);
      devices[note.text].push_back(ShortName(target));
    }
  }
  for (Note& note : order) {
    const std::vector<std::string>& names = devices[note.text];
    if (names.size() < targets.size()) {
      note.text = fmt::format("{}: {}", fmt::join(names, ", "), note.text);
    }
    notes.push_back(std::move(note));
  }
}

// A run of published figures says on what it ran, unless the flags do.
Scenario LoadAsked(PredictOptions& options) {
  const Overrides& overrides = options.overrides;
  if (!NamesPublishedRun(options.scenario)) {
    return LoadJob(options.scenario, overrides);
  }
  if (overrides.model || overrides.samples || !overrides.settings.empty()) {
    throw UsageError(
        "--model, --samples, --set: a published run stands as it was run");
  }
  PublishedJob job = LoadPublishedJob(options.scenario);
  if (options.device.empty() && options.instances.empty() && !options.fit) {
    options.device = {job.device->name};
    if (job.instance != nullptr) {
      options.instances = {job.instance->FullName()};
    }
    if (!options.devices) options.devices = job.devices;
  }
  return std::move(job.scenario);
}

// What is shown of one prediction alone.
void AddDetails(const Prediction& prediction,
                const std::optional<KernelGroups>& kernels,
                const Scenario& scenario,
                const PredictOptions& options,
                Report& report) {
  for (Table& table : DetailTables(prediction, kernels, scenario.epochs)) {
    report.tables.push_back(std::move(table));
  }
  if (!options.charts) return;
  const PredictionTarget& target = *prediction.target;
  const model::Workload& workload = prediction.job.workload;
  report.charts = PredictionCharts(target, scenario, prediction.job);
  auto runs = target.fit_name.empty()
                  ? NearestRunsOfKind(target.predictor.device().kind, workload)
                  : NearestRunTable(target.predictor.fit(), workload);
  if (runs) report.page_tables.push_back(*std::move(runs));
}

// Of the one job that was asked about, where it fits.
std::optional<StepComparison> ComparisonOf(
    const std::vector<Prediction>& predictions,
    const Scenario& scenario,
    const PredictOptions& options,
    std::vector<Note>& notes) {
  if (!options.measured) return std::nullopt;
  const Measured measured = ParseMeasured(*options.measured);
  if (predictions.size() != 1) {
    throw UsageError(
        "--measured: give one --batch, --seq, --precision, --device and "
        "--instance");
  }
  const Prediction& one = predictions.front();
  if (!one.job.fits()) {
    notes.emplace_back("--measured: nothing to compare, the job does not fit");
    return std::nullopt;
  }
  return CompareStep(measured, *one.target, scenario, one.job);
}

// The answer to what was asked, in all its forms.
Report ReportOf(const std::vector<PredictionTarget>& targets,
                const std::vector<Scenario>& variants,
                const PredictOptions& options) {
  const Scenario& first = variants.front();
  Report report;
  report.warnings =
      NotesOf(targets.front().left_out_fits, Caution::kFitUnreadable);
  const std::vector<Prediction> predictions =
      PredictionsOf(targets, variants, report.notes);
  const PredictionTarget& target = *predictions.front().target;
  const JobEstimate& job = predictions.front().job;
  if (std::none_of(predictions.begin(),
                   predictions.end(),
                   [](const Prediction& p) { return p.job.fits(); })) {
    report.exit_code = kNothingFits;
    report.complaint =
        fmt::format("nothing that was asked about fits {}",
                    targets.size() == 1 ? target.predictor.device().name
                                        : NamesOf(targets));
  }
  const bool one = predictions.size() == 1;
  const auto comparison =
      ComparisonOf(predictions, first, options, report.notes);
  report.headline = HeadlineOf(targets, predictions, variants);
  if (comparison) report.headline.push_back(ComparisonLine(*comparison));
  report.tables.push_back(PredictionTable(predictions, first.epochs));
  if (comparison) {
    if (auto table = ComparisonTable(*comparison)) {
      report.tables.push_back(*std::move(table));
    }
  }
  std::optional<KernelGroups> kernels;
  if (one && job.fits()) kernels = GroupsOf(target.predictor, job.workload);
  if (one) AddDetails(predictions.front(), kernels, first, options, report);
  report.trace.emplace();
  if (options.trace) report.trace = PredictionTrace(predictions);
  AddNotes(targets, predictions, first, options.spot, report.notes);
  // A published run stands as it was run.
  if (one && variants.size() == 1 && job.fits() &&
      !NamesPublishedRun(options.scenario)) {
    if (auto note = FasterNote(target, first, job)) {
      report.notes.push_back(*std::move(note));
    }
  }
  if (options.json) {
    Json json = PredictionJson(targets, predictions, kernels, first, options);
    if (comparison) {
      json["predictions"].back()["measured"] = ToJson(*comparison);
    }
    report.json = AnswerText(std::move(json), report);
  }
  for (size_t i = 0; i < predictions.size(); ++i) {
    report.answers.push_back(fmt::format("/predictions/{}", i));
  }
  return report;
}

}  // namespace

Report Predict(const PredictOptions& asked) {
  PredictOptions options = asked;
  const Scenario scenario = LoadAsked(options);
  const std::vector<Scenario> variants = Variants(scenario, options.overrides);
  const std::vector<PredictionTarget> targets =
      AskedTargets(options, scenario.workload.parallel);
  if (options.largest) {
    if (variants.size() != 1 || targets.size() != 1) {
      throw UsageError(
          "--largest: give one --batch, --seq, --precision, --device and "
          "--instance");
    }
    try {
      return LargestReport(LargestFromText(*options.largest),
                           variants.front(),
                           targets.front(),
                           options.origin);
    } catch (const InputError& error) {
      throw InputError(
          ReasonOf(error.what(), targets.front(), variants.front()));
    }
  }
  return ReportOf(targets, variants, options);
}

}  // namespace trainfare::scenarios
