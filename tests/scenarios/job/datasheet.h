#pragma once

#include "calibrate/fit/predictor.h"
#include "hardware/catalog/device.h"

namespace trainfare::scenarios {

inline const hardware::Device& A100() {
  return hardware::DeviceCatalog::Shipped().Find("a100_sxm4_80gb");
}

inline calibrate::Predictor Datasheet(const hardware::Device& device) {
  return calibrate::Predictor(device);
}

}  // namespace trainfare::scenarios
