#include "trainer/device/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

#include "trainer/record/record.h"
#include "trainer/runtime/host_allocator.h"

namespace trainfare::trainer {
namespace {

// The statistics of all pools together.
constexpr auto kAll =
    static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

}  // namespace

void ReleaseMemory(at::Device device) {
  ReleaseHostMemory();
  if (!device.is_cpu()) c10::getDeviceAllocator(device.type())->emptyCache();
}

void ResetPeakMemory(at::Device device) {
  ResetPeakHostMemory();
  ResetPeakResident();
  if (device.is_cpu()) return;
  c10::getDeviceAllocator(device.type())->resetPeakStats(device.index());
}

PeakMemory PeakMemoryOf(at::Device device) {
  if (device.is_cpu()) {
    return {PeakResidentBytes(), HostMemoryInUse().peak_allocated_bytes};
  }
  c10::DeviceAllocator& allocator = *c10::getDeviceAllocator(device.type());
  const auto stats = allocator.getDeviceStats(device.index());
  const auto [free, total] = allocator.getMemoryInfo(device.index());
  const int64_t beside =
      static_cast<int64_t>(total - free) - stats.reserved_bytes[kAll].current;
  return {beside + stats.reserved_bytes[kAll].peak,
          stats.allocated_bytes[kAll].peak};
}

}  // namespace trainfare::trainer
