#pragma once

// Which fit answers for a device.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_folders.h"
#include "calibrate/fit/predictor.h"
#include "hardware/catalog/device.h"

namespace trainfare::scenarios {

// By `fit`; nullptr: by its datasheet and the priors of its kind.
calibrate::Predictor PredictorBy(const hardware::Device& device,
                                 const calibrate::Fit* fit);

// Fits at hand: the files there are when the first is asked for, and of them
// those of a device when it is.
class Fits {
 public:
  // The user's own of `device`, else the shipped one; nullptr: its datasheet
  // must do.
  const calibrate::Fit* Of(const hardware::Device& device);
  // By that fit.
  calibrate::Predictor PredictorOf(const hardware::Device& device);
  // Reads those of many devices at once, before they are asked for.
  void Read(const std::vector<std::string>& devices);
  // Files of the devices asked for so far that are no fits, a line each.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  std::optional<std::vector<calibrate::FitFile>> files_;
  std::map<std::string, std::vector<calibrate::Fit>> fits_;  // by device
  std::vector<std::string> left_out_;
};

}  // namespace trainfare::scenarios
