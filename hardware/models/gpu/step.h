#pragma once

// Time of a step on a GPU: its kernels, each at a time, behind a host that issues
// launches into a queue; a device that outruns it waits.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hardware/catalog/device.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/models/gpu/kernel_time.h"
#include "hardware/models/gpu/parameters.h"
#include "hardware/models/gpu/power.h"
#include "hardware/models/gpu/rates.h"
#include "hardware/models/step_time.h"
#include "model/distinct_kernels.h"
#include "model/error.h"
#include "model/kernel_time.h"
#include "model/kernels.h"
#include "model/launch_queue.h"
#include "model/stack_rules.h"
#include "model/trainable.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::hardware::models {

// Host time of one launch in a step, in seconds.
template <class T>
T LaunchTime(model::Launches launches, std::span<const T> p) {
  switch (launches) {
    case model::Launches::kByFramework:
      return p[kGpuLaunchCost];
    case model::Launches::kByModules:
      return p[kGpuLaunchCost] * FactsOfHosts().module_launch_share;
    case model::Launches::kByLibrary:
      return p[kGpuLaunchCost] * p[kGpuLibraryLaunchShare];
    case model::Launches::kByGraph:
      return p[kGpuLaunchCost] * p[kGpuCompiledLaunchShare];
    case model::Launches::kOnce:
      break;
  }
  return T(0.0);
}

// Tensors of one Transformer layer: a weight and a bias of six linear maps and
// two norms; embeddings and head have half as many again.
inline constexpr int64_t kGpuTensorsPerLayer = 16;
inline constexpr int64_t kGpuOtherTensors = 8;

// Host work of an optimizer step outside its launches.
template <class T>
model::Seconds<T> OptimizerHostTime(const model::Workload& workload,
                                    const T& a_tensor) {
  if (workload.work != model::Work::kTraining ||
      workload.parallel.offload != model::Offload::kNone ||
      model::RulesOf(workload).launches == model::Launches::kOnce) {
    return model::Seconds<T>(T(0.0));
  }
  const int64_t layers = workload.architecture.blocks_with_weights() -
                         workload.trainable.frozen_layers;
  const int64_t of_layer =
      model::RulesOf(workload).flat_layers ? 1 : kGpuTensorsPerLayer;
  const int64_t tensors = workload.trainable.lora_rank == 0
                              ? of_layer * layers + kGpuOtherTensors
                              : model::TrainableTensorCount(workload);
  return model::Seconds<T>(a_tensor * static_cast<double>(tensors));
}

// What one launch of a kernel takes in a step.
template <class T>
struct GpuLaunchTime {
  model::ExposedTime<T> exposed;
  model::Seconds<T> total;
};

// The same of all kernels of a step, which all take `slower` times as long as
// the board's own limit lets them.
template <class T>
class GpuLaunchTimes {
 public:
  // Of so many kernels. What it is made of must outlive it.
  GpuLaunchTimes(const Device& device,
                 const model::Workload& workload,
                 size_t kernels,
                 std::span<const T> p,
                 const std::optional<T>& slower)
      : device_(device),
        p_(p),
        slower_(slower),
        slower_kernels_(model::RulesOf(workload).slower_kernels),
        rates_(device, workload),
        terms_(device, p),
        distinct_(kernels) {
    times_.reserve(kernels);
  }
  GpuLaunchTimes(const GpuLaunchTimes&) = delete;  // parts refer to others
  GpuLaunchTimes& operator=(const GpuLaunchTimes&) = delete;

  // The kernel must outlive this.
  const GpuLaunchTime<T>& Of(const model::Kernel& kernel) {
    const size_t number = distinct_.NumberOf(kernel);
    if (number == times_.size()) {
      const model::ExposedTime<T> exposed = Exposed(kernel);
      times_.push_back({exposed, exposed.total()});
    }
    return times_[number];
  }

 private:
  model::ExposedTime<T> Exposed(const model::Kernel& kernel) {
    std::optional<GpuProducts<T>>& products =
        GpuKernelRates::Among(kernel, others_, narrow_, update_, attention_);
    if (!products) products.emplace(rates_.Of(kernel), terms_, p_);
    auto exposed = GpuKernelTime<T>(device_, *products, kernel, terms_, p_);
    if (slower_kernels_) {
      exposed.memory = exposed.memory / p_[kGpuCompiledEfficiency];
    }
    return slower_ ? exposed * *slower_ : exposed;
  }

  const Device& device_;
  std::span<const T> p_;
  const std::optional<T>& slower_;
  bool slower_kernels_;
  GpuKernelRates rates_;
  GpuTerms<T> terms_;
  // Most steps have some of them alone.
  std::optional<GpuProducts<T>> others_;
  std::optional<GpuProducts<T>> narrow_;
  std::optional<GpuProducts<T>> update_;
  std::optional<GpuProducts<T>> attention_;
  model::DistinctKernels distinct_;
  std::vector<GpuLaunchTime<T>> times_;  // of one launch of each
};

// A step whose kernels all take `slower` times as long as the board's own limit
// lets them.
template <class T>
StepTime<T> GpuStepSlowed(const Device& device,
                          const model::Workload& workload,
                          const model::KernelList& kernels,
                          std::span<const T> p,
                          const std::optional<T>& slower) {
  ENSURE(p.size() == kGpuParameterCount, "parameters of another model");
  const model::StackRules& stack = model::RulesOf(workload);
  GpuLaunchTimes<T> times(device, workload, kernels.kernels.size(), p, slower);
  const model::Seconds<T> launch(LaunchTime<T>(stack.launches, p));

  // The two clocks run on through the phases of a step; what a phase waits
  // for the host is its overhead.
  model::LaunchQueue<T> queue;
  return SumSegments<T>(
      workload,
      kernels,
      [&](const model::Segment& segment) {
        PhaseTime<T> time;
        model::LaunchMap<T> map;
        for (const model::Kernel& kernel : kernels.Of(segment)) {
          const GpuLaunchTime<T>& once = times.Of(kernel);
          AddKernel(time, kernel, once.exposed);
          map.Append(launch, once.total, kernel.launches);
        }
        if (segment.repeat > 1) {
          time = time * static_cast<double>(segment.repeat);
        }
        const model::Seconds<T> before = queue.ready;
        queue.Apply(map.Repeated(segment.repeat));
        const model::Seconds<T> waited = (queue.ready - before) - time.total();
        time.overhead += waited;
        return time;
      },
      OptimizerHostTime<T>(workload, p[kGpuTensorOverhead]));
}

// Under a limit below the board's own a run goes at the clock of its mean power:
// the driver regulates over far longer than a kernel takes.
template <class T>
StepTime<T> GpuStep(const Device& device,
                    const model::Workload& workload,
                    const model::KernelList& kernels,
                    std::span<const T> p) {
  const auto within = [&](const std::optional<T>& slower) {
    return GpuStepSlowed<T>(device, workload, kernels, p, slower);
  };
  StepTime<T> step = within(std::nullopt);
  if (workload.power_limit.base() <= 0.0) return step;
  const T clock = ClockWithinSetLimit(device, workload, BusySharesOf(step));
  return clock < T(1.0) ? within(T(1.0) / clock) : step;
}

}  // namespace trainfare::hardware::models
