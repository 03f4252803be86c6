#include "scenarios/commands/prediction_target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace trainfare::scenarios {

std::string TargetName(const PredictionTarget& target) {
  const hardware::Device& device = target.predictor.device();
  std::string name =
      device.reported_name.empty()
          ? device.name
          : fmt::format("{} ({})", device.name, device.reported_name);
  if (target.cluster.devices > 1) {
    name = fmt::format("{} x {}", target.cluster.devices, name);
  }
  if (target.instance != nullptr) {
    name += fmt::format(" of {}{}",
                        target.cluster.hosts > 1
                            ? fmt::format("{} x ", target.cluster.hosts)
                            : "",
                        target.instance->FullName());
  } else if (target.cluster.hosts > 1) {
    name += fmt::format(" on {} hosts", target.cluster.hosts);
  }
  return name;
}

std::string ShortName(const PredictionTarget& target) {
  return target.instance != nullptr ? target.instance->FullName()
                                    : target.predictor.device().name;
}

std::optional<double> LeftOutError(const PredictionTarget& target) {
  if (target.fit_name.empty()) return std::nullopt;
  return target.predictor.fit().LeftOutError();
}

std::string NamesOf(const std::vector<PredictionTarget>& targets) {
  std::vector<std::string> names;
  for (const PredictionTarget& target : targets) {
    names.push_back(targets.size() == 1 ? TargetName(target)
                                        : ShortName(target));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace trainfare::scenarios
