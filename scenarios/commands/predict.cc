#include "scenarios/commands/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "calibrate/fit/fit.h"
#include "hardware/catalog/instance.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/kind.h"
#include "model/error.h"
#include "model/limits.h"
#include "scenarios/commands/asked_job.h"
#include "scenarios/commands/largest.h"
#include "scenarios/commands/prediction_charts.h"
#include "scenarios/commands/prediction_report.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/fits.h"
#include "scenarios/job/pricing.h"
#include "scenarios/published/published_job.h"
#include "scenarios/report/result_json.h"

namespace trainfare::scenarios {
namespace {

using hardware::FormatBytes;
using hardware::FormatTime;
using model::InputError;

std::string DeviceName(const PredictOptions& options,
                       const hardware::Instance* instance,
                       const std::optional<calibrate::Fit>& fit) {
  if (options.device) return *options.device;
  if (instance != nullptr) return instance->device;
  if (fit) return fit->device;
  return "cpu";
}

// Whether the instance's devices have it as one of their alike parts, or are
// it.
bool IsPartOf(const std::string& name, const hardware::Instance& instance) {
  const hardware::Device& device =
      hardware::DeviceCatalog::Shipped().Find(name);
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
    if (hosts == 1) {
      throw UsageError("--network: needs several hosts, --hosts 2");
    }
    network =
        hardware::ParseQuantity<model::BytesPerSecond<>>(*options.network);
    if (!network || !(*network > model::BytesPerSecond<>())) {
      throw UsageError(
          fmt::format("--network: expected a rate such as 400Gbit/s, got "
                      "\"{}\"",
                      *options.network));
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

PredictionTarget TargetOf(const PredictOptions& options) {
  const hardware::Instance* instance =
      options.instance
          ? &hardware::InstanceCatalog::Shipped().Find(*options.instance)
          : nullptr;
  if (options.device && instance != nullptr &&
      !IsPartOf(*options.device, *instance)) {
    throw UsageError(fmt::format(
        "--device and --instance: give one of them; {} is no part of the {} "
        "that {} has",
        *options.device,
        instance->device,
        instance->FullName()));
  }
  std::optional<calibrate::Fit> fit;
  if (options.fit) fit = calibrate::LoadFit(*options.fit);
  const std::string name = DeviceName(options, instance, fit);
  const hardware::Device& device =
      hardware::DeviceCatalog::Shipped().Find(name);
  Fits fits;
  if (!fit) {
    if (const calibrate::Fit* found = fits.Of(device)) fit = *found;
  }
  const std::string fit_name = fit ? fit->name : "";
  calibrate::Predictor predictor =
      fit ? calibrate::Predictor(device, std::move(*fit))
          : calibrate::Predictor(device);
  const Cluster cluster = ClusterFor(options, instance, predictor);
  PredictionTarget target{
      std::move(predictor), fit_name, cluster, instance, {}, fits.left_out()};
  if (instance != nullptr) {
    target.tariff = Pricing(options.prices, options.regions)
                        .Of(*instance, options.spot, target.cluster.hosts);
  }
  return target;
}

std::string GroundName(const PredictionTarget& target) {
  return target.fit_name.empty() ? "no fit: datasheet and priors of its kind"
                                 : fmt::format("fit {}", target.fit_name);
}

// A job that shares its state says over how many ranks, or has several
// devices.
void SetRanks(const model::Parallel& parallel, PredictOptions& options) {
  if (!options.devices && parallel.data > 0) options.devices = parallel.data;
  if (parallel.shard != model::Shard::kNone && !options.instance &&
      options.devices.value_or(options.hosts.value_or(1)) == 1) {
    throw InputError(fmt::format(
        "parallel.shard: expected several devices to share over with {}, got "
        "one; hint: --devices 8, or parallel.data",
        model::ToText(parallel.shard)));
  }
}

// What a flag's word stands for; the message gets the flag in front.
template <class Parse>
auto OfFlag(std::string_view flag, const std::string& word, Parse parse) {
  try {
    return parse(word);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", flag, error.what()));
  }
}

}  // namespace

void RequireCount(std::string_view flag, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return;
  throw InputError(fmt::format(
      "{}: expected an integer from 1 to {}, got {}", flag, most, value));
}

std::vector<Scenario> Variants(const Scenario& scenario,
                               const Overrides& overrides) {
  Scenario base = scenario;
  if (overrides.precision) {
    base.workload.precision = OfFlag(
        "--precision", *overrides.precision, model::FromText<model::Precision>);
  }
  if (overrides.work) {
    base.workload.work = OfFlag("--work", *overrides.work, WorkFromText);
    if (base.workload.work == model::Work::kForward) {
      base.workload.accumulation = 1;
    } else if (!base.names_optimizer) {
      throw InputError(
          "--work: expected forward, the scenario names no optimizer to train "
          "with");
    }
  }
  if (overrides.epochs) {
    RequireCount("--epochs", *overrides.epochs, model::kMostEpochs);
    base.epochs = *overrides.epochs;
  }
  std::vector<int64_t> batches = overrides.batches;
  if (batches.empty()) batches.push_back(base.workload.batch);
  std::vector<Scenario> variants;
  // 0 stands for the scenario's own padding.
  std::vector<int64_t> lengths = overrides.lengths;
  const bool own_padding = lengths.empty();
  if (own_padding) lengths.push_back(0);
  for (const int64_t length : lengths) {
    for (const int64_t batch : batches) {
      RequireCount("--batch", batch, model::kLargestBatch);
      if (!own_padding) RequireCount("--seq", length, model::kLongestSequence);
      Scenario variant = base;
      variant.workload.batch = batch;
      if (!own_padding) variant.PadTo(length);
      const auto longest = variant.workload.architecture.max_sequence_length();
      if (longest && variant.workload.sequence_length > *longest) {
        throw InputError(
            fmt::format("--seq: expected at most {}, the positions of {}, got "
                        "{}",
                        *longest,
                        variant.workload.architecture.name,
                        variant.workload.sequence_length));
      }
      variants.push_back(std::move(variant));
    }
  }
  return variants;
}

namespace {

Json JsonOf(const JobEstimate& job,
            const Scenario& scenario,
            const std::optional<Tariff>& tariff) {
  Json prediction = ToJson(job);
  if (!job.fits()) return prediction;
  prediction["epoch_time_s"] = ToSeconds(job.run.epoch(scenario.epochs));
  const auto cost = CostOf(job, tariff);
  prediction["cost_usd"] = cost ? Json(ToDollars(*cost)) : Json(nullptr);
  return prediction;
}

Json HeadOf(const PredictionTarget& target, const Scenario& scenario) {
  Json json = ResultHead("trainfare.prediction/1");
  json["scenario"] = ToJson(scenario);
  const hardware::Device& device = target.predictor.device();
  json["device"] = device.name;
  json["reported_name"] = device.reported_name;
  json["instance"] = target.instance != nullptr
                         ? Json(target.instance->FullName())
                         : Json(nullptr);
  json["fit"] = target.fit_name.empty() ? Json(nullptr) : Json(target.fit_name);
  json["hosts"] = target.cluster.hosts;
  json["price"] = ToJson(target.tariff);
  return json;
}

std::string SettingsLine(const PredictionTarget& target,
                         const model::Workload& workload) {
  return fmt::format("{}, {}, {}, {}, {} attention; {}",
                     workload.architecture.name,
                     model::ToText(workload.precision),
                     DescribeUpdate(workload),
                     model::ToText(workload.stack.fusion),
                     model::ToText(workload.stack.attention),
                     GroundName(target));
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
  if (!options.device && !options.instance && !options.fit) {
    options.device = job.device->name;
    if (job.instance != nullptr) options.instance = job.instance->FullName();
    if (!options.devices) options.devices = job.devices;
  }
  return std::move(job.scenario);
}

}  // namespace

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
  if (options.spot && !options.instance) {
    throw UsageError("--spot: needs --instance, whose price it is");
  }
  const PredictionTarget target = TargetOf(options);
  if (options.largest) {
    if (variants.size() != 1) {
      throw UsageError("--largest: give one --batch and one --seq");
    }
    return LargestReport(
        LargestFromText(*options.largest), variants.front(), target);
  }
  std::vector<JobEstimate> jobs;
  Json predictions = Json::array();
  for (const Scenario& variant : variants) {
    jobs.push_back(EstimateJob(variant, target.predictor, target.cluster));
    predictions.push_back(JsonOf(jobs.back(), variant, target.tariff));
  }
  Report report;
  for (size_t i = 0; i < jobs.size(); ++i) {
    report.answers.push_back(fmt::format("/predictions/{}", i));
  }

  const Scenario& first = variants.front();
  report.warnings = target.left_out_fits;
  if (std::none_of(jobs.begin(), jobs.end(), [](const JobEstimate& job) {
        return job.fits();
      })) {
    report.exit_code = kNothingFits;
    report.complaint = fmt::format("nothing that was asked about fits {}",
                                   target.predictor.device().name);
  }
  report.headline.push_back(
      jobs.size() == 1
          ? Answer(target, jobs.front(), first)
          : fmt::format("{} on {}", scenario.title, TargetName(target)));
  report.headline.push_back(SettingsLine(target, first.workload));
  report.tables.push_back(PredictionTable(jobs, target.tariff, first.epochs));
  if (jobs.size() == 1) {
    for (Table& table : DetailTables(jobs.front(), first.epochs)) {
      report.tables.push_back(std::move(table));
    }
    if (options.charts) {
      report.charts = PredictionCharts(target, first, jobs.front());
    }
  }
  report.notes = PredictionNotes(target, jobs, first, options.spot);
  Json json = HeadOf(target, first);
  json["predictions"] = std::move(predictions);
  json["notes"] = report.notes;
  report.json = JsonText(json);
  return report;
}

}  // namespace trainfare::scenarios
