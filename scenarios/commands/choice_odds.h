#pragma once

// How likely each candidate is the one to take, as sure as their answers are.

#include <cstdint>
#include <vector>

#include "scenarios/commands/candidates.h"

namespace trainfare::scenarios {

// Of the draws of every answer of recommend.
inline constexpr uint64_t kOddsSeed = 1;

// Sets, of every candidate with a price, the probability that it meets the
// limits and that it is the best of those that do, from draws of all answers:
// each is as far from its figure as its interval allows, to either side by its
// own half, and candidates of one device, which share its fit, are so together.
//
//   x = x_0 (x_high / x_0)^(z / z_90)   z > 0; the same with x_low below
//
//   z     standard normal, one a device and draw
//   z_90  half the width of an 80 % interval
void SetOdds(const RecommendOptions& options,
             std::vector<Candidate>& candidates);

}  // namespace trainfare::scenarios
