#include "scenarios/kernel_validation.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "calibrate/measurement.h"
#include "calibrate/predictor.h"
#include "calibrate/step_model.h"
#include "hardware/device.h"
#include "hardware/unit_text.h"
#include "model/error.h"
#include "model/kernels.h"
#include "scenarios/internal/result_json.h"
#include "scenarios/internal/summary_json.h"
#include "scenarios/predict.h"

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
    const calibrate::Fit* fit = fits_.Of(device);
    return predictors_
        .emplace(reported_name,
                 fit != nullptr ? Predictor(device, *fit) : Predictor(device))
        .first->second;
  }

 private:
  static hardware::Device Find(const std::string& name) {
    hardware::Device host = hardware::HostCpu();
    return calibrate::IsDevice(host, name)
               ? host
               : hardware::DeviceCatalog::Shipped().Find(name);
  }

  Fits fits_;
  std::map<std::string, Predictor> predictors_;
};

struct Row {
  const MeasuredKernel* measured = nullptr;
  Seconds<> predicted;

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
    sum += predictor.KernelTime(measured.workload, measured.phase, kernel);
  }
  return sum;
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

Cell TimeCell(Seconds<> time) {
  return {hardware::FormatTime(time), ToSeconds(time)};
}
Cell ErrorCell(double error) {
  return {fmt::format("{:+.1f} %", error), error};
}

Table RowTable(const std::vector<Row>& rows) {
  Table table;
  table.columns = {{"operation", "operation", Align::kLeft},
                   {"phase", "phase", Align::kLeft},
                   {"kind", "kind", Align::kLeft},
                   {"run", "workload", Align::kLeft},
                   {"extents", "extents", Align::kRight},
                   {"a step", "per_step", Align::kRight},
                   {"measured", "measured_s", Align::kRight},
                   {"predicted", "predicted_s", Align::kRight},
                   {"error", "error_percent", Align::kDecimal}};
  for (const Row& row : rows) {
    const MeasuredKernel& m = *row.measured;
    table.Add(
        {m.operation,
         std::string(model::ToText(m.phase)),
         std::string(model::ToText(m.kind)),
         fmt::format("{} {} {} x {}",
                     m.workload.architecture.name,
                     model::ToText(m.workload.precision),
                     m.workload.batch,
                     m.workload.sequence_length),
         Extents(m),
         Cell(fmt::format("{}", m.per_step), static_cast<double>(m.per_step)),
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

  void Add(const Row& row) {
    errors.push_back({row.error(), false});
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
  // Of the whole step's time, so that the kinds' misses add up to the step's.
  const double moves =
      100.0 * ((group.predicted - group.measured) / all_measured);
  return {
      name,
      Cell(fmt::format("{}", errors.count), static_cast<double>(errors.count)),
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
                   {"kernels", "n", Align::kRight},
                   {"measured", "measured_per_step_s", Align::kRight},
                   {"of the step", "share_percent", Align::kDecimal},
                   {"predicted", "predicted_per_step_s", Align::kRight},
                   {"error", "error_percent", Align::kDecimal},
                   {"moves the step", "step_error_percent", Align::kDecimal},
                   {"median of one", "median_percent", Align::kDecimal}};
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
  json.erase("coverage");  // a kernel by itself has no interval
  json["measured_per_step_s"] = ToSeconds(group.measured);
  json["predicted_per_step_s"] = ToSeconds(group.predicted);
  return json;
}

Json RowJson(const Row& row) {
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
  if (options.protocol != Protocol::kAsShipped) {
    throw UsageError(
        "--protocol: kernels by themselves are compared with the fits at hand; "
        "leave it out");
  }
  for (const FailIf& limit : options.fail_if) {
    if (limit.metric == "coverage") {
      throw UsageError(
          "--fail-if: kernels by themselves have no interval to cover them");
    }
  }
  const Read read = ReadKernels(options.files);
  Predictors predictors;
  std::vector<Row> rows;
  Sums sums;
  Json row_list = Json::array();
  for (const MeasuredKernel& measured : read.kernels) {
    const Row row{&measured,
                  PredictedTime(predictors.Of(measured.device), measured)};
    sums.kinds[measured.kind].Add(row);
    sums.all.Add(row);
    row_list.push_back(RowJson(row));
    rows.push_back(row);
  }
  const ErrorSummary overall = Summarise(sums.all.errors);

  Report report;
  report.headline.push_back(fmt::format(
      "{} operations timed by themselves: together {} a step, predicted {} "
      "({:+.1f} %); median error of one {:.1f} %",
      overall.count,
      hardware::FormatTime(sums.all.measured),
      hardware::FormatTime(sums.all.predicted),
      100.0 * (sums.all.predicted / sums.all.measured - 1.0),
      overall.median));
  report.tables.push_back(RowTable(rows));
  report.tables.push_back(KindTable(sums));
  report.notes = read.notes;
  report.notes.emplace_back(
      "by the formula of the fit at hand, or of the datasheet, without what a "
      "fit learns from whole runs nearby");
  Json groups = Json::array();
  for (const auto& [kind, group] : sums.kinds) {
    groups.push_back(GroupJson(model::ToText(kind), group));
  }
  Json json;
  json["overall"] = GroupJson("all", sums.all);
  json["groups"] = std::move(groups);
  json["rows"] = std::move(row_list);
  json["schema"] = "trainfare.validation/1";
  json["tool_version"] = Version();
  json["of"] = "kernels";
  json["files"] = options.files;
  json["notes"] = report.notes;
  report.json = json.dump(2);
  CheckLimits(options.fail_if, overall, report);
  return report;
}

}  // namespace trainfare::scenarios
