#include "calibrate/fit/parameter_spread.h"

#include <cmath>

#include "calibrate/fit/step_model.h"
#include "hardware/models/kind.h"

namespace trainfare::calibrate {

std::vector<ParameterSpread> SpreadsOf(hardware::DeviceKind kind,
                                       std::span<const Fit> fits) {
  const auto infos = hardware::ParametersOf(kind);
  std::vector<ParameterSpread> spreads(infos.size());
  for (const Fit& fit : fits) {
    if (fit.kind != kind) continue;
    for (size_t i = 0; i < infos.size(); ++i) {
      const FittedParameter& fitted = fit.parameters[i];
      ++spreads[i].fits;
      if (!fitted.determined) continue;
      const double off = ToFitScale(infos[i], fitted.value) -
                         ToFitScale(infos[i], fitted.prior);
      ++spreads[i].determined;
      spreads[i].sigma += off * off + fit.covariance[i * infos.size() + i];
    }
  }
  for (ParameterSpread& spread : spreads) {
    if (spread.determined == 0) continue;
    spread.sigma =
        std::sqrt(spread.sigma / static_cast<double>(spread.determined));
  }
  return spreads;
}

}  // namespace trainfare::calibrate
