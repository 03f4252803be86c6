#include "trainer/ranks/rank_training.h"

#include <algorithm>
#include <cstddef>

namespace trainfare::trainer {

LayerName LayerOf(const std::string& parameter) {
  std::vector<size_t> dots;
  for (size_t i = 0; i < parameter.size(); ++i) {
    if (parameter[i] != '.') continue;
    const size_t begin = dots.empty() ? 0 : dots.back() + 1;
    const bool number =
        i > begin &&
        std::all_of(parameter.begin() + static_cast<std::ptrdiff_t>(begin),
                    parameter.begin() + static_cast<std::ptrdiff_t>(i),
                    [](char c) { return c >= '0' && c <= '9'; });
    if (number) return {parameter.substr(0, i), true};
    dots.push_back(i);
  }
  if (dots.empty()) return {parameter, false};
  return {parameter.substr(0, dots.size() > 1 ? dots[1] : dots[0]), false};
}

}  // namespace trainfare::trainer
