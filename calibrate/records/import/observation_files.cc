#include "calibrate/records/import/observation_files.h"

#include <algorithm>

namespace trainfare::calibrate {

std::string SourceNames(const ObservationFiles& files,
                        const hardware::Device* device) {
  const auto speaks_of_it = [&](const MeasurementSource& source) {
    return device == nullptr || source.devices.empty() ||
           std::any_of(source.devices.begin(),
                       source.devices.end(),
                       [&](const std::string& name) {
                         return PartsOf(*device, name) > 0;
                       });
  };
  std::string names;
  for (const MeasurementSource& source : files.sources) {
    if (!speaks_of_it(source)) continue;
    if (!names.empty()) names += ", ";
    names += source.name;
  }
  return names;
}

}  // namespace trainfare::calibrate
