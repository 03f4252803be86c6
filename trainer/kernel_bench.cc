#include "trainer/kernel_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <stdexcept>
#include <utility>

#include "model/error.h"
#include "trainer/device.h"
#include "trainer/device_clock.h"
#include "trainer/host_allocator.h"
#include "trainer/kernel_operations.h"
#include "trainer/session.h"
#include "trainer/signals.h"

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

class Stopwatch {
 public:
  explicit Stopwatch(at::Device device) : clock_(device) {}

  // Seconds of `count` calls, one after another, from an idle device on.
  template <class Call>
  double Time(int64_t count, const Call& call) {
    clock_.Wait();
    clock_.Clear();
    const size_t begin = clock_.Mark();
    for (int64_t i = 0; i < count; ++i) call();
    const size_t end = clock_.Mark();
    clock_.Wait();
    return clock_.SecondsBetween(begin, end);
  }

 private:
  DeviceClock clock_;
};

KernelRecord Measure(const Operation& operation,
                     const model::Workload& workload,
                     at::Device device,
                     const KernelBenchOptions& options) {
  const Program program = ProgramOf(operation, workload, device);
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
  Stopwatch stopwatch(device);
  const auto run = [&] {
    results.Keep(call, program(call));
    ++call;
  };
  // The first call compiled its kernel; of the next three the fastest says how
  // long one takes.
  double once_s = stopwatch.Time(1, run);
  for (int i = 0; i < 2; ++i) {
    once_s = std::min(once_s, stopwatch.Time(1, run));
  }
  once_s = std::max(once_s, 1e-7);
  record.iterations = static_cast<int64_t>(
      std::clamp(std::ceil(options.seconds_a_sample / once_s), 1.0, 1e5));
  stopwatch.Time(record.iterations, run);
  const HostLoadMeter load;
  for (int i = 0; i < options.samples; ++i) {
    const double sample_s = stopwatch.Time(record.iterations, run);
    record.samples_s.push_back(sample_s /
                               static_cast<double>(record.iterations));
    record.device_time_s += sample_s;
  }
  record.load = load.SinceStart();
  if (!(record.device_time_s > 0)) {
    throw std::runtime_error(fmt::format(
        "{} did no work on {}", record.device.name, operation.name));
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
  if (request.workload.stack.narrow_weights) {
    throw model::InputError(
        "narrow_weights: bench kernels times the operations of fp32 weights");
  }
  CheckPrecision(request.workload.precision, device);
  const double start = MonotonicSeconds();
  for (const Operation& operation :
       OperationsOf(request.workload, &bench.left_out)) {
    if (!IsWanted(operation, options)) continue;
    if (StopRequested() || MonotonicSeconds() - start > request.max_seconds) {
      break;
    }
    bench.records.push_back(
        Measure(operation, request.workload, device, options));
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
