#pragma once

// Every published row beside what the product answers for its run.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "calibrate/records/import/published.h"
#include "scenarios/published/quantities.h"

namespace trainfare::scenarios {

enum class PublishedProtocol {
  kAsShipped,    // the fits at hand: what `predict` prints
  kLeaveOneOut,  // a fit to the other runs of the same device and document
};

struct PublishedPrediction {
  PublishedAnswer answer;
  // Arithmetic on printed figures, no prediction.
  bool checks_data = false;
  // The product refuses the job, though somebody ran it.
  bool refused = false;
  // The fit was made from figures of this run or of its twin, or of the run
  // that the answer is held against.
  bool seen = false;
  std::string how;     // what the answer rests on
  std::string reason;  // why there is none

  bool predicted() const {
    return answer.value.has_value() || answer.fits.has_value();
  }
};

struct PublishedPredictions {
  std::vector<PublishedPrediction> rows;  // one a row, in their order
  // Names of the parameters that the fits determine, of all devices that a
  // group's rows were answered by.
  std::map<std::string, std::set<std::string>> free_parameters;
};

// A figure of a run, or of its twin, has no part in its own prediction. `only`:
// the rows asked for, the others are left without an answer; empty: all.
PublishedPredictions PredictPublished(
    const calibrate::Published& published,
    PublishedProtocol protocol,
    const std::function<bool(const calibrate::PublishedRow&)>& only = {});

}  // namespace trainfare::scenarios
