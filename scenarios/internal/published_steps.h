#pragma once

// Step and run times of published runs on GPUs and TPUs, from fits to the
// other runs of their document. Internal to scenarios/.

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/fit.h"
#include "calibrate/predictor.h"
#include "hardware/device.h"
#include "hardware/device_models.h"
#include "hardware/step_time.h"
#include "model/units.h"
#include "scenarios/internal/published_runs.h"

namespace trainfare::scenarios {

// A step on all devices of a run.
struct ParallelStep {
  hardware::StepTime<double> time;
  model::Seconds<> backward;  // with what it waits for
  model::Seconds<> total;
};

// Shares of a step in which the device works, and its matrix engines do.
double BusyShare(const hardware::StepTime<double>& time,
                 model::Seconds<> total);
double MatrixShare(const hardware::StepTime<double>& time,
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

  ParallelStep StepOf(const Described& d,
                      const std::string& target,
                      std::string& how);
  PublishedPrediction RunTime(const PublishedRow& row);

 private:
  // The parameters of GPUs that one document's runs give: shared by all, and a
  // factor on three efficiencies of each device.
  struct SharedFit {
    std::vector<double> shared;
    std::map<std::string, std::array<double, 3>> factors;
  };

  std::vector<calibrate::Observation> ObservationsOf(
      const hardware::Device& device, const std::string& target) const;
  const SharedFit& SharedFitOf(const std::string& target);
  calibrate::Fit FitWithItsKind(const hardware::Device& device,
                                const std::string& target);

  const PublishedRuns& runs_;
  std::map<std::string, std::unique_ptr<calibrate::Predictor>> predictors_;
  std::map<std::string, size_t> fitted_to_;
  std::map<std::string, SharedFit> shared_;
  std::map<std::string, size_t> fit_sizes_;
};

}  // namespace trainfare::scenarios
