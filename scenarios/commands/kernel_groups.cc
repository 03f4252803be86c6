#include "scenarios/commands/kernel_groups.h"

#include <algorithm>

#include "model/error.h"
#include "model/split.h"

namespace trainfare::scenarios {

namespace {

KernelGroups Grouped(const calibrate::Predictor& predictor,
                     const model::Workload& whole) {
  const model::Workload workload = model::OfStage(whole, 0);
  const model::KernelList list = model::ExpandKernels(workload);
  KernelGroups groups;
  for (const model::Segment& segment : list.segments) {
    // In the mean over the micro-batches.
    const auto runs =
        static_cast<double>(model::PassesInStep(workload, segment)) /
        static_cast<double>(model::PassesInStep(workload, segment.phase));
    for (const model::Kernel& kernel : list.Of(segment)) {
      const auto repeats = static_cast<double>(segment.repeat) * runs;
      const double times = repeats * static_cast<double>(kernel.launches);
      KernelGroup& group = groups[{segment.phase, kernel.kind}];
      group.flops +=
          times * static_cast<double>(kernel.matrix_flops +
                                      kernel.vector_flops + kernel.special_ops);
      group.bytes += times * static_cast<double>(kernel.bytes());
      group.seconds += repeats * ToSeconds(predictor.KernelTime(
                                     workload, segment.phase, kernel));
    }
  }
  return groups;
}

}  // namespace

std::string GroupName(model::Phase phase, model::KernelKind kind) {
  const std::string of_phase(model::ToText(phase));
  const std::string of_kind(model::ToText(kind));
  return of_phase == of_kind ? of_kind : of_phase + " " + of_kind;
}

std::optional<KernelGroups> GroupsOf(const calibrate::Predictor& predictor,
                                     const model::Workload& workload) {
  try {
    return Grouped(predictor, workload);
  } catch (const model::InputError&) {
    return std::nullopt;
  }
}

std::vector<KindTime> TimesByKind(const KernelGroups& groups) {
  std::map<model::KernelKind, KindTime> by_kind;
  double all = 0;
  for (const auto& [key, group] : groups) {
    KindTime& time = by_kind[key.second];
    time.kind = key.second;
    time.seconds[static_cast<size_t>(key.first)] += group.seconds;
    time.all += group.seconds;
    all += group.seconds;
  }
  std::vector<KindTime> times;
  times.reserve(by_kind.size());
  for (const auto& [kind, time] : by_kind) {
    times.push_back(time);
    times.back().share = time.all / all;
  }
  std::stable_sort(
      times.begin(), times.end(), [](const KindTime& a, const KindTime& b) {
        return a.all > b.all;
      });
  return times;
}

}  // namespace trainfare::scenarios
