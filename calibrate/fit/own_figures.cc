#include "calibrate/fit/own_figures.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::calibrate {

using model::InputError;

std::vector<std::string> SourcesOf(const OwnFigures& own) {
  std::set<std::string> sources;
  for (const Step& step : own.steps) {
    sources.insert(step.observation.source);
  }
  if (!own.kernels.empty()) sources.emplace(kOwnSource);
  return {sources.begin(), sources.end()};
}

OwnFigures OfDevice(const hardware::Device& device,
                    const std::vector<Observation>& observations,
                    const std::vector<KernelObservation>& kernels) {
  if (observations.empty() && kernels.empty()) {
    throw InputError(
        fmt::format("fit of {}: expected measurements, got none", device.name));
  }
  OwnFigures own;
  std::set<std::string> others;
  int64_t of_several = 0;
  for (const Observation& observation : observations) {
    if (!IsDevice(device, observation.device)) {
      others.insert(observation.device);
    } else if (observation.device_count == 1 &&
               !model::Offloads(observation.workload.parallel)) {
      own.steps.push_back({observation, std::nullopt});
    } else if (auto joined = FittableOver(device, observation)) {
      own.steps.push_back({observation, std::move(joined)});
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
  if (!own.steps.empty() || !own.kernels.empty()) return own;
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
                  observations.size() + kernels.size(),
                  model::JoinNames(model::NameViews(others))));
}

}  // namespace trainfare::calibrate
