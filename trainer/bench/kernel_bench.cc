#include "trainer/bench/kernel_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "model/error.h"
#include "trainer/bench/kernel_operations.h"
#include "trainer/bench/programs/program.h"
#include "trainer/device/device.h"
#include "trainer/device/device_activity.h"
#include "trainer/device/device_clock.h"
#include "trainer/measure/timed_calls.h"
#include "trainer/runtime/host_allocator.h"
#include "trainer/runtime/signals.h"
#include "trainer/training/session.h"

namespace trainfare::trainer {
namespace {

// Keeps as many results as a step would before it needs their memory again.
class Results {
 public:
  explicit Results(const at::Tensor& first) : kept_(RotationCount(first)) {
    if (!first.defined()) return;
    // Touched once: in a step's memory no page is faulted in any more.
    for (at::Tensor& tensor : kept_) tensor = at::zeros_like(first);
  }
  void Keep(int64_t call, at::Tensor result) {
    kept_[static_cast<size_t>(call) % kept_.size()] = std::move(result);
  }

 private:
  std::vector<at::Tensor> kept_;
};

KernelRecord Measure(const Operation& operation,
                     const model::Workload& workload,
                     at::Device device,
                     const KernelBenchOptions& options) {
  const Program program =
      ProgramOf(operation, workload, device, options.access);
  // Operations of the forward pass keep nothing for a backward pass here.
  const at::NoGradGuard no_grad;
  KernelRecord record;
  record.device = Describe(device);
  record.workload = workload;
  record.operation = operation;
  int64_t call = 0;
  const at::Tensor first = program(call++);
  if (first.defined()) RequireRanOn(device, first);
  Results results(first);
  const auto run = [&] {
    results.Keep(call, program(call));
    ++call;
  };
  record.calls =
      TimeCalls(device, {options.samples, options.seconds_a_sample}, run);
  if (options.activity) {
    record.activity = ActivityOf(device, record.calls.iterations, run);
  }
  return record;
}

bool IsWanted(const Operation& operation, const KernelBenchOptions& options) {
  return options.kinds.empty() ||
         std::find(options.kinds.begin(),
                   options.kinds.end(),
                   operation.kind) != options.kinds.end();
}

}  // namespace

KernelBench BenchKernels(const MeasureRequest& request,
                         at::Device device,
                         const KernelBenchOptions& options) {
  KernelBench bench;
  CheckPrecision(request.workload.precision, device);
  const double start = MonotonicSeconds();
  for (const Operation& operation :
       OperationsOf(request.workload, &bench.left_out, options.access)) {
    if (!IsWanted(operation, options)) continue;
    if (StopRequested() || MonotonicSeconds() - start > request.max_seconds) {
      break;
    }
    try {
      bench.records.push_back(
          Measure(operation, request.workload, device, options));
    } catch (const Interrupted&) {
      break;
    }
    ReleaseHostMemory();
  }
  return bench;
}

int RunKernelBench(const std::string& plan,
                   const std::string& out,
                   at::Device device,
                   const KernelBenchOptions& options) {
  return AnswerPlan(plan, out, [&](const MeasureRequest& request) {
    const KernelBench bench = BenchKernels(request, device, options);
    if (!bench.left_out.empty()) {
      std::cerr << fmt::format("note: not timed by themselves: {}\n",
                               fmt::join(bench.left_out, ", "));
    }
    std::vector<std::string> lines;
    for (const KernelRecord& record : bench.records) {
      lines.push_back(ToJsonLine(record));
    }
    return lines;
  });
}

}  // namespace trainfare::trainer
