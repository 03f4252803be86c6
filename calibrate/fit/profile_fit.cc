#include "calibrate/fit/profile_fit.h"

#include <ceres/jet.h>
#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "calibrate/fit/discrepancy.h"
#include "calibrate/fit/exact_jet.h"
#include "calibrate/fit/fit_options.h"
#include "calibrate/fit/posterior.h"
#include "calibrate/fit/problem.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/statistics.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/validate.h"

namespace trainfare::calibrate {
namespace {

using hardware::Device;
using hardware::ParameterInfo;
using model::InputError;

constexpr int kParameters = hardware::models::kNeuronParameterCount;

std::span<const ParameterInfo> Infos() {
  return hardware::models::NeuronParameters();
}

using ProfileJet = ceres::Jet<double, kParameters>;

template <class T>
std::array<T, kParameters> ValuesAt(std::span<const T> positions) {
  using std::exp;
  std::array<T, kParameters> values{};
  const auto infos = Infos();
  for (size_t i = 0; i < kParameters; ++i) {
    values[i] = infos[i].transform == hardware::Transform::kLog
                    ? exp(positions[i])
                    : positions[i];
  }
  return values;
}

// A profile with its kernels expanded once.
struct Prepared {
  EngineProfile profile;
  model::KernelList kernels;
};

// The residuals of one profile's figures.
class ProfileResiduals : public ResidualBlock {
 public:
  ProfileResiduals(const Device& device,
                   const Prepared& prepared,
                   const ProfileFitOptions& options)
      : device_(device), prepared_(prepared), options_(options) {}

  size_t size() const override {
    const EngineProfile& p = prepared_.profile;
    return static_cast<size_t>(p.step.has_value()) +
           static_cast<size_t>(p.tensor.has_value()) +
           static_cast<size_t>(p.vector.has_value()) +
           static_cast<size_t>(p.scalar.has_value()) +
           static_cast<size_t>(p.dma.has_value()) +
           static_cast<size_t>(p.traffic.has_value()) +
           static_cast<size_t>(p.spill.has_value());
  }

  bool Evaluate(std::span<const double> positions,
                std::span<double> residuals,
                std::span<double> slopes) const override {
    if (slopes.empty()) {
      Fill<double>(positions, residuals);
    } else {
      std::array<ProfileJet, kParameters> variables;
      for (size_t i = 0; i < kParameters; ++i) {
        variables[i] = ProfileJet(positions[i], static_cast<int>(i));
      }
      std::vector<ProfileJet> jets(residuals.size());
      Fill<ProfileJet>(variables, jets);
      for (size_t i = 0; i < jets.size(); ++i) {
        residuals[i] = jets[i].a;
        for (size_t j = 0; j < kParameters; ++j) {
          slopes[i * kParameters + j] = jets[i].v[static_cast<int>(j)];
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
    const EngineProfile& seen = prepared_.profile;
    const auto busy = hardware::models::NeuronStepActivity<T>(
        device_, seen.workload, prepared_.kernels, p);
    const model::Seconds<T> step =
        hardware::EstimateStep<T>(device_, seen.workload, prepared_.kernels, p)
            .total();
    size_t i = 0;
    const auto share = [&](const std::optional<double>& measured,
                           const model::Seconds<T>& time) {
      if (!measured) return;
      residuals[i++] = (time / step - *measured) / options_.share_sigma;
    };
    const auto bytes = [&](const std::optional<model::Bytes<>>& measured,
                           const model::Bytes<T>& modelled) {
      if (!measured) return;
      residuals[i++] =
          log(modelled.base() / measured->base()) / options_.bytes_sigma;
    };
    if (seen.step) {
      residuals[i++] =
          log(step.base() / seen.step->base()) / options_.time_sigma;
    }
    share(seen.tensor, busy.tensor);
    share(seen.vector, busy.vector);
    share(seen.scalar, busy.scalar);
    share(seen.dma, busy.dma);
    bytes(seen.traffic, busy.traffic);
    bytes(seen.spill, busy.spill);
  }

  const Device& device_;
  const Prepared& prepared_;
  ProfileFitOptions options_;
};

FitProblem ProblemOf(const Device& device,
                     const std::vector<Prepared>& profiles,
                     const ProfileFitOptions& options) {
  std::vector<BoundedParameter> parameters;
  for (const ParameterInfo& info : Infos()) parameters.push_back(Bounded(info));
  FitProblem problem(std::move(parameters), /*robust_scale=*/0.0);
  for (const Prepared& profile : profiles) {
    problem.Add(std::make_unique<ProfileResiduals>(device, profile, options));
  }
  return problem;
}

std::vector<double> ValuesOf(const std::vector<double>& positions) {
  const auto values = ValuesAt(std::span<const double>(positions));
  return {values.begin(), values.end()};
}

FittedRange RangeOf(const std::vector<EngineProfile>& profiles) {
  std::vector<const model::Workload*> workloads;
  for (const EngineProfile& profile : profiles) {
    workloads.push_back(&profile.workload);
  }
  return RangeOver(workloads);
}

void FillParameters(const Posterior& solution, Fit& fit) {
  const std::vector<double> values = ValuesOf(solution.positions);
  const auto infos = Infos();
  for (size_t i = 0; i < kParameters; ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    FittedParameter parameter;
    parameter.name = infos[i].name;
    parameter.value = values[i];
    parameter.standard_error = std::sqrt(solution.covariance(at, at));
    parameter.prior = infos[i].prior;
    parameter.determined =
        parameter.standard_error < kDeterminedBelow * infos[i].prior_sigma;
    if (!parameter.determined) {
      parameter.determined_by = std::string(infos[i].determined_by);
    }
    fit.parameters.push_back(parameter);
    for (Eigen::Index j = 0; j < kParameters; ++j) {
      fit.covariance.push_back(solution.covariance(at, j));
    }
  }
}

// Times of steps where they were recorded, and how far the model is from them.
void FillRuns(const std::vector<EngineProfile>& profiles,
              const ProfileFit& result,
              const Posterior& solution,
              double time_sigma,
              Fit& fit) {
  std::vector<double> residuals;
  std::vector<double> errors;
  std::vector<double> left_out_errors;
  for (size_t i = 0; i < profiles.size(); ++i) {
    if (!profiles[i].step) continue;
    FittedRun run;
    run.label = profiles[i].label;
    run.workload = Describe(profiles[i].workload);
    run.place = PlaceOf(profiles[i].workload);
    run.devices = profiles[i].devices;
    run.measured = *profiles[i].step;
    run.modelled = *result.modelled[i].step;
    if (!result.left_out.empty()) run.left_out = result.left_out[i].step;
    const double ratio = run.modelled / run.measured;
    residuals.push_back(std::log(ratio));
    errors.push_back(std::abs(ratio - 1.0));
    if (run.left_out) {
      left_out_errors.push_back(std::abs(*run.left_out / run.measured - 1.0));
    }
    fit.runs.push_back(run);
  }
  if (errors.empty()) return;
  double effective = 0.0;
  for (size_t i = 0; i < kParameters; ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    const double sigma = Infos()[i].prior_sigma;
    effective += 1.0 - solution.covariance(at, at) / (sigma * sigma);
  }
  const auto count = static_cast<double>(fit.provenance.observations);
  const double freedom = std::max(1.0, count - effective);
  const double scatter =
      RobustDeviation(residuals, 0.0) * std::sqrt(count / freedom);
  // Few step times stand behind the scatter, however many shares there are.
  const double steps = std::min(freedom, static_cast<double>(errors.size()));
  fit.degrees_of_freedom = static_cast<int64_t>(steps);
  fit.residual_scatter =
      ScatterWithPrior(steps * scatter * scatter, steps, time_sigma);
  fit.in_sample_error = Median(errors);
  if (!left_out_errors.empty()) {
    fit.leave_one_out_error = Median(left_out_errors);
  }
}

// The profiles and their kernels, and how many figures they have. Throws
// InputError where one has none.
std::vector<Prepared> Prepare(const Device& device,
                              const std::vector<EngineProfile>& profiles,
                              const ProfileFitOptions& options,
                              int64_t& figures) {
  std::vector<Prepared> prepared;
  for (const EngineProfile& profile : profiles) {
    model::Validate(profile.workload);
    hardware::RequirePrecision(device, profile.workload.precision);
    prepared.push_back({profile, model::ExpandKernels(profile.workload)});
    const size_t count =
        ProfileResiduals(device, prepared.back(), options).size();
    if (count == 0) {
      throw InputError(
          fmt::format("{}: expected a figure of the profile", profile.label));
    }
    figures += static_cast<int64_t>(count);
  }
  if (prepared.empty()) {
    throw InputError(fmt::format(
        "fit of {} to profiles: expected profiles, got none", device.name));
  }
  return prepared;
}

}  // namespace

EngineProfile ModelProfile(const Device& device,
                           const std::string& label,
                           const model::Workload& workload,
                           const std::vector<double>& values) {
  const model::KernelList kernels = model::ExpandKernels(workload);
  const std::span<const double> p(values);
  const auto busy = hardware::models::NeuronStepActivity<double>(
      device, workload, kernels, p);
  EngineProfile profile;
  profile.label = label;
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

std::optional<EngineProfile> EnginesOf(const Device& device,
                                       const model::Workload& workload,
                                       const std::vector<double>& values) {
  if (!hardware::KindOf(device).profiles_engines) return std::nullopt;
  return ModelProfile(device, device.name, workload, values);
}

ProfileFit FitProfiles(const Device& device,
                       const std::vector<EngineProfile>& profiles,
                       const ProfileFitOptions& options) {
  if (!hardware::KindOf(device).profiles_engines) {
    throw InputError(
        fmt::format("fit of {} to profiles: expected a device of NeuronCores",
                    device.name));
  }
  int64_t figures = 0;
  const std::vector<Prepared> prepared =
      Prepare(device, profiles, options, figures);
  const FitProblem problem = ProblemOf(device, prepared, options);
  std::string message;
  std::optional<Solution> solved =
      Solve(problem, PriorPositions(problem), {}, &message);
  if (!solved) {
    throw InputError(
        fmt::format("fit of {} to profiles: {}", device.name, message));
  }
  Posterior solution;
  solution.positions = std::move(solved->positions);
  solution.held.assign(kParameters, false);
  solution.covariance = PosteriorCovariance(problem, solution.positions);
  std::vector<std::optional<std::vector<double>>> left_out;
  if (options.leave_one_out) left_out = LeaveOutEachGroup(problem, solution);
  ProfileFit result;
  for (size_t i = 0; i < prepared.size(); ++i) {
    const EngineProfile& profile = prepared[i].profile;
    const auto at = [&](const std::vector<double>& positions) {
      return ModelProfile(
          device, profile.label, profile.workload, ValuesOf(positions));
    };
    result.modelled.push_back(at(solution.positions));
    if (!options.leave_one_out) continue;
    if (!left_out[i]) {
      throw InputError(
          fmt::format("fit of {} to profiles without {}: the "
                      "solver did not converge",
                      device.name,
                      profile.label));
    }
    result.left_out.push_back(at(*left_out[i]));
  }
  Fit& fit = result.fit;
  fit.name = device.name;
  fit.device = device.name;
  fit.reported_name = device.reported_name;
  fit.kind = device.kind;
  fit.provenance.runs = static_cast<int64_t>(profiles.size());
  fit.provenance.observations = figures;
  std::set<std::string> sources;
  for (const EngineProfile& profile : profiles) sources.insert(profile.source);
  fit.provenance.sources.assign(sources.begin(), sources.end());
  fit.range = RangeOf(profiles);
  FillParameters(solution, fit);
  FillRuns(profiles, result, solution, options.time_sigma, fit);
  return result;
}

}  // namespace trainfare::calibrate
