#include "scenarios/commands/asked_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <regex>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "hardware/files/yaml_reader.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/limits.h"
#include "model/validate.h"
#include "scenarios/commands/scenario_lines.h"
#include "scenarios/job/named_model.h"
#include "scenarios/job/scenario_fields.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {
namespace {

using hardware::YamlSetting;
using model::InputError;

namespace fs = std::filesystem;

// "llama" of "llama/" and of "/models/llama".
std::string LastPart(const fs::path& path) {
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

// What a job is called that has nothing but its model: of a config.json the
// folder, whose own name it is ("." has none), of a text what it says.
std::string TitleOf(const NamedModel& model) {
  if (IsConfigText(model.name)) return LastPart(model.architecture.name);
  if (!model.config) return LastPart(model.name);
  const fs::path file(*model.config);
  if (file.extension() != ".json") return LastPart(model.architecture.name);
  if (file.filename() != "config.json") return LastPart(file);
  std::error_code error;
  const fs::path folder = fs::canonical(file.parent_path() / ".", error);
  return folder.has_filename() ? folder.filename().string()
                               : LastPart(model.architecture.name);
}

// What people train such a model for, where they do not say.
model::Head UsualTask(const model::Architecture& architecture) {
  return architecture.family == model::Family::kEncoder
             ? model::Head::kSequenceClassification
             : model::Head::kCausalLanguageModel;
}

// The same where settings made another model of it, "gpt2 with vocabulary
// 50304", or one in its place.
std::string TitleOf(const NamedModel& model,
                    const model::Architecture& counted) {
  const std::string& own = model.architecture.name;
  return counted.name.starts_with(own)
             ? TitleOf(model) + counted.name.substr(own.size())
             : counted.name;
}

// Whether settings say anything of the model.
bool SetsModel(const std::vector<YamlSetting>& settings) {
  return std::any_of(
      settings.begin(), settings.end(), [](const YamlSetting& setting) {
        return setting.path == "model" || setting.path.starts_with("model.");
      });
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

}  // namespace

std::vector<YamlSetting> SettingsOf(const Overrides& overrides) {
  std::vector<YamlSetting> settings;
  if (overrides.model) {
    settings.push_back({"model", SingleQuoted(*overrides.model), "--model"});
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
    YamlSetting setting{
        text.substr(0, equals), text.substr(equals + 1), "--set"};
    // Of a model that has a name: of that one, with this changed.
    if (setting.path.starts_with("model.")) setting.single_key = kModelOf;
    settings.push_back(std::move(setting));
  }
  return settings;
}

namespace {

// Whether a setting takes away what a job has trained of its model alone, which
// leaves all of it to train.
bool TrainsAll(const YamlSetting& setting) {
  return (setting.path == "trainable" || setting.path == "trainable.lora") &&
         (setting.value == "null" || setting.value == "~");
}

// As its settings ask, which are to have no word of that any more.
Scenario TrainingAll(Scenario job) {
  job.workload.trainable = {};
  model::Validate(job.workload);
  return job;
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

NamedModel ReadAskedModel(const std::string& model) {
  try {
    return ReadNamedModel(model);
  } catch (const InputError& error) {
    // A file's place says more.
    if (IsConfigText(model) || ConfigAsked(model)) throw;
    throw InputError(fmt::format("--model: {}", error.what()));
  }
}

std::string NewScenarioText(const NamedModel& model,
                            int64_t samples,
                            int64_t length,
                            const std::vector<YamlSetting>& settings) {
  std::vector<ScenarioLine> lines = {
      {"name", SingleQuoted(TitleOf(model))},
      {"model", SingleQuoted(model.name)},
      {"task", std::string(model::ToText(UsualTask(model.architecture)))},
      {.key = "dataset",
       .lines = {{"train", std::to_string(samples)}},
       .is_block = true},
      {"epochs", "1"},
      {"batch", "8", "per device"},
      {.key = "padding", .lines = {{"static", std::to_string(length)}}},
      {"precision", "bf16"},
      {.key = "optimizer",
       .lines = {{"name", "adamw"}, {"implementation", "fused"}}},
      {"stack", "eager"},
      {"attention", "flash"}};
  for (const YamlSetting& setting : settings) SetLine(setting, lines);
  return "# docs/guide/scenarios.md says what each key means, and\n"
         "# which more there are.\n" +
         TextOf(lines);
}

namespace {

// The model of a scenario as it is written; none where that alone is no job,
// nor of a pipe, which has been read.
std::optional<std::string> OwnModel(const std::string& scenario) {
  std::error_code ignored;
  const fs::file_status status = fs::status(scenario, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) return std::nullopt;
  try {
    return LoadScenario(scenario).workload.architecture.name;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

Scenario ParseNewScenario(const NamedModel& model,
                          int64_t samples,
                          int64_t length,
                          const std::vector<YamlSetting>& settings) {
  const std::string written = NewScenarioText(model, samples, length);
  // As if it stood where people are: files that it names are found from there.
  const std::string name = TitleOf(model);
  try {
    Scenario job = ParseScenario(written, name, settings, model);
    job.places.reset();
    if (job.title == name) {
      job.title = TitleOf(model, job.workload.architecture);
    }
    return job;
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
        "--model{}{}{}",
        IsConfigText(model.name) ? "" : " " + model.name,
        text.substr(key),
        settings.empty()
            ? ""
            : "; hint: `trainfare init` writes what stands for the rest"));
  }
}

namespace {

Scenario LoadChanged(const std::string& scenario,
                     const Overrides& overrides,
                     std::vector<YamlSetting> settings) {
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
  // Nor is its own batch, which may be too large to be counted.
  if (!overrides.batches.empty()) {
    const int64_t batch = overrides.batches.front();
    RequireCount("--batch", batch, model::kLargestBatch);
    settings.push_back({"batch", std::to_string(batch), "--batch"});
  }
  std::optional<NamedModel> model;
  if (overrides.model) model = ReadAskedModel(*overrides.model);
  if (!scenario.empty()) {
    Scenario job = LoadScenario(scenario, settings, model);
    // The title speaks of the file's model.
    const std::string& name = job.workload.architecture.name;
    if (SetsModel(settings) && OwnModel(scenario) != name) {
      job.title += fmt::format(", as {}", name);
    }
    return job;
  }
  return ParseNewScenario(
      *model, *overrides.samples, overrides.lengths.front(), settings);
}

}  // namespace

Scenario LoadJob(const std::string& scenario, const Overrides& overrides) {
  std::vector<YamlSetting> settings = SettingsOf(overrides);
  const bool trains_all = std::erase_if(settings, TrainsAll) > 0;
  Scenario job = LoadChanged(scenario, overrides, std::move(settings));
  return trains_all ? TrainingAll(std::move(job)) : job;
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
      // Micro-batches fill a pipeline; else there is nothing to add up for.
      if (base.workload.parallel.pipeline == 1) base.workload.accumulation = 1;
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
  if (!overrides.precisions.empty()) base.precision_flag = "--precision";
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
