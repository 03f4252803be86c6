#include "scenarios/commands/asked_instances.h"

#include <fmt/format.h>

#include <vector>

#include "hardware/catalog/device.h"
#include "model/error.h"
#include "model/letters.h"
#include "model/nearest.h"
#include "scenarios/job/pricing.h"

namespace trainfare::scenarios {
namespace {

using hardware::Instance;

// The clouds that were asked for, in any letters, as the catalog writes them;
// all where none was.
std::set<std::string> CloudsOf(const std::vector<std::string>& asked) {
  std::set<std::string> clouds;
  for (const Instance& instance :
       hardware::InstanceCatalog::Shipped().instances()) {
    clouds.insert(instance.cloud);
  }
  if (asked.empty()) return clouds;
  std::set<std::string> wanted;
  for (const std::string& cloud : asked) {
    const std::string name = model::Lowered(cloud);
    if (!clouds.contains(name)) {
      const auto known = model::NameViews(clouds);
      throw model::InputError(fmt::format("--cloud: unknown cloud \"{}\"{}",
                                          cloud,
                                          model::OfKnown(cloud, known)));
    }
    wanted.insert(name);
  }
  return wanted;
}

}  // namespace

AskedInstances::AskedInstances(const RecommendOptions& options)
    : clouds_(CloudsOf(options.clouds)), named_(CloudsOfFiles(options.prices)) {
  if (!options.clouds.empty()) named_ = clouds_;
  const auto& catalog = hardware::InstanceCatalog::Shipped();
  for (const std::string& name : options.instances) {
    instances_.insert(&catalog.Find(name));
  }
  for (const std::string& name : options.devices) {
    const hardware::Device& device =
        hardware::DeviceCatalog::Shipped().Find(name);
    if (catalog.OfDevice(device.name).empty()) {
      throw model::InputError(fmt::format(
          "--device: no cloud of the catalog rents out {}; hint: --also {}",
          device.name,
          device.name));
    }
    devices_.insert(device.name);
    if (catalog.UsualOfDevice(device.name).empty()) {
      nowhere_else_.insert(device.name);
    }
  }
}

}  // namespace trainfare::scenarios
