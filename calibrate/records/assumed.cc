#include "calibrate/records/assumed.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace trainfare::calibrate {
namespace {

// Labels are the width of a head's last layer alone, which no clock sees; all
// others are of the run around its steps. A key that is not here counts.
constexpr std::array<std::string_view, 8> kBesideStep = {"epochs",
                                                         "labels",
                                                         "overlap_gap",
                                                         "price",
                                                         "samples_from",
                                                         "samples_in_run",
                                                         "steps",
                                                         "train_samples"};

}  // namespace

bool MakesStep(const Assumed& assumed) {
  return std::any_of(assumed.begin(), assumed.end(), [](const auto& entry) {
    return std::find(kBesideStep.begin(), kBesideStep.end(), entry.first) ==
           kBesideStep.end();
  });
}

}  // namespace trainfare::calibrate
