#include "scenarios/commands/asked_job.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <regex>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "hardware/files/model_config.h"
#include "hardware/files/yaml_reader.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/limits.h"
#include "model/presets.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {
namespace {

using hardware::YamlSetting;
using model::InputError;

namespace fs = std::filesystem;

// The config.json that `model` is, or that its folder has; nullopt for a preset.
std::optional<std::string> ConfigOf(const std::string& model) {
  std::error_code ignored;
  if (!model::TryFindArchitecture(model) && fs::is_directory(model, ignored)) {
    return (fs::path(model) / "config.json").string();
  }
  if (model.ends_with(".json")) return model;
  return std::nullopt;
}

// Without the folders that it is in: "llama/" is named llama.
std::string NameWithoutFolders(const std::string& model) {
  const fs::path path(model);
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

model::Architecture ArchitectureOf(const std::string& model) {
  if (const auto config = ConfigOf(model)) {
    return hardware::ReadModelConfig(*config);
  }
  return WithFlag("--model", [&] { return model::FindArchitecture(model); });
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
  const auto config = ConfigOf(model);
  return config ? fs::absolute(*config).string() : model;
}

std::vector<YamlSetting> SettingsOf(const Overrides& overrides) {
  std::vector<YamlSetting> settings;
  if (overrides.model) {
    // What is wrong with a file is said by the name that people gave it.
    if (const auto config = ConfigOf(*overrides.model)) {
      hardware::ReadModelConfig(*config);
    }
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
      throw InputError(
          fmt::format("--set: expected KEY=VALUE, got \"{}\"; hint: --set "
                      "dataset.train=1000",
                      text));
    }
    settings.push_back(
        {text.substr(0, equals), text.substr(equals + 1), "--set"});
  }
  return settings;
}

std::vector<model::Precision> PrecisionsOf(const Scenario& scenario,
                                           const Overrides& overrides) {
  if (overrides.precisions.empty()) return {scenario.workload.precision};
  std::vector<model::Precision> precisions;
  for (const std::string& word : overrides.precisions) {
    precisions.push_back(WithFlag("--precision", [&] {
      return model::FromText<model::Precision>(word);
    }));
  }
  return precisions;
}

void PadAsAsked(int64_t length, Scenario& scenario) {
  RequireCount("--seq", length, model::kLongestSequence);
  scenario.PadTo(length);
  if (auto wrong = BeyondPositions(scenario.workload.architecture, length)) {
    throw InputError("--seq: padding: " + *wrong);
  }
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
      fmt::arg("title", SingleQuoted(NameWithoutFolders(model))),
      fmt::arg("model", SingleQuoted(ConfigOf(model).value_or(model))),
      fmt::arg("task", model::ToText(UsualTask(ArchitectureOf(model)))),
      fmt::arg("samples", samples),
      fmt::arg("length", length));
}

namespace {

// The model of a scenario as it is written; none where that alone is no job.
std::optional<std::string> OwnModel(const std::string& scenario) {
  try {
    return LoadScenario(scenario).workload.architecture.name;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

Scenario ParseNewScenario(const std::string& model,
                          int64_t samples,
                          int64_t length,
                          const std::vector<YamlSetting>& settings) {
  // What is wrong with the model itself has a place that somebody wrote.
  const std::string written = NewScenarioText(model, samples, length);
  // As if it stood where people are: files that it names are found from there.
  const std::string name = NameWithoutFolders(model);
  try {
    return ParseScenario(written, name, settings);
  } catch (const InputError& error) {
    // A place in a text that nobody wrote helps nobody: "gpt2:12:43: ..".
    const std::string text = error.what();
    const size_t key = text.find(": ");
    const std::regex place(R"(:\d+:\d+)");
    if (!text.starts_with(name) || key == std::string::npos ||
        !std::regex_match(text.substr(name.size(), key - name.size()), place)) {
      throw;
    }
    throw InputError(fmt::format(
        "--model {}{}{}",
        model,
        text.substr(key),
        settings.empty()
            ? ""
            : "; hint: `trainfare init` writes what stands for the rest"));
  }
}

Scenario LoadJob(const std::string& scenario, const Overrides& overrides) {
  std::vector<YamlSetting> settings = SettingsOf(overrides);
  if (scenario.empty() && !overrides.model) {
    throw UsageError(
        "expected a SCENARIO, or --model NAME with --samples N and --length N");
  }
  if (scenario.empty() && (!overrides.samples || overrides.lengths.empty())) {
    throw UsageError(
        "--model: without a SCENARIO, expected also --samples N and --length "
        "N");
  }
  // The file's own padding is not asked for then, nor whether it suits a model
  // that is not the file's.
  if (!overrides.lengths.empty()) {
    const char* flag = scenario.empty() ? "--length" : "--seq";
    const int64_t length = overrides.lengths.front();
    RequireCount(flag, length, model::kLongestSequence);
    settings.insert(settings.begin(),
                    {"padding", fmt::format("{{ static: {} }}", length), flag});
  }
  if (!scenario.empty()) {
    Scenario job = LoadScenario(scenario, settings);
    // The title speaks of the file's model.
    const std::string& name = job.workload.architecture.name;
    if (overrides.model && OwnModel(scenario) != name) {
      job.title += fmt::format(", as {}", name);
    }
    return job;
  }
  return ParseNewScenario(*overrides.model,
                          *overrides.samples,
                          overrides.lengths.front(),
                          settings);
}

void RequireCount(std::string_view flag, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return;
  throw InputError(fmt::format(
      "{}: expected an integer from 1 to {}, got {}", flag, most, value));
}

std::vector<Scenario> Variants(const Scenario& scenario,
                               const Overrides& overrides) {
  Scenario base = scenario;
  if (overrides.work) {
    base.workload.work =
        WithFlag("--work", [&] { return WorkFromText(*overrides.work); });
    if (base.workload.work == model::Work::kForward) {
      base.workload.accumulation = 1;
    } else if (!base.names_optimizer) {
      throw InputError(
          "--work: expected forward, the scenario names no optimizer to train "
          "with");
    }
  }
  if (overrides.epochs) {
    RequireCount("--epochs", *overrides.epochs, model::kMostEpochs);
    base.epochs = *overrides.epochs;
  }
  std::vector<int64_t> batches = overrides.batches;
  if (batches.empty()) batches.push_back(base.workload.batch);
  std::vector<Scenario> variants;
  // 0 stands for the scenario's own padding.
  std::vector<int64_t> lengths = overrides.lengths;
  const bool own_padding = lengths.empty();
  if (own_padding) lengths.push_back(0);
  for (const model::Precision precision : PrecisionsOf(base, overrides)) {
    base.workload.precision = precision;
    for (const int64_t length : lengths) {
      for (const int64_t batch : batches) {
        RequireCount("--batch", batch, model::kLargestBatch);
        Scenario variant = base;
        variant.workload.batch = batch;
        if (!own_padding) PadAsAsked(length, variant);
        variants.push_back(std::move(variant));
      }
    }
  }
  return variants;
}

}  // namespace trainfare::scenarios
