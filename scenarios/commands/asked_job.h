#pragma once

// The job that a command is asked about: a scenario as the flags change it, or
// a model with its data and no scenario at all.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/files/yaml_reader.h"
#include "model/error.h"
#include "scenarios/job/named_model.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {

// What flags change in a scenario, or say in place of one.
struct Overrides {
  std::optional<std::string> model;   // preset, config.json, its folder or text
  std::optional<int64_t> samples;     // of the training data
  std::vector<std::string> settings;  // "dataset.train=1000", any key
  std::vector<int64_t> batches;       // empty: the scenario's
  std::vector<int64_t> lengths;       // static; empty: the scenario's padding
  std::vector<std::string> precisions;  // empty: the scenario's
  std::optional<int64_t> epochs;
  std::optional<std::string> work;
  std::optional<std::string> start_up;  // a time, or 0
};

// What --model names. Throws InputError where that is no model.
NamedModel ReadAskedModel(const std::string& model);

// What the flags say as settings of a scenario. Throws InputError for one that is
// no KEY=VALUE.
std::vector<hardware::YamlSetting> SettingsOf(const Overrides& overrides);

// A scenario for people to go on from: the settings that Hugging Face's Trainer
// has by itself, in bf16, one epoch; those of the command line in their places.
std::string NewScenarioText(
    const NamedModel& model,
    int64_t samples,
    int64_t length,
    const std::vector<hardware::YamlSetting>& settings = {});

// The same, read, with settings of the command line. Throws InputError.
Scenario ParseNewScenario(
    const NamedModel& model,
    int64_t samples,
    int64_t length,
    const std::vector<hardware::YamlSetting>& settings = {});

// `scenario` is a path, a shipped one's name, or empty, where overrides.model
// with its samples and first length say all. Throws InputError that names the
// file or the flag, UsageError where something is left out.
Scenario LoadJob(const std::string& scenario, const Overrides& overrides);

// What `find` finds; the message of what it throws gets the flag in front.
template <class Find>
decltype(auto) WithFlag(std::string_view flag, const Find& find) {
  try {
    return find();
  } catch (const model::InputError& error) {
    throw model::InputError(std::string(flag) + ": " + error.what());
  }
}

// Throws InputError that names the flag.
void RequireCount(std::string_view flag, int64_t value, int64_t most);

// The scenario once for every batch, length and precision asked for. Throws
// InputError for a value that the model or the format does not allow.
std::vector<Scenario> Variants(const Scenario& scenario,
                               const Overrides& overrides);

}  // namespace trainfare::scenarios
