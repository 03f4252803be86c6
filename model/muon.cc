#include "model/muon.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <utility>

#include "model/parallel.h"
#include "model/product_kernel.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model {
namespace {

constexpr int64_t kNarrow = 2;  // bf16, in which X is whatever the model is

// Operations that follow each other over the matrices, each launched for each
// of them: bytes are sums over the operations, an element.
struct Operations {
  KernelName name;
  int64_t count = 0;
  int64_t read = 0;
  int64_t written = 0;
  int64_t flops = 0;
};

Kernel KernelOf(const Operations& o, const MatrixSet& matrices) {
  Kernel kernel;
  kernel.kind = KernelKind::kOptimizer;
  kernel.name = o.name;
  kernel.launches = o.count * matrices.count;
  const int64_t elements = matrices.elements;
  kernel.bytes_read = o.read * elements / kernel.launches;
  kernel.bytes_written = o.written * elements / kernel.launches;
  kernel.vector_flops = o.flops * elements / kernel.launches;
  kernel.work_items = elements / matrices.count;
  kernel.parameter_bytes = kernel.bytes();
  kernel.parameter_bytes_written = kernel.bytes_written;
  return kernel;
}

// C (m, n) = A (m, k) B (k, n) and a term of its own size; X is warm in cache
// from one product to the next.
Kernel Product(const Workload& w,
               const GemmExtents& g,
               bool adds,
               int64_t launches) {
  Kernel kernel =
      ProductKernel("orthogonalise", g.m, g.n, g.k, launches, kNarrow);
  kernel.in_bf16 = MuonNarrows(w);
  if (adds) kernel.bytes_read += kNarrow * g.m * g.n;
  return kernel;
}

// FLOPs of an iteration.
double WorkOf(const MatrixShape& shape) {
  const auto m = static_cast<double>(shape.short_side);
  const auto n = static_cast<double>(shape.long_side);
  return 4.0 * m * m * n + 2.0 * m * m * m;
}

// The matrices of the rank with the most work.
std::map<MatrixShape, int64_t> LargestShare(const MuonParts& parts,
                                            int64_t ranks) {
  std::vector<std::pair<MatrixShape, int64_t>> shapes(parts.matrices.begin(),
                                                      parts.matrices.end());
  std::sort(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) {
    return WorkOf(a.first) > WorkOf(b.first);
  });
  // More ranks than matrices have none.
  const auto owners = static_cast<size_t>(std::min(ranks, parts.matrix_count));
  std::vector<std::map<MatrixShape, int64_t>> of(owners);
  using Load = std::pair<double, size_t>;  // so far, and whose
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least;
  for (size_t owner = 0; owner < owners; ++owner) least.emplace(0.0, owner);
  Load most;
  for (const auto& [shape, count] : shapes) {
    for (int64_t i = 0; i < count; ++i) {
      Load next = least.top();
      least.pop();
      ++of[next.second][shape];
      next.first += WorkOf(shape);
      least.push(next);
      most = std::max(most, next);
    }
  }
  return of[most.second];
}

}  // namespace

MuonParts MuonPartsOf(const Workload& w) {
  MuonParts parts;
  const int64_t blocks = w.architecture.blocks();
  for (const ParameterTensor& tensor : TrainableTensorsOf(w)) {
    const bool of_block = 1 <= tensor.layer && tensor.layer <= blocks;
    const int64_t rows = tensor.elements / tensor.columns;
    if (!of_block || tensor.columns == 1 || rows == 1) {
      ++parts.other_tensors;
      parts.other_elements += tensor.elements;
      parts.largest_other = std::max(parts.largest_other, tensor.elements);
      continue;
    }
    ++parts.matrices[{std::min(rows, tensor.columns),
                      std::max(rows, tensor.columns)}];
    ++parts.matrix_count;
    parts.matrix_elements += tensor.elements;
  }
  return parts;
}

MuonShare MuonShareOf(const Workload& w, const MuonParts& parts) {
  MuonShare share;
  const int64_t ranks = ShardsOf(w.parallel);
  if (parts.matrix_count == 0) return share;
  share.orthogonalised =
      ranks > 1 ? LargestShare(parts, ranks) : parts.matrices;
  for (const auto& [shape, count] : share.orthogonalised) {
    share.whole.count += count;
    share.whole.elements += count * shape.short_side * shape.long_side;
  }
  share.kept = ShardsParameters(w.parallel) && ranks > 1
                   ? MatrixSet{parts.matrix_count,
                               ShareOf(parts.matrix_elements, w.parallel)}
                   : share.whole;
  return share;
}

bool MuonNarrows(const Workload& w) {
  return w.optimizer.kind == OptimizerKind::kMuon &&
         BytesPerElement(w.precision) > kNarrow;
}

int64_t MuonExchangedBytes(const Workload& w) {
  if (w.optimizer.kind != OptimizerKind::kMuon || ShardsOf(w.parallel) == 1 ||
      !ShardsParameters(w.parallel)) {
    return 0;
  }
  return kNarrow * MuonPartsOf(w).matrix_elements;
}

int64_t MuonTemporaries(const Workload& w, const MuonParts& parts) {
  int64_t largest = 0;
  for (const auto& [shape, count] : parts.matrices) {
    largest = std::max(largest, shape.short_side * shape.long_side);
  }
  return largest * (BytesOfState(w) + 2 * kNarrow);
}

void AppendMuonKernels(const Workload& w,
                       const MuonParts& parts,
                       std::vector<Kernel>& kernels) {
  if (parts.matrix_count == 0) return;
  const MuonShare share = MuonShareOf(w, parts);
  const int64_t wide = BytesOfState(w);
  // m lerp g (2 read, 1 written); u = g lerp m (2, 1); X = u in bf16.
  kernels.push_back(KernelOf({.name = "momentum",
                              .count = 3,
                              .read = 5 * wide,
                              .written = 2 * wide + kNarrow,
                              .flops = 6},
                             share.kept));
  // |X| (1 read); X /= |X| (1, 1).
  kernels.push_back(KernelOf({.name = "momentum",
                              .count = 2,
                              .read = 2 * kNarrow,
                              .written = kNarrow,
                              .flops = 3},
                             share.whole));
  for (const auto& [shape, count] : share.orthogonalised) {
    const int64_t launches = kNewtonSchulzIterations * count;
    const int64_t m = shape.short_side;
    const int64_t n = shape.long_side;
    kernels.push_back(Product(w, {1, m, m, n}, false, launches));
    kernels.push_back(Product(w, {1, m, m, m}, true, launches));
    kernels.push_back(Product(w, {1, m, n, m}, true, launches));
  }
  // p *= 1 - lr wd (1 read, 1 written); p -= lr X (1 and X, 1).
  kernels.push_back(KernelOf({.name = "optimizer",
                              .count = 2,
                              .read = 2 * wide + kNarrow,
                              .written = 2 * wide,
                              .flops = 3},
                             share.kept));
}

}  // namespace trainfare::model
