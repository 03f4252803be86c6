#include "model/offload.h"

#include <doctest/doctest.h>

#include <string>

#include "model/activations.h"
#include "model/error.h"
#include "model/frozen_base.h"
#include "model/kernels.h"
#include "model/memory.h"
#include "model/trainable.h"
#include "model/validate.h"
#include "tests/model/llama_8b.h"
#include "tests/model/refusal.h"
#include "tests/near.h"

namespace trainfare::model {
namespace {

using llama_8b::Held;
using llama_8b::kAll;
using llama_8b::kBlock;
using llama_8b::kRoot;

Workload OffloadedLlama(Shard shard, Offload offload, int64_t data = 1) {
  Workload w = llama_8b::Llama(shard, data);
  w.parallel.offload = offload;
  return w;
}

double OnHost(const Workload& w, std::string_view name) {
  double bytes = 0;
  for (const MemoryTerm& term : HostMemoryOf(w)) {
    if (term.name == name) bytes += ToBytes(term.size);
  }
  return bytes;
}

double AllOnHost(const Workload& w) {
  double bytes = 0;
  for (const MemoryTerm& term : HostMemoryOf(w)) bytes += ToBytes(term.size);
  return bytes;
}

}  // namespace

TEST_CASE("the optimizer of 8 B on the host: 2 bytes a parameter stay") {
  const Workload w = OffloadedLlama(Shard::kZero2, Offload::kOptimizer);
  CHECK(Held(w, "parameters") == 2.0 * kAll);
  // That of the output layer, until it is in the buckets.
  CHECK(Held(w, "gradients") == 2.0 * 525'336'576);
  CHECK(Held(w, "master weights") == 0.0);
  CHECK(Held(w, "optimizer state") == 0.0);
  CHECK(Held(w, "communication buckets") == 2.0 * kReduceBucket);
  CHECK(OnHost(w, "master weights") == 4.0 * kAll);
  CHECK(OnHost(w, "gradients") == 4.0 * kAll);
  CHECK(OnHost(w, "optimizer state") == 8.0 * kAll);
  // DeepSpeed: total_params * 16 * 1.5.
  CHECK(AllOnHost(w) == 24.0 * kAll);
  CHECK(GradientsToHost(w, kAll) == 4 * kAll);
  CHECK(UpdatedFromHost(w) == 2 * kAll);
  CHECK(HostUpdateBytes(w) == 240'907'837'440);
  const HostPath<double> path{
      BytesPerSecond<>(27.72e9), BytesPerSecond<>(123e9), 1};
  CHECK(ToSeconds(HostUpdateTime(w, path)) == Near(1.9586, 1e-4));
  // The device makes no update.
  CHECK(ExpandKernels(w).Counts(Phase::kOptimizer).launches == 0);
}

TEST_CASE("parameters of 8 B on the host: two blocks and the root come") {
  Workload w = OffloadedLlama(Shard::kZero3, Offload::kParameters);
  w.sequence_length = 16384;  // so that blocks are the worst, not the root
  CHECK(Held(w, "parameters") == 0.0);
  CHECK(Held(w, "gathered parameters") == 2.0 * (kRoot + 2 * kBlock));
  CHECK(OnHost(w, "parameters") == 2.0 * kAll);
  // DeepSpeed: total_params * 18 * 1.5.
  CHECK(AllOnHost(w) == 27.0 * kAll);
  const ShardUnits units = ShardUnitsOf(w);
  CHECK(ParametersFromHost(w, units.blocks[0].unit) == 2 * kBlock);
  CHECK(UpdatedFromHost(w) == 0);

  // FSDP's shard is that of the masters, and comes in fp32.
  const Workload fsdp = OffloadedLlama(Shard::kFsdp, Offload::kParameters);
  CHECK(ParametersFromHost(fsdp, units.blocks[0].unit) == 4 * kBlock);
  CHECK(OnHost(fsdp, "master weights") == 0.0);
  CHECK(OnHost(fsdp, "parameters") == 4.0 * kAll);
  CHECK(HostUpdateBytes(fsdp) == 28 * kAll);

  // Eight ranks have an eighth each, and as long an update together.
  const Workload eight = OffloadedLlama(Shard::kFsdp, Offload::kParameters, 8);
  CHECK(AllOnHost(eight) == Near(AllOnHost(fsdp) / 8, 1e-5));
  CHECK(GradientsToHost(eight, kAll) == kAll / 2);
}

TEST_CASE("frozen parameters come in their few bits, and stay as they are") {
  Workload w = OffloadedLlama(Shard::kFsdp, Offload::kParameters, 2);
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = w.trainable.lora.value = true;
  w.trainable.base_bits = 4;
  const int64_t matrices =
      BlockMatrixElements(w.architecture) / w.architecture.layers;
  const ShardUnits units = ShardUnitsOf(w);
  const int64_t norms = 2 * 4096;
  const int64_t adapters = 16 * (4096 + 4096 + 4096 + 1024);
  CHECK(units.blocks[0].unit.quantised == matrices);
  CHECK(ParametersFromHost(w, units.blocks[0].unit) ==
        BaseBytes(w, matrices / 2) + (norms * 2 + adapters * 4) / 2);
  CHECK(HostUpdateBytes(w) == 32 * adapters / 2 * 28);
}

TEST_CASE("a host updates state as wide as masters") {
  Workload w = OffloadedLlama(Shard::kZero2, Offload::kOptimizer);
  w.optimizer.state_bits = 8;
  CHECK_THROWS_WITH_AS(
      Validate(w),
      "optimizer.state_bits: expected 0 beside parallel.offload: optimizer, "
      "whose host updates state as wide as masters, got 8",
      InputError);
}

TEST_CASE("activations on the host: two blocks' input is on its way") {
  Workload w = OffloadedLlama(Shard::kNone, Offload::kNone);
  w.trainable.lora_rank = 8;
  w.trainable.lora.query = true;
  const double kept = 2.0 * 2048 * 4096;  // of one block
  const double all = Held(w, "activations");
  w.parallel.offload_activations = true;
  CHECK(KeptByBlock(w, 0) == static_cast<int64_t>(kept));
  CHECK(KeptByBlocks(w) == static_cast<int64_t>(32 * kept));
  CHECK(Held(w, "activations") == all - 30 * kept);
  CHECK(AllOnHost(w) == 32 * kept);
  w.gradient_checkpointing = false;
  CHECK(KeptByBlock(w, 31) == LayerActivationBytes(w));
}

TEST_CASE("what cannot be offloaded is refused in a line") {
  CHECK(RefusalOf(OffloadedLlama(Shard::kZero3, Offload::kParameters, 8))
            .empty());
  CHECK(RefusalOf(OffloadedLlama(Shard::kNone, Offload::kOptimizer)).empty());
  CHECK(RefusalOf(OffloadedLlama(Shard::kZero2, Offload::kParameters, 8)) ==
        "parallel.offload: expected optimizer, or shard: zero3 or fsdp, got "
        "parameters with shard: zero2");
  CHECK(RefusalOf(OffloadedLlama(Shard::kFsdp, Offload::kOptimizer, 8))
            .starts_with("parallel.offload: expected parameters, got "
                         "optimizer with shard: fsdp"));
  CHECK(RefusalOf(OffloadedLlama(Shard::kNone, Offload::kOptimizer, 8)) ==
        "parallel.offload: expected a shard over 8 ranks, got none");
  // One device keeps what it offloads, and nothing else of its ranks.
  const Parallel one =
      OverDevices({0, Shard::kFsdp, 1, true, Offload::kParameters}, 1);
  CHECK(one.offload == Offload::kParameters);
  CHECK(one.data == 1);
  CHECK(OverDevices({0, Shard::kFsdp, 1, true}, 1) == Parallel{});
}

}  // namespace trainfare::model
