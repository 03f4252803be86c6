#include "trainer/device.h"

#include <fmt/format.h>

#include "model/error.h"

namespace trainfare::trainer {

at::Device OpenDevice(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  throw model::InputError(
      fmt::format("--device: expected cpu or cuda, got {}", name));
}

DeviceDescription Describe(at::Device device) {
  ENSURE(device.is_cpu(), "only CPUs can be opened");
  return {HostCpuName(), "cpu", at::get_num_threads()};
}

}  // namespace trainfare::trainer
