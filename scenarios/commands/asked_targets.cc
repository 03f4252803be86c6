#include "scenarios/commands/asked_targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_file.h"
#include "model/error.h"
#include "model/limits.h"
#include "model/parallel.h"
#include "model/sharding.h"
#include "scenarios/commands/asked_job.h"
#include "scenarios/commands/catalog_flags.h"
#include "scenarios/job/fits.h"
#include "scenarios/job/pricing.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {
namespace {

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
  const auto network = NetworkFlag(options.network);
  if (network && hosts == 1) {
    throw UsageError("--network: needs several hosts, --hosts 2");
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

// A job that shares its state says over how many ranks, has several devices or
// shares it with its host.
void SetRanks(const model::Parallel& parallel, PredictOptions& options) {
  const bool divides = model::DividesModel(parallel);
  const bool anywhere = options.instances.empty() && !options.hosts;
  if (!options.devices && (parallel.data > 0 || (divides && anywhere))) {
    options.devices = model::FewestDevices(parallel);
  }
  if (parallel.shard != model::Shard::kNone && !model::Offloads(parallel) &&
      options.instances.empty() &&
      options.devices.value_or(options.hosts.value_or(1)) == 1) {
    throw InputError(fmt::format(
        "parallel.shard: expected several devices to share over with {}, got "
        "one; hint: --devices 8, or parallel.data",
        model::ToText(parallel.shard)));
  }
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

std::vector<PredictionTarget> AskedTargets(PredictOptions options,
                                           const model::Parallel& parallel) {
  if (options.devices) {
    RequireCount("--devices", *options.devices, model::kMostDevices);
  }
  if (options.hosts) {
    RequireCount("--hosts", *options.hosts, model::kMostDevices);
  }
  SetRanks(parallel, options);
  RequirePriced(options);
  return TargetsOf(options);
}

}  // namespace trainfare::scenarios
