#include "calibrate/fit/prior_fit.h"

#include <utility>

#include "hardware/models/device_models.h"

namespace trainfare::calibrate {

Fit EmptyFit(const hardware::Device& device) {
  Fit fit;
  fit.name = device.name;
  fit.device = device.name;
  fit.reported_name = device.reported_name;
  fit.kind = device.kind;
  if (hardware::KindOf(device).is_host) fit.measured_device = device;
  return fit;
}

Fit PriorFit(const hardware::Device& device) {
  const auto infos = hardware::ParametersOf(device);
  Fit fit = EmptyFit(device);
  fit.provenance.source = "datasheet";
  fit.covariance.assign(infos.size() * infos.size(), 0.0);
  for (size_t i = 0; i < infos.size(); ++i) {
    FittedParameter parameter;
    parameter.name = infos[i].name;
    parameter.value = infos[i].prior;
    parameter.standard_error = infos[i].prior_sigma;
    parameter.prior = parameter.value;
    parameter.determined_by = infos[i].determined_by;
    fit.parameters.push_back(std::move(parameter));
    fit.covariance[i * infos.size() + i] =
        infos[i].prior_sigma * infos[i].prior_sigma;
  }
  return fit;
}

}  // namespace trainfare::calibrate
