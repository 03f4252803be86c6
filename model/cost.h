#pragma once

// What rented time costs.

#include <algorithm>
#include <cmath>

#include "model/error.h"
#include "model/units.h"

namespace trainfare::model {

// How a provider counts time. Clouds bill by the second after a first minute;
// some bill whole minutes or hours.
struct Billing {
  Seconds<> granularity = Second(1.0);
  Seconds<> minimum = Second(60.0);
};

// Time on the bill.
//
//   t_b = max(t_min, g ceil(t / g))
//
//   t      time between start and stop            [s]
//   g      granularity                            [s]  > 0
//   t_min  least time billed                      [s]
//
// Nothing rented, nothing billed. Check: tests/model/cost_test.cc.
inline Seconds<> BilledTime(Seconds<> elapsed, const Billing& billing) {
  ENSURE(billing.granularity.base() > 0, "time is billed in pieces");
  ENSURE(elapsed.base() >= 0, "time runs forward");
  if (elapsed.base() == 0) return elapsed;
  // A time that is a whole number of pieces but for rounding stays one.
  const double pieces = elapsed / billing.granularity;
  const double whole = std::ceil(pieces * (1.0 - 1e-12));
  return std::max(billing.minimum, billing.granularity * whole);
}

// C = t_b p: billed time times the price of the whole instance.
inline Usd<> RentalCost(Seconds<> elapsed,
                        UsdPerSecond<> price,
                        const Billing& billing) {
  return BilledTime(elapsed, billing) * price;
}

}  // namespace trainfare::model
