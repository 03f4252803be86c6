#include "scenarios/calibration.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "scenarios/internal/result_json.h"

namespace trainfare::scenarios {
namespace {

// As a shell reports a program that SIGINT ended.
constexpr int kInterrupted = 130;

Table ParameterTable(const calibrate::Fit& fit) {
  Table table;
  table.columns = {{"parameter", "parameter", Align::kLeft},
                   {"value", "value", Align::kRight},
                   {"standard error", "standard_error", Align::kRight},
                   {"prior", "prior", Align::kRight},
                   {"determined", "determined", Align::kLeft},
                   {"would be by", "determined_by", Align::kLeft}};
  const auto number = [](double value) {
    return Cell(fmt::format("{:.4g}", value), value);
  };
  for (const calibrate::FittedParameter& p : fit.parameters) {
    table.Add(
        {p.name,
         number(p.value),
         number(p.standard_error),
         number(p.prior),
         p.determined ? "yes" : "no",
         p.determined ? Cell("-", std::string()) : Cell(p.determined_by)});
  }
  return table;
}

}  // namespace

Report CalibrationReport(const calibrate::CalibrateResult& result) {
  Report report;
  Json json = ResultHead("trainfare.calibration/1");
  json["interrupted"] = result.interrupted;
  json["fit_path"] = result.fit ? Json(result.fit_path) : Json(nullptr);
  json["records_path"] =
      result.records_path.empty() ? Json(nullptr) : Json(result.records_path);
  if (result.fit) {
    const calibrate::Fit& fit = *result.fit;
    report.headline.push_back(fmt::format(
        "{}: {} runs, median error {:.1f} % inside, {:.1f} % left out",
        fit.name,
        fit.provenance.runs,
        100.0 * fit.in_sample_error,
        100.0 * fit.leave_one_out_error));
    report.tables.push_back(ParameterTable(fit));
    report.notes.push_back(fmt::format("the fit is {}", result.fit_path));
    json["fit"] = Json::parse(calibrate::FitJson(fit));
  } else {
    report.headline.emplace_back("nothing was fitted");
    report.tables.push_back(ParameterTable({}));
    json["fit"] = nullptr;
  }
  if (!result.records_path.empty()) {
    report.notes.push_back(
        fmt::format("the runs are in {}", result.records_path));
  }
  if (result.interrupted) {
    report.exit_code = kInterrupted;
    report.complaint =
        "interrupted; what was measured is kept, run the command again to go "
        "on";
  }
  report.json = json.dump(2);
  return report;
}

}  // namespace trainfare::scenarios
