// Adapters of decoders, and what trains or is widened beside them.

#include <doctest/doctest.h>

#include <cstdint>

#include "model/activations.h"
#include "model/error.h"
#include "model/frozen_base.h"
#include "model/kernels.h"
#include "model/memory.h"
#include "model/presets.h"
#include "model/sharding.h"
#include "model/trainable.h"
#include "model/transients.h"
#include "model/validate.h"
#include "tests/model/decoder_workloads.h"
#include "tests/model/step_kernels.h"
#include "tests/near.h"

namespace trainfare::model {
namespace {

// PEFT: what query's and value's adapters take is widened and narrowed, forward
// and of its gradient.
TEST_CASE("adapters in fp32 cast what they take, by hand") {
  Workload w = Llama8b(1, 128);
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = w.trainable.lora.value = true;
  const KernelList narrow = ExpandKernels(w);
  const int64_t kept = LayerActivationBytes(w);
  w.trainable.wide_adapters = true;
  const KernelList wide = ExpandKernels(w);
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    CHECK(BytesOf(wide, phase) - BytesOf(narrow, phase) ==
          32 * 2 * (6 + 6) * 128 * 4096LL);
  }
  // Each keeps a copy of its own, narrowed again, in place of what both share.
  CHECK(LayerActivationBytes(w) - kept == (2 - 1) * 128 * 4096 * 2);
}

TEST_CASE("adapters of Llama 3.1 8B by hand") {
  Workload w = Llama8b(1, 128);
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = w.trainable.lora.value = true;
  // 16 (4096 + 4096) of queries, 16 (4096 + 1024) of values, 32 blocks.
  CHECK(AdapterParameters(w) == 6'815'744);
  CHECK(TrainableParameters(w) == 6'815'744);
  // Frozen products have no weight gradient.
  for (const Kernel& kernel : ExpandKernels(w).kernels) {
    CHECK(kernel.name.text() != "weight gradient");
  }
  // 4 bits and 4 bytes a group of 64: 36 bytes. Twice quantised, 256 groups:
  // 8192 bytes, a byte a group, and 4.
  Workload once = w;
  once.trainable.base_bits = 4;
  once.trainable.double_quantised = false;
  CHECK(BaseBytes(once, 64) == 36);
  once.trainable.double_quantised = true;
  CHECK(BaseBytes(once, 16'384) == 8192 + 256 + 4);
  const double whole = ToBytes(EstimateMemory(w, {}).Of("parameters"));
  w.trainable.base_bits = 4;
  const double packed = ToBytes(EstimateMemory(w, {}).Of("parameters"));
  const double block = 32.0 * (41'943'040 + 176'160'768);
  CHECK(whole - packed == block * (2.0 - 8452.0 / 16'384));
  bool widened = false;
  for (const Kernel& kernel : ExpandKernels(w).kernels) {
    widened = widened || kernel.name == "dequantise weights";
  }
  CHECK(widened);
}

// Llama 3.1's tables are untied: 128,256 x 4096 each, copied, and trained.
TEST_CASE("embeddings that train beside adapters, by hand") {
  Workload w = Llama8b(1, 128);
  w.stack.narrow_weights = true;
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = w.trainable.lora.value = true;
  const Workload frozen = w;
  w.trainable.embeddings_beside_adapters = true;
  const int64_t table = int64_t{128'256} * 4096;
  CHECK(EmbeddingCopies(frozen) == 0);
  CHECK(EmbeddingCopies(w) == 2 * table);
  CHECK(TrainableParameters(w) == 6'815'744 + 2 * table);
  CHECK(TrainableTensorCount(w) == TrainableTensorCount(frozen) + 2);
  const std::vector<ParameterTensor> tensors = TrainableTensorsOf(w);
  CHECK(static_cast<int64_t>(tensors.size()) == TrainableTensorCount(w));
  CHECK(tensors.front().elements == table);
  CHECK(tensors.back().elements == table);
  // The logits' product has a weight gradient: 2 FLOPs a token and weight.
  CHECK(StepModelFlops(w) - StepModelFlops(frozen) == 2 * 128 * table);
  const MemoryEstimate before = EstimateMemory(frozen, {});
  const MemoryEstimate after = EstimateMemory(w, {});
  CHECK(ToBytes(after.Of("parameters") - before.Of("parameters")) ==
        Near(4.0 * table, 1e-5));
  const auto count = [](const Workload& of, std::string_view name) {
    int64_t kernels = 0;
    for (const Kernel& kernel : ExpandKernels(of).kernels) {
      if (kernel.name.text() == name) ++kernels;
    }
    return kernels;
  };
  CHECK(count(w, "table gradient") == count(frozen, "table gradient") + 1);
  CHECK(count(w, "weight gradient") == count(frozen, "weight gradient") + 1);
  CHECK(count(w, "tied gradient add") == 0);
  // The peak is at the update, with the gradients of all that trains.
  CHECK(ToBytes(after.Of("gradients")) ==
        Near(2.0 * (2 * table + 6'815'744), 1e-5));
  const ShardUnits units = ShardUnitsOf(w);
  const ShardUnits frozen_units = ShardUnitsOf(frozen);
  CHECK(units.root.trained == frozen_units.root.trained + 2 * table);
  CHECK(units.root.elements == frozen_units.root.elements + 2 * table);
  CHECK(units.blocks.front().unit.trained ==
        frozen_units.blocks.front().unit.trained);
  // Of a tied table both gradients are one.
  w.architecture.untied_output = false;
  CHECK(EmbeddingCopies(w) == table);
  CHECK(count(w, "tied gradient add") == 1);
  CHECK(static_cast<int64_t>(TrainableTensorsOf(w).size()) ==
        TrainableTensorCount(w));
}

TEST_CASE("experts in few bits are widened at each use, by hand") {
  Workload w = Llama8b(1, 128);
  w.architecture = FindArchitecture("mixtral-8x7b");
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = true;
  w.trainable.base_bits = 4;
  // Every matrix that is kept so, once in each pass: half a byte with its
  // constants read, two written.
  const int64_t base = QuantisedElements(w);
  CHECK(base > 45'000'000'000);
  for (const ExpertKernels experts :
       {ExpertKernels::kGrouped, ExpertKernels::kLoop}) {
    w.stack.experts = experts;
    for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
      const auto bytes =
          static_cast<double>(SumsOf(w, "dequantise weights", phase).bytes);
      CHECK(bytes ==
            Near(static_cast<double>(BaseBytes(w, base) + 2 * base), 0.01));
    }
  }
}

TEST_CASE("the largest matrix that is widened, by hand") {
  Workload w = Llama8b(1, 128);
  w.trainable.lora_rank = 16;
  w.trainable.base_bits = 4;
  const auto of = [&](const char* name) {
    w.architecture = FindArchitecture(name);
    return WidenedMatrixBytes(w);
  };
  CHECK(of("llama-3.1-8b") == 2 * 4096 * 14'336);
  // The dense blocks' of 7168 x 18,432; of latent attention none is as large.
  CHECK(of("deepseek-v3") == 2 * 7168 * 18'432);
  // Gate and what it gates are one.
  CHECK(of("chatglm3-6b") == 2 * 4096 * 2 * 13'696);
}

// A weight of 4 bits read as a word of 8, written as one of its own; narrowed 4
// + 1, masked 1 + 1, less its zero 1 + 1, times its scale 1 + 2: 16.5 bytes. A
// zero of 128 weights: 0.5 + 4, 4 + 1, 1 + 1, 1 + 1: 13.5.
TEST_CASE("a base widened by operations, by hand") {
  Workload w = Llama8b(1, 128);
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = w.trainable.lora.value = true;
  w.trainable.base_bits = 4;
  w.trainable.base_by_operations = true;
  const double block = 41'943'040 + 176'160'768;
  double bytes = 0;
  int64_t kernels = 0;
  const KernelList list = ExpandKernels(w);
  for (const Segment& segment : list.segments) {
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      const Kernel& kernel = list.kernels[static_cast<size_t>(i)];
      if (kernel.name != "dequantise weights") continue;
      bytes += static_cast<double>(kernel.bytes() * segment.repeat);
      kernels += segment.repeat;
    }
  }
  // Of seven matrices a block; backward has what the forward pass kept.
  CHECK(bytes == 32 * block * (16.5 + 13.5 / 128));
  CHECK(kernels == 32 * 7 * 9);
  CHECK(WidenedMatrixBytes(w) == 0);
  CHECK(WidenedBlockBytes(w) == static_cast<int64_t>(2 * block));

  // Every block keeps its own; of blocks computed again one has it.
  const auto activations = [](const Workload& of) {
    const ActivationBytes kept = Activations(of);
    return kept.kept + kept.anew;
  };
  Workload again = w;
  again.gradient_checkpointing = true;
  Workload kernel = w;
  kernel.trainable.base_by_operations = false;
  CHECK(activations(w) - activations(kernel) == 32 * WidenedBlockBytes(w));
  kernel.gradient_checkpointing = true;
  CHECK(activations(again) - activations(kernel) == WidenedBlockBytes(w));
}

}  // namespace
}  // namespace trainfare::model
