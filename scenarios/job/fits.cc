#include "scenarios/job/fits.h"

#include <utility>

#include "hardware/models/kind.h"

namespace trainfare::scenarios {

const calibrate::Fit* Fits::Of(const hardware::Device& device) {
  auto found = fits_.find(device.name);
  if (found == fits_.end()) {
    calibrate::LoadedFits files = calibrate::LoadFitsOf(device.name);
    left_out_.insert(
        left_out_.end(), files.left_out.begin(), files.left_out.end());
    found = fits_.emplace(device.name, std::move(files.fits)).first;
  }
  for (const calibrate::Fit& fit : found->second) {
    // A fit of another processor says nothing of this one.
    if (!hardware::KindOf(device).is_host ||
        fit.reported_name == device.reported_name) {
      return &fit;
    }
  }
  return nullptr;
}

}  // namespace trainfare::scenarios
