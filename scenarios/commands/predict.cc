#include "scenarios/commands/predict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_file.h"
#include "hardware/catalog/instance.h"
#include "hardware/files/date.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/device_models.h"
#include "hardware/models/kind.h"
#include "model/error.h"
#include "model/limits.h"
#include "model/sharding.h"
#include "model/trainable.h"
#include "scenarios/commands/asked_job.h"
#include "scenarios/commands/faster_settings.h"
#include "scenarios/commands/largest.h"
#include "scenarios/commands/nearest_runs.h"
#include "scenarios/commands/prediction_charts.h"
#include "scenarios/commands/prediction_report.h"
#include "scenarios/commands/prediction_trace.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/fits.h"
#include "scenarios/job/instance_names.h"
#include "scenarios/job/pricing.h"
#include "scenarios/published/published_job.h"
#include "scenarios/report/result_json.h"

namespace trainfare::scenarios {
namespace {

using hardware::FormatBytes;
using hardware::FormatTime;
using model::InputError;

std::string DeviceName(const std::optional<std::string>& asked,
                       const hardware::Instance* instance,
                       const std::optional<calibrate::Fit>& fit) {
  if (asked) return *asked;
  if (instance != nullptr) return instance->device;
  if (fit) return fit->device;
  return "cpu";
}

// Whether the instance's devices have it as one of their alike parts, or are
// it.
bool IsPartOf(const std::string& name, const hardware::Instance& instance) {
  const hardware::Device& device = FindUsualDevice("--device", name);
  return device.name == instance.device || device.part_of == instance.device;
}

// Hosts that so many devices are on: as asked, else as many instances as have
// them all, else one.
int64_t HostsOf(const PredictOptions& options, int64_t devices, int64_t most) {
  if (options.hosts) return *options.hosts;
  return devices > most && devices % most == 0 ? devices / most : 1;
}

Cluster ClusterFor(const PredictOptions& options,
                   const hardware::Instance* instance,
                   const calibrate::Predictor& predictor) {
  const hardware::Device& device = predictor.device();
  const int64_t most = instance != nullptr ? DevicesOf(*instance, device) : 1;
  const int64_t devices =
      options.devices.value_or(most * options.hosts.value_or(1));
  const int64_t hosts = instance != nullptr ? HostsOf(options, devices, most)
                                            : options.hosts.value_or(1);
  if (devices % hosts != 0) {
    throw InputError(
        fmt::format("--hosts: expected a divisor of the {} devices, got {}; "
                    "hint: --devices {}",
                    devices,
                    hosts,
                    (devices / hosts + 1) * hosts));
  }
  std::optional<model::BytesPerSecond<>> network;
  if (options.network) {
    network =
        hardware::ParseQuantity<model::BytesPerSecond<>>(*options.network);
    if (!network || !(*network > model::BytesPerSecond<>())) {
      throw InputError(
          fmt::format("--network: expected a rate such as 400Gbit/s, got "
                      "\"{}\"",
                      *options.network));
    }
    if (hosts == 1) {
      throw UsageError("--network: needs several hosts, --hosts 2");
    }
  }
  return OverHosts(instance != nullptr
                       ? ClusterOf(*instance, devices / hosts, predictor)
                       : ClusterOf(predictor, devices / hosts),
                   hosts,
                   device,
                   instance,
                   network);
}

// `asked`: one of options.device; `instance_name`: of options.instances.
PredictionTarget TargetOf(const PredictOptions& options,
                          const std::optional<std::string>& asked,
                          const std::optional<std::string>& instance_name) {
  const hardware::Instance* instance =
      instance_name ? &FindInstance("--instance", *instance_name) : nullptr;
  if (asked && instance != nullptr && !IsPartOf(*asked, *instance)) {
    throw UsageError(fmt::format(
        "--device and --instance: give one of them; {} is no part of the {} "
        "that {} has",
        *asked,
        instance->device,
        instance->FullName()));
  }
  std::optional<calibrate::Fit> fit;
  if (options.fit) fit = calibrate::LoadFit(*options.fit);
  const std::string name = DeviceName(asked, instance, fit);
  const hardware::Device& device =
      asked ? FindUsualDevice("--device", name)
            : hardware::DeviceCatalog::Shipped().Find(name);
  Fits fits;
  const calibrate::Fit* of_device = fit ? &*fit : fits.Of(device);
  const std::string fit_name = of_device != nullptr ? of_device->name : "";
  calibrate::Predictor predictor =
      fit ? calibrate::Predictor(device, std::move(*fit))
          : fits.PredictorOf(device);
  const Cluster cluster = ClusterFor(options, instance, predictor);
  PredictionTarget target{std::move(predictor),
                          fit_name,
                          cluster,
                          instance,
                          {},
                          fits.left_out(),
                          {}};
  if (asked) {
    target.taken_as = hardware::DeviceCatalog::Shipped().TakenAs(name);
  }
  if (instance != nullptr) {
    target.tariff = Pricing(options.prices)
                        .Of(*instance, options.spot, target.cluster.hosts);
  }
  return target;
}

// Two spellings of one device, or of one instance, are one.
void AddUnlessThere(PredictionTarget target,
                    std::vector<PredictionTarget>& targets) {
  const bool is_there = std::any_of(
      targets.begin(), targets.end(), [&](const PredictionTarget& other) {
        return other.instance == target.instance &&
               other.predictor.device().name == target.predictor.device().name;
      });
  if (!is_there) targets.push_back(std::move(target));
}

// One a device, or one an instance.
std::vector<PredictionTarget> TargetsOf(const PredictOptions& options) {
  const bool of_instances = !options.instances.empty();
  if (options.device.size() > 1 && (of_instances || options.fit)) {
    throw UsageError(
        fmt::format("--device and --{}: give one device, that of the {}",
                    of_instances ? "instance" : "fit",
                    of_instances ? "instance" : "fit"));
  }
  if (options.instances.size() > 1 && options.fit) {
    throw UsageError("--instance and --fit: give one instance, of its device");
  }
  std::vector<PredictionTarget> targets;
  std::optional<std::string> device;
  if (!options.device.empty()) device = options.device.front();
  for (const std::string& instance : options.instances) {
    AddUnlessThere(TargetOf(options, device, instance), targets);
  }
  if (of_instances) return targets;
  if (!device) targets.push_back(TargetOf(options, std::nullopt, std::nullopt));
  for (const std::string& one : options.device) {
    AddUnlessThere(TargetOf(options, one, std::nullopt), targets);
  }
  return targets;
}

// ", of 2026-11-28"; empty: the fit does not say when it was made.
std::string DayOf(const calibrate::Provenance& of) {
  constexpr size_t kDay = std::string_view("2026-11-28").size();
  return hardware::TimeFromText(of.date) ? ", of " + of.date.substr(0, kDay)
                                         : "";
}

// What a fit errs by where a run is left out says nothing of one run alone.
bool KnowsItsError(const calibrate::Fit& fit) {
  return fit.provenance.runs > 1;
}

// "fit l4: 12 runs, 3.1 % left out, of 2026-11-28".
std::string GroundName(const PredictionTarget& target) {
  if (target.fit_name.empty()) {
    return "no fit: datasheet and priors of its kind";
  }
  const calibrate::Fit& fit = target.predictor.fit();
  return fmt::format(
      "fit {}: {}{}{}",
      target.fit_name,
      hardware::Plural(fit.provenance.runs, "run"),
      KnowsItsError(fit)
          ? fmt::format(", {:.1f} % left out", 100.0 * fit.leave_one_out_error)
          : "",
      DayOf(fit.provenance));
}

// A job that shares its state says over how many ranks, has several devices or
// shares it with its host.
void SetRanks(const model::Parallel& parallel, PredictOptions& options) {
  if (!options.devices && parallel.data > 0) options.devices = parallel.data;
  if (parallel.shard != model::Shard::kNone && !model::Offloads(parallel) &&
      options.instances.empty() &&
      options.devices.value_or(options.hosts.value_or(1)) == 1) {
    throw InputError(fmt::format(
        "parallel.shard: expected several devices to share over with {}, got "
        "one; hint: --devices 8, or parallel.data",
        model::ToText(parallel.shard)));
  }
}

Json NameOfInstance(const PredictionTarget& target) {
  return target.instance != nullptr ? Json(target.instance->FullName())
                                    : Json(nullptr);
}

Json FitOf(const PredictionTarget& target) {
  return target.fit_name.empty() ? Json(nullptr) : Json(target.fit_name);
}

Json FitProvenanceOf(const PredictionTarget& target) {
  if (target.fit_name.empty()) return nullptr;
  const calibrate::Fit& fit = target.predictor.fit();
  return {{"runs", fit.provenance.runs},
          {"left_out_error_percent",
           KnowsItsError(fit) ? Json(100.0 * fit.leave_one_out_error)
                              : Json(nullptr)},
          {"date", fit.provenance.date}};
}

Json JsonOf(const Prediction& prediction, const Scenario& scenario) {
  const PredictionTarget& target = *prediction.target;
  const JobEstimate& job = prediction.job;
  Json json;
  json["device"] = target.predictor.device().name;
  json["instance"] = NameOfInstance(target);
  json["price"] = ToJson(target.tariff);
  json["fit"] = FitOf(target);
  json["fit_provenance"] = FitProvenanceOf(target);
  json["precision"] = model::ToText(job.workload.precision);
  json.update(ToJson(job));
  if (!job.fits()) return json;
  const Answered answered = {job,
                             CostOf(job, target.tariff),
                             scenario.epochs,
                             target.predictor.device().memory_bandwidth};
  AddFigures(FigurePart::kEpoch, answered, json);
  AddFigures(FigurePart::kWork, answered, json);
  AddFigures(FigurePart::kCost, answered, json);
  return json;
}

Json PredictionsJson(const std::vector<Prediction>& predictions,
                     const Scenario& scenario) {
  Json json = Json::array();
  for (const Prediction& prediction : predictions) {
    json.push_back(JsonOf(prediction, scenario));
  }
  return json;
}

Json KernelsJson(const KernelGroups& kernels) {
  Json json = Json::array();
  for (const KindTime& time : TimesByKind(kernels)) {
    json.push_back({{"kind", model::ToText(time.kind)},
                    {"time_s", time.all},
                    {"forward_s", time.seconds[0]},
                    {"backward_s", time.seconds[1]},
                    {"optimizer_s", time.seconds[2]},
                    {"share", time.share}});
  }
  return json;
}

// What all predictions have alike; of several devices each says its own.
Json HeadOf(const std::vector<PredictionTarget>& targets,
            const Scenario& scenario,
            const PredictOptions& options) {
  const PredictionTarget& target = targets.front();
  const bool one = targets.size() == 1;
  Grounds grounds;
  std::set<std::string> clouds;
  for (const PredictionTarget& any : targets) {
    if (any.instance != nullptr) clouds.insert(any.instance->cloud);
  }
  if (!clouds.empty()) grounds.prices = SourcesOf(options.prices, clouds);
  Json json = ResultHead("trainfare.prediction/1", options.origin, grounds);
  json["scenario"] = ToJson(scenario);
  const hardware::Device& device = target.predictor.device();
  json["device"] = one ? Json(device.name) : Json(nullptr);
  json["reported_name"] = one ? Json(device.reported_name) : Json(nullptr);
  json["instance"] = one ? NameOfInstance(target) : Json(nullptr);
  json["fit"] = one ? FitOf(target) : Json(nullptr);
  json["hosts"] = target.cluster.hosts;
  json["price"] = one ? ToJson(target.tariff) : Json(nullptr);
  return json;
}

// What tells a target from others: its instance, else its device.
std::string ShortName(const PredictionTarget& target) {
  return target.instance != nullptr ? target.instance->FullName()
                                    : target.predictor.device().name;
}

std::string NamesOf(const std::vector<PredictionTarget>& targets) {
  std::vector<std::string> names;
  for (const PredictionTarget& target : targets) {
    names.push_back(targets.size() == 1 ? TargetName(target)
                                        : ShortName(target));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// "8.03 B", "110 M".
std::string CountText(int64_t parameters) {
  const auto number = static_cast<double>(parameters);
  return number < 1e9 ? fmt::format("{:.3g} M", number / 1e6)
                      : fmt::format("{:.3g} B", number / 1e9);
}

// "llama-3.1-8b (8.03 B parameters, 6.82 M trained)".
std::string ModelText(const model::Workload& workload) {
  std::string text =
      fmt::format("{} ({} parameters",
                  workload.architecture.name,
                  CountText(model::TotalParameters(workload.architecture)));
  if (!workload.trainable.everything()) {
    text += fmt::format(", {} trained",
                        CountText(model::TrainableParameters(workload)));
  }
  return text + ")";
}

std::string SettingsLine(const std::vector<PredictionTarget>& targets,
                         const std::vector<Scenario>& variants) {
  const model::Workload& workload = variants.front().workload;
  std::vector<std::string_view> precisions;
  for (const Scenario& variant : variants) {
    const std::string_view name = model::ToText(variant.workload.precision);
    if (std::find(precisions.begin(), precisions.end(), name) ==
        precisions.end()) {
      precisions.push_back(name);
    }
  }
  std::string line = fmt::format("{}, {}, {}, {}, {} attention",
                                 ModelText(workload),
                                 fmt::join(precisions, " and "),
                                 DescribeUpdate(workload),
                                 DescribeStack(workload),
                                 model::ToText(workload.stack.attention));
  if (targets.size() == 1) line += "; " + GroundName(targets.front());
  return line;
}

// "fits up to batch 9, or length 65536 at batch 1".
std::string RoomLine(const PredictionTarget& target,
                     const Scenario& scenario,
                     const JobEstimate& job) {
  std::string line = fmt::format(
      "fits up to batch {}", job.largest_batch.value_or(job.workload.batch));
  if (scenario.padding.kind == PaddingKind::kStatic) {
    line += fmt::format(", or length {} at batch {}",
                        LargestOf(Largest::kLength, scenario, target),
                        job.workload.batch);
  }
  return line;
}

// The flag for one that the device runs, where it lacks the precision: bf16 may
// be nobody's choice. Empty where it has it.
std::string PrecisionHint(const PredictionTarget& target,
                          const Scenario& scenario) {
  const hardware::Device& device = target.predictor.device();
  const auto instead = hardware::NearestPrecision(device);
  if (device.MatrixPeak(scenario.workload.precision) || !instead) return "";
  return fmt::format("; hint: --precision {}", model::ToText(*instead));
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
        predictions.push_back(
            {&target, EstimateJob(variant, target.predictor, target.cluster)});
      } catch (const InputError& error) {
        if (first_reason.empty()) {
          first_reason = variant.WithPlace(error.what());
        }
        const Note note(fmt::format("left out: {}", error.what()),
                        Caution::kCannotRun);
        if (std::find(notes.begin(), notes.end(), note) == notes.end()) {
          notes.push_back(note);
        }
      }
    }
  }
  if (predictions.empty()) {
    throw InputError(first_reason +
                     PrecisionHint(targets.front(), variants.front()));
  }
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
  report.headline.push_back(
      one ? Answer(target, job, first)
          : fmt::format("{} on {}", first.title, NamesOf(targets)));
  report.headline.push_back(SettingsLine(targets, variants));
  if (one && job.fits()) {
    report.headline.push_back(RoomLine(target, first, job));
  }
  report.tables.push_back(PredictionTable(predictions, first.epochs));
  std::optional<KernelGroups> kernels;
  if (one && job.fits()) kernels = GroupsOf(target.predictor, job.workload);
  if (one) {
    for (Table& table :
         DetailTables(predictions.front(), kernels, first.epochs)) {
      report.tables.push_back(std::move(table));
    }
    if (options.charts) {
      report.charts = PredictionCharts(target, first, job);
      auto runs =
          target.fit_name.empty()
              ? NearestRunsOfKind(target.predictor.device().kind, job.workload)
              : NearestRunTable(target.predictor.fit(), job.workload);
      if (runs) report.page_tables.push_back(*std::move(runs));
    }
  }
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
    Json json = HeadOf(targets, first, options);
    json["predictions"] = PredictionsJson(predictions, first);
    if (kernels) json["predictions"].back()["kernels"] = KernelsJson(*kernels);
    report.json = AnswerText(std::move(json), report);
  }
  for (size_t i = 0; i < predictions.size(); ++i) {
    report.answers.push_back(fmt::format("/predictions/{}", i));
  }
  return report;
}

// Flags of prices are about an instance.
void RequirePriced(const PredictOptions& options) {
  if (!options.instances.empty()) return;
  const std::array given = {
      std::pair{"--spot", options.spot},
      std::pair{"--prices", !options.prices.files.empty()},
      std::pair{"--region", !options.prices.regions.empty()},
      std::pair{"--discount", !options.prices.discounts.empty()}};
  for (const auto& [flag, is_given] : given) {
    if (!is_given) continue;
    throw UsageError(
        fmt::format("{}: needs --instance, whose price it is", flag));
  }
}

}  // namespace

const hardware::Device& FindDevice(std::string_view flag,
                                   const std::string& name) {
  return WithFlag(flag, [&]() -> const hardware::Device& {
    RefuseInstance(name);
    return hardware::DeviceCatalog::Shipped().Find(name);
  });
}

const hardware::Device& FindUsualDevice(std::string_view flag,
                                        const std::string& name) {
  return WithFlag(flag, [&]() -> const hardware::Device& {
    RefuseInstance(name);
    return hardware::DeviceCatalog::Shipped().FindUsual(name);
  });
}

const hardware::Instance& FindInstance(std::string_view flag,
                                       const std::string& name) {
  return WithFlag(flag, [&]() -> const hardware::Instance& {
    return hardware::InstanceCatalog::Shipped().Find(name);
  });
}

Report Predict(const PredictOptions& asked) {
  PredictOptions options = asked;
  const Scenario scenario = LoadAsked(options);
  const std::vector<Scenario> variants = Variants(scenario, options.overrides);
  if (options.devices) {
    RequireCount("--devices", *options.devices, model::kMostDevices);
  }
  if (options.hosts) {
    RequireCount("--hosts", *options.hosts, model::kMostDevices);
  }
  SetRanks(scenario.workload.parallel, options);
  RequirePriced(options);
  const std::vector<PredictionTarget> targets = TargetsOf(options);
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
      throw InputError(variants.front().WithPlace(error.what()) +
                       PrecisionHint(targets.front(), variants.front()));
    }
  }
  return ReportOf(targets, variants, options);
}

}  // namespace trainfare::scenarios
