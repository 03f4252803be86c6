#include "scenarios/published/published_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "model/collective.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/overlap.h"
#include "scenarios/published/least_squares.h"
#include "scenarios/published/published_systems.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Observation;
using calibrate::Predictor;
using hardware::Device;
using hardware::DeviceKind;
using model::InputError;
using model::Seconds;

// Of log(host time a launch) where trainer and host are not known.
constexpr double kUnknownHostSigma = 1.0;
constexpr double kSlowHostStart = 2.0;

// What tells one device of a kind from another: its efficiencies, its host.
// Empty: devices of this kind are fitted each by itself.
std::vector<size_t> OfDevice(DeviceKind kind) {
  if (kind == DeviceKind::kGpu) {
    return {hardware::models::kGpuGemmEfficiencyFp32,
            hardware::models::kGpuGemmEfficiencyTf32,
            hardware::models::kGpuGemmEfficiencyHalf,
            hardware::models::kGpuBandwidthEfficiency,
            hardware::models::kGpuLaunchCost};
  }
  if (kind == DeviceKind::kSystolic) {
    return {hardware::models::kSystolicGemmEfficiency,
            hardware::models::kSystolicBandwidthEfficiency};
  }
  return {};
}

}  // namespace

double BusyShare(const hardware::StepTime<double>& time, Seconds<> total) {
  const auto work = [](const hardware::PhaseTime<double>& phase) {
    return phase.total() - phase.overhead;
  };
  return (work(time.forward) + work(time.backward) + work(time.optimizer)) /
         total;
}

// All that a fit of `device` may see when `target` is predicted.
std::vector<Observation> PublishedSteps::ObservationsOf(
    const Device& device,
    const std::string& target,
    model::OptimizerImplementation update) const {
  std::vector<Observation> observations;
  for (const PublishedRow& row : runs_.published().rows) {
    if (row.use != PublishedUse::kFit || runs_.LeftOut(row.run, target))
      continue;
    const PublishedRun& run = runs_.RunOf(row);
    if (!run.device || IsOneStep(run.name) || *run.device != device.name) {
      continue;
    }
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
      if (d.implementation_open && device.kind == DeviceKind::kGpu) {
        o.workload.optimizer.implementation = update;
      }
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
// from another to its own runs.
const Predictor& PublishedSteps::PredictorOf(const Device& device,
                                             const std::string& target) {
  const std::string key = device.name + "|" + runs_.DocumentOf(target) + "|" +
                          runs_.Without(target);
  auto found = predictors_.find(key);
  if (found == predictors_.end()) {
    const bool shared = !OfDevice(device.kind).empty();
    const std::vector<Observation> observations =
        ObservationsOf(device,
                       target,
                       shared ? SharedFitOf(device.kind, target).update
                              : model::OptimizerImplementation::kMultiTensor);
    std::unique_ptr<Predictor> predictor;
    if (shared) {
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

std::string PublishedSteps::KeyOf(DeviceKind kind,
                                  const std::string& target) const {
  return fmt::format("{}|{}|{}",
                     static_cast<int>(kind),
                     runs_.DocumentOf(target),
                     runs_.Without(target));
}

PublishedSteps::SharedFit PublishedSteps::FitShared(
    DeviceKind kind,
    const std::string& target,
    model::OptimizerImplementation update) const {
  std::set<std::string> names;
  for (const auto& [name, run] : runs_.published().runs) {
    if (!run.device || IsOneStep(name)) continue;
    if (FindDevice(*run.device).kind == kind) names.insert(*run.device);
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
    std::vector<Observation> observations =
        ObservationsOf(device, target, update);
    if (observations.empty()) continue;
    for (Observation& o : observations) {
      model::KernelList kernels = ExpandKernels(o.workload);
      seen.push_back(
          {&device, devices.size(), std::move(o), std::move(kernels)});
    }
    devices.push_back(name);
  }
  const std::vector<size_t> of_each = OfDevice(kind);
  const auto infos = hardware::ParametersOf(kind);
  std::vector<FreeParameter> priors;
  for (const auto& info : infos) {
    const bool log = info.transform == hardware::Transform::kLog;
    priors.push_back(
        {info.prior, log ? info.prior_sigma : info.prior_sigma / info.prior});
  }
  // The model's prior is of benchmarks in a tight loop. What trainer and which
  // host a document used it does not say.
  const bool gpu = kind == DeviceKind::kGpu;
  if (gpu) {
    priors[hardware::models::kGpuLaunchCost].sigma = kUnknownHostSigma;
  }
  const size_t shared = priors.size();
  // Devices of a kind differ less from each other than from a datasheet.
  priors.resize(shared + devices.size() * of_each.size(), {1.0, 0.1});
  SharedFit fit;
  fit.update = update;
  fit.figures = seen.size();
  const auto residuals_of = [&](const auto& p) {
    std::vector<double> residuals;
    for (const Seen& one : seen) {
      std::vector<double> of_device(
          p.begin(), p.begin() + static_cast<std::ptrdiff_t>(shared));
      for (size_t i = 0; i < of_each.size(); ++i) {
        of_device[of_each[i]] *=
            p[shared + one.device_index * of_each.size() + i];
      }
      for (size_t i = 0; i < shared; ++i) {
        of_device[i] = std::clamp(of_device[i], infos[i].lower, infos[i].upper);
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
  };
  // Once from the side where devices are the slower, once from where the host
  // is.
  std::vector<double> values = FitToPriors(priors, residuals_of, &fit.cost);
  if (gpu) {
    priors[hardware::models::kGpuLaunchCost].start = kSlowHostStart;
    double cost = 0;
    std::vector<double> other = FitToPriors(priors, residuals_of, &cost);
    if (cost < fit.cost) {
      values = std::move(other);
      fit.cost = cost;
    }
  }
  fit.shared.assign(values.begin(),
                    values.begin() + static_cast<std::ptrdiff_t>(shared));
  for (size_t d = 0; d < devices.size(); ++d) {
    for (size_t i = 0; i < of_each.size(); ++i) {
      fit.factors[devices[d]].push_back(
          values[shared + d * of_each.size() + i]);
    }
  }
  return fit;
}

const PublishedSteps::SharedFit& PublishedSteps::SharedFitOf(
    DeviceKind kind, const std::string& target) {
  const std::string key = KeyOf(kind, target);
  const auto found = shared_.find(key);
  if (found != shared_.end()) return found->second;
  using model::OptimizerImplementation;
  const bool gpu = kind == DeviceKind::kGpu;
  SharedFit fit =
      FitShared(kind, target, OptimizerImplementation::kMultiTensor);
  // Where the document is silent the update is what its other runs fit better.
  const bool open = std::any_of(
      runs_.published().runs.begin(),
      runs_.published().runs.end(),
      [&](const auto& entry) {
        const PublishedRun& run = entry.second;
        return gpu && runs_.DocumentOf(run.name) == runs_.DocumentOf(target) &&
               run.optimizer && !run.optimizer->implementation;
      });
  if (open) {
    SharedFit fused = FitShared(kind, target, OptimizerImplementation::kFused);
    if (fused.cost < fit.cost) fit = std::move(fused);
  }
  return shared_.emplace(key, std::move(fit)).first->second;
}

Described PublishedSteps::Describe(const PublishedRun& run,
                                   const std::string& target) {
  Described d = runs_.Describe(run);
  if (d.implementation_open &&
      FindDevice(*run.device).kind == DeviceKind::kGpu) {
    d.workload.optimizer.implementation =
        SharedFitOf(DeviceKind::kGpu, target).update;
    d.assumed +=
        fmt::format("; {} update, as the other runs say",
                    model::ToText(d.workload.optimizer.implementation));
  }
  return d;
}

calibrate::Fit PublishedSteps::FitWithItsKind(const Device& device,
                                              const std::string& target) {
  const SharedFit& shared = SharedFitOf(device.kind, target);
  calibrate::Fit fit = calibrate::PriorFit(device);
  for (size_t i = 0; i < fit.parameters.size(); ++i) {
    fit.parameters[i].value = shared.shared[i];
  }
  const std::vector<size_t> of_each = OfDevice(device.kind);
  const auto factors = shared.factors.find(device.name);
  if (factors != shared.factors.end()) {
    for (size_t i = 0; i < of_each.size(); ++i) {
      fit.parameters[of_each[i]].value *= factors->second[i];
    }
  }
  const auto infos = hardware::ParametersOf(device.kind);
  for (size_t i = 0; i < fit.parameters.size(); ++i) {
    fit.parameters[i].value =
        std::clamp(fit.parameters[i].value, infos[i].lower, infos[i].upper);
  }
  return fit;
}

std::string PublishedSteps::FittedTo(const Device& device,
                                     const std::string& target) const {
  const std::string rest =
      runs_.DocumentOf(target) + "|" + runs_.Without(target);
  const size_t count = fitted_to_.at(device.name + "|" + rest);
  if (!OfDevice(device.kind).empty()) {
    return fmt::format(
        "fit to {} other figures of {} and {} of other {}",
        count,
        device.name,
        shared_.at(KeyOf(device.kind, target)).figures - count,
        device.kind == DeviceKind::kGpu ? "GPUs" : "chips of its kind");
  }
  if (count == 0) return "datasheet and priors";
  return fmt::format("fit to {} other figures of {}", count, device.name);
}

ParallelStep PublishedSteps::PartsOf(const Described& d,
                                     const std::string& target,
                                     std::string& how) {
  const Device& device = FindDevice(*d.run->device);
  const Predictor& predictor = PredictorOf(device, target);
  how += FittedTo(device, target) + d.assumed;
  ParallelStep step;
  step.time = predictor.Time(d.workload);
  step.backward = step.time.backward.total();
  if (d.run->device_count > 1 && device.kind == DeviceKind::kGpu) {
    const PublishedRing ring = RingOf(runs_, d.run->device_count, target, how);
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

Seconds<> PublishedSteps::OutsideOf(const std::string& target,
                                    std::string& how) {
  Seconds<> sum;
  double steps = 0;
  for (const PublishedRow* row : runs_.RowsToFit("step_time", target)) {
    const PublishedRun& run = runs_.RunOf(*row);
    if (run.device_count == 1 ||
        FindDevice(*run.device).kind != DeviceKind::kGpu ||
        runs_.DocumentOf(run.name) != runs_.DocumentOf(target)) {
      continue;
    }
    std::string ignored;
    const ParallelStep parts = PartsOf(Describe(run, target), target, ignored);
    sum += Seconds<>(row->value.low) - parts.total;
    ++steps;
  }
  if (steps == 0) return {};
  const Seconds<> outside = std::max(sum / steps, Seconds<>());
  how += fmt::format("; {:.0f} ms a step that the parts of {:.0f} other leave",
                     ToSeconds(outside) * 1e3,
                     steps);
  return outside;
}

ParallelStep PublishedSteps::StepOf(const Described& d,
                                    const std::string& target,
                                    std::string& how) {
  ParallelStep step = PartsOf(d, target, how);
  if (d.run->device_count > 1 &&
      FindDevice(*d.run->device).kind == DeviceKind::kGpu) {
    step.total += OutsideOf(target, how);
  }
  return step;
}

PublishedPrediction PublishedSteps::RunTime(const PublishedRow& row) {
  const Described d = Describe(runs_.RunOf(row), row.run);
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
