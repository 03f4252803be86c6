#include "scenarios/commands/catalog_flags.h"

#include <fmt/format.h>

#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "scenarios/commands/asked_job.h"
#include "scenarios/job/instance_names.h"

namespace trainfare::scenarios {

const hardware::Device& FindDevice(std::string_view flag,
                                   const std::string& name) {
  return WithFlag(flag, [&]() -> const hardware::Device& {
    RefuseInstance(name);
    return hardware::DeviceCatalog::Shipped().Find(name);
  });
}

const hardware::Device& FindUsualDevice(std::string_view flag,
                                        const std::string& name) {
  return WithFlag(flag, [&]() -> const hardware::Device& {
    RefuseInstance(name);
    return hardware::DeviceCatalog::Shipped().FindUsual(name);
  });
}

const hardware::Instance& FindInstance(std::string_view flag,
                                       const std::string& name) {
  return WithFlag(flag, [&]() -> const hardware::Instance& {
    return hardware::InstanceCatalog::Shipped().Find(name);
  });
}

std::optional<model::BytesPerSecond<>> NetworkFlag(
    const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  const auto network = hardware::ParseQuantity<model::BytesPerSecond<>>(*text);
  if (network && *network > model::BytesPerSecond<>()) return network;
  throw model::InputError(fmt::format(
      "--network: expected a rate such as 400Gbit/s, got \"{}\"", *text));
}

}  // namespace trainfare::scenarios
