#pragma once

// Time of a step on a dataflow chip (RDU, IPU, WSE, LPU): the model is laid out
// over the chip as a pipeline, samples flow through it.
//
//   t_step = t_fill + samples / rate
//
// Weights are on the chip, or stream through it layer by layer while the
// samples wait on chip; the stream is then the memory term of the equation that
// every device shares (model/kernel_time.h):
//
//   t = c + m - w min(c, m) + e        c = F / (P h q)     m = W / (B b)
//
//   F, W  FLOPs of the products; bytes of weights and their gradients that
//         stream                                                [FLOP], [B]
//   P, h  peak, share of it that the slowest stage of the pipeline reaches
//   q     share of a matrix unit of fixed size that products fill (1 elsewhere)
//   B, b  bandwidth of the stream, share of it reached
//   w     share of the shorter hidden under the longer
//   e     fill: every stage once, before the first result leaves
//
// Not modelled: the placement itself (how many chips' parts a stage gets), the
// optimizer's update where the weights live, elementwise stages (they are other
// stages of the same pipeline, taken to be no slower). docs/models/dataflow.md
// works a layer by hand; check: tests/hardware/models/dataflow_model_test.cc.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "hardware/catalog/device.h"
#include "hardware/models/compiled_graph.h"
#include "hardware/models/kind.h"
#include "hardware/models/step_time.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/kernel_time.h"
#include "model/kernels.h"

namespace trainfare::hardware::models {

// Its free parameters. What is believed of each: hardware/kinds/dataflow.yaml.
enum DataflowParameter : std::size_t {
  kDataflowRateEfficiency,
  kDataflowStreamEfficiency,
  kDataflowOverlap,
  kDataflowStageLatency,
  kDataflowStepOverhead,
  kDataflowParameterCount,
};

inline constexpr std::array<std::string_view, kDataflowParameterCount>
    kDataflowParameters = {"rate_efficiency",
                           "stream_efficiency",
                           "overlap",
                           "stage_latency",
                           "step_overhead"};

// What weights stream at, from memory outside the chip or beside it; nullopt:
// they stay on it, as on chips for inference.
inline std::optional<model::BytesPerSecond<>> WeightStream(
    const Device& device) {
  if (device.inference_only) return std::nullopt;
  if (device.weight_bandwidth) return device.weight_bandwidth;
  if (device.memory_capacity > device.on_chip_memory) {
    return device.memory_bandwidth;
  }
  return std::nullopt;
}

inline model::Bytes<> DataflowWeightBytes(const model::Workload& workload) {
  return model::Byte(
      static_cast<double>(model::TotalParameters(workload.architecture) *
                          model::BytesPerElement(workload.precision)));
}

template <class T>
StepTime<T> DataflowStep(const Device& device,
                         const model::Workload& workload,
                         const model::KernelList& kernels,
                         std::span<const T> p) {
  ENSURE(p.size() == kDataflowParameterCount, "parameters of another model");
  // Training renews the weights every step; a forward pass keeps those that
  // the chip has room for.
  const auto stream_rate = WeightStream(device);
  double streamed = stream_rate ? 1.0 : 0.0;
  if (stream_rate && workload.work == model::Work::kForward) {
    streamed = std::max(
        0.0, 1.0 - device.on_chip_memory / DataflowWeightBytes(workload));
  }
  return SumSegments<T>(
      workload,
      kernels,
      [&](const model::Segment& segment) {
        PhaseTime<T> time;
        if (segment.phase == model::Phase::kOptimizer) return time;
        model::Seconds<> at_peak;
        double weight_bytes = 0;
        double stages = 0;
        for (const model::Kernel& listed : kernels.Of(segment)) {
          if (CastInProduct(workload, listed)) continue;
          const model::Kernel kernel = AsCompiled(workload, listed);
          const auto times = static_cast<double>(kernel.launches);
          if (kernel.matrix_flops > 0) {
            const double filled = SystolicShare(
                kernel.gemm, device.systolic_rows, device.systolic_columns);
            at_peak += model::Flop(static_cast<double>(kernel.matrix_flops) *
                                   times / filled) /
                       MatrixPeakOf(device, workload, kernel);
          }
          weight_bytes += static_cast<double>(kernel.parameter_bytes) * times;
          stages += times;
        }
        model::Seconds<T> stream;
        if (streamed > 0) {
          stream = model::Byte(weight_bytes * streamed) /
                   (*stream_rate * p[kDataflowStreamEfficiency]);
        }
        const model::ExposedTime<T> exposed = model::KernelTime<T>(
            at_peak / p[kDataflowRateEfficiency],
            stream,
            p[kDataflowOverlap],
            model::Seconds<T>(p[kDataflowStageLatency]) * stages);
        time.matrix = exposed.compute;
        time.memory = exposed.memory;
        time.overhead = exposed.fixed;
        return time * static_cast<double>(segment.repeat);
      },
      model::Seconds<T>(p[kDataflowStepOverhead]));
}

// Throws InputError for a model larger than a chip that nothing feeds.
inline void RequireWeightsHeld(const Device& device,
                               const model::Workload& workload) {
  const model::Bytes<> weights = DataflowWeightBytes(workload);
  if (WeightStream(device) || weights <= device.memory_capacity) return;
  throw model::InputError(fmt::format(
      "model: the weights of {} take {:.0f} MB, {} holds {:.0f} MB on chip "
      "and nothing streams them; choose a smaller model",
      workload.architecture.name.empty() ? "the model"
                                         : workload.architecture.name,
      model::ToBytes(weights) * 1e-6,
      device.name,
      model::ToBytes(device.memory_capacity) * 1e-6));
}

// The kind's row, and its formula by the name that all kinds share.
struct DataflowKind {
  static constexpr Kind kRow{.parameters = kDataflowParameters,
                             .compiles_graphs = true,
                             .plan_memory = PlanPipelineMemory,
                             .require_supported = RequireWeightsHeld};

  template <class T>
  static StepTime<T> Step(const Device& device,
                          const model::Workload& workload,
                          const model::KernelList& kernels,
                          std::span<const T> p) {
    return DataflowStep<T>(device, workload, kernels, p);
  }
};

}  // namespace trainfare::hardware::models
