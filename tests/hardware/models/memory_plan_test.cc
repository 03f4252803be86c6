// How a device's software holds a workload (hardware/models/memory_plan.h), and
// the runs that are known to have fitted or failed.

#include "hardware/models/memory_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "hardware/models/device_memory.h"
#include "hardware/models/device_models.h"
#include "model/activations.h"
#include "model/memory.h"
#include "model/presets.h"
#include "model/split.h"
#include "tests/near.h"

namespace trainfare::hardware {
namespace {

const Device& Called(const char* name) {
  return DeviceCatalog::Shipped().Find(name);
}

model::Workload BertToPlace(int64_t batch,
                            model::Precision precision,
                            model::Fusion fusion) {
  model::Workload w;
  w.architecture = model::FindArchitecture("bert-base-cased");
  w.batch = batch;
  w.sequence_length = 512;
  w.precision = precision;
  w.stack.fusion = fusion;
  return w;
}

constexpr auto kBf16 = model::Precision::kBf16;
constexpr auto kWhole = model::Fusion::kCompiled;
constexpr auto kTraced = model::Fusion::kEager;

bool Fits(const char* device, const model::Workload& w) {
  return PlanMemory(Called(device), w).fits();
}

std::optional<int64_t> Largest(const Device& device,
                               const model::Workload& w,
                               int64_t most) {
  model::MemoryOfBatches memory;
  return LargestBatch(device, w, most, 1, 1, memory);
}

// scenarios/published/imdb_tpu_runs.yaml: two cores a chip.
TEST_CASE("TPUs hold what is known to have run on them") {
  CHECK(Fits("tpu_v2", BertToPlace(32, model::Precision::kFp32, kWhole)));
  CHECK(Fits("tpu_v2", BertToPlace(128, kBf16, kWhole)));
  CHECK(Fits("tpu_v3", BertToPlace(256, kBf16, kWhole)));
  CHECK(Fits("tpu_v2", BertToPlace(32, model::Precision::kFp32, kTraced)));
  CHECK(Fits("tpu_v2", BertToPlace(48, kBf16, kTraced)));
  CHECK_FALSE(Fits("tpu_v2", BertToPlace(64, kBf16, kTraced)));
  // The largest of batches 16, 32, .. a core that ran.
  CHECK_FALSE(Fits("tpu_v2", BertToPlace(256, kBf16, kWhole)));
}

// 16 bytes a parameter of 1.1 billion are 17.6 GB, whatever is computed anew.
TEST_CASE("what activations do not hold cannot be computed anew") {
  model::Workload w = BertToPlace(1, kBf16, kWhole);
  w.architecture = model::FindArchitecture("tinyllama-1.1b");
  w.optimizer.implementation = model::OptimizerImplementation::kFused;
  for (const int64_t length : {64, 512, 2048}) {
    w.sequence_length = length;
    for (const int64_t batch : {1, 2, 4, 6, 8, 32}) {
      CAPTURE(length);
      CAPTURE(batch);
      w.batch = batch;
      const MemoryPlan plan = PlanMemory(Called("tpu_v5e"), w);
      CHECK_FALSE(plan.fits());
      for (const model::MemoryTerm& term : plan.needed.terms) {
        CHECK(term.size >= model::Bytes<>());
      }
    }
  }
}

// Which moment is the worst changes with the batch, what is needed at it only
// grows.
TEST_CASE("more sequences never need less memory") {
  for (const char* device :
       {"h100_sxm", "tpu_v4", "tpu_v3", "gaudi2", "trainium1", "ipu_gc200"}) {
    for (const model::Shard shard :
         {model::Shard::kNone, model::Shard::kZero1, model::Shard::kZero3}) {
      CAPTURE(device);
      CAPTURE(static_cast<int>(shard));
      model::Workload w = BertToPlace(1, kBf16, kWhole);
      w.architecture = model::FindArchitecture("llama-3.2-1b");
      w.sequence_length = 64;
      if (shard != model::Shard::kNone) w.parallel.data = 8;
      w.parallel.shard = shard;
      double least = 0;
      for (w.batch = 1; w.batch <= 24; ++w.batch) {
        const double needed =
            ToBytes(PlanMemory(Called(device), w).needed.total());
        CHECK(needed >= least);
        least = needed;
      }
    }
  }
}

// Two cores a chip: each has a quarter of what two chips share, and the chip
// two quarters.
TEST_CASE("cores share what ranks share") {
  const auto held = [](model::Shard shard, std::string_view term) {
    model::Workload w = BertToPlace(2, kBf16, kWhole);
    w.parallel.data = 2;
    w.parallel.shard = shard;
    return ToBytes(PlanMemory(Called("tpu_v3"), w).needed.Of(term));
  };
  const auto bytes = static_cast<double>(
      4 * model::TotalParameters(model::FindArchitecture("bert-base-cased")));
  CHECK(held(model::Shard::kNone, "optimizer state") == 2 * 2 * bytes);
  CHECK(held(model::Shard::kZero3, "optimizer state") ==
        Near(2 * bytes / 2, 0.01));
}

TEST_CASE("what does not fit is computed anew, as little as must be") {
  const Device& tpu = Called("tpu_v2");
  const MemoryPlan small = PlanMemory(tpu, BertToPlace(8, kBf16, kWhole));
  CHECK(small.anew == 0);
  double last = 0;
  for (const int64_t batch : {16, 32, 64, 96, 128}) {
    const MemoryPlan plan = PlanMemory(tpu, BertToPlace(batch, kBf16, kWhole));
    CAPTURE(batch);
    REQUIRE(plan.fits());
    CHECK(plan.anew >= last);
    CHECK(plan.anew < 1.0);
    // Memory is full exactly where something is computed anew.
    if (plan.anew > 0) {
      CHECK(plan.needed.total() / plan.capacity == Near(1.0, 1e-6));
    }
    last = plan.anew;
  }
  CHECK(last > 0);
}

TEST_CASE("time pays for what memory computes anew") {
  model::Workload w = BertToPlace(128, kBf16, kWhole);
  Device tpu = Called("tpu_v2");
  std::vector<double> p;
  for (const ParameterInfo& info : ParametersOf(tpu)) p.push_back(info.prior);
  const auto step = [&] {
    return EstimateStep<double>(
        tpu, w, model::ExpandKernels(w), std::span<const double>(p));
  };
  const StepTime<double> tight = step();
  tpu.memory_capacity = model::GiB(1000);
  const StepTime<double> ample = step();
  CHECK(tight.backward.total() > ample.backward.total());
  CHECK(tight.forward.total().base() == ample.forward.total().base());
  // Never more than a forward pass.
  CHECK(tight.backward.total() - ample.backward.total() <
        ample.forward.total());
}

TEST_CASE("a pipeline takes a batch in parts") {
  model::Workload w;
  w.architecture = model::FindArchitecture("bert-large-uncased");
  w.architecture.head = model::Head::kPreTraining;
  w.predictions_per_sequence = 20;
  w.sequence_length = 128;
  w.precision = model::Precision::kFp16;
  w.stack.fusion = kWhole;
  for (const int64_t batch : {512, 1024, 2048}) {
    w.batch = batch;
    CHECK(Fits("cerebras_wse2", w));
  }
  // One sequence that is larger than the wafer is not taken in parts.
  w.batch = 1;
  Device small = Called("cerebras_wse2");
  small.memory_capacity = model::MB(10);
  CHECK_FALSE(PlanMemory(small, w).fits());
  CHECK_FALSE(Largest(small, w, 1024).has_value());
  CHECK(Largest(Called("cerebras_wse2"), w, 1024) == 1024);
}

TEST_CASE("a wafer holds what experts keep, and none of frozen blocks") {
  model::Workload w;
  w.architecture = model::FindArchitecture("mixtral-8x7b");
  w.sequence_length = 512;
  w.precision = model::Precision::kFp16;
  w.stack.fusion = kWhole;
  const auto held = [&] {
    return PlanMemory(Called("cerebras_wse2"), w)
        .needed.Of("activations")
        .base();
  };
  CHECK(held() == static_cast<double>(
                      32 * model::LayerActivationBytes(w, /*experts=*/true)));
  w.architecture = model::FindArchitecture("gpt2");
  w.trainable.frozen_layers = 4;
  CHECK(held() == static_cast<double>(8 * model::LayerActivationBytes(w)));
}

// 4 % of what tensors take, 17 where all blocks are computed anew; none that XLA
// lays out, and none of it stands in the way of what fits.
TEST_CASE("an allocator holds gaps beyond tensors, by hand") {
  const Device& device = DeviceCatalog::Shipped().Find("a100_sxm4_80gb");
  model::Workload w;
  w.architecture = model::FindArchitecture("llama-3.2-1b");
  w.batch = 4;
  w.sequence_length = 1024;
  w.precision = model::Precision::kBf16;
  const auto share = [&] {
    const model::MemoryEstimate needed = PlanMemory(device, w).needed;
    return needed.in_gaps / needed.without_context();
  };
  CHECK(share() == Near(0.04, 1e-5));
  w.gradient_checkpointing = true;
  CHECK(share() == Near(0.17, 1e-5));
  w.checkpointed_blocks = 4;
  CHECK(share() == Near(0.04, 1e-5));
  w.stack.fusion = model::Fusion::kXla;
  CHECK(share() == 0.0);
}

// Of DeepSeek-V3's 61 blocks in 20 stages one in the middle has four, all others
// have three, the first of them without experts.
TEST_CASE("a pipeline needs what its fullest stage does") {
  const Device& device = Called("h100_sxm");
  model::Workload w;
  w.architecture = model::FindArchitecture("deepseek-v3");
  w.sequence_length = 4096;
  w.batch = 1;
  w.accumulation = 32;
  w.precision = kBf16;
  w.stack = {model::Fusion::kMegatron, model::Attention::kFlash};
  w.stack.narrow_weights = true;
  w.gradient_checkpointing = true;
  w.parallel = {.data = 8,
                .shard = model::Shard::kZero1,
                .tensor = 8,
                .sequence = true,
                .expert = 8,
                .pipeline = 20};
  const auto of = [&](int64_t stage) {
    return model::EstimateMemory(model::OfStageInFlight(w, stage),
                                 SurroundingsOf(device, 8))
        .total();
  };
  model::Bytes<> most;
  for (int64_t stage = 0; stage < 20; ++stage) most = std::max(most, of(stage));
  const model::MemoryEstimate needed = PlanMemory(device, w, 1280).needed;
  CHECK(needed.total().base() == most.base());
  CHECK(most.base() > 1.2 * std::max({of(0), of(1), of(19)}).base());
}

TEST_CASE("the largest batch fits, and one sequence more does not") {
  for (const char* name : {"a100_sxm4_80gb", "tpu_v3", "trainium1"}) {
    const Device device = Called(name);
    for (const char* of : {"bert-large-uncased", "llama-3.2-1b"}) {
      model::Workload w;
      w.architecture = model::FindArchitecture(of);
      w.sequence_length = 512;
      w.precision = model::Precision::kBf16;
      const std::optional<int64_t> largest = Largest(device, w, 1 << 20);
      w.batch = largest.value_or(0) + 1;
      CHECK_FALSE(PlanMemory(device, w).fits());
      if (!largest) continue;
      w.batch = *largest;
      CHECK(PlanMemory(device, w).fits());
    }
  }
}

// A wafer's weights stream from outside, whatever it holds.
TEST_CASE("a little more memory does not make a step slower") {
  model::Workload w;
  w.architecture = model::FindArchitecture("bert-large-uncased");
  w.sequence_length = 128;
  w.batch = 1024;
  w.precision = model::Precision::kFp16;
  w.stack.fusion = kWhole;
  for (const char* name : {"cerebras_wse2", "ipu_gc200"}) {
    Device device = Called(name);
    std::vector<double> p;
    for (const ParameterInfo& info : ParametersOf(device)) {
      p.push_back(info.prior);
    }
    const auto total = [&] {
      return EstimateStep<double>(
                 device, w, model::ExpandKernels(w), std::span<const double>(p))
          .total()
          .base();
    };
    for (const auto work : {model::Work::kTraining, model::Work::kForward}) {
      w.work = work;
      const Device as_it_is = device;
      const double before = total();
      device.on_chip_memory = as_it_is.on_chip_memory * 1.01;
      CHECK(total() <= before);
      device = as_it_is;
      device.memory_capacity = as_it_is.memory_capacity * 1.01;
      CHECK(total() <= before);
      device = as_it_is;
    }
  }
}

}  // namespace
}  // namespace trainfare::hardware
