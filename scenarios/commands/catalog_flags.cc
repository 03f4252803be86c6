#include "scenarios/commands/catalog_flags.h"

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

}  // namespace trainfare::scenarios
