#pragma once

// Time of one kernel: the equation that every device model shares.

#include "model/units.h"

namespace trainfare::model {

// Exposed shares of one kernel's time; they add up to the time that passes.
template <class T>
struct ExposedTime {
  Seconds<T> compute;
  Seconds<T> memory;
  Seconds<T> fixed;

  Seconds<T> total() const { return compute + memory + fixed; }
  friend ExposedTime operator*(const ExposedTime& time, const T& times) {
    return {time.compute * times, time.memory * times, time.fixed * times};
  }
};

// Time of one kernel on a device that hides part of the shorter of compute and
// memory time under the longer.
//
//   t = c + m - w min(c, m) + e
//
//   c  compute time: FLOPs over peak times efficiency     [s]
//   m  memory time: bytes over bandwidth times efficiency [s]
//   w  share of the shorter that is hidden                [1]  0 <= w <= 1
//   e  fixed cost of a kernel                             [s]
//
// w = 1 is the roofline (Williams, Waterman & Patterson 2009), w = 0 a device
// whose engines and transfers take turns. The hidden part is taken off the
// shorter one. Check: docs/models/cpu.md, tests/model/kernel_time_test.cc.
template <class T>
ExposedTime<T> KernelTime(Seconds<T> compute,
                          Seconds<T> memory,
                          T overlap,
                          Seconds<T> fixed) {
  ExposedTime<T> exposed{compute, memory, fixed};
  if (memory < compute) {
    exposed.memory = memory * (T(1.0) - overlap);
  } else {
    exposed.compute = compute * (T(1.0) - overlap);
  }
  return exposed;
}

// The same with w = 1: all of the shorter is hidden.
template <class T>
ExposedTime<T> RooflineTime(const Seconds<T>& compute,
                            const Seconds<T>& memory,
                            const Seconds<T>& fixed) {
  if (memory < compute) return {compute, Seconds<T>(), fixed};
  return {Seconds<T>(), memory, fixed};
}

// Share of a bandwidth that transfers of limited size can reach, by Little's
// law: to keep a link of bandwidth B and latency L busy, B L bytes must be
// under way.
//
//   l = min(1, bytes in flight / (B L))
//
// Source: Little 1961; Volkov 2016 for GPUs.
template <class T>
T LatencyBoundShare(Bytes<> in_flight,
                    BytesPerSecond<T> bandwidth,
                    Seconds<T> latency) {
  const T share = T(in_flight.base()) / (bandwidth.base() * latency.base());
  return share < T(1.0) ? share : T(1.0);
}

// Share of a tensor's bytes that come from device memory rather than from a
// cache of `capacity`, for a working set of `working_set`: all of a set much
// larger than the cache, hardly any of one much smaller, smooth between.
//
//   f = s / (s + C)
//
// An assumption, not a law: it has the right limits and one known constant.
inline double UncachedShare(Bytes<> working_set, Bytes<> capacity) {
  if (capacity.base() <= 0) return 1.0;
  return working_set.base() / (working_set.base() + capacity.base());
}

}  // namespace trainfare::model
