#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "trainer/command_line/commands.h"
#include "trainer/command_line/device_options.h"
#include "trainer/command_line/launched_ranks.h"
#include "trainer/training/measure.h"

namespace trainfare::trainer {

void AddMeasure(CLI::App& app,
                DeviceOptions& device,
                LaunchedRanks& ranks,
                int& exit_code) {
  struct Options {
    std::string plan = "-";
    std::string out = "-";
    bool layers = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* measure = app.add_subcommand(
      "measure", "Run training steps as a plan asks, one record a run");
  measure
      ->add_option(
          "--plan", options->plan, "Requests, JSON Lines; - reads stdin")
      ->capture_default_str();
  measure
      ->add_option(
          "--out", options->out, "Records are appended here; - is stdout")
      ->capture_default_str();
  measure->add_flag(
      "--layers", options->layers, "Time each part of the model, too");
  device.AddOptions(measure);
  ranks.AddOptions(measure);
  measure->callback([options, &device, &ranks, &exit_code] {
    const at::Device opened = device.Open();
    exit_code = ranks.Run(opened, [&](Communicator* communicator) {
      return RunMeasurePlan(options->plan,
                            options->out,
                            opened,
                            options->layers,
                            {communicator, ranks.buckets()});
    });
  });
}

}  // namespace trainfare::trainer
