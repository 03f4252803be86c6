#include "scenarios/validation/step_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string_view>
#include <utility>

#include "calibrate/fit/added_runs.h"
#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/joined_devices.h"
#include "calibrate/fit/parallel_for.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/prior_fit.h"
#include "hardware/files/progress_line.h"
#include "model/error.h"
#include "model/nearest.h"
#include "scenarios/job/energy.h"
#include "scenarios/job/fits.h"
#include "scenarios/job/step_estimate.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Observation;
using calibrate::PowerObservation;
using calibrate::Predictor;
using calibrate::Quantity;
using model::InputError;

// The workload in words, but for how many devices share it.
std::string WorkOfOne(model::Workload workload) {
  workload.parallel = {};
  return calibrate::Describe(workload);
}

// A device with its rows.
struct DeviceRows {
  hardware::Device device;
  std::vector<size_t> rows;  // indices into all rows
};

const char* NothingToFitTo(Protocol protocol) {
  switch (protocol) {
    case Protocol::kLeaveOneOut:
      return "nothing else was measured on such devices";
    case Protocol::kLeaveSourceOut:
      return "nobody else measured such devices";
    case Protocol::kLeaveHostsOut:
      return "such devices were measured on this number of hosts alone";
    default:
      return "no row of such devices to fit to";
  }
}

// A model fitted to some rows (or not at all) and the rows it predicts.
struct FitTask {
  size_t device = 0;
  std::vector<size_t> fit_to;
  std::vector<size_t> predict;
};

// A device with more workloads than are refitted one by one, and the rows of
// each.
struct ManyWorks {
  size_t device = 0;
  std::vector<size_t> fit_to;
  std::vector<std::vector<size_t>> works;
};

// Of so many workloads of a device each is left out by a fit of its own; of
// more, which tell no less without one, by what it weighs in a fit to all.
constexpr size_t kMostRefits = 250;

class StepProtocol {
 public:
  StepProtocol(const ValidateOptions& options,
               const std::vector<Observation>& observations,
               const std::vector<PowerObservation>& powers)
      : options_(options) {
    Sort(observations);
    AddPowers(powers);
  }

  void Run() {
    switch (options_.protocol) {
      case Protocol::kAsShipped:
        AsShipped();
        break;
      case Protocol::kLeaveDeviceOut:
        LeaveDeviceOut();
        break;
      case Protocol::kAddedRuns:
        AddRuns();
        break;
      case Protocol::kInSample:
      case Protocol::kLeaveOneOut:
      case Protocol::kLeaveSourceOut:
      case Protocol::kLeaveHostsOut:
      case Protocol::kRunsPerDevice: {
        const std::vector<FitTask> tasks = Tasks();
        ForEach(
            tasks.size(), "fits", [&](size_t i) { FitAndPredict(tasks[i]); });
        for (const ManyWorks& of_device : many_works_) LeaveEachOut(of_device);
        break;
      }
    }
  }

  StepValidation Take() {
    StepValidation taken;
    taken.rows = std::move(rows_);
    for (DeviceRows& of_device : devices_) {
      taken.devices.push_back(std::move(of_device.device));
    }
    taken.left_out_fits = std::move(left_out_fits_);
    return taken;
  }

 private:
  static constexpr size_t kUnknownDevice = static_cast<size_t>(-1);

  // In parallel, and as progress: "3 of 28 fits".
  void ForEach(size_t count,
               const std::string& what,
               const std::function<void(size_t)>& work) const {
    if (options_.progress != nullptr) {
      options_.progress->Begin(static_cast<double>(count), what);
    }
    calibrate::ParallelFor(count, work, options_.progress);
  }

  // Rows by device. Of a run that has its whole step the parts are fitted to,
  // too, but not asked for.
  void Sort(const std::vector<Observation>& observations) {
    std::map<std::string, size_t> index;  // by the name in the data
    std::map<std::string, size_t> by_name;
    std::set<std::string> with_step;
    for (const Observation& o : observations) {
      if (o.quantity == Quantity::kStep) with_step.insert(o.label);
    }
    for (const Observation& o : observations) {
      StepRow row;
      row.observation = &o;
      row.point = fmt::format("{} on {} x {}",
                              o.device_count,
                              o.hosts,
                              calibrate::Describe(o.workload));
      row.work = WorkOfOne(o.workload);
      row.asked = o.quantity == Quantity::kStep || !with_step.contains(o.label);
      const auto found = index.find(o.device);
      if (found != index.end()) {
        row.device = found->second;
      } else {
        row.device = kUnknownDevice;
        if (const auto device = FindDevice(o.device)) {
          const auto [place, is_new] =
              by_name.emplace(device->name, devices_.size());
          if (is_new) devices_.push_back({*device, {}});
          row.device = place->second;
        }
        index[o.device] = row.device;
      }
      if (row.device == kUnknownDevice) {
        row.reason = UnknownDevice(o.device);
      } else {
        devices_[row.device].rows.push_back(rows_.size());
      }
      rows_.push_back(std::move(row));
    }
  }

  void AddPowers(const std::vector<PowerObservation>& powers) {
    std::map<std::string_view, const PowerObservation*> of_run;
    for (const PowerObservation& power : powers) {
      of_run.emplace(power.label, &power);
    }
    for (StepRow& row : rows_) {
      const auto found = of_run.find(row.observation->label);
      if (found == of_run.end() ||
          row.observation->quantity != Quantity::kStep) {
        continue;
      }
      row.power = found->second;
    }
  }

  std::optional<hardware::Device> FindDevice(const std::string& name) const {
    if (const auto* device = hardware::DeviceCatalog::Shipped().TryFind(name)) {
      return *device;
    }
    hardware::Device host = hardware::HostCpu();
    if (calibrate::IsDevice(host, name)) return host;
    return std::nullopt;
  }

  static std::string UnknownDevice(const std::string& name) {
    std::vector<std::string_view> known;
    for (const hardware::Device& device :
         hardware::DeviceCatalog::Shipped().devices()) {
      known.emplace_back(device.name);
    }
    return fmt::format(
        "unknown device \"{}\"{}", name, model::DidYouMean(name, known));
  }

  // Rows that a fit may use: of a precision that the device runs, on one or
  // over links that are known.
  std::vector<size_t> Fittable(const DeviceRows& device) const {
    std::vector<size_t> rows;
    for (const size_t row : device.rows) {
      const Observation& o = *rows_[row].observation;
      if (device.device.MatrixPeak(o.workload.precision) &&
          (o.device_count == 1 || calibrate::FittableOver(device.device, o))) {
        rows.push_back(row);
      }
    }
    return rows;
  }

  std::vector<FitTask> Tasks() {
    std::vector<FitTask> tasks;
    for (size_t d = 0; d < devices_.size(); ++d) {
      const std::vector<size_t> fittable = Fittable(devices_[d]);
      switch (options_.protocol) {
        case Protocol::kInSample:
          tasks.push_back({d, fittable, devices_[d].rows});
          break;
        case Protocol::kLeaveOneOut:
          LeaveOneOut(d, fittable, tasks);
          break;
        case Protocol::kLeaveSourceOut:
          LeaveOut(d, fittable, tasks, [](const Observation& o) {
            return o.source;
          });
          break;
        case Protocol::kLeaveHostsOut:
          LeaveOut(
              d, fittable, tasks, [](const Observation& o) { return o.hosts; });
          break;
        case Protocol::kRunsPerDevice:
          DrawRuns(d, fittable, tasks);
          break;
        case Protocol::kAsShipped:
        case Protocol::kAddedRuns:
        case Protocol::kLeaveDeviceOut:
          ENSURE(false, "no fit to rows of the device");
      }
    }
    return tasks;
  }

  void LeaveOneOut(size_t d,
                   const std::vector<size_t>& fittable,
                   std::vector<FitTask>& tasks) {
    std::map<std::string, std::vector<size_t>> works;
    for (const size_t row : devices_[d].rows) {
      works[rows_[row].work].push_back(row);
    }
    if (works.size() > kMostRefits) {
      ManyWorks& many = many_works_.emplace_back();
      many.device = d;
      many.fit_to = fittable;
      for (auto& [work, members] : works) {
        many.works.push_back(std::move(members));
      }
      return;
    }
    for (const auto& [work, members] : works) {
      FitTask task{d, {}, members};
      for (const size_t row : fittable) {
        if (rows_[row].work != work) task.fit_to.push_back(row);
      }
      tasks.push_back(std::move(task));
    }
  }

  // Rows alike in a key are left out together.
  template <class KeyOf>
  void LeaveOut(size_t d,
                const std::vector<size_t>& fittable,
                std::vector<FitTask>& tasks,
                const KeyOf& key_of) {
    const auto key = [&](size_t row) {
      return key_of(*rows_[row].observation);
    };
    std::map<decltype(key(0)), FitTask> by_key;
    for (const size_t row : devices_[d].rows) {
      by_key[key(row)].predict.push_back(row);
    }
    for (auto& [left_out, task] : by_key) {
      task.device = d;
      for (const size_t row : fittable) {
        if (key(row) != left_out) task.fit_to.push_back(row);
      }
      tasks.push_back(std::move(task));
    }
  }

  void DrawRuns(size_t d,
                const std::vector<size_t>& fittable,
                std::vector<FitTask>& tasks) {
    const std::set<std::string> drawn = DrawnOf(d, fittable);
    FitTask task{d, {}, {}};
    for (const size_t row : devices_[d].rows) {
      if (drawn.contains(rows_[row].point)) {
        rows_[row].fitted = true;
        task.fit_to.push_back(row);
      } else {
        task.predict.push_back(row);
      }
    }
    tasks.push_back(std::move(task));
  }

  // The points of some rows of a device that the draw takes.
  std::set<std::string> DrawnOf(size_t d, const std::vector<size_t>& rows) {
    std::set<std::string> distinct;
    for (const size_t row : rows) distinct.insert(rows_[row].point);
    std::vector<std::string> points(distinct.begin(), distinct.end());
    // Seeds come of the device's own name, so that another file changes no
    // draw.
    std::seed_seq seeds(devices_[d].device.name.begin(),
                        devices_[d].device.name.end());
    std::mt19937_64 random(seeds);
    random.discard(options_.seed);
    for (size_t i = points.size(); i > 1; --i) {
      // Not std::shuffle: its draws differ between standard libraries.
      std::swap(points[i - 1], points[random() % i]);
    }
    points.resize(
        std::min(points.size(), static_cast<size_t>(options_.runs_per_device)));
    return {points.begin(), points.end()};
  }

  // What a run is of beside its device: the software that turns it into
  // kernels, and how ranks share the state.
  static std::string StackOf(const Observation& o) {
    return fmt::format("{} {}",
                       model::ToText(o.workload.stack.fusion),
                       model::ToText(o.workload.parallel.shard));
  }

  // The fits at hand, each with a few whole steps of each stack added.
  void AddRuns() {
    Fits fits;
    std::vector<calibrate::Fit> of_device;
    for (const DeviceRows& rows : devices_) {
      const calibrate::Fit* fit = fits.Of(rows.device);
      of_device.push_back(fit != nullptr ? *fit
                                         : calibrate::PriorFit(rows.device));
    }
    left_out_fits_ = fits.left_out();
    ForEach(devices_.size(), "devices", [&](size_t d) {
      MarkKnown(of_device[d], devices_[d].rows);
      AddRunsTo(d, of_device[d]);
    });
  }

  void AddRunsTo(size_t d, const calibrate::Fit& fit) {
    std::map<std::string, std::vector<size_t>> stacks;
    for (const size_t row : Fittable(devices_[d])) {
      const StepRow& one = rows_[row];
      // What the fit was made from is neither added nor asked for.
      if (one.fitted || one.observation->quantity != Quantity::kStep) continue;
      stacks[StackOf(*one.observation)].push_back(row);
    }
    std::set<std::string> drawn;
    for (const auto& [stack, rows] : stacks) drawn.merge(DrawnOf(d, rows));
    std::vector<Observation> added;
    std::vector<size_t> asked;
    for (const size_t row : devices_[d].rows) {
      if (drawn.contains(rows_[row].point)) {
        rows_[row].fitted = true;
        added.push_back(*rows_[row].observation);
        added.back().device = devices_[d].device.name;
      } else if (!rows_[row].fitted) {
        asked.push_back(row);
      }
    }
    Attempt(asked, [&] {
      const hardware::Device& device = devices_[d].device;
      PredictRows(
          added.empty()
              ? Predictor(device, fit)
              : Predictor(device, calibrate::AddRuns(device, fit, added).fit),
          asked);
    });
  }

  void AsShipped() {
    Fits fits;
    std::vector<const calibrate::Fit*> of_device;
    for (const DeviceRows& rows : devices_) {
      of_device.push_back(fits.Of(rows.device));
    }
    left_out_fits_ = fits.left_out();
    ForEach(devices_.size(), "devices", [&](size_t d) {
      Attempt(devices_[d].rows, [&] {
        const hardware::Device& device = devices_[d].device;
        const calibrate::Fit* fit = of_device[d];
        PredictRows(PredictorBy(device, fit), devices_[d].rows);
        if (fit != nullptr) MarkKnown(*fit, devices_[d].rows);
      });
    });
  }

  // Rows that the fit at hand was made from: no test of it.
  void MarkKnown(const calibrate::Fit& fit, const std::vector<size_t>& rows) {
    // By ranks, and words of the workload.
    std::map<std::pair<int64_t, std::string>, std::vector<double>> known;
    for (const calibrate::FittedRun& run : fit.runs) {
      known[{run.ranks, run.workload}].push_back(ToSeconds(run.measured));
    }
    for (const calibrate::RankFit& group : fit.ranks) {
      for (const calibrate::FittedRun& run : group.runs) {
        known[{group.network.ranks, run.workload}].push_back(
            ToSeconds(run.measured));
      }
    }
    // A fit file keeps fewer digits than a table.
    constexpr double kSame = 1e-3;
    for (const size_t row : rows) {
      const Observation& o = *rows_[row].observation;
      const auto found =
          known.find({o.device_count, calibrate::Describe(o.workload)});
      if (found == known.end()) continue;
      const double measured = ToSeconds(o.measured);
      rows_[row].fitted = std::any_of(
          found->second.begin(), found->second.end(), [&](double run) {
            return std::abs(run / measured - 1.0) < kSame;
          });
    }
  }

  // As everybody has it who measured nothing on the device.
  void LeaveDeviceOut() {
    ForEach(devices_.size(), "devices", [&](size_t d) {
      Attempt(devices_[d].rows, [&] {
        PredictRows(Predictor(devices_[d].device), devices_[d].rows);
      });
    });
  }

  // What some rows of a device measured, by the name that the fit knows it by,
  // however the file wrote it.
  struct Measured {
    std::vector<Observation> observations;
    std::vector<PowerObservation> powers;
  };
  Measured MeasuredIn(size_t d, const std::vector<size_t>& rows) const {
    const std::string& name = devices_[d].device.name;
    Measured measured;
    measured.observations.reserve(rows.size());
    for (const size_t row : rows) {
      measured.observations.push_back(*rows_[row].observation);
      measured.observations.back().device = name;
      if (rows_[row].power == nullptr) continue;
      measured.powers.push_back(*rows_[row].power);
      measured.powers.back().device = name;
    }
    return measured;
  }

  static calibrate::FitOptions FitsOfValidation() {
    calibrate::FitOptions options;
    options.leave_one_out = false;
    options.name_runs = false;
    return options;
  }

  calibrate::Fit FitTo(size_t d, const std::vector<size_t>& rows) const {
    const hardware::Device& device = devices_[d].device;
    const Measured measured = MeasuredIn(d, rows);
    calibrate::Fit fit =
        calibrate::FitDevice(device, measured.observations, FitsOfValidation());
    fit.power = calibrate::FitPower(device, fit, measured.powers);
    return fit;
  }

  // Each workload by a fit to the others that is made from one fit to all.
  void LeaveEachOut(const ManyWorks& of_device) {
    const size_t d = of_device.device;
    const hardware::Device& device = devices_[d].device;
    const Measured measured = MeasuredIn(d, of_device.fit_to);
    Attempt(devices_[d].rows, [&] {
      const calibrate::FitsWithout fits(
          device, measured.observations, FitsOfValidation());
      ForEach(of_device.works.size(), "fits", [&](size_t i) {
        const std::vector<size_t>& asked = of_device.works[i];
        Attempt(asked, [&] {
          PredictRows(Predictor(device, FitWithout(fits, measured, d, asked)),
                      asked);
        });
      });
    });
  }

  calibrate::Fit FitWithout(const calibrate::FitsWithout& fits,
                            const Measured& measured,
                            size_t d,
                            const std::vector<size_t>& rows) const {
    std::set<std::string> labels;
    for (const size_t row : rows) labels.insert(rows_[row].observation->label);
    std::optional<calibrate::Fit> fit = fits.Of(labels);
    if (!fit) {
      throw InputError(fmt::format(
          "fit of {} refused: the solver did not converge without it",
          devices_[d].device.name));
    }
    std::vector<PowerObservation> powers = measured.powers;
    std::erase_if(powers, [&](const PowerObservation& power) {
      return labels.contains(power.label);
    });
    fit->power = calibrate::FitPower(devices_[d].device, *fit, powers);
    return *std::move(fit);
  }

  void FitAndPredict(const FitTask& task) {
    if (task.fit_to.empty()) {
      for (const size_t row : task.predict) {
        rows_[row].reason = NothingToFitTo(options_.protocol);
      }
      return;
    }
    Attempt(task.predict, [&] {
      const Predictor predictor(devices_[task.device].device,
                                FitTo(task.device, task.fit_to));
      PredictRows(predictor, task.predict);
    });
    if (options_.protocol == Protocol::kInSample) {
      for (const size_t row : task.fit_to) rows_[row].fitted = true;
    }
  }

  // What refuses a whole task is the reason of each of its rows.
  template <class Work>
  void Attempt(const std::vector<size_t>& rows, const Work& work) {
    try {
      work();
    } catch (const InputError& error) {
      for (const size_t row : rows) {
        if (!rows_[row].predicted) rows_[row].reason = error.what();
      }
    }
  }

  void PredictRows(const Predictor& predictor,
                   const std::vector<size_t>& rows) {
    for (const size_t index : rows) {
      StepRow& row = rows_[index];
      if (!row.asked) continue;
      Attempt({index}, [&] {
        const Observation& o = *row.observation;
        const StepEstimate step = EstimateStep(
            predictor, o.workload, ClusterOf(predictor, o), o.source);
        const auto [part, log_sigma] = Part(step, o.quantity);
        row.predicted = part;
        row.low = part * step.LowFactor(log_sigma);
        row.high = part * step.HighFactor(log_sigma);
        row.low_95 = part * step.LowFactor95(log_sigma);
        row.high_95 = part * step.HighFactor95(log_sigma);
        row.grade = step.grade;
        row.log_sigma = log_sigma;
        row.source_sigma = step.source_sigma;
        row.source_seen = step.source_seen;
        if (o.quantity == Quantity::kStep) {
          row.baselines = BaselinesOf(predictor.device(), o.workload);
        }
        if (row.power != nullptr) {
          row.predicted_power = StepPower(predictor, o.workload, step);
        }
      });
    }
  }

  // Its time, and the standard deviation of its logarithm.
  static std::pair<model::Seconds<>, double> Part(const StepEstimate& step,
                                                  Quantity quantity) {
    switch (quantity) {
      case Quantity::kStep:
        return {step.total(), step.log_sigma};
      case Quantity::kForward:
        return {step.forward.total(), step.forward_log_sigma};
      case Quantity::kBackward:
        return {step.backward.total() + step.communication +
                    step.slowed_computation,
                step.backward_log_sigma};
      case Quantity::kOptimizer:
        return {step.optimizer.total() + step.host_update,
                step.optimizer_log_sigma};
      case Quantity::kKernel:
        break;  // compared by kernel_validation.h
    }
    ENSURE(false, "a quantity without a part");
  }

  const ValidateOptions& options_;
  std::vector<StepRow> rows_;
  std::vector<std::string> left_out_fits_;
  std::vector<DeviceRows> devices_;
  std::vector<ManyWorks> many_works_;
};

}  // namespace

StepValidation ValidateSteps(const ValidateOptions& options,
                             const std::vector<Observation>& observations,
                             const std::vector<PowerObservation>& powers) {
  StepProtocol protocol(options, observations, powers);
  protocol.Run();
  return protocol.Take();
}

}  // namespace trainfare::scenarios
