#include "calibrate/session/runs_towards.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hardware/catalog/device.h"
#include "model/error.h"
#include "model/fields.h"
#include "model/memory.h"
#include "model/presets.h"
#include "model/validate.h"

namespace trainfare::calibrate {
namespace {

hardware::Device Host(double memory_gib) {
  hardware::Device host = hardware::DeviceCatalog::Shipped().Find("cpu");
  host.memory_capacity = model::Byte(memory_gib * 1024.0 * 1024.0 * 1024.0);
  return host;
}

// One billion parameters, as a scenario of continued pre-training asks.
model::Workload Asked() {
  model::Workload w;
  w.architecture = model::FindArchitecture("llama-3.2-1b");
  w.batch = 4;
  w.sequence_length = 2048;
  w.accumulation = 8;
  w.stack.fusion = model::Fusion::kLiger;
  w.stack.attention = model::Attention::kFlash;
  w.parallel.shard = model::Shard::kZero1;
  w.gradient_checkpointing = true;
  w.optimizer.implementation = model::OptimizerImplementation::kFused;
  return w;
}

TEST_CASE("sizes of a model: fewer layers, narrower, the same heads") {
  const model::Architecture& whole = model::FindArchitecture("qwen2.5-0.5b");
  const std::vector<model::Architecture> sizes = SizesOf(whole);
  // 14 heads: whole and half as wide; 24, 12, 6, 3 and 1 layers of each.
  REQUIRE(sizes.size() == 10);
  CHECK(sizes.front() == whole);
  CHECK(sizes[1].name == "qwen2.5-0.5b, 12 layers");
  CHECK(sizes[9].name == "qwen2.5-0.5b, 1 layer, 1/2 wide");
  CHECK(sizes[9].hidden == whole.hidden / 2);
  CHECK(sizes[9].heads == 7);
  CHECK(sizes[9].key_heads() == 1);
  CHECK(sizes[9].query_head_size() == whole.query_head_size());
  CHECK(sizes[9].vocabulary == whole.vocabulary);
  for (const char* name : {"llama-3.2-1b",
                           "mixtral-8x7b",
                           "gemma-2-2b",
                           "deepseek-v2-lite",
                           "bert-base-uncased",
                           "transformer-base"}) {
    CAPTURE(name);
    const auto all = SizesOf(model::FindArchitecture(name));
    for (size_t i = 0; i < all.size(); ++i) {
      CAPTURE(all[i].name);
      model::Workload w;
      w.architecture = all[i];
      CHECK_NOTHROW(model::Validate(w));
      // Else the trainer has no such blocks.
      CHECK(model::HasPlainBlock(all[i]) == model::HasPlainBlock(all[0]));
      const bool fewer = i > 0 && all[i].hidden == all[i - 1].hidden;
      if (fewer) {
        CHECK(model::TotalParameters(all[i]) <
              model::TotalParameters(all[i - 1]));
      }
    }
  }
}

TEST_CASE("the runs are the asked model's, as this machine can run them") {
  const hardware::Device host = Host(16.0);
  const PlanOptions plan = PlanTowards(host, {Asked()});
  REQUIRE(plan.scenarios.size() == 1);
  // Asked is one step of one device, in its own stack.
  CHECK(plan.scenarios[0].architecture == Asked().architecture);
  CHECK(plan.scenarios[0].stack.fusion == model::Fusion::kLiger);
  CHECK(plan.scenarios[0].accumulation == 1);
  CHECK(plan.scenarios[0].parallel == model::Parallel{});
  CHECK(plan.candidates.size() > 50);
  CHECK(plan.candidates.size() <= 700);
  bool smaller = false;
  for (const model::Workload& run : plan.candidates) {
    CHECK(run.architecture.name.starts_with("llama-3.2-1b"));
    CHECK(run.stack.fusion == model::Fusion::kEager);
    CHECK(run.stack.attention == model::Attention::kFlash);
    CHECK(run.gradient_checkpointing);
    CHECK(run.sequence_length <= 2048);
    CHECK(run.batch <= 4);
    CHECK(model::EstimateMemory(run, {}).total() <= host.memory_capacity * 0.6);
    smaller = smaller || run.architecture.layers < 16;
  }
  CHECK(smaller);
  // 1.2 billion parameters and their state are 20 GB: not on this one.
  const auto whole = [&](const model::Workload& run) {
    return run.architecture == Asked().architecture;
  };
  CHECK(std::none_of(plan.candidates.begin(), plan.candidates.end(), whole));
  const PlanOptions more = PlanTowards(Host(256.0), {Asked()});
  CHECK(std::any_of(more.candidates.begin(), more.candidates.end(), whole));
}

// As short as what is asked, where that is shorter than the shortest else.
TEST_CASE("a short length is run at its own") {
  model::Workload w = Asked();
  w.architecture = model::FindArchitecture("bert-tiny");
  w.sequence_length = 8;
  const PlanOptions plan = PlanTowards(Host(16.0), {w});
  REQUIRE(!plan.candidates.empty());
  for (const model::Workload& run : plan.candidates) {
    CHECK(run.sequence_length == 8);
  }
}

TEST_CASE("what the trainer does not have is left to the formulas") {
  model::Workload w = Asked();
  w.architecture = model::FindArchitecture("bert-base-uncased");
  w.sequence_length = 128;
  w.trainable.lora_rank = 8;
  w.trainable.lora.query = true;
  w.optimizer.kind = model::OptimizerKind::kLamb;
  for (const model::Workload& run : PlanTowards(Host(16.0), {w}).candidates) {
    // Attention in one kernel has no dropout on a processor.
    CHECK(run.stack.attention == model::Attention::kMaterialised);
    CHECK(run.trainable.everything());
    CHECK(!run.gradient_checkpointing);
    CHECK(run.optimizer.kind == model::OptimizerKind::kAdamW);
  }
}

TEST_CASE("tables of another width and ELECTRA's head are set aside") {
  model::Workload w = Asked();
  for (const char* name : {"electra-small", "electra-base"}) {
    CAPTURE(name);
    w.architecture = model::FindArchitecture(name);
    w.sequence_length = 128;
    const PlanOptions plan = PlanTowards(Host(16.0), {w});
    CHECK(!plan.candidates.empty());
    for (const model::Workload& run : plan.candidates) {
      const model::Architecture& a = run.architecture;
      CHECK(!a.projects_embeddings());
      CHECK(a.pooler == (a.family == model::Family::kEncoder));
      CHECK(!a.classifier_dense);
    }
  }
  // RoBERTa's is the trainer's.
  w.architecture = model::FindArchitecture("roberta-base");
  const PlanOptions roberta = PlanTowards(Host(16.0), {w});
  CHECK(roberta.candidates.front().architecture.classifier_dense);
}

TEST_CASE("adapters of experts are left to the formulas") {
  model::Workload w = Asked();
  w.architecture.experts = 4;
  w.architecture.experts_per_token = 2;
  w.architecture.expert_intermediate = 1024;
  w.stack.experts = model::ExpertKernels::kGrouped;
  w.trainable.lora_rank = 8;
  w.trainable.lora.feed_forward_in = true;
  w.trainable.lora_dropout = 0.1;
  model::LoraMatrices usual;
  usual.query = usual.value = true;
  const PlanOptions alone = PlanTowards(Host(256.0), {w});
  for (const model::Workload& run : alone.candidates) {
    CHECK(run.stack.experts == model::ExpertKernels::kOfStack);
    CHECK(run.trainable.lora == usual);
    CHECK(run.trainable.lora_dropout == 0.0);
  }
  w.trainable.lora.output = true;
  usual = {};
  usual.output = true;
  const PlanOptions beside = PlanTowards(Host(256.0), {w});
  for (const model::Workload& run : beside.candidates) {
    CHECK(run.trainable.lora == usual);
  }
}

TEST_CASE("a machine that holds no size of it says so") {
  CHECK_THROWS_WITH_AS(
      PlanTowards(Host(0.01), {Asked()}),
      "no size of llama-3.2-1b that a calibration runs fits into 60 % of this "
      "machine's memory; hint: a shorter --length, or calibrate --models",
      model::InputError);
  model::Workload w = Asked();
  w.precision = model::Precision::kFp8;
  CHECK_THROWS_AS(PlanTowards(Host(16.0), {w}), model::InputError);
  CHECK_THROWS_WITH_AS(
      PlanTowards(hardware::DeviceCatalog::Shipped().Find("h100_sxm"), {w}),
      "precision: the trainer has fp32, tf32, fp16 and bf16, got fp8",
      model::InputError);
}

TEST_CASE("a model of which the trainer runs no size is refused at once") {
  model::Workload w = Asked();
  w.architecture = model::FindArchitecture("t5-small");
  CHECK_THROWS_WITH_AS(
      PlanTowards(Host(16.0), {w}),
      "model t5-small: the trainer has the blocks of BERT, GPT-2, Transformer "
      "base and big, and of decoders like Llama's",
      model::InputError);
  w.architecture = model::FindArchitecture("opt-350m");
  CHECK_THROWS_AS(PlanTowards(Host(16.0), {w}), model::InputError);
}

TEST_CASE("a plan is towards what is asked for, else towards the models") {
  CalibrateOptions options;
  options.precisions = {model::Precision::kFp32};
  options.models = {"bert-tiny"};
  const hardware::Device host = Host(16.0);
  CHECK(PlanOf(host, options).candidates.front().architecture.name ==
        "bert-tiny");
  options.towards = {Asked()};
  CHECK(PlanOf(host, options).scenarios.front().architecture.name ==
        "llama-3.2-1b");
}

}  // namespace
}  // namespace trainfare::calibrate
