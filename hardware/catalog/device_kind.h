#pragma once

// Kinds of device, one time model each.

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace trainfare::hardware {

// Which model of hardware/models/ computes its times.
enum class DeviceKind {
  kCpu,       // cores and vector units behind caches
  kGpu,       // warps hide latency
  kNeuron,    // Trainium, Inferentia: DMA plus engines, no overlap
  kSystolic,  // TPU, Gaudi: matrix arrays, compiler-fused elementwise
  kDataflow,  // RDU, IPU, WSE, LPU: fill time plus steady rate
};

// Their names in files.
using DeviceKindName = std::pair<std::string_view, DeviceKind>;
inline constexpr std::array<DeviceKindName, 5> kDeviceKinds = {
    {{"cpu", DeviceKind::kCpu},
     {"gpu", DeviceKind::kGpu},
     {"neuron", DeviceKind::kNeuron},
     {"systolic", DeviceKind::kSystolic},
     {"dataflow", DeviceKind::kDataflow}}};

class Reader;

std::string_view ToText(DeviceKind kind);
// The kind that stands at `key`. Throws InputError with file:line:col.
DeviceKind ReadKind(const Reader& map, std::string_view key);
// The same for lists of fields (hardware/files/yaml_fields.h).
void ReadValue(const Reader& map, std::string_view key, DeviceKind& kind);
std::string FormOf(DeviceKind kind);  // the words that it may be

}  // namespace trainfare::hardware
