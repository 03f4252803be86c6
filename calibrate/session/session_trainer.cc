#include "calibrate/session/session_trainer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "calibrate/records/measured_observations.h"
#include "calibrate/session/requests.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/device_models.h"
#include "model/error.h"

namespace trainfare::calibrate::internal {
namespace {

using Duration = std::chrono::duration<double>;

// How long past its budget the trainer may stay silent.
constexpr double kRunPatienceSeconds = 60.0;
// For the step in progress when interrupted.
constexpr Duration kGrace(10.0);
// Between looks at the clock and for signals.
constexpr Duration kLook(0.25);

}  // namespace

SessionTrainer::SessionTrainer(std::string program,
                               const hardware::Device& device,
                               double budget_s,
                               ProgressLog& progress)
    : program_(std::move(program)),
      device_(device),
      budget_s_(budget_s),
      progress_(progress) {}

double SessionTrainer::SpentSeconds() const {
  return spent_before_s_ + Duration(Clock::now() - start_).count();
}

TrainerCommand SessionTrainer::Command(std::vector<std::string> arguments,
                                       int64_t ranks) const {
  const hardware::Kind& kind = hardware::KindOf(device_);
  // Where it is not told, it runs on the host.
  if (!kind.is_host) {
    arguments.emplace_back("--device");
    arguments.emplace_back(kind.trainer_device);
  }
  return {program_, std::move(arguments), ranks};
}

TrainerCommand SessionTrainer::MeasureCommand(int64_t ranks) const {
  return Command({"measure", "--plan", "-", "--out", "-"}, ranks);
}

std::optional<std::string> SessionTrainer::Ask(TrainerProcess& process,
                                               const PlannedRun& run,
                                               int64_t number,
                                               double left_s) {
  // A machine that is busy for a moment must not use up the budget.
  const double longest_s = model::ToSeconds(run.longest_duration());
  process.Send(RequestLine(run, std::clamp(left_s, 0.1, longest_s)));
  const auto until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         Duration(std::max(left_s, 0.0) + kRunPatienceSeconds));
  const std::string words = RunWords(run.workload);
  while (true) {
    progress_.Redraw(
        SpentSeconds(), budget_s_, fmt::format("run {}: {}", number, words));
    std::optional<std::string> line = process.Receive(kLook);
    if (line) return line;
    if (SignalGuard::Received()) {
      interrupted_ = true;
      return process.Stop(kGrace);
    }
    if (Clock::now() > until) {
      throw model::InputError(
          fmt::format("the trainer does not answer ({})", words));
    }
  }
}

TrainerCommand SessionTrainer::CollectivesCommand(
    const std::vector<model::Collective>& collectives,
    const std::vector<int64_t>& sizes,
    int64_t ranks) const {
  std::vector<std::string_view> operations;
  for (const model::Collective one : collectives) {
    operations.push_back(model::ToText(one));
  }
  return Command({"bench",
                  "collectives",
                  "--operations",
                  fmt::format("{}", fmt::join(operations, ",")),
                  "--bytes",
                  fmt::format("{}", fmt::join(sizes, ",")),
                  "--out",
                  "-"},
                 ranks);
}

void SessionTrainer::TakeAll(
    const TrainerCommand& command,
    const std::string& words,
    double until_s,
    const std::function<void(const std::string& line)>& take) {
  TrainerProcess process(command);
  while (true) {
    progress_.Redraw(SpentSeconds(), budget_s_, words);
    const auto line = process.ReceiveUntilEnd(kLook);
    if (line) {
      take(*line);
      continue;
    }
    if (process.ended()) break;
    interrupted_ = SignalGuard::Received();
    if (interrupted_ || SpentSeconds() > until_s) {
      for (auto last = process.Stop(kGrace); last;
           last = process.TakeReceived()) {
        take(*last);
      }
      if (!interrupted_) progress_.Note(words + ": the budget ends them");
      return;
    }
  }
  progress_.Finished(
      fmt::format("{} ({:.0f} of {:.0f} s)", words, SpentSeconds(), budget_s_));
}

void SessionTrainer::Report(int64_t number,
                            const std::string& words,
                            const MeasuredRun& run,
                            const std::string& worth) {
  const model::Seconds<> step = ObservationsOf(run).front().measured;
  progress_.Finished(fmt::format("run {}: {}: {} a step ({:.0f} of {:.0f} s){}",
                                 number,
                                 words,
                                 hardware::FormatTime(step),
                                 SpentSeconds(),
                                 budget_s_,
                                 worth));
}

}  // namespace trainfare::calibrate::internal
