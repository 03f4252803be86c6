#pragma once

// The bench mode: the operations of a step timed one by one
// (docs/guide/trainer.md, "Kernels by themselves").

#include <string>
#include <vector>

#include "model/kernels.h"
#include "model/optimizer_kernels.h"
#include "trainer/record/record.h"
#include "trainer/runtime/aten.h"
#include "trainer/training/measure.h"

namespace trainfare::trainer {

struct KernelBenchOptions {
  // Only operations whose first kernel is of one of these kinds; empty: all.
  std::vector<model::KernelKind> kinds;
  int samples = 5;
  // Each sample repeats the operation for at least so long.
  double seconds_a_sample = 0.02;
  // Whether the launches of each operation are counted, and the time in which
  // one of them runs.
  bool activity = false;
  // How a fused optimizer launches.
  model::FusedAccess access = model::FusedAccess::kAllTensors;
};

struct KernelBench {
  std::vector<KernelRecord> records;
  // Kernels of the step that no operation here stands for.
  std::vector<std::string> left_out;
};

// Times the operations of the request's step. Ends early, with what is done,
// when a signal or the request's max_seconds asks for it.
KernelBench BenchKernels(const MeasureRequest& request,
                         at::Device device,
                         const KernelBenchOptions& options);

// Answers a plan as `measure` does, with a record an operation. Notes go to
// standard error. Returns the exit code.
int RunKernelBench(const std::string& plan,
                   const std::string& out,
                   at::Device device,
                   const KernelBenchOptions& options);

}  // namespace trainfare::trainer
