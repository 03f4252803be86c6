#pragma once

// What is believed of ranks that train together before a run over them is seen:
// the same where a group of ranks is fitted (calibrate/fit/rank_fit.h) and
// where all of a device are (calibrate/fit/joined_parameters.h). Assumptions.

namespace trainfare::calibrate::internal {

// The standard deviation of the logarithm of what a rank computes beside
// others, of the device alone: what it loses is clocks, at most.
inline constexpr double kRankShareSigma = 0.1;

// As far as the host may be off its prior, as a factor: nothing that is
// measured is explained any better past it.
inline constexpr double kFarthestHost = 1e4;

}  // namespace trainfare::calibrate::internal
