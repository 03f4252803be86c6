#include "scenarios/job/instance_names.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "model/error.h"
#include "model/letters.h"

namespace trainfare::scenarios {
namespace {

using hardware::Device;
using hardware::Instance;

// "v5litepod" and 8 of "v5litepod-8"; nullopt: no number ends it.
std::optional<std::pair<std::string, int64_t>> NumberAtEnd(
    std::string_view name) {
  const size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || dash == 0) return std::nullopt;
  const std::string_view digits = name.substr(dash + 1);
  const char* end = digits.data() + digits.size();
  constexpr int64_t kMost = 1'000'000;
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc() || rest != end || number < 1 || number > kMost) {
    return std::nullopt;
  }
  return std::pair(std::string(name.substr(0, dash)), number);
}

// The kind of TPU that "v3", "TPU v3" or "tpu-v3" is; nullptr: none.
const Device* TpuNamed(const std::string& name) {
  const hardware::DeviceCatalog& catalog = hardware::DeviceCatalog::Shipped();
  const Device* found = catalog.TryFind(name);
  if (found == nullptr) found = catalog.TryFind("TPU " + name);
  return found != nullptr && found->vendor == "Google" ? found : nullptr;
}

// Chips of a slice by the number in its name, which of some kinds counts cores,
// two a chip: as the slices of the catalog count. nullopt: none is known.
std::optional<int64_t> ChipsOf(const Device& device, int64_t number) {
  for (const Instance* slice :
       hardware::InstanceCatalog::Shipped().OfDevice(device.name)) {
    const auto known = NumberAtEnd(slice->name);
    if (!known || number * slice->count % known->second != 0) continue;
    return number * slice->count / known->second;
  }
  return std::nullopt;
}

void RefuseSlice(const std::string& name) {
  const auto slice = NumberAtEnd(name);
  if (!slice) return;
  const Device* device = TpuNamed(slice->first);
  if (device == nullptr) return;
  const auto chips = ChipsOf(*device, slice->second);
  if (!chips) return;
  throw model::InputError(
      fmt::format("unknown device \"{}\"; a slice of {}; hint: --device {} "
                  "--devices {}",
                  name,
                  *chips == 1 ? "1 chip" : fmt::format("{} chips", *chips),
                  device->name,
                  *chips));
}

// Of "trn1" the first instance that is one of them.
const Instance* OneOfFamily(std::string_view name) {
  const std::string begin = model::Lowered(name) + ".";
  for (const Instance& one : hardware::InstanceCatalog::Shipped().instances()) {
    if (model::Lowered(one.name).starts_with(begin)) return &one;
  }
  return nullptr;
}

}  // namespace

void RefuseInstance(const std::string& name) {
  if (hardware::DeviceCatalog::Shipped().TryFind(name) != nullptr) return;
  RefuseSlice(name);
  const Instance* instance = hardware::InstanceCatalog::Shipped().TryFind(name);
  const Instance* one = instance != nullptr ? instance : OneOfFamily(name);
  if (one == nullptr) return;
  throw model::InputError(fmt::format(
      "unknown device \"{}\"; {}; hint: --instance {}, or --device {}{}",
      name,
      instance != nullptr ? "an instance" : "a family of instances",
      one->FullName(),
      one->device,
      instance != nullptr ? fmt::format(" --devices {}", one->count) : ""));
}

}  // namespace trainfare::scenarios
