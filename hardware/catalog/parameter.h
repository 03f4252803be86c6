#pragma once

// A free parameter of a device model: what a fit may move.

#include <algorithm>
#include <span>
#include <string_view>

namespace trainfare::hardware {

// How a parameter enters the fit. Positive parameters are fitted as logs, so
// that prior and error are relative; a share in [0, 1] is fitted as it is.
enum class Transform { kLog, kLinear };

// The prior is what one believes before any run: a normal distribution around
// `prior` in the transformed scale, from datasheets and published figures
// (hardware/kinds/*.yaml).
struct ParameterInfo {
  std::string_view name;
  std::string_view unit = "1";  // or "s"
  std::string_view meaning;
  Transform transform = Transform::kLog;
  double prior = 1.0;
  double prior_sigma = 0.5;  // of log(value), or of value when kLinear
  double lower = 0.0;
  double upper = 1.0;
  // Prior and width of a kernel's by itself, where these are not as in a step;
  // 0: they are.
  double alone_prior = 0.0;
  double alone_sigma = 0.0;
  // The kind of run that determines it, for the message of a refused fit.
  std::string_view determined_by;

  // The same parameter of a kernel by itself.
  ParameterInfo Alone() const {
    ParameterInfo alone = *this;
    if (alone_prior > 0) alone.prior = alone_prior;
    if (alone_sigma > 0) alone.prior_sigma = alone_sigma;
    return alone;
  }
};

// The parameter of that name; nullptr where the model has none.
template <class Info>
Info* FindParameter(std::span<Info> infos, std::string_view name) {
  const auto found =
      std::find_if(infos.begin(), infos.end(), [&](const ParameterInfo& info) {
        return info.name == name;
      });
  return found == infos.end() ? nullptr : &*found;
}

}  // namespace trainfare::hardware
