#include "model/gradient_compression.h"

#include <doctest/doctest.h>

#include "model/architecture.h"
#include "model/kernels.h"
#include "model/overlap.h"
#include "model/presets.h"
#include "model/trainable.h"

namespace trainfare::model {
namespace {

Workload BertToSend() {
  Workload w;
  w.architecture = FindArchitecture("bert-base-uncased");
  return w;
}

}  // namespace

TEST_CASE("half sends two bytes an element, however wide gradients are") {
  const auto tensors = TrainableTensorsOf(BertToSend());
  const GradientCompression half{CompressionKind::kTo16Bits, 0};
  const int64_t elements = 109'483'778;
  CHECK(SentOf({}, tensors, 4).bytes == 4 * elements);
  CHECK(SentOf(half, tensors, 4).bytes == 2 * elements);
  CHECK(SentOf(half, tensors, 2).bytes == 2 * elements);
  CHECK(SentOf(half, tensors, 4).transfers == 1);
}

// docs/models/counts.md: rank 4 of one block, in elements of 4 bytes. Four maps
// of 768 x 768 become 4 (768 + 768) = 6144 each, two of 768 x 3072 4 (3840) =
// 15360 each; biases and norms, 9984 elements, go whole.
TEST_CASE("power_sgd sends two thin factors a matrix and vectors whole") {
  std::vector<ParameterTensor> block;
  for (const ParameterTensor& tensor : TrainableTensorsOf(BertToSend())) {
    if (tensor.layer == 1) block.push_back(tensor);
  }
  const SentGradients sent = SentOf({CompressionKind::kPowerSgd, 4}, block, 4);
  CHECK(sent.bytes == 4 * (4 * 6144 + 2 * 15360 + 9984));
  CHECK(sent.transfers == 3);
  // Where a rank is too high to save a half, everything goes whole.
  const SentGradients whole =
      SentOf({CompressionKind::kPowerSgd, 400}, block, 4);
  CHECK(whole.bytes == 4 * 7'087'872);
  CHECK(whole.transfers == 1);
}

TEST_CASE("half adds a cast before and one after every bucket") {
  Workload w = BertToSend();
  w.compression = {CompressionKind::kTo16Bits, 0};
  std::vector<Kernel> kernels;
  AppendCompressionKernels(w, kernels);
  REQUIRE(kernels.size() == 2);
  const auto buckets =
      static_cast<int64_t>(BucketGradients(TrainableTensorsOf(w), 4).size());
  CHECK(kernels[0].launches == buckets);
  const int64_t elements = kernels[0].work_items * buckets;
  CHECK(109'483'778 - elements < buckets);
  CHECK(kernels[0].bytes_read == 4 * kernels[0].work_items);
  CHECK(kernels[0].bytes_written == 2 * kernels[0].work_items);
  // Of narrow weights they come in 16 bits.
  w.precision = Precision::kBf16;
  w.stack.narrow_weights = true;
  kernels.clear();
  AppendCompressionKernels(w, kernels);
  CHECK(kernels[0].bytes_read == 2 * kernels[0].work_items);
  CHECK(kernels[1].bytes_written == 2 * kernels[1].work_items);
}

// Three products of 2 n m r FLOPs a matrix.
TEST_CASE("power_sgd adds three thin products a matrix") {
  Workload w = BertToSend();
  w.trainable.frozen_layers = 11;  // one block, the pooler, the classifier
  w.compression = {CompressionKind::kPowerSgd, 4};
  std::vector<Kernel> kernels;
  AppendCompressionKernels(w, kernels);
  int64_t flops = 0;
  for (const Kernel& kernel : kernels) {
    flops += kernel.launches * kernel.matrix_flops;
  }
  // The pooler is one matrix more of 768 x 768; the classifier does not halve.
  CHECK(flops == 3 * 2 * 4 * (5 * 768 * 768 + 2 * 768 * 3072));
}

TEST_CASE("compression runs once a step, however many micro-batches") {
  Workload w = BertToSend();
  const int64_t plain = ExpandKernels(w).Counts(Phase::kOptimizer).launches;
  w.compression = {CompressionKind::kTo16Bits, 0};
  w.accumulation = 4;
  const KernelList list = ExpandKernels(w);
  const auto buckets =
      static_cast<int64_t>(BucketGradients(TrainableTensorsOf(w), 4).size());
  CHECK(list.Counts(Phase::kOptimizer).launches == plain + 2 * buckets);
}

}  // namespace trainfare::model
