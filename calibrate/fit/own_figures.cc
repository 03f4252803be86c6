#include "calibrate/fit/own_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::calibrate {

using model::InputError;

namespace {

// What one of `parts` of a device did as what they all did: as many times the
// work in the same time. Of a run over fewer of them one stands for all.
Observation AsOfAll(Observation of_part, int64_t parts) {
  of_part.workload.batch *= parts;
  of_part.device_count = std::max<int64_t>(1, of_part.device_count / parts);
  of_part.run_devices /= parts;
  return of_part;
}

// Its figures stay: they are of the engines of one part.
EngineProfile AsOfAll(EngineProfile of_part, int64_t parts) {
  of_part.workload.batch *= parts;
  of_part.devices /= parts;
  return of_part;
}

// Figures with those that are left out.
struct Sorted {
  OwnFigures own;
  std::map<std::string, int64_t> of_others;  // by the name of their device
  int64_t of_several = 0;
};

Sorted SortFor(const hardware::Device& device,
               const std::vector<Observation>& observations,
               const std::vector<KernelObservation>& kernels,
               const std::vector<EngineProfile>& profiles) {
  Sorted sorted;
  OwnFigures& own = sorted.own;
  for (const Observation& measured : observations) {
    const int64_t parts = PartsOf(device, measured.device);
    if (parts == 0) {
      ++sorted.of_others[measured.device];
      continue;
    }
    const int64_t count = measured.device_count;
    if (count > 1 && count % parts != 0) {
      ++sorted.of_several;
      continue;
    }
    Observation observation = AsOfAll(measured, parts);
    if (observation.device_count == 1 &&
        !model::Offloads(observation.workload.parallel)) {
      own.steps.push_back({std::move(observation), std::nullopt});
    } else if (auto joined = FittableOver(device, observation)) {
      own.steps.push_back({std::move(observation), std::move(joined)});
    } else {
      ++sorted.of_several;
    }
  }
  for (const KernelObservation& kernel : kernels) {
    if (IsDevice(device, kernel.device)) {
      own.kernels.push_back(kernel);
    } else {
      ++sorted.of_others[kernel.device];
    }
  }
  for (const EngineProfile& profile : profiles) {
    const int64_t parts = PartsOf(device, profile.device);
    if (parts > 0) {
      own.profiles.push_back(AsOfAll(profile, parts));
    } else {
      ++sorted.of_others[profile.device];
    }
  }
  return sorted;
}

LeftOut LeftOutOf(const Sorted& sorted) {
  LeftOut reasons;
  for (const auto& [other, count] : sorted.of_others) {
    reasons[WhyOfAnother(other)] += count;
  }
  if (sorted.of_several > 0) reasons[kOverUnknownLinks] = sorted.of_several;
  return reasons;
}

}  // namespace

std::string WhyOfAnother(const std::string& device) {
  const auto& catalog = hardware::DeviceCatalog::Shipped();
  if (catalog.TryFind(device) != nullptr ||
      IsDevice(catalog.Find("cpu"), device)) {
    return fmt::format("of {}", device);
  }
  std::vector<std::string_view> known;
  for (const hardware::Device& one : catalog.devices()) {
    known.emplace_back(one.name);
  }
  return fmt::format(
      "unknown device \"{}\"{}", device, model::DidYouMean(device, known));
}

std::vector<std::string> SourcesOf(const OwnFigures& own) {
  std::set<std::string> sources;
  for (const Step& step : own.steps) {
    sources.insert(step.observation.source);
  }
  for (const EngineProfile& profile : own.profiles) {
    sources.insert(profile.source);
  }
  if (!own.kernels.empty()) sources.emplace(kOwnSource);
  return {sources.begin(), sources.end()};
}

OwnFigures OfDevice(const hardware::Device& device,
                    const std::vector<Observation>& observations,
                    const std::vector<KernelObservation>& kernels,
                    const std::vector<EngineProfile>& profiles) {
  const size_t figures = observations.size() + kernels.size() + profiles.size();
  if (figures == 0) {
    throw InputError(
        fmt::format("fit of {}: expected measurements, got none", device.name));
  }
  Sorted sorted = SortFor(device, observations, kernels, profiles);
  if (!sorted.own.empty()) {
    sorted.own.left_out = LeftOutOf(sorted);
    return std::move(sorted.own);
  }
  if (sorted.of_several > 0) {
    throw InputError(fmt::format(
        "fit of {}: expected runs on one device, or over links that are known, "
        "got {} over several",
        device.name,
        hardware::Plural(sorted.of_several, "measurement")));
  }
  std::string name = device.name;
  if (!device.reported_name.empty()) {
    name += fmt::format(" ({})", device.reported_name);
  }
  std::vector<std::string_view> others;
  for (const auto& [other, count] : sorted.of_others) {
    others.emplace_back(other);
  }
  throw InputError(
      fmt::format("fit of {}: expected measurements of it, got {} of {}",
                  name,
                  figures,
                  model::JoinNames(others)));
}

}  // namespace trainfare::calibrate
