#include "scenarios/job/estimate.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

#include "calibrate/fit/fit_folders.h"
#include "calibrate/fit/predictor.h"
#include "hardware/catalog/device.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/presets.h"
#include "model/units.h"
#include "model/workload.h"
#include "scenarios/job/cluster.h"
#include "scenarios/job/device_memo.h"
#include "scenarios/job/fits.h"
#include "scenarios/job/scenario.h"
#include "tests/near.h"
#include "tests/scenarios/hermetic.h"
#include "tests/scenarios/job/datasheet.h"

namespace trainfare::scenarios {

TEST_CASE("the terms of a step add up to it") {
  const Scenario scenario = LoadScenario("emotion_bert_base");
  for (const int64_t devices : {1, 4}) {
    const JobEstimate job =
        EstimateJob(scenario, Datasheet(A100()), ClusterOf(A100(), devices));
    REQUIRE(job.fits());
    double sum = 0;
    for (const Term& term : TermsOf(job.step)) {
      CHECK(term.time.base() >= 0);
      sum += ToSeconds(term.time);
    }
    CHECK(sum == Near(ToSeconds(job.step.total())));
    CHECK(job.step.low_factor < 1.0);
    CHECK(job.step.high_factor > 1.0);
    CHECK(job.run_low < job.run.total());
    CHECK(job.run_high > job.run.total());
    CHECK(job.run_low_95 < job.run_low);
    CHECK(job.run_high_95 > job.run_high);
    CHECK(job.run_low_95.base() >= 0);
    const double sigma = job.step.log_sigma;
    CHECK(std::log(job.step.HighFactor95(sigma)) ==
          Near(1.94319 * std::log(job.step.high_factor), 1e-5));
    CHECK(job.step.LowFactor95(sigma) < job.step.low_factor);
  }
}

TEST_CASE("jobs that share a memo have the answers of each by itself") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  const calibrate::Predictor predictor = Datasheet(A100());
  DeviceMemo memo(predictor);
  for (const int64_t batch : {16, 64, 16}) {
    scenario.workload.batch = batch;
    for (const int64_t devices : {4, 1, 8}) {
      const Cluster cluster = ClusterOf(A100(), devices);
      const JobEstimate alone = EstimateJob(scenario, predictor, cluster);
      const JobEstimate shared = EstimateJob(scenario, memo, cluster);
      CHECK(shared.run.total() == alone.run.total());
      CHECK(shared.run_high == alone.run_high);
      CHECK(shared.memory.total() == alone.memory.total());
      CHECK(shared.largest_batch == alone.largest_batch);
    }
  }
}

TEST_CASE("parts of an estimate are those of the whole, to the last bit") {
  for (const char* name :
       {"emotion_bert_base", "llama_8b_fsdp", "llama_8b_lora"}) {
    Scenario scenario = LoadScenario(name);
    scenario.workload.parallel.data = 0;  // as many as there are devices
    const calibrate::Predictor predictor = Datasheet(A100());
    for (const int64_t devices : {1, 8}) {
      const Cluster cluster = ClusterOf(A100(), devices);
      DeviceMemo memo(predictor);
      const JobEstimate times =
          EstimateJob(scenario, memo, cluster, Detail::kTimes);
      const JobEstimate memory =
          EstimateJob(scenario, memo, cluster, Detail::kMemory);
      const JobEstimate step =
          EstimateJob(scenario, memo, cluster, Detail::kStep);
      const JobEstimate all = EstimateJob(scenario, predictor, cluster);
      CHECK(memory.fits() == all.fits());
      CHECK(memory.memory.total() == all.memory.total());
      CHECK(step.step.total() == all.step.total());
      CHECK(step.samples_per_second == all.samples_per_second);
      CHECK(times.mfu == all.mfu);
      CHECK(times.fits() == all.fits());
      CHECK(times.run.total() == all.run.total());
      CHECK(times.step.total() == all.step.total());
      CHECK(times.energy == all.energy);
      CHECK(times.run_high == times.run.total());
      if (all.fits()) CHECK(all.run_high > all.run.total());
    }
  }
}

TEST_CASE("rates follow from the step by their definitions") {
  const Scenario scenario = LoadScenario("emotion_bert_base");
  const JobEstimate job =
      EstimateJob(scenario, Datasheet(A100()), ClusterOf(A100(), 1));
  const double step = ToSeconds(job.step.total());
  CHECK(job.samples_per_second == Near(64.0 / step, 1e-12));
  CHECK(job.tokens_per_second == Near(64.0 * 32.0 / step, 1e-12));
  const double flops =
      3.0 * static_cast<double>(model::ForwardModelFlops(scenario.workload));
  CHECK(job.mfu == Near(flops / step / 312e12, 1e-12));
  // It is not causal.
  CHECK_FALSE(job.mfu_causal.has_value());
  CHECK(job.run.steps_per_epoch == 250);
}

TEST_CASE("MFU of a decoder is less by the pairs that it does not see") {
  const Scenario scenario = LoadScenario("llama_1b_pretraining");
  const JobEstimate job =
      EstimateJob(scenario, Datasheet(A100()), ClusterOf(A100(), 8));
  REQUIRE(job.fits());
  REQUIRE(job.mfu_causal.has_value());
  const auto flops = [&](model::CountedPairs pairs) {
    return static_cast<double>(
        model::MicroBatchModelFlops(job.workload, pairs));
  };
  CHECK(*job.mfu_causal < job.mfu);
  CHECK(*job.mfu_causal / job.mfu == Near(flops(model::CountedPairs::kSeen) /
                                              flops(model::CountedPairs::kAll),
                                          1e-12));
}

TEST_CASE("MFU of an encoder with windows is less by what these leave out") {
  const Scenario scenario = ParseScenario(
      "name: a\nmodel: modernbert-base\ntask: "
      "sequence-classification\ndataset: { train: 1000 }\n"
      "epochs: 1\nbatch: 4\npadding: { static: 8192 }\n"
      "precision: bf16\noptimizer: { name: adamw, implementation: "
      "fused }\n"
      "stack: compiled\nattention: flash\n",
      "a",
      {});
  const JobEstimate job =
      EstimateJob(scenario, Datasheet(A100()), ClusterOf(A100(), 1));
  REQUIRE(job.fits());
  REQUIRE(job.mfu_causal.has_value());
  // Of 22 blocks 14 see 64 positions to each side and their own: s 129 pairs,
  // less the 64 x 65 that would be beyond both ends. A pair is 2 x 2 x 768 FLOPs,
  // three times in a step, and there are 4 sequences.
  const double s = 8192.0;
  const double unseen = 14.0 * (s * s - (s * 129.0 - 64.0 * 65.0));
  const double left_out = 3.0 * 4.0 * unseen * 4.0 * 768.0;
  CHECK(*job.mfu_causal / job.mfu ==
        Near(1.0 - left_out / job.model_flops, 1e-6));
}

TEST_CASE("an epoch without a step is refused") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  scenario.train_samples = 10;
  scenario.drop_last = true;
  CHECK_THROWS_WITH_AS(
      EstimateJob(scenario, Datasheet(A100()), ClusterOf(A100(), 1)),
      "drop_last: expected at least the 64 samples of a step in an epoch, got "
      "10; hint: without it the step that is not full is trained",
      model::InputError);
}

TEST_CASE("what does not fit has a memory and no time") {
  Scenario scenario = LoadScenario("squad_bert_large");
  scenario.workload.batch = 512;
  const hardware::Device& t4 = hardware::DeviceCatalog::Shipped().Find("t4");
  const JobEstimate job =
      EstimateJob(scenario, Datasheet(t4), ClusterOf(t4, 1));
  CHECK_FALSE(job.fits());
  CHECK(job.run.total() == model::Seconds<>());
  REQUIRE(job.largest_batch.has_value());
  scenario.workload.batch = *job.largest_batch;
  CHECK(EstimateJob(scenario, Datasheet(t4), ClusterOf(t4, 1)).fits());
  scenario.workload.batch = *job.largest_batch + 1;
  CHECK_FALSE(EstimateJob(scenario, Datasheet(t4), ClusterOf(t4, 1)).fits());
}

TEST_CASE("an inference chip answers for forward passes, and for those alone") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  scenario.PadTo(128);
  scenario.workload.architecture = model::FindArchitecture("bert-tiny");
  scenario.workload.batch = 1;
  scenario.workload.precision = model::Precision::kFp16;
  scenario.eval_samples = 1000;
  const hardware::Device& groq =
      hardware::DeviceCatalog::Shipped().Find("groq_lpu");
  const calibrate::Predictor predictor(
      groq, calibrate::LoadFitsOf("groq_lpu").fits.front());
  CHECK_THROWS_AS(EstimateJob(scenario, predictor, ClusterOf(groq, 1)),
                  model::InputError);
  scenario.workload.work = model::Work::kForward;
  const JobEstimate job = EstimateJob(scenario, predictor, ClusterOf(groq, 1));
  REQUIRE(job.fits());
  // 59.56 us were measured (docs/models/dataflow.md).
  CHECK(ToSeconds(job.step.total()) == Near(59.56e-6, 0.03));
  CHECK(job.step.backward.total() == model::Seconds<>());
  CHECK(job.step.optimizer.total() == model::Seconds<>());
  CHECK(job.run.evaluation == model::Seconds<>());
  CHECK(job.step.figures == 4);
  const double flops =
      static_cast<double>(model::ForwardModelFlops(scenario.workload));
  CHECK(job.mfu == Near(flops / ToSeconds(job.step.total()) / 188e12, 1e-5));
  // Weights of 670 MB on a chip of 230.
  scenario.workload.architecture =
      model::FindArchitecture("bert-large-uncased");
  CHECK_THROWS_WITH_AS(EstimateJob(scenario, predictor, ClusterOf(groq, 1)),
                       doctest::Contains("groq_lpu holds 230 MB on chip"),
                       model::InputError);
}

TEST_CASE("slow input is what a step waits for") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  scenario.extras.load_per_sample = model::Milliseconds(100);
  const JobEstimate job =
      EstimateJob(scenario, Datasheet(A100()), ClusterOf(A100(), 1));
  CHECK(ToSeconds(job.step.total()) == Near(6.4));
  CHECK(job.Bottleneck().starts_with("input-bound"));
}

TEST_CASE("a graph of fixed shapes finds no rows for its experts") {
  const hardware::Device& tpu =
      hardware::DeviceCatalog::Shipped().Find("tpu_v5p");
  Scenario scenario = LoadScenario("emotion_bert_base");
  scenario.workload.architecture = model::FindArchitecture("olmoe-1b-7b");
  scenario.workload.batch = 1;
  for (const model::Fusion stack :
       {model::Fusion::kCompiled, model::Fusion::kLiger}) {
    scenario.workload.stack.fusion = stack;
    scenario.workload.stack.experts = model::ExpertKernels::kLoop;
    CHECK_THROWS_AS(EstimateJob(scenario, Datasheet(tpu), ClusterOf(tpu, 8)),
                    model::InputError);
    scenario.workload.stack.experts = model::ExpertKernels::kGrouped;
    CHECK_NOTHROW(EstimateJob(scenario, Datasheet(tpu), ClusterOf(tpu, 8)));
  }
}

TEST_CASE("nobody has measured a step that waits for its input") {
  const FitFolder none;
  Fits fits;
  const hardware::Device& h200 =
      hardware::DeviceCatalog::Shipped().Find("h200_sxm");
  Scenario scenario = LoadScenario("emotion_bert_base");
  scenario.workload.architecture.labels = 2;
  scenario.workload.precision = model::Precision::kFp32;
  scenario.workload.stack.fusion = model::Fusion::kFused;
  scenario.workload.optimizer.implementation =
      model::OptimizerImplementation::kFused;
  scenario.workload.batch = 8;
  scenario.padding = {};
  scenario.padding.kind = PaddingKind::kStatic;
  scenario.padding.length = 64;
  const auto grade = [&] {
    return EstimateJob(scenario, fits.PredictorOf(h200), ClusterOf(h200, 1))
        .step.grade;
  };
  CHECK(grade() == calibrate::Grade::kMeasured);
  scenario.extras.load_per_sample = model::Milliseconds(100);
  CHECK(grade() == calibrate::Grade::kInterpolated);
}

}  // namespace trainfare::scenarios
