#pragma once

// The trainer as a calibration asks it: on the device that is calibrated,
// within a budget, and until a signal comes.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/records/measurement.h"
#include "calibrate/session/plan.h"
#include "calibrate/session/progress_log.h"
#include "calibrate/session/trainer_process.h"
#include "hardware/catalog/device.h"

namespace trainfare::calibrate::internal {

class SessionTrainer {
 public:
  // The budget runs from here on. A SignalGuard lives meanwhile: a signal must
  // never leave a trainer behind.
  SessionTrainer(std::string program,
                 const hardware::Device& device,
                 double budget_s,
                 ProgressLog& progress);

  // So much was spent by a calibration that this one goes on from.
  void AddSpent(double seconds) { spent_before_s_ += seconds; }
  double SpentSeconds() const;
  double budget_s() const { return budget_s_; }
  // By a signal, noticed while the trainer was waited for.
  bool interrupted() const { return interrupted_; }

  // Starts it, to be asked for runs.
  TrainerCommand MeasureCommand(int64_t ranks) const;
  // What it answers about a run, the `number`th of the session. nullopt when
  // interrupted and the run in progress had nothing to report. Throws
  // InputError where it stays silent long after `left_s`.
  std::optional<std::string> Ask(TrainerProcess& process,
                                 const PlannedRun& run,
                                 int64_t number,
                                 double left_s);

  // Starts it, to time collectives, which it does by itself.
  TrainerCommand CollectivesCommand(
      const std::vector<model::Collective>& collectives,
      const std::vector<int64_t>& sizes,
      int64_t ranks) const;
  // Gives `take` all that it says, until it ends or is ended: by a signal, or
  // where so much is spent. `words` says what it does.
  void TakeAll(const TrainerCommand& command,
               const std::string& words,
               double until_s,
               const std::function<void(const std::string& line)>& take);

  // Says what a run took.
  void Report(int64_t number,
              const std::string& words,
              const MeasuredRun& run,
              const std::string& worth = "");

 private:
  using Clock = std::chrono::steady_clock;

  TrainerCommand Command(std::vector<std::string> arguments,
                         int64_t ranks) const;

  std::string program_;
  const hardware::Device& device_;
  double budget_s_;
  ProgressLog& progress_;
  Clock::time_point start_ = Clock::now();
  double spent_before_s_ = 0;
  bool interrupted_ = false;
};

}  // namespace trainfare::calibrate::internal
