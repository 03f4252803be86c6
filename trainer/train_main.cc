// trainfare-trainer: trains Transformers for real, and measures its steps. Reads
// the command line, which runs one command, and turns what went wrong into one
// line and an exit code.

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "hardware/files/foreign_text.h"
#include "model/error.h"
#include "trainer/command_line/commands.h"
#include "trainer/command_line/device_options.h"
#include "trainer/command_line/launched_ranks.h"
#include "trainer/record/record.h"
#include "trainer/runtime/failure.h"
#include "trainer/runtime/host_allocator.h"
#include "trainer/runtime/signals.h"

namespace trainer = trainfare::trainer;

namespace {

int Run(int argc, char** argv) {
  CLI::App app("Trains Transformers for real, and measures its steps.",
               "trainfare-trainer");
  app.set_version_flag("--version", trainer::VersionText());
  app.require_subcommand(1);
  // The library repeats the argument as it was given.
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return "error: " + trainfare::hardware::OneLine(error.what()) +
           "; see --help\n";
  });
  int exit_code = 0;

  trainer::LaunchedRanks ranks;
  trainer::DeviceOptions device(ranks);
  trainer::AddMeasure(app, device, ranks, exit_code);
  trainer::AddDevices(app);
  trainer::AddTrain(app, device, ranks, exit_code);
  trainer::AddBench(app, device, ranks, exit_code);
  trainer::AddTrace(app);
  trainer::AddReferenceCommands(app, device);

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
  // First: what starts a thread comes behind it.
  trainer::WatchSignals();
  trainer::InstallHostAllocator();
  try {
    const int code = Run(argc, argv);
    if (!std::cout.flush()) {
      throw trainfare::model::InputError("standard output: cannot be written");
    }
    return code;
  } catch (const trainer::Interrupted&) {
    return trainer::kInterruptedExit;
  } catch (const std::exception& error) {
    std::cerr << "error: " << trainer::FirstLine(error) << '\n';
    return trainer::IsBadRequest(error) ? 1 : 70;
  }
}
