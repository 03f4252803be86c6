// The job on every instance of the catalog, each at its best.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "calibrate/fit/parallel_for.h"
#include "hardware/files/progress_line.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/device_models.h"
#include "model/cost.h"
#include "model/error.h"
#include "model/letters.h"
#include "model/limits.h"
#include "model/nearest.h"
#include "model/parallel.h"
#include "scenarios/commands/batch_cuts.h"
#include "scenarios/commands/candidates.h"
#include "scenarios/commands/catalog_flags.h"
#include "scenarios/job/device_memo.h"
#include "scenarios/job/energy.h"
#include "scenarios/job/fits.h"
#include "scenarios/job/memory_range.h"

namespace trainfare::scenarios {
namespace {

using hardware::FormatMoney;
using hardware::FormatTime;
using hardware::Instance;

// What a place offers, whatever batch and precision is taken there.
struct Offer {
  const Candidate& bare;
  const std::optional<Tariff>& tariff;
  Cluster cluster;
};

// Whether its hosts are taken to have the network that others have.
bool GuessesNetwork(const Cluster& cluster) {
  return cluster.network && !cluster.network->named;
}

// Why a candidate that was estimated is out, whatever the others offer; without
// words, which are for the one of its place that is shown.
Objection ObjectionTo(const Candidate& c,
                      const Offer& offer,
                      const RecommendOptions& options) {
  const JobEstimate& job = *c.job;
  if (!job.fits()) return {Obstacle::kDoesNotFit, ""};
  if (!offer.tariff) return {Obstacle::kNoPrice, ""};
  if (GuessesNetwork(offer.cluster)) return {Obstacle::kNetworkUnknown, ""};
  const double late =
      options.deadline ? job.run.total() / *options.deadline - 1.0 : 0.0;
  const double dear =
      options.budget ? c.cost->usual / *options.budget - 1.0 : 0.0;
  // What misses both is as far from them as from the one that it misses by
  // more.
  if (late > 0) return {Obstacle::kMissesDeadline, "", std::max(late, dear)};
  if (dear > 0) return {Obstacle::kOverBudget, "", dear};
  if (NeedsEnergy(options.objective) && !job.energy) {
    return {Obstacle::kPowerUnknown, ""};
  }
  return {};
}

std::string WhyNoPrice(const Candidate& c, const RecommendOptions& options) {
  if (c.here) return "not for rent";
  if (c.instance == nullptr) return "by itself: no instance, so no price";
  return fmt::format("no {}price{}",
                     options.spot ? "spot " : "",
                     options.prices.regions.empty() ? "" : " in these regions");
}

std::string OverBudget(const Candidate& c, const RecommendOptions& options) {
  return fmt::format("over the budget by {}",
                     FormatMoney(c.cost->usual - *options.budget));
}

// The words of that.
std::string WordsOf(const Candidate& c, const RecommendOptions& options) {
  switch (c.objection.kind) {
    case Obstacle::kDoesNotFit:
      return c.job->Obstacle();
    case Obstacle::kNoPrice:
      return WhyNoPrice(c, options);
    case Obstacle::kNetworkUnknown:
      return "network not known; --network 100Gbit/s";
    case Obstacle::kMissesDeadline:
      return fmt::format("misses the deadline by {}{}",
                         FormatTime(c.job->run.total() - *options.deadline),
                         options.budget && c.cost->usual > *options.budget
                             ? ", " + OverBudget(c, options)
                             : "");
    case Obstacle::kOverBudget:
      return OverBudget(c, options);
    case Obstacle::kPowerUnknown:
      return "its power is not known";
    case Obstacle::kNone:
    case Obstacle::kCannotRun:  // said by what refused it
      return c.objection.words;
  }
  ENSURE(false, "an obstacle without words");
}

// Whether the job fits by the whole interval of its memory.
bool IsSafe(const JobEstimate& job) {
  return MemoryRangeOf(job.memory, job.capacity).high <= job.capacity;
}

// Whether the same devices had better run the job as `a` does: at a price an
// hour what takes less time is cheaper, too.
bool IsBetter(const Candidate& a, const Candidate& b, Objective objective) {
  if (a.viable() != b.viable()) return a.viable();
  if (a.timed() != b.timed()) return a.timed();
  // The least of what does not fit says how far it is from that.
  if (!a.timed()) return a.batch < b.batch;
  if (IsSafe(*a.job) != IsSafe(*b.job)) return IsSafe(*a.job);
  if (objective == Objective::kEnergy && a.job->energy && b.job->energy) {
    return *a.job->energy < *b.job->energy;
  }
  return a.job->run.total() < b.job->run.total();
}

// The global batches next to one that does not divide: "4 or 8 would". It is
// never tried on more devices than it has sequences.
std::string WouldDivide(int64_t global_batch, int64_t devices) {
  const int64_t below = global_batch / devices * devices;
  return fmt::format("{} or {} would", below, below + devices);
}

// Some devices of each of some hosts; by itself a device without a host.
struct Placement {
  const Instance* instance = nullptr;
  std::string device;
  int64_t devices = 1;
  int64_t hosts = 1;
  bool here = false;  // the processor of this machine
};

// Estimates candidates; what it reads it has read before the first.
class Estimator {
 public:
  // `jobs`: the scenario once for every batch and precision to choose from.
  Estimator(const std::vector<Scenario>& jobs,
            const RecommendOptions& options,
            const std::vector<Placement>& placements)
      : jobs_(jobs),
        options_(options),
        network_(NetworkFlag(options.network)),
        pricing_(options.prices) {
    std::set<std::string> devices;
    std::set<std::string> clouds;
    for (const Placement& one : placements) {
      devices.insert(one.device);
      if (one.instance != nullptr) clouds.insert(one.instance->cloud);
    }
    const auto read_prices = [&] { pricing_.Read(clouds); };
    const auto read_fits = [&] {
      fits_.Read({devices.begin(), devices.end()});
    };
    const std::array<std::function<void()>, 2> reads = {read_fits, read_prices};
    calibrate::ParallelFor(reads.size(), [&](size_t i) { reads[i](); });
    for (const std::string& device : devices) MakePredictor(device);
  }

  // Those places, all of one device, at their best batch and precision.
  void Estimate(const std::vector<Placement>& places,
                const std::vector<size_t>& of_device,
                std::vector<Candidate>& candidates) const {
    std::optional<DeviceMemo> memo;
    for (const size_t i : of_device) {
      candidates[i] = Estimate(places[i], memo);
    }
  }

  bool HasFit(const std::string& device) const {
    return fitted_.contains(device);
  }
  // Files of fits that could not be read, a line each.
  const std::vector<std::string>& left_out_fits() const {
    return fits_.left_out();
  }

 private:
  // `memo`: of the device, as soon as it has a predictor.
  Candidate Estimate(const Placement& place,
                     std::optional<DeviceMemo>& memo) const {
    Candidate c;
    c.here = place.here;
    c.instance = place.instance;
    c.device = place.device;
    c.devices = place.devices * place.hosts;
    c.hosts = place.hosts;
    std::optional<Tariff> tariff;
    if (place.instance != nullptr) {
      tariff = pricing_.Of(*place.instance, options_.spot, place.hosts);
    }
    try {
      const calibrate::Predictor& predictor = PredictorOf(place.device);
      if (!memo) memo.emplace(predictor, jobs_.front().source);
      const Offer offer{c, tariff, ClusterAt(place, predictor)};
      Candidate best = Best(offer, *memo);
      best.cluster = offer.cluster;
      best.over_named_network =
          network_ && best.cluster.network && !place.instance->network;
      c = std::move(best);
      c.objection.words = WordsOf(c, options_);
    } catch (const model::InputError& error) {
      c.objection = {Obstacle::kCannotRun, error.what()};
    }
    c.tariff = std::move(tariff);
    return c;
  }

  void MakePredictor(const std::string& name) {
    const hardware::Device& device =
        hardware::DeviceCatalog::Shipped().Find(name);
    if (fits_.Of(device) != nullptr) fitted_.insert(name);
    try {
      predictors_.emplace(name, fits_.PredictorOf(device));
    } catch (const model::InputError& error) {
      refusals_.emplace(name, error);
    }
  }

  const calibrate::Predictor& PredictorOf(const std::string& name) const {
    if (const auto found = refusals_.find(name); found != refusals_.end()) {
      throw model::InputError(found->second);
    }
    return predictors_.at(name);
  }

  // Over the network that somebody named only where the catalog has none.
  Cluster ClusterAt(const Placement& place,
                    const calibrate::Predictor& predictor) const {
    if (place.instance == nullptr) return {};
    const auto over = [&](std::optional<model::BytesPerSecond<>> network) {
      return OverHosts(ClusterOf(*place.instance, place.devices, predictor),
                       place.hosts,
                       predictor.device(),
                       place.instance,
                       network);
    };
    Cluster cluster = over(std::nullopt);
    return network_ && GuessesNetwork(cluster) ? over(network_) : cluster;
  }

  // The best of its jobs. Times decide between several of them, so that all
  // else is found out of one alone.
  Candidate Best(const Offer& offer, DeviceMemo& memo) const {
    const bool several = jobs_.size() > 1 || options_.global_batch;
    if (several) {
      const Trial best = BestTrial(offer, memo, Detail::kTimes);
      if (!best.candidate.timed()) return best.candidate;
      Scenario job = *best.job;
      job.workload.batch = best.candidate.batch;
      job.workload.accumulation = best.candidate.accumulation;
      Candidate whole = EstimateAs(job, offer, memo, Detail::kAll);
      if (whole.timed()) return whole;
      // What can be said of its time cannot of its interval.
    }
    return BestTrial(offer, memo, Detail::kAll).candidate;
  }

  // One of the jobs as it was tried at a place, or a cut of it; nullptr: none
  // could be.
  struct Trial {
    Candidate candidate;
    const Scenario* job = nullptr;
  };

  Trial BestTrial(const Offer& offer, DeviceMemo& memo, Detail detail) const {
    Trial best;
    for (const Scenario& job : jobs_) {
      const auto take = [&](Candidate&& c) {
        const bool better = best.job == nullptr ||
                            IsBetter(c, best.candidate, options_.objective);
        if (better) best = {std::move(c), &job};
        return better;
      };
      if (options_.global_batch) {
        const Cuts cuts = {*options_.global_batch, model::kLargestBatch};
        TryCuts(job, cuts, offer, memo, detail, take);
        continue;
      }
      Candidate c = EstimateAs(job, offer, memo, detail);
      const std::optional<Cuts> cuts = CutsThatFit(c);
      take(std::move(c));
      if (cuts) TryCuts(job, *cuts, offer, memo, detail, take);
    }
    if (best.job == nullptr) {
      best.candidate = offer.bare;
      best.candidate.objection = {
          Obstacle::kCannotRun,
          fmt::format("a global batch of {} does not divide over {} ranks{}",
                      *options_.global_batch,
                      offer.cluster.devices,
                      options_.overrides.batches.empty()
                          ? "; " + WouldDivide(*options_.global_batch,
                                               offer.cluster.devices)
                          : " in batches of that size")};
    }
    return best;
  }

  // A global batch in batches of a device that are no larger than `most`.
  struct Cuts {
    int64_t global_batch = 0;
    int64_t most = 0;
  };

  // What does not fit memory as one batch may as several that are accumulated,
  // which is the same step; not where somebody asked for that batch.
  std::optional<Cuts> CutsThatFit(const Candidate& c) const {
    if (!c.job || c.timed() || !c.job->largest_batch) return std::nullopt;
    if (!options_.overrides.batches.empty()) return std::nullopt;
    return Cuts{
        c.batch * c.accumulation * model::CopiesOf(c.job->workload.parallel),
        std::min(c.batch - 1, *c.job->largest_batch)};
  }

  // From the largest batch down; those that cannot fit are passed over, and
  // behind two that take longer smaller ones do, too.
  template <typename Take>
  void TryCuts(const Scenario& job,
               const Cuts& cuts,
               const Offer& offer,
               DeviceMemo& memo,
               Detail detail,
               const Take& take) const {
    const std::vector<int64_t>& asked = options_.overrides.batches;
    int64_t most = cuts.most;
    int worse = 0;
    for (const Scenario& cut : CutsOf(job, cuts.global_batch, offer.cluster)) {
      const int64_t batch = cut.workload.batch;
      if (worse == 2) return;
      if (batch > most) continue;
      if (!asked.empty() &&
          std::find(asked.begin(), asked.end(), batch) == asked.end()) {
        continue;
      }
      Candidate c = EstimateAs(cut, offer, memo, detail);
      if (!c.job) {
        take(std::move(c));
        return;  // no batch changes what the device cannot do
      }
      if (!c.timed()) most = c.job->largest_batch.value_or(1);
      const bool timed = c.timed();
      if (!take(std::move(c)) && timed) ++worse;
    }
  }

  Candidate EstimateAs(const Scenario& job,
                       const Offer& offer,
                       DeviceMemo& memo,
                       Detail detail) const {
    Candidate c = offer.bare;
    c.precision = job.workload.precision;
    c.batch = job.workload.batch;
    c.accumulation = job.workload.accumulation;
    try {
      // A device cannot run what it cannot run on however many ranks.
      hardware::RequirePrecision(memo.predictor().device(), c.precision);
      c.job = EstimateJob(job, memo, offer.cluster, detail);
    } catch (const model::InputError& error) {
      c.objection = {Obstacle::kCannotRun, error.what()};
      return c;
    }
    c.cost = CostOf(*c.job, offer.tariff);
    c.objection = ObjectionTo(c, offer, options_);
    return c;
  }

  const std::vector<Scenario>& jobs_;
  const RecommendOptions& options_;
  std::optional<model::BytesPerSecond<>> network_;
  Pricing pricing_;
  Fits fits_;
  std::map<std::string, calibrate::Predictor> predictors_;
  std::map<std::string, model::InputError> refusals_;
  std::set<std::string> fitted_;
};

// Numbers from 1 to `most`, each twice the last, and `most`.
std::vector<int64_t> Doublings(int64_t most) {
  std::vector<int64_t> numbers;
  for (int64_t n = 1; n < most; n *= 2) numbers.push_back(n);
  numbers.push_back(most);
  return numbers;
}

// Where nothing else is said, a global batch is tried on so many hosts.
constexpr int64_t kMostHostsTried = 8;

// Of other people's hosts nobody knows whether any network joins them.
bool MayJoinHosts(const Instance& instance, const RecommendOptions& options) {
  return !instance.marketplace || options.network;
}

// A global batch goes on any number of a host's devices, or on whole hosts.
void AddPlacesOfGlobalBatch(const Instance& instance,
                            const RecommendOptions& options,
                            std::vector<Placement>& places) {
  const int64_t batch = *options.global_batch;
  const std::vector<int64_t> hosts = Doublings(
      MayJoinHosts(instance, options) ? options.hosts.value_or(kMostHostsTried)
                                      : 1);
  for (auto n = hosts.rbegin(); n != hosts.rend(); ++n) {
    if (*n > 1 && instance.count * *n <= batch) {
      places.push_back({&instance, instance.device, instance.count, *n});
    }
  }
  const std::vector<int64_t> devices = Doublings(instance.count);
  for (auto n = devices.rbegin(); n != devices.rend(); ++n) {
    if (*n == 1 || *n <= batch) {
      places.push_back({&instance, instance.device, *n, 1});
    }
  }
}

// Hosts besides one: as asked, else as many as have the ranks of the scenario.
int64_t HostsOf(const Scenario& scenario,
                const Instance& instance,
                const RecommendOptions& options) {
  if (!MayJoinHosts(instance, options)) return 1;
  if (options.hosts) return *options.hosts;
  const model::Parallel& parallel = scenario.workload.parallel;
  const int64_t ranks = model::DividesModel(parallel)
                            ? model::FewestDevices(parallel)
                            : parallel.data;
  return ranks > instance.count && ranks % instance.count == 0
             ? ranks / instance.count
             : 1;
}

// A batch a device goes on one, on all of them, and on those of several hosts.
void AddPlaces(const Instance& instance,
               const Scenario& scenario,
               const RecommendOptions& options,
               std::vector<Placement>& places) {
  if (options.global_batch) {
    AddPlacesOfGlobalBatch(instance, options, places);
    return;
  }
  const int64_t hosts = HostsOf(scenario, instance, options);
  if (hosts > 1) {
    places.push_back({&instance, instance.device, instance.count, hosts});
  }
  if (instance.count > 1) {
    places.push_back({&instance, instance.device, instance.count, 1});
  }
  places.push_back({&instance, instance.device, 1, 1});
}

// Indices of the places of each device, which share what it takes long to find
// out; the most first, so that no thread is left with them at the end.
std::vector<std::vector<size_t>> ByDevice(
    const std::vector<Placement>& places) {
  std::map<std::string_view, std::vector<size_t>> of_device;
  for (size_t i = 0; i < places.size(); ++i) {
    of_device[places[i].device].push_back(i);
  }
  std::vector<std::vector<size_t>> groups;
  groups.reserve(of_device.size());
  for (auto& [device, indices] : of_device) {
    groups.push_back(std::move(indices));
  }
  std::stable_sort(
      groups.begin(), groups.end(), [](const auto& a, const auto& b) {
        return a.size() > b.size();
      });
  return groups;
}

// The clouds that were asked for, in any letters, as the catalog writes them;
// all where none was.
std::set<std::string> CloudsOf(const std::vector<std::string>& asked) {
  std::set<std::string> clouds;
  for (const Instance& instance :
       hardware::InstanceCatalog::Shipped().instances()) {
    clouds.insert(instance.cloud);
  }
  if (asked.empty()) return clouds;
  std::set<std::string> wanted;
  for (const std::string& cloud : asked) {
    const std::string name = model::Lowered(cloud);
    if (!clouds.contains(name)) {
      const auto known = model::NameViews(clouds);
      throw model::InputError(fmt::format("--cloud: unknown cloud \"{}\"{}",
                                          cloud,
                                          model::OfKnown(cloud, known)));
    }
    wanted.insert(name);
  }
  return wanted;
}

// The instances that were asked for, all unless somebody says which; of a cloud
// that counts only when it is named those that somebody named: by the cloud, the
// instance, prices of the cloud, or a device that no other cloud has.
class Asked {
 public:
  explicit Asked(const RecommendOptions& options)
      : clouds_(CloudsOf(options.clouds)),
        named_(CloudsOfFiles(options.prices)) {
    if (!options.clouds.empty()) named_ = clouds_;
    const auto& catalog = hardware::InstanceCatalog::Shipped();
    for (const std::string& name : options.instances) {
      instances_.insert(&catalog.Find(name));
    }
    for (const std::string& name : options.devices) {
      const hardware::Device& device =
          hardware::DeviceCatalog::Shipped().Find(name);
      if (catalog.OfDevice(device.name).empty()) {
        throw model::InputError(fmt::format(
            "--device: no cloud of the catalog rents out {}; hint: --also {}",
            device.name,
            device.name));
      }
      devices_.insert(device.name);
      if (catalog.UsualOfDevice(device.name).empty()) {
        nowhere_else_.insert(device.name);
      }
    }
  }

  bool Has(const Instance& instance) const {
    return clouds_.contains(instance.cloud) && Counts(instance) &&
           (instances_.empty() || instances_.contains(&instance)) &&
           (devices_.empty() || devices_.contains(instance.device));
  }

 private:
  bool Counts(const Instance& instance) const {
    return instance.named_only.empty() || named_.contains(instance.cloud) ||
           instances_.contains(&instance) ||
           nowhere_else_.contains(instance.device);
  }

  std::set<std::string> clouds_;
  std::set<std::string> named_;
  std::set<std::string> nowhere_else_;
  std::set<const Instance*> instances_;
  std::set<std::string> devices_;
};

}  // namespace

std::vector<Candidate> EstimateCandidates(
    const std::vector<Scenario>& jobs,
    const RecommendOptions& options,
    std::vector<std::string>& left_out_fits) {
  const Asked asked(options);
  std::vector<Placement> places;
  for (const Instance& instance :
       hardware::InstanceCatalog::Shipped().instances()) {
    if (asked.Has(instance)) {
      AddPlaces(instance, jobs.front(), options, places);
    }
  }
  const hardware::DeviceCatalog& catalog = hardware::DeviceCatalog::Shipped();
  for (const std::string& device : options.also) {
    places.push_back({.device = catalog.Find(device).name});
  }
  const hardware::Device& host = catalog.Find("cpu");
  places.push_back({.device = host.name, .here = true});
  const Estimator estimator(jobs, options, places);
  // Where nobody calibrated it this machine is no candidate.
  if (!estimator.HasFit(host.name)) places.pop_back();
  std::vector<Candidate> candidates(places.size());
  const std::vector<std::vector<size_t>> by_device = ByDevice(places);
  if (options.progress != nullptr) {
    options.progress->Begin(static_cast<double>(by_device.size()), "devices");
  }
  const auto estimate = [&](size_t i) {
    estimator.Estimate(places, by_device[i], candidates);
  };
  calibrate::ParallelFor(by_device.size(), estimate, options.progress);
  left_out_fits = estimator.left_out_fits();
  return candidates;
}

}  // namespace trainfare::scenarios
