#pragma once

// What a fit of runs over several devices may move of how their datasheets join
// them.

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "calibrate/fit/fitted_parameter.h"
#include "calibrate/fit/rank_group.h"
#include "hardware/catalog/device_kind.h"
#include "hardware/catalog/parameter.h"
#include "model/units.h"

namespace trainfare::calibrate {

// What rows over several devices may say beside the device's own parameters, as
// parameters of the same fit (docs/models/data_parallel.md), in this order. Their
// names, units and meanings stand in the table of the source; their priors in
// hardware/kinds/*.yaml.
enum class JoinedPlace : size_t {
  kRingShare,
  kNetworkShare,
  kRankShare,
  kSmallUnit,
  kExpertMatrix,
  kRankHost  // only of kinds whose host adds to a step
};

// `network_sigma`: how far off a host's network may be.
std::vector<hardware::ParameterInfo> JoinedParameters(hardware::DeviceKind kind,
                                                      double network_sigma);

// The unit of the parameter of this name; "1" where there is none of the name.
std::string_view UnitOfJoined(std::string_view name);

// Their values, and what each leaves open: those of a fit's rows, else the
// priors'.
struct JoinedNumbers {
  double ring_share = 0;
  double ring_share_error = 0;  // of the logarithm, as the others
  double network_share = 0;
  std::optional<double> network_share_error;  // absent: as of the network
  double rank_share = 1;
  double rank_share_error = 0;
  UnhiddenUnitsFit unhidden;
  model::Seconds<> rank_host;
  double rank_host_error = 0;
};
JoinedNumbers NumbersOf(hardware::DeviceKind kind,
                        const std::vector<FittedParameter>& joined);

}  // namespace trainfare::calibrate
