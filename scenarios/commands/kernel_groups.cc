#include "scenarios/commands/kernel_groups.h"

#include "model/error.h"

namespace trainfare::scenarios {

namespace {

KernelGroups Grouped(const calibrate::Predictor& predictor,
                     const model::Workload& workload) {
  const model::KernelList list = model::ExpandKernels(workload);
  KernelGroups groups;
  for (const model::Segment& segment : list.segments) {
    for (const model::Kernel& kernel : list.Of(segment)) {
      const auto repeats = static_cast<double>(segment.repeat);
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

}  // namespace trainfare::scenarios
