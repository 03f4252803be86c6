#include "scenarios/commands/batch_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/limits.h"
#include "model/parallel.h"
#include "scenarios/commands/batch_cuts.h"
#include "scenarios/job/energy.h"
#include "scenarios/job/memory_range.h"

namespace trainfare::scenarios {
namespace {

// Whether nothing speaks for its running out of memory.
bool IsSafe(const Candidate& c) {
  return c.timed() && HasRoom(c.job->memory, c.job->capacity);
}

// Whether the same devices had better run the job as `a` does: at a price an
// hour what takes less time is cheaper, too.
bool IsBetter(const Candidate& a, const Candidate& b, Objective objective) {
  if (a.viable() != b.viable()) return a.viable();
  if (a.timed() != b.timed()) return a.timed();
  // The least of what does not fit says how far it is from that.
  if (!a.timed()) return a.batch < b.batch;
  if (IsSafe(a) != IsSafe(b)) return IsSafe(a);
  if (objective == Objective::kEnergy && a.job->energy && b.job->energy) {
    return *a.job->energy < *b.job->energy;
  }
  return a.job->run.total() < b.job->run.total();
}

// The global batches next to one that does not divide: "4 or 8 would". It is
// never tried on more copies of a model than it has sequences.
std::string WouldDivide(int64_t global_batch, int64_t copies) {
  const int64_t below = global_batch / copies * copies;
  return fmt::format("{} or {} would", below, below + copies);
}

// Of a global batch no cut is left.
Objection DoesNotDivide(const Offer& offer,
                        const model::Parallel& parallel,
                        const RecommendOptions& options) {
  const int64_t global_batch = *options.global_batch;
  const int64_t devices = offer.cluster.devices;
  const int64_t of_model = model::RanksOfModel(parallel);
  if (devices % of_model != 0) {
    return {Obstacle::kCannotRun,
            fmt::format("parallel.{}: {} ranks have a model together, and {} "
                        "{} no multiple of that",
                        model::FieldOfModelRanks(parallel),
                        of_model,
                        devices,
                        devices == 1 ? "is" : "are")};
  }
  const int64_t copies = devices / of_model;
  return {Obstacle::kCannotRun,
          fmt::format("a global batch of {} does not divide over {} {}{}",
                      global_batch,
                      copies,
                      of_model == 1 ? "ranks" : "copies of the model",
                      options.overrides.batches.empty()
                          ? "; " + WouldDivide(global_batch, copies)
                          : " in batches of that size")};
}

// One of the jobs as it was tried at a place, or a cut of it; nullptr: none
// could be.
struct Trial {
  Candidate candidate;
  const Scenario* job = nullptr;
};

// A global batch in batches of a device that are no larger than `most`.
struct Cuts {
  int64_t global_batch = 0;
  int64_t most = model::kLargestBatch;
};

// Tries jobs at one place.
class BatchChoice {
 public:
  BatchChoice(const Offer& offer,
              const RecommendOptions& options,
              DeviceMemo& memo,
              Detail detail)
      : offer_(offer), options_(options), memo_(memo), detail_(detail) {}

  Trial BestOf(const std::vector<Scenario>& jobs) const {
    Trial best;
    for (const Scenario& job : jobs) {
      Trial of_job = BestOf(job);
      if (of_job.job != nullptr) Keep(std::move(of_job), best);
    }
    return best;
  }

  Candidate EstimateAs(const Scenario& job) const {
    Candidate c = offer_.bare;
    c.precision = job.workload.precision;
    c.batch = job.workload.batch;
    c.accumulation = job.workload.accumulation;
    try {
      // A device cannot run what it cannot run on however many ranks.
      hardware::RequirePrecision(memo_.predictor().device(), c.precision);
      c.job = EstimateJob(job, memo_, offer_.cluster, detail_);
    } catch (const model::InputError& error) {
      c.objection = {Obstacle::kCannotRun, error.what()};
      return c;
    }
    c.cost = CostOf(*c.job, offer_.tariff);
    c.objection = ObjectionTo(c, offer_, options_);
    return c;
  }

 private:
  bool Keep(Trial&& trial, Trial& best) const {
    const bool better =
        best.job == nullptr ||
        IsBetter(trial.candidate, best.candidate, options_.objective);
    if (better) best = std::move(trial);
    return better;
  }

  Trial BestOf(const Scenario& job) const {
    if (options_.global_batch)
      return BestCut(job, {*options_.global_batch}, {});
    Trial whole = {EstimateAs(job), &job};
    const std::optional<Cuts> cuts = CutsThatFit(whole.candidate);
    return cuts ? BestCut(job, *cuts, std::move(whole)) : whole;
  }

  // What does not fit memory as one batch may as several that are accumulated,
  // which is the same step; not where somebody asked for that batch.
  std::optional<Cuts> CutsThatFit(const Candidate& c) const {
    if (!c.job || c.timed() || !c.job->largest_batch) return std::nullopt;
    if (!options_.overrides.batches.empty()) return std::nullopt;
    return Cuts{
        c.batch * c.accumulation * model::CopiesOf(c.job->workload.parallel),
        std::min(c.batch - 1, *c.job->largest_batch)};
  }

  bool IsAsked(int64_t batch) const {
    const std::vector<int64_t>& asked = options_.overrides.batches;
    return asked.empty() ||
           std::find(asked.begin(), asked.end(), batch) != asked.end();
  }

  // `best`, or a better cut. From the largest batch down; those that cannot fit
  // are passed over, and behind two that are safe and no better smaller ones
  // are, too: what may run out says nothing of those that do not.
  Trial BestCut(const Scenario& job, const Cuts& cuts, Trial best) const {
    int64_t most = cuts.most;
    int worse = 0;
    for (const Scenario& cut : CutsOf(job, cuts.global_batch, offer_.cluster)) {
      const int64_t batch = cut.workload.batch;
      if (worse == 2) break;
      if (batch > most || !IsAsked(batch)) continue;
      Candidate c = EstimateAs(cut);
      const bool runs = c.job.has_value();
      const bool safe = IsSafe(c);
      if (runs && !c.timed()) most = c.job->largest_batch.value_or(1);
      if (!Keep({std::move(c), &job}, best) && safe) ++worse;
      if (!runs) break;  // no batch changes what the device cannot do
    }
    return best;
  }

  const Offer& offer_;
  const RecommendOptions& options_;
  DeviceMemo& memo_;
  Detail detail_;
};

}  // namespace

// Times decide between several, so that all else is found out of one alone.
Candidate BestAt(const Offer& offer,
                 const std::vector<Scenario>& jobs,
                 const RecommendOptions& options,
                 DeviceMemo& memo) {
  const BatchChoice whole(offer, options, memo, Detail::kAll);
  if (jobs.size() > 1 || options.global_batch) {
    const BatchChoice by_times(offer, options, memo, Detail::kTimes);
    Trial best = by_times.BestOf(jobs);
    if (best.job == nullptr) {
      best.candidate = offer.bare;
      best.candidate.objection =
          DoesNotDivide(offer, jobs.front().workload.parallel, options);
    }
    if (!best.candidate.timed()) return std::move(best.candidate);
    Scenario job = *best.job;
    job.workload.batch = best.candidate.batch;
    job.workload.accumulation = best.candidate.accumulation;
    Candidate chosen = whole.EstimateAs(job);
    if (chosen.timed()) return chosen;
    // What can be said of its time cannot of its interval.
  }
  return whole.BestOf(jobs).candidate;
}

}  // namespace trainfare::scenarios
