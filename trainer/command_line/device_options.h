#pragma once

// The device that a command computes on. The libraries behind the command line
// and the tensors stay out of this header.

#include <string>

#include "trainer/command_line/cli.h"

namespace c10 {
struct Device;
}  // namespace c10

namespace trainfare::trainer {

class LaunchedRanks;

class DeviceOptions {
 public:
  // Ranks of one host have a GPU each, and share its cores.
  explicit DeviceOptions(const LaunchedRanks& ranks) : ranks_(ranks) {}

  void AddOptions(CLI::App* command);

  // Once the line is read. Throws InputError where there is no such device.
  c10::Device Open() const;

 private:
  const LaunchedRanks& ranks_;
  std::string device_ = "cpu";
  int threads_ = 0;
};

}  // namespace trainfare::trainer
