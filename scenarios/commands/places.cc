#include "scenarios/commands/places.h"

#include "model/parallel.h"

namespace trainfare::scenarios {
namespace {

using hardware::Instance;

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

// A global batch goes on any number of a host's devices, or on whole hosts, of
// which each copy of the model has a sequence.
void AddPlacesOfGlobalBatch(const Instance& instance,
                            const model::Parallel& parallel,
                            const RecommendOptions& options,
                            std::vector<Placement>& places) {
  const int64_t of_model = model::RanksOfModel(parallel);
  const auto has_sequences = [&](int64_t count) {
    return count % of_model == 0 && count / of_model <= *options.global_batch;
  };
  const std::vector<int64_t> hosts = Doublings(
      MayJoinHosts(instance, options) ? options.hosts.value_or(kMostHostsTried)
                                      : 1);
  for (auto n = hosts.rbegin(); n != hosts.rend(); ++n) {
    if (*n > 1 && has_sequences(instance.count * *n)) {
      places.push_back({&instance, instance.device, instance.count, *n});
    }
  }
  const std::vector<int64_t> devices = Doublings(instance.count);
  for (auto n = devices.rbegin(); n != devices.rend(); ++n) {
    // One, to say why none can.
    if (*n == 1 || has_sequences(*n)) {
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

}  // namespace

// A batch a device goes on one, on all of them, and on those of several hosts.
void AddPlaces(const Instance& instance,
               const Scenario& scenario,
               const RecommendOptions& options,
               std::vector<Placement>& places) {
  if (options.global_batch) {
    AddPlacesOfGlobalBatch(
        instance, scenario.workload.parallel, options, places);
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

}  // namespace trainfare::scenarios
