#include "scenarios/job/energy.h"

#include <algorithm>
#include <cmath>

#include "calibrate/fit/power.h"
#include "calibrate/records/statistics.h"

namespace trainfare::scenarios {
namespace {

using hardware::Device;
using model::Seconds;

// The shares of the run that products and other work take.
struct Shares {
  double products = 0;
  double others = 0;
};

Shares SharesOf(const JobEstimate& job) {
  const Seconds<> total = job.step.total();
  const double working =
      (job.run.training - job.run.input_wait + job.run.evaluation) /
      job.run.total();
  const double busy = std::clamp(job.step.busy() / total * working, 0.0, 1.0);
  const double products =
      std::clamp(job.step.matrix() / total * working, 0.0, busy);
  return {products, busy - products};
}

}  // namespace

void EstimateEnergy(const calibrate::Predictor& predictor, JobEstimate& job) {
  const Device& device = predictor.device();
  if (!device.max_power) return;
  const Shares shares = SharesOf(job);
  const auto& fitted = predictor.fit().power;
  const auto power = calibrate::MeanPowerOf(device,
                                            job.workload.precision,
                                            shares.products,
                                            shares.others,
                                            fitted ? &*fitted : nullptr);
  job.energy_is_bound = !power;
  if (power) job.power_log_sigma = power->log_sigma;
  job.energy = (power ? power->mean : *device.max_power) * job.run.total() *
               (static_cast<double>(job.devices) /
                static_cast<double>(job.ranks_per_device));
  if (power && device.idle_power) {
    *job.energy += *device.idle_power * job.run.total() *
                   static_cast<double>(job.idle_devices);
  }
}

std::optional<EnergyRange> EnergyRangeOf(const JobEstimate& job) {
  if (!job.energy || job.energy_is_bound) return std::nullopt;
  const Seconds<> total = job.run.total();
  const auto factor = [&job](double of_time) {
    return std::exp(std::hypot(
        std::log(of_time), calibrate::kNormalQuantile90 * job.power_log_sigma));
  };
  return EnergyRange{*job.energy * (1.0 / factor(total / job.run_low)),
                     *job.energy * factor(job.run_high / total)};
}

}  // namespace trainfare::scenarios
