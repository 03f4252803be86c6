#include "trainer/device/device_activity.h"

#include <fmt/format.h>
#include <kineto/ActivityType.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <stdexcept>

#include "trainer/device/device_clock.h"

namespace trainfare::trainer {
namespace {

namespace profiler = torch::autograd::profiler;
using libkineto::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

// A for-loop over the tensors of BERT-large has 5000 launches a call.
constexpr int64_t kMostCalls = 50;

bool Works(const profiler::KinetoEvent& event, at::Device device) {
  const auto type = static_cast<ActivityType>(event.activityType());
  if (device.is_cpu()) return type == ActivityType::CPU_OP;
  return type == ActivityType::CONCURRENT_KERNEL ||
         type == ActivityType::GPU_MEMCPY || type == ActivityType::GPU_MEMSET;
}

}  // namespace

int64_t CoveredNanoseconds(std::vector<std::pair<int64_t, int64_t>> intervals) {
  std::sort(intervals.begin(), intervals.end());
  int64_t covered = 0;
  int64_t until = intervals.empty() ? 0 : intervals.front().first;
  for (const auto& [begin, end] : intervals) {
    covered += std::max<int64_t>(end - std::max(begin, until), 0);
    until = std::max(until, end);
  }
  return covered;
}

DeviceActivity ActivityOf(at::Device device,
                          int64_t calls,
                          const std::function<void()>& call) {
  const DeviceClock clock(device);
  const ProfilerConfig config(ProfilerState::KINETO);
  const std::set<torch::profiler::impl::ActivityType> activities = {
      device.is_cpu() ? torch::profiler::impl::ActivityType::CPU
                      : torch::profiler::impl::ActivityType::CUDA};
  const int64_t count = std::clamp<int64_t>(calls, 1, kMostCalls);
  if (device.is_cpu()) {
    // Where there is no GPU the profiler complains of that on stderr.
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread reads it yet.
    ::setenv("KINETO_LOG_LEVEL", "99", /*overwrite=*/0);
  }
  profiler::prepareProfiler(config, activities);
  clock.Wait();
  profiler::enableProfiler(config, activities, {at::RecordScope::FUNCTION});
  for (int64_t i = 0; i < count; ++i) call();
  clock.Wait();
  const auto result = profiler::disableProfiler();
  DeviceActivity activity;
  std::vector<std::pair<int64_t, int64_t>> intervals;
  for (const profiler::KinetoEvent& event : result->events()) {
    if (!Works(event, device)) continue;
    const auto begin = static_cast<int64_t>(event.startNs());
    const auto duration = static_cast<int64_t>(event.durationNs());
    intervals.emplace_back(begin, begin + duration);
  }
  if (intervals.empty()) {
    throw std::runtime_error(fmt::format(
        "LibTorch's profiler saw no work of {}; a driver may keep CUPTI for "
        "root (NVreg_RestrictProfilingToAdminUsers)",
        device.str()));
  }
  activity.launches = static_cast<int64_t>(intervals.size()) / count;
  activity.active_s =
      static_cast<double>(CoveredNanoseconds(std::move(intervals))) * 1e-9 /
      static_cast<double>(count);
  return activity;
}

}  // namespace trainfare::trainer
