#pragma once

// Measured steps that have no room on their devices as they are read: something
// of them, adapters or sharding, was not said.

#include <optional>
#include <vector>

#include "calibrate/records/observation.h"
#include "scenarios/report/note.h"

namespace trainfare::scenarios {

// Names each by its row, the first three; those that need more by the low end of
// their interval (memory_range.h). nullopt: all have room.
std::optional<Note> RoomNote(
    const std::vector<calibrate::Observation>& observations);

}  // namespace trainfare::scenarios
