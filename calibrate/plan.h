#pragma once

// Which short run to do next.
//
// A run of known sensitivities g (gradient of log time with regard to the
// parameters) and noise s shrinks the covariance C of the parameters to
//
//   C' = C - C g (g^T C g + s^2)^-1 g^T C
//
// whatever it will measure, to first order. The next run is the one that takes
// most from the mean variance of the asked scenarios, mean_j g_j^T C g_j, a
// second of its own duration: sequential I-optimality (V-optimality) with the
// current fit as the point of linearisation.
// Source: Atkinson, Donev & Tobias 2007, Optimum Experimental Designs, 10, 19;
// Pukelsheim 1993, Optimal Design of Experiments, 9. Check:
// tests/calibrate/plan_test.cc, docs/calibration.md.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit.h"
#include "hardware/device.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// Short runs that one might do on a device, in the order in which ties are
// broken: models from the smallest up, batches and lengths that cover both
// sides of the ridge point. Precisions that the device lacks are left out.
// Throws InputError for an unknown model.
std::vector<model::Workload> CandidateRuns(
    const hardware::Device& device,
    const std::vector<model::Precision>& precisions,
    const std::vector<std::string>& models = {});

struct PlannedRun {
  model::Workload workload;
  int64_t steps = 0;
  int64_t warmup = 0;
  model::Seconds<> expected_duration;  // all steps and the model's set-up
};

struct PlanOptions {
  std::vector<model::Workload> candidates;
  // What will be asked; empty: the candidates.
  std::vector<model::Workload> scenarios;
  double model_sigma = FitOptions{}.model_sigma;
};

class Planner {
 public:
  // `device` must outlive the planner.
  Planner(const hardware::Device& device, PlanOptions options);
  ~Planner();
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  // The next run by what `fit` knows (PriorFit before the first), not longer
  // than `longest`; nullopt when none is left or fits. Candidates that are
  // Done() are not proposed again.
  std::optional<PlannedRun> Next(const Fit& fit,
                                 model::Seconds<> longest) const;
  // Marks a workload as run (or refused).
  void Done(const model::Workload& workload);

  // Half the 80 % interval of the scenarios' log time by the parameters alone,
  // as a root mean square.
  double ExpectedInterval(const Fit& fit) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trainfare::calibrate
