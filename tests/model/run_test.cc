#include "model/run.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::model {
namespace {

// A step that costs 1 ms a sequence of a micro-batch, whatever its length.
Seconds<> PerSequence(int64_t batch, int64_t micro_batches, int64_t) {
  return Milliseconds(static_cast<double>(batch * micro_batches));
}
// A step that costs 1 ms a token position.
Seconds<> PerPosition(int64_t, int64_t, int64_t length) {
  return Milliseconds(static_cast<double>(length));
}

RunPlan EmotionPlan() {
  RunPlan plan;
  plan.train_samples = 16000;
  plan.eval_samples = 2000;
  plan.epochs = 3;
  plan.batch = 64;
  plan.lengths = {{32, 1.0}};
  return plan;
}

}  // namespace

TEST_CASE("16000 samples in batches of 64 are 250 steps an epoch") {
  const RunTimes run = EstimateRun(EmotionPlan(), PerSequence, PerSequence);
  CHECK(run.steps_per_epoch == 250);
  CHECK(ToSeconds(run.training) == Near(48.0, 1e-12));
  CHECK(ToSeconds(run.evaluation) == Near(6.0, 1e-12));
  CHECK(ToSeconds(run.total()) == Near(54.0, 1e-12));
  CHECK(ToSeconds(run.epoch(3)) == Near(18.0, 1e-12));
  CHECK(run.tokens == Near(3.0 * 16000 * 32, 1e-12));
}

TEST_CASE("evaluation goes through a pipeline in as many micro-batches") {
  RunPlan plan = EmotionPlan();
  plan.eval_micro_batches = 4;
  int64_t most = 0;
  const auto evaluating =
      [&](int64_t batch, int64_t micro_batches, int64_t length) {
        most = std::max(most, micro_batches);
        return PerSequence(batch, micro_batches, length);
      };
  const RunTimes run = EstimateRun(plan, PerSequence, evaluating);
  CHECK(most == 4);
  CHECK(run.steps_per_epoch == 250);
  // No time of a step hangs on how many there are here: as above.
  CHECK(ToSeconds(run.evaluation) == Near(6.0, 1e-12));
}

TEST_CASE("the last partial batch is a smaller step, unless dropped") {
  RunPlan plan = EmotionPlan();
  plan.eval_samples = 0;
  plan.train_samples = 100;
  plan.epochs = 1;
  // 64 + 36 sequences: 100 ms.
  RunTimes run = EstimateRun(plan, PerSequence, PerSequence);
  CHECK(run.steps_per_epoch == 2);
  CHECK(ToMilliseconds(run.training) == Near(100.0, 1e-12));
  plan.drop_last = true;
  run = EstimateRun(plan, PerSequence, PerSequence);
  CHECK(run.steps_per_epoch == 1);
  CHECK(ToMilliseconds(run.training) == Near(64.0, 1e-12));
}

TEST_CASE("a last step of full micro-batches is no new shape") {
  RunPlan plan = EmotionPlan();
  plan.eval_samples = 0;
  plan.epochs = 1;
  plan.batch = 8;
  plan.accumulation = 4;
  plan.compile_per_shape = Second(100.0);
  const auto shapes = [&](int64_t samples) {
    plan.train_samples = samples;
    return EstimateRun(plan, PerSequence, PerSequence).distinct_shapes;
  };
  CHECK(shapes(1024) == Near(1.0, 1e-5));
  // 31 steps and one micro-batch of 8; then two of 6.
  CHECK(shapes(1000) == Near(1.0, 1e-5));
  CHECK(shapes(1004) == Near(2.0, 1e-5));
}

TEST_CASE(
    "ranks that pad their own sequences train fewer tokens than the "
    "longest has") {
  RunPlan plan = EmotionPlan();
  plan.own_lengths = {{20, 1.0}};
  const RunTimes run = EstimateRun(plan, PerPosition, PerPosition);
  CHECK(run.tokens == Near(3.0 * 16000 * 20, 1e-12));
  CHECK(ToSeconds(run.training) == Near(750 * 0.032, 1e-12));
}

TEST_CASE("a partial step has as many micro-batches as its samples fill") {
  RunPlan plan = EmotionPlan();
  plan.eval_samples = 0;
  plan.epochs = 1;
  plan.batch = 8;
  plan.accumulation = 4;
  plan.devices = 2;
  plan.train_samples = 64 + 40;  // 20 a device: 3 micro-batches of 7
  int64_t partial_batch = 0;
  int64_t partial_micro_batches = 0;
  EstimateRun(
      plan,
      [&](int64_t batch, int64_t micro_batches, int64_t) {
        if (batch != 8) {
          partial_batch = batch;
          partial_micro_batches = micro_batches;
        }
        return Milliseconds(1.0);
      },
      PerSequence);
  CHECK(partial_micro_batches == 3);
  CHECK(partial_batch == 7);
}

TEST_CASE("devices share an epoch") {
  RunPlan plan = EmotionPlan();
  plan.devices = 4;
  const RunTimes run = EstimateRun(plan, PerSequence, PerSequence);
  CHECK(run.steps_per_epoch == 63);  // 62.5: the last one is half full
  CHECK(ToSeconds(run.training) == Near(3 * (62 * 0.064 + 0.032), 1e-12));
}

TEST_CASE("every distinct shape compiles once") {
  RunPlan plan = EmotionPlan();
  plan.eval_samples = 0;
  plan.compile_per_shape = Second(60.0);
  plan.lengths = {{16, 0.25}, {32, 0.75}};
  const RunTimes run = EstimateRun(plan, PerPosition, PerPosition);
  CHECK(run.distinct_shapes == Near(2.0));
  CHECK(ToSeconds(run.compile) == Near(120.0));
  // 750 steps: a quarter of 16 ms, the rest of 32 ms.
  CHECK(ToSeconds(run.training) ==
        Near(750 * (0.25 * 0.016 + 0.75 * 0.032), 1e-12));
  // A last batch that is not full, and evaluation, have shapes of their own.
  plan.train_samples = 16001;
  plan.lengths = {{32, 1.0}};
  plan.eval_samples = 2000;
  CHECK(EstimateRun(plan, PerPosition, PerPosition).distinct_shapes ==
        Near(4.0, 1e-12));
}

TEST_CASE("a step is never shorter than its batch takes to load") {
  RunPlan plan = EmotionPlan();
  plan.eval_samples = 0;
  plan.epochs = 1;
  plan.load_per_sample = Milliseconds(1.5);
  const RunTimes run = EstimateRun(plan, PerSequence, PerSequence);
  CHECK(ToSeconds(run.training) == Near(24.0, 1e-12));
  CHECK(ToSeconds(run.input_wait) == Near(8.0, 1e-12));
  plan.load_per_sample = Milliseconds(0.5);
  CHECK(ToSeconds(EstimateRun(plan, PerSequence, PerSequence).input_wait) ==
        0.0);
}

// docs/guide/scenarios.md, "From a step to a run": of 32 tokens a sample,
// 16 B / 304 MB/s = 52.6 ns a token.
TEST_CASE("each device loads its own tokens") {
  RunPlan plan = EmotionPlan();
  plan.eval_samples = 0;
  plan.epochs = 1;
  plan.load_per_token = model::Seconds<>(16.0 / 304e6);
  CHECK(ToSeconds(plan.Loading(64.0, 64.0 * 512)) == Near(1.7247e-3, 1e-4));
  const double alone =
      ToSeconds(EstimateRun(plan, PerSequence, PerSequence).input_wait);
  CHECK(alone == 0.0);
  plan.load_per_token = Milliseconds(1.0);
  const RunTimes one = EstimateRun(plan, PerSequence, PerSequence);
  CHECK(ToSeconds(one.input_wait) > 0.0);
  plan.devices = 2;
  CHECK(ToSeconds(EstimateRun(plan, PerSequence, PerSequence).training) ==
        Near(ToSeconds(one.training) / 2));
}

TEST_CASE("start-up once, a checkpoint an epoch") {
  RunPlan plan = EmotionPlan();
  plan.start_up = Second(30.0);
  plan.checkpoint = Second(2.0);
  const RunTimes run = EstimateRun(plan, PerSequence, PerSequence);
  CHECK(ToSeconds(run.total()) == Near(30 + 54 + 3 * 2, 1e-12));
}

}  // namespace trainfare::model
