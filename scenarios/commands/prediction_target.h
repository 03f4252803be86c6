#pragma once

// What a prediction is about: devices, and what they are called.

#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/predictor.h"
#include "hardware/catalog/instance.h"
#include "scenarios/job/cluster.h"
#include "scenarios/job/pricing.h"

namespace trainfare::scenarios {

// What is asked about: the device, how many, at what price.
struct PredictionTarget {
  calibrate::Predictor predictor;
  std::string fit_name;  // empty: datasheet
  Cluster cluster;
  const hardware::Instance* instance = nullptr;
  std::optional<Tariff> tariff;
  std::vector<std::string> left_out_fits;  // why, a line each
  // Where the name of its device left open which it is: what it is taken as.
  std::optional<std::string> taken_as;
};

// "2 x a100_sxm4_80gb (NVIDIA A100-SXM4-80GB) of aws/p4d.24xlarge".
std::string TargetName(const PredictionTarget& target);

// What tells a target from others: its instance, else its device.
std::string ShortName(const PredictionTarget& target);

// What its fit errs by where a run is left out; nullopt: there is no fit, or it
// is of one run alone, of which that says nothing.
std::optional<double> LeftOutError(const PredictionTarget& target);

// The names of all, short where they are several.
std::string NamesOf(const std::vector<PredictionTarget>& targets);

}  // namespace trainfare::scenarios
