#include "calibrate/session/rank_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "calibrate/fit/step_model.h"
#include "calibrate/records/measured_observations.h"

namespace trainfare::calibrate {
namespace {

constexpr std::array<int64_t, 4> kSizes = {
    1 << 20, 4 << 20, 25 << 20, 100 << 20};

// A batch that neither starves a device nor takes long.
constexpr double kWantedTokens = 512.0;

constexpr int64_t kRankLeastSteps = 5;
constexpr int64_t kRankMostSteps = 20;
constexpr double kRankWantedSeconds = 1.5;  // of timed steps a run
// Besides building the model once a rank, on cores that they share.
constexpr double kRankSetUpSeconds = 0.1;

}  // namespace

std::vector<int64_t> SizesToTime(
    int64_t ranks,
    const std::vector<MeasuredCollective>& timed,
    const std::vector<model::Collective>& collectives,
    bool beside) {
  std::vector<int64_t> sizes;
  for (const int64_t size : kSizes) {
    const auto has = [&](model::Collective collective, bool computing) {
      return std::any_of(
          timed.begin(), timed.end(), [&](const MeasuredCollective& one) {
            return one.ranks == ranks && one.collective == collective &&
                   one.size == model::Byte(static_cast<double>(size)) &&
                   one.computation_speed.has_value() == computing;
          });
    };
    const bool timed_all = std::all_of(
        collectives.begin(), collectives.end(), [&](model::Collective one) {
          return has(one, false) && (!beside || has(one, true));
        });
    if (!timed_all) sizes.push_back(size);
  }
  return sizes;
}

std::vector<PlannedRun> RunsOverRanks(const std::vector<MeasuredRun>& runs,
                                      int64_t ranks,
                                      int64_t slower,
                                      model::Shard shard) {
  std::set<std::string> done;
  for (const MeasuredRun& run : runs) {
    if (run.device_count == ranks && run.workload.parallel.shard == shard) {
      done.insert(Describe(run.workload));
    }
  }
  const auto distance = [](const MeasuredRun& run) {
    return std::abs(
        std::log(static_cast<double>(run.workload.tokens()) / kWantedTokens));
  };
  // By size, then by name: two models may have as many parameters.
  std::map<std::pair<int64_t, std::string>, const MeasuredRun*> nearest;
  for (const MeasuredRun& run : runs) {
    if (run.device_count != 1) continue;
    const model::Architecture& a = run.workload.architecture;
    const MeasuredRun*& best = nearest[{model::TotalParameters(a), a.name}];
    if (best == nullptr || distance(run) < distance(*best)) best = &run;
  }
  std::vector<PlannedRun> planned;
  for (const auto& [model, run] : nearest) {
    model::Workload workload = run->workload;
    if (shard != model::Shard::kNone) {
      workload.parallel = {.data = ranks, .shard = shard};
    }
    if (done.contains(Describe(workload))) continue;
    const double step_s =
        model::ToSeconds(ObservationsOf(*run).front().measured) *
        static_cast<double>(slower);
    PlannedRun next;
    next.workload = std::move(workload);
    next.warmup = kWarmupSteps;
    next.steps = std::clamp(static_cast<int64_t>(kRankWantedSeconds / step_s),
                            kRankLeastSteps,
                            kRankMostSteps);
    next.expected_duration = model::Second(
        kRankSetUpSeconds +
        kSetUpSecondsPerParameter * static_cast<double>(model.first) *
            static_cast<double>(slower) +
        step_s * static_cast<double>(next.steps + next.warmup));
    planned.push_back(std::move(next));
  }
  return planned;
}

}  // namespace trainfare::calibrate
