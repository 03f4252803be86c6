#include "calibrate/fit/joined_parameters.h"

#include <algorithm>
#include <array>

#include "calibrate/fit/rank_prior.h"
#include "hardware/catalog/kind_facts.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using hardware::ParameterInfo;

// As far as a share may be, either way: past it the link is another one.
constexpr double kFarthestShare = 30.0;

// What is believed of a parameter before any run.
struct Belief {
  double prior;
  double sigma;  // of its logarithm
};

// A parameter: what it is, and which number of a fit it is.
struct JoinedParameter {
  JoinedPlace place;
  std::string_view name;
  std::string_view unit;
  std::string_view meaning;
  std::string_view determined_by;
  double farthest;  // as far as it may be, either way
  void (*set)(const FittedParameter& fitted, JoinedNumbers& numbers);
};

// In the order of JoinedPlace.
constexpr std::array kJoined = {
    JoinedParameter{JoinedPlace::kRingShare,
                    "ring_share",
                    "1",
                    "of a link's bandwidth that a ring gets inside a host",
                    "steps over devices of a host that messages delay",
                    kFarthestShare,
                    [](const FittedParameter& fitted, JoinedNumbers& numbers) {
                      numbers.ring_share = fitted.value;
                      numbers.ring_share_error = fitted.standard_error;
                    }},
    JoinedParameter{JoinedPlace::kNetworkShare,
                    "network_share",
                    "1",
                    "of a host's network that its rings get",
                    "steps over several hosts that messages delay",
                    kFarthestShare,
                    [](const FittedParameter& fitted, JoinedNumbers& numbers) {
                      numbers.network_share = fitted.value;
                      if (!fitted.determined) return;
                      numbers.network_share_error = fitted.standard_error;
                    }},
    JoinedParameter{JoinedPlace::kRankShare,
                    "rank_share",
                    "1",
                    "what a rank computes beside others, of the device alone",
                    "the same steps on one device and on several",
                    kFarthestShare,
                    [](const FittedParameter& fitted, JoinedNumbers& numbers) {
                      numbers.rank_share = fitted.value;
                      numbers.rank_share_error = fitted.standard_error;
                    }},
    JoinedParameter{JoinedPlace::kSmallUnit,
                    "small_unit",
                    "s",
                    "of the host, by each unit too small to hide what it sends",
                    "steps of adapters whose model is sharded",
                    internal::kFarthestHost,
                    [](const FittedParameter& fitted, JoinedNumbers& numbers) {
                      numbers.unhidden.times.small_unit =
                          model::Second(fitted.value);
                      numbers.unhidden.small_unit_error = fitted.standard_error;
                    }},
    JoinedParameter{JoinedPlace::kExpertMatrix,
                    "expert_matrix",
                    "s",
                    "of the host, by each matrix of an expert that is gathered",
                    "steps of experts under zero3",
                    internal::kFarthestHost,
                    [](const FittedParameter& fitted, JoinedNumbers& numbers) {
                      numbers.unhidden.times.expert_matrix =
                          model::Second(fitted.value);
                      numbers.unhidden.expert_matrix_error =
                          fitted.standard_error;
                    }},
    JoinedParameter{JoinedPlace::kRankHost,
                    "rank_host",
                    "s",
                    "what the host adds to a step over ranks",
                    "short steps on one device and on several",
                    internal::kFarthestHost,
                    [](const FittedParameter& fitted, JoinedNumbers& numbers) {
                      numbers.rank_host = model::Second(fitted.value);
                      numbers.rank_host_error = fitted.standard_error;
                    }}};

static_assert([] {
  for (size_t i = 0; i < kJoined.size(); ++i) {
    if (kJoined[i].place != static_cast<JoinedPlace>(i)) return false;
  }
  return true;
}());

// nullptr where there is none of the name.
const JoinedParameter* FindJoined(std::string_view name) {
  const auto* found =
      std::find_if(kJoined.begin(), kJoined.end(), [&](const auto& one) {
        return one.name == name;
      });
  return found == kJoined.end() ? nullptr : found;
}

// That of a host's network is `network_sigma` wide.
Belief BeliefOf(JoinedPlace place,
                hardware::DeviceKind kind,
                double network_sigma) {
  const hardware::LinkFacts& links = hardware::FactsOfLinks();
  const hardware::HostFacts& hosts = hardware::FactsOfHosts();
  const hardware::KindFacts& facts = hardware::FactsOfKind(kind);
  switch (place) {
    case JoinedPlace::kRingShare:
      return {links.ring_share, links.ring_share_sigma};
    case JoinedPlace::kNetworkShare:
      return {links.ring_share, network_sigma};
    case JoinedPlace::kRankShare:
      return {1.0, internal::kRankShareSigma};
    case JoinedPlace::kSmallUnit:
      return {model::ToSeconds(hosts.small_unit), hosts.small_unit_sigma};
    case JoinedPlace::kExpertMatrix:
      return {model::ToSeconds(hosts.expert_matrix), hosts.expert_matrix_sigma};
    case JoinedPlace::kRankHost:
      return {model::ToSeconds(facts.rank_host), facts.rank_host_sigma};
  }
  ENSURE(false, "a parameter without a prior");
}

}  // namespace

std::vector<ParameterInfo> JoinedParameters(hardware::DeviceKind kind,
                                            double network_sigma) {
  std::vector<ParameterInfo> infos;
  for (const JoinedParameter& one : kJoined) {
    const Belief belief = BeliefOf(one.place, kind, network_sigma);
    // A kind whose host adds nothing has no such parameter.
    if (belief.prior <= 0) continue;
    infos.push_back({.name = one.name,
                     .unit = one.unit,
                     .meaning = one.meaning,
                     .prior = belief.prior,
                     .prior_sigma = belief.sigma,
                     .lower = belief.prior / one.farthest,
                     .upper = belief.prior * one.farthest,
                     .determined_by = one.determined_by});
  }
  return infos;
}

std::string_view UnitOfJoined(std::string_view name) {
  const JoinedParameter* known = FindJoined(name);
  return known == nullptr ? "1" : known->unit;
}

JoinedNumbers NumbersOf(hardware::DeviceKind kind,
                        const std::vector<FittedParameter>& joined) {
  const hardware::LinkFacts& links = hardware::FactsOfLinks();
  const hardware::KindFacts& facts = hardware::FactsOfKind(kind);
  JoinedNumbers numbers;
  numbers.ring_share = numbers.network_share = links.ring_share;
  numbers.ring_share_error = links.ring_share_sigma;
  numbers.rank_host = facts.rank_host;
  numbers.rank_host_error = facts.rank_host_sigma;
  for (const FittedParameter& one : joined) {
    if (const JoinedParameter* known = FindJoined(one.name)) {
      known->set(one, numbers);
    }
  }
  return numbers;
}

}  // namespace trainfare::calibrate
