#include "scenarios/validation/step_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "calibrate/fit/added_runs.h"
#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/parallel_for.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/prior_fit.h"
#include "hardware/files/progress_line.h"
#include "model/error.h"
#include "scenarios/job/energy.h"
#include "scenarios/job/fits.h"
#include "scenarios/job/step_estimate.h"
#include "scenarios/validation/folds.h"
#include "scenarios/validation/step_rows.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Observation;
using calibrate::PowerObservation;
using calibrate::Predictor;
using calibrate::Quantity;
using model::InputError;

class StepProtocol {
 public:
  StepProtocol(const ValidateOptions& options,
               const std::vector<Observation>& observations,
               const std::vector<PowerObservation>& powers)
      : options_(options), sorted_(SortByDevice(observations, powers)) {}

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
      case Protocol::kModelRuns:
      case Protocol::kRunsPerDevice: {
        const Folds made = FoldsOf(options_, sorted_);
        ForEach(made.folds.size(), "fits", [&](size_t i) {
          FitAndPredict(made.folds[i]);
        });
        for (const ManyWorks& many : made.many_works) LeaveEachOut(many);
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
  // In parallel, and as progress: "3 of 28 fits".
  void ForEach(size_t count,
               const std::string& what,
               const std::function<void(size_t)>& work) const {
    if (options_.progress != nullptr) {
      options_.progress->Begin(static_cast<double>(count), what);
    }
    calibrate::ParallelFor(count, work, options_.progress);
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
    for (const size_t row : FittableRows(sorted_, devices_[d])) {
      const StepRow& one = rows_[row];
      // What the fit was made from is neither added nor asked for.
      if (one.fitted || one.observation->quantity != Quantity::kStep) continue;
      stacks[StackOf(*one.observation)].push_back(row);
    }
    std::set<std::string> drawn;
    for (const auto& [stack, rows] : stacks)
      drawn.merge(DrawnPoints(options_, sorted_, devices_[d], rows));
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

  void FitAndPredict(const Fold& fold) {
    if (fold.fit_to.empty()) {
      for (const size_t row : fold.predict) {
        rows_[row].reason = NothingToFitTo(options_.protocol);
      }
      return;
    }
    Attempt(fold.predict, [&] {
      const Predictor predictor(devices_[fold.device].device,
                                FitTo(fold.device, fold.fit_to));
      PredictRows(predictor, fold.predict);
    });
    if (options_.protocol == Protocol::kInSample) {
      for (const size_t row : fold.fit_to) rows_[row].fitted = true;
    }
  }

  // What refuses a whole fold is the reason of each of its rows.
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
  SortedRows sorted_;
  std::vector<StepRow>& rows_ = sorted_.rows;
  std::vector<DeviceRows>& devices_ = sorted_.devices;
  std::vector<std::string> left_out_fits_;
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
