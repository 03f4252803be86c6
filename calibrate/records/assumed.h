#pragma once

// What whoever published a measurement does not say of its run.

#include <map>
#include <string>

namespace trainfare::calibrate {

// What is taken to be so, by its key, and why.
using Assumed = std::map<std::string, std::string>;

// Whether a step would be another one if it were not so: then nobody knows
// surely of what its time was measured. How much data there was and what it
// cost make no step.
bool MakesStep(const Assumed& assumed);
// The same of a step that is the time of a run over its steps: there is no
// other number of these.
bool MakesMeanStep(const Assumed& assumed);

}  // namespace trainfare::calibrate
