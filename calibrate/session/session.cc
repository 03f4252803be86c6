#include "calibrate/session/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <ostream>
#include <set>
#include <system_error>
#include <utility>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/power.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/prior_fit.h"
#include "calibrate/fit/rank_fit.h"
#include "calibrate/fit/replacement.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/disturbance.h"
#include "calibrate/records/files.h"
#include "calibrate/records/measured_observations.h"
#include "calibrate/records/measurement.h"
#include "calibrate/records/record_file.h"
#include "calibrate/records/repeated_runs.h"
#include "calibrate/session/earlier_runs.h"
#include "calibrate/session/output_lock.h"
#include "calibrate/session/plan.h"
#include "calibrate/session/progress_log.h"
#include "calibrate/session/rank_plan.h"
#include "calibrate/session/requests.h"
#include "calibrate/session/runs_towards.h"
#include "calibrate/session/session_files.h"
#include "calibrate/session/speed_watch.h"
#include "calibrate/session/trainer_process.h"
#include "hardware/files/date.h"
#include "hardware/files/unit_text.h"
#include "hardware/files/unwritten.h"
#include "hardware/files/whole_file.h"
#include "hardware/models/device_models.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

using Clock = std::chrono::steady_clock;
using hardware::Plural;
using internal::ProgressLog;
using internal::RecordFile;
using internal::SignalGuard;
using internal::SpeedWatch;
using internal::TrainerCommand;
using internal::TrainerProcess;
using model::InputError;

// How long past its budget the trainer may stay silent.
constexpr double kRunPatienceSeconds = 60.0;
// Load a core from which on others are in the way.
constexpr double kBusyShare = 0.5;
// For the step in progress when interrupted.
constexpr double kGraceSeconds = 10.0;
// What of the budget goes to all-reduces and runs over several ranks where they
// are asked for.
constexpr double kRankShare = 0.3;

// A machine's speed is said to have changed from this share on.
constexpr double kUnsteady = 0.10;

double TimedSeconds(const MeasuredRun& run) {
  double sum = 0.0;
  for (const Sample& sample : run.samples) {
    sum += model::ToSeconds(sample.step);
  }
  return sum;
}

// One calibration of this machine, from the first request to the fit.
class Session {
 public:
  Session(const CalibrationTarget& target,
          std::string trainer,
          const CalibrateOptions& options,
          const std::string& fit_path,
          std::ostream& log)
      : target_(target),
        device_(target.device),
        trainer_(std::move(trainer)),
        options_(options),
        progress_(options.progress, log),
        files_(fit_path),
        budget_s_(model::ToSeconds(options.budget)) {
    PlanOptions plan = PlanOf(device_, options);
    if (!options.towards.empty()) asked_ = plan.scenarios;
    planner_.emplace(device_, std::move(plan));
  }

  CalibrateResult Run() {
    RequireWritable(files_.fit());
    const internal::OutputLock lock(files_.fit());
    // Before the trainer starts: a signal must never leave it behind.
    const SignalGuard signals;
    start_ = Clock::now();
    WarnIfBusy();
    TakeEarlierRuns();
    Resume();
    RecordFile records(files_.partial());
    try {
      Measure(records);
    } catch (const InputError& error) {
      if (NewRuns() == 0) throw;
      throw InputError(fmt::format("{}; {} kept in {}",
                                   error.what(),
                                   Plural(NewRuns(), "finished run"),
                                   files_.partial()));
    }
    MeasureRanks(records);
    return Finish();
  }

 private:
  double SpentSeconds() const {
    return resumed_s_ +
           std::chrono::duration<double>(Clock::now() - start_).count();
  }

  // Those that are not of the fit which stands there.
  int64_t NewRuns() const {
    return std::ssize(runs_) - static_cast<int64_t>(earlier_.runs.size());
  }

  // One question more does not cost what is known of others: the runs behind
  // the fit that stands there count, too, as long as the machine is the same.
  void TakeEarlierRuns() {
    if (asked_.empty() || options_.fresh) return;
    earlier_ = internal::ReadEarlierRuns(files_.records(), device_);
    if (earlier_.runs.empty()) return;
    progress_.Note(fmt::format("the {} behind the fit that is there count, too",
                               Plural(std::ssize(earlier_.runs), "run")));
    collectives_ = earlier_.collectives;
    for (const MeasuredRun& run : earlier_.runs) {
      Keep(run);
      watch_.Offer(run, 0, SpeedWatch::Due::kNow);  // it may have changed since
    }
  }

  // Where the machine is not the same any more.
  void DropEarlierRuns(const std::string& why) {
    progress_.Note(
        fmt::format("{}: the {} behind the fit that is there do not "
                    "count",
                    why,
                    Plural(std::ssize(earlier_.runs), "run")));
    const std::vector<MeasuredRun> measured(
        runs_.begin() + std::ssize(earlier_.runs), runs_.end());
    collectives_.erase(collectives_.begin(),
                       collectives_.begin() + std::ssize(earlier_.collectives));
    earlier_ = {};
    runs_.clear();
    planner_.emplace(device_, PlanOf(device_, options_));
    for (const MeasuredRun& run : measured) Keep(run);
  }

  // After every new run, which may be one of theirs again.
  void CheckEarlierRuns() {
    if (earlier_.runs.empty()) return;
    const MeasuredRun& last = runs_.back();
    if (!internal::AreAlike(last, earlier_.runs.front())) {
      DropEarlierRuns("the trainer or the host is another one");
      return;
    }
    const std::optional<Drift> drift =
        internal::DriftSince(earlier_.runs, last);
    if (!drift || drift->share() < kUnsteady) return;
    DropEarlierRuns(
        fmt::format("this machine's speed changed since, by {:.0f} %",
                    100.0 * drift->share()));
  }

  // Others' work on the same cores is measured along with ours.
  void WarnIfBusy() {
    double load = 0.0;  // runnable processes, mean of the last minute
    if (!hardware::KindOf(device_).is_host) return;
    const auto cores = static_cast<double>(device_.cores);
    if (::getloadavg(&load, 1) != 1 || load < kBusyShare * cores) return;
    progress_.Warn(fmt::format(
        "this machine is busy (load {:.1f} on {}); the fit will be of a busy "
        "machine",
        load,
        Plural(device_.cores, "core")));
  }

  // A processor that neighbours slow down drifts, or a device that heats up.
  void WarnOfDrift() {
    const std::optional<Drift> drift = GreatestDrift(runs_);
    if (!drift || drift->share() < kUnsteady) return;
    progress_.Warn(
        fmt::format("this machine's speed changed meanwhile: {} took {} to {} "
                    "a step, {:.0f} "
                    "% apart; the fit lies between",
                    internal::RunWords(drift->workload),
                    hardware::FormatTime(drift->least),
                    hardware::FormatTime(drift->greatest),
                    100.0 * drift->share()));
  }

  void SetAside(const std::string& why) {
    progress_.Note(fmt::format("{}; set aside as {}", why, files_.SetAside()));
  }

  void Resume() {
    if (!files_.HasPartial()) return;
    if (options_.fresh) {
      SetAside("starting afresh");
      return;
    }
    Measurements earlier;
    try {
      earlier = ReadMeasurements(files_.partial(), CutTail::kDrop);
    } catch (const InputError& error) {
      SetAside(error.what());
      return;
    }
    for (const MeasuredRun& run : earlier.runs) {
      if (!IsDevice(device_, run.device) ||
          run.software != earlier.runs.front().software) {
        SetAside("the earlier runs are of another machine or trainer");
        return;
      }
    }
    if (earlier.dropped_tail) {
      progress_.Note(*earlier.dropped_tail);
      if (!files_.DropTail()) SetAside("its last line is cut off");
    }
    for (MeasuredRun& run : earlier.runs) {
      resumed_s_ += TimedSeconds(run);
      Keep(std::move(run));
    }
    for (MeasuredCollective& one : earlier.collectives) {
      collectives_.push_back(std::move(one));
    }
    if (NewRuns() > 0) {
      progress_.Note(fmt::format("going on from {} of {:.0f} s",
                                 Plural(NewRuns(), "finished run"),
                                 resumed_s_));
    }
    // The machine may have changed its speed since: that is seen first.
    for (const MeasuredRun& run : runs_) {
      watch_.Offer(run, resumed_s_, SpeedWatch::Due::kNow);
    }
  }

  void Keep(MeasuredRun run) {
    if (run.device_count == 1) planner_->Done(run.workload);
    runs_.push_back(std::move(run));
    kept_ = WithoutWorseRepeats(runs_);
    observations_ = ObservationsOf(kept_.runs);
  }

  void ReportLast(const std::string& words, const std::string& worth = "") {
    const model::Seconds<> step = ObservationsOf(runs_.back()).front().measured;
    progress_.Finished(
        fmt::format("run {}: {}: {} a step ({:.0f} of {:.0f} s){}",
                    NewRuns(),
                    words,
                    hardware::FormatTime(step),
                    SpentSeconds(),
                    budget_s_,
                    worth));
  }

  // What is known so far, for the plan; a fit that is refused changes nothing.
  void Refit() {
    if (observations_.empty()) return;
    FitOptions fit_options;
    fit_options.leave_one_out = false;
    fit_options.name_runs = false;
    try {
      known_ = FitDevice(device_, observations_, fit_options);
    } catch (const InputError& error) {
      progress_.Note(error.what());
    }
  }

  // Starts the trainer, on the device that is calibrated.
  TrainerCommand Command(std::vector<std::string> arguments,
                         int64_t ranks) const {
    const hardware::Kind& kind = hardware::KindOf(device_);
    // Where it is not told, it runs on the host.
    if (!kind.is_host) {
      arguments.emplace_back("--device");
      arguments.emplace_back(kind.trainer_device);
    }
    return {trainer_, std::move(arguments), ranks};
  }
  TrainerCommand MeasureCommand(int64_t ranks) const {
    return Command({"measure", "--plan", "-", "--out", "-"}, ranks);
  }

  // Runs of one rank.
  void Measure(RecordFile& records) {
    known_ = PriorFit(device_);
    Refit();
    unknown_ = IntervalOfAnswer();
    const double until_s =
        target_.ranks.empty() ? budget_s_ : (1.0 - kRankShare) * budget_s_;
    TrainerProcess process(MeasureCommand(1));
    while (!interrupted_) {
      const double left_s = until_s - SpentSeconds();
      if (options_.target_interval > 0.0 && !observations_.empty() &&
          Interval() < options_.target_interval) {
        progress_.Note("the target interval is reached");
        return;
      }
      std::optional<PlannedRun> next = std::exchange(again_, std::nullopt);
      if (!next) next = watch_.TakeDue(SpentSeconds());
      if (!next || model::ToSeconds(next->expected_duration) > left_s) {
        next = planner_->Next(
            known_,
            model::Second(std::min(left_s, kLongestRunShare * budget_s_)));
      }
      if (!next) return;
      const std::optional<std::string> line = Ask(process, *next, left_s);
      if (!line) continue;
      const bool kept = Take(*line, *next, records);
      Refit();
      const double before = std::exchange(unknown_, IntervalOfAnswer());
      if (!kept) continue;
      ReportLast(internal::RunWords(next->workload), Worth(before));
    }
  }

  // nullopt when interrupted and the run in progress had nothing to report.
  std::optional<std::string> Ask(TrainerProcess& process,
                                 const PlannedRun& run,
                                 double left_s) {
    // A machine that is busy for a moment must not use up the budget.
    const double longest_s = model::ToSeconds(run.longest_duration());
    process.Send(
        internal::RequestLine(run, std::clamp(left_s, 0.1, longest_s)));
    const auto until =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(
                           std::chrono::duration<double>(std::max(left_s, 0.0) +
                                                         kRunPatienceSeconds));
    const std::string words = internal::RunWords(run.workload);
    while (true) {
      progress_.Redraw(SpentSeconds(),
                       budget_s_,
                       fmt::format("run {}: {}", NewRuns() + 1, words));
      std::optional<std::string> line =
          process.Receive(std::chrono::duration<double>(0.25));
      if (line) return line;
      if (SignalGuard::Received()) {
        interrupted_ = true;
        return process.Stop(std::chrono::duration<double>(kGraceSeconds));
      }
      if (Clock::now() > until) {
        throw InputError(
            fmt::format("the trainer does not answer ({})", words));
      }
    }
  }

  // Half the 80 % interval that `predict` gives the asked steps, as a share of
  // them and the mean over them; 0 where none is asked for.
  double IntervalOfAnswer() const {
    if (asked_.empty()) return 0.0;
    const Predictor predictor =
        observations_.empty() ? Predictor(device_) : Predictor(device_, known_);
    double sum = 0.0;
    for (const model::Workload& step : asked_) {
      const StepPrediction answer = predictor.Predict(step);
      sum += 0.5 * (answer.high_factor - answer.low_factor);
    }
    return sum / static_cast<double>(asked_.size());
  }
  // What --until is about.
  double Interval() const {
    return asked_.empty() ? planner_->ExpectedInterval(known_) : unknown_;
  }
  // What a run was worth to the answer.
  std::string Worth(double before) const {
    if (asked_.empty()) return "";
    return fmt::format("; of the asked step +-{:.1f} -> +-{:.1f} %",
                       100.0 * before,
                       100.0 * unknown_);
  }

  // False where the trainer refuses the run.
  bool Take(const std::string& line,
            const PlannedRun& asked,
            RecordFile& records) {
    const int number = static_cast<int>(runs_.size()) + 1;
    MeasurementLine answer =
        ParseMeasurementLine(line, "answer of the trainer", number);
    if (answer.refused) {
      progress_.Warn(fmt::format("{}: the trainer refuses: {}",
                                 internal::RunWords(asked.workload),
                                 answer.refused->message));
      planner_->Done(asked.workload);
      if (++refused_ > 3 && NewRuns() == 0) {
        throw InputError("the trainer refuses every run: " +
                         answer.refused->message);
      }
      return false;
    }
    if (!answer.run) {
      throw InputError("the trainer answers with something else than a run");
    }
    MeasuredRun& run = *answer.run;
    if (!IsDevice(device_, run.device)) {
      throw InputError(
          fmt::format("the trainer ran on \"{}\", not on {} (\"{}\")",
                      run.device,
                      device_.name,
                      device_.reported_name));
    }
    if (NewRuns() > 0 && runs_.back().software != run.software) {
      progress_.Warn(
          "the earlier runs are of another version of the trainer; --fresh "
          "starts without them");
    }
    records.Append(line);
    planner_->Done(asked.workload);
    if (run.disturbed && repeated_.insert(Describe(asked.workload)).second) {
      again_ = asked;
      progress_.Note(fmt::format("{}: disturbed, {}; it is run once more",
                                 internal::RunWords(asked.workload),
                                 DisturbanceWords(run)));
    }
    watch_.Offer(run, SpentSeconds(), SpeedWatch::Due::kLater);
    Keep(std::move(run));
    CheckEarlierRuns();
    return true;
  }

  // What several ranks add. It may fail without the runs of one being lost.
  void MeasureRanks(RecordFile& records) {
    const double start_s = SpentSeconds();
    // Their share is theirs, also where a calibration that goes on has used up
    // the rest.
    const double each_s =
        std::max(budget_s_ - start_s, kRankShare * budget_s_) /
        static_cast<double>(std::max<size_t>(target_.ranks.size(), 1));
    for (size_t i = 0; i < target_.ranks.size() && !interrupted_; ++i) {
      const double until_s = start_s + each_s * static_cast<double>(i + 1);
      try {
        TimeCollectives(target_.ranks[i], until_s, records);
        for (const model::Shard shard : AskedShards()) {
          if (interrupted_) break;
          RunOverRanks(target_.ranks[i], shard, until_s, records);
        }
      } catch (const InputError& error) {
        progress_.Warn(fmt::format(
            "{} ranks are not measured: {}", target_.ranks[i], error.what()));
      }
    }
  }

  // What ranks share in runs over them: nothing, then what is asked for.
  std::vector<model::Shard> AskedShards() const {
    std::vector<model::Shard> shards = {model::Shard::kNone};
    for (const model::Workload& asked : options_.towards) {
      const model::Shard shard = asked.parallel.shard;
      if (std::find(shards.begin(), shards.end(), shard) == shards.end()) {
        shards.push_back(shard);
      }
    }
    return shards;
  }

  void TimeCollectives(int64_t ranks, double until_s, RecordFile& records) {
    std::vector<model::Collective> collectives = {
        model::Collective::kAllReduce};
    if (AskedShards().size() > 1) {
      collectives.push_back(model::Collective::kAllGather);
      collectives.push_back(model::Collective::kReduceScatter);
    }
    const std::vector<int64_t> sizes = SizesToTime(
        ranks, collectives_, collectives, hardware::KindOf(device_).is_host);
    if (sizes.empty() || SpentSeconds() >= until_s) return;
    std::vector<std::string_view> operations;
    for (const model::Collective one : collectives) {
      operations.push_back(model::ToText(one));
    }
    TrainerProcess process(
        Command({"bench",
                 "collectives",
                 "--operations",
                 fmt::format("{}", fmt::join(operations, ",")),
                 "--bytes",
                 fmt::format("{}", fmt::join(sizes, ",")),
                 "--out",
                 "-"},
                ranks));
    const std::string words = fmt::format("collectives over {} ranks", ranks);
    while (true) {
      progress_.Redraw(SpentSeconds(), budget_s_, words);
      const auto line =
          process.ReceiveUntilEnd(std::chrono::duration<double>(0.25));
      if (line) {
        TakeCollective(*line, ranks, records);
        continue;
      }
      if (process.ended()) break;
      interrupted_ = SignalGuard::Received();
      if (interrupted_ || SpentSeconds() > until_s) {
        for (auto last =
                 process.Stop(std::chrono::duration<double>(kGraceSeconds));
             last;
             last = process.TakeReceived()) {
          TakeCollective(*last, ranks, records);
        }
        if (!interrupted_) progress_.Note(words + ": the budget ends them");
        return;
      }
    }
    progress_.Finished(fmt::format(
        "{} ({:.0f} of {:.0f} s)", words, SpentSeconds(), budget_s_));
  }

  void TakeCollective(const std::string& line,
                      int64_t ranks,
                      RecordFile& records) {
    MeasurementLine answer =
        ParseMeasurementLine(line, "answer of the trainer", 1);
    if (!answer.collective || answer.collective->ranks != ranks) {
      throw InputError(
          "the trainer answers with something else than "
          "collectives over these ranks");
    }
    records.Append(line);
    collectives_.push_back(std::move(*answer.collective));
  }

  // Workloads that one rank ran, so that what differs is the ranks.
  void RunOverRanks(int64_t ranks,
                    model::Shard shard,
                    double until_s,
                    RecordFile& records) {
    std::optional<TrainerProcess> process;
    const int64_t slower = hardware::KindOf(device_).is_host ? ranks : 1;
    for (const PlannedRun& run :
         RunsOverRanks(kept_.runs, ranks, slower, shard)) {
      const double left_s = until_s - SpentSeconds();
      if (interrupted_ || left_s <= 0.0) return;
      if (model::ToSeconds(run.expected_duration) > left_s) continue;
      if (!process) process.emplace(MeasureCommand(ranks));
      const std::optional<std::string> line = Ask(*process, run, left_s);
      if (line) TakeOverRanks(*line, run, ranks, records);
    }
  }

  void TakeOverRanks(const std::string& line,
                     const PlannedRun& asked,
                     int64_t ranks,
                     RecordFile& records) {
    MeasurementLine answer = ParseMeasurementLine(
        line, "answer of the trainer", static_cast<int>(runs_.size()) + 1);
    const std::string words =
        fmt::format("{} ranks, {}", ranks, internal::RunWords(asked.workload));
    if (answer.refused) {
      progress_.Warn(fmt::format(
          "{}: the trainer refuses: {}", words, answer.refused->message));
      return;
    }
    if (!answer.run || answer.run->device_count != ranks) {
      throw InputError(
          "the trainer answers with something else than a run over these "
          "ranks");
    }
    records.Append(line);
    Keep(std::move(*answer.run));
    ReportLast(words);
  }

  CalibrateResult Finish() {
    CalibrateResult result;
    result.interrupted = interrupted_;
    result.records_path = interrupted_ ? files_.partial() : files_.records();
    if (interrupted_) {
      progress_.Warn(fmt::format(
          "interrupted; {} kept in {}, the next calibrate goes on from there",
          Plural(NewRuns(), "finished run"),
          files_.partial()));
      if (NewRuns() == 0) {
        files_.RemovePartial();
        return result;
      }
    }
    if (NewRuns() == 0) {
      throw InputError(
          fmt::format("no run fits in the budget of {:.0f} s", budget_s_));
    }
    if (kept_.weighed_down > 0) {
      const bool one = kept_.weighed_down == 1;
      progress_.Warn(fmt::format(
          "{} {} disturbed by something else on this machine and "
          "{} less in the fit; where it is quiet, calibrate --fresh",
          Plural(kept_.weighed_down, "run"),
          one ? "was" : "were",
          one ? "weighs" : "weigh"));
    }
    WarnOfDrift();
    Fit fit = FitDevice(device_, observations_);
    RankFits ranks = FitRanks(device_,
                              fit,
                              {.runs = kept_.runs,
                               .observations = {},
                               .collectives = collectives_,
                               .source = std::string(kOwnSource)});
    for (const std::string& note : ranks.notes) progress_.Note(note);
    fit.ranks = std::move(ranks.groups);
    fit.power = FitPower(device_, fit, PowersOf(kept_.runs));
    fit.name = fs::path(files_.fit()).stem().string();
    fit.provenance.source = kOwnSource;
    fit.provenance.host = runs_.front().host;
    fit.provenance.software = runs_.front().software;
    fit.provenance.date = hardware::TimeText(hardware::Now());
    const Placed placed =
        PlaceFit(fit,
                 files_.fit(),
                 options_.force ? Replace::kAlways : Replace::kIfNotWorse,
                 /*provisional=*/interrupted_);
    if (!placed.note.empty()) progress_.Warn(placed.note);
    if (!interrupted_) {
      // The records of a fit are all that it was made of.
      files_.PutFirst(earlier_.text);
      result.records_path = files_.Keep(placed.in_place);
    }
    result.fit = std::move(fit);
    result.fit_path = placed.path;
    if (!placed.in_place) result.kept = placed.note;
    return result;
  }

  const CalibrationTarget& target_;
  const hardware::Device& device_;
  std::string trainer_;
  const CalibrateOptions& options_;
  ProgressLog progress_;
  internal::SessionFiles files_;
  double budget_s_;
  std::vector<model::Workload> asked_;  // steps; empty: none by name
  std::optional<Planner> planner_;      // always there
  double unknown_ = 0;                  // of the asked step, after the last run
  Clock::time_point start_;
  double resumed_s_ = 0;           // of the runs of an interrupted calibration
  internal::EarlierRuns earlier_;  // first in the two that follow
  std::vector<MeasuredRun> runs_;
  std::vector<MeasuredCollective> collectives_;
  KeptRuns kept_;                          // of these, what is fitted to
  std::vector<Observation> observations_;  // of what is kept
  std::optional<PlannedRun> again_;        // disturbed, to be repeated
  std::set<std::string> repeated_;         // workloads, each once
  SpeedWatch watch_;
  Fit known_;
  int refused_ = 0;
  bool interrupted_ = false;
};

}  // namespace

void RequireWritable(const std::string& path) {
  internal::MakeFolderOf(path);
  const fs::path folder = fs::path(path).parent_path();
  const char* where = folder.empty() ? "." : folder.c_str();
  std::error_code ignored;
  if (::access(where, W_OK) != 0) hardware::RefuseUnwritten(path, errno);
  if (fs::is_directory(path, ignored)) hardware::RefuseUnwritten(path, EISDIR);
  hardware::RequireReplaceable(path);
  // Its records and its lock have the name without the ending, so that two fits
  // must not differ in that alone.
  if (fs::path(path).extension() != ".yaml") {
    throw InputError(path +
                     ": cannot be written: expected a name in .yaml, by which "
                     "fits are found");
  }
}

CalibrateResult CalibrateHere(const CalibrationTarget& target,
                              const std::string& trainer,
                              const CalibrateOptions& options,
                              const std::string& fit_path,
                              std::ostream& log) {
  Session session(target, trainer, options, fit_path, log);
  return session.Run();
}

}  // namespace trainfare::calibrate
