#pragma once

// The list of kernels that the parts of a model append to, and what they ask of
// the workload. Each part is a file of functions over a Pass, forward and
// backward side by side; what no other part needs is local to it:
//
//   passes       the whole model: embeddings, blocks, head
//   blocks       one block: attention, feed_forward; which run again, and what
//                of them, kept_operations
//   attention    projections and all around attention_scores, the core, and
//                positions; attention_shape has the extents
//   state_space  projections, convolution, scan and gated norm of Mamba-2
//   delta_rule   the same of Gated DeltaNet
//   convolution  projections and a short convolution alone; gated_mixers of
//                all three
//   feed_forward dense; else experts, among which expert_rows divides tokens;
//                activation_functions of both
//   head         above the blocks; its loss
//   norms        with dropout and residuals
//   products     by weights, with the casts, adapters and, of experts,
//                grouped_products behind them; matrices says which train

#include <cstddef>
#include <cstdint>

#include "model/element_widths.h"
#include "model/kernel_list.h"
#include "model/rounding.h"
#include "model/stack_rules.h"
#include "model/workload.h"

namespace trainfare::model::internal {

// Arithmetic an element, from the textbook form of each operation; a
// transcendental is counted apart as a special operation.
inline constexpr int64_t kLayerNormForwardFlops = 8;  // mean, variance, affine
inline constexpr int64_t kLayerNormBackwardFlops =
    14;  // two sums, two products
inline constexpr int64_t kSoftmaxForwardFlops =
    4;  // max, subtract, sum, divide
inline constexpr int64_t kSoftmaxBackwardFlops = 4;  // dot, subtract, multiply
inline constexpr int64_t kGeluForwardFlops = 4;  // x (1 + erf(x / sqrt 2)) / 2
inline constexpr int64_t kGeluBackwardFlops = 8;
inline constexpr int64_t kRmsNormForwardFlops = 4;   // square, sum, two scales
inline constexpr int64_t kRmsNormBackwardFlops = 8;  // one sum, two products
inline constexpr int64_t kRotaryFlops = 3;   // x cos + rotate(x) sin, a pair: 6
inline constexpr int64_t kDropoutFlops = 2;  // compare, scale

// The number of partial sums over rows in the trainer's fused kernels
// (kFusedChunks there).
inline constexpr int64_t kPartialSums = 32;

// Appends kernels in the order in which a stack launches them.
struct Pass {
  explicit Pass(const Workload& of);

  // What a model's parts follow.
  const Workload& workload;
  const Architecture& architecture;
  const StackRules& rules;
  const ExpertKernels experts;
  const int64_t element;  // bytes of a matrix-product operand
  const int64_t wide;     // bytes of a LayerNorm or softmax result
  const bool autocast;
  const bool casts_weights;
  const bool dropout;
  // Of weights that several blocks share none comes after this one: their
  // gradients are whole.
  bool last_use = true;
  // The products of the block that comes next have operands of 8 or 4 bits.
  bool narrows_operands;
  KernelList list;

  bool EagerOutside() const { return rules.eager_outside; }
  bool ByOperation() const { return rules.block == BlockKernels::kByOperation; }
  bool FusedPasses() const { return rules.block == BlockKernels::kFusedPasses; }
  bool HandFused() const { return rules.block == BlockKernels::kHandFused; }
  bool Compiled() const { return rules.block == BlockKernels::kCompiled; }
  int64_t DropoutDraws() const { return dropout ? 1 : 0; }
  int64_t DropoutFlops() const { return dropout ? kDropoutFlops : 0; }
  int64_t DropoutMask() const { return dropout ? kMaskBytes : 0; }

  // A segment, of the kernels that are listed between.
  void Open(Phase phase, SegmentRole role, int64_t repeat);
  void Close();

  // One kernel. Bytes, FLOPs, special operations and random draws of
  // elementwise kernels, copies and reductions are those of an element.
  Kernel& Push(KernelName name, KernelKind kind, int64_t work_items);
  void Gemm(
      KernelName name, int64_t m, int64_t n, int64_t k, int64_t batch = 1);
  void Elementwise(KernelName name,
                   int64_t elements,
                   int64_t read_bytes,
                   int64_t written_bytes,
                   int64_t flops,
                   int64_t special = 0,
                   int64_t random = 0);
  void Copy(KernelName name,
            int64_t elements,
            int64_t read_bytes,
            int64_t written_bytes);
  void Reduction(KernelName name,
                 int64_t rows,
                 int64_t elements,
                 int64_t read_bytes,
                 int64_t written_bytes,
                 int64_t flops,
                 int64_t special = 0,
                 int64_t random = 0);
  void AddPartialSums(int64_t sums);

  // Rows of so many tokens between products, where ranks divide these.
  int64_t OfTokens(int64_t tokens) const {
    return workload.part.OfTokens(tokens);
  }

  // The kernel just listed; how often it, a reduction, goes over a row.
  Kernel& last() { return list.kernels.back(); }
  void ReadRows(RowReads reads) { last().row_reads = reads; }
  // The number of the kernel that comes next.
  size_t next() const { return list.kernels.size(); }
  void RepeatSince(size_t first, int64_t times);
};

}  // namespace trainfare::model::internal
