#pragma once

// The runs behind published figures: which of them are one, what a prediction
// may see of them, and what each was in the words of our models. Internal to
// scenarios/.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/catalog/device.h"
#include "model/run.h"
#include "model/workload.h"
#include "scenarios/published/published.h"
#include "scenarios/published/published_prediction.h"

namespace trainfare::scenarios {

// Errors assumed of figures in the small fits.
inline constexpr double kTimeSigma = 0.05;
inline constexpr double kShareSigma = 0.02;

const hardware::Device& FindDevice(std::string_view name);

// A run as our models need it, and what was assumed for it.
struct Described {
  const PublishedRun* run = nullptr;
  model::Workload workload;
  std::string assumed;
  // The optimizer is named, how its update is implemented is not.
  bool implementation_open = false;
};

// Runs that are one step of an optimizer under a profiler.
bool IsOneStep(const std::string& run);

class PublishedRuns {
 public:
  // Keeps a reference to `published`.
  PublishedRuns(const Published& published, PublishedProtocol protocol);

  const Published& published() const { return published_; }
  bool leaves_out() const {
    return protocol_ == PublishedProtocol::kLeaveOneOut;
  }

  // Whether a prediction of `target` may not see `run`.
  bool LeftOut(const std::string& run, const std::string& target) const;
  // What a fit depends on: nothing left out is one fit for all.
  std::string Without(const std::string& target) const;
  std::string DocumentOf(const std::string& run) const;

  std::vector<const PublishedRow*> RowsToFit(std::string_view quantity,
                                             const std::string& target) const;
  const PublishedRun& RunOf(const PublishedRow& row) const {
    return published_.RunOf(row);
  }
  // Both throw InputError when there is no such row.
  const PublishedRow& Printed(const std::string& id) const;
  double Value(const std::string& id) const { return Printed(id).value.low; }

  // Throws InputError when the run does not say enough.
  Described Describe(const PublishedRun& run) const;
  model::RunPlan PlanOf(const Described& d,
                        const std::string& target,
                        std::string& how) const;

 private:
  void Join(const PublishedRun& run);
  std::string Root(const std::string& run) const;
  double EpochSamples(const PublishedRun& run,
                      const std::string& target,
                      std::string& how) const;

  const Published& published_;
  PublishedProtocol protocol_;
  std::map<std::string, std::string> parent_;
  std::map<std::string, std::string> documents_;
};

}  // namespace trainfare::scenarios
