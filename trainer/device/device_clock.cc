#include "trainer/device/device_clock.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>

namespace trainfare::trainer {

double MonotonicSeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

size_t DeviceClock::Mark() {
  const size_t mark = count_++;
  if (device_.is_cpu()) {
    if (instants_.size() < count_) instants_.resize(count_);
    instants_[mark] = MonotonicSeconds();
    return mark;
  }
  if (events_.size() < count_) {
    events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  }
  events_[mark].record(
      c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  return mark;
}

size_t DeviceClock::MarkEndOf(const std::function<void()>& wait) {
  if (!waiting_) {
    waiting_ = c10::impl::VirtualGuardImpl(device_.type())
                   .getStreamFromGlobalPool(device_);
  }
  const c10::StreamGuard guard(*waiting_);
  wait();
  return Mark();
}

void DeviceClock::Wait() const {
  if (device_.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device_.type())
      .synchronizeDevice(device_.index());
}

double DeviceClock::SecondsBetween(size_t from, size_t to) const {
  if (device_.is_cpu()) return instants_.at(to) - instants_.at(from);
  const double elapsed_ms = events_.at(from).elapsedTime(events_.at(to));
  return elapsed_ms * 1e-3;
}

}  // namespace trainfare::trainer
