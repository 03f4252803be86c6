#pragma once

// The largest counts and the times that are taken from outside: files of every
// kind and the command line. Far above any real figure. Within them sums and
// products of counts stay in 64 bits, which Validate() in model/validate.h and
// CheckedProduct() make sure of.

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "model/units.h"

namespace trainfare::model {

inline constexpr int64_t kLargestDimension = int64_t{1} << 24;
inline constexpr int64_t kMostLayers = int64_t{1} << 16;
inline constexpr int64_t kMostExperts = int64_t{1} << 16;
// Of all blocks together, whose tensors are listed one by one.
inline constexpr int64_t kMostExpertsInAll = int64_t{1} << 20;
inline constexpr int64_t kLargestBatch = int64_t{1} << 20;
inline constexpr int64_t kLongestSequence = int64_t{1} << 20;
inline constexpr int64_t kMostDevices = int64_t{1} << 20;
inline constexpr int64_t kMostEpochs = 1'000'000;
inline constexpr int64_t kMostSamples = 1'000'000'000'000;
// Of any draw; that of `validate` passes over as many numbers.
inline constexpr int64_t kLargestSeed = 1'000'000;
// The largest of any other count: bytes of memory, milliseconds since 1970.
inline constexpr int64_t kLargestCount = 1'000'000'000'000'000;

// Times that are measured or answered lie between these, in seconds: a kernel
// takes nanoseconds, a run months.
inline constexpr double kShortestTime = 1e-12;
inline constexpr double kLongestTime = 1e12;

// The most that a device may draw, in watts: a wafer takes 20,000.
inline constexpr double kMostPower = 1e6;

// False for NaN, too.
constexpr bool IsPlausible(Seconds<> time) {
  return time.base() >= kShortestTime && time.base() <= kLongestTime;
}

// The product of counts. Throws InputError "what: .." beyond 64 bits.
int64_t CheckedProduct(std::initializer_list<int64_t> factors,
                       std::string_view what);

}  // namespace trainfare::model
