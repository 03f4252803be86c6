#pragma once

// Makes a fit of one device from what was measured on it.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_options.h"
#include "calibrate/fit/own_figures.h"
#include "calibrate/records/engine_profile.h"
#include "calibrate/records/observation.h"
#include "hardware/catalog/device.h"

namespace trainfare::calibrate {

// Fits the model of `device` to what was measured on it. Throws InputError
// when there is no observation, or none of this device.
Fit FitDevice(const hardware::Device& device,
              const std::vector<Observation>& observations,
              const FitOptions& options = {});
// And to kernels by themselves and what engines were seen to do. Where there is
// no more than kernels, the fit knows no step, so that its answers are
// extrapolated, as widely as a datasheet's.
Fit FitDevice(const hardware::Device& device,
              const std::vector<Observation>& observations,
              const std::vector<KernelObservation>& kernels,
              const std::vector<EngineProfile>& profiles,
              const FitOptions& options = {});
// To figures that were chosen as OfDevice() does.
Fit FitFigures(const hardware::Device& device,
               const OwnFigures& own,
               const FitOptions& options = {});

// Fits to the same observations but for some of them, each by what those weigh
// in a fit to all (posterior.h), which is made once: for as many as there are
// runs. As FitDevice() of the others with no leave_one_out, but that
//
//   - what the data of all do not determine is held, and their errors and
//     sigmas are assumed
//   - positions, where the leverage is small, and the others' modelled times
//     are to first order
//
// Check, against fits of their own: shipped_fits_test.cc on published rows.
class FitsWithout {
 public:
  // Throws as FitDevice.
  FitsWithout(const hardware::Device& device,
              const std::vector<Observation>& observations,
              const FitOptions& options = {});
  ~FitsWithout();
  FitsWithout(const FitsWithout&) = delete;
  FitsWithout& operator=(const FitsWithout&) = delete;

  // Without the runs of these labels; nullopt: it does not converge.
  std::optional<Fit> Of(const std::set<std::string>& labels) const;

 private:
  class All;
  std::unique_ptr<const All> all_;
};

}  // namespace trainfare::calibrate
