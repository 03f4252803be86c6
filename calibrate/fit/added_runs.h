#pragma once

// Measurements that are added to a fit whose parameters stay: what they say of
// the formula's error near them.
//
//   r = log(modelled / measured) of each, less what the fit's own runs say of
//   it (discrepancy.h): a Gaussian process as there, of size kDatasheetScatter,
//   what the formula leaves open of what nobody measured, and noise kAddedNoise
//
// Places are those of discrepancy.h, and how many devices there were, in the
// same unit. Of one row at a place with r = 0.10 a question there is divided by
// exp(0.10 x 0.15^2 / (0.15^2 + 0.05^2)) = 1.094, and open by sqrt(1 / 10) of
// what it was and the noise.
//
// Four rows or more tell whether they scatter more than that, or less: of sizes
// and noises 1/2, 1, 2 and 4 times these, and half the reach, those of the
// greatest likelihood times prior are taken, each doubling or halving 1 / e as
// likely before.
// Check: tests/calibrate/fit/added_runs_test.cc.

#include <functional>
#include <memory>
#include <vector>

#include "calibrate/fit/discrepancy.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/own_figures.h"
#include "calibrate/records/observation.h"
#include "hardware/catalog/device.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// The same that a fit assumes of the formula besides a measurement's noise.
inline constexpr double kAddedNoise = 0.05;

class AddedRuns {
 public:
  AddedRuns();
  // `known`: what the fit corrects of a run without those that were added.
  AddedRuns(const std::vector<FittedRun>& runs,
            const std::function<double(const FittedRun&)>& known);
  ~AddedRuns();
  AddedRuns(const AddedRuns& other);
  AddedRuns& operator=(const AddedRuns& other);
  AddedRuns(AddedRuns&&) noexcept;
  AddedRuns& operator=(AddedRuns&&) noexcept;

  bool empty() const;
  double noise() const;
  // The variance over that without them.
  Correction At(const model::Workload& workload,
                const hardware::Device& device) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Why figures are left out that only a fit anew can take.
inline constexpr const char* kNoWholeStep = "no whole step, which --add needs";
// Why the same measurement is not added once more.
inline constexpr const char* kAddedBefore = "added before";
inline constexpr const char* kTwice = "twice in the files";

struct AddedFit {
  Fit fit;
  LeftOut left_out;  // of the observations
};
// Whole steps of the device, one or several of it over links that are known.
// Throws InputError where none of the observations is.
AddedFit AddRuns(const hardware::Device& device,
                 Fit fit,
                 const std::vector<Observation>& observations);

}  // namespace trainfare::calibrate
