#include "scenarios/internal/published_steps.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "model/collective.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/overlap.h"
#include "scenarios/internal/least_squares.h"
#include "scenarios/internal/published_systems.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Observation;
using calibrate::Predictor;
using hardware::Device;
using hardware::DeviceKind;
using model::InputError;
using model::Seconds;

// What tells one GPU from another.
constexpr std::array<size_t, 3> kOfDevice = {
    hardware::models::kGpuGemmEfficiencyFp32,
    hardware::models::kGpuGemmEfficiencyHalf,
    hardware::models::kGpuBandwidthEfficiency};

}  // namespace

double BusyShare(const hardware::StepTime<double>& time, Seconds<> total) {
  const auto work = [](const hardware::PhaseTime<double>& phase) {
    return phase.total() - phase.overhead;
  };
  return (work(time.forward) + work(time.backward) + work(time.optimizer)) /
         total;
}

double MatrixShare(const hardware::StepTime<double>& time, Seconds<> total) {
  return (time.forward.matrix + time.backward.matrix) / total;
}

// All that a fit of `device` may see when `target` is predicted.
std::vector<Observation> PublishedSteps::ObservationsOf(
    const Device& device, const std::string& target) const {
  std::vector<Observation> observations;
  for (const PublishedRow& row : runs_.published().rows) {
    if (row.use != PublishedUse::kFit || runs_.LeftOut(row.run, target))
      continue;
    const PublishedRun& run = runs_.RunOf(row);
    if (run.device != device.name || IsOneStep(run.name)) continue;
    // Runs of another document were set up in ways that nobody compared.
    if (runs_.DocumentOf(row.run) != runs_.DocumentOf(target)) continue;
    // What GPUs wait for each other is not in the model of one.
    if (run.device_count != 1 && device.kind == DeviceKind::kGpu) continue;
    Observation o;
    o.label = row.id;
    o.group = row.group;
    o.device = device.name;
    try {
      const Described d = runs_.Describe(run);
      o.workload = d.workload;
      if (row.quantity == "run_time") {
        std::string how;
        const model::RunPlan plan = runs_.PlanOf(d, target, how);
        o.measured =
            Seconds<>(row.value.low /
                      static_cast<double>(StepsPerEpoch(plan) * plan.epochs));
      } else if (row.quantity == "step_time") {
        o.measured = Seconds<>(row.value.low);
      } else if (row.quantity == "optimizer_time" && row.part &&
                 *row.part == "steady step") {
        o.measured = Seconds<>(row.value.low);
        o.quantity = calibrate::Quantity::kOptimizer;
      } else {
        continue;
      }
    } catch (const InputError&) {
      continue;  // A run that does not say enough is in no fit.
    }
    observations.push_back(std::move(o));
  }
  return observations;
}

// Devices of one kind in one document were used by the same people with the
// same software: what they share is fitted to all, what tells one device
// from another to its own runs_.
const Predictor& PublishedSteps::PredictorOf(const Device& device,
                                             const std::string& target) {
  const std::string key = device.name + "|" + runs_.DocumentOf(target) + "|" +
                          runs_.Without(target);
  auto found = predictors_.find(key);
  if (found == predictors_.end()) {
    const std::vector<Observation> observations =
        ObservationsOf(device, target);
    std::unique_ptr<Predictor> predictor;
    if (device.kind == DeviceKind::kGpu) {
      predictor =
          std::make_unique<Predictor>(device, FitWithItsKind(device, target));
    } else if (observations.empty()) {
      predictor = std::make_unique<Predictor>(device);
    } else {
      calibrate::FitOptions options;
      options.leave_one_out = false;
      predictor = std::make_unique<Predictor>(
          device, calibrate::FitDevice(device, observations, options));
    }
    fitted_to_[key] = observations.size();
    found = predictors_.emplace(key, std::move(predictor)).first;
  }
  return *found->second;
}

// The parameters of GPUs that one document's runs give: shared by all, and a

const PublishedSteps::SharedFit& PublishedSteps::SharedFitOf(
    const std::string& target) {
  const std::string key =
      runs_.DocumentOf(target) + "|" + runs_.Without(target);
  const auto found = shared_.find(key);
  if (found != shared_.end()) return found->second;
  std::set<std::string> names;
  for (const auto& [name, run] : runs_.published().runs) {
    if (!run.device || IsOneStep(name)) continue;
    if (FindDevice(*run.device).kind == DeviceKind::kGpu) {
      names.insert(*run.device);
    }
  }
  struct Seen {
    const Device* device;
    size_t device_index;
    Observation observation;
    model::KernelList kernels;
  };
  std::vector<Seen> seen;
  std::vector<std::string> devices;
  for (const std::string& name : names) {
    const Device& device = FindDevice(name);
    std::vector<Observation> observations = ObservationsOf(device, target);
    if (observations.empty()) continue;
    for (Observation& o : observations) {
      model::KernelList kernels = ExpandKernels(o.workload);
      seen.push_back(
          {&device, devices.size(), std::move(o), std::move(kernels)});
    }
    devices.push_back(name);
  }
  std::vector<FreeParameter> priors;
  for (const auto& info : hardware::ParametersOf(DeviceKind::kGpu)) {
    priors.push_back({info.prior, info.prior_sigma});
  }
  const size_t shared = priors.size();
  // Devices of a kind differ less from each other than from a datasheet.
  priors.resize(shared + devices.size() * kOfDevice.size(), {1.0, 0.1});
  const auto values = FitToPriors(priors, [&](const auto& p) {
    std::vector<double> residuals;
    for (const Seen& one : seen) {
      std::vector<double> of_device(
          p.begin(), p.begin() + static_cast<std::ptrdiff_t>(shared));
      for (size_t i = 0; i < kOfDevice.size(); ++i) {
        of_device[kOfDevice.at(i)] *=
            p[shared + one.device_index * kOfDevice.size() + i];
      }
      const auto time =
          hardware::EstimateStep<double>(*one.device,
                                         one.observation.workload,
                                         one.kernels,
                                         std::span<const double>(of_device));
      const Seconds<> part =
          one.observation.quantity == calibrate::Quantity::kOptimizer
              ? time.optimizer.total()
              : time.total();
      residuals.push_back(std::log(part / one.observation.measured) /
                          kTimeSigma);
    }
    return residuals;
  });
  SharedFit fit;
  fit.shared.assign(values.begin(),
                    values.begin() + static_cast<std::ptrdiff_t>(shared));
  for (size_t d = 0; d < devices.size(); ++d) {
    for (size_t i = 0; i < kOfDevice.size(); ++i) {
      fit.factors[devices[d]].at(i) = values[shared + d * kOfDevice.size() + i];
    }
  }
  fit_sizes_[key] = seen.size();
  return shared_.emplace(key, std::move(fit)).first->second;
}

calibrate::Fit PublishedSteps::FitWithItsKind(const Device& device,
                                              const std::string& target) {
  const SharedFit& shared = SharedFitOf(target);
  calibrate::Fit fit = calibrate::PriorFit(device);
  for (size_t i = 0; i < fit.parameters.size(); ++i) {
    fit.parameters[i].value = shared.shared[i];
  }
  const auto factors = shared.factors.find(device.name);
  if (factors != shared.factors.end()) {
    for (size_t i = 0; i < kOfDevice.size(); ++i) {
      fit.parameters[kOfDevice.at(i)].value *= factors->second.at(i);
    }
  }
  return fit;
}

std::string PublishedSteps::FittedTo(const Device& device,
                                     const std::string& target) const {
  const std::string rest =
      runs_.DocumentOf(target) + "|" + runs_.Without(target);
  const size_t count = fitted_to_.at(device.name + "|" + rest);
  if (device.kind == DeviceKind::kGpu) {
    return fmt::format("fit to {} other figures of {} and {} of other GPUs",
                       count,
                       device.name,
                       fit_sizes_.at(rest) - count);
  }
  if (count == 0) return "datasheet and priors";
  return fmt::format("fit to {} other figures of {}", count, device.name);
}
ParallelStep PublishedSteps::StepOf(const Described& d,
                                    const std::string& target,
                                    std::string& how) {
  const Device& device = FindDevice(*d.run->device);
  const Predictor& predictor = PredictorOf(device, target);
  how += FittedTo(device, target) + d.assumed;
  ParallelStep step;
  step.time = predictor.Time(d.workload);
  step.backward = step.time.backward.total();
  if (d.run->device_count > 1 && device.kind == DeviceKind::kGpu) {
    const PublishedRing ring = RingWithout(runs_, target, how);
    const auto piece = [&](const std::string& part, Seconds<> compute) {
      return model::OverlapTask<double>{
          compute,
          model::RingAllReduceTime<double>(d.run->device_count,
                                           GradientsOf(d.workload, part),
                                           ring.latency,
                                           ring.link)};
    };
    std::vector<model::OverlapTask<double>> tasks = {
        piece("head", step.time.backward_head)};
    for (int64_t i = 0; i < d.workload.architecture.layers; ++i) {
      tasks.push_back(piece("encoder", step.time.backward_layer));
    }
    tasks.push_back(piece("embedding", step.time.backward_embeddings));
    step.backward = model::OverlapBackward(tasks, Seconds<>()).end;
  }
  step.total = step.time.forward.total() + step.backward +
               step.time.optimizer.total() + step.time.other;
  return step;
}

PublishedPrediction PublishedSteps::RunTime(const PublishedRow& row) {
  const Described d = runs_.Describe(runs_.RunOf(row));
  PublishedPrediction p;
  std::map<int64_t, ParallelStep> steps;
  const model::RunPlan plan = runs_.PlanOf(d, row.run, p.how);
  std::string how;
  const model::RunTimes run = model::EstimateRun(
      plan,
      [&](int64_t batch, int64_t, int64_t) {
        auto found = steps.find(batch);
        if (found == steps.end()) {
          Described at = d;
          at.workload.batch = batch;
          how.clear();
          found = steps.emplace(batch, StepOf(at, row.run, how)).first;
        }
        return found->second.total;
      },
      [](int64_t, int64_t, int64_t) { return Seconds<>(); });
  p.how = how + p.how;
  p.value = ToSeconds(run.total());
  return p;
}

}  // namespace trainfare::scenarios
