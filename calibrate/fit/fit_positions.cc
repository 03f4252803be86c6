#include "calibrate/fit/fit_positions.h"

#include <cstddef>

#include "calibrate/fit/step_model.h"
#include "hardware/models/device_models.h"
#include "model/error.h"

namespace trainfare::calibrate {

std::vector<double> PositionsOf(const Fit& fit) {
  const auto infos = hardware::ParametersOf(fit.kind);
  std::vector<double> positions = fit.Values();
  ENSURE(infos.size() == positions.size(), "a fit of this kind");
  for (size_t i = 0; i < infos.size(); ++i) {
    positions[i] = ToFitScale(infos[i], positions[i]);
  }
  return positions;
}

}  // namespace trainfare::calibrate
