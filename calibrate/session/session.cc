#include "calibrate/session/session.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <ostream>
#include <utility>

#include "calibrate/fit/replacement.h"
#include "calibrate/records/files.h"
#include "calibrate/records/measurement.h"
#include "calibrate/records/record_file.h"
#include "calibrate/session/earlier_runs.h"
#include "calibrate/session/one_rank.h"
#include "calibrate/session/output_lock.h"
#include "calibrate/session/progress_log.h"
#include "calibrate/session/session_files.h"
#include "calibrate/session/session_result.h"
#include "calibrate/session/session_runs.h"
#include "calibrate/session/session_trainer.h"
#include "calibrate/session/several_ranks.h"
#include "calibrate/session/trainer_process.h"
#include "hardware/files/unit_text.h"
#include "hardware/files/whole_file.h"
#include "hardware/models/device_models.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

using hardware::Plural;
using internal::ProgressLog;
using internal::SessionFiles;
using internal::SessionRuns;
using model::InputError;

// Load a core from which on others are in the way.
constexpr double kBusyShare = 0.5;

// Others' work on the same cores is measured along with ours.
void WarnIfBusy(const hardware::Device& device, ProgressLog& progress) {
  double load = 0.0;  // runnable processes, mean of the last minute
  if (!hardware::KindOf(device).is_host) return;
  const auto cores = static_cast<double>(device.cores);
  if (::getloadavg(&load, 1) != 1 || load < kBusyShare * cores) return;
  progress.Warn(fmt::format(
      "this machine is busy (load {:.1f} on {}); the fit will be of a busy "
      "machine",
      load,
      Plural(device.cores, "core")));
}

// One question more does not cost what is known of others: the runs behind the
// fit that stands there count, too, as long as the machine is the same.
void TakeEarlierRuns(const hardware::Device& device,
                     const SessionFiles& files,
                     SessionRuns& runs,
                     ProgressLog& progress) {
  internal::EarlierRuns earlier =
      internal::ReadEarlierRuns(files.records(), device);
  if (earlier.runs.empty()) return;
  progress.Note(fmt::format("the {} behind the fit that is there count, too",
                            Plural(std::ssize(earlier.runs), "run")));
  runs.Begin(std::move(earlier));
}

double TimedSeconds(const MeasuredRun& run) {
  double sum = 0.0;
  for (const Sample& sample : run.samples) {
    sum += model::ToSeconds(sample.step);
  }
  return sum;
}

// What an interrupted calibration finished; files that are of no use to this
// one are set aside.
Measurements InterruptedRuns(const hardware::Device& device,
                             const SessionFiles& files,
                             bool fresh,
                             ProgressLog& progress) {
  const auto set_aside = [&](const std::string& why) {
    progress.Note(fmt::format("{}; set aside as {}", why, files.SetAside()));
  };
  if (!files.HasPartial()) return {};
  if (fresh) {
    set_aside("starting afresh");
    return {};
  }
  Measurements finished;
  try {
    finished = ReadMeasurements(files.partial(), CutTail::kDrop);
  } catch (const InputError& error) {
    set_aside(error.what());
    return {};
  }
  for (const MeasuredRun& run : finished.runs) {
    if (!IsDevice(device, run.device) ||
        run.software != finished.runs.front().software) {
      set_aside("the earlier runs are of another machine or trainer");
      return {};
    }
  }
  if (finished.dropped_tail) {
    progress.Note(*finished.dropped_tail);
    if (!files.DropTail()) set_aside("its last line is cut off");
  }
  return finished;
}

// Adds what was finished; returns the seconds that it took.
double Resume(Measurements finished, SessionRuns& runs, ProgressLog& progress) {
  double spent_s = 0;
  for (MeasuredRun& run : finished.runs) {
    spent_s += TimedSeconds(run);
    runs.Add(std::move(run));
  }
  for (MeasuredCollective& one : finished.collectives) {
    runs.Add(std::move(one));
  }
  if (runs.new_runs() > 0) {
    progress.Note(fmt::format("going on from {} of {:.0f} s",
                              Plural(runs.new_runs(), "finished run"),
                              spent_s));
  }
  return spent_s;
}

}  // namespace

void RequireFitWritable(const CalibrateOptions& options,
                        const std::string& path) {
  if (options.output.empty()) internal::MakeFolderOf(path);
  hardware::RequireWritable(path);
  // Its records and its lock have the name without the ending, so that two fits
  // must not differ in that alone.
  if (fs::path(path).extension() != ".yaml") {
    throw InputError(path +
                     ": cannot be written: expected a name in .yaml, by which "
                     "fits are found");
  }
  RequireFitOrNone(path);
}

CalibrateResult CalibrateHere(const CalibrationTarget& target,
                              const std::string& trainer_program,
                              const CalibrateOptions& options,
                              const std::string& fit_path,
                              std::ostream& log) {
  const hardware::Device& device = target.device;
  ProgressLog progress(options.progress, log);
  const SessionFiles files(fit_path);
  SessionRuns runs;
  internal::OneRank one_rank(device, options, runs, progress);
  RequireFitWritable(options, files.fit());
  const internal::OutputLock lock(files.fit());
  // Before the trainer starts: a signal must never leave it behind.
  const internal::SignalGuard signals;
  const double budget_s = model::ToSeconds(options.budget);
  internal::SessionTrainer trainer(trainer_program, device, budget_s, progress);

  WarnIfBusy(device, progress);
  if (!options.towards.empty() && !options.fresh) {
    TakeEarlierRuns(device, files, runs, progress);
  }
  const double resumed_s = Resume(
      InterruptedRuns(device, files, options.fresh, progress), runs, progress);
  trainer.AddSpent(resumed_s);
  one_rank.GoOn(resumed_s);

  internal::RecordFile records(files.partial());
  const double of_one = target.ranks.empty() ? 1.0 : 1.0 - internal::kRankShare;
  try {
    one_rank.Measure(trainer, of_one * budget_s, records);
  } catch (const InputError& error) {
    if (runs.new_runs() == 0) throw;
    throw InputError(fmt::format("{}; {} kept in {}",
                                 error.what(),
                                 Plural(runs.new_runs(), "finished run"),
                                 files.partial()));
  }
  internal::MeasureRanks(target, options, trainer, runs, records, progress);
  return internal::FinishSession(
      device, options, trainer, runs, files, progress);
}

}  // namespace trainfare::calibrate
