#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/command_line/arguments.h"
#include "scenarios/command_line/commands.h"
#include "scenarios/command_line/job_flags.h"
#include "scenarios/commands/asked_job.h"
#include "scenarios/job/scenario_text.h"
#include "scenarios/report/result_json.h"

namespace trainfare::scenarios {
namespace {

struct ShowFlags {
  std::string scenario;
  Overrides overrides;
  std::string output;
};

int ShowScenario(const ShowFlags& flags, const std::vector<Limit>& limits) {
  const std::vector<Scenario> variants =
      Variants(LoadJob(flags.scenario, flags.overrides), flags.overrides);
  if (variants.size() != 1) {
    throw UsageError("show: give one of each, it shows one job");
  }
  const Scenario& scenario = variants.front();
  // The figures are those that answers have of their scenario.
  Report report;
  report.json = AnswerText(ToJson(scenario), report);
  FromValue([&] { CheckLimits(limits, report); });
  WriteNew(ToYaml(scenario, FileWidth(flags.output)), flags.output);
  if (!report.complaint.empty()) Fail(report.complaint, report.exit_code);
  return report.exit_code;
}

}  // namespace

Command AddShow(CLI::App& sub, CommonOptions& common) {
  auto flags = std::make_shared<ShowFlags>();
  AddExamples(sub,
              {"show squad_bert_large",
               "show my_job.yaml --set stack=compiled --output all.yaml",
               "show my_job.yaml --fail-if 'parameters>8e9'"});
  sub.add_option("SCENARIO",
                 flags->scenario,
                 "A file, or the name of a shipped scenario; "
                 "or none, with --model");
  AddOverrides(sub, flags->overrides);
  sub.add_option(
         "--output", flags->output, "Where it goes (default: standard output)")
      ->type_name("FILE");
  common.AddLimitsTo(sub);
  return [flags, &sub, &common] {
    if (!sub) return -1;
    HoldModelText(sub, common, flags->overrides);
    return ShowScenario(*flags, common.limits());
  };
}

}  // namespace trainfare::scenarios
