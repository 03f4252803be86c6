#include "calibrate/fit/engine_figures.h"

#include <ceres/jet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "calibrate/fit/exact_jet.h"
#include "calibrate/fit/step_model.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/kernels.h"

namespace trainfare::calibrate {
namespace {

using hardware::Device;
using hardware::ParameterInfo;

constexpr int kParameters = hardware::models::kNeuronParameterCount;

using EngineJet = ceres::Jet<double, kParameters>;

template <class T>
std::array<T, kParameters> ValuesAt(std::span<const T> positions) {
  std::array<T, kParameters> values{};
  const std::span<const ParameterInfo> infos =
      hardware::models::NeuronParameters();
  for (size_t i = 0; i < kParameters; ++i) {
    values[i] = FromFitScale(infos[i], positions[i]);
  }
  return values;
}

class EngineBlock : public ResidualBlock {
 public:
  EngineBlock(const Device& device, const EngineProfile& profile)
      : device_(device),
        profile_(profile),
        kernels_(model::ExpandKernels(profile.workload)) {}

  size_t size() const override { return EngineFigureCount(profile_); }

  bool Evaluate(std::span<const double> positions,
                std::span<double> residuals,
                std::span<double> slopes) const override {
    const auto own = positions.first(kParameters);
    if (slopes.empty()) {
      Fill<double>(own, residuals);
    } else {
      std::array<EngineJet, kParameters> variables;
      for (size_t i = 0; i < kParameters; ++i) {
        variables[i] = EngineJet(own[i], static_cast<int>(i));
      }
      std::vector<EngineJet> jets(residuals.size());
      Fill<EngineJet>(variables, jets);
      for (size_t i = 0; i < jets.size(); ++i) {
        residuals[i] = jets[i].a;
        for (size_t j = 0; j < kParameters; ++j) {
          slopes[i * positions.size() + j] = jets[i].v[static_cast<int>(j)];
        }
      }
    }
    return std::all_of(residuals.begin(), residuals.end(), [](double value) {
      return std::isfinite(value);
    });
  }

 private:
  template <class T>
  void Fill(std::span<const T> positions, std::span<T> residuals) const {
    using std::log;
    const std::array<T, kParameters> values = ValuesAt(positions);
    const std::span<const T> p(values);
    const auto busy = hardware::models::NeuronStepActivity<T>(
        device_, profile_.workload, kernels_, p);
    const model::Seconds<T> step =
        hardware::EstimateStep<T>(device_, profile_.workload, kernels_, p)
            .total();
    size_t i = 0;
    const auto share = [&](const std::optional<double>& seen,
                           const model::Seconds<T>& time) {
      if (seen) residuals[i++] = (time / step - *seen) / kEngineShareSigma;
    };
    const auto bytes = [&](const std::optional<model::Bytes<>>& seen,
                           const model::Bytes<T>& modelled) {
      if (!seen) return;
      residuals[i++] = log(modelled.base() / seen->base()) / kEngineBytesSigma;
    };
    share(profile_.tensor, busy.tensor);
    share(profile_.vector, busy.vector);
    share(profile_.scalar, busy.scalar);
    share(profile_.dma, busy.dma);
    bytes(profile_.traffic, busy.traffic);
    bytes(profile_.spill, busy.spill);
  }

  const Device& device_;
  EngineProfile profile_;
  model::KernelList kernels_;
};

}  // namespace

std::optional<EngineProfile> EnginesOf(const Device& device,
                                       const model::Workload& workload,
                                       const std::vector<double>& values) {
  if (!hardware::KindOf(device).profiles_engines) return std::nullopt;
  const model::KernelList kernels = model::ExpandKernels(workload);
  const std::span<const double> p(values);
  const auto busy = hardware::models::NeuronStepActivity<double>(
      device, workload, kernels, p);
  EngineProfile profile;
  profile.label = device.name;
  profile.workload = workload;
  profile.step =
      hardware::EstimateStep<double>(device, workload, kernels, p).total();
  profile.tensor = busy.tensor / *profile.step;
  profile.vector = busy.vector / *profile.step;
  profile.scalar = busy.scalar / *profile.step;
  profile.dma = busy.dma / *profile.step;
  profile.traffic = busy.traffic;
  profile.spill = busy.spill;
  return profile;
}

size_t EngineFigureCount(const EngineProfile& profile) {
  size_t count = 0;
  for (const auto* share :
       {&profile.tensor, &profile.vector, &profile.scalar, &profile.dma}) {
    if (*share) ++count;
  }
  for (const auto* bytes : {&profile.traffic, &profile.spill}) {
    if (*bytes) ++count;
  }
  return count;
}

std::unique_ptr<ResidualBlock> EngineResiduals(const Device& device,
                                               const EngineProfile& profile) {
  if (!hardware::KindOf(device).profiles_engines) {
    throw model::InputError(
        fmt::format("{}: expected a profile of a device of NeuronCores, got "
                    "one of {}",
                    profile.label,
                    device.name));
  }
  return std::make_unique<EngineBlock>(device, profile);
}

}  // namespace trainfare::calibrate
