#pragma once

// Step and run times of published runs on GPUs and TPUs, from fits to the
// other runs of their document. Internal to scenarios/.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/predictor.h"
#include "hardware/catalog/device.h"
#include "hardware/models/device_models.h"
#include "hardware/models/step_time.h"
#include "model/units.h"
#include "scenarios/published/published_runs.h"

namespace trainfare::scenarios {

// A step on all devices of a run.
struct ParallelStep {
  hardware::StepTime<double> time;
  model::Seconds<> backward;  // with what it waits for
  model::Seconds<> total;
};

// Share of a step in which the device works.
double BusyShare(const hardware::StepTime<double>& time,
                 model::Seconds<> total);

class PublishedSteps {
 public:
  // Keeps a reference to `runs`.
  explicit PublishedSteps(const PublishedRuns& runs) : runs_(runs) {}

  const PublishedRuns& runs() const { return runs_; }

  // The device, fitted without the run `target`.
  const calibrate::Predictor& PredictorOf(const hardware::Device& device,
                                          const std::string& target);
  // In words; after PredictorOf.
  std::string FittedTo(const hardware::Device& device,
                       const std::string& target) const;

  // PublishedRuns::Describe, with the update that the other runs speak for
  // where the document does not say how it is implemented.
  Described Describe(const PublishedRun& run, const std::string& target);

  ParallelStep StepOf(const Described& d,
                      const std::string& target,
                      std::string& how);
  PublishedPrediction RunTime(const PublishedRow& row);

 private:
  // The parameters of a kind of device that one document's runs give: shared
  // by all, and factors of each device (on those that OfDevice names).
  struct SharedFit {
    std::vector<double> shared;
    std::map<std::string, std::vector<double>> factors;
    // Of updates whose implementation is not stated.
    model::OptimizerImplementation update =
        model::OptimizerImplementation::kMultiTensor;
    double cost = 0;
    size_t figures = 0;
  };

  std::vector<calibrate::Observation> ObservationsOf(
      const hardware::Device& device,
      const std::string& target,
      model::OptimizerImplementation update) const;
  std::string KeyOf(hardware::DeviceKind kind, const std::string& target) const;
  const SharedFit& SharedFitOf(hardware::DeviceKind kind,
                               const std::string& target);
  SharedFit FitShared(hardware::DeviceKind kind,
                      const std::string& target,
                      model::OptimizerImplementation update) const;
  // A step of several GPUs as its parts say, and what the steps of other runs
  // of several take besides.
  ParallelStep PartsOf(const Described& d,
                       const std::string& target,
                       std::string& how);
  model::Seconds<> OutsideOf(const std::string& target, std::string& how);
  calibrate::Fit FitWithItsKind(const hardware::Device& device,
                                const std::string& target);

  const PublishedRuns& runs_;
  std::map<std::string, std::unique_ptr<calibrate::Predictor>> predictors_;
  std::map<std::string, size_t> fitted_to_;
  std::map<std::string, SharedFit> shared_;
};

}  // namespace trainfare::scenarios
