#include "calibrate/fit/rank_group.h"

namespace trainfare::calibrate {

RankReach ReachOf(std::string_view transport) {
  const size_t blank = transport.find(' ');
  if (blank == std::string_view::npos) return RankReach::kUnknown;
  const std::string_view reach = transport.substr(blank + 1);
  if (reach == "within a host") return RankReach::kWithinHost;
  if (reach == "between hosts") return RankReach::kBetweenHosts;
  return RankReach::kUnknown;
}

}  // namespace trainfare::calibrate
