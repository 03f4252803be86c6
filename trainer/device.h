#pragma once

#include <string>

#include "trainer/aten.h"
#include "trainer/record.h"

namespace trainfare::trainer {

// "cpu" or "cuda". Throws InputError where there is no such device: a run never
// falls back to another one.
at::Device OpenDevice(const std::string& name);

DeviceDescription Describe(at::Device device);

}  // namespace trainfare::trainer
