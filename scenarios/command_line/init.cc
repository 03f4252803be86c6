#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "hardware/files/foreign_text.h"
#include "model/error.h"
#include "model/limits.h"
#include "scenarios/command_line/arguments.h"
#include "scenarios/command_line/commands.h"
#include "scenarios/commands/asked_job.h"
#include "scenarios/job/named_model.h"

namespace trainfare::scenarios {
namespace {

struct InitFlags {
  std::string model;
  std::optional<int64_t> samples;
  std::optional<int64_t> length;
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
  // What it writes can be read.
  ParseNewScenario(model, *flags.samples, *flags.length);
  return WriteNew(NewScenarioText(model, *flags.samples, *flags.length),
                  flags.output);
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
  sub.add_option(
         "--output", flags->output, "Where it goes (default: standard output)")
      ->type_name("FILE");
  return [flags, &sub] { return sub ? Init(*flags) : -1; };
}

}  // namespace trainfare::scenarios
