// A stack that keeps weights narrow, with fp32 masters in the optimizer.

#include <doctest/doctest.h>

#include <cstdlib>
#include <string_view>

#include "model/kernels.h"
#include "model/memory.h"
#include "model/presets.h"
#include "model/stack_rules.h"

namespace trainfare::model {
namespace {

Workload BertBaseInFp16() {
  Workload w;
  w.architecture = FindArchitecture("bert-base-uncased");
  w.batch = 4;
  w.sequence_length = 64;
  w.precision = Precision::kFp16;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  return w;
}

int64_t CastsIn(const KernelList& list) {
  int64_t casts = 0;
  for (const Kernel& kernel : list.kernels) {
    if (kernel.name.text().starts_with("cast")) ++casts;
  }
  return casts;
}

}  // namespace

// Autocast: 28 P in the fused AdamW update
// (tests/model/optimizer_kernels_test.cc). With masters there come 2 + 4 to
// unscale the gradients, 4 + 2 to write parameters.
TEST_CASE("masters add two passes over the parameters") {
  Workload w = BertBaseInFp16();
  w.precision = Precision::kBf16;  // fp16 also takes off the loss scale
  const KernelList autocast = ExpandKernels(w);
  w.stack.narrow_weights = true;
  const KernelList masters = ExpandKernels(w);
  const auto bytes = [](const KernelList& list) {
    const PhaseCounts counts = list.Counts(Phase::kOptimizer);
    return counts.bytes_read + counts.bytes_written;
  };
  const int64_t parameters = TotalParameters(w.architecture);
  const int64_t added = bytes(masters) - bytes(autocast);
  // Each launch drops less than one byte of each of its two sums.
  const int64_t launches = masters.Counts(Phase::kOptimizer).launches;
  CHECK(added <= 12 * parameters);
  CHECK(added > 12 * parameters - 2 * launches);
  CHECK(autocast.Counts(Phase::kForward).matrix_flops ==
        masters.Counts(Phase::kForward).matrix_flops);

  // 4 + 4 to take the loss scale off.
  w.precision = Precision::kFp16;
  w.stack.narrow_weights = false;
  const int64_t scaled = bytes(ExpandKernels(w)) - bytes(autocast);
  CHECK(scaled <= 8 * parameters);
  CHECK(scaled > 8 * parameters - 2 * launches);
}

// docs/models/counts.md, "Bytes". By hand, 109,483,778 parameters in 201
// tensors: 1,532,772,892 bytes each way in one pass.
TEST_CASE("masters in the update") {
  Workload w = BertBaseInFp16();
  w.stack.narrow_weights = true;
  w.optimizer.masters = Masters::kInUpdate;
  REQUIRE(TotalParameters(w.architecture) == 109'483'778);
  REQUIRE(ParameterTensorCount(w.architecture) == 201);
  const auto counts = [&] {
    return ExpandKernels(w).Counts(Phase::kOptimizer);
  };
  // 2 + 3 x 4 read, 3 x 4 + 2 written.
  CHECK(counts().launches == 1);
  CHECK(counts().bytes_read == 1'532'772'892);
  CHECK(counts().bytes_written == 1'532'772'892);
  // 2 + 5 x 4 read, 5 x 4 + 2 written.
  w.optimizer.kind = OptimizerKind::kAdan;
  CHECK(counts().launches == 1);
  CHECK(counts().bytes_read == 2'408'643'116);
  CHECK(counts().bytes_written == 2'408'643'116);
  // A cast before and behind the eight operations of each tensor: 92 bytes.
  w.optimizer.kind = OptimizerKind::kAdamW;
  w.optimizer.implementation = OptimizerImplementation::kForLoop;
  const PhaseCounts loop = counts();
  CHECK(loop.launches == 2010);
  CHECK(loop.bytes_read + loop.bytes_written <= 92LL * 109'483'778);
  CHECK(loop.bytes_read + loop.bytes_written >
        92LL * 109'483'778 - 2 * loop.launches);
  // The same over lists of 36 tensors, as where masters are apart.
  w.optimizer.implementation = OptimizerImplementation::kMultiTensor;
  CHECK(counts().launches == 60);
  const PhaseCounts lists = counts();
  w.optimizer.masters = Masters::kApart;
  CHECK(counts().launches == 60);
  CHECK(counts().bytes_read == lists.bytes_read);
  CHECK(counts().bytes_written == lists.bytes_written);
}

// 16-bit weights that are updated as they are: 4 x 2 read, 3 x 2 written, and
// nothing to cast; 2 + 2 + 2 x 2 bytes a parameter are held.
TEST_CASE("an update of narrow weights without masters") {
  Workload w = BertBaseInFp16();
  w.stack.narrow_weights = true;
  w.optimizer.masters = Masters::kNone;
  CHECK(NarrowWeights(w));
  CHECK_FALSE(KeepsMasters(w));
  CHECK(UpdatesNarrow(w));
  CHECK(BytesOfState(w) == 2);
  const PhaseCounts counts = ExpandKernels(w).Counts(Phase::kOptimizer);
  CHECK(counts.launches == 6);  // 201 tensors in lists of 36, nothing cast
  CHECK(counts.bytes_read <= 8LL * 109'483'778);
  CHECK(counts.bytes_read > 8LL * 109'483'778 - 64);
  CHECK(counts.bytes_written <= 6LL * 109'483'778);
  const MemoryEstimate memory = EstimateMemory(w, {});
  CHECK(memory.Of("parameters").base() == 2.0 * 109'483'778);
  CHECK(memory.Of("optimizer state").base() == 4.0 * 109'483'778);
  CHECK(memory.Of("master weights").base() == 0.0);
  // In fp32 there is nothing narrow.
  w.precision = Precision::kFp32;
  CHECK_FALSE(UpdatesNarrow(w));
  CHECK(BytesOfState(w) == 4);
}

TEST_CASE("without masters it does not matter where they are") {
  Workload w = BertBaseInFp16();
  const PhaseCounts plain = ExpandKernels(w).Counts(Phase::kOptimizer);
  w.optimizer.masters = Masters::kInUpdate;
  CHECK_FALSE(MastersInUpdate(w));
  CHECK(ExpandKernels(w).Counts(Phase::kOptimizer).bytes_read ==
        plain.bytes_read);
  w.stack.narrow_weights = true;
  CHECK(MastersInUpdate(w));
  w.stack.fusion = Fusion::kFairseq;  // has a way of its own
  CHECK_FALSE(MastersInUpdate(w));
  CHECK(FromText<Masters>("in_update") == Masters::kInUpdate);
  CHECK(ToText(Masters::kApart) == "apart");
}

// docs/models/memory.md, "Per parameter": 2 + 2 + 4 + 8 bytes of 109,483,778,
// and what holds gradients in fp32: nothing, the largest tensor (30522 x 768,
// with the root of its second moment), or all of them (and all roots).
TEST_CASE("masters in the update hold no second gradients") {
  Workload w = BertBaseInFp16();
  w.batch = 1;
  w.sequence_length = 8;
  w.stack.narrow_weights = true;
  w.optimizer.masters = Masters::kInUpdate;
  const auto total = [&](OptimizerImplementation implementation) {
    w.optimizer.implementation = implementation;
    const MemoryEstimate estimate = EstimateMemory(w, {});
    CHECK(estimate.moment == MemoryMoment::kOptimizerStep);
    return static_cast<int64_t>(estimate.total().base());
  };
  const int64_t held = 16LL * 109'483'778;
  const int64_t largest = 4LL * 30522 * 768;
  CHECK(total(OptimizerImplementation::kForLoop) == held + 2 * largest);
  CHECK(total(OptimizerImplementation::kMultiTensor) ==
        held + 8LL * 109'483'778);
  w.optimizer.implementation = OptimizerImplementation::kFused;
  const MemoryEstimate fused = EstimateMemory(w, {});
  CHECK(fused.Of("unscaled gradients").base() == 0.0);
  CHECK(fused.Of("master weights").base() == 4.0 * 109'483'778);
}

// But for the loss, which is fp32: logits, and their gradient.
TEST_CASE("narrow weights need no casts") {
  Workload w = BertBaseInFp16();
  CHECK(CastsIn(ExpandKernels(w)) > 0);
  CHECK(Autocasts(w));
  w.stack.narrow_weights = true;
  CHECK(CastsIn(ExpandKernels(w)) == 2);
  CHECK_FALSE(Autocasts(w));
}

TEST_CASE("in fp32 there is nothing narrow") {
  Workload w = BertBaseInFp16();
  w.precision = Precision::kFp32;
  const PhaseCounts plain = ExpandKernels(w).Counts(Phase::kOptimizer);
  w.stack.narrow_weights = true;
  const PhaseCounts same = ExpandKernels(w).Counts(Phase::kOptimizer);
  CHECK(plain.launches == same.launches);
  CHECK(plain.bytes_read == same.bytes_read);
}

// docs/models/counts.md, "Fairseq": by hand.
TEST_CASE("Fairseq's masters are one tensor, copied a tensor at a time") {
  Workload w = BertBaseInFp16();
  w.stack.fusion = Fusion::kFairseq;
  CHECK(KeepsMasters(w));
  CHECK_FALSE(Autocasts(w));
  const int64_t parameters = TotalParameters(w.architecture);
  const int64_t tensors = ParameterTensorCount(w.architecture);
  const auto counts = [&] {
    return ExpandKernels(w).Counts(Phase::kOptimizer);
  };
  // Apex: zero 4, to fp32 2 + 4, norm 4, update 28, to fp16 4 + 2: 48 bytes.
  const PhaseCounts apex = counts();
  CHECK(apex.launches == 3 + 2 * tensors);
  CHECK(apex.bytes_read + apex.bytes_written <= 48 * parameters);
  CHECK(apex.bytes_read + apex.bytes_written >
        48 * parameters - 2 * apex.launches);
  // Without it the loss scale is a pass (8), the update eight (80).
  w.optimizer.implementation = OptimizerImplementation::kMultiTensor;
  const PhaseCounts plain = counts();
  CHECK(plain.launches == 3 + 8 + 2 * tensors);
  CHECK(plain.bytes_read + plain.bytes_written >
        108 * parameters - 2 * plain.launches);
  CHECK(plain.bytes_read + plain.bytes_written <= 108 * parameters);
  // In fp32 there are no masters.
  w.precision = Precision::kFp32;
  CHECK_FALSE(KeepsMasters(w));
  CHECK(counts().bytes_written > 0);
}

TEST_CASE("LightSeq2's update in Fairseq: 18 bytes read, 18 written") {
  Workload w;
  w.architecture = FindArchitecture("transformer-base");
  w.sequence_length = 16;
  w.precision = Precision::kFp16;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  w.stack.fusion = Fusion::kLightSeq;
  const PhaseCounts counts = ExpandKernels(w).Counts(Phase::kOptimizer);
  const int64_t parameters = TotalParameters(w.architecture);
  // Norm 2; widen 2, 4; update 2 + 4 + 4 + 4, 4 + 4 + 4 + 2.
  const int64_t rounding = 4 * counts.launches;
  CHECK(std::abs(counts.bytes_read - 18 * parameters) <= rounding);
  CHECK(std::abs(counts.bytes_written - 18 * parameters) <= rounding);
}

TEST_CASE("a criterion of its own: 32 bytes a logit against 6") {
  Workload w;
  w.architecture = FindArchitecture("transformer-base");
  w.batch = 2;
  w.sequence_length = 16;
  w.precision = Precision::kFp16;
  const auto loss_bytes = [&](Fusion fusion) {
    w.stack.fusion = fusion;
    int64_t bytes = 0;
    for (const Kernel& kernel : ExpandKernels(w).kernels) {
      const std::string_view name = kernel.name.text();
      if (name.find("loss") != name.npos || name.find("target") != name.npos) {
        bytes += kernel.bytes();
      }
    }
    return bytes;
  };
  const int64_t rows = 2 * 16;
  const int64_t logits = rows * 37'000;
  // Log-softmax 2 + 4, sum 4; zero 4, add 4 + 4, gradient 8 + 2; of rows the
  // gather and scatter of 4 + 8 + 4 and a sum of 4.
  CHECK(loss_bytes(Fusion::kFairseq) == 32 * logits + 36 * rows);
  CHECK(loss_bytes(Fusion::kLightSeq) == 6 * logits + 4 * rows);
  // Logits twice, their gradient, and a sum a row; log-probabilities in fp32
  // where the loss is in no compiled graph.
  CHECK(loss_bytes(Fusion::kCompiled) == 6 * logits + 4 * rows);
  w.stack.loss = LossKernels::kPlain;
  CHECK(loss_bytes(Fusion::kCompiled) == 12 * logits);
}

TEST_CASE("a layer of Fairseq launches 27 kernels forward, LightSeq2's 15") {
  Workload w;
  w.architecture = FindArchitecture("transformer-base");
  w.precision = Precision::kFp16;
  w.sequence_length = 16;
  const auto launches = [&](Fusion fusion) {
    w.stack.fusion = fusion;
    const KernelList list = ExpandKernels(w);
    for (const Segment& segment : list.segments) {
      if (segment.phase == Phase::kForward &&
          segment.role == SegmentRole::kLayer) {
        return segment.end - segment.begin;
      }
    }
    return int64_t{0};
  };
  CHECK(launches(Fusion::kFairseq) == 27);
  CHECK(launches(Fusion::kLightSeq) == 15);
}

// docs/models/counts.md, "Fairseq": forward 2 bytes read, 2 + 1 written,
// backward 3 and 2 for an element; LightSeq2 writes and reads a mask in passes
// that it has.
TEST_CASE("translation models drop out the activation, too") {
  Workload w;
  w.architecture = FindArchitecture("transformer-base");
  w.sequence_length = 16;
  w.precision = Precision::kFp16;
  const auto moved = [&](Fusion fusion, double dropout) {
    w.stack.fusion = fusion;
    w.architecture.dropout = dropout;
    int64_t bytes = 0;
    for (const Kernel& kernel : ExpandKernels(w).kernels) {
      if (kernel.work_items == 16 * w.architecture.intermediate &&
          (kernel.name.text().find("gelu") != std::string_view::npos ||
           kernel.name.text().starts_with("dropout"))) {
        bytes += kernel.bytes();
      }
    }
    return bytes;
  };
  // In an encoder and a decoder layer.
  const int64_t elements = 2 * 16 * w.architecture.intermediate;
  CHECK(moved(Fusion::kFairseq, 0.1) - moved(Fusion::kFairseq, 0) ==
        10 * elements);
  CHECK(moved(Fusion::kLightSeq, 0.1) - moved(Fusion::kLightSeq, 0) ==
        2 * elements);
  CHECK(moved(Fusion::kEager, 0.1) == moved(Fusion::kEager, 0));
}

// The project page trained 18 + 18 layers where 24 + 24 did not fit (published
// record s004_lightseq2_vs_fairseq_speedup/own_18e18d).
TEST_CASE("Transformer-big on 16 GB in Fairseq: 18 layers, hardly 24") {
  Workload w;
  w.architecture = FindArchitecture("transformer-big");
  w.sequence_length = 32;
  w.precision = Precision::kFp16;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  w.stack.fusion = Fusion::kFairseq;
  const auto fits = [&](int64_t layers, int64_t batch) {
    w.batch = batch;
    w.architecture.layers = layers;
    w.architecture.decoder_layers = layers;
    MemorySurroundings surroundings;
    surroundings.context = MB(1343);
    return EstimateMemory(w, surroundings).total() <= GiB(16);
  };
  CHECK(fits(18, 64));
  CHECK(fits(24, 16));
  CHECK_FALSE(fits(24, 32));
}

}  // namespace trainfare::model
