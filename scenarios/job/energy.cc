#include "scenarios/job/energy.h"

#include <algorithm>
#include <cmath>

#include "hardware/models/kind.h"
#include "model/energy.h"

namespace trainfare::scenarios {
namespace {

using hardware::Device;
using model::Seconds;

// Standard deviation of the logarithm of measured over predicted power: seven
// published runs of a V100 lie 8 % apart in the median, 18 % at worst
// (docs/models/energy.md).
constexpr double kPowerSigma = 0.1;
constexpr double kNormalQuantile90 = 1.2815515655446004;

// A GPU draws more at products than at other work; of the other kinds no more
// is known than rest and limit.
model::Watts<> PowerOf(const Device& device, const JobEstimate& job) {
  const Seconds<> total = job.step.total();
  const double working =
      (job.run.training - job.run.input_wait + job.run.evaluation) /
      job.run.total();
  const double busy = std::clamp(job.step.busy() / total * working, 0.0, 1.0);
  const hardware::Kind& kind = hardware::KindOf(device);
  if (kind.power != nullptr) {
    if (const auto levels = kind.power(device, job.workload.precision)) {
      const double products =
          std::clamp(job.step.matrix() / total * working, 0.0, busy);
      return model::MeanPower(*levels, products, busy - products);
    }
  }
  return model::MeanPower(*device.idle_power, *device.max_power, busy);
}

}  // namespace

void EstimateEnergy(const Device& device, JobEstimate& job) {
  if (!device.max_power) return;
  job.energy_is_bound = !device.idle_power;
  const model::Watts<> power =
      job.energy_is_bound ? *device.max_power : PowerOf(device, job);
  job.energy = power * job.run.total() *
               (static_cast<double>(job.devices) /
                static_cast<double>(job.ranks_per_device));
}

std::optional<EnergyRange> EnergyRangeOf(const JobEstimate& job) {
  if (!job.energy || job.energy_is_bound) return std::nullopt;
  const Seconds<> total = job.run.total();
  const auto factor = [](double of_time) {
    return std::exp(
        std::hypot(std::log(of_time), kNormalQuantile90 * kPowerSigma));
  };
  return EnergyRange{*job.energy * (1.0 / factor(total / job.run_low)),
                     *job.energy * factor(job.run_high / total)};
}

}  // namespace trainfare::scenarios
