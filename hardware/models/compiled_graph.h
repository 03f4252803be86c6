#pragma once

// What a graph compiler for a chip with matrix arrays makes of a kernel list,
// shared by the models of such chips.

#include <cstdint>

#include "hardware/catalog/device.h"
#include "model/kernel_list.h"
#include "model/kernels.h"
#include "model/optimizer_kernels.h"
#include "model/product_kernel.h"
#include "model/rounding.h"
#include "model/stack_rules.h"
#include "model/workload.h"

namespace trainfare::hardware::models {

// Share of a systolic array that a product fills: the array holds k rows and n
// columns of the weights at a time while m streams through, so k and n are
// padded to its sides.
//
//   q = k / (R ceil(k / R)) * n / (C ceil(n / C))
//
//   R, C  rows and columns of the array  [1]
//
// Source: Jouppi et al., "In-datacenter performance analysis of a tensor
// processing unit", ISCA 2017. Check:
// tests/hardware/models/systolic_model_test.cc.
inline double SystolicShare(const model::GemmExtents& g,
                            int64_t rows,
                            int64_t columns) {
  if (rows <= 0 || columns <= 0) return 1.0;
  const auto padded = [](int64_t value, int64_t side) {
    return static_cast<double>(model::CeilToMultiple(value, side));
  };
  return static_cast<double>(g.k) / padded(g.k, rows) *
         (static_cast<double>(g.n) / padded(g.n, columns));
}

// Bytes that one launch of an optimizer kernel moves when the compiler has
// fused the whole update: each tensor of parameters, gradients and state once,
// as wide as the update has them, however the framework writes it. State of few
// bits is read and written in these.
inline double FusedOptimizerBytes(const model::Workload& workload,
                                  const model::Kernel& kernel) {
  const model::OptimizerOperations operations = model::OperationsOf(workload);
  const int64_t width = model::BytesOfState(workload);
  const int64_t numbers = operations.state_tensors * kernel.work_items;
  const int64_t saved =
      numbers * width - model::StateBytesOf(workload, numbers);
  return static_cast<double>(
      kernel.work_items * width *
          (operations.fused_tensors_read + operations.fused_tensors_written) -
      2 * saved);
}

// The part of a kernel's work that the busiest core of a chip has: whole
// sequences of a pass; every core updates all parameters.
inline double ShareOfBusiestCore(const Device& device,
                                 const model::Workload& workload,
                                 model::Phase phase) {
  if (phase == model::Phase::kOptimizer) return 1.0;
  return static_cast<double>(model::CeilDivide(workload.batch, device.cores)) /
         static_cast<double>(workload.batch);
}

// Whether the workload's whole graph is compiled: a chip's software also runs
// the operations of a stack one by one.
inline bool CompilesAll(const model::Workload& workload) {
  return model::RulesOf(workload).block == model::BlockKernels::kCompiled;
}

// A kernel as the chip runs it: a compiler of the whole graph adds gradients to
// those that stand where their product is written. Those of a stack that adds so
// everywhere are listed so.
inline model::Kernel AsCompiled(const model::Workload& workload,
                                const model::Kernel& kernel) {
  const bool listed_apart =
      CompilesAll(workload) && !model::RulesOf(workload).adds_in_products;
  return listed_apart && kernel.name == "gradient add"
             ? model::AddedByProduct(kernel)
             : kernel;
}

// Whether a kernel is only written down: where a whole graph is compiled for
// such a chip, a weight changes its width as a product loads it. Its model
// leaves such a kernel out.
inline bool CastInProduct(const model::Workload& workload,
                          const model::Kernel& kernel) {
  return CompilesAll(workload) && (kernel.name == "cast weights" ||
                                   kernel.name == "cast weight gradient");
}

}  // namespace trainfare::hardware::models
