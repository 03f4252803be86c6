#include "scenarios/commands/recommend.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "scenarios/command_line/arguments.h"
#include "scenarios/command_line/commands.h"
#include "scenarios/command_line/job_flags.h"
#include "scenarios/command_line/quantity_flags.h"
#include "scenarios/commands/diff.h"

namespace trainfare::scenarios {
namespace {

struct RecommendFlags {
  RecommendOptions options;
  std::string deadline;
  std::string budget;
  std::string objective = "cost";
  std::string baseline;
  bool dry_run = false;
};

// What the answer is to be, and within what.
void AddGoal(CLI::App& sub, RecommendFlags& flags) {
  sub.add_option("--deadline", flags.deadline, "Longest run, such as 4h")
      ->type_name("TIME");
  sub.add_option("--budget", flags.budget, "Highest cost, such as 20usd")
      ->type_name("USD");
  sub.add_option("--objective",
                 flags.objective,
                 "What is to be least; of several, the first counts most "
                 "(default: cost)")
      ->type_name(Choices(ObjectiveWords()));
}

void ReadGoal(RecommendFlags& flags) {
  RecommendOptions& options = flags.options;
  options.objective =
      FromValue([&] { return ObjectiveFromText(flags.objective); });
  if (!flags.deadline.empty()) {
    options.deadline = TimeFlag("--deadline", flags.deadline);
  }
  if (!flags.budget.empty()) {
    options.budget = MoneyFlag("--budget", flags.budget);
  }
}

// Where the job may run.
void AddPlaces(CLI::App& sub, RecommendOptions& options) {
  AddCount(sub,
           "--hosts",
           options.hosts,
           "Also on N of each instance, over its network; of a global batch on "
           "any number up to N");
  sub.add_option("--network",
                 options.network,
                 "Bandwidth of each host's network, such as 400Gbit/s, where "
                 "the catalog has none; several hosts without one are never "
                 "the choice")
      ->type_name("RATE");
  AddCount(sub,
           "--global-batch",
           options.global_batch,
           "Sequences of an optimizer step over all devices: each candidate "
           "takes the number of devices and hosts, batch a device and "
           "accumulation that are best for it");
  AddNames(
      sub,
      "--cloud",
      options.clouds,
      "Only these clouds: aws,gcp; some count only where they are named, by "
      "this, --instance, --prices, or a --device that no other has");
  AddNames(sub, "--device", options.devices, "Only these devices: l4,a10g");
  AddNames(sub,
           "--instance",
           options.instances,
           "Only these instances: aws/g5.xlarge,gcp/g2-standard-4");
  AddNames(sub,
           "--also",
           options.also,
           "Also these devices by themselves, rented out or not: "
           "cerebras_wse2,groq_lpu");
}

}  // namespace

Command AddRecommend(CLI::App& sub, CommonOptions& common) {
  auto flags = std::make_shared<RecommendFlags>();
  RecommendOptions& options = flags->options;
  AddExamples(
      sub,
      {"recommend emotion_bert_base --deadline 10min",
       "recommend my_job.yaml --objective time --budget 5usd --top 10",
       "recommend imdb_bert_base --spot --cloud aws,gcp",
       "recommend llama_8b_lora --global-batch 64 --precision bf16,fp16"});
  sub.add_option("SCENARIO",
                 options.scenario,
                 "A file, or the name of a shipped scenario; "
                 "or none, with --model");
  AddGoal(sub, *flags);
  sub.add_flag(
      "--spot", options.spot, "Spot prices, the highest of a region's zones");
  AddPriceFlags(sub, options.prices);
  AddCount(sub, "--top", options.top, "Keep the N best candidates only");
  sub.add_flag("--all",
               options.all,
               "Show every candidate (csv and json always have them all)");
  Exclude(sub, "--top", {"--all"});
  AddPlaces(sub, options);
  AddOverrides(sub, options.overrides);
  AddBaselineFlag(sub, flags->baseline);
  common.AddLimitsTo(sub);
  common.AddTo(sub);
  AddDryRun(sub, flags->dry_run);
  return [flags, &options, &common, &sub] {
    if (!sub) return -1;
    HoldModelText(sub, common, options.overrides);
    if (flags->dry_run && options.global_batch) {
      throw UsageError(
          "--dry-run: not with --global-batch, of which each candidate has "
          "a job of its own");
    }
    ReadGoal(*flags);
    options.charts = common.page();
    options.trace = common.trace();
    const auto make = [&](const Origin& origin) {
      options.origin = origin;
      options.progress = common.progress();
      options.json = common.json() || !flags->baseline.empty();
      Report report = Recommend(options);
      if (!flags->baseline.empty()) AddBaseline(flags->baseline, report);
      return report;
    };
    if (!flags->dry_run) return Show(common, sub, make);
    Check(common, sub, make);
    return PrintJobs(options.scenario, options.overrides);
  };
}

}  // namespace trainfare::scenarios
