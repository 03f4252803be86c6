#include "trainer/command_line/device_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "trainer/command_line/launched_ranks.h"
#include "trainer/device/device.h"
#include "trainer/ranks/ranks.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

void DeviceOptions::AddOptions(CLI::App* command) {
  command->add_option("--device", device_, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command->add_option("--threads", threads_, "Compute threads; 0: one a core")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
}

at::Device DeviceOptions::Open() const {
  const auto& place = ranks_.place();
  if (threads_ > 0) {
    at::set_num_threads(threads_);
  } else if (place && place->local_world_size > 1 &&
             !EnvironmentVariable("OMP_NUM_THREADS")) {
    at::set_num_threads(
        std::max(1, at::get_num_threads() / place->local_world_size));
  }
  return OpenDevice(device_, place ? place->local_rank : 0);
}

}  // namespace trainfare::trainer
