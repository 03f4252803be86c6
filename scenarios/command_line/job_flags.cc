#include "scenarios/command_line/job_flags.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "scenarios/command_line/arguments.h"
#include "scenarios/command_line/commands.h"
#include "scenarios/commands/asked_job.h"
#include "scenarios/job/named_model.h"
#include "scenarios/job/scenario.h"
#include "scenarios/job/scenario_text.h"

namespace trainfare::scenarios {

void AddPriceFlags(CLI::App& app, PriceOptions& prices) {
  AddFiles(app,
           "--prices",
           prices.files,
           "Prices of a cloud in place of the shipped ones, as `prices "
           "import --output` writes them; may be repeated");
  // Names of regions have commas ("Taiwan, TW, AS"): catalogs tell them apart.
  app.add_option("--region",
                 prices.regions,
                 "Prices of these regions only, the first that has one: "
                 "eu-west-1,europe-west4")
      ->type_name("NAME")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  AddNames(app,
           "--discount",
           prices.discounts,
           "What a cloud takes of its list: aws=0.8,gcp=0.7");
}

void AddOverrides(CLI::App& app, Overrides& overrides) {
  AddCounts(app,
            "--batch",
            overrides.batches,
            "Batch per device, or several: 8,16,32 (default: the scenario's)");
  app.add_option("--model",
                 overrides.model,
                 "One of `trainfare list models`, or a config.json, its "
                 "folder or its text, in place of the scenario's")
      ->type_name("NAME|FILE|FOLDER");
  AddCount(app, "--samples", overrides.samples, "Of the training data");
  app.add_option("--set",
                 overrides.settings,
                 "Any key of a scenario: optimizer.name=sgd, may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  AddCounts(app,
            "--seq,--length",
            overrides.lengths,
            "Pad to this length, or to several: 32,128");
  AddNames(app,
           "--precision",
           overrides.precisions,
           "Of the products, or several: bf16,fp32")
      ->type_name(Choices<model::Precision>());
  AddCount(app, "--epochs", overrides.epochs, "Instead of the scenario's");
  app.add_option("--start-up",
                 overrides.start_up,
                 "From renting to the first step, such as 5min, or 0 (default: "
                 "the scenario's, else as usual)")
      ->type_name("TIME");
  app.add_option("--work",
                 overrides.work,
                 "What of a step is run; forward: passes of inference alone")
      ->type_name(Choices(WordsOfWork()));
}

void HoldModelText(CLI::App& app, CommonOptions& common, Overrides& overrides) {
  if (!overrides.model) return;
  const std::optional<std::string> text = ConfigTextOf(*overrides.model);
  if (!text) return;
  CLI::Option* option = app.get_option("--model");
  option->clear();
  option->add_result(*text);
  common.Restate(*overrides.model, *text);
  overrides.model = text;
}

void AddBaselineFlag(CLI::App& app, std::string& file) {
  app.add_option("--baseline",
                 file,
                 "Also what moved since this answer, which was saved as JSON")
      ->type_name("FILE");
}

void AddDryRun(CLI::App& app, bool& dry_run) {
  app.add_flag("--dry-run",
               dry_run,
               "Print what would be asked, as `show` does, and answer nothing");
  Exclude(app, "--dry-run", {"--format", "--export"});
}

int PrintJobs(const std::string& scenario, const Overrides& overrides) {
  const size_t width = FileWidth("");
  std::string text;
  for (const Scenario& one :
       Variants(LoadJob(scenario, overrides), overrides)) {
    text += (text.empty() ? "" : "---\n") + ToYaml(one, width);
  }
  return WriteNew(text, "");
}

}  // namespace trainfare::scenarios
