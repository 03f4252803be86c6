#include "scenarios/commands/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "calibrate/fit/added_runs.h"
#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/joined_devices.h"
#include "calibrate/fit/parallel_for.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/prior_fit.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/import/observations.h"
#include "calibrate/records/statistics.h"
#include "hardware/catalog/device.h"
#include "hardware/files/progress_line.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/nearest.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/fits.h"
#include "scenarios/published/published_validation.h"
#include "scenarios/report/result_json.h"
#include "scenarios/validation/choice_validation.h"
#include "scenarios/validation/kernel_validation.h"
#include "scenarios/validation/memory_validation.h"
#include "scenarios/validation/rank_validation.h"
#include "scenarios/validation/repeats.h"
#include "scenarios/validation/summary_json.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Observation;
using calibrate::Predictor;
using calibrate::Quantity;
using model::InputError;

// A measured row and what became of it.
struct Row {
  const Observation* observation = nullptr;
  size_t device = 0;  // index into Devices
  std::string point;  // workload and devices: rows of one point are repeats
  std::string work;   // of one device, over whatever number of them
  bool fitted = false;
  bool asked = true;  // whether it is to be predicted
  std::optional<model::Seconds<>> predicted;
  model::Seconds<> low;
  model::Seconds<> high;
  calibrate::Grade grade = calibrate::Grade::kDatasheetOnly;
  double log_sigma = 0;
  double source_sigma = 0;  // of it, for a source that the fit has not seen
  bool source_seen = false;
  std::string reason;                   // why it is not predicted
  std::optional<double> repeat_spread;  // of the point's repeats

  RowError Error() const {
    const double measured = ToSeconds(observation->measured);
    return {100.0 * (ToSeconds(*predicted) / measured - 1.0),
            low <= observation->measured && observation->measured <= high};
  }
};

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
    default:
      return "no row of such devices to fit to";
  }
}

// A model fitted to some rows (or not at all) and the rows it predicts.
struct Task {
  size_t device = 0;
  std::vector<size_t> fit_to;
  std::vector<size_t> predict;
};

class Validation {
 public:
  Validation(const ValidateOptions& options,
             const std::vector<Observation>& observations)
      : options_(options) {
    Sort(observations);
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
      case Protocol::kRunsPerDevice: {
        const std::vector<Task> tasks = Tasks();
        ForEach(
            tasks.size(), "fits", [&](size_t i) { FitAndPredict(tasks[i]); });
        break;
      }
    }
  }

  // Takes the points that the rows are, in their order; none: rows are no
  // points.
  void NoteRepeats(const std::vector<Repeats>& points) {
    for (size_t i = 0; i < points.size(); ++i) {
      if (points[i].measured.size() < 2) continue;
      rows_[i].repeat_spread = points[i].Spread();
    }
  }

  const std::vector<Row>& rows() const { return rows_; }
  // Files of fits that could not be read, a line each.
  const std::vector<std::string>& left_out_fits() const {
    return left_out_fits_;
  }
  const hardware::Device* DeviceOf(const Row& row) const {
    return row.reason.empty() || row.device < devices_.size()
               ? &devices_[row.device].device
               : nullptr;
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
      Row row;
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

  std::vector<Task> Tasks() {
    std::vector<Task> tasks;
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
          LeaveSourceOut(d, fittable, tasks);
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
                   std::vector<Task>& tasks) {
    std::map<std::string, std::vector<size_t>> works;
    for (const size_t row : devices_[d].rows) {
      works[rows_[row].work].push_back(row);
    }
    for (const auto& [work, members] : works) {
      Task task{d, {}, members};
      for (const size_t row : fittable) {
        if (rows_[row].work != work) task.fit_to.push_back(row);
      }
      tasks.push_back(std::move(task));
    }
  }

  void LeaveSourceOut(size_t d,
                      const std::vector<size_t>& fittable,
                      std::vector<Task>& tasks) {
    const auto source = [&](size_t row) -> const std::string& {
      return rows_[row].observation->source;
    };
    std::map<std::string, Task> by_source;
    for (const size_t row : devices_[d].rows) {
      by_source[source(row)].predict.push_back(row);
    }
    for (auto& [left_out, task] : by_source) {
      task.device = d;
      for (const size_t row : fittable) {
        if (source(row) != left_out) task.fit_to.push_back(row);
      }
      tasks.push_back(std::move(task));
    }
  }

  void DrawRuns(size_t d,
                const std::vector<size_t>& fittable,
                std::vector<Task>& tasks) {
    const std::set<std::string> drawn = DrawnOf(d, fittable);
    Task task{d, {}, {}};
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
      const Row& one = rows_[row];
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
              : Predictor(device, calibrate::AddRuns(device, fit, added)),
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

  calibrate::Fit FitTo(size_t d, const std::vector<size_t>& rows) const {
    std::vector<Observation> observations;
    observations.reserve(rows.size());
    for (const size_t row : rows) {
      observations.push_back(*rows_[row].observation);
      // The name that the fit knows it by, however the file wrote it.
      observations.back().device = devices_[d].device.name;
    }
    calibrate::FitOptions options;
    options.leave_one_out = false;
    options.name_runs = false;
    return calibrate::FitDevice(devices_[d].device, observations, options);
  }

  void FitAndPredict(const Task& task) {
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
      Row& row = rows_[index];
      if (!row.asked) continue;
      Attempt({index}, [&] {
        const Observation& o = *row.observation;
        const StepEstimate step = EstimateStep(
            predictor, o.workload, ClusterOf(predictor, o), o.source);
        const auto [part, log_sigma] = Part(step, o.quantity);
        row.predicted = part;
        row.low = part * step.LowFactor(log_sigma);
        row.high = part * step.HighFactor(log_sigma);
        row.grade = step.grade;
        row.log_sigma = log_sigma;
        row.source_sigma = step.source_sigma;
        row.source_seen = step.source_seen;
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
  std::vector<Row> rows_;
  std::vector<std::string> left_out_fits_;
  std::vector<DeviceRows> devices_;
};

std::string ToText(const ValidateOptions& options) {
  switch (options.protocol) {
    case Protocol::kAsShipped:
      return "as-shipped";
    case Protocol::kInSample:
      return "in-sample";
    case Protocol::kLeaveOneOut:
      return "leave-one-out";
    case Protocol::kLeaveSourceOut:
      return "leave-source-out";
    case Protocol::kLeaveDeviceOut:
      return "leave-device-out";
    case Protocol::kRunsPerDevice:
      return options.runs_per_device == 1
                 ? "one-run-per-device"
                 : fmt::format("k-runs={}", options.runs_per_device);
    case Protocol::kAddedRuns:
      return fmt::format("added-runs={}", options.runs_per_device);
  }
  ENSURE(false, "a protocol without a name");
}

std::string Explain(const ValidateOptions& options) {
  switch (options.protocol) {
    case Protocol::kAsShipped:
      return "nothing is fitted here: the fits at hand, datasheets where there "
             "is none";
    case Protocol::kInSample:
      return "every device was fitted to all of its rows: no test of "
             "prediction";
    case Protocol::kLeaveOneOut:
      return "every row was predicted by a fit to the other workloads of its "
             "device";
    case Protocol::kLeaveSourceOut:
      return "every row was predicted by a fit to what others measured on its "
             "device";
    case Protocol::kLeaveDeviceOut:
      return "every device was predicted without a fit, by its datasheet and "
             "the priors of its kind";
    case Protocol::kRunsPerDevice:
      return fmt::format(
          "every device was fitted to {} of its workloads, "
          "drawn with seed {}; the others were predicted",
          options.runs_per_device,
          options.seed);
    case Protocol::kAddedRuns:
      return fmt::format(
          "{} workloads of each device and stack, drawn with seed {}, were "
          "added to the fits at hand; the others were predicted",
          options.runs_per_device,
          options.seed);
  }
  ENSURE(false, "a protocol without words");
}

// How far measurements of one point are apart, over all whole steps.
struct RepeatErrors {
  size_t points = 0;
  std::string times;  // "3", or "2 to 3"
  double median = 0;
  double worst = 0;
};

std::optional<RepeatErrors> ErrorsOf(const std::vector<Repeats>& points) {
  RepeatErrors result;
  std::vector<double> errors;
  std::set<size_t> times;
  for (const Repeats& point : points) {
    if (point.middle.quantity != Quantity::kStep) continue;
    const std::vector<double> own = point.OwnErrors();
    if (own.empty()) continue;
    ++result.points;
    times.insert(own.size());
    errors.insert(errors.end(), own.begin(), own.end());
  }
  if (errors.empty()) return std::nullopt;
  result.times = times.size() == 1
                     ? fmt::format("{}", *times.begin())
                     : fmt::format("{} to {}", *times.begin(), *times.rbegin());
  result.median = calibrate::Median(errors);
  result.worst = *std::max_element(errors.begin(), errors.end());
  return result;
}

Table RowTable(const std::vector<Row>& rows, const Validation& validation) {
  const bool repeated =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) {
        return row.repeat_spread.has_value();
      });
  Table table;
  table.columns = {{"row", "label", Align::kLeft},
                   {"device", "device", Align::kLeft},
                   {"devices", "devices", Align::kRight, 4},
                   {"model", "model", Align::kLeft, 6},
                   {"precision", "precision", Align::kLeft, 5},
                   {"batch", "batch", Align::kRight, 2},
                   {"length", "sequence_length", Align::kRight, 3},
                   {"part", "quantity", Align::kLeft, 8},
                   {"measured", "measured_s", Align::kRight},
                   {"predicted", "predicted_s", Align::kRight},
                   {"error", "error_percent", Align::kDecimal},
                   {"inside 80 %", "covered", Align::kLeft, 1},
                   {"grade", "grade", Align::kLeft, 7}};
  if (repeated) {
    table.columns.push_back(
        {"repeats apart", "repeat_spread_percent", Align::kDecimal, 9});
  }
  for (const Row& row : rows) {
    if (!row.predicted) continue;
    const Observation& o = *row.observation;
    const RowError error = row.Error();
    const auto count = [](int64_t value) {
      return Cell(fmt::format("{}", value), static_cast<double>(value));
    };
    std::vector<Cell> cells = {
        o.label,
        validation.DeviceOf(row)->name,
        count(o.device_count),
        o.workload.architecture.name,
        std::string(model::ToText(o.workload.precision)),
        count(o.workload.batch),
        count(o.workload.sequence_length),
        std::string(calibrate::ToText(o.quantity)),
        Cell(hardware::FormatTime(o.measured), ToSeconds(o.measured)),
        Cell(hardware::FormatTime(*row.predicted), ToSeconds(*row.predicted)),
        Cell(fmt::format("{:+.1f} %", error.error), error.error),
        error.covered.value_or(false) ? "yes" : "no",
        std::string(calibrate::ToText(row.grade))};
    if (repeated) {
      cells.push_back(
          row.repeat_spread
              ? Cell(fmt::format("{:.1f} %", 100.0 * *row.repeat_spread),
                     100.0 * *row.repeat_spread)
              : Cell("-"));
    }
    table.Add(std::move(cells));
  }
  return table;
}

Json RowJson(const Row& row, const Validation& validation) {
  const Observation& o = *row.observation;
  const RowError error = row.Error();
  Json json;
  json["label"] = o.label;
  json["device"] = validation.DeviceOf(row)->name;
  json["devices"] = o.device_count;
  json["model"] = o.workload.architecture.name;
  json["precision"] = model::ToText(o.workload.precision);
  json["batch"] = o.workload.batch;
  json["sequence_length"] = o.workload.sequence_length;
  json["accumulation"] = o.workload.accumulation;
  json["framework"] = o.framework;
  json["source"] = o.group;
  json["measured_by"] = o.source;
  json["source_seen"] = row.source_seen;
  json["quantity"] = calibrate::ToText(o.quantity);
  json["measured_s"] = ToSeconds(o.measured);
  json["predicted_s"] = ToSeconds(*row.predicted);
  json["predicted_low_s"] = ToSeconds(row.low);
  json["predicted_high_s"] = ToSeconds(row.high);
  json["log_sigma"] = row.log_sigma;
  json["source_log_sigma"] = row.source_sigma;
  json["error_percent"] = error.error;
  json["covered"] = error.covered.value_or(false);
  json["grade"] = calibrate::ToText(row.grade);
  json["fitted"] = row.fitted;
  if (row.repeat_spread) {
    json["repeat_spread_percent"] = 100.0 * *row.repeat_spread;
  }
  return json;
}

// The errors of the rows that count, and why others do not.
struct Tally {
  std::vector<RowError> errors;
  std::map<std::string, std::vector<RowError>> groups;
  std::map<std::string, int64_t> reasons;  // rows that were skipped for each
  Json rows = Json::array();
  Json skipped = Json::array();
  Json fitted = Json::array();  // labels of rows that a fit was made from
};

Tally TallyOf(const Validation& validation, const ValidateOptions& options) {
  Tally tally;
  const bool drawn = options.protocol == Protocol::kRunsPerDevice;
  for (const Row& row : validation.rows()) {
    if (row.fitted) tally.fitted.push_back(row.observation->label);
    if (!row.asked || (row.fitted && drawn)) continue;
    if (!row.predicted) {
      ++tally.reasons[row.reason];
      tally.skipped.push_back(
          {{"label", row.observation->label}, {"reason", row.reason}});
      continue;
    }
    tally.errors.push_back(row.Error());
    tally
        .groups[GroupOf(
            *row.observation, validation.DeviceOf(row)->name, options.group_by)]
        .push_back(row.Error());
    tally.rows.push_back(RowJson(row, validation));
  }
  return tally;
}

// Whole steps that were predicted: the question is everything but the device.
std::vector<MeasuredAnswer> AnswersOf(const Validation& validation,
                                      const ValidateOptions& options) {
  const bool drawn = options.protocol == Protocol::kRunsPerDevice;
  std::vector<MeasuredAnswer> answers;
  for (const Row& row : validation.rows()) {
    const Observation& o = *row.observation;
    if (!row.predicted || o.quantity != Quantity::kStep) continue;
    if (row.fitted && drawn) continue;
    answers.push_back(
        {fmt::format(
             "{}, {} together, {}", row.point, o.run_devices, o.framework),
         validation.DeviceOf(row)->name,
         o.measured,
         {ToSeconds(*row.predicted), ToSeconds(row.low), ToSeconds(row.high)}});
  }
  return answers;
}

std::string Headline(const ErrorSummary& overall,
                     const calibrate::ObservationFiles& files,
                     const ValidateOptions& options) {
  if (overall.count == 0) {
    return fmt::format("no row of {} predicted ({})",
                       calibrate::SourceNames(files),
                       ToText(options));
  }
  return fmt::format(
      "{} rows of {} ({}): median error {:.1f} %, mean {:.1f} "
      "%, 90 % below {:.1f} %, worst {:.1f} %; {:.0f} % "
      "inside their 80 % interval",
      overall.count,
      calibrate::SourceNames(files),
      ToText(options),
      overall.median,
      overall.mape,
      overall.p90,
      overall.max,
      overall.coverage);
}

Table SummaryTable(const Tally& tally, const ErrorSummary& overall) {
  Table summary;
  summary.columns = SummaryColumns();
  for (const auto& [name, members] : tally.groups) {
    summary.Add(SummaryCells(name, Summarise(members)));
  }
  summary.Add(SummaryCells("all", overall));
  summary.marked = summary.rows.size() - 1;
  return summary;
}

Json GroupList(const Tally& tally) {
  Json list = Json::array();
  for (const auto& [name, members] : tally.groups) {
    Json json;
    json["group"] = name;
    json.update(ToJson(Summarise(members)));
    list.push_back(std::move(json));
  }
  return list;
}

std::vector<Note> NotesOf(const Tally& tally,
                          const std::optional<RepeatErrors>& repeats,
                          const calibrate::ObservationFiles& files,
                          const ValidateOptions& options) {
  std::vector<Note> notes = {Explain(options)};
  if (repeats) {
    notes.push_back(fmt::format(
        "noise: {} points were measured {} times; a measurement predicted by "
        "the median of its repeats errs by {:.1f} % in the median, {:.1f} % at "
        "worst",
        repeats->points,
        repeats->times,
        100.0 * repeats->median,
        100.0 * repeats->worst));
  }
  if (options.protocol == Protocol::kAsShipped && !tally.fitted.empty()) {
    notes.emplace_back(
        fmt::format("{} of these rows are among those that the fits at hand "
                    "were made from: for them it is no test of prediction; "
                    "--protocol leave-one-out is one",
                    tally.fitted.size()),
        Caution::kRowsOfTheFit);
  }
  for (const auto& [reason, count] : tally.reasons) {
    notes.emplace_back(fmt::format("{} rows skipped: {}", count, reason),
                       Caution::kRowsSkipped);
  }
  notes.insert(notes.end(), files.notes.begin(), files.notes.end());
  return notes;
}

Json ResultOf(const ValidateOptions& options,
              const ErrorSummary& overall,
              const std::optional<RepeatErrors>& repeats,
              const std::vector<PriceSource>& prices,
              Tally tally) {
  Json json;
  json["overall"] = ToJson(overall);
  json["groups"] = GroupList(tally);
  json["rows"] = std::move(tally.rows);
  json.update(ValidationHead(options, prices));
  json["protocol"] = ToText(options);
  if (repeats) {
    json["repeats"] = {{"points", repeats->points},
                       {"median", 100.0 * repeats->median},
                       {"max", 100.0 * repeats->worst}};
  }
  json["files"] = options.files;
  json["fitted"] = std::move(tally.fitted);
  json["skipped"] = std::move(tally.skipped);
  return json;
}

}  // namespace

Report Validate(const ValidateOptions& options) {
  if (options.seed > model::kLargestSeed) {
    throw UsageError(
        fmt::format("--seed: expected a whole number from 0 to {}, got {}",
                    model::kLargestSeed,
                    static_cast<int64_t>(options.seed)));
  }
  if (IsPublished(options.files)) return ValidatePublished(options);
  if (HoldKernels(options.files)) return ValidateKernels(options);
  if (HoldRanks(options.files)) return ValidateRanks(options);
  calibrate::ObservationFiles files =
      calibrate::ReadObservations(options.files);
  if (!files.kernels.empty()) {
    files.notes.push_back(
        fmt::format("{} kernels timed by themselves are not in these rows; a "
                    "file that holds nothing else is compared kernel by kernel",
                    files.kernels.size()));
  }
  std::vector<Repeats> points;
  if (options.repeats == RepeatRule::kMedian) {
    points = MergeRepeats(files.observations);
  }
  std::vector<Observation> merged;
  for (const Repeats& point : points) merged.push_back(point.middle);
  Validation validation(options, points.empty() ? files.observations : merged);
  validation.Run();
  validation.NoteRepeats(points);

  Tally tally = TallyOf(validation, options);
  const ErrorSummary overall = Summarise(tally.errors);
  const std::optional<RepeatErrors> repeats = ErrorsOf(points);
  Report report;
  report.warnings =
      NotesOf(validation.left_out_fits(), Caution::kFitUnreadable);
  report.headline.push_back(Headline(overall, files, options));
  report.tables.push_back(RowTable(validation.rows(), validation));
  report.tables.push_back(SummaryTable(tally, overall));
  report.notes = NotesOf(tally, repeats, files, options);
  DevicePrices prices = ShippedDevicePrices();
  const std::vector<MeasuredChoice> choices =
      ChoicesOf(AnswersOf(validation, options), prices.of_device);
  if (choices.empty()) {
    prices.sources.clear();
  } else {
    report.notes.emplace_back(ChoiceNote(choices));
  }
  Json json =
      ResultOf(options, overall, repeats, prices.sources, std::move(tally));
  json["choices"] = ToJson(choices);
  AppendMemory(files.memory, options.group_by, report, json);
  report.json = AnswerText(std::move(json), report);
  // A table of memory alone has no time to predict.
  if (!files.observations.empty()) AnswerWithOverall(overall, report);
  return report;
}

}  // namespace trainfare::scenarios
