#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/command_line/commands.h"
#include "scenarios/command_line/job_flags.h"
#include "scenarios/commands/asked_job.h"
#include "scenarios/job/scenario_text.h"

namespace trainfare::scenarios {
namespace {

struct ShowFlags {
  std::string scenario;
  Overrides overrides;
  std::string output;
};

int ShowScenario(const ShowFlags& flags) {
  const std::vector<Scenario> variants =
      Variants(LoadJob(flags.scenario, flags.overrides), flags.overrides);
  if (variants.size() != 1) {
    throw UsageError("show: give one of each, it shows one job");
  }
  return WriteNew(ToYaml(variants.front(), FileWidth(flags.output)),
                  flags.output);
}

}  // namespace

Command AddShow(CLI::App& app) {
  auto flags = std::make_shared<ShowFlags>();
  CLI::App* sub =
      app.add_subcommand("show", "A scenario with all that it leaves unsaid");
  AddExamples(*sub,
              {"show squad_bert_large",
               "show my_job.yaml --set stack=compiled --output all.yaml"});
  sub->add_option("SCENARIO",
                  flags->scenario,
                  "A file, or the name of a shipped scenario; "
                  "or none, with --model");
  AddOverrides(*sub, flags->overrides);
  sub->add_option(
         "--output", flags->output, "Where it goes (default: standard output)")
      ->type_name("FILE");
  return [flags, sub] { return *sub ? ShowScenario(*flags) : -1; };
}

}  // namespace trainfare::scenarios
