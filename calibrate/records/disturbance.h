#pragma once

// Runs that something else took time from: how much less they weigh, and why.

#include <string>

#include "calibrate/records/measurement.h"

namespace trainfare::calibrate {

// What a disturbed run adds to the relative noise of its medians. A run's
// steps are longer by the share of the time that its threads waited for a
// processor, at most; where that share is small or not known, what disturbed
// (a GPU held down by heat, another process on it) moved runs by about this
// much. An assumption, wide on purpose.
inline constexpr double kLeastDisturbedNoise = 0.05;
// 0 for a run that was not disturbed.
double DisturbanceNoise(const MeasuredRun& run);
double DisturbanceNoise(const MeasuredKernel& kernel);

// "its threads waited 12 % of the time for a processor", or what is known.
std::string DisturbanceWords(const MeasuredRun& run);

}  // namespace trainfare::calibrate
