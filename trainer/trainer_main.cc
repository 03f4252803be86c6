// trainfare-trainer: trains Transformers for real, and measures its steps.

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "model/error.h"
#include "trainer/device.h"
#include "trainer/failure.h"
#include "trainer/host_allocator.h"
#include "trainer/measure.h"
#include "trainer/record.h"
#include "trainer/signals.h"

namespace trainer = trainfare::trainer;

namespace {

int Run(int argc, char** argv) {
  CLI::App app("Trains Transformers for real, and measures its steps.",
               "trainfare-trainer");
  app.set_version_flag("--version", trainer::VersionText());
  app.require_subcommand(1);
  int exit_code = 0;

  std::string device = "cpu";
  int threads = 0;
  const auto add_device_options = [&](CLI::App* command) {
    command->add_option("--device", device, "cpu or cuda")
        ->check(CLI::IsMember({"cpu", "cuda"}))
        ->capture_default_str();
    command->add_option("--threads", threads, "Compute threads; 0: one a core")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
  };
  const auto open_device = [&] {
    if (threads > 0) at::set_num_threads(threads);
    return trainer::OpenDevice(device);
  };

  CLI::App* measure = app.add_subcommand(
      "measure", "Run training steps as a plan asks, one record a run");
  std::string plan = "-";
  std::string out = "-";
  measure->add_option("--plan", plan, "Requests, JSON Lines; - reads stdin")
      ->capture_default_str();
  measure->add_option("--out", out, "Records are appended here; - is stdout")
      ->capture_default_str();
  add_device_options(measure);
  measure->callback(
      [&] { exit_code = trainer::RunMeasurePlan(plan, out, open_device()); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11's own codes start at 100; help and version are 0.
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  trainer::InstallHostAllocator();
  trainer::InstallSignalHandlers();
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "error: " << trainer::FirstLine(error) << '\n';
    return trainer::IsBadRequest(error) ? 1 : 70;
  }
}
