#pragma once

#include <cstdint>

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

}  // namespace trainfare::model
