#include "scenarios/commands/asked_job.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "hardware/files/model_config.h"
#include "hardware/files/yaml_reader.h"
#include "model/architecture.h"
#include "model/error.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {
namespace {

using hardware::YamlSetting;
using model::InputError;

bool IsConfig(std::string_view model) { return model.ends_with(".json"); }

model::Architecture ArchitectureOf(const std::string& model) {
  if (IsConfig(model)) return hardware::ReadModelConfig(model);
  try {
    return model::FindArchitecture(model);
  } catch (const InputError& error) {
    throw InputError(fmt::format("--model: {}", error.what()));
  }
}

// What people train such a model for, where they do not say.
model::Head UsualTask(const model::Architecture& architecture) {
  return architecture.family == model::Family::kEncoder
             ? model::Head::kSequenceClassification
             : model::Head::kCausalLanguageModel;
}

// In quotes, as no name of a file is anything but a text then.
std::string SingleQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char letter : text) {
    quoted += letter;
    if (letter == '\'') quoted += letter;
  }
  return quoted + "'";
}

// A file that a flag names is where the program was started, not beside the
// scenario.
std::string WherePeopleAre(const std::string& model) {
  if (!IsConfig(model)) return model;
  return std::filesystem::absolute(model).string();
}

std::vector<YamlSetting> SettingsOf(const Overrides& overrides) {
  std::vector<YamlSetting> settings;
  if (overrides.model) {
    settings.push_back(
        {"model", SingleQuoted(WherePeopleAre(*overrides.model)), "--model"});
  }
  if (overrides.samples) {
    settings.push_back(
        {"dataset.train", std::to_string(*overrides.samples), "--samples"});
  }
  if (overrides.start_up) {
    const std::string& time = *overrides.start_up;
    settings.push_back(
        {"run.start_up", time == "0" ? time + " s" : time, "--start-up"});
  }
  for (const std::string& text : overrides.settings) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError(
          fmt::format("--set: expected KEY=VALUE such as dataset.train=1000, "
                      "got \"{}\"",
                      text));
    }
    settings.push_back(
        {text.substr(0, equals), text.substr(equals + 1), "--set"});
  }
  return settings;
}

}  // namespace

std::string NewScenarioText(const std::string& model,
                            int64_t samples,
                            int64_t length) {
  return fmt::format(
      "# docs/guide/scenarios.md says what each key means, and\n"
      "# which more there are.\n"
      "name: {title}\n"
      "model: {model}\n"
      "task: {task}\n"
      "dataset:\n"
      "  train: {samples}\n"
      "epochs: 1\n"
      "batch: 8                        # per device\n"
      "padding: {{ static: {length} }}\n"
      "precision: bf16\n"
      "optimizer: {{ name: adamw, implementation: fused }}\n"
      "stack: eager\n"
      "attention: flash\n",
      fmt::arg("title",
               SingleQuoted(std::filesystem::path(model).filename().string())),
      fmt::arg("model", SingleQuoted(model)),
      fmt::arg("task", model::ToText(UsualTask(ArchitectureOf(model)))),
      fmt::arg("samples", samples),
      fmt::arg("length", length));
}

Scenario LoadJob(const std::string& scenario, const Overrides& overrides) {
  std::vector<YamlSetting> settings = SettingsOf(overrides);
  if (!scenario.empty()) return LoadScenario(scenario, settings);
  if (!overrides.model) {
    throw UsageError(
        "expected a SCENARIO, or --model NAME with --samples N and --length N");
  }
  if (!overrides.samples || overrides.lengths.empty()) {
    throw UsageError(
        "--model: without a SCENARIO, expected also --samples N and --length "
        "N");
  }
  const int64_t length = overrides.lengths.front();
  settings.insert(
      settings.begin(),
      {"padding", fmt::format("{{ static: {} }}", length), "--length"});
  return ParseScenario(
      NewScenarioText(*overrides.model, *overrides.samples, length),
      *overrides.model,
      settings);
}

}  // namespace trainfare::scenarios
