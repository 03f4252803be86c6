#include "scenarios/published_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "calibrate/fit.h"
#include "calibrate/predictor.h"
#include "calibrate/profile_fit.h"
#include "calibrate/statistics.h"
#include "hardware/device.h"
#include "hardware/device_models.h"
#include "hardware/models/neuron_compiler.h"
#include "hardware/unit_text.h"
#include "model/collective.h"
#include "model/energy.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/launch_queue.h"
#include "model/memory.h"
#include "model/multi_tensor.h"
#include "model/optimizer_kernels.h"
#include "model/overlap.h"
#include "model/run.h"
#include "scenarios/estimate.h"
#include "scenarios/internal/least_squares.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Observation;
using calibrate::Predictor;
using hardware::Device;
using hardware::DeviceKind;
using model::InputError;
using model::Seconds;

// Errors assumed of figures in the small fits.
constexpr double kTimeSigma = 0.05;
constexpr double kShareSigma = 0.02;

const Device& FindDevice(const std::string& name) {
  return hardware::DeviceCatalog::Shipped().Find(name);
}

// A run as our models need it, and what was assumed for it.
struct Described {
  const PublishedRun* run = nullptr;
  model::Workload workload;
  std::string assumed;
};

bool IsOneStep(const std::string& run) { return run.starts_with("onestep_"); }

// One kernel or layer alone, on the device, with the model's parameters.
struct Layer {
  Seconds<> forward;
  Seconds<> backward;
};

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

// Shares of a step.
struct Busy {
  double matrix = 0;
  double all = 0;
};

class PublishedPredictor {
 public:
  PublishedPredictor(const Published& published, PublishedProtocol protocol)
      : published_(published), protocol_(protocol) {
    for (const auto& entry : published_.runs) Join(entry.second);
    for (const PublishedRow& row : published_.rows) {
      // Records are "s003_t4_2_...": the document first.
      if (!row.records.empty()) {
        documents_.emplace(row.run, row.records.front().substr(0, 4));
      }
    }
  }

  PublishedPrediction Predict(const PublishedRow& row) {
    PublishedPrediction prediction;
    try {
      prediction = Answer(row);
    } catch (const InputError& error) {
      prediction = {};
      prediction.reason = error.what();
    }
    return prediction;
  }

 private:
  // --- Which runs belong together ---

  void Join(const PublishedRun& run) {
    if (!run.same_as) return;
    const std::string a = Root(run.name);
    const std::string b = Root(*run.same_as);
    if (a != b) parent_[a] = b;
  }
  std::string Root(const std::string& run) const {
    std::string at = run;
    for (auto up = parent_.find(at); up != parent_.end();
         up = parent_.find(at)) {
      at = up->second;
    }
    return at;
  }
  // Whether a prediction of `target` may not see `run`.
  bool LeftOut(const std::string& run, const std::string& target) const {
    return protocol_ == PublishedProtocol::kLeaveOneOut &&
           Root(run) == Root(target);
  }
  // What a fit depends on: nothing left out is one fit for all.
  std::string Without(const std::string& target) const {
    return protocol_ == PublishedProtocol::kLeaveOneOut ? Root(target)
                                                        : std::string();
  }

  std::string DocumentOf(const std::string& run) const {
    const auto found = documents_.find(run);
    return found == documents_.end() ? std::string() : found->second;
  }

  std::vector<const PublishedRow*> RowsToFit(std::string_view quantity,
                                             const std::string& target) const {
    std::vector<const PublishedRow*> rows;
    for (const PublishedRow& row : published_.rows) {
      if (row.use == PublishedUse::kFit && row.quantity == quantity &&
          !LeftOut(row.run, target)) {
        rows.push_back(&row);
      }
    }
    return rows;
  }

  const PublishedRow& Printed(const std::string& id) const {
    const PublishedRow* row = published_.Find(id);
    if (row == nullptr) {
      throw InputError(fmt::format("{} is not printed", id));
    }
    return *row;
  }
  double Value(const std::string& id) const { return Printed(id).value.low; }

  // --- What a run was ---

  Described Describe(const PublishedRun& run) const {
    Described d;
    d.run = &run;
    if (!run.architecture) throw InputError("the model is not stated");
    if (!run.device) throw InputError("the device is not stated");
    const PublishedRun* same =
        run.same_as ? &published_.runs.at(*run.same_as) : nullptr;
    std::vector<std::string> assumed;
    model::Workload& w = d.workload;
    w.architecture = *run.architecture;
    w.work = run.work;
    const bool imdb = run.train_samples && run.train_samples->least == 20000;
    if (run.batch) {
      w.batch = *run.batch;
    } else if (same != nullptr && same->batch) {
      w.batch = *same->batch;
    } else if (imdb && run.stack == "lightseq") {
      // All other runs of table 4.16 have it.
      w.batch = 16;
      assumed.emplace_back("batch 16");
    } else {
      throw InputError("the batch is not stated");
    }
    if (!run.sequence_length) {
      throw InputError("the sequence length is not stated");
    }
    w.sequence_length = *run.sequence_length;
    const Device& device = FindDevice(*run.device);
    if (run.precision) {
      w.precision = *run.precision;
    } else if (same != nullptr && same->precision) {
      w.precision = *same->precision;
    } else if (device.peak.tf32) {
      // 1.35 TFLOP in the 52 ms of the optimised A100 step are more than its
      // fp32 peak: the matrix engines ran.
      w.precision = model::Precision::kTf32;
      assumed.emplace_back("tf32");
    } else if (device.peak.fp32) {
      w.precision = model::Precision::kFp32;
      assumed.emplace_back("fp32");
    } else {
      w.precision =
          device.peak.bf16 ? model::Precision::kBf16 : model::Precision::kFp16;
      assumed.emplace_back(std::string(model::ToText(w.precision)));
    }
    const std::optional<PublishedOptimizer>& optimizer =
        run.optimizer || same == nullptr ? run.optimizer : same->optimizer;
    if (optimizer) {
      w.optimizer.kind = optimizer->kind;
      w.optimizer.implementation = optimizer->implementation.value_or(
          model::OptimizerImplementation::kMultiTensor);
    } else if (imdb && device.kind == DeviceKind::kGpu) {
      // That of the equal run on the V100.
      w.optimizer = {model::OptimizerKind::kAdan,
                     model::OptimizerImplementation::kFused};
      assumed.emplace_back("fused Adan");
    }
    if (run.fusion) w.stack.fusion = *run.fusion;
    // PyTorch/XLA traces operation by operation (hardware/models/systolic.h).
    if (run.stack == "pytorch-xla") w.stack.fusion = model::Fusion::kEager;
    if (run.stack == "fairseq-apex") w.stack.narrow_weights = true;
    if (!assumed.empty()) {
      d.assumed = fmt::format("; {} assumed", fmt::join(assumed, ", "));
    }
    return d;
  }

  // Samples of one epoch. Where only a range is known, what other runs on the
  // same data took: their time over that of a step; else the middle.
  double EpochSamples(const PublishedRun& run,
                      const std::string& target,
                      std::string& how) const {
    if (!run.train_samples) throw InputError("the samples are not stated");
    const CountRange range = *run.train_samples;
    if (range.least == range.most) return static_cast<double>(range.least);
    std::vector<double> seen;
    for (const PublishedRow* row : RowsToFit("step_time", target)) {
      const PublishedRun& other = published_.RunOf(*row);
      if (!other.train_samples || !other.batch || !other.epochs ||
          other.train_samples->least != range.least ||
          other.train_samples->most != range.most) {
        continue;
      }
      const PublishedRow* whole = published_.Find(other.name + "/run_time");
      if (whole == nullptr) continue;
      seen.push_back(whole->value.low / row->value.low *
                     static_cast<double>(*other.batch * other.device_count) /
                     static_cast<double>(*other.epochs));
    }
    if (seen.empty()) {
      how +=
          fmt::format("; middle of {} .. {} samples", range.least, range.most);
      return 0.5 * static_cast<double>(range.least + range.most);
    }
    double mean = 0;
    for (const double samples : seen) {
      mean += samples / static_cast<double>(seen.size());
    }
    mean = std::clamp(mean,
                      static_cast<double>(range.least),
                      static_cast<double>(range.most));
    how += fmt::format("; {:.0f} samples from run and step times of {} runs",
                       mean,
                       seen.size());
    return mean;
  }

  model::RunPlan PlanOf(const Described& d,
                        const std::string& target,
                        std::string& how) const {
    if (!d.run->epochs) throw InputError("the epochs are not stated");
    model::RunPlan plan;
    plan.train_samples =
        static_cast<int64_t>(std::llround(EpochSamples(*d.run, target, how)));
    plan.epochs = *d.run->epochs;
    plan.batch = d.workload.batch;
    plan.devices = d.run->device_count;
    plan.lengths = {{d.workload.sequence_length, 1.0}};
    return plan;
  }

  // --- Step times of a device ---

  // All that a fit of `device` may see when `target` is predicted.
  std::vector<Observation> ObservationsOf(const Device& device,
                                          const std::string& target) const {
    std::vector<Observation> observations;
    for (const PublishedRow& row : published_.rows) {
      if (row.use != PublishedUse::kFit || LeftOut(row.run, target)) continue;
      const PublishedRun& run = published_.RunOf(row);
      if (run.device != device.name || IsOneStep(run.name)) continue;
      // Runs of another document were set up in ways that nobody compared.
      if (DocumentOf(row.run) != DocumentOf(target)) continue;
      // What GPUs wait for each other is not in the model of one.
      if (run.device_count != 1 && device.kind == DeviceKind::kGpu) continue;
      Observation o;
      o.label = row.id;
      o.group = row.group;
      o.device = device.name;
      try {
        const Described d = Describe(run);
        o.workload = d.workload;
        if (row.quantity == "run_time") {
          std::string how;
          const model::RunPlan plan = PlanOf(d, target, how);
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
  const Predictor& PredictorOf(const Device& device,
                               const std::string& target) {
    const std::string key =
        device.name + "|" + DocumentOf(target) + "|" + Without(target);
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
  // factor on three efficiencies of each device.
  struct SharedFit {
    std::vector<double> shared;
    std::map<std::string, std::array<double, 3>> factors;
  };

  static constexpr std::array<size_t, 3> kOfDevice = {
      hardware::models::kGpuGemmEfficiencyFp32,
      hardware::models::kGpuGemmEfficiencyHalf,
      hardware::models::kGpuBandwidthEfficiency};

  const SharedFit& SharedFitOf(const std::string& target) {
    const std::string key = DocumentOf(target) + "|" + Without(target);
    const auto found = shared_.find(key);
    if (found != shared_.end()) return found->second;
    std::set<std::string> names;
    for (const auto& [name, run] : published_.runs) {
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
        fit.factors[devices[d]].at(i) =
            values[shared + d * kOfDevice.size() + i];
      }
    }
    fit_sizes_[key] = seen.size();
    return shared_.emplace(key, std::move(fit)).first->second;
  }

  calibrate::Fit FitWithItsKind(const Device& device,
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

  std::string FittedTo(const Device& device, const std::string& target) const {
    const std::string rest = DocumentOf(target) + "|" + Without(target);
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

  // --- Data parallel ---

  struct Ring {
    Seconds<> latency;
    model::BytesPerSecond<> link;
  };

  static model::Bytes<> GradientsOf(const model::Workload& w,
                                    const std::string& part) {
    const int64_t last = w.architecture.layers + 1;
    const int64_t layer = part == "embedding" ? 0 : part == "head" ? last : 1;
    int64_t elements = 0;
    for (const auto& tensor : model::ParameterTensorsOf(w.architecture)) {
      if (tensor.layer == layer) elements += tensor.elements;
    }
    const int64_t width = w.stack.fusion == model::Fusion::kFused
                              ? model::BytesPerElement(w.precision)
                              : 4;
    return model::Byte(static_cast<double>(elements * width));
  }

  Ring RingWithout(const std::string& target, std::string& how) const {
    struct Message {
      int64_t ranks;
      model::Bytes<> size;
      double time;
    };
    std::vector<Message> messages;
    for (const PublishedRow* row : RowsToFit("allreduce_time", target)) {
      const PublishedRun& run = published_.RunOf(*row);
      messages.push_back({run.device_count,
                          GradientsOf(Describe(run).workload, *row->part),
                          row->value.low});
    }
    // Round figures, wide: a NCCL ring step, and half of PCIe 3.0 x16.
    const std::vector<FreeParameter> priors = {{10e-6, 2.0}, {8e9, 1.0}};
    const auto values = FitToPriors(priors, [&](const auto& p) {
      std::vector<double> residuals;
      for (const Message& m : messages) {
        const Seconds<> time = model::RingAllReduceTime<double>(
            m.ranks, m.size, Seconds<>(p[0]), model::BytesPerSecond<>(p[1]));
        residuals.push_back(std::log(ToSeconds(time) / m.time) / kTimeSigma);
      }
      return residuals;
    });
    how +=
        fmt::format("; ring of {:.2f} ms and {:.2f} GB/s from {} all-reduces",
                    values[0] * 1e3,
                    values[1] * 1e-9,
                    messages.size());
    return {Seconds<>(values[0]), model::BytesPerSecond<>(values[1])};
  }

  struct ParallelStep {
    hardware::StepTime<double> time;
    Seconds<> backward;  // with what it waits for
    Seconds<> total;
  };

  ParallelStep StepOf(const Described& d,
                      const std::string& target,
                      std::string& how) {
    const Device& device = FindDevice(*d.run->device);
    const Predictor& predictor = PredictorOf(device, target);
    how += FittedTo(device, target) + d.assumed;
    ParallelStep step;
    step.time = predictor.Time(d.workload);
    step.backward = step.time.backward.total();
    if (d.run->device_count > 1 && device.kind == DeviceKind::kGpu) {
      const Ring ring = RingWithout(target, how);
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

  PublishedPrediction RunTime(const PublishedRow& row) {
    const Described d = Describe(published_.RunOf(row));
    PublishedPrediction p;
    std::map<int64_t, ParallelStep> steps;
    const model::RunPlan plan = PlanOf(d, row.run, p.how);
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

  Layer LayerOf(const Described& d, const std::string& target) {
    const Predictor& predictor =
        PredictorOf(FindDevice(*d.run->device), target);
    const auto time = predictor.Time(d.workload);
    model::Workload fewer = d.workload;
    --fewer.architecture.layers;
    const auto without = predictor.Time(fewer);
    return {time.forward.total() - without.forward.total(),
            time.backward_layer};
  }

  PublishedPrediction PartTime(const PublishedRow& row) {
    const Described d = Describe(published_.RunOf(row));
    PublishedPrediction p;
    const std::string part = row.part.value_or("");
    if (part == "estimated by the document") {
      p.how = "recursion over the measured layer times, gap 0.09 ms";
      p.value = ToSeconds(Recursion(row.run));
      return p;
    }
    if (part == "encoder layer") {
      const Layer layer = LayerOf(d, row.run);
      p.value = ToSeconds(row.quantity == "forward_time" ? layer.forward
                                                         : layer.backward);
      p.how = FittedTo(FindDevice(*d.run->device), row.run);
      return p;
    }
    const ParallelStep step = StepOf(d, row.run, p.how);
    if (row.quantity == "step_time") {
      p.value = ToSeconds(step.total);
    } else if (row.quantity == "forward_time") {
      p.value = ToSeconds(step.time.forward.total());
    } else if (row.quantity == "backward_time") {
      p.value = ToSeconds(step.backward);
    } else if (row.quantity == "optimizer_time") {
      p.value = ToSeconds(step.time.optimizer.total());
    } else if (row.quantity == "layer_time") {
      p.value = ToSeconds(part == "embedding" ? step.time.backward_embeddings
                          : part == "head"    ? step.time.backward_head
                                              : step.time.backward_layer);
    } else {
      ENSURE(row.quantity == "allreduce_time", "a part of a step");
      std::string how;
      const Ring ring = RingWithout(row.run, how);
      p.how = how.substr(2);
      p.value = ToSeconds(
          model::RingAllReduceTime<double>(d.run->device_count,
                                           GradientsOf(d.workload, part),
                                           ring.latency,
                                           ring.link));
    }
    return p;
  }

  // From the layer times as measured: the test of the recursion itself.
  Seconds<> Recursion(const std::string& run) const {
    const auto piece = [&](const std::string& layer) {
      return model::OverlapTask<double>{
          Seconds<>(Value(run + "/layer_time/" + layer)),
          Seconds<>(Value(run + "/allreduce_time/" + layer))};
    };
    std::vector<model::OverlapTask<double>> tasks = {piece("head")};
    for (int i = 0; i < 12; ++i) tasks.push_back(piece("encoder"));
    tasks.push_back(piece("embedding"));
    return model::OverlapBackward(tasks, model::Milliseconds(0.09)).end;
  }

  // --- Adan: one step under a profiler ---

  static std::vector<model::Kernel> UpdateKernels(const Described& d) {
    std::vector<model::Kernel> kernels;
    AppendOptimizerKernels(d.workload,
                           kernels,
                           d.run->optimizer->single_tensor
                               ? model::FusedAccess::kOneTensor
                               : model::FusedAccess::kAllTensors);
    return kernels;
  }

  struct Update {
    Seconds<> active;
    Seconds<> total;
  };

  // p: bandwidth efficiency, fixed cost of a kernel, host cost of a launch.
  static Update UpdateTime(const Described& d, const std::vector<double>& p) {
    const Device& device = FindDevice(*d.run->device);
    std::vector<double> values;
    for (const auto& info : hardware::ParametersOf(DeviceKind::kGpu)) {
      values.push_back(info.prior);
    }
    values[hardware::models::kGpuBandwidthEfficiency] = p[0];
    values[hardware::models::kGpuKernelOverhead] = p[1];
    const auto rates = hardware::models::RatesOf(device, d.workload.precision);
    model::LaunchQueue<double> queue;
    Update update;
    for (const model::Kernel& kernel : UpdateKernels(d)) {
      const Seconds<> once =
          hardware::models::GpuKernelTime<double>(
              device, rates, kernel, std::span<const double>(values))
              .total();
      update.active += once * static_cast<double>(kernel.launches);
      queue.Apply(model::OneLaunch<double>(Seconds<>(p[2]), once)
                      .Repeated(kernel.launches));
    }
    update.total = std::max(queue.ready, queue.host);
    return update;
  }

  const std::vector<double>& UpdateParameters(const std::string& target,
                                              size_t& runs) {
    const std::string key = Without(target);
    std::vector<std::pair<Described, const PublishedRow*>> seen;
    for (const std::string_view quantity : {"optimizer_time", "active_time"}) {
      for (const PublishedRow* row : RowsToFit(quantity, target)) {
        if (!IsOneStep(row->run)) continue;
        seen.emplace_back(Describe(published_.RunOf(*row)), row);
      }
    }
    runs = seen.size();
    const auto found = updates_.find(key);
    if (found != updates_.end()) return found->second;
    // The model's priors; operations launched from Python cost the host more
    // than those of the framework's own engine.
    const std::vector<FreeParameter> priors = {
        {0.8, 0.12}, {2e-6, 0.4}, {20e-6, 1.0}};
    auto values = FitToPriors(priors, [&](const auto& p) {
      std::vector<double> residuals;
      for (const auto& [d, row] : seen) {
        const Update update = UpdateTime(d, p);
        const Seconds<> modelled =
            row->quantity == "active_time" ? update.active : update.total;
        residuals.push_back(std::log(ToSeconds(modelled) / row->value.low) /
                            kTimeSigma);
      }
      return residuals;
    });
    return updates_.emplace(key, std::move(values)).first->second;
  }

  PublishedPrediction OneStep(const PublishedRow& row) {
    const Described d = Describe(published_.RunOf(row));
    PublishedPrediction p;
    const std::string part = row.part.value_or("");
    if (row.quantity == "launches") {
      int64_t update = 0;
      for (const model::Kernel& kernel : UpdateKernels(d)) {
        update += kernel.launches;
      }
      const int64_t fills = model::FirstStepLaunches(d.workload);
      p.value = static_cast<double>(part == "preparation"   ? fills
                                    : part == "computation" ? update
                                                            : fills + update);
      p.how = "kernels of the expansion";
      return p;
    }
    if (row.quantity == "energy") {
      throw InputError(
          "energy of one step under a profiler: idle between launches at a "
          "power that no run time of ours determines");
    }
    size_t figures = 0;
    const std::vector<double>& values = UpdateParameters(row.run, figures);
    const Update update = UpdateTime(d, values);
    p.how = fmt::format(
        "launch queue, {:.1f} us a launch, {:.0f} % of the bandwidth from {} "
        "figures of the other forms",
        values[2] * 1e6,
        values[0] * 100.0,
        figures);
    // Fills of the first step, each made and zeroed from Python.
    const Seconds<> fills =
        Seconds<>(values[2]) *
        static_cast<double>(model::FirstStepLaunches(d.workload));
    if (row.quantity == "active_time") {
      p.value = ToSeconds(update.active);
    } else if (row.quantity == "active_ratio") {
      p.value = update.active / update.total;
    } else if (part == "preparation") {
      p.value = ToSeconds(fills);
    } else if (part == "first step") {
      p.value = ToSeconds(update.total + fills);
    } else {
      p.value = ToSeconds(update.total);
    }
    return p;
  }

  // --- Kernels of Adan by grid ---

  // Elements of one block: one a thread, or a chunk of the packed kernel.
  static int64_t ElementsOf(const PublishedRun& run) {
    const bool packed = run.setting == "kernel C";
    return *run.grid * (packed ? model::kElementsPerChunk : *run.block);
  }

  static double BandwidthShare(const PublishedRun& run,
                               const std::vector<double>& p) {
    const Device& device = FindDevice(*run.device);
    std::vector<double> values;
    for (const auto& info : hardware::ParametersOf(DeviceKind::kGpu)) {
      values.push_back(info.prior);
    }
    values[hardware::models::kGpuBandwidthEfficiency] = p[0];
    values[hardware::models::kGpuKernelOverhead] = p[1];
    values[hardware::models::kGpuMemoryLatency] = p[2];
    const auto operations = model::OperationsOf(model::OptimizerKind::kAdan);
    model::Kernel kernel;
    kernel.kind = model::KernelKind::kOptimizer;
    kernel.work_items = ElementsOf(run);
    kernel.bytes_read = 4 * operations.fused_tensors_read * kernel.work_items;
    kernel.bytes_written =
        4 * operations.fused_tensors_written * kernel.work_items;
    kernel.parameter_bytes = kernel.bytes();
    kernel.parameter_bytes_written = kernel.bytes_written;
    const Seconds<> time =
        hardware::models::GpuKernelTime<double>(
            device,
            hardware::models::RatesOf(device, model::Precision::kFp32),
            kernel,
            std::span<const double>(values))
            .total();
    return model::Byte(static_cast<double>(kernel.bytes())) / time /
           device.memory_bandwidth;
  }

  PublishedPrediction KernelByGrid(const PublishedRow& row) {
    const PublishedRun& run = published_.RunOf(row);
    std::vector<const PublishedRow*> bandwidths;
    std::vector<const PublishedRow*> others;  // of the SMs
    for (const PublishedRow* other :
         RowsToFit("utilisation.bandwidth", row.run)) {
      if (published_.RunOf(*other).setting != run.setting) continue;
      bandwidths.push_back(other);
    }
    // Times under the profiler hold clocks down: fixed costs are wide.
    const std::vector<FreeParameter> priors = {
        {0.8, 0.12}, {10e-6, 1.0}, {600e-9, 0.3}};
    const auto values = FitToPriors(priors, [&](const auto& p) {
      std::vector<double> residuals;
      for (const PublishedRow* other : bandwidths) {
        residuals.push_back(
            (BandwidthShare(published_.RunOf(*other), p) - other->value.low) /
            kShareSigma);
      }
      return residuals;
    });
    PublishedPrediction p;
    p.how = fmt::format(
        "{:.0f} % of the bandwidth and {:.0f} us a kernel from "
        "{} other grids",
        values[0] * 100.0,
        values[1] * 1e6,
        bandwidths.size());
    p.value = BandwidthShare(run, values);
    if (row.quantity == "utilisation.sm") {
      // Issue slots follow the bytes: their ratio, from grids that fill it.
      double sm = 0;
      double bandwidth = 0;
      for (const PublishedRow* other : bandwidths) {
        sm += Value(other->run + "/utilisation.sm");
        bandwidth += other->value.low;
      }
      p.value = *p.value * sm / bandwidth;
    }
    return p;
  }

  // --- Kernels of one training step ---

  PublishedPrediction KernelTimes(const PublishedRow& row) {
    const Described d = Describe(published_.RunOf(row));
    const Device& device = FindDevice(*d.run->device);
    const Predictor& predictor = PredictorOf(device, row.run);
    PublishedPrediction p;
    p.how = FittedTo(device, row.run) + d.assumed;
    const std::vector<double> values = predictor.fit().Values();
    const std::span<const double> span(values);
    const auto rates = hardware::models::RatesOf(device, d.workload.precision);
    const model::KernelList list = ExpandKernels(d.workload);
    if (row.quantity == "gemm_share") {
      Seconds<> gemms;
      Seconds<> all;
      for (const model::Segment& segment : list.segments) {
        if (segment.phase == model::Phase::kOptimizer) continue;
        for (int64_t i = segment.begin; i < segment.end; ++i) {
          const model::Kernel& kernel = list.kernels[static_cast<size_t>(i)];
          const Seconds<> time =
              hardware::models::GpuKernelTime<double>(
                  device, rates, kernel, span)
                  .total() *
              static_cast<double>(kernel.launches * segment.repeat);
          all += time;
          if (kernel.matrix_flops > 0) gemms += time;
        }
      }
      p.value = gemms / all;
      return p;
    }
    static const std::map<std::string, std::string_view> names = {
        {"softmax_warp_forward", "softmax"},
        {"softmax_warp_backward", "softmax gradient"},
        {"vectorized_layer_norm_kernel", "layer norm"}};
    const auto name = names.find(row.part.value_or(""));
    if (name == names.end()) {
      throw InputError(
          "a mean over products of several shapes that are not told apart");
    }
    for (const model::Kernel& kernel : list.kernels) {
      if (kernel.name != name->second) continue;
      p.value = ToSeconds(
          hardware::models::GpuKernelTime<double>(device, rates, kernel, span)
              .total());
      return p;
    }
    throw InputError(fmt::format("no kernel is called {}", name->second));
  }

  // --- Trainium ---

  static bool IsProfile(const PublishedRow& row) {
    return row.group == "trainium_step" || row.group == "utilisation_by_batch";
  }

  // Profiles of one core; the roofline's rate and intensity are a time and a
  // traffic once the FLOPs of a step are known.
  const calibrate::ProfileFit& Profiles() {
    if (profiles_) return *profiles_;
    std::map<std::string, calibrate::EngineProfile> by_run;
    for (const PublishedRow& row : published_.rows) {
      if (!IsProfile(row) || row.use != PublishedUse::kFit) continue;
      const PublishedRun& run = published_.RunOf(row);
      if (!run.device || !run.device->starts_with("trainium1")) continue;
      calibrate::EngineProfile& profile = by_run[run.name];
      profile.label = run.name;
      profile.workload = Describe(run).workload;
      const double value = row.value.low;
      if (row.quantity == "step_time") profile.step = Seconds<>(value);
      // What the text calls traffic of the HBM is spilling and loading again: a
      // step of length 128 moves more than 8.6 GB of weights and activations.
      if (row.quantity == "hbm_traffic") profile.spill = model::Byte(value);
      if (row.quantity == "utilisation.tensor") profile.tensor = value;
      if (row.quantity == "utilisation.vector") profile.vector = value;
      if (row.quantity == "utilisation.scalar") profile.scalar = value;
      if (row.quantity == "achieved_flops") {
        profile.step = Seconds<>(StepFlops(profile.workload) / value);
      }
      if (row.quantity == "arithmetic_intensity") {
        profile.traffic = model::Byte(StepFlops(profile.workload) / value);
      }
    }
    std::vector<calibrate::EngineProfile> profiles;
    for (auto& entry : by_run) profiles.push_back(std::move(entry.second));
    profiles_ = calibrate::FitProfiles(FindDevice("trainium1_core"), profiles);
    return *profiles_;
  }

  static double StepFlops(const model::Workload& workload) {
    return 3.0 * static_cast<double>(ForwardModelFlops(workload));
  }

  PublishedPrediction Profile(const PublishedRow& row) {
    PublishedPrediction p;
    const Described d = Describe(published_.RunOf(row));
    const Device& core = FindDevice("trainium1_core");
    const double flops = StepFlops(d.workload);
    if (row.quantity == "flops_per_step") {
      p.value = flops;
      p.how = "FLOPs of the products, forward and backward";
      return p;
    }
    const calibrate::ProfileFit& fit = Profiles();
    const auto& modelled = protocol_ == PublishedProtocol::kLeaveOneOut
                               ? fit.left_out
                               : fit.modelled;
    const auto found = std::find_if(
        modelled.begin(), modelled.end(), [&](const auto& profile) {
          return profile.label == row.run;
        });
    ENSURE(found != modelled.end(), "a profile of its own for every run");
    p.how = fmt::format("fit to {} profiles of a core", modelled.size() - 1);
    const double step = ToSeconds(*found->step);
    if (row.quantity == "step_time") p.value = step;
    if (row.quantity == "hbm_traffic") p.value = found->spill->base();
    if (row.quantity == "utilisation.tensor") p.value = found->tensor;
    if (row.quantity == "utilisation.vector") p.value = found->vector;
    if (row.quantity == "utilisation.scalar") p.value = found->scalar;
    if (row.quantity == "utilisation.dma") p.value = found->dma;
    if (row.quantity == "achieved_flops") p.value = flops / step;
    if (row.quantity == "arithmetic_intensity") {
      p.value = flops / found->traffic->base();
    }
    if (row.quantity == "mfu") {
      p.value = flops / step / core.MatrixPeak(d.workload.precision)->base();
    }
    if (row.quantity == "utilisation.bandwidth") {
      p.value = found->traffic->base() / step / core.memory_bandwidth.base();
    }
    if (row.quantity == "allreduce_bandwidth") {
      AllReduceBandwidth(row, p);
    }
    if (!p.value) {
      throw InputError(
          fmt::format("{} of a profile is not modelled", row.quantity));
    }
    return p;
  }

  // What the step's own traffic leaves of the HBM, times a share from the
  // other profile.
  void AllReduceBandwidth(const PublishedRow& row, PublishedPrediction& p) {
    const calibrate::ProfileFit& fit = Profiles();
    const Device& core = FindDevice("trainium1_core");
    const auto free = [&](const std::string& run, bool left_out) {
      const auto& all = left_out ? fit.left_out : fit.modelled;
      for (const auto& profile : all) {
        if (profile.label != run) continue;
        return ToGBPerSecond(core.memory_bandwidth -
                             *profile.traffic / *profile.step);
      }
      throw InputError("no profile of " + run);
    };
    std::vector<double> shares;
    for (const PublishedRow* other :
         RowsToFit("allreduce_bandwidth", row.run)) {
      shares.push_back(other->value.low * 1e-9 / free(other->run, false));
    }
    if (shares.empty()) throw InputError("no other all-reduce to fit to");
    p.value = calibrate::Median(shares) *
              free(row.run, protocol_ == PublishedProtocol::kLeaveOneOut) * 1e9;
    p.how = fmt::format(
        "share of the HBM that the step leaves, from {} other "
        "profile",
        shares.size());
  }

  // --- Utilisation of the A100 by batch ---

  PublishedPrediction SmUtilisation(const PublishedRow& row) {
    const auto busy = [&](const PublishedRun& run, double launch) {
      const Described d = Describe(run);
      const Device& device = FindDevice(*run.device);
      std::vector<double> values;
      for (const auto& info : hardware::ParametersOf(DeviceKind::kGpu)) {
        values.push_back(info.prior);
      }
      values[hardware::models::kGpuLaunchCost] = launch;
      const auto time =
          hardware::EstimateStep<double>(device,
                                         d.workload,
                                         ExpandKernels(d.workload),
                                         std::span<const double>(values));
      return BusyShare(time, time.total());
    };
    std::vector<const PublishedRow*> others;
    for (const PublishedRow* other : RowsToFit("utilisation.sm", row.run)) {
      if (other->group == row.group) others.push_back(other);
    }
    // The counter's level when the device is never idle is not said.
    const std::vector<FreeParameter> priors = {{0.5, 0.3}, {7e-6, 1.0}};
    const auto values = FitToPriors(priors, [&](const auto& p) {
      std::vector<double> residuals;
      for (const PublishedRow* other : others) {
        residuals.push_back(
            (p[0] * busy(published_.RunOf(*other), p[1]) - other->value.low) /
            kShareSigma);
      }
      return residuals;
    });
    PublishedPrediction p;
    p.value = values[0] * busy(published_.RunOf(row), values[1]);
    p.how = fmt::format(
        "busy share, {:.1f} us a launch and {:.0f} % when busy "
        "from {} other batches",
        values[1] * 1e6,
        values[0] * 100.0,
        others.size());
    return p;
  }

  // --- Dataflow chips ---

  // t = c + m - w min(c, m): compute a sample, a stream of weights, overlap.
  static double CerebrasStep(double batch, const std::vector<double>& p) {
    return ToSeconds(model::KernelTime<double>(Seconds<>(batch * p[0]),
                                               Seconds<>(p[1]),
                                               std::min(p[2], 1.0),
                                               Seconds<>())
                         .total());
  }

  PublishedPrediction Cerebras(const PublishedRow& row) {
    const PublishedRun& run = published_.RunOf(row);
    PublishedPrediction p;
    if (row.quantity == "samples_in_run") {
      p.value = static_cast<double>(*run.batch * *run.steps);
      p.how = "batch times steps";
      return p;
    }
    std::vector<const PublishedRow*> others;
    for (const PublishedRow* other : RowsToFit("run_time", row.run)) {
      if (other->group == row.group) others.push_back(other);
    }
    const double overlap = hardware::models::kDataflowParameters
                               .at(hardware::models::kDataflowOverlap)
                               .prior;
    // The model's size is not stated: nothing is known of rate and stream.
    const std::vector<FreeParameter> priors = {
        {1e-4, 3.0}, {0.1, 3.0}, {overlap, 0.3}};
    const auto values = FitToPriors(priors, [&](const auto& v) {
      std::vector<double> residuals;
      for (const PublishedRow* other : others) {
        const PublishedRun& seen = published_.RunOf(*other);
        const double step = other->value.low / static_cast<double>(*seen.steps);
        residuals.push_back(
            std::log(CerebrasStep(static_cast<double>(*seen.batch), v) / step) /
            0.01);
      }
      return residuals;
    });
    p.value = CerebrasStep(static_cast<double>(*run.batch), values) *
              static_cast<double>(*run.steps);
    p.how = fmt::format(
        "{:.3f} ms a sample beside a stream of {:.0f} ms from "
        "{} other batches",
        values[0] * 1e3,
        values[1] * 1e3,
        others.size());
    return p;
  }

  static double TasksOf(const PublishedRun& run) {
    const std::string setting = run.setting.value_or("");
    const size_t equals = setting.find('=');
    const auto tasks = equals == std::string::npos
                           ? std::nullopt
                           : hardware::ParseInteger(setting.substr(equals + 1));
    if (!tasks) throw InputError("the tasks are not stated");
    return static_cast<double>(*tasks);
  }

  PublishedPrediction SambaNova(const PublishedRow& row) {
    const PublishedRun& run = published_.RunOf(row);
    std::vector<double> rates;
    for (const PublishedRow* other : RowsToFit("throughput", row.run)) {
      if (other->group != row.group) continue;
      rates.push_back(other->value.low / TasksOf(published_.RunOf(*other)));
    }
    if (rates.empty()) throw InputError("no other job to fit to");
    const double rate = calibrate::Median(rates) * TasksOf(run);
    PublishedPrediction p;
    p.how = fmt::format("{:.1f} samples/s a task from {} other job",
                        calibrate::Median(rates),
                        rates.size());
    if (row.quantity == "throughput") p.value = rate;
    if (row.quantity == "token_rate") {
      p.value = rate * static_cast<double>(*run.sequence_length);
    }
    if (row.quantity == "run_time") {
      p.value = static_cast<double>(*run.samples_in_run) / rate;
    }
    return p;
  }

  PublishedPrediction Groq(const PublishedRow& row) {
    const PublishedRun& run = published_.RunOf(row);
    if (!run.device) {
      throw InputError("the processor beside the card is not named");
    }
    // The enumerators of one model, by their own names.
    // NOLINTNEXTLINE(google-build-using-namespace)
    using namespace hardware::models;
    const auto time = [&](const PublishedRun& of,
                          bool on_chip,
                          const std::vector<double>& p) {
      const Described d = Describe(of);
      std::vector<double> values;
      for (const auto& info : kDataflowParameters) values.push_back(info.prior);
      values[kDataflowRateEfficiency] = std::min(p[0], 1.0);
      values[kDataflowStageLatency] = p[1];
      values[kDataflowStepOverhead] = p[2];
      const auto step =
          hardware::EstimateStep<double>(FindDevice(*of.device),
                                         d.workload,
                                         ExpandKernels(d.workload),
                                         std::span<const double>(values));
      if (on_chip) return ToSeconds(step.total() - step.other);
      // Tokens are embedded on the host: what crosses the link grows with the
      // length, besides the fixed part.
      const Device& chip = FindDevice(*of.device);
      Seconds<> transfer;
      if (chip.host_bandwidth) {
        transfer = model::Byte(static_cast<double>(
                       d.workload.tokens() * d.workload.architecture.hidden *
                       model::BytesPerElement(d.workload.precision))) /
                   *chip.host_bandwidth;
      }
      return ToSeconds(step.total() + transfer);
    };
    std::vector<const PublishedRow*> others;
    for (const PublishedRow* other : RowsToFit("throughput", row.run)) {
      if (other->group == row.group) others.push_back(other);
    }
    const auto prior = [](DataflowParameter which) {
      return FreeParameter{kDataflowParameters.at(which).prior,
                           kDataflowParameters.at(which).prior_sigma};
    };
    const std::vector<FreeParameter> priors = {prior(kDataflowRateEfficiency),
                                               prior(kDataflowStageLatency),
                                               prior(kDataflowStepOverhead)};
    const auto values = FitToPriors(priors, [&](const auto& p) {
      std::vector<double> residuals;
      for (const PublishedRow* other : others) {
        const double modelled =
            time(published_.RunOf(*other), other->part == "on chip", p);
        residuals.push_back(std::log(modelled * other->value.low) / kTimeSigma);
      }
      return residuals;
    });
    PublishedPrediction p;
    const double seconds = time(run, row.part == "on chip", values);
    p.value = row.quantity == "throughput" ? 1.0 / seconds : seconds;
    p.how = fmt::format(
        "pipeline of the chip, transfer {:.0f} us, from {} "
        "figures of the other length",
        values[2] * 1e6,
        others.size());
    return p;
  }

  // --- Energy ---

  PublishedPrediction Energy(const PublishedRow& row) {
    const PublishedRun& run = published_.RunOf(row);
    if (IsOneStep(run.name)) return OneStep(row);
    PublishedPrediction p;
    PublishedRow whole = row;
    whole.quantity = "run_time";
    whole.part.reset();
    const PublishedPrediction time = RunTime(whole);
    const auto busy = [&](const PublishedRun& of, std::string& how) {
      const ParallelStep step = StepOf(Describe(of), row.run, how);
      return Busy{MatrixShare(step.time, step.total),
                  BusyShare(step.time, step.total)};
    };
    struct Seen {
      double power;
      Busy busy;
    };
    std::vector<Seen> seen;
    for (const PublishedRow* other : RowsToFit("energy", row.run)) {
      const PublishedRun& of = published_.RunOf(*other);
      std::string how;
      seen.push_back({other->value.low / Value(of.name + "/run_time") /
                          static_cast<double>(of.device_count),
                      busy(of, how)});
    }
    const Device& device = FindDevice(*run.device);
    // A board's limit bounds its busy power; idle is a wide guess.
    const double limit = device.max_power ? ToWatts(*device.max_power) : 250.0;
    const std::vector<FreeParameter> priors = {
        {limit / 6, 0.5}, {limit * 0.9, 0.3}, {limit * 0.7, 0.3}};
    // Idle, at products, at all other work: MeanPower of a mixture.
    const auto mean_power = [](const std::vector<double>& v, const Busy& b) {
      const double others = b.all - b.matrix;
      const double mixed =
          b.all > 0 ? (v[1] * b.matrix + v[2] * others) / b.all : v[0];
      return model::MeanPower(model::Watt(v[0]), model::Watt(mixed), b.all);
    };
    const auto values = FitToPriors(priors, [&](const auto& v) {
      std::vector<double> residuals;
      for (const Seen& s : seen) {
        const double power = ToWatts(mean_power(v, s.busy));
        residuals.push_back(std::log(power / s.power) / kTimeSigma);
      }
      return residuals;
    });
    std::string how;
    const Busy share = busy(run, how);
    p.value = ToJoules(mean_power(values, share) * Seconds<>(*time.value)) *
              static_cast<double>(run.device_count);
    p.how = fmt::format(
        "{:.0f} W idle, {:.0f} W at products, {:.0f} W at other work from {} "
        "other runs; {:.0f} and {:.0f} % of the predicted time",
        values[0],
        values[1],
        values[2],
        seen.size(),
        share.matrix * 100.0,
        (share.all - share.matrix) * 100.0);
    return p;
  }

  // --- Arithmetic of the documents ---

  static PublishedPrediction Exactly(double value, std::string how) {
    PublishedPrediction p;
    p.value = value;
    p.how = std::move(how);
    return p;
  }

  static double PriceOf(const PublishedRun& run) {
    if (!run.price) throw InputError("the price of the day is not stated");
    return run.price->base() * static_cast<double>(run.device_count);
  }

  PublishedPrediction Cost(const PublishedRow& row) const {
    const PublishedRun& run = published_.RunOf(row);
    if (row.quantity == "price") {
      return Exactly(PriceOf(run), "price of the run");
    }
    if (row.quantity == "billing_units_per_hour") {
      return Exactly(2.75 / Value(run.name + "/billing_unit_price"),
                     "price over that of a unit");
    }
    if (row.quantity == "billing_unit_price") {
      return Exactly(2.75 / Value(run.name + "/billing_units_per_hour"),
                     "price over units an hour");
    }
    if (row.quantity == "epoch_cost") {
      return Exactly(Value(run.name + "/epoch_time") * PriceOf(run),
                     "printed time at the price of the day");
    }
    if (published_.Find(run.name + "/epoch_cost") != nullptr) {
      return Exactly(
          static_cast<double>(*run.epochs) * Value(run.name + "/epoch_cost"),
          "epochs times the printed cost of one");
    }
    return Exactly(Value(run.name + "/run_time") * PriceOf(run),
                   "printed time at the price of the day");
  }

  PublishedPrediction Score(const PublishedRow& row) const {
    constexpr std::array<std::string_view, 4> kTerms = {
        "time", "cost", "energy", "occupancy"};
    if (row.quantity.starts_with("weight.")) {
      throw InputError("a weight is chosen, not predicted");
    }
    if (row.quantity == "score") {
      double score = 0;
      for (const std::string_view term : kTerms) {
        const double sign = term == "occupancy" ? -1.0 : 1.0;
        score += sign *
                 Value(fmt::format("weights_{}/weight.{}", *row.part, term)) *
                 Value(fmt::format("{}/normalised.{}", row.run, term));
      }
      return Exactly(score, "weights times normalised data");
    }
    // normalised.<term>: over the largest of all runs that have one.
    const std::string term = row.quantity.substr(row.quantity.find('.') + 1);
    const auto figure = [&](const std::string& run) {
      if (term == "time") return Value(run + "/run_time");
      if (term == "cost") {
        return Value(run + "/run_time") * PriceOf(published_.runs.at(run));
      }
      return Value(run + "/" + term);
    };
    // Both are known to their printed digits only.
    const auto known = [&](const std::string& run) {
      const std::string quantity = term == "cost" ? "run_time" : term;
      const PublishedRow& from =
          Printed(run + "/" + (term == "time" ? "run_time" : quantity));
      return from.value.tolerance / from.value.low;
    };
    double largest = 0;
    double slack = known(row.run);
    for (const PublishedRow& other : published_.rows) {
      if (other.quantity != row.quantity) continue;
      if (figure(other.run) <= largest) continue;
      largest = figure(other.run);
      slack = known(row.run) + (other.run == row.run ? 0 : known(other.run));
    }
    PublishedPrediction p;
    const double share = figure(row.run) / largest;
    p.value = share == 1.0 ? 1.0 : share * (1 - slack);
    p.high = share == 1.0 ? 1.0 : share * (1 + slack);
    p.how = "over the largest";
    return p;
  }

  PublishedPrediction Fact(const PublishedRow& row) const {
    const PublishedRun& run = published_.RunOf(row);
    const std::string part = row.part.value_or("");
    if (row.quantity == "token_length") {
      throw InputError("of the data set: what a prediction starts from");
    }
    const Device& device =
        FindDevice(part == "40 GB" ? "a100_pcie_40gb" : *run.device);
    const std::string how = "device file";
    if (row.quantity == "peak_bandwidth") {
      return Exactly(device.memory_bandwidth.base(), how);
    }
    if (row.quantity == "peak_compute") {
      return Exactly(device.peak.bf16->base(), how);
    }
    if (part == "rows") {
      return Exactly(static_cast<double>(device.systolic_rows), how);
    }
    return Exactly(static_cast<double>(device.systolic_columns), how);
  }

  // --- Memory ---

  // What one core of a device may take: TPU cores have memory of their own.
  static model::Bytes<> CapacityOf(const Device& device) {
    return device.kind == DeviceKind::kSystolic ||
                   device.kind == DeviceKind::kNeuron
               ? device.memory_capacity / static_cast<double>(device.cores)
               : device.memory_capacity;
  }
  static int64_t BatchOfCore(const Device& device, int64_t batch) {
    return device.kind == DeviceKind::kSystolic
               ? (batch + device.cores - 1) / device.cores
               : batch;
  }

  PublishedPrediction Memory(const PublishedRow& row) const {
    const PublishedRun& run = published_.RunOf(row);
    if (row.quantity == "memory_capacity") {
      return Exactly(FindDevice(*run.device).memory_capacity.base(),
                     "device file");
    }
    if (row.quantity == "bytes_per_parameter" ||
        row.quantity == "bytes_per_gradient") {
      return BytesOfOne(row);
    }
    const Described d = Describe(run);
    const Device& device = FindDevice(*run.device);
    const auto estimate = model::EstimateMemory(
        d.workload, SurroundingsOf(device, run.device_count));
    return Exactly(estimate.total().base(),
                   "tensors at the worst moment" + d.assumed);
  }

  // Of parameters and gradients, a parameter.
  PublishedPrediction BytesOfOne(const PublishedRow& row) const {
    const PublishedRun& run = published_.RunOf(row);
    model::Workload w;
    w.architecture = *run.architecture;
    // So short that the worst moment is the update, with all gradients there.
    w.sequence_length = 1;
    w.precision = *run.precision;
    if (run.fusion) w.stack.fusion = *run.fusion;
    w.optimizer = {model::OptimizerKind::kAdan,
                   model::OptimizerImplementation::kFused};
    const auto estimate = model::EstimateMemory(w, {});
    const auto count = static_cast<double>(TotalParameters(w.architecture));
    double bytes = 0;
    if (row.quantity == "bytes_per_gradient") {
      bytes = estimate.Of("gradients").base();
      if (bytes == 0) {
        throw InputError("gradients are not there at the worst moment");
      }
    } else {
      bytes = estimate.Of("parameters").base();
      // Autocast holds a narrow copy of each weight during a pass.
      if (model::Autocasts(w)) {
        bytes +=
            static_cast<double>(model::BytesPerElement(w.precision)) * count;
      }
    }
    return Exactly(std::round(bytes / count * 1e3) / 1e3,
                   "tensors of the model");
  }

  // Whether the host's compiler manages the graph: its factor rests on these
  // very outcomes, so that they are no test of it.
  PublishedPrediction CompilesOnHost(const PublishedRow& row) const {
    const PublishedRun& run = published_.RunOf(row);
    const model::Bytes<> host =
        model::Byte(Value("emotion_trn1_host_memory/host_memory"));
    PublishedPrediction p;
    p.how = "compiler memory a token, bounded by these outcomes";
    if (row.quantity == "largest_batch") {
      p.value = std::floor(
          host / hardware::models::NeuronCompilerMemory(*run.sequence_length));
      return p;
    }
    const bool swaps =
        run.setting.value_or("").find("swap=90GB") != std::string::npos;
    p.fits = hardware::models::CompileOnHost(
                 *run.batch * *run.sequence_length,
                 host,
                 swaps ? model::Byte(Value("emotion_trn1_swap_b64/swap"))
                       : model::Bytes<>()) !=
             hardware::models::NeuronCompilation::kFails;
    return p;
  }

  PublishedPrediction Fits(const PublishedRow& row) {
    const PublishedRun& run = published_.RunOf(row);
    const std::string setting = run.setting.value_or("");
    PublishedPrediction p;
    if (row.quantity == "host_memory" || row.quantity == "swap") {
      throw InputError("a size of the machine: nothing to predict");
    }
    const Device& device = FindDevice(*run.device);
    if (setting == "gradient_checkpointing") {
      PublishedRun with = run;
      with.batch = 1;
      with.sequence_length = with.sequence_length.value_or(128);
      model::Workload w = Describe(with).workload;
      w.gradient_checkpointing = true;
      p.fits = true;
      try {
        hardware::RequireSupported(device, w);
      } catch (const InputError& error) {
        p.fits = false;
        p.how = error.what();
      }
      return p;
    }
    if (device.kind == DeviceKind::kNeuron) return CompilesOnHost(row);
    PublishedRun with = run;
    with.precision = run.precision.value_or(model::Precision::kFp16);
    with.batch = run.batch.value_or(device.cores);
    Described d = Describe(with);
    if (!run.optimizer && device.kind == DeviceKind::kGpu) {
      d.workload.optimizer = {model::OptimizerKind::kAdan,
                              model::OptimizerImplementation::kFused};
    }
    d.workload.stack.fusion = run.fusion.value_or(model::Fusion::kEager);
    if (device.static_shapes) {
      // However written, the compiler fuses the update; as one graph
      // (TensorFlow) it also computes activations anew where memory is short.
      d.workload.optimizer.implementation =
          model::OptimizerImplementation::kFused;
      d.workload.gradient_checkpointing = run.stack == "tensorflow";
    }
    // A compiled graph reduces gradients where they are: no buckets.
    const model::MemorySurroundings surroundings =
        SurroundingsOf(device, device.static_shapes ? 1 : run.device_count);
    const model::Bytes<> capacity = CapacityOf(device);
    if (row.quantity == "fits") {
      d.workload.batch = BatchOfCore(device, *with.batch);
      const auto need = model::EstimateMemory(d.workload, surroundings);
      p.fits = need.total() <= capacity;
      p.how = fmt::format("{} of {}",
                          hardware::FormatBytes(need.total()),
                          hardware::FormatBytes(capacity));
      return p;
    }
    const auto largest =
        model::LargestBatch(d.workload, surroundings, capacity);
    p.value = static_cast<double>(largest.value_or(0));
    p.how =
        fmt::format("largest batch within {}", hardware::FormatBytes(capacity));
    return p;
  }

  // --- Stacks ---

  static model::Workload TranslationWorkload(const PublishedRun& run,
                                             std::string_view stack,
                                             int64_t batch) {
    model::Workload w;
    w.architecture = *run.architecture;
    w.batch = batch;
    w.sequence_length = 32;
    w.precision = run.precision.value_or(model::Precision::kFp16);
    w.optimizer = {model::OptimizerKind::kAdamW,
                   model::OptimizerImplementation::kFused};
    if (stack == "lightseq") {
      w.stack.fusion = model::Fusion::kFused;
    } else {
      w.stack.narrow_weights = true;
    }
    return w;
  }

  // Batches are in tokens, 512 to 15000 of them: 16 to 468 pairs of 32.
  static constexpr std::array<int64_t, 6> kPairs = {16, 32, 64, 128, 256, 468};

  PublishedPrediction Speedup(const PublishedRow& row) {
    const PublishedRun& run = published_.RunOf(row);
    PublishedPrediction p;
    if (!run.against) {
      const std::string baseline =
          row.run.substr(0, row.run.rfind('_')) + "_baseline";
      PublishedRow whole = row;
      whole.quantity = "run_time";
      whole.part.reset();
      const PublishedPrediction fast = RunTime(whole);
      whole.run = baseline;
      const PublishedPrediction slow = RunTime(whole);
      p.value = *slow.value / *fast.value;
      p.how = "of predicted run times";
      return p;
    }
    const Device& device = FindDevice(*run.device);
    const Predictor predictor(device);
    double low = std::numeric_limits<double>::infinity();
    double high = 0;
    for (const int64_t pairs : kPairs) {
      const auto time = [&](std::string_view stack) {
        return predictor.Time(TranslationWorkload(run, stack, pairs)).total();
      };
      const double ratio = time(*run.against) / time(*run.stack);
      low = std::min(low, ratio);
      high = std::max(high, ratio);
    }
    p.value = low;
    p.high = high;
    p.how = "datasheet and priors, 16 to 468 pairs of length 32, one device";
    return p;
  }

  PublishedPrediction ProfileRatio(const PublishedRow& row) const {
    const PublishedRun& run = published_.RunOf(row);
    const std::string part = row.part.value_or("");
    double low = std::numeric_limits<double>::infinity();
    double high = 0;
    for (const int64_t pairs : kPairs) {
      const auto count = [&](std::string_view stack) {
        const model::KernelList list =
            ExpandKernels(TranslationWorkload(run, stack, pairs));
        double sum = 0;
        for (const model::Phase phase : {model::Phase::kForward,
                                         model::Phase::kBackward,
                                         model::Phase::kOptimizer}) {
          const model::PhaseCounts c = list.Counts(phase);
          if (part == "dram_read_bytes" || part == "gld_transactions") {
            sum += static_cast<double>(c.bytes_read);
          } else if (part == "dram_write_bytes" || part == "gst_transactions") {
            sum += static_cast<double>(c.bytes_written);
          } else if (part == "inst_executed") {
            // A warp loads and stores 512 bytes, and does 32 operations.
            sum += static_cast<double>(c.bytes_read + c.bytes_written) / 512 +
                   static_cast<double>(c.vector_flops) / 32 +
                   static_cast<double>(c.matrix_flops) / 1024;
          } else {
            throw InputError(
                "a counter of the profiler that no term of the expansion "
                "stands for");
          }
        }
        return sum;
      };
      const double ratio = count(*run.stack) / count(*run.against);
      low = std::min(low, ratio);
      high = std::max(high, ratio);
    }
    PublishedPrediction p;
    p.value = low;
    p.high = high;
    p.how = "counts of the expansion, 16 to 468 pairs of length 32";
    return p;
  }

  // --- Which of these ---

  PublishedPrediction Answer(const PublishedRow& row) {
    const PublishedRun& run = published_.RunOf(row);
    if (row.use == PublishedUse::kShow) {
      throw InputError(
          "kept as data: accuracy, loss and occupancy are never "
          "predicted");
    }
    if (row.use == PublishedUse::kNone) {
      throw InputError("set aside: wrong or contradicted in its source");
    }
    if (row.group == "cost") return Cost(row);
    if (row.group == "score") return Score(row);
    if (row.group == "facts") return Fact(row);
    if (row.group == "fits") return Fits(row);
    if (row.group == "memory") return Memory(row);
    if (row.group == "energy") return Energy(row);
    if (row.group == "cerebras") return Cerebras(row);
    if (row.group == "sambanova") return SambaNova(row);
    if (row.group == "groq") return Groq(row);
    if (row.group == "adan_kernels") return KernelByGrid(row);
    if (IsOneStep(row.run)) return OneStep(row);
    if (row.group == "profile_ratios") return ProfileRatio(row);
    if (row.group == "speedups") return Speedup(row);
    if (row.quantity == "utilisation.sm") return SmUtilisation(row);
    if (IsProfile(row)) return Profile(row);
    if (row.quantity == "estimate_error") {
      return Exactly(ToSeconds(Recursion(row.run)) /
                             Value(row.run + "/backward_time/measured") -
                         1.0,
                     "recursion over measured layers against measured");
    }
    if (row.quantity == "run_time") {
      if (run.setting == "padding=dynamic") {
        throw InputError(
            "compile time of one shape is not printed, so that of many is "
            "unknown");
      }
      return RunTime(row);
    }
    if (row.quantity == "epoch_time") {
      PublishedPrediction p = RunTime(row);
      p.value = *p.value / static_cast<double>(*run.epochs);
      return p;
    }
    if (row.group == "kernel_times" && row.part != "encoder layer") {
      return KernelTimes(row);
    }
    return PartTime(row);
  }

  const Published& published_;
  PublishedProtocol protocol_;
  std::map<std::string, std::string> parent_;
  std::map<std::string, std::unique_ptr<Predictor>> predictors_;
  std::map<std::string, size_t> fitted_to_;
  std::map<std::string, SharedFit> shared_;
  std::map<std::string, size_t> fit_sizes_;
  std::map<std::string, std::string> documents_;
  std::map<std::string, std::vector<double>> updates_;
  std::optional<calibrate::ProfileFit> profiles_;
};

}  // namespace

std::vector<PublishedPrediction> PredictPublished(const Published& published,
                                                  PublishedProtocol protocol) {
  PublishedPredictor predictor(published, protocol);
  std::vector<PublishedPrediction> predictions;
  predictions.reserve(published.rows.size());
  for (const PublishedRow& row : published.rows) {
    predictions.push_back(predictor.Predict(row));
  }
  return predictions;
}

}  // namespace trainfare::scenarios
