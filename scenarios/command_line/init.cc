#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "hardware/files/foreign_text.h"
#include "hardware/files/yaml_reader.h"
#include "model/error.h"
#include "model/limits.h"
#include "model/precision.h"
#include "model/words.h"
#include "scenarios/command_line/arguments.h"
#include "scenarios/command_line/commands.h"
#include "scenarios/commands/asked_job.h"
#include "scenarios/job/named_model.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {
namespace {

struct InitFlags {
  std::string model;
  std::optional<int64_t> samples;
  std::optional<int64_t> length;
  std::optional<int64_t> batch;
  std::optional<std::string> precision;
  Overrides overrides;  // its settings alone
  std::string output;
};

// A scenario names its model by what stays where it is.
[[noreturn]] void RefuseModel(const std::string& asked, std::string_view hint) {
  throw model::InputError(fmt::format(
      "--model: expected a name or a file that stays, which is what a scenario "
      "names, got \"{}\"; hint: {}",
      hardware::OneLine(asked, 200),
      hint));
}

std::vector<hardware::YamlSetting> SettingsAsked(const InitFlags& flags) {
  std::vector<hardware::YamlSetting> settings = SettingsOf(flags.overrides);
  if (flags.batch) {
    RequireCount("--batch", *flags.batch, model::kLargestBatch);
    settings.push_back({"batch", std::to_string(*flags.batch), "--batch"});
  }
  if (flags.precision) {
    WithFlag("--precision", [&] {
      return model::FromText<model::Precision>(*flags.precision);
    });
    settings.push_back({"precision", *flags.precision, "--precision"});
  }
  return settings;
}

// A model's file is named from the folder of the scenario that names it; an
// absolute path stays.
NamedModel NamedFrom(const std::filesystem::path& folder,
                     const NamedModel& model) {
  namespace fs = std::filesystem;
  NamedModel named = model;
  if (!model.config || folder.empty() ||
      fs::path(*model.config).is_absolute()) {
    return named;
  }
  std::error_code error;
  const fs::path from = fs::relative(*model.config, folder, error);
  named.name = error || from.empty() ? fs::absolute(*model.config).string()
                                     : from.string();
  return named;
}

int Init(const InitFlags& flags) {
  RequireCount("--samples", *flags.samples, model::kMostSamples);
  RequireCount("--length", *flags.length, model::kLongestSequence);
  if (IsConfigText(flags.model)) {
    if (const auto of = ModelOfMap(flags.model)) {
      RefuseModel(
          flags.model,
          fmt::format("--model {}, and such a map in the scenario", *of));
    }
  }
  const NamedModel model = ReadAskedModel(flags.model);
  std::error_code ignored;
  if (IsConfigText(model.name) ||
      (model.config &&
       !std::filesystem::is_regular_file(*model.config, ignored))) {
    RefuseModel(flags.model, "`trainfare show` writes its dimensions");
  }
  const auto settings = SettingsAsked(flags);
  // Refused as `predict` refuses them; and what it writes can be read.
  ParseNewScenario(model, *flags.samples, *flags.length, settings);
  const auto folder = std::filesystem::path(flags.output).parent_path();
  const NamedModel named = NamedFrom(folder, model);
  const std::string text =
      NewScenarioText(named, *flags.samples, *flags.length, settings);
  ParseScenario(text, (folder / "scenario").string(), {}, named);
  return WriteNew(text, flags.output);
}

}  // namespace

Command AddInit(CLI::App& sub) {
  auto flags = std::make_shared<InitFlags>();
  AddExamples(sub,
              {"init --model qwen2.5-7b --samples 10000 --length 2048 --output "
               "my_job.yaml"});
  sub.add_option(
         "--model",
         flags->model,
         "One of `trainfare list models`, or the path of a config.json or its "
         "folder")
      ->type_name("NAME|FILE|FOLDER")
      ->required();
  AddCount(sub, "--samples", flags->samples, "Of the training data")
      ->required();
  AddCount(sub, "--length,--seq", flags->length, "Of each, in tokens")
      ->required();
  AddCount(sub, "--batch", flags->batch, "Per device (default: 8)");
  sub.add_option(
         "--precision", flags->precision, "Of the products (default: bf16)")
      ->type_name(Choices<model::Precision>());
  sub.add_option("--set",
                 flags->overrides.settings,
                 "Any key of a scenario: optimizer.name=sgd, may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  sub.add_option(
         "--output", flags->output, "Where it goes (default: standard output)")
      ->type_name("FILE");
  return [flags, &sub] { return sub ? Init(*flags) : -1; };
}

}  // namespace trainfare::scenarios
