#pragma once

// Recomputation by operations (Workload::operation_checkpointing): of a block's
// forward pass the first, third, .. product's result is kept, and attention's on
// chip; all else runs again. Grouped products of experts are none of these, and
// a router's is not counted. Of experts that run one after another each has its
// own. Source: pytorch/torchtitan, torchtitan/distributed/activation_checkpoint.py
// of 2025 (_op_sac_save_list; per_op_sac_force_recompute_mm_shapes_by_fqns, by
// default moe.router.gate).

#include <cstddef>
#include <cstdint>

#include "model/kernel_list.h"

namespace trainfare::model::internal {

// Takes what was kept out of a block's forward pass, the kernels from number
// `first` on.
void LeaveOutKept(KernelList& list, size_t first);

// Bytes of the products' results that are kept of a block's forward pass, each
// element of so many.
int64_t KeptResultBytes(const KernelList& forward, int64_t element);

}  // namespace trainfare::model::internal
