#include "calibrate/session/session_result.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/power.h"
#include "calibrate/fit/rank_fit.h"
#include "calibrate/fit/replacement.h"
#include "calibrate/records/measured_observations.h"
#include "calibrate/records/repeated_runs.h"
#include "calibrate/session/requests.h"
#include "hardware/files/date.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"

namespace trainfare::calibrate::internal {
namespace {

using hardware::Plural;
using model::InputError;

void WarnOfDisturbed(int64_t runs, ProgressLog& progress) {
  if (runs == 0) return;
  const bool one = runs == 1;
  progress.Warn(
      fmt::format("{} {} disturbed by something else on this machine and "
                  "{} less in the fit; where it is quiet, calibrate --fresh",
                  Plural(runs, "run"),
                  one ? "was" : "were",
                  one ? "weighs" : "weigh"));
}

// A processor that neighbours slow down drifts, or a device that heats up.
void WarnOfDrift(const SessionRuns& runs, ProgressLog& progress) {
  const std::optional<Drift> drift = runs.ChangeOfSpeed();
  if (!drift) return;
  progress.Warn(
      fmt::format("this machine's speed changed meanwhile: {} took {} to {} "
                  "a step, {:.0f} % apart; the fit lies between",
                  RunWords(drift->workload),
                  hardware::FormatTime(drift->least),
                  hardware::FormatTime(drift->greatest),
                  100.0 * drift->share()));
}

Fit FitOf(const hardware::Device& device,
          const SessionRuns& runs,
          ProgressLog& progress) {
  Fit fit = FitDevice(device, runs.observations());
  RankFits ranks = FitRanks(device,
                            fit,
                            {.runs = runs.kept().runs,
                             .observations = {},
                             .collectives = runs.collectives(),
                             .source = std::string(kOwnSource)});
  for (const std::string& note : ranks.notes) progress.Note(note);
  fit.ranks = std::move(ranks.groups);
  fit.power = FitPower(device, fit, PowersOf(runs.kept().runs));
  fit.provenance.source = kOwnSource;
  fit.provenance.host = runs.all().front().host;
  fit.provenance.software = runs.all().front().software;
  fit.provenance.date = hardware::TimeText(hardware::Now());
  return fit;
}

}  // namespace

CalibrateResult FinishSession(const hardware::Device& device,
                              const CalibrateOptions& options,
                              const SessionTrainer& trainer,
                              const SessionRuns& runs,
                              const SessionFiles& files,
                              ProgressLog& progress) {
  CalibrateResult result;
  result.interrupted = trainer.interrupted();
  if (result.interrupted && runs.new_runs() == 0) {
    progress.Warn("interrupted before the first run");
    files.RemovePartial();
    return result;
  }
  result.records_path = result.interrupted ? files.partial() : files.records();
  if (result.interrupted) {
    progress.Warn(fmt::format(
        "interrupted; {} kept in {}, the next calibrate goes on from there",
        Plural(runs.new_runs(), "finished run"),
        files.partial()));
  }
  if (runs.new_runs() == 0) {
    throw InputError(fmt::format("no run fits in the budget of {:.0f} s",
                                 trainer.budget_s()));
  }
  WarnOfDisturbed(runs.kept().weighed_down, progress);
  WarnOfDrift(runs, progress);
  Fit fit = FitOf(device, runs, progress);
  fit.name = std::filesystem::path(files.fit()).stem().string();
  const Placed placed =
      PlaceFit(fit,
               files.fit(),
               options.force ? Replace::kAlways : Replace::kIfNotWorse,
               /*provisional=*/result.interrupted);
  if (!placed.note.empty()) progress.Warn(placed.note);
  if (!result.interrupted) {
    // The records of a fit are all that it was made of.
    files.PutFirst(runs.earlier().text);
    result.records_path = files.Keep(placed.in_place);
  }
  result.fit = std::move(fit);
  result.fit_path = placed.path;
  if (!placed.in_place) result.kept = placed.note;
  return result;
}

}  // namespace trainfare::calibrate::internal
