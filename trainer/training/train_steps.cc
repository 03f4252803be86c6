#include "trainer/training/train_steps.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <iostream>
#include <optional>

#include "hardware/files/progress_line.h"
#include "hardware/files/terminal.h"
#include "trainer/device/out_of_memory.h"
#include "trainer/machine/run_monitor.h"
#include "trainer/network/dropout.h"
#include "trainer/network/transformer.h"
#include "trainer/ranks/rank_training.h"
#include "trainer/runtime/signals.h"
#include "trainer/training/resolved_options.h"

namespace trainfare::trainer {
namespace {

// The first steps allocate and compile kernels: kept, but not timed.
constexpr int64_t kWarmupSteps = 2;

// The columns of the line of progress; nullopt: nobody waits for it.
std::optional<size_t> ProgressWidth(bool wanted) {
  return wanted && ::isatty(STDOUT_FILENO) != 0
             ? hardware::TerminalWidth(STDERR_FILENO)
             : std::nullopt;
}

// Whether the last update left parameters that are all finite, those of other
// ranks included: where each rank has all, they are the same.
bool ParametersAreFinite(Session& session) {
  const at::NoGradGuard no_grad;
  RankTraining* const parallel = session.ranks();
  at::Tensor broken =
      at::zeros({1}, at::kFloat).to(session.transformer().device());
  for (const Parameter& parameter :
       parallel != nullptr ? parallel->Updated()
                           : session.transformer().TrainedParameters()) {
    broken.add_(at::isfinite(parameter.value).all().logical_not());
  }
  if (parallel != nullptr) {
    if (const auto sum = parallel->SumOverShares()) sum(broken);
  }
  return broken.item<float>() == 0.0F;
}

// Where a run is before a step.
class Place {
 public:
  explicit Place(const Feed& feed)
      : epoch_(feed.epoch()),
        position_(feed.position()),
        dropout_(DropoutState()) {}

  void GoBack(Feed& feed) const {
    feed.Seek(epoch_, position_);
    SeedDropout(dropout_.seed, dropout_.calls);
  }

 private:
  int64_t epoch_;
  int64_t position_;
  DropoutSequence dropout_;
};

// Nothing where a signal ended the step before its update.
std::optional<StepTimes> TryStep(const TrainOptions& options,
                                 Feed& feed,
                                 Session& session,
                                 const StepRecord& record) {
  const Place before(feed);
  try {
    return WithMemoryReport(record.workload, record.device.name, [&] {
      return session.Step(options.workload.accumulation, [&](int64_t) {
        return feed.Next(session.transformer());
      });
    });
  } catch (const Interrupted&) {
    before.GoBack(feed);
    return std::nullopt;
  }
}

}  // namespace

bool WeightsAreLost(Ending ending) {
  return ending == Ending::kDiverged || ending == Ending::kBroken;
}

Ending TrainSteps(const TrainOptions& options,
                  int64_t steps,
                  const Share& share,
                  Feed& feed,
                  Session& session,
                  CheckpointFile& checkpoint,
                  StepRecord& record) {
  const int64_t first_step = checkpoint.step();
  RunMonitor monitor(record.device.bus_id);
  hardware::ProgressLine progress(std::cerr, ProgressWidth(share.first()));
  progress.Begin(
      static_cast<double>(steps), "steps", static_cast<double>(first_step));
  // Several ranks stop behind the same step, or the rest would wait for ever.
  RankTraining* const parallel = session.ranks();
  bool stopped = parallel == nullptr && StopRequested();
  Ending ending = Ending::kDone;
  int64_t step = first_step;
  while (step < steps && !stopped) {
    const bool warmup =
        step - first_step < kWarmupSteps && steps - first_step > kWarmupSteps;
    if (!warmup && !monitor.begun()) monitor.Begin();
    session.optimizer().set_learning_rate(LearningRate(options, step, steps));
    if (parallel != nullptr) parallel->AskToStop(StopRequested());
    const auto times = TryStep(options, feed, session, record);
    if (!times) {
      stopped = true;
      break;
    }
    stopped = parallel != nullptr ? times->stop : StopRequested();
    record.samples.push_back({step, warmup, *times});
    monitor.AfterStep();
    progress.Set(
        static_cast<double>(step + 1),
        fmt::format("loss {:.4f}, {:.3f} s/step", times->loss, times->step_s));
    // With a scaled loss the update was left out and the scale is lowered.
    if (!session.loss_scale() && !std::isfinite(times->loss)) {
      ending = Ending::kDiverged;
      break;
    }
    ++step;
    if (!checkpoint.Due(step)) continue;
    if (!ParametersAreFinite(session)) {
      ending = Ending::kBroken;
      break;
    }
    checkpoint.Save(step, session, feed);
  }
  // Also where nothing is saved: no success with weights that are lost.
  if (ending == Ending::kDone && step > first_step &&
      !ParametersAreFinite(session)) {
    ending = Ending::kBroken;
  }
  if (ending == Ending::kDone) {
    checkpoint.Save(step, session, feed);
    if (stopped) ending = Ending::kStopped;
  }
  if (!record.samples.empty() && !record.samples.back().warmup) {
    record.conditions = monitor.End();
    RequireDeviceTime(record);
  }
  return ending;
}

}  // namespace trainfare::trainer
