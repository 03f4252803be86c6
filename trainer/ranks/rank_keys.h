#pragma once

// Keys of the store at which the ranks of a run meet.

#include <fmt/format.h>

#include <string>

namespace trainfare::trainer::rank_keys {

inline const std::string kWorldSize = "world_size";
inline const std::string kLost = "lost";    // one line: who, and why
inline const std::string kHeard = "heard";  // ranks that have read it
inline const std::string kGone = "gone";    // ranks that need the store no more
// Host and process of a rank.
inline std::string Member(int rank) { return fmt::format("member/{}", rank); }
inline std::string Pulse(int rank) { return fmt::format("pulse/{}", rank); }
// Set by a rank that has done its work.
inline std::string Left(int rank) { return fmt::format("left/{}", rank); }
inline std::string Line(int64_t number) {
  return fmt::format("line/{}", number);
}

}  // namespace trainfare::trainer::rank_keys
