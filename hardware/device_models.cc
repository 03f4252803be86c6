#include "hardware/device_models.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace trainfare::hardware {

std::span<const ParameterInfo> ParametersOf(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return models::kCpuParameters;
    case DeviceKind::kGpu:
      return models::kGpuParameters;
    case DeviceKind::kNeuron:
      return models::kNeuronParameters;
    case DeviceKind::kSystolic:
      return models::kSystolicParameters;
    case DeviceKind::kDataflow:
      return {};
  }
  ENSURE(false, "a kind of device without parameters");
}

void RequirePrecision(const Device& device, model::Precision precision) {
  if (device.MatrixPeak(precision)) return;
  std::string known;
  for (const auto candidate : {model::Precision::kFp32,
                               model::Precision::kTf32,
                               model::Precision::kFp16,
                               model::Precision::kBf16}) {
    if (!device.MatrixPeak(candidate)) continue;
    if (!known.empty()) known += ", ";
    known += model::ToText(candidate);
  }
  throw model::InputError(fmt::format("precision: {} has no {}; it runs {}",
                                      device.name,
                                      model::ToText(precision),
                                      known));
}

}  // namespace trainfare::hardware
