#pragma once

// Units that tests write and read, and no other code: beside those of
// model/units.h.

#include "model/units.h"

namespace trainfare::model {

constexpr Seconds<> Hours(double value) { return Seconds<>(value * 3600.0); }
constexpr FlopsPerSecond<> TFlopPerSecond(double value) {
  return FlopsPerSecond<>(value * 1e12);
}
constexpr Joules<> Joule(double value) { return Joules<>(value); }
constexpr Joules<> KilowattHours(double value) {
  return Joules<>(value * 3.6e6);
}
constexpr double ToMilliseconds(Seconds<> value) { return value.base() * 1e3; }
constexpr double ToMicroseconds(Seconds<> value) { return value.base() * 1e6; }
constexpr double ToGiB(Bytes<> value) { return value.base() / 1073741824.0; }
constexpr double ToKilowattHours(Joules<> value) {
  return value.base() / 3.6e6;
}
constexpr double ToMegahertz(Hertz<> value) { return value.base() * 1e-6; }

}  // namespace trainfare::model
