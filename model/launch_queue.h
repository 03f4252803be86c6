#pragma once

// The host launches, the device runs: how long a queue of kernels takes.

#include <cstdint>

#include "model/units.h"

namespace trainfare::model {

// A stretch of launches as a map on (host, ready), the times at which the host
// is free and the device has finished:
//
//   host'  = host + H
//   ready' = max(ready + D, host + M)
//
//   H  host time of all launches                          [s]
//   D  device time of all kernels                         [s]
//   M  time from the host's start to the end of the last kernel when the
//      device was idle before: the longest path            [s]
//
// One kernel of host cost h and device time t is H = h, D = t, M = h + t,
// which is the recursion ready_k = max(ready_{k-1}, host_k) + t_k with
// host_k = host_{k-1} + h. Such maps compose, and the n-fold repetition has a
// closed form, since its longest path leaves the host in the first or in the
// last round: M_n = (n - 1) max(H, D) + M.
// Literature: Baccelli et al., Synchronization and Linearity, 1992, ch. 1.
template <class T>
struct LaunchMap {
  Seconds<T> host;    // H
  Seconds<T> device;  // D
  Seconds<T> path;    // M

  // First this map, then `next`.
  LaunchMap Then(const LaunchMap& next) const {
    const Seconds<T> device_path = path + next.device;
    const Seconds<T> host_path = host + next.path;
    return {host + next.host,
            device + next.device,
            device_path < host_path ? host_path : device_path};
  }
  LaunchMap Repeated(int64_t times) const {
    if (times == 1) return *this;
    const auto more = static_cast<double>(times - 1);
    const Seconds<T>& longer = host < device ? device : host;
    return {host * static_cast<double>(times),
            device * static_cast<double>(times),
            path + longer * more};
  }
};

template <class T>
LaunchMap<T> OneLaunch(Seconds<T> host_cost, Seconds<T> device_time) {
  return {host_cost, device_time, host_cost + device_time};
}

// The two clocks of a queue while maps are applied to it.
template <class T>
struct LaunchQueue {
  Seconds<T> host;
  Seconds<T> ready;

  void Apply(const LaunchMap<T>& map) {
    const Seconds<T> by_device = ready + map.device;
    const Seconds<T> by_host = host + map.path;
    ready = by_device < by_host ? by_host : by_device;
    host = host + map.host;
  }
};

}  // namespace trainfare::model
