#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "trainer/command_line/commands.h"
#include "trainer/device/device.h"

namespace trainfare::trainer {

void AddDevices(CLI::App& app) {
  app.add_subcommand("devices",
                     "What there is to compute on, a line of JSON each")
      ->callback([] {
        for (const std::string& line : DescribeDevices()) {
          std::cout << line << '\n';
        }
      });
}

}  // namespace trainfare::trainer
