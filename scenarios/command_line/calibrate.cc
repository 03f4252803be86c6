#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <set>
#include <utility>

#include "calibrate/records/import/observations.h"
#include "calibrate/session/command.h"
#include "calibrate/session/launch.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/limits.h"
#include "model/presets.h"
#include "model/workload.h"
#include "scenarios/command_line/arguments.h"
#include "scenarios/command_line/commands.h"
#include "scenarios/command_line/quantity_flags.h"
#include "scenarios/commands/asked_job.h"
#include "scenarios/commands/calibration.h"
#include "scenarios/commands/catalog_flags.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {
namespace {

struct CalibrateFlags {
  calibrate::CalibrateOptions options;
  std::string budget;
  std::vector<std::string> precisions;
  std::string scenario;
  std::vector<std::string> towards;  // scenarios
  std::optional<int64_t> batch;
  std::string launch;
  std::vector<std::string> instances;
  std::string script;
  std::string plan;
  bool dry_run = false;
};

// What is fitted to, and where the fit goes.
void AddFitFlags(CLI::App& app, CalibrateFlags& flags) {
  calibrate::CalibrateOptions& options = flags.options;
  app.add_option("--from",
                 options.from,
                 "Fit to these measurements instead: JSON Lines, CSV, "
                 "trainer_state.json, an MLPerf log")
      ->type_name("FILE");
  app.add_flag("--add",
               options.add,
               "Add --from to the fit at hand, whose parameters stay, instead "
               "of fitting anew")
      ->needs("--from");
  app.add_option("--scenario",
                 flags.scenario,
                 "What a log of --from trained, where it does not say so "
                 "(trainer_state.json, MLPerf)")
      ->type_name("NAME");
  AddCount(app,
           "--batch",
           flags.batch,
           "Per device, where it is not that scenario's");
  app.add_option("--device",
                 options.device,
                 "Device (default: the GPUs here, else this CPU)")
      ->type_name("NAME");
  app.add_option("--output",
                 options.output,
                 "Where the fit goes (default: where predict looks for it)")
      ->type_name("FILE");
}

// What is run on this machine.
void AddRunFlags(CLI::App& app, CalibrateFlags& flags) {
  calibrate::CalibrateOptions& options = flags.options;
  app.add_option("--budget", flags.budget, "Time of the runs (default: 120s)")
      ->type_name("TIME");
  AddShare(app,
           "--until,--target",
           options.target_interval,
           "Stop once the interval is below this share of the time: 5%");
  AddNames(app,
           "--for",
           flags.towards,
           "Measure towards these scenarios: their models at the sizes that "
           "this machine can run, their precision, stack and lengths")
      ->type_name("NAME|FILE");
  AddNames(app, "--precision", flags.precisions, "To run: fp32,bf16")
      ->type_name(Choices<model::Precision>());
  AddNames(app,
           "--models",
           options.models,
           "Presets to run, encoders or decoders (default: bert-tiny to "
           "bert-base-uncased, distilroberta-base and distilgpt2; on a GPU "
           "bert-base-uncased and bert-large-uncased)");
  AddCounts(app,
            "--ranks",
            options.ranks,
            "Also over so many ranks on this machine, data parallel: 2,4 "
            "(default: over all GPUs; 1: none)");
  app.add_flag("--fresh",
               options.fresh,
               "Forget the runs of a calibration that was interrupted");
  app.add_flag("--dry-run",
               flags.dry_run,
               "Print the runs that would be asked for first, and run none");
  app.add_flag("--force",
               options.force,
               "Replace the fit that is there also by one that is worse");
}

// What is written for machines that are elsewhere.
void AddLaunchFlags(CLI::App& app, CalibrateFlags& flags) {
  app.add_option("--plan",
                 flags.plan,
                 "Write the runs of a calibration of --device, for a machine "
                 "that has the trainer alone")
      ->type_name("FILE");
  app.add_option("--launch",
                 flags.launch,
                 "Write a script that measures --instances elsewhere")
      ->type_name(Choices(calibrate::LauncherWords()));
  AddNames(app,
           "--instances",
           flags.instances,
           "What --launch measures: aws/g5.xlarge,gcp/g2-standard-4")
      ->needs("--launch");
  app.add_option("--script",
                 flags.script,
                 "Where --launch writes (default: standard output)")
      ->type_name("FILE")
      ->needs("--launch");
}

// What a flag asks for leaves others nothing to do.
void ExcludeIdleFlags(CLI::App& app) {
  Exclude(app,
          "--from",
          {"--budget",
           "--until",
           "--precision",
           "--models",
           "--ranks",
           "--fresh",
           "--plan",
           "--launch"});
  Exclude(app, "--add", {"--force"});  // it takes no fit's place
  Exclude(app, "--plan", {"--launch", "--dry-run"});
  Exclude(app, "--launch", {"--dry-run", "--device", "--budget"});
  // What runs nothing here makes no fit.
  for (const char* flag : {"--plan", "--launch", "--dry-run"}) {
    Exclude(app,
            flag,
            {"--output",
             "--until",
             "--ranks",
             "--fresh",
             "--force",
             "--format",
             "--export",
             "--fail-if"});
  }
}

// --for asks for runs on this machine, of models and precisions of its own.
void RequireRunsHere(const CalibrateFlags& flags) {
  const std::pair<const char*, bool> others[] = {
      {"--from", !flags.options.from.empty()},
      {"--models", !flags.options.models.empty()},
      {"--precision", !flags.precisions.empty()},
      {"--launch", !flags.launch.empty()}};
  for (const auto& [name, given] : others) {
    if (!given) continue;
    throw UsageError(fmt::format(
        "--for: not with {}; a scenario says what is run, and where", name));
  }
}

// What was trained is asked of logs alone, and a batch belongs to it.
void RequireUsedScenario(const CalibrateFlags& flags) {
  const std::vector<std::string>& from = flags.options.from;
  if (flags.scenario.empty()) {
    if (!flags.batch || !flags.towards.empty()) return;
    throw UsageError("--batch: needs --scenario or --for, whose batch it is");
  }
  if (from.empty()) {
    throw UsageError(
        "--scenario: says what a log of --from trained, and there is none");
  }
  if (!std::all_of(from.begin(), from.end(), calibrate::SaysWhatWasTrained)) {
    return;
  }
  const bool one = from.size() == 1;
  throw UsageError(
      fmt::format("{} what a log of --from trained, and there is none; {} {}",
                  flags.batch ? "--scenario, --batch: say" : "--scenario: says",
                  fmt::join(from, ", "),
                  one ? "says so itself" : "say so themselves"));
}

// The models without those that an earlier name is of, too.
std::vector<std::string> EachOnce(const std::vector<std::string>& models) {
  std::vector<std::string> names;
  std::set<const model::Architecture*> known;
  for (const std::string& name : models) {
    const model::Architecture& found =
        WithFlag("--models", [&]() -> const model::Architecture& {
          return model::FindArchitecture(name);
        });
    if (known.insert(&found).second) names.push_back(name);
  }
  return names;
}

// Flags whose words are checked once all of them are known.
void Resolve(CalibrateFlags& flags) {
  calibrate::CalibrateOptions& options = flags.options;
  RequireEachOnce("--from", options.from);
  if (!options.device.empty()) FindDevice("--device", options.device);
  if (flags.batch) {
    RequireCount("--batch", *flags.batch, model::kLargestBatch);
  }
  for (const int64_t ranks : options.ranks) {
    RequireCount("--ranks", ranks, model::kMostDevices);
  }
  if (!flags.budget.empty()) {
    options.budget = TimeFlag("--budget", flags.budget);
  }
  Overrides asked;
  if (flags.batch) asked.batches = {*flags.batch};
  for (const std::string& name : flags.towards) {
    for (const Scenario& one : Variants(LoadScenario(name), asked)) {
      options.towards.push_back(one.workload);
    }
  }
  if (!options.towards.empty()) RequireRunsHere(flags);
  RequireUsedScenario(flags);
  if (!flags.scenario.empty()) {
    options.workload =
        Variants(LoadScenario(flags.scenario), asked).front().workload;
  }
  options.models = EachOnce(options.models);
  if (flags.precisions.empty()) return;
  options.precisions.clear();
  for (const std::string& name : flags.precisions) {
    options.precisions.push_back(WithFlag("--precision", [&] {
      return model::FromText<model::Precision>(name);
    }));
  }
}

int Run(CalibrateFlags& flags, CommonOptions& common, const CLI::App& command) {
  Resolve(flags);
  calibrate::CalibrateOptions& options = flags.options;
  if (!flags.launch.empty()) {
    const calibrate::Launcher launcher =
        calibrate::LauncherFromText(flags.launch);
    if (flags.instances.empty()) {
      throw UsageError(
          "--instances: expected instances to calibrate, got none; see "
          "`trainfare list instances`");
    }
    RequireOurs("--script",
                flags.script,
                "a script of --launch",
                calibrate::IsLaunchScript);
    calibrate::WriteLaunchScript(
        {launcher, flags.instances, options.models, options.precisions},
        flags.script,
        std::cout);
    return kOk;
  }
  if (!flags.plan.empty()) {
    if (options.device.empty()) {
      throw UsageError("--plan: say of which device, with --device");
    }
    RequireOurs("--plan", flags.plan, "a plan", calibrate::IsPlan);
    calibrate::WritePlan(options, flags.plan);
    return kOk;
  }
  if (flags.dry_run) {
    if (!options.from.empty()) {
      throw UsageError("--dry-run: --from runs nothing");
    }
    return WriteNew(calibrate::PlanText(options), "");
  }
  const bool terminal =
      ::isatty(STDERR_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  options.progress = common.quiet() ? calibrate::Progress::kNone
                     : terminal     ? calibrate::Progress::kBar
                                    : calibrate::Progress::kLines;
  try {
    return Show(
        common,
        command,
        [&](const Origin& origin) {
          return CalibrationReport(calibrate::Calibrate(options, std::cerr),
                                   origin);
        },
        ExampleOfCalibration);
  } catch (const calibrate::Interrupted& interrupted) {
    return Fail(interrupted.what(), kInterrupted);
  }
}

}  // namespace

Command AddCalibrate(CLI::App& sub, CommonOptions& common) {
  auto flags = std::make_shared<CalibrateFlags>();
  AddExamples(
      sub,
      {"calibrate",
       "calibrate --for llama_1b_pretraining --until 10%",
       "calibrate --from runs.jsonl --device h100_sxm",
       "calibrate --from trainer_state.json --scenario my_job --device l4",
       "calibrate --launch slurm --instances aws/g5.xlarge --script run.sh"});
  AddFitFlags(sub, *flags);
  AddRunFlags(sub, *flags);
  AddLaunchFlags(sub, *flags);
  common.AddLimitsTo(sub);
  common.AddTo(sub);
  ExcludeIdleFlags(sub);
  return [flags, &common, &sub] { return sub ? Run(*flags, common, sub) : -1; };
}

}  // namespace trainfare::scenarios
