#include "scenarios/commands/predict.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "scenarios/command_line/arguments.h"
#include "scenarios/command_line/commands.h"
#include "scenarios/command_line/job_flags.h"
#include "scenarios/commands/diff.h"
#include "scenarios/commands/largest.h"
#include "scenarios/commands/measured_step.h"

namespace trainfare::scenarios {

namespace {

void AddPredictExamples(CLI::App& app) {
  AddExamples(app,
              {"predict emotion_bert_base --batch 8,16,32 --seq 32,128",
               "predict emotion_bert_base --device l4,t4 --precision fp16,fp32",
               "predict my_job.yaml --device h100_sxm --format json",
               "predict llama_8b_lora --device rtx_4090 --largest batch",
               ("predict --model llama-3.1-8b --samples 10000 --length 2048 "
                "--device h100_sxm --batch 1 --set trainable.lora.rank=16"),
               "predict squad_bert_large --instance aws/p4d.24xlarge",
               "predict llama_8b_lora --device a100_sxm4_80gb --measured 38%",
               ("predict llama_8b_fsdp --instance aws/p5.48xlarge --hosts 2 "
                "--set parallel.data=16")});
}

// The job, and on what.
void AddTarget(CLI::App& sub, PredictOptions& options) {
  sub.add_option("SCENARIO",
                 options.scenario,
                 "A file, the name of a shipped scenario, or FILE#RUN of "
                 "published figures; or none, with --model");
  AddNames(sub,
           "--device",
           options.device,
           "One of `trainfare list devices`, or several: h100_sxm,l4 "
           "(default: this CPU)");
  AddNames(sub,
           "--instance",
           options.instances,
           "One of `trainfare list instances`, or several: its devices, its "
           "price");
  sub.add_option("--fit",
                 options.fit,
                 "A fit file of calibrate (default: yours, else the shipped "
                 "one, else the datasheet)")
      ->type_name("FILE");
}

// Over how many, and what of them still fits.
void AddSize(CLI::App& sub, PredictOptions& options) {
  AddCount(sub,
           "--devices",
           options.devices,
           "Train data parallel on N devices (default: all of the instance, "
           "else 1)");
  AddCount(sub,
           "--hosts",
           options.hosts,
           "Over N alike hosts, each with its share of the devices");
  sub.add_option("--network",
                 options.network,
                 "Bandwidth of each host's network, such as 400Gbit/s "
                 "(default: the instance's, else as the catalog's hosts)")
      ->type_name("RATE");
  CLI::Option* largest =
      sub.add_option(
             "--largest",
             options.largest,
             "The largest batch, length or model that fits, all else as "
             "asked")
          ->type_name(Choices({"batch", "length", "model"}));
  // What is looked for is not asked for; without a scenario the job has it
  // from there all the same.
  largest->each([&sub, largest](const std::string& what) {
    const bool whole = sub.get_option("SCENARIO")->count() > 0;
    if (what == "batch") largest->excludes(sub.get_option("--batch"));
    if (what == "length" && whole) largest->excludes(sub.get_option("--seq"));
    if (what == "model" && whole) largest->excludes(sub.get_option("--model"));
  });
}

}  // namespace

Command AddPredict(CLI::App& sub, CommonOptions& common) {
  auto options = std::make_shared<PredictOptions>();
  auto dry_run = std::make_shared<bool>(false);
  auto baseline = std::make_shared<std::string>();
  AddPredictExamples(sub);
  AddTarget(sub, *options);
  AddSize(sub, *options);
  sub.add_option("--measured",
                 options->measured,
                 "A step of yours, beside what it should be: its time, a rate "
                 "or an MFU, such as 1.9s, 3200tokens/s, 12samples/s/device, "
                 "38%")
      ->type_name("STEP");
  sub.add_flag("--spot", options->spot, "Spot price of the instance");
  AddPriceFlags(sub, options->prices);
  AddOverrides(sub, options->overrides);
  AddBaselineFlag(sub, *baseline);
  // What is looked for is no run to compare.
  Exclude(sub, "--largest", {"--baseline", "--measured"});
  common.AddLimitsTo(sub);
  common.AddTo(sub);
  AddDryRun(sub, *dry_run);
  return [options, dry_run, baseline, &common, &sub] {
    if (!sub) return -1;
    HoldModelText(sub, common, options->overrides);
    options->charts = common.page();
    options->trace = common.trace();
    if (options->largest) {
      FromValue([&] { LargestFromText(*options->largest); });
    }
    if (options->measured) ParseMeasured(*options->measured);
    const auto make = [&](const Origin& origin) {
      options->origin = origin;
      options->json = common.json() || !baseline->empty();
      Report report = Predict(*options);
      if (!baseline->empty()) AddBaseline(*baseline, report);
      return report;
    };
    if (!*dry_run) return Show(common, sub, make);
    Check(common, sub, make);
    return PrintJobs(options->scenario, options->overrides);
  };
}

}  // namespace trainfare::scenarios
