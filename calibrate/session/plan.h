#pragma once

// Which short run to do next.
//
// What is not known of the log time at workload i, given all runs so far, is
// the parameters' part and what the formula itself gets wrong there:
//
//   K_ij = g_i^T C g_j + D_ij
//
//   g_i  gradient of log time with regard to the parameters
//   C    covariance of the parameters, of the current fit
//   D    covariance of the model's error after the runs done: before any,
//        s^2 exp(-d_ij^2 / 2), d the distance in logs of batch, length and
//        model size over their reach. A formula that is wrong somewhere is
//        wrong the same way nearby, so runs that repeat each other teach
//        little.
//
// A run at i leaves K_jj - K_ij^2 / (K_ii + n^2) at j, n its noise. The next
// run is the one that takes most from the mean over the asked scenarios, a
// second of its own duration: sequential I-optimality (V-optimality), with the
// current fit as the point of linearisation.
// Source: Atkinson, Donev & Tobias 2007, Optimum Experimental Designs, 10, 19;
// Pukelsheim 1993, Optimal Design of Experiments, 9; the error's covariance as
// in Kennedy & O'Hagan 2001. Check: tests/calibrate/session/plan_test.cc,
// docs/models/calibration.md.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/candidate_runs.h"
#include "calibrate/fit/fit.h"
#include "hardware/catalog/device.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// The runs that a calibration of this very device chooses among: CandidateRuns,
// and on a GPU batches of 4 to 256 and lengths of 32 to 512 of BERT-base and
// BERT-large, in both stacks of the trainer, as far as its memory holds them.
std::vector<model::Workload> RunsHere(
    const hardware::Device& device,
    const std::vector<model::Precision>& precisions,
    const std::vector<std::string>& models = {});

// What is asked where nobody says so: the same grid for BERT from small to
// large, as people fine-tune them. Smaller models are run as they are cheap,
// and the large one is asked for though it is not run. None for other kinds of
// device: there it is what RunsHere() has.
std::vector<model::Workload> DefaultScenarios(
    const hardware::Device& device,
    const std::vector<model::Precision>& precisions);

// Building a model with random weights and its optimizer, on one core.
inline constexpr double kSetUpSecondsPerParameter = 12e-9;
// Steps before those that are timed.
inline constexpr int64_t kWarmupSteps = 2;

// A run may take this share of a calibration's budget at most, so that one
// wrong guess does not use it up.
inline constexpr double kLongestRunShare = 0.2;

struct PlannedRun {
  model::Workload workload;
  int64_t steps = 0;
  int64_t warmup = 0;
  model::Seconds<> expected_duration;  // all steps and the model's set-up

  // The run is cut short after that, with one timed step at least: a few times
  // what was expected, and more than a moment.
  model::Seconds<> longest_duration() const;
};

struct PlanOptions {
  std::vector<model::Workload> candidates;
  // What will be asked; empty: the candidates.
  std::vector<model::Workload> scenarios;
  // Model error expected before any run.
  double model_sigma = 0.10;
};

// Throws InputError where the device, or the trainer, has no such precision.
void RequireTrainable(const hardware::Device& device,
                      model::Precision precision);

// What a calibration of this very device chooses among, and for what. Throws
// InputError for models or precisions that the trainer has not.
PlanOptions PlanHere(const hardware::Device& device,
                     const std::vector<model::Precision>& precisions,
                     const std::vector<std::string>& models = {});

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
  // What will be known of the parameters after a run of a candidate: `fit` as it
  // is, but for its covariance,
  //
  //   C - C g g^T C / (g^T C g + D + n^2)
  //
  // with g and D of the run. To be asked before the run is Done().
  Fit After(const Fit& fit, const model::Workload& workload) const;

  // Half the 80 % interval of the scenarios' log time by what runs can still
  // narrow, as a root mean square.
  double ExpectedInterval(const Fit& fit) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The runs of a calibration where nothing can be fitted between them: each
// chosen by what the datasheet expects and those before it will have told, the
// most useful first, so that a machine that gets through half of them has what
// half of them can tell.
std::vector<PlannedRun> PlanAhead(const hardware::Device& device,
                                  PlanOptions options,
                                  model::Seconds<> budget);

}  // namespace trainfare::calibrate
