#pragma once

// Time of a step on NeuronCores (Trainium, Inferentia).
//
// A core has a tensor, a vector and a scalar engine, which mostly take turns on
// one chain of operations: their times nearly add up. DMA engines move tensors
// between HBM and the core's SBUF while the engines work; the compiler's
// schedule decides how much of that they hide. What does not fit in the SBUF is
// spilled to HBM and loaded again. Graphs are compiled; the cores of a chip are
// data parallel: each takes its share of the batch and of the HBM.
//
// docs/models/trainium.md works each formula by hand and says what the
// published profiles determine;
// tests/hardware/models/neuron/neuron_model_test.cc asserts the numbers.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "hardware/catalog/device.h"
#include "hardware/models/compiled_graph.h"
#include "hardware/models/kind.h"
#include "hardware/models/neuron/compiler.h"
#include "hardware/models/step_time.h"
#include "model/error.h"
#include "model/kernel_time.h"
#include "model/kernels.h"

namespace trainfare::hardware::models {

// Its free parameters. What is believed of each: hardware/kinds/neuron.yaml.
enum NeuronParameter : std::size_t {
  kNeuronTensorEfficiency,
  kNeuronVectorEfficiency,
  kNeuronScalarOp,
  kNeuronEngineOverlap,
  kNeuronDmaEfficiency,
  kNeuronDmaOverlap,
  kNeuronActivationTraffic,
  kNeuronSpillShare,
  kNeuronKernelOverhead,
  kNeuronStepOverhead,
  kNeuronForwardOverhead,
  kNeuronForwardOverlap,
  kNeuronParameterCount,
};

inline constexpr std::array<std::string_view, kNeuronParameterCount>
    kNeuronParameters = {"tensor_efficiency",
                         "vector_efficiency",
                         "scalar_op",
                         "engine_overlap",
                         "dma_efficiency",
                         "dma_overlap",
                         "activation_traffic",
                         "spill_share",
                         "kernel_overhead",
                         "step_overhead",
                         "forward_overhead",
                         "forward_overlap"};

inline std::span<const ParameterInfo> NeuronParameters() {
  return ParametersOf(DeviceKind::kNeuron);
}

// What one stretch of the graph asks of one core, counted.
struct NeuronWork {
  model::Seconds<> tensor;  // at the engine's peak, padding included
  model::Seconds<> fed;     // the same at its peak of 16 bits
  model::Seconds<> vector;  // at the engine's peak
  double function_evaluations = 0;
  model::Bytes<> parameter_bytes;
  model::Bytes<> activation_bytes;
  double operations = 0;
};

// What the engines and the DMA of one core do, and for how long: what a
// profiler shows. Busy times, hidden or not.
template <class T>
struct NeuronActivity {
  model::Seconds<T> tensor;
  model::Seconds<T> vector;
  model::Seconds<T> scalar;
  model::Seconds<T> dma;
  model::Bytes<T> traffic;  // through HBM, the spilled bytes among them
  model::Bytes<T> spill;

  NeuronActivity& operator+=(const NeuronActivity& other) {
    tensor += other.tensor;
    vector += other.vector;
    scalar += other.scalar;
    dma += other.dma;
    traffic += other.traffic;
    spill += other.spill;
    return *this;
  }
  friend NeuronActivity operator*(const NeuronActivity& a, double times) {
    NeuronActivity scaled = a;
    scaled.tensor = a.tensor * times;
    scaled.vector = a.vector * times;
    scaled.scalar = a.scalar * times;
    scaled.dma = a.dma * times;
    scaled.traffic = a.traffic * times;
    scaled.spill = a.spill * times;
    return scaled;
  }
};

// Bytes that the SBUF cannot hold over a pass: what its kernels touch, less
// the capacity; nothing while everything stays on chip.
inline model::Bytes<> NeuronBytesPastSbuf(model::Bytes<> touched,
                                          model::Bytes<> sbuf) {
  return std::max(model::Bytes<>(), touched - sbuf);
}

// The counts of one core's share of a segment, once.
inline NeuronWork NeuronWorkOf(const Device& device,
                               const model::Workload& workload,
                               const model::KernelList& kernels,
                               const model::Segment& segment) {
  const double of_core = ShareOfBusiestCore(device, workload, segment.phase);
  const auto of_chip = static_cast<double>(device.cores);
  NeuronWork work;
  for (const model::Kernel& listed : kernels.Of(segment)) {
    if (CastInProduct(workload, listed)) continue;
    const model::Kernel kernel = AsCompiled(workload, listed);
    const auto times = static_cast<double>(kernel.launches);
    const double share = times * of_core;
    if (kernel.matrix_flops > 0) {
      const double array = SystolicShare(
          kernel.gemm, device.systolic_rows, device.systolic_columns);
      const model::Flops<> padded = model::Flop(
          static_cast<double>(kernel.matrix_flops) * share * of_chip / array);
      const model::FlopsPerSecond<> peak =
          MatrixPeakOf(device, workload, kernel);
      work.tensor += padded / peak;
      work.fed +=
          padded / device.MatrixPeak(model::Precision::kBf16).value_or(peak);
    }
    work.vector += model::Flop(static_cast<double>(kernel.vector_flops +
                                                   kernel.random_draws) *
                               share * of_chip) /
                   device.VectorPeak();
    work.function_evaluations +=
        static_cast<double>(kernel.special_ops) * share;
    if (kernel.kind == model::KernelKind::kOptimizer) {
      work.parameter_bytes +=
          model::Byte(FusedOptimizerBytes(workload, kernel) * times);
    } else {
      work.parameter_bytes +=
          model::Byte(static_cast<double>(kernel.parameter_bytes) * times);
      work.activation_bytes += model::Byte(
          static_cast<double>(kernel.bytes() - kernel.parameter_bytes) * share);
    }
    // Each small product of a batched one loads its own operand into the array.
    work.operations +=
        std::max(times, static_cast<double>(kernel.gemm.batch) * share);
  }
  return work;
}

// Busy times and traffic of a stretch of work.
//
//   Q = Q_parameters + a A + s A (A_pass - S)+ / A_pass
//   tensor = F / q (1 / P + (1 / h - 1) / P_16)
//   vector = V / (P_v h_v)   scalar = n t_f   dma = Q / (B b)
//
//   h       share of the peak of 16 bits that products reach in 16
//           bits: rows are fed at one rate, so that what is lost
//           is the same time in fp32                          [1]
//   A       activation bytes of the stretch                   [B]
//   A_pass  of the whole pass forward and back; of the largest
//           block where there is a forward pass alone         [B]
//   S       SBUF of one core                                  [B]
//   a, s    HBM bytes a byte touched, and a byte past S       [1]
//   n, t_f  function evaluations, time of one                 [1], [s]
//
// Check: tests/hardware/models/neuron/neuron_model_test.cc.
template <class T>
NeuronActivity<T> NeuronActivityOf(const Device& device,
                                   const NeuronWork& work,
                                   model::Bytes<> pass_activations,
                                   std::span<const T> p) {
  const auto of_chip = static_cast<double>(device.cores);
  NeuronActivity<T> activity;
  activity.tensor = work.fed * (1.0 / p[kNeuronTensorEfficiency] - 1.0) +
                    model::Seconds<T>(T(work.tensor.base()));
  activity.vector = work.vector / p[kNeuronVectorEfficiency];
  activity.scalar =
      model::Seconds<T>(p[kNeuronScalarOp]) * work.function_evaluations;
  if (pass_activations.base() > 0) {
    const double past =
        NeuronBytesPastSbuf(pass_activations, device.on_chip_memory / of_chip) /
        pass_activations;
    activity.spill = work.activation_bytes * past * p[kNeuronSpillShare];
  }
  activity.traffic = work.parameter_bytes +
                     work.activation_bytes * p[kNeuronActivationTraffic] +
                     activity.spill;
  activity.dma = activity.traffic / (device.memory_bandwidth *
                                     (p[kNeuronDmaEfficiency] / of_chip));
  return activity;
}

// Time of three engines that hide a share of the shorter ones.
//
//   c = max + (1 - v) (sum - max)
//
//   v  share of the shorter engines' time that is hidden  [1]  0: take turns;
//      more in a graph of a forward pass alone, which keeps nothing for later
template <class T>
model::Seconds<T> NeuronEngineTime(const NeuronActivity<T>& busy, T overlap) {
  const model::Seconds<T> sum = busy.tensor + busy.vector + busy.scalar;
  const model::Seconds<T> longest =
      std::max(busy.tensor, std::max(busy.vector, busy.scalar));
  return longest + (sum - longest) * (T(1.0) - overlap);
}

// The work of a step by segment, and the activation bytes that have to be held
// together: of the whole pass, forward and back, or of one block where no
// backward pass will ask for them.
struct NeuronStepWork {
  std::vector<NeuronWork> segments;  // as kernels.segments, each once
  model::Bytes<> pass_activations;
};

inline NeuronStepWork NeuronStepWorkOf(const Device& device,
                                       const model::Workload& workload,
                                       const model::KernelList& kernels) {
  NeuronStepWork step;
  step.segments.reserve(kernels.segments.size());
  for (const model::Segment& segment : kernels.segments) {
    step.segments.push_back(NeuronWorkOf(device, workload, kernels, segment));
    const model::Bytes<> once = step.segments.back().activation_bytes;
    if (workload.work == model::Work::kForward) {
      step.pass_activations = std::max(step.pass_activations, once);
    } else {
      step.pass_activations += once * static_cast<double>(segment.repeat);
    }
  }
  return step;
}

// What one core does over a whole step: the profile of it.
template <class T>
NeuronActivity<T> NeuronStepActivity(const Device& device,
                                     const model::Workload& workload,
                                     const model::KernelList& kernels,
                                     std::span<const T> p) {
  ENSURE(p.size() == kNeuronParameterCount, "parameters of another model");
  const NeuronStepWork work = NeuronStepWorkOf(device, workload, kernels);
  NeuronActivity<T> sum;
  for (size_t i = 0; i < kernels.segments.size(); ++i) {
    const model::Segment& segment = kernels.segments[i];
    const auto times = static_cast<double>(
        segment.repeat * model::PassesInStep(workload, segment));
    sum += NeuronActivityOf<T>(
               device, work.segments[i], work.pass_activations, p) *
           times;
  }
  return sum;
}

template <class T>
StepTime<T> NeuronStep(const Device& device,
                       const model::Workload& workload,
                       const model::KernelList& kernels,
                       std::span<const T> p) {
  ENSURE(p.size() == kNeuronParameterCount, "parameters of another model");
  const NeuronStepWork work = NeuronStepWorkOf(device, workload, kernels);
  const double level =
      CompilerLevelFactor(device, workload.stack.compiler_level);
  const bool alone = workload.work == model::Work::kForward;
  const NeuronParameter overlap =
      alone ? kNeuronForwardOverlap : kNeuronEngineOverlap;
  const NeuronParameter overhead =
      alone ? kNeuronForwardOverhead : kNeuronStepOverhead;
  return SumSegments<T>(
      workload,
      kernels,
      [&](const model::Segment& segment) {
        const auto index =
            static_cast<size_t>(&segment - kernels.segments.data());
        const NeuronWork& of_segment = work.segments[index];
        const NeuronActivity<T> busy =
            NeuronActivityOf<T>(device, of_segment, work.pass_activations, p);
        PhaseTime<T> time;
        const model::Seconds<T> engines = NeuronEngineTime<T>(busy, p[overlap]);
        const model::Seconds<T> sum = busy.tensor + busy.vector + busy.scalar;
        if (sum.base() > 0) {
          time.matrix = engines * (busy.tensor / sum);
          time.vector = engines - time.matrix;
        }
        time.overhead =
            model::Seconds<T>(p[kNeuronKernelOverhead]) * of_segment.operations;
        // DMA runs ahead over the whole stretch. What is hidden is taken off
        // it, whichever is the shorter.
        const model::Seconds<T> exposed =
            model::KernelTime<T>(
                engines, busy.dma, p[kNeuronDmaOverlap], model::Seconds<T>())
                .total() -
            engines;
        if (busy.traffic.base() > 0) {
          time.spill = exposed * (busy.spill / busy.traffic);
        }
        time.memory = exposed - time.spill;
        return time * (level * static_cast<double>(segment.repeat));
      },
      model::Seconds<T>(p[overhead]));
}

// The kind's row, and its formula by the name that all kinds share.
struct NeuronKind {
  static constexpr Kind kRow{.parameters = kNeuronParameters,
                             .profiles_engines = true,
                             .gradient_checkpointing = false,
                             .compiles_graphs = true,
                             .stochastic_rounding = true,
                             .plan_memory = PlanCoresMemory};

  template <class T>
  static StepTime<T> Step(const Device& device,
                          const model::Workload& workload,
                          const model::KernelList& kernels,
                          std::span<const T> p) {
    return NeuronStep<T>(device, workload, kernels, p);
  }
};

}  // namespace trainfare::hardware::models
