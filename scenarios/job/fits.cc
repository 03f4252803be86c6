#include "scenarios/job/fits.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "calibrate/fit/fit_folders.h"
#include "calibrate/fit/parallel_for.h"

namespace trainfare::scenarios {

void Fits::Read(const std::vector<std::string>& devices) {
  if (!files_) files_ = calibrate::ListFitFiles();
  std::vector<calibrate::LoadedFits> loaded(devices.size());
  calibrate::ParallelFor(devices.size(), [&](size_t i) {
    loaded[i] = calibrate::LoadFitsOf(devices[i], *files_);
  });
  for (size_t i = 0; i < devices.size(); ++i) {
    std::vector<std::string>& left_out = loaded[i].left_out;
    std::move(left_out.begin(), left_out.end(), std::back_inserter(left_out_));
    fits_.emplace(devices[i], std::move(loaded[i].fits));
  }
}

calibrate::Predictor PredictorBy(const hardware::Device& device,
                                 const calibrate::Fit* fit) {
  return fit != nullptr ? calibrate::Predictor(device, *fit)
                        : calibrate::Predictor(device);
}

const calibrate::Fit* Fits::Of(const hardware::Device& device) {
  if (!fits_.contains(device.name)) Read({device.name});
  return calibrate::FitFor(device, fits_.at(device.name));
}

calibrate::Predictor Fits::PredictorOf(const hardware::Device& device) {
  return PredictorBy(device, Of(device));
}

}  // namespace trainfare::scenarios
