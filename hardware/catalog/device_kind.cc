#include "hardware/catalog/device_kind.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>
#include <vector>

#include "hardware/files/yaml_reader.h"
#include "model/error.h"

namespace trainfare::hardware {

std::string_view ToText(DeviceKind kind) {
  for (const auto& [name, named] : kDeviceKinds) {
    if (named == kind) return name;
  }
  ENSURE(false, "every kind of device has a name");
}

std::string FormOf(DeviceKind) {
  std::vector<std::string_view> names;
  for (const auto& [name, kind] : kDeviceKinds) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

DeviceKind ReadKind(const Reader& map, std::string_view key) {
  return map.Choice<DeviceKind>(key,
                                std::span<const DeviceKindName>(kDeviceKinds));
}

void ReadValue(const Reader& map, std::string_view key, DeviceKind& kind) {
  kind = ReadKind(map, key);
}

}  // namespace trainfare::hardware
