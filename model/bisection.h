#pragma once

#include <cstdint>
#include <initializer_list>

namespace trainfare::model {

// The largest number for which `holds`, by halving: it holds at `low`, fails at
// `high`, and changes once between.
template <class Holds>
int64_t LargestThat(int64_t low, int64_t high, const Holds& holds) {
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

// The same, trying first beside `guess`.
template <class Holds>
int64_t LargestNear(int64_t guess,
                    int64_t low,
                    int64_t high,
                    const Holds& holds) {
  for (const int64_t at : {guess, guess + 1, guess - 1}) {
    if (at > low && at < high) (holds(at) ? low : high) = at;
  }
  return LargestThat(low, high, holds);
}

}  // namespace trainfare::model
