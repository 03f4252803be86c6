#pragma once

// How likely each candidate is the one to take, as sure as their answers are,
// and which calibration would decide most.

#include <optional>
#include <string>
#include <vector>

#include "scenarios/commands/candidates.h"
#include "scenarios/job/contest.h"

namespace trainfare::scenarios {

// The candidates that could be the choice if their figures were others, in
// their order; they must stay where they are.
struct OpenChoice {
  std::vector<Candidate*> candidates;
  Contest contest;
};

// Sets, of every one of them, the probability that it meets the limits and that
// it is the best of those that do.
OpenChoice SetOdds(const RecommendOptions& options,
                   std::vector<Candidate>& candidates);

// One calibration in an instance that is rented for it, with all its devices.
struct NextCalibration {
  const hardware::Instance* on = nullptr;
  model::Seconds<> time;  // with start-up
  model::Usd<> cost;
  double best_probability = 0;  // of what is the choice then
  // What it saves of the run's cost, expected; absent for another objective.
  std::optional<model::Usd<>> saved;

  // By how much it makes the choice surer.
  double RaisedFrom(const Candidate& choice) const;
};

// The best one, by what it saves beyond its cost; where none saves that, by how
// much surer it makes the choice for its cost, if by 5 points at least.
// nullopt: none is worth saying. Afterwards the step of the device is known as
// well as a fit knows what it was fitted to:
//
//   rho^2 = f^2 (s^2 - m^2) / S^2     correlation of Contest::Measuring
//
//   f  share of the run that is steps
//   s  standard deviation of log(step), now
//   m  the same of a fit to it: FitOptions::model_sigma
//   S  standard deviation of log(run), start-up and compiling with it
//
// Candidates with more devices than it has are taken to tell nothing, as are
// other hosts. Check: tests/scenarios/commands/choice_odds_test.cc.
std::optional<NextCalibration> NextCalibrationOf(
    const RecommendOptions& options, const OpenChoice& open);

// "one calibration on aws/g6.xlarge ($0.03, 3 min) would raise ..."
std::string Words(const NextCalibration& next, const Candidate& choice);

}  // namespace trainfare::scenarios
