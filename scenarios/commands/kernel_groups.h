#pragma once

// The kernels of a step by their kind, each predicted by itself.

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/fit/predictor.h"
#include "model/kernels.h"
#include "model/workload.h"

namespace trainfare::scenarios {

// Work of kernels of one kind in one phase.
struct KernelGroup {
  double flops = 0;
  double bytes = 0;
  double seconds = 0;  // with their launches
};

using KernelGroups =
    std::map<std::pair<model::Phase, model::KernelKind>, KernelGroup>;

// "forward gemm", "optimizer".
std::string GroupName(model::Phase phase, model::KernelKind kind);

// Those of one micro-batch, of a rank of the first stage where ranks have parts
// of the model; nullopt: the device's model has no kernels by
// themselves.
std::optional<KernelGroups> GroupsOf(const calibrate::Predictor& predictor,
                                     const model::Workload& workload);

// What the kernels of one kind take.
struct KindTime {
  model::KernelKind kind = model::KernelKind::kElementwise;
  std::array<double, 3> seconds{};  // by phase
  double all = 0;
  double share = 0;  // of all kinds together
};

// Those that take longest first.
std::vector<KindTime> TimesByKind(const KernelGroups& groups);

}  // namespace trainfare::scenarios
