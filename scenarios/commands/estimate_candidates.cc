// The job on every instance of the catalog, each at its best.

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
#include "model/error.h"
#include "scenarios/commands/asked_instances.h"
#include "scenarios/commands/batch_choice.h"
#include "scenarios/commands/candidates.h"
#include "scenarios/commands/catalog_flags.h"
#include "scenarios/commands/obstacles.h"
#include "scenarios/commands/places.h"
#include "scenarios/job/device_memo.h"
#include "scenarios/job/fits.h"

namespace trainfare::scenarios {
namespace {

using hardware::Instance;

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
      Candidate best = BestAt(offer, jobs_, options_, *memo);
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

  const std::vector<Scenario>& jobs_;
  const RecommendOptions& options_;
  std::optional<model::BytesPerSecond<>> network_;
  Pricing pricing_;
  Fits fits_;
  std::map<std::string, calibrate::Predictor> predictors_;
  std::map<std::string, model::InputError> refusals_;
  std::set<std::string> fitted_;
};

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

}  // namespace

std::vector<Candidate> EstimateCandidates(
    const std::vector<Scenario>& jobs,
    const RecommendOptions& options,
    std::vector<std::string>& left_out_fits) {
  const AskedInstances asked(options);
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
