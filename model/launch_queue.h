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
// host_k = host_{k-1} + h. Such maps compose, M behind M being
// max(M + D', H + M'), and the n-fold repetition has a closed form, since its
// longest path leaves the host in the first or in the last round:
// M_n = (n - 1) max(H, D) + M.
// Literature: Baccelli et al., Synchronization and Linearity, 1992, ch. 1.
template <class T>
struct LaunchMap {
  Seconds<T> host;    // H
  Seconds<T> device;  // D
  Seconds<T> path;    // M

  // Behind this map `times` launches of a kernel.
  void Append(const Seconds<T>& host_cost,
              const Seconds<T>& device_time,
              int64_t times) {
    if (times == 1) {
      host += host_cost;
      // The kernel begins when it is launched, and no other is at work.
      if (path < host) path = host;
      path += device_time;
      device += device_time;
      return;
    }
    const Seconds<T> host_path = host + (host_cost + device_time +
                                         Longer(host_cost, device_time) *
                                             static_cast<double>(times - 1));
    const Seconds<T> all = device_time * static_cast<double>(times);
    path += all;
    if (path < host_path) path = host_path;
    device += all;
    host += host_cost * static_cast<double>(times);
  }
  LaunchMap Repeated(int64_t times) const {
    if (times == 1) return *this;
    return {host * static_cast<double>(times),
            device * static_cast<double>(times),
            path + Longer(host, device) * static_cast<double>(times - 1)};
  }

 private:
  static const Seconds<T>& Longer(const Seconds<T>& of_host,
                                  const Seconds<T>& of_device) {
    return of_host < of_device ? of_device : of_host;
  }
};

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
