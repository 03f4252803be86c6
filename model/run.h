#pragma once

// A whole training run from the time of its steps.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "model/padding.h"
#include "model/units.h"

namespace trainfare::model {

struct RunPlan {
  int64_t train_samples = 0;
  int64_t eval_samples = 0;  // evaluated after every epoch; 0 = never
  int64_t epochs = 1;
  int64_t batch = 1;  // per device and micro-batch
  int64_t accumulation = 1;
  // Of a pass that evaluates, which has no update to add up for: as many as fill
  // a pipeline.
  int64_t eval_micro_batches = 1;
  int64_t devices = 1;                // data parallel
  std::vector<PaddedLength> lengths;  // that a training step waits for
  // What each device pads its own sequences to; empty: the same.
  std::vector<PaddedLength> own_lengths;
  bool drop_last = false;  // skip a last batch that is not full

  Seconds<> start_up;           // before the first step, once
  Seconds<> compile_per_shape;  // of every distinct shape; 0 = eager
  bool warm_cache = false;      // every shape was compiled by an earlier run
  Seconds<> checkpoint;         // of one, after every epoch
  // What the input pipeline takes to make one sample of all devices ready; and
  // what each device's own takes for a token, padding included. 0 = never
  // waited for.
  Seconds<> load_per_sample;
  Seconds<> load_per_token;

  // What loading takes of a step of `samples` over all devices, `tokens` on
  // each.
  Seconds<> Loading(double samples, double tokens) const {
    return std::max(load_per_sample * samples, load_per_token * tokens);
  }
};

struct RunTimes {
  Seconds<> start_up;
  Seconds<> compile;
  Seconds<> training;  // all epochs, waiting for input included
  Seconds<> evaluation;
  Seconds<> checkpoint;
  Seconds<> input_wait;  // part of `training`
  int64_t steps_per_epoch = 0;
  double distinct_shapes = 0;  // expected
  // Training steps whose length is not that of the one before, the first among
  // them: expected.
  double shape_changes = 0;
  double tokens = 0;  // trained, padding included

  // What the steps themselves take.
  Seconds<> stepping() const { return training - input_wait + evaluation; }
  Seconds<> total() const {
    return start_up + compile + training + evaluation + checkpoint;
  }
  Seconds<> epoch(int64_t epochs) const {
    return (training + evaluation + checkpoint) / static_cast<double>(epochs);
  }
};

// Seconds of one optimizer step (or one evaluation forward pass) of
// `micro_batches` micro-batches of `batch` sequences a device.
using StepTimeOf = std::function<Seconds<>(
    int64_t batch, int64_t micro_batches, int64_t length)>;

// Steps of an epoch, the last partial one included unless dropped.
int64_t StepsPerEpoch(const RunPlan& plan);

//   t = start-up + shapes compile + epochs (steps step + eval + checkpoint)
//
// The last step of an epoch has the samples that are left, in as many
// micro-batches as they fill. A step lasts at least as long as its samples
// take to load. A length's share of the batches is its share of the steps.
// Each distinct (batch, length) is one shape of the training and of the
// evaluation graph alike. Check: tests/model/run_test.cc.
RunTimes EstimateRun(const RunPlan& plan,
                     const StepTimeOf& training_step,
                     const StepTimeOf& evaluation_step);

}  // namespace trainfare::model
