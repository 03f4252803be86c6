#pragma once

// What a device is asked to do, one launch after another.

#include <cstdint>
#include <span>
#include <vector>

#include "model/kernel_name.h"
#include "model/words.h"

namespace trainfare::model {

enum class KernelKind {
  kGemm,         // matrix product against a weight
  kBatchedGemm,  // many small products: attention scores and context
  kChunkGemm,    // the same over chunks of tokens, on chip, in Triton
  kAttention,    // both in one kernel, scores on chip (flash)
  kElementwise,
  kReduction,  // LayerNorm, softmax, bias gradients, losses
  kEmbedding,  // gathers and scatters of table rows
  kOptimizer,
  kCopy,  // transposes, casts, fills
};
template <>
inline constexpr auto kWords<KernelKind> =
    Words<KernelKind>("kind of kernel",
                      {{KernelKind::kGemm, "gemm"},
                       {KernelKind::kBatchedGemm, "batched gemm"},
                       {KernelKind::kChunkGemm, "chunk gemm"},
                       {KernelKind::kAttention, "attention"},
                       {KernelKind::kElementwise, "elementwise"},
                       {KernelKind::kReduction, "reduction"},
                       {KernelKind::kEmbedding, "embedding"},
                       {KernelKind::kOptimizer, "optimizer"},
                       {KernelKind::kCopy, "copy"}});

enum class Phase { kForward, kBackward, kOptimizer };
template <>
inline constexpr auto kWords<Phase> =
    Words<Phase>("phase",
                 {{Phase::kForward, "forward"},
                  {Phase::kBackward, "backward"},
                  {Phase::kOptimizer, "optimizer"}});

// How often a reduction goes over a row of what it reads. A result for each
// element waits for sums over the row.
enum class RowReads {
  kOnce,   // sums, and what is no reduction
  kNorm,   // twice: moments, then the result; many short rows side by side
  kTwice,  // softmax's gradient, and such
  kThrice  // softmax: the largest, the sum, the result
};
template <>
inline constexpr auto kWords<RowReads> =
    Words<RowReads>("reads of a row",
                    {{RowReads::kOnce, "once"},
                     {RowReads::kNorm, "norm"},
                     {RowReads::kTwice, "twice"},
                     {RowReads::kThrice, "thrice"}});

// C (m, n) = A (m, k) B (k, n), `batch` times.
struct GemmExtents {
  int64_t batch = 0;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;

  friend bool operator==(const GemmExtents&, const GemmExtents&) = default;
};

// One launch. A multiply-add is 2 FLOPs.
struct Kernel {
  KernelName name;
  KernelKind kind = KernelKind::kElementwise;
  int64_t matrix_flops = 0;  // on the matrix engine
  int64_t vector_flops = 0;  // arithmetic outside it
  int64_t special_ops = 0;   // exp, erf, tanh, square roots
  int64_t random_draws = 0;  // of dropout
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
  // The bytes among these of parameters, their gradients and optimizer state:
  // touched once a pass, so never found in a cache smaller than the model.
  int64_t parameter_bytes = 0;
  int64_t parameter_bytes_written = 0;  // of these, gradients and updates
  GemmExtents gemm;                     // of the gemm kinds
  bool narrow_operands = false;  // of a product, in the bits of fp8 or fp4
  bool in_bf16 = false;          // the same in bf16, of a step in fp32 or tf32
  // Other work of one block may run beside the products of another, where
  // instructions for products do not make a warp wait (flash attention).
  bool blocks_overlap = false;
  int64_t work_items = 0;  // independent outputs: elements, or rows reduced
  RowReads row_reads = RowReads::kOnce;
  int64_t launches = 1;  // alike and in a row (a for-loop over tensors)

  int64_t bytes() const { return bytes_read + bytes_written; }

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

enum class SegmentRole {
  kEmbeddings,
  kLayer,
  kDecoderLayer,
  kHead,
  kAccumulation,  // of gradients, behind the pass of a micro-batch
  kOptimizer,
  kCompression,  // of gradients, before and after they are sent
};

// Kernels [begin, end) of the list, run `repeat` times one after another.
struct Segment {
  Phase phase = Phase::kForward;
  SegmentRole role = SegmentRole::kLayer;
  int64_t repeat = 1;
  int64_t begin = 0;
  int64_t end = 0;
};

// Sums over one phase, repeats and launches included.
struct PhaseCounts {
  int64_t matrix_flops = 0;
  int64_t vector_flops = 0;
  int64_t special_ops = 0;
  int64_t random_draws = 0;
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
  int64_t launches = 0;
};

struct KernelList {
  std::vector<Kernel> kernels;
  std::vector<Segment> segments;  // in the order in which they run

  // A segment's kernels, each once.
  std::span<const Kernel> Of(const Segment& segment) const;
  PhaseCounts Counts(Phase phase) const;
};

}  // namespace trainfare::model
