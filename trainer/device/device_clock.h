#pragma once

// Instants on the clock of the device that works: the monotonic clock on a
// CPU; on a GPU events in its queue, so that timing a step neither waits for
// the device nor counts what the host does ahead of it.

#include <c10/core/Event.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// The seconds of the monotonic clock.
double MonotonicSeconds();

class DeviceClock {
 public:
  explicit DeviceClock(at::Device device) : device_(device) {}

  // Forgets all marks; the next one is number 0.
  void Clear() { count_ = 0; }
  // Marks where the work asked for so far ends; returns the mark's number. On
  // the thread that asks for the work, or autograd's, which work in turns.
  size_t Mark();
  // Marks, on a GPU, the end of what `wait` makes a stream wait for, in a
  // stream of its own, so that neither the host nor the work asked for waits.
  size_t MarkEndOf(const std::function<void()>& wait);
  // Returns when the device has done all that was asked of it.
  void Wait() const;
  // From one mark to a later one. On a GPU only after Wait().
  double SecondsBetween(size_t from, size_t to) const;

 private:
  at::Device device_;
  size_t count_ = 0;
  std::vector<double> instants_;    // of a CPU
  std::vector<c10::Event> events_;  // of a GPU, kept from step to step
  std::optional<c10::Stream> waiting_;
};

}  // namespace trainfare::trainer
