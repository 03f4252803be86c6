#include "scenarios/validation/kernel_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/measured_observations.h"
#include "calibrate/records/measurement.h"
#include "hardware/catalog/device.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/kernels.h"
#include "scenarios/job/fits.h"
#include "scenarios/report/result_json.h"
#include "scenarios/validation/summary_json.h"

namespace trainfare::scenarios {
namespace {

using calibrate::MeasuredKernel;
using calibrate::Predictor;
using model::Seconds;

bool IsRecordFile(const std::string& path) {
  const std::string suffix = std::filesystem::path(path).extension().string();
  return suffix == ".jsonl" || suffix == ".json";
}

// One predictor a device, made when first asked for.
class Predictors {
 public:
  const Predictor& Of(const std::string& reported_name) {
    const auto found = predictors_.find(reported_name);
    if (found != predictors_.end()) return found->second;
    const hardware::Device device = Find(reported_name);
    return predictors_.emplace(reported_name, fits_.PredictorOf(device))
        .first->second;
  }

  static hardware::Device Find(const std::string& name) {
    hardware::Device host = hardware::HostCpu();
    return calibrate::IsDevice(host, name)
               ? host
               : hardware::DeviceCatalog::Shipped().Find(name);
  }

  const std::vector<std::string>& left_out_fits() const {
    return fits_.left_out();
  }

 private:
  Fits fits_;
  std::map<std::string, Predictor> predictors_;
};

struct KernelRow {
  const MeasuredKernel* measured = nullptr;
  Seconds<> predicted;
  bool fitted = false;  // the fit that predicted it has seen it

  double error() const { return 100.0 * (predicted / measured->time - 1.0); }
  Seconds<> measured_per_step() const { return Times(measured->time); }
  Seconds<> predicted_per_step() const { return Times(predicted); }

 private:
  Seconds<> Times(Seconds<> time) const {
    return time * static_cast<double>(measured->per_step);
  }
};

Seconds<> PredictedTime(const Predictor& predictor,
                        const MeasuredKernel& measured) {
  Seconds<> sum;
  for (const model::Kernel& kernel : measured.kernels) {
    sum += predictor.KernelTimeAlone(measured.workload, measured.phase, kernel);
  }
  return sum;
}

bool IsFittedTo(const calibrate::Fit& fit, const std::string& id) {
  return std::any_of(
      fit.runs.begin(), fit.runs.end(), [&](const calibrate::FittedRun& run) {
        return run.quantity == calibrate::Quantity::kKernel && run.label == id;
      });
}

std::vector<KernelRow> AsShipped(const std::vector<MeasuredKernel>& kernels,
                                 std::vector<std::string>& warnings) {
  Predictors predictors;
  std::vector<KernelRow> rows;
  for (const MeasuredKernel& measured : kernels) {
    const Predictor& predictor = predictors.Of(measured.device);
    rows.push_back({&measured,
                    PredictedTime(predictor, measured),
                    IsFittedTo(predictor.fit(), measured.id)});
  }
  warnings = predictors.left_out_fits();
  return rows;
}

// By fits to these kernels alone, a fit a device; with `left_out` each by a fit
// to the others.
std::vector<KernelRow> Refitted(const std::vector<MeasuredKernel>& kernels,
                                bool left_out,
                                std::vector<std::string>& notes) {
  std::map<std::string, std::vector<const MeasuredKernel*>> of_device;
  for (const MeasuredKernel& measured : kernels) {
    of_device[measured.device].push_back(&measured);
  }
  std::vector<KernelRow> rows;
  int64_t without = 0;
  for (const auto& [name, members] : of_device) {
    std::vector<calibrate::KernelObservation> observations;
    for (const MeasuredKernel* measured : members) {
      observations.push_back(calibrate::ObservationOf(*measured));
    }
    calibrate::FitOptions options;
    options.leave_one_out = left_out;
    const calibrate::Fit fit = calibrate::FitDevice(
        Predictors::Find(name), {}, observations, {}, options);
    for (size_t i = 0; i < members.size(); ++i) {
      const calibrate::FittedRun& run = fit.runs[i];
      if (!left_out) {
        rows.push_back({members[i], run.modelled, true});
      } else if (run.left_out) {
        rows.push_back({members[i], *run.left_out, false});
      } else {
        ++without;
      }
    }
  }
  if (without > 0) {
    notes.push_back(fmt::format("{} skipped: there is no fit without {}",
                                hardware::Plural(without, "kernel"),
                                without == 1 ? "it" : "them"));
  }
  return rows;
}

// "8 x 32 x 32 x 64" of a product, else the outputs.
std::string Extents(const MeasuredKernel& measured) {
  const model::Kernel& kernel = measured.kernels.front();
  const model::GemmExtents& g = kernel.gemm;
  if (g.batch == 0) return fmt::format("{}", kernel.work_items);
  return g.batch == 1
             ? fmt::format("{} x {} x {}", g.m, g.n, g.k)
             : fmt::format("{} x {} x {} x {}", g.batch, g.m, g.n, g.k);
}

Cell ErrorCell(double error) {
  return {fmt::format("{:+.1f} %", error), error};
}

Table RowTable(const std::vector<KernelRow>& rows) {
  Table table;
  table.columns = {{"operation", "operation", Align::kLeft},
                   {"phase", "phase", Align::kLeft, 2},
                   {"kind", "kind", Align::kLeft, 3},
                   {"run", "workload", Align::kLeft},
                   {"extents", "extents", Align::kRight, 1},
                   {"a step", "per_step", Align::kRight, 4},
                   {"measured", "measured_s", Align::kRight},
                   {"predicted", "predicted_s", Align::kRight},
                   {"error", "error_percent", Align::kDecimal}};
  for (const KernelRow& row : rows) {
    const MeasuredKernel& m = *row.measured;
    table.Add({m.operation,
               std::string(model::ToText(m.phase)),
               std::string(model::ToText(m.kind)),
               fmt::format("{} {} {} x {}",
                           m.workload.architecture.name,
                           model::ToText(m.workload.precision),
                           m.workload.batch,
                           m.workload.sequence_length),
               Extents(m),
               CountCell(m.per_step),
               TimeCell(m.time),
               TimeCell(row.predicted),
               ErrorCell(row.error())});
  }
  return table;
}

// Errors of single kernels, and what they add up to in the steps.
struct Group {
  std::vector<RowError> errors;
  Seconds<> measured;
  Seconds<> predicted;

  void Add(const KernelRow& row) {
    errors.push_back({row.error(), std::nullopt});
    measured += row.measured_per_step();
    predicted += row.predicted_per_step();
  }
};

struct Sums {
  std::map<model::KernelKind, Group> kinds;
  Group all;
};

std::vector<Cell> GroupCells(const std::string& name,
                             const Group& group,
                             Seconds<> all_measured) {
  const ErrorSummary errors = Summarise(group.errors);
  const double share = 100.0 * (group.measured / all_measured);
  // Shares of the whole step's time, so that the kinds' misses add up to the
  // step's.
  const double moves =
      100.0 * ((group.predicted - group.measured) / all_measured);
  return {name,
          CountCell(errors.count),
          TimeCell(group.measured),
          Cell(fmt::format("{:.1f} %", share), share),
          TimeCell(group.predicted),
          ErrorCell(100.0 * (group.predicted / group.measured - 1.0)),
          ErrorCell(moves),
          Cell(fmt::format("{:.1f} %", errors.median), errors.median)};
}

Table KindTable(const Sums& sums) {
  Table table;
  table.columns = {{"kind", "kind", Align::kLeft},
                   {"kernels", "n", Align::kRight, 1},
                   {"measured", "measured_per_step_s", Align::kRight},
                   {"of the step", "share_percent", Align::kDecimal, 2},
                   {"predicted", "predicted_per_step_s", Align::kRight},
                   {"error", "error_percent", Align::kDecimal},
                   {"moves the step", "step_error_percent", Align::kDecimal},
                   {"median of one", "median_percent", Align::kDecimal, 4}};
  for (const auto& [kind, group] : sums.kinds) {
    table.Add(
        GroupCells(std::string(model::ToText(kind)), group, sums.all.measured));
  }
  table.Add(GroupCells("all", sums.all, sums.all.measured));
  table.marked = table.rows.size() - 1;
  return table;
}

Json GroupJson(std::string_view name, const Group& group) {
  Json json;
  json["group"] = name;
  json.update(ToJson(Summarise(group.errors)));
  json.erase("with_interval");
  json.erase("coverage");  // a kernel by itself has no interval
  json["measured_per_step_s"] = ToSeconds(group.measured);
  json["predicted_per_step_s"] = ToSeconds(group.predicted);
  return json;
}

Json RowJson(const KernelRow& row) {
  const MeasuredKernel& m = *row.measured;
  Json json;
  json["operation"] = m.operation;
  json["phase"] = model::ToText(m.phase);
  json["kind"] = model::ToText(m.kind);
  json["device"] = m.device;
  json["workload"] = calibrate::Describe(m.workload);
  json["extents"] = Extents(m);
  json["per_step"] = m.per_step;
  json["measured_s"] = ToSeconds(m.time);
  json["noise"] = m.relative_noise;
  json["predicted_s"] = ToSeconds(row.predicted);
  json["fitted"] = row.fitted;
  json["error_percent"] = row.error();
  return json;
}

struct Read {
  std::vector<MeasuredKernel> kernels;
  std::vector<std::string> notes;
};

Read ReadKernels(const std::vector<std::string>& files) {
  Read read;
  int64_t disturbed = 0;
  for (const std::string& file : files) {
    calibrate::Measurements measurements = calibrate::ReadMeasurements(file);
    for (const calibrate::RefusedRun& refused : measurements.refused) {
      read.notes.push_back(fmt::format("{}:{}: a request was refused: {}",
                                       file,
                                       refused.line,
                                       refused.message));
    }
    for (MeasuredKernel& kernel : measurements.kernels) {
      disturbed += kernel.disturbed ? 1 : 0;
      read.kernels.push_back(std::move(kernel));
    }
  }
  if (disturbed > 0) {
    read.notes.push_back(
        fmt::format("{} of {} were disturbed by other programs",
                    disturbed,
                    read.kernels.size()));
  }
  return read;
}

// Throws UsageError for what has no meaning of kernels by themselves.
void RequireKernelOptions(const ValidateOptions& options) {
  if (options.protocol != Protocol::kAsShipped &&
      options.protocol != Protocol::kLeaveOneOut &&
      options.protocol != Protocol::kInSample) {
    throw UsageError(
        "--protocol: kernels by themselves are compared as-shipped, in-sample "
        "or leave-one-out");
  }
}

std::string Headline(const ErrorSummary& overall, const Group& all) {
  return fmt::format(
      "{} operations timed by themselves: together {} a step, predicted {} "
      "({:+.1f} %); median error of one {:.1f} %",
      overall.count,
      hardware::FormatTime(all.measured),
      hardware::FormatTime(all.predicted),
      100.0 * (all.predicted / all.measured - 1.0),
      overall.median);
}

void AddProtocolNotes(Protocol protocol,
                      int64_t fitted,
                      std::vector<std::string>& notes) {
  const bool as_shipped = protocol == Protocol::kAsShipped;
  const bool left_out = protocol == Protocol::kLeaveOneOut;
  notes.emplace_back(
      as_shipped ? "by the formula of the fit at hand, or of the datasheet, "
                   "without what a fit learns from whole runs nearby"
      : left_out ? "each by a fit to all other kernels of its device here"
                 : "by a fit to these very kernels");
  if (as_shipped && fitted > 0) {
    notes.push_back(
        fmt::format("{} of them are among those that the fit at hand was made "
                    "from; --protocol leave-one-out tests prediction",
                    fitted));
  }
}

}  // namespace

bool HoldKernels(const std::vector<std::string>& files) {
  bool any = false;
  for (const std::string& file : files) {
    if (!IsRecordFile(file)) return false;
    const calibrate::Measurements measurements =
        calibrate::ReadMeasurements(file);
    if (!measurements.runs.empty()) return false;
    any = any || !measurements.kernels.empty();
  }
  return any;
}

Report ValidateKernels(const ValidateOptions& options) {
  RequireKernelOptions(options);
  const bool left_out = options.protocol == Protocol::kLeaveOneOut;
  const bool as_shipped = options.protocol == Protocol::kAsShipped;
  Read read = ReadKernels(options.files);
  Report report;
  std::vector<std::string> left_out_fits;
  const std::vector<KernelRow> rows =
      as_shipped ? AsShipped(read.kernels, left_out_fits)
                 : Refitted(read.kernels, left_out, read.notes);
  report.warnings = NotesOf(left_out_fits, Caution::kFitUnreadable);
  if (rows.empty()) {
    throw model::InputError(
        "--protocol leave-one-out: expected several kernels of a device, got "
        "one of each");
  }
  Sums sums;
  Json row_list = Json::array();
  int64_t fitted = 0;
  for (const KernelRow& row : rows) {
    sums.kinds[row.measured->kind].Add(row);
    sums.all.Add(row);
    row_list.push_back(RowJson(row));
    fitted += row.fitted ? 1 : 0;
  }
  const ErrorSummary overall = Summarise(sums.all.errors);

  report.headline.push_back(Headline(overall, sums.all));
  report.tables.push_back(RowTable(rows));
  report.tables.push_back(KindTable(sums));
  AddProtocolNotes(options.protocol, fitted, read.notes);
  report.notes = NotesOf(read.notes, Caution::kNone);
  Json groups = Json::array();
  for (const auto& [kind, group] : sums.kinds) {
    groups.push_back(GroupJson(model::ToText(kind), group));
  }
  Json json;
  json["overall"] = GroupJson("all", sums.all);
  json["groups"] = std::move(groups);
  json["rows"] = std::move(row_list);
  json.update(ValidationHead(options));
  json["of"] = "kernels";
  json["files"] = options.files;
  report.json = AnswerText(std::move(json), report);
  AnswerWithOverall(overall, report);
  return report;
}

}  // namespace trainfare::scenarios
