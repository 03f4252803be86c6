#include "model/gradient_compression.h"

#include <algorithm>
#include <map>
#include <utility>

#include "model/element_widths.h"
#include "model/error.h"
#include "model/overlap.h"
#include "model/product_kernel.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model {
namespace {

// Sent as it is unless the factors are smaller by this: min_compression_rate of
// PyTorch's PowerSGDState.
constexpr int64_t kLeastSaving = 2;

int64_t FactorElements(const ParameterTensor& tensor, int64_t rank) {
  const int64_t rows = tensor.elements / tensor.columns;
  return rank * (rows + tensor.columns);
}

bool IsFactored(const ParameterTensor& tensor, int64_t rank) {
  return tensor.columns > 1 &&
         tensor.elements >= kLeastSaving * FactorElements(tensor, rank);
}

Kernel Pass(KernelName name,
            int64_t elements,
            int64_t read_bytes,
            int64_t written_bytes,
            int64_t flops,
            int64_t launches) {
  Kernel kernel;
  kernel.name = name;
  kernel.kind = KernelKind::kElementwise;
  kernel.launches = launches;
  kernel.work_items = elements / launches;
  kernel.vector_flops = flops * kernel.work_items;
  kernel.bytes_read = read_bytes * kernel.work_items;
  kernel.bytes_written = written_bytes * kernel.work_items;
  kernel.parameter_bytes = kernel.bytes();
  kernel.parameter_bytes_written = kernel.bytes_written;
  return kernel;
}

// (m, k) by (k, n); the large operand is a gradient, touched once a step.
Kernel Product(
    KernelName name, int64_t m, int64_t n, int64_t k, int64_t launches) {
  Kernel kernel = ProductKernel(name, m, n, k, launches, kSingle);
  kernel.parameter_bytes = kernel.bytes();
  kernel.parameter_bytes_written = kernel.bytes_written;
  return kernel;
}

void AppendPowerSgd(const Workload& w, std::vector<Kernel>& kernels) {
  const int64_t rank = w.compression.rank;
  // Matrices of one shape are launched alike.
  std::map<std::pair<int64_t, int64_t>, int64_t> shapes;
  int64_t matrices = 0;
  int64_t factored = 0;  // elements of these matrices
  for (const ParameterTensor& tensor : TrainableTensorsOf(w)) {
    if (!IsFactored(tensor, rank)) continue;
    ++shapes[{tensor.elements / tensor.columns, tensor.columns}];
    ++matrices;
    factored += tensor.elements;
  }
  if (matrices == 0) return;
  // The error of the last step comes on top, and this one's is kept.
  kernels.push_back(Pass(
      "add compression error", factored, 2 * kSingle, kSingle, 1, matrices));
  for (const auto& [shape, count] : shapes) {
    const auto [rows, columns] = shape;
    kernels.push_back(
        Product("gradient to left factor", rows, rank, columns, count));
    Kernel orthogonal = Pass("orthogonalise left factor",
                             rows * rank,
                             kSingle,
                             kSingle,
                             2 * rank,
                             1);
    orthogonal.kind = KernelKind::kReduction;
    orthogonal.launches = count;
    kernels.push_back(orthogonal);
    kernels.push_back(
        Product("gradient to right factor", columns, rank, rows, count));
    kernels.push_back(
        Product("gradient from factors", rows, columns, rank, count));
  }
  kernels.push_back(Pass(
      "keep compression error", factored, 2 * kSingle, kSingle, 1, matrices));
}

}  // namespace

SentGradients SentOf(const GradientCompression& compression,
                     std::span<const ParameterTensor> bucket,
                     int64_t width) {
  SentGradients sent;
  int64_t plain = 0;
  int64_t factors = 0;
  for (const ParameterTensor& tensor : bucket) {
    if (compression.kind == CompressionKind::kPowerSgd &&
        IsFactored(tensor, compression.rank)) {
      factors += FactorElements(tensor, compression.rank);
    } else {
      plain += tensor.elements;
    }
  }
  switch (compression.kind) {
    case CompressionKind::kNone:
      return {plain * width, 1};
    case CompressionKind::kTo16Bits:
      return {plain * std::min(width, kHalf), 1};
    case CompressionKind::kPowerSgd:
      // P and Q one after the other; what is sent whole goes first.
      sent.bytes = plain * width + factors * kSingle;
      sent.transfers = (plain > 0 ? 1 : 0) + (factors > 0 ? 2 : 0);
      return sent;
  }
  ENSURE(false, "a compression without a size");
}

void AppendCompressionKernels(const Workload& w, std::vector<Kernel>& kernels) {
  switch (w.compression.kind) {
    case CompressionKind::kNone:
      return;
    case CompressionKind::kTo16Bits: {
      // Sums of shards go in 16 bits as they are made; a hook of plain ranks
      // takes what it is given (PyTorch's default_hooks.py).
      if (w.parallel.shard != Shard::kNone && NarrowWeights(w)) return;
      const int64_t width = ParameterWidth(w);
      const std::vector<ParameterTensor> tensors = TrainableTensorsOf(w);
      const auto buckets =
          static_cast<int64_t>(BucketGradients(tensors, width).size());
      int64_t elements = 0;
      for (const ParameterTensor& tensor : tensors) elements += tensor.elements;
      kernels.push_back(
          Pass("compress gradients", elements, width, kHalf, 1, buckets));
      kernels.push_back(
          Pass("decompress gradients", elements, kHalf, width, 1, buckets));
      return;
    }
    case CompressionKind::kPowerSgd:
      AppendPowerSgd(w, kernels);
      return;
  }
  ENSURE(false, "a compression without kernels");
}

}  // namespace trainfare::model
