#pragma once

// Kernels of one optimizer step: launches and bytes by implementation.

#include <cstdint>
#include <vector>

#include "model/kernel_list.h"
#include "model/workload.h"

namespace trainfare::model {

// What one update costs an element, each operation its own kernel (for-loop,
// multi-tensor), or all in one (fused). Reads and writes are fp32 tensors.
struct OptimizerOperations {
  int64_t operations = 0;    // kernels over each tensor when not fused
  int64_t tensors_read = 0;  // summed over those kernels
  int64_t tensors_written = 0;
  int64_t fused_tensors_read = 0;  // one pass: parameters, gradients, state
  int64_t fused_tensors_written = 0;
  int64_t flops = 0;    // arithmetic an element
  int64_t special = 0;  // square roots an element
  // Kept between steps, as large as the parameters: what StateNumbersOf() asks.
  int64_t state_tensors = 0;
};
OptimizerOperations OperationsOf(const Workload& workload);

// Numbers that the optimizer keeps between steps, of all that trains, where
// nothing is divided: its state tensors times the parameters; of Muon one a
// parameter of a matrix of the blocks and AdamW's two of others; of Adafactor
// one a row and one a column of a matrix, and one a parameter of a vector.
int64_t StateNumbersOf(const Workload& workload);
// The same of a rank that updates so many parameters; of Muon of the one with
// the most work. Where ranks divide the state Adafactor keeps a number a
// parameter: their pieces of flat tensors have neither rows nor columns.
int64_t StateNumbersOfRank(const Workload& workload, int64_t updated);

// Tensors that one launch of a multi-tensor kernel takes (the pointers have to
// fit in its arguments).
inline constexpr int64_t kTensorsPerLaunch = 36;

// Tensors that one launch of the fused update with masters in it takes: its
// list travels in 32 KB of arguments (trainer/kernels/chunked_update.cuh).
inline constexpr int64_t kTensorsPerFusedLaunch = 400;

// How the fused update visits the tensors.
enum class FusedAccess {
  kAllTensors,  // packed into few launches (model/multi_tensor.h)
  kOneTensor,   // one launch a tensor
};

// Appends the optimizer kernels of `workload` (none for OptimizerKind::kNone).
void AppendOptimizerKernels(const Workload& workload,
                            std::vector<Kernel>& kernels,
                            FusedAccess access = FusedAccess::kAllTensors);

}  // namespace trainfare::model
