#include "model/muon.h"

#include <algorithm>

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

Kernel KernelOf(const Operations& o, const MuonParts& parts) {
  Kernel kernel;
  kernel.kind = KernelKind::kOptimizer;
  kernel.name = o.name;
  kernel.launches = o.count * parts.matrix_count;
  const int64_t elements = parts.matrix_elements;
  kernel.bytes_read = o.read * elements / kernel.launches;
  kernel.bytes_written = o.written * elements / kernel.launches;
  kernel.vector_flops = o.flops * elements / kernel.launches;
  kernel.work_items = elements / parts.matrix_count;
  kernel.parameter_bytes = kernel.bytes();
  kernel.parameter_bytes_written = kernel.bytes_written;
  return kernel;
}

// C (m, n) = A (m, k) B (k, n) and a term of its own size; X is warm in cache
// from one product to the next.
Kernel Product(int64_t m, int64_t n, int64_t k, bool adds, int64_t launches) {
  Kernel kernel = ProductKernel("orthogonalise", m, n, k, launches, kNarrow);
  if (adds) kernel.bytes_read += kNarrow * m * n;
  return kernel;
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
      continue;
    }
    ++parts.matrices[{std::min(rows, tensor.columns),
                      std::max(rows, tensor.columns)}];
    ++parts.matrix_count;
    parts.matrix_elements += tensor.elements;
  }
  return parts;
}

void AppendMuonKernels(const Workload& w,
                       const MuonParts& parts,
                       std::vector<Kernel>& kernels) {
  if (parts.matrix_count == 0) return;
  const int64_t wide = BytesOfState(w);
  // m lerp g (2 read, 1 written); u = g lerp m (2, 1); X = u in bf16; |X| (1
  // read); X /= |X| (1, 1).
  kernels.push_back(KernelOf({.name = "momentum",
                              .count = 5,
                              .read = 5 * wide + 2 * kNarrow,
                              .written = 2 * wide + 2 * kNarrow,
                              .flops = 9},
                             parts));
  for (const auto& [shape, count] : parts.matrices) {
    const int64_t launches = kNewtonSchulzIterations * count;
    const int64_t m = shape.short_side;
    const int64_t n = shape.long_side;
    kernels.push_back(Product(m, m, n, false, launches));
    kernels.push_back(Product(m, m, m, true, launches));
    kernels.push_back(Product(m, n, m, true, launches));
  }
  // p *= 1 - lr wd (1 read, 1 written); p -= lr X (1 and X, 1).
  kernels.push_back(KernelOf({.name = "optimizer",
                              .count = 2,
                              .read = 2 * wide + kNarrow,
                              .written = 2 * wide,
                              .flops = 3},
                             parts));
}

}  // namespace trainfare::model
