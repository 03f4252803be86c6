#include "calibrate/session/session_runs.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "calibrate/records/measured_observations.h"

namespace trainfare::calibrate::internal {
namespace {

// A machine's speed is said to have changed from this share on.
constexpr double kUnsteady = 0.10;

std::optional<Drift> IfUnsteady(std::optional<Drift> drift) {
  if (!drift || drift->share() < kUnsteady) return std::nullopt;
  return drift;
}

}  // namespace

void SessionRuns::Begin(EarlierRuns earlier) {
  runs_ = earlier.runs;
  collectives_ = earlier.collectives;
  earlier_ = std::move(earlier);
  Choose();
}

void SessionRuns::Add(MeasuredRun run) {
  runs_.push_back(std::move(run));
  Choose();
}

void SessionRuns::Add(MeasuredCollective collective) {
  collectives_.push_back(std::move(collective));
}

std::optional<std::string> SessionRuns::WhyNotEarlier() const {
  if (earlier_.runs.empty()) return std::nullopt;
  if (!AreAlike(runs_.back(), earlier_.runs.front())) {
    return "the trainer or the host is another one";
  }
  const std::optional<Drift> drift =
      IfUnsteady(DriftSince(earlier_.runs, runs_.back()));
  if (!drift) return std::nullopt;
  return fmt::format("this machine's speed changed since, by {:.0f} %",
                     100.0 * drift->share());
}

void SessionRuns::DropEarlier() {
  runs_.erase(runs_.begin(), runs_.begin() + std::ssize(earlier_.runs));
  collectives_.erase(collectives_.begin(),
                     collectives_.begin() + std::ssize(earlier_.collectives));
  earlier_ = {};
  Choose();
}

std::optional<Drift> SessionRuns::ChangeOfSpeed() const {
  return IfUnsteady(GreatestDrift(runs_));
}

int64_t SessionRuns::new_runs() const {
  return std::ssize(runs_) - std::ssize(earlier_.runs);
}

void SessionRuns::Choose() {
  kept_ = WithoutWorseRepeats(runs_);
  observations_ = ObservationsOf(kept_.runs);
}

}  // namespace trainfare::calibrate::internal
