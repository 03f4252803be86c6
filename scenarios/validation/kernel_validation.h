#pragma once

// Kernels timed by themselves (trainfare-trainer bench kernels) beside the
// formula of their device: which part of a step is mispredicted.

#include <string>
#include <vector>

#include "scenarios/report/output.h"
#include "scenarios/validation/options.h"

namespace trainfare::scenarios {

// Whether these files are records of the trainer with kernels and no steps.
// Throws InputError for a file of records that cannot be read.
bool HoldKernels(const std::vector<std::string>& files);

// As Validate(), with a group for each kind of kernel: by the fits at hand, or
// by fits to these kernels, each of them left out in turn or not. Throws
// UsageError for another protocol.
Report ValidateKernels(const ValidateOptions& options);

}  // namespace trainfare::scenarios
