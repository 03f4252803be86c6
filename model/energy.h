#pragma once

// Energy of a device from how busy it is.

#include "model/error.h"
#include "model/units.h"

namespace trainfare::model {

// Mean power of a device that works a share of the time.
//
//   P = P_idle + (P_max - P_idle) u
//
//   P_idle  power without work                    [W]  datasheet or measured
//   P_max   power limit                           [W]  datasheet
//   u       share of the time that it works       [1]  0 <= u <= 1
//
// Linear between the two ends. An upper bound for work that does not drive the
// device to its limit (memory-bound kernels draw less than P_max).
// Source: Fan, Weber & Barroso 2007, section 4. Check:
// tests/model/energy_test.cc.
template <class T>
Watts<T> MeanPower(Watts<> idle, Watts<> max, const T& busy) {
  ENSURE(!(busy < T(0.0)) && !(T(1.0) < busy), "a share is 0 to 1");
  return Watts<T>(idle.base() + (max.base() - idle.base()) * busy);
}

// What a device draws at rest and in two kinds of work.
struct PowerLevels {
  Watts<> idle;      // while a job holds it and it waits
  Watts<> products;  // matrix products
  Watts<> others;    // everything else: memory traffic, elementwise work
};

// Mean power of a device that spends its time on both.
//
//   P = P_idle + (P_p - P_idle) u_p + (P_o - P_idle) u_o
//
//   u_p, u_o  shares of the time                  [1]  u_p + u_o <= 1
//
// The line above with a term for each kind of work. Check:
// docs/models/energy.md, tests/model/energy_test.cc.
template <class T>
Watts<T> MeanPower(const PowerLevels& levels,
                   const T& products,
                   const T& others) {
  ENSURE(!(products < T(0.0)) && !(others < T(0.0)) &&
             !(T(1.0) < products + others),
         "shares are 0 to 1 and together at most 1");
  const double idle = levels.idle.base();
  return Watts<T>(idle + (levels.products.base() - idle) * products +
                  (levels.others.base() - idle) * others);
}

// Energy of `time` at a share of work. E = P t.
template <class T>
Joules<T> Energy(Watts<> idle, Watts<> max, const T& busy, Seconds<T> time) {
  return MeanPower(idle, max, busy) * time;
}

}  // namespace trainfare::model
