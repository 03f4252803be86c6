#include "calibrate/fit/own_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

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

}  // namespace

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
  OwnFigures own;
  std::set<std::string> others;
  int64_t of_several = 0;
  for (const Observation& measured : observations) {
    const int64_t parts = PartsOf(device, measured.device);
    if (parts == 0) {
      others.insert(measured.device);
      continue;
    }
    const int64_t count = measured.device_count;
    if (count > 1 && count % parts != 0) {
      ++of_several;
      continue;
    }
    Observation observation = AsOfAll(measured, parts);
    if (observation.device_count == 1 &&
        !model::Offloads(observation.workload.parallel)) {
      own.steps.push_back({std::move(observation), std::nullopt});
    } else if (auto joined = FittableOver(device, observation)) {
      own.steps.push_back({std::move(observation), std::move(joined)});
    } else {
      ++of_several;
    }
  }
  for (const KernelObservation& kernel : kernels) {
    if (IsDevice(device, kernel.device)) {
      own.kernels.push_back(kernel);
    } else {
      others.insert(kernel.device);
    }
  }
  for (const EngineProfile& profile : profiles) {
    const int64_t parts = PartsOf(device, profile.device);
    if (parts > 0) {
      own.profiles.push_back(AsOfAll(profile, parts));
    } else {
      others.insert(profile.device);
    }
  }
  if (!own.steps.empty() || !own.kernels.empty() || !own.profiles.empty()) {
    return own;
  }
  if (of_several > 0) {
    throw InputError(fmt::format(
        "fit of {}: all {} measurements of it are of several devices; a fit "
        "needs runs on one, or over links that are known",
        device.name,
        of_several));
  }
  std::string name = device.name;
  if (!device.reported_name.empty()) {
    name += fmt::format(" ({})", device.reported_name);
  }
  throw InputError(
      fmt::format("fit of {}: none of {} measurements is of it; they are of {}",
                  name,
                  figures,
                  model::JoinNames(model::NameViews(others))));
}

}  // namespace trainfare::calibrate
