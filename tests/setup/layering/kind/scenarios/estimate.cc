#include "hardware/device.h"

bool IsGpu(const Device& device) { return device.kind == DeviceKind::kGpu; }
