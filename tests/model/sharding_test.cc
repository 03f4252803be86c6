#include "model/sharding.h"

#include <doctest/doctest.h>

#include <string>

#include "model/activations.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/frozen_base.h"
#include "model/kernels.h"
#include "model/memory.h"
#include "model/optimizer_kernels.h"
#include "model/presets.h"
#include "model/sharded_pass.h"
#include "model/stack_rules.h"
#include "model/trainable.h"
#include "model/validate.h"
#include "tests/model/llama_8b.h"
#include "tests/model/refusal.h"
#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::model {
namespace {

using llama_8b::Held;
using llama_8b::kAll;
using llama_8b::kBlock;
using llama_8b::kRoot;

Workload ShardedLlama(Shard shard, int64_t data = 8) {
  Workload w = llama_8b::Llama(shard, data);
  w.optimizer.implementation = OptimizerImplementation::kFused;
  return w;
}

ShardTask<double> Task(double gather, double compute, double reduce) {
  return {{Second(gather), Second(gather)},
          Second(compute),
          {Second(reduce), Second(reduce)}};
}

}  // namespace

TEST_CASE("blocks and what is outside of them are a model's parameters") {
  const ShardUnits units = ShardUnitsOf(ShardedLlama(Shard::kFsdp));
  CHECK(units.root.elements == kRoot);
  CHECK(units.root.trained == kRoot);
  REQUIRE(units.blocks.size() == 1);
  CHECK(units.blocks[0].count == 32);
  CHECK(units.blocks[0].unit.elements == kBlock);
  CHECK(units.blocks[0].unit.trained == kBlock);
  CHECK(kRoot + 32 * kBlock == kAll);
}

TEST_CASE("units of experts, frozen blocks and adapters add up") {
  for (const char* name :
       {"mixtral-8x7b", "deepseek-v2-lite", "transformer-base"}) {
    CAPTURE(name);
    Workload w = ShardedLlama(Shard::kFsdp);
    w.architecture = FindArchitecture(name);
    w.trainable.lora_rank = 8;
    w.trainable.lora.output = w.trainable.lora.feed_forward_out = true;
    const ShardUnits units = ShardUnitsOf(w);
    int64_t elements = units.root.elements;
    int64_t trained = units.root.trained;
    int64_t blocks = 0;
    for (const ShardedBlocks& alike : units.blocks) {
      elements += alike.count * alike.unit.elements;
      trained += alike.count * alike.unit.trained;
      blocks += alike.count;
    }
    CHECK(blocks == w.architecture.blocks());
    CHECK(elements == TotalParameters(w.architecture) + AdapterParameters(w));
    CHECK(trained == TrainableParameters(w));
  }
  Workload frozen = ShardedLlama(Shard::kZero3);
  frozen.trainable.frozen_layers = 30;
  const ShardUnits units = ShardUnitsOf(frozen);
  REQUIRE(units.blocks.size() == 2);
  CHECK(units.blocks[0].count == 30);
  CHECK(units.blocks[0].unit.trained == 0);
  CHECK(units.blocks[1].count == 2);
  CHECK(units.blocks[1].unit.trained == kBlock);
  // Last norm and output; the embeddings are frozen with the blocks.
  CHECK(units.root.trained == kRoot - 128'256 * int64_t{4096});
}

// docs/models/counts.md, "8 and 4 bits".
TEST_CASE("weights gathered in 8 bits, by hand") {
  Workload w = ShardedLlama(Shard::kFsdp);
  w.fp8.gathered = true;
  CHECK(GatheredBytes(w, ShardUnitsOf(w).blocks[0].unit) == 2 * kBlock);
  w.precision = Precision::kFp8;
  Validate(w);
  const ShardUnits units = ShardUnitsOf(w);
  CHECK(GatheredBytes(w, units.blocks[0].unit) == 218'120'192);
  CHECK(GatheredBytes(w, units.root) == 2 * kRoot);
  w.parallel.shard = Shard::kZero1;
  CHECK(
      RefusalOf(w).starts_with("fp8.gathered: expected false where nothing is "
                               "gathered (parallel.shard: zero1), got true"));
  w.parallel.shard = Shard::kZero3;
  w.trainable.lora_rank = 8;
  w.trainable.lora.query = true;
  w.trainable.base_bits = 4;
  CHECK(
      RefusalOf(w).starts_with("fp8.gathered: expected false beside a base of "
                               "4 bits"));
}

TEST_CASE("full sharding of 8 B over 8: 16 bytes a parameter over 8") {
  Workload w = ShardedLlama(Shard::kFsdp);
  w.stack.fusion = Fusion::kEager;  // fp32 logits, three times
  w.sequence_length = 16384;
  CHECK(EstimateMemory(w, {}).moment == MemoryMoment::kBackwardStart);
  CHECK(Held(w, "parameters") == 0.0);  // the masters are the shard
  CHECK(Held(w, "master weights") == 4'015'130'624.0);
  CHECK(Held(w, "optimizer state") == 8'030'261'248.0);
  // At the loss the root alone, all that other streams gathered and summed is
  // gone from the tensors and stays theirs.
  CHECK(Held(w, "logits") > 0.0);
  CHECK(Held(w, "gathered parameters") == 2.0 * kRoot);
  CHECK(Held(w, "gathered gradients") == 0.0);
  CHECK(Held(w, "communication buckets") == 0.0);
  CHECK(EstimateMemory(w, {}).of_other_streams ==
        Byte(2.0 * 2 * kBlock + 4'015'130'624.0));
  Workload accumulating = w;
  accumulating.accumulation = 2;
  CHECK(Held(accumulating, "gradients") == 4'015'130'624.0);
  Workload kept = w;
  kept.parallel.reshard_after_forward = false;
  CHECK(Held(kept, "gathered parameters") == 2.0 * kAll);
  // In the last block it and the next, where logits come in chunks.
  Workload block = w;
  block.stack.fusion = Fusion::kLiger;
  block.sequence_length = 65536;
  CHECK(EstimateMemory(block, {}).moment == MemoryMoment::kBackwardStart);
  CHECK(Held(block, "gathered parameters") == 2'973'802'496.0);
  CHECK(Held(block, "gathered gradients") == 436'224'000.0 + 1'050'673'152.0);
  CHECK(Held(block, "communication buckets") == 872'448'000.0);
  // In the lowest it alone, where frozen blocks have inputs held; DeepSpeed's
  // ranks have the next, too.
  block.trainable.lora_rank = 16;
  block.trainable.lora.query = true;
  const int64_t adapters = 16 * 2 * 4096;
  CHECK(EstimateMemory(block, {}).moment == MemoryMoment::kLowestBlock);
  CHECK(Held(block, "gathered parameters") ==
        2.0 * (kRoot + kBlock + adapters));
  block.parallel.shard = Shard::kZero3;
  CHECK(Held(block, "gathered parameters") ==
        2.0 * (kRoot + 2 * (kBlock + adapters)));
  // In the end the root alone, with its gradients and their fp32 copy.
  w.sequence_length = 128;
  CHECK(EstimateMemory(w, {}).moment == MemoryMoment::kBackwardEnd);
  CHECK(Held(w, "gathered parameters") == 2.0 * kRoot);
  CHECK(Held(w, "gathered gradients") == 2.0 * kRoot);
  CHECK(Held(w, "communication buckets") == 4.0 * kRoot);
}

// 128,256 x 4096 = 525,336,576 parameters of either table, 4096 of the last
// norm; no other unit of the root is there but where it is used.
TEST_CASE("embeddings and output layer as units of their own, by hand") {
  Workload w = ShardedLlama(Shard::kFsdp);
  w.stack.fusion = Fusion::kEager;
  w.sequence_length = 16384;
  const MemoryEstimate whole = EstimateMemory(w, {});
  w.parallel.embedding_units = true;
  Validate(w);
  CHECK(EstimateMemory(w, {}).moment == MemoryMoment::kBackwardStart);
  CHECK(Held(w, "gathered parameters") == 2.0 * (525'336'576 + 4096));
  // What the unit of the output takes is more than two blocks do.
  CHECK(EstimateMemory(w, {}).of_other_streams ==
        Byte(2.0 * 218'112'000 + 4'015'130'624.0));
  CHECK(whole.of_other_streams ==
        Byte(2.0 * 2 * 218'112'000 + 4'015'130'624.0));
  Workload block = w;
  block.stack.fusion = Fusion::kLiger;
  block.sequence_length = 65536;
  CHECK(Held(block, "gathered parameters") == 2.0 * (4096 + 2 * 218'112'000));
  w.sequence_length = 128;
  CHECK(EstimateMemory(w, {}).moment == MemoryMoment::kBackwardEnd);
  CHECK(Held(w, "gathered parameters") == 2.0 * (525'336'576 + 4096));
  CHECK(Held(w, "communication buckets") == 4.0 * (525'336'576 + 4096));
  // Of one matrix for both nothing is apart.
  w.architecture.untied_output = false;
  CHECK(EmbeddingUnitsOf(w).output.elements == 0);
  w.parallel.shard = Shard::kZero3;
  CHECK(RefusalOf(w).starts_with(
      "parallel.embedding_units: expected false, or shard: fsdp"));
}

// 8,030,261,248 parameters: sums of 4 bytes that stand, 2 in the buckets of a
// pass, whether or not ranks divide the optimizer's state.
TEST_CASE("gradients summed in fp32 beside narrow weights, by hand") {
  for (const Shard shard : {Shard::kNone, Shard::kZero1}) {
    Workload w = ShardedLlama(shard);
    w.optimizer.wide_gradients = true;
    Validate(w);
    CHECK(GradientWidth(w) == 4);
    CHECK(SumWidth(w) == 4);
    MemorySurroundings several;
    several.communication_buckets = true;
    const MemoryEstimate held = EstimateMemory(w, several);
    CHECK(held.Of("gradients") == Byte(4.0 * kAll));
    CHECK(held.Of("communication buckets") == Byte(2.0 * kAll));
    // They need no widening before the update.
    CHECK(held.Of("unscaled gradients") == Byte(0.0));
    w.stack.narrow_weights = false;
    const Bytes<> wide = EstimateMemory(w, several).total();
    w.optimizer.wide_gradients = false;
    CHECK(EstimateMemory(w, several).total() == wide);
  }
}

// fp32 shards, narrow where they are gathered, and so is all that flows: the
// same step whether narrow weights are asked for or autocast.
TEST_CASE("FSDP in mixed precision computes on narrow weights") {
  for (const Fusion fusion : {Fusion::kEager, Fusion::kLiger}) {
    Workload narrow = ShardedLlama(Shard::kFsdp);
    narrow.stack.fusion = fusion;
    Workload mixed = narrow;
    mixed.stack.narrow_weights = false;
    CHECK(!Autocasts(mixed));
    CHECK(ExpandKernels(mixed).Counts(Phase::kBackward).launches ==
          ExpandKernels(narrow).Counts(Phase::kBackward).launches);
    CHECK(EstimateMemory(mixed, {}).total() ==
          EstimateMemory(narrow, {}).total());
    CHECK(Held(mixed, "weight copies") == 0.0);
    // Not one rank alone, nor what autocasts whole weights.
    mixed.parallel.data = 1;
    CHECK(Autocasts(mixed));
    mixed.parallel.data = 8;
    mixed.parallel.shard = Shard::kZero3;
    CHECK(Autocasts(mixed));
  }
}

// 8 ranks gather 2 bytes of each parameter of a block, and cast none, where one
// casts all of its own.
TEST_CASE("compiled graphs gather what is narrow") {
  for (const Fusion fusion : {Fusion::kCompiled, Fusion::kXla}) {
    Workload w = ShardedLlama(Shard::kFsdp);
    w.stack.fusion = fusion;
    w.stack.narrow_weights = false;
    const ShardUnit block = ShardUnitsOf(w).blocks.front().unit;
    CHECK(GatheredBytes(w, block) == 2 * block.elements);
    CHECK(SummedBytes(w, block) == 4 * block.elements);
    CHECK(!CastsWeights(w));
    CHECK(Held(w, "weight copies") == 0.0);
    w.parallel.data = 1;
    CHECK(CastsWeights(w));
  }
}

// 218,112,000 parameters of a block: 2 bytes each, not 4; nothing is cast for
// it, since gradients of narrow weights are made in 16 bits.
TEST_CASE("gradients of shared state are summed in 16 bits where asked") {
  Workload w = ShardedLlama(Shard::kFsdp);
  const auto launches = [&w] {
    const KernelList kernels = ExpandKernels(w);
    return kernels.Counts(Phase::kBackward).launches +
           kernels.Counts(Phase::kOptimizer).launches;
  };
  const int64_t before = launches();
  const double wide = Held(w, "communication buckets");
  w.compression.kind = CompressionKind::kTo16Bits;
  Validate(w);
  const ShardUnit block = ShardUnitsOf(w).blocks.front().unit;
  CHECK(SummedBytes(w, block) == 2 * 218'112'000);
  CHECK(GradientWidth(w) == 4);  // as a rank keeps its share
  CHECK(Held(w, "communication buckets") == wide / 2);
  CHECK(launches() == before);
}

TEST_CASE("what each stage divides") {
  Workload w = ShardedLlama(Shard::kNone);
  w.accumulation = 2;
  const auto held = [&](Shard shard) {
    w.parallel.shard = shard;
    return std::vector<double>{Held(w, "parameters"),
                               Held(w, "gradients"),
                               Held(w, "master weights"),
                               Held(w, "optimizer state")};
  };
  const double all = kAll;
  CHECK(held(Shard::kNone) == std::vector{2 * all, 2 * all, 4 * all, 8 * all});
  CHECK(held(Shard::kZero1) == std::vector{2 * all, 2 * all, all / 2, all});
  CHECK(held(Shard::kZero2) == std::vector{2 * all, all / 4, all / 2, all});
  CHECK(held(Shard::kZero3) == std::vector{all / 4, all / 4, all / 2, all});
  // Two copies: four ranks share one.
  w.parallel.replicate = 2;
  CHECK(held(Shard::kZero3) == std::vector{all / 2, all / 2, all, 2 * all});
}

TEST_CASE("adapters: the frozen weights are divided, few bits stay few") {
  Workload w = ShardedLlama(Shard::kFsdp);
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = true;
  const int64_t adapters = int64_t{32} * 16 * (4096 + 4096);
  CHECK(Held(w, "parameters") == 2.0 * kAll / 8);
  CHECK(Held(w, "master weights") == 4.0 * adapters / 8);
  CHECK(Held(w, "optimizer state") == 8.0 * adapters / 8);
  // What is summed: a block's adapters in fp32.
  const ShardUnits units = ShardUnitsOf(w);
  CHECK(SummedBytes(w, units.blocks[0].unit) == 16 * (4096 + 4096) * 4);
  CHECK(GatheredBytes(w, units.blocks[0].unit) ==
        2 * (kBlock + 16 * (4096 + 4096)));
  w.trainable.base_bits = 4;
  const int64_t matrices = kBlock - 2 * 4096;
  CHECK(GatheredBytes(w, ShardUnitsOf(w).blocks[0].unit) ==
        BaseBytes(w, matrices) + 2 * (2 * 4096 + 16 * (4096 + 4096)));
}

TEST_CASE("adapters that are units of their own") {
  Workload w = ShardedLlama(Shard::kFsdp);
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = w.trainable.lora.key = true;
  w.trainable.lora.value = w.trainable.lora.output = true;
  CHECK(AdapterUnits(w) == 0);
  w.trainable.adapters_as_units = true;
  CHECK(AdapterUnits(w) == 32 * 4 * 2);
  w.trainable.lora.feed_forward_out = true;
  CHECK(AdapterUnits(w) == 32 * 5 * 2);
  w.architecture = FindArchitecture("mixtral-8x7b");
  CHECK(AdapterUnits(w) == 32 * (4 + 8) * 2);
  // A block of DeepSeek-V2-Lite has shared experts, too; the first is dense.
  w.architecture = FindArchitecture("deepseek-v2-lite");
  w.trainable.lora = {};
  w.trainable.lora.feed_forward_out = true;
  CHECK(AdapterUnits(w) == (1 + 26 * (64 + 1)) * 2);
  w.parallel.shard = Shard::kZero3;
  CHECK(AdapterUnits(w) == 0);
}

TEST_CASE("experts that are gathered one by one") {
  Workload w = ShardedLlama(Shard::kZero3);
  CHECK(ExpertModules(w) == 0);
  w.architecture = FindArchitecture("qwen1.5-moe-a2.7b");
  w.stack.fusion = Fusion::kEager;
  CHECK(ExpertModules(w) == 24 * 60 * 3);
  // The first of DeepSeek-V2-Lite's blocks is dense.
  w.architecture = FindArchitecture("deepseek-v2-lite");
  CHECK(ExpertModules(w) == 26 * 64 * 3);
  w.stack.experts = ExpertKernels::kMaskedLoop;
  CHECK(ExpertModules(w) == 26 * 64 * 3);
  w.stack.experts = ExpertKernels::kShardLoop;  // six of ten, one of four
  CHECK(ExpertModules(w) == 26 * 7);
  w.stack.experts = ExpertKernels::kGrouped;
  CHECK(ExpertModules(w) == 0);
  w.stack.experts = ExpertKernels::kOfStack;
  w.parallel.shard = Shard::kFsdp;
  CHECK(ExpertModules(w) == 0);
  w.parallel.shard = Shard::kZero3;
  w.stack.fusion = Fusion::kCompiled;
  CHECK(ExpertModules(w) == 0);
}

// PyTorch's FSDP holds on to the inputs of frozen blocks that are computed
// again, and to the gradients of these, until the backward pass ends.
TEST_CASE("inputs of frozen blocks stand under FSDP") {
  const auto held = [](Shard shard, int64_t rank) {
    Workload w = ShardedLlama(shard);
    w.trainable.lora_rank = rank;
    w.trainable.lora.query = rank > 0;
    w.gradient_checkpointing = true;
    return Activations(w).lowest.held;
  };
  // 31 blocks above the lowest, 4096 numbers of 2 bytes a token.
  const int64_t tokens = ShardedLlama(Shard::kFsdp).tokens();
  CHECK(held(Shard::kFsdp, 16) - held(Shard::kZero3, 16) ==
        2 * 31 * tokens * 4096 * 2);
  CHECK(held(Shard::kFsdp, 0) == held(Shard::kZero3, 0));
}

TEST_CASE("an update is of the share, without casts where masters are it") {
  const auto bytes = [](const Workload& w) {
    std::vector<Kernel> kernels;
    AppendOptimizerKernels(w, kernels);
    int64_t sum = 0;
    for (const Kernel& kernel : kernels)
      sum += kernel.launches * kernel.bytes();
    return static_cast<double>(sum);
  };
  // AdamW in one pass: 4 tensors read, 3 written, fp32.
  CHECK(bytes(ShardedLlama(Shard::kFsdp)) == Near(7.0 * 4.0 * kAll / 8, 1e-6));
  CHECK(bytes(ShardedLlama(Shard::kZero1)) ==
        Near(bytes(ShardedLlama(Shard::kNone)) / 8, 1e-6));
}

TEST_CASE("gathers hide behind the unit before them") {
  using Tasks = std::vector<ShardTask<double>>;
  const auto waiting = [](const Tasks& tasks) {
    return ToSeconds(OverlapGathered(tasks, 1.0).waiting);
  };
  // Only the first is waited for.
  CHECK(waiting(Tasks(3, Task(4, 10, 0))) == Near(4, 1e-5));
  // 15 for the first, then 5 before each.
  CHECK(waiting(Tasks(3, Task(15, 10, 0))) == Near(25, 1e-5));
  // The last reduction is in the open.
  CHECK(waiting(Tasks(3, Task(4, 10, 6))) == Near(10, 1e-5));
  CHECK(ToSeconds(OverlapGathered(Tasks(3, Task(4, 10, 6)), 1.0).sending) ==
        Near(30, 1e-5));
  CHECK(waiting({}) == 0.0);
  // So many alike are so many by themselves, among others, too.
  for (const double transfer : {0.5, 4.0, 15.0}) {
    CAPTURE(transfer);
    const ShardTask<double> other = Task(3, 7, 2);
    const ShardTask<double> one = Task(transfer, 10, transfer);
    ShardTask<double> five = one;
    five.count = 5;
    const ShardedPassTime<double> apart =
        OverlapGathered(Tasks{other, one, one, one, one, one, other}, 0.8);
    const ShardedPassTime<double> alike =
        OverlapGathered(Tasks{other, five, other}, 0.8);
    CHECK(alike.waiting.base() == Near(apart.waiting.base(), 1e-5));
    CHECK(alike.slowed.base() == Near(apart.slowed.base(), 1e-5));
    CHECK(alike.sending.base() == Near(apart.sending.base(), 1e-5));
  }
  // 8 s beside the first unit, of which it computes 6.4; 3.6 after them.
  Tasks tasks = {Task(0, 10, 0), Task(4, 10, 0)};
  tasks[1].gather.beside = Second(8.0);
  const ShardedPassTime<double> slow = OverlapGathered(tasks, 0.8);
  CHECK(ToSeconds(slow.waiting) == 0.0);
  CHECK(ToSeconds(slow.slowed) == Near(1.6, 1e-5));
}

// 10 s each: a sum of 25 s behind the second of five units is over before they
// are, where the unit but one behind it would wait 15 s.
TEST_CASE("no unit of ranks that hold all parameters waits for a sum") {
  std::vector<ShardTask<double>> tasks(5, Task(0, 10, 0));
  tasks[1].reduce = {Second(25.0), Second(25.0)};
  const ShardedPassTime<double> hidden = OverlapSummed(tasks, 1.0);
  CHECK(hidden.waiting.base() == 0.0);
  CHECK(hidden.slowed.base() == 0.0);
  CHECK(hidden.sending.base() == Near(25, 1e-5));
  CHECK(OverlapGathered(tasks, 1.0).waiting.base() == Near(15, 1e-5));
  // 20 s beside it at 0.8 compute 16: the last two end 5 s late, and 4 s of a
  // sum behind the last are in the open.
  tasks[4].reduce = {Second(4.0), Second(4.0)};
  const ShardedPassTime<double> slow = OverlapSummed(tasks, 0.8);
  CHECK(slow.slowed.base() == Near(5, 1e-5));
  CHECK(slow.waiting.base() == Near(4, 1e-5));
}

TEST_CASE("gathers and sums over hosts and copies") {
  const RingLevel<double> ring{Second(1e-5), GBPerSecond(100)};
  const RingLevel<double> across{Second(2e-5), GBPerSecond(10)};
  const Bytes<> size = Byte(8e9);
  // 7 (1e-5 + 8e9 / 8e11)
  const ShardGroups host{8, 1, 8};
  CHECK(ToSeconds(GatherTime(host, size, ring, across)) == Near(0.07007, 1e-5));
  CHECK(ToSeconds(ReduceTime(host, size, ring, across)) == Near(0.07007, 1e-5));
  CHECK(ToBytes(GatherTraffic(host, size)) == Near(7e9, 1e-5));
  // One copy over two hosts: 14 steps inside, one between, 15 / 16 of the bytes
  // through 8 x 10 GB/s.
  const ShardGroups wide{16, 1, 8};
  CHECK(ToSeconds(GatherTime(wide, size, ring, across)) ==
        Near(14e-5 + 2e-5 + 15.0 * 8e9 / (16.0 * 80e9), 1e-5));
  // docs/models/sharding.md, "Over several hosts".
  CHECK(ToMilliseconds(
            GatherTime<double>(wide,
                               Byte(436'224'000.0),
                               {Microseconds(3.4), GBPerSecond(352.5)},
                               {Microseconds(20), GBPerSecond(940.0 / 24)})) ==
        Near(1.37278, 1e-5));
  // A copy a host: shards of 1e9 averaged, 2 (2e-5 + 1e9 / 2e10).
  const ShardGroups hybrid{8, 2, 8};
  CHECK(ToSeconds(GatherTime(hybrid, size, ring, across)) ==
        Near(0.07007, 1e-5));
  CHECK(ToSeconds(ReduceTime(hybrid, size, ring, across)) ==
        Near(0.07007 + 0.10004, 1e-5));
  CHECK(ToBytes(ReduceTraffic(hybrid, size)) == Near(8e9, 1e-5));
}

TEST_CASE("ranks that cannot share are named") {
  Workload w = ShardedLlama(Shard::kFsdp);
  CHECK(RefusalOf(w).empty());
  w.parallel.replicate = 3;
  CHECK(RefusalOf(w).starts_with(
      "parallel.replicate: expected a divisor of data = 8, got 3"));
  w.parallel.replicate = 8;
  CHECK(
      RefusalOf(w).starts_with("parallel.shard: expected none where each of 8 "
                               "ranks holds everything, got fsdp"));
  w.parallel = {1, Shard::kZero1, 1, true};
  CHECK(
      RefusalOf(w).starts_with("parallel.shard: expected none where each of 1 "
                               "rank holds everything, got zero1"));
  w.parallel = {8, Shard::kZero1, 1, false};
  CHECK(RefusalOf(w).starts_with("parallel.reshard_after_forward: "));
  w.parallel = {8, Shard::kNone, 2, true};
  CHECK(RefusalOf(w).starts_with("parallel.replicate: expected 1 without"));
  w.parallel = {8, Shard::kZero1, 1, true};
  w.compression = {CompressionKind::kPowerSgd, 4};
  CHECK(
      RefusalOf(w).starts_with("gradient_compression: expected none or half"));

  CHECK(OverDevices({}, 4).data == 4);
  CHECK(OverDevices({0, Shard::kFsdp, 1, true}, 1) == Parallel{});
  CHECK_THROWS_AS(OverDevices({8, Shard::kFsdp, 1, true}, 4), InputError);
  CHECK_THROWS_AS(OverDevices({0, Shard::kFsdp, 3, true}, 8), InputError);
}

}  // namespace trainfare::model
