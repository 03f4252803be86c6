#pragma once

// Which instances of the catalog a question is about.

#include <set>
#include <string>

#include "hardware/catalog/instance.h"
#include "scenarios/commands/recommend_options.h"

namespace trainfare::scenarios {

// The instances that were asked for, all unless somebody says which; of a cloud
// that counts only when it is named those that somebody named: by the cloud, the
// instance, prices of the cloud, or a device that no other cloud has.
class AskedInstances {
 public:
  // Throws InputError for clouds that nobody knows, and devices that none rents
  // out.
  explicit AskedInstances(const RecommendOptions& options);

  bool Has(const hardware::Instance& instance) const {
    return clouds_.contains(instance.cloud) && Counts(instance) &&
           (instances_.empty() || instances_.contains(&instance)) &&
           (devices_.empty() || devices_.contains(instance.device));
  }

 private:
  bool Counts(const hardware::Instance& instance) const {
    return instance.named_only.empty() || named_.contains(instance.cloud) ||
           instances_.contains(&instance) ||
           nowhere_else_.contains(instance.device);
  }

  std::set<std::string> clouds_;
  std::set<std::string> named_;
  std::set<std::string> nowhere_else_;
  std::set<const hardware::Instance*> instances_;
  std::set<std::string> devices_;
};

}  // namespace trainfare::scenarios
