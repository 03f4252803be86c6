#include "scenarios/job/fits.h"

#include <utility>

#include "hardware/models/kind.h"

namespace trainfare::scenarios {

const calibrate::Fit* Fits::Of(const hardware::Device& device) {
  auto found = fits_.find(device.name);
  if (found == fits_.end()) {
    if (!files_) files_ = calibrate::ListFitFiles();
    calibrate::LoadedFits loaded = calibrate::LoadFitsOf(device.name, *files_);
    left_out_.insert(
        left_out_.end(), loaded.left_out.begin(), loaded.left_out.end());
    found = fits_.emplace(device.name, std::move(loaded.fits)).first;
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
