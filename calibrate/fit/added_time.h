#pragma once

// What a rank has beside it, and what that adds to its step.

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "calibrate/fit/rank_group.h"
#include "model/data_parallel.h"
#include "model/offload.h"
#include "model/units.h"

namespace trainfare::calibrate {

// What ranks that share training state send in one part of a step.
struct ShardTraffic {
  std::string_view part;     // "forward", "backward", "update"
  model::Bytes<> sent;       // by each rank
  model::Bytes<> copied;     // to and from its host's memory
  model::Seconds<> sending;  // nothing beside it
  model::Seconds<> exposed;
  model::Seconds<> slowed;  // what it adds to computation beside it
};

// A number without its slopes.
template <class T>
double ValueOf(const T& number) {
  if constexpr (std::is_arithmetic_v<T>) {
    return number;
  } else {
    return number.a;
  }
}

// What sending adds to a step of ranks that compute beside each other.
template <class T>
struct AddedTime {
  model::Seconds<T> slowed;   // computation beside messages
  model::Seconds<T> exposed;  // messages that nothing hides
  model::Seconds<T> all;
  std::vector<ShardTraffic> traffic;  // empty: nothing is shared
  // How often units were waited for that hide nothing, in `exposed`.
  double small_units = 0;
  double expert_matrices = 0;
};

// What a rank has beside it: others, and its host.
template <class T>
struct RankSurroundings {
  model::RankNetwork<T> network;
  int64_t ranks = 1;  // that it joins
  std::optional<model::HostPath<double>> host =
      std::nullopt;  // where anything is offloaded
  UnhiddenUnits<T> unhidden = {};
  T slower = T(1.0);  // times of what it computes over those of one alone
};

}  // namespace trainfare::calibrate
