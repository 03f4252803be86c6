#pragma once

// The job that a command is asked about: a scenario as the flags change it, or
// a model with its data and no scenario at all.

#include <cstdint>
#include <string>

#include "scenarios/commands/predict.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {

// A scenario for people to go on from: the settings that Hugging Face's Trainer
// has by itself, in bf16, one epoch. `model` is a preset or the path of a
// config.json. Throws InputError where it is neither.
std::string NewScenarioText(const std::string& model,
                            int64_t samples,
                            int64_t length);

// `scenario` is a path, a shipped one's name, or empty, where overrides.model
// with its samples and first length say all. Throws InputError that names the
// file or the flag, UsageError where something is left out.
Scenario LoadJob(const std::string& scenario, const Overrides& overrides);

}  // namespace trainfare::scenarios
