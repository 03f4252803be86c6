#pragma once

// Fits the model of NeuronCores to profiles: what a profiler shows of a step
// besides its time. Step times alone say little about engines that hide under
// one another; their busy shares and the HBM traffic say which is which.

#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/fit.h"
#include "calibrate/records/observation.h"
#include "hardware/catalog/device.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// One configuration as profiled; what was not recorded is absent. Shares are of
// the step time.
struct EngineProfile {
  std::string label;
  std::string device;                            // catalog name; may be empty
  std::string source = std::string(kOwnSource);  // as of an Observation
  model::Workload workload;                      // of one device
  // That the run went over; 0: over a part of one, which stands for all of it.
  int64_t devices = 1;
  std::optional<model::Seconds<>> step;
  std::optional<double> tensor;
  std::optional<double> vector;
  std::optional<double> scalar;
  std::optional<double> dma;
  std::optional<model::Bytes<>> traffic;  // through HBM, of one step
  std::optional<model::Bytes<>> spill;    // of it, spilled and loaded again
};

// Errors assumed of the figures: relative for times and bytes, which are
// printed with one to three digits, and in shares of a step.
struct ProfileFitOptions {
  double time_sigma = 0.05;
  double share_sigma = 0.015;
  double bytes_sigma = 0.05;
  // Also refit without each profile in turn.
  bool leave_one_out = true;
};

struct ProfileFit {
  Fit fit;
  // As given, all figures modelled: by the fit to all, and by a fit to all
  // others where that was asked for.
  std::vector<EngineProfile> modelled;
  std::vector<EngineProfile> left_out;
};

// Throws InputError when the device is not one of NeuronCores, or a profile
// has no figure.
ProfileFit FitProfiles(const hardware::Device& device,
                       const std::vector<EngineProfile>& profiles,
                       const ProfileFitOptions& options = {});

// Every figure of a profile at the given parameters.
EngineProfile ModelProfile(const hardware::Device& device,
                           const std::string& label,
                           const model::Workload& workload,
                           const std::vector<double>& values);

// How busy the engines of a device are; nullopt where its model has none.
std::optional<EngineProfile> EnginesOf(const hardware::Device& device,
                                       const model::Workload& workload,
                                       const std::vector<double>& values);

}  // namespace trainfare::calibrate
