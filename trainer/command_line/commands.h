#pragma once

// A function for each command that adds it to the program. A command runs while
// the line is read, and leaves its exit code. The libraries behind the command
// line and the tensors stay out of this header.

#include "trainer/command_line/cli.h"

namespace trainfare::trainer {

class DeviceOptions;
class LaunchedRanks;

// `device`, `ranks` and `exit_code` live as long as `app`.
void AddMeasure(CLI::App& app,
                DeviceOptions& device,
                LaunchedRanks& ranks,
                int& exit_code);
void AddDevices(CLI::App& app);
void AddTrain(CLI::App& app,
              DeviceOptions& device,
              LaunchedRanks& ranks,
              int& exit_code);
// Each thing that is timed by itself is a subcommand of `bench`.
void AddBench(CLI::App& app,
              DeviceOptions& device,
              LaunchedRanks& ranks,
              int& exit_code);
void AddTrace(CLI::App& app);
// What the comparison with the reference implementation needs; not for users.
void AddReferenceCommands(CLI::App& app, DeviceOptions& device);

}  // namespace trainfare::trainer
