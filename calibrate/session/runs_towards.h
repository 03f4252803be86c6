#pragma once

// Short runs that say most of one question: the model that is asked for, at the
// sizes that this machine can run.

#include <string>
#include <vector>

#include "calibrate/session/options.h"
#include "calibrate/session/plan.h"
#include "hardware/catalog/device.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// The plan of a calibration towards `asked`. Candidates have the asked model's
// blocks, with all or a part of its layers and of its width, as the device's
// memory holds them, in its precision and stack, at its batch and length and at
// smaller ones. Asked are the steps themselves, on one device and without
// accumulation. Throws InputError where the device lacks a precision that is
// asked for, and where no size of a model fits.
PlanOptions PlanTowards(const hardware::Device& device,
                        const std::vector<model::Workload>& asked);

// What a calibration of this very device chooses among: PlanTowards what the
// options ask for, else PlanHere, in the device's precisions where they name
// none.
PlanOptions PlanOf(const hardware::Device& device,
                   const CalibrateOptions& options);

// The sizes of an architecture, itself first, then fewer layers and narrower
// ones: heads, hidden and feed-forward by one factor, head size and vocabulary
// as they are. Each is named after what it has: "qwen3-0.6b, 7 layers, 1/2
// wide".
std::vector<model::Architecture> SizesOf(const model::Architecture& whole);

}  // namespace trainfare::calibrate
