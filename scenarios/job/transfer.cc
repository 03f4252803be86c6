#include "scenarios/job/transfer.h"

#include <algorithm>
#include <cmath>

#include "calibrate/fit/predictor.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/statistics.h"
#include "hardware/models/device_models.h"
#include "model/error.h"

namespace trainfare::scenarios {

calibrate::Fit TransferFit(const hardware::Device& device,
                           const std::vector<const calibrate::Fit*>& others) {
  calibrate::Fit fit = calibrate::PriorFit(device);
  fit.provenance.source = "transfer";
  // The scatter of log(time) that no parameter explains, on a device nobody
  // measured.
  fit.residual_scatter = calibrate::kDatasheetScatter;
  const auto infos = hardware::ParametersOf(device.kind);
  const size_t count = infos.size();
  int64_t fits_used = 0;
  for (const calibrate::Fit* other : others) {
    ENSURE(other->device != device.name, "a device tells nothing of itself");
    if (other->kind == device.kind) ++fits_used;
  }
  fit.degrees_of_freedom = fits_used;
  for (size_t i = 0; i < count; ++i) {
    // What is known of the device itself comes before what others are like.
    if (fit.parameters[i].prior != infos[i].prior) continue;
    std::vector<double> positions;
    for (const calibrate::Fit* other : others) {
      if (other->kind == device.kind && other->parameters[i].determined) {
        positions.push_back(
            calibrate::ToFitScale(infos[i], other->parameters[i].value));
      }
    }
    if (positions.size() < 2) continue;
    const double median = calibrate::Median(positions);
    double squares = 0.0;
    for (const double position : positions) {
      squares += (position - median) * (position - median);
    }
    // Two devices that agree by chance do not make it certain: the prior's
    // spread counts as one more.
    const double prior = infos[i].prior_sigma;
    const double spread = std::sqrt((squares + prior * prior) /
                                    static_cast<double>(positions.size()));
    fit.parameters[i].value = calibrate::FromFitScale(infos[i], median);
    fit.parameters[i].standard_error = spread;
    fit.parameters[i].determined = true;
    fit.covariance[i * count + i] = spread * spread;
  }
  return fit;
}

}  // namespace trainfare::scenarios
