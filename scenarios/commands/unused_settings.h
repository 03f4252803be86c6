#pragma once

// Settings of a job that change nothing of it, because another one is not as
// they need it.

#include <vector>

#include "hardware/catalog/device.h"
#include "model/workload.h"
#include "scenarios/report/note.h"

namespace trainfare::scenarios {

// A note for each of `asked`, which becomes `run` on the devices.
std::vector<Note> UnusedSettingsNotes(const model::Workload& asked,
                                      const model::Workload& run,
                                      const hardware::Device& device);

}  // namespace trainfare::scenarios
