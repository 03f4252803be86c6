#include "calibrate/session/one_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "calibrate/records/disturbance.h"
#include "calibrate/records/measurement.h"
#include "calibrate/session/requests.h"
#include "calibrate/session/runs_towards.h"
#include "calibrate/session/trainer_process.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"

namespace trainfare::calibrate::internal {

using hardware::Plural;
using model::InputError;

OneRank::OneRank(const hardware::Device& device,
                 const CalibrateOptions& options,
                 SessionRuns& runs,
                 ProgressLog& progress)
    : device_(device), options_(options), runs_(runs), progress_(progress) {
  PlanOptions plan = PlanOf(device, options);
  if (!options.towards.empty()) asked_ = plan.scenarios;
  planner_.emplace(device, std::move(plan));
}

void OneRank::GoOn(double spent_s) {
  for (const MeasuredRun& run : runs_.all()) {
    Done(run);
    watch_.Offer(run, spent_s, SpeedWatch::Due::kNow);
  }
}

void OneRank::Measure(SessionTrainer& trainer,
                      double until_s,
                      RecordFile& records) {
  KnownSoFar known(device_, asked_);
  known.Learn(runs_.observations(), progress_);
  TrainerProcess process(trainer.MeasureCommand(1));
  while (!trainer.interrupted()) {
    const double left_s = until_s - trainer.SpentSeconds();
    if (IsEnough(known)) {
      progress_.Note("the target interval is reached");
      return;
    }
    const std::optional<PlannedRun> next = Next(known, trainer, left_s);
    if (!next) return;
    const std::optional<std::string> line =
        trainer.Ask(process, *next, runs_.new_runs() + 1, left_s);
    if (!line) continue;
    const bool kept = Take(*line, *next, trainer.SpentSeconds(), records);
    known.Learn(runs_.observations(), progress_);
    if (!kept) continue;
    trainer.Report(runs_.new_runs(),
                   RunWords(next->workload),
                   runs_.all().back(),
                   known.Worth());
  }
}

bool OneRank::IsEnough(const KnownSoFar& known) const {
  if (options_.target_interval <= 0.0 || runs_.observations().empty()) {
    return false;
  }
  const double interval = asked_.empty()
                              ? planner_->ExpectedInterval(known.fit())
                              : known.interval();
  return interval < options_.target_interval;
}

// A repeat goes first, then the run by which the machine's speed is watched.
std::optional<PlannedRun> OneRank::Next(const KnownSoFar& known,
                                        const SessionTrainer& trainer,
                                        double left_s) {
  std::optional<PlannedRun> next = std::exchange(again_, std::nullopt);
  if (!next) next = watch_.TakeDue(trainer.SpentSeconds());
  if (next && model::ToSeconds(next->expected_duration) <= left_s) return next;
  return planner_->Next(
      known.fit(),
      model::Second(std::min(left_s, kLongestRunShare * trainer.budget_s())));
}

// False where the trainer refuses the run.
bool OneRank::Take(const std::string& line,
                   const PlannedRun& asked,
                   double spent_s,
                   RecordFile& records) {
  const int number = static_cast<int>(runs_.all().size()) + 1;
  MeasurementLine answer =
      ParseMeasurementLine(line, "answer of the trainer", number);
  if (answer.refused) {
    Refused(asked, answer.refused->message);
    return false;
  }
  if (!answer.run) {
    throw InputError("the trainer answers with something else than a run");
  }
  MeasuredRun& run = *answer.run;
  RequireHere(run);
  if (runs_.new_runs() > 0 && runs_.all().back().software != run.software) {
    progress_.Warn(
        "the earlier runs are of another version of the trainer; --fresh "
        "starts without them");
  }
  records.Append(line);
  planner_->Done(asked.workload);
  if (run.disturbed && repeated_.insert(Describe(asked.workload)).second) {
    again_ = asked;
    progress_.Note(fmt::format("{}: disturbed, {}; it is run once more",
                               RunWords(asked.workload),
                               DisturbanceWords(run)));
  }
  watch_.Offer(run, spent_s, SpeedWatch::Due::kLater);
  runs_.Add(std::move(run));
  Done(runs_.all().back());
  CheckEarlierRuns();
  return true;
}

void OneRank::Refused(const PlannedRun& asked, const std::string& message) {
  progress_.Warn(fmt::format(
      "{}: the trainer refuses: {}", RunWords(asked.workload), message));
  planner_->Done(asked.workload);
  if (++refused_ > 3 && runs_.new_runs() == 0) {
    throw InputError("the trainer refuses every run: " + message);
  }
}

void OneRank::RequireHere(const MeasuredRun& run) const {
  if (IsDevice(device_, run.device)) return;
  throw InputError(fmt::format("the trainer ran on \"{}\", not on {} (\"{}\")",
                               run.device,
                               device_.name,
                               device_.reported_name));
}

void OneRank::Done(const MeasuredRun& run) {
  if (run.device_count == 1) planner_->Done(run.workload);
}

void OneRank::CheckEarlierRuns() {
  const std::optional<std::string> why = runs_.WhyNotEarlier();
  if (!why) return;
  progress_.Note(
      fmt::format("{}: the {} behind the fit that is there do not count",
                  *why,
                  Plural(std::ssize(runs_.earlier().runs), "run")));
  runs_.DropEarlier();
  planner_.emplace(device_, PlanOf(device_, options_));
  for (const MeasuredRun& run : runs_.all()) Done(run);
}

}  // namespace trainfare::calibrate::internal
