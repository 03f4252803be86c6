#include "calibrate/records/assumed.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace trainfare::calibrate {
namespace {

// Labels are the width of a head's last layer alone, which no clock sees; the
// others are of the run around its steps. A key that is not here counts.
constexpr auto kBesideTime =
    std::to_array<std::string_view>({"labels", "price"});
// How many steps there were.
constexpr auto kOfRun = std::to_array<std::string_view>(
    {"epochs", "samples_from", "samples_in_run", "steps", "train_samples"});

template <class Keys>
bool Has(const Keys& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

bool MakesStep(const Assumed& assumed) {
  return std::any_of(assumed.begin(), assumed.end(), [](const auto& entry) {
    return !Has(kBesideTime, entry.first) && !Has(kOfRun, entry.first);
  });
}

bool MakesMeanStep(const Assumed& assumed) {
  return std::any_of(assumed.begin(), assumed.end(), [](const auto& entry) {
    return !Has(kBesideTime, entry.first);
  });
}

}  // namespace trainfare::calibrate
