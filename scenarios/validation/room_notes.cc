#include "scenarios/validation/room_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "hardware/catalog/device.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/device_memory.h"
#include "hardware/models/kind.h"
#include "hardware/models/memory_plan.h"
#include "model/error.h"
#include "scenarios/job/memory_range.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Observation;

// "t.csv:4 needs 120 GiB of 24 GiB"; nullopt: it has room, or nobody knows.
std::optional<std::string> WithoutRoom(const Observation& o) {
  if (o.quantity != calibrate::Quantity::kStep) return std::nullopt;
  const hardware::Device* device =
      hardware::DeviceCatalog::Shipped().TryFind(o.device);
  if (device == nullptr || hardware::KindOf(*device).is_host) {
    return std::nullopt;
  }
  try {
    const hardware::MemoryPlan plan =
        hardware::PlanMemory(*device, o.workload, o.device_count, 1);
    if (MemoryRangeOf(plan.needed, plan.capacity).low <= plan.capacity) {
      return std::nullopt;
    }
    return fmt::format("{} needs {} of {}",
                       o.name(),
                       hardware::FormatBytes(plan.needed.total()),
                       hardware::FormatBytes(plan.capacity));
  } catch (const model::InputError&) {
    return std::nullopt;  // what it is is not predicted either
  }
}

}  // namespace

std::optional<Note> RoomNote(const std::vector<Observation>& observations) {
  constexpr size_t kNamed = 3;
  std::vector<std::string> named;
  size_t count = 0;
  for (const Observation& o : observations) {
    auto words = WithoutRoom(o);
    if (!words) continue;
    ++count;
    if (named.size() < kNamed) named.push_back(std::move(*words));
  }
  if (count == 0) return std::nullopt;
  const std::string more =
      count > named.size() ? fmt::format(", and {} more", count - named.size())
                           : std::string();
  return Note(fmt::format(
      "{} no room as {} read: {}{}; {} of adapters, sharded or recomputed?",
      count == 1 ? "a row has" : fmt::format("{} rows have", count),
      count == 1 ? "it is" : "they are",
      fmt::join(named, ", "),
      more,
      count == 1 ? "is it" : "are they"));
}

}  // namespace trainfare::scenarios
