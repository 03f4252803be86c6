#pragma once

// The operations of a step, one by one, as the trainer runs them.

#include <cstdint>
#include <string>
#include <vector>

#include "model/optimizer_kernels.h"
#include "model/workload.h"
#include "trainer/bench/programs/program.h"
#include "trainer/record/operation.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// The operations of a step of an eager stack, alike ones counted together, in
// the order in which they come first. Those that have no program of their own
// here (of experts and decoders' norms under autocast, which has casts among
// them) are left out and named in `left_out`. A fused
// optimizer visits its tensors by `access`.
std::vector<Operation> OperationsOf(
    const model::Workload& workload,
    std::vector<std::string>* left_out,
    model::FusedAccess access = model::FusedAccess::kAllTensors);

// An operation on random operands of its own. Throws InputError where the
// trainer cannot run it on the device.
Program ProgramOf(const Operation& operation,
                  const model::Workload& workload,
                  at::Device device,
                  model::FusedAccess access = model::FusedAccess::kAllTensors);

}  // namespace trainfare::trainer
