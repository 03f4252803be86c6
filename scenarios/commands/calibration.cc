#include "scenarios/commands/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/fit/fit_json.h"
#include "calibrate/fit/gross_misses.h"
#include "calibrate/fit/prior_fit.h"
#include "hardware/catalog/device.h"
#include "hardware/files/unit_text.h"
#include "scenarios/report/result_json.h"
#include "scenarios/validation/room_notes.h"

namespace trainfare::scenarios {
namespace {

using hardware::Plural;

Table ParameterTable(const calibrate::Fit& fit) {
  Table table;
  table.columns = {{"parameter", "parameter", Align::kLeft},
                   {"value", "value", Align::kRight},
                   {"standard error", "standard_error", Align::kRight, 1},
                   {"prior", "prior", Align::kRight, 2},
                   {"determined", "determined", Align::kLeft},
                   {"would be by", "determined_by", Align::kLeft}};
  const auto number = [](double value) {
    return Cell(fmt::format("{:.4g}", value), value);
  };
  const auto add = [&](const std::string& name,
                       const calibrate::FittedParameter& p) {
    table.Add(
        {name,
         number(p.value),
         number(p.standard_error),
         number(p.prior),
         p.determined ? "yes" : "no",
         p.determined ? Cell("-", std::string()) : Cell(p.determined_by)});
  };
  for (const auto& parameter : fit.parameters) add(parameter.name, parameter);
  if (fit.alone) add(fit.alone->name + " (alone)", *fit.alone);
  for (const auto& parameter : fit.joined) add(parameter.name, parameter);
  return table;
}

// What was found of several ranks, a row a group.
Table RankTable(const calibrate::Fit& fit) {
  Table table;
  table.title = "several ranks";
  table.columns = {{"ranks", "ranks", Align::kRight},
                   {"backend", "backend", Align::kLeft},
                   {"transport", "transport", Align::kLeft, 5},
                   {"ring step", "step_latency_s", Align::kRight},
                   {"+-", "step_latency_error_s", Align::kRight, 6},
                   {"link", "link_bytes_per_s", Align::kRight},
                   {"+-", "link_error", Align::kRight, 6},
                   {"beside", "link_beside_bytes_per_s", Align::kRight, 2},
                   {"speed", "speed", Align::kRight, 1},
                   {"share", "share", Align::kRight, 3},
                   {"+-", "share_error", Align::kRight, 6},
                   {"host", "host", Align::kDecimal, 4},
                   {"+-", "host_error", Align::kRight, 6},
                   {"scatter", "scatter", Align::kRight, 1}};
  const auto time = [](model::Seconds<> value) {
    return Cell(hardware::FormatTime(value), ToSeconds(value));
  };
  const auto link = [](const calibrate::RingFit& fitted) {
    return Cell(hardware::FormatBandwidth(fitted.ring.link),
                fitted.ring.link.base());
  };
  const auto percent = [](double share) {
    return Cell(fmt::format("{:.1f} %", 100.0 * share), share);
  };
  const auto number = [](double value) {
    return Cell(fmt::format("{:.2f}", value), value);
  };
  for (const calibrate::RankFit& group : fit.ranks) {
    const calibrate::RankNetwork& network = group.network;
    table.Add(
        {Cell(fmt::format("{}", network.ranks),
              static_cast<double>(network.ranks)),
         group.backend,
         group.transport,
         time(network.alone.ring.step_latency),
         time(network.alone.latency_error),
         link(network.alone),
         percent(network.alone.link_error),
         network.beside_timed ? link(network.beside) : Cell("-", std::string()),
         number(network.speed),
         number(group.share),
         percent(group.share_error),
         time(group.host),
         percent(group.host_error),
         group.runs.empty() ? Cell("-", std::string())
                            : percent(group.scatter)});
  }
  return table;
}

// How well the fit meets what it was made of, and what was left out of it.
void AddHeadline(const calibrate::Fit& fit, Report& report) {
  const auto headline = [&](int64_t count,
                            const std::string& of,
                            double in_sample,
                            std::optional<double> leave_one_out) {
    if (count == 0) return;
    report.headline.push_back(fmt::format(
        "{}: {}, median error {:.1f} % inside, {} left out",
        fit.name,
        of,
        100.0 * in_sample,
        leave_one_out ? fmt::format("{:.1f} %", 100.0 * *leave_one_out) : "-"));
  };
  headline(fit.provenance.runs,
           Plural(fit.provenance.runs, "run"),
           fit.in_sample_error,
           fit.LeftOutError());
  headline(fit.provenance.kernels,
           Plural(fit.provenance.kernels, "kernel") +
               (fit.provenance.kernels == 1 ? " by itself" : " by themselves"),
           fit.kernel_in_sample_error,
           fit.kernel_leave_one_out_error);
}

// As many rows are named.
constexpr size_t kNamedMisses = 3;

// The rows that the fit misses grossly, which its medians do not show.
void AddMisses(const calibrate::Fit& fit, Report& report) {
  const std::vector<calibrate::GrossMiss> misses = calibrate::GrossMisses(fit);
  if (misses.empty()) return;
  std::string rows;
  for (size_t i = 0; i < std::min(misses.size(), kNamedMisses); ++i) {
    rows += fmt::format("{}{} by {:+.1f} %",
                        i == 0 ? "" : ", ",
                        misses[i].run->label,
                        100.0 * misses[i].error);
  }
  if (misses.size() > kNamedMisses) {
    rows += fmt::format(", and {} more", misses.size() - kNamedMisses);
  }
  const bool one = misses.size() == 1;
  const double gross = calibrate::kGrossDeviations * fit.residual_scatter;
  report.warnings.emplace_back(
      fmt::format("{} {} missed by more than {:.0f} standard deviations "
                  "({:+.0f} % to {:+.0f} %): {}; {} right, and of this device?",
                  Plural(std::ssize(misses), "run"),
                  one ? "is" : "are",
                  calibrate::kGrossDeviations,
                  100.0 * std::expm1(-gross),
                  100.0 * std::expm1(gross),
                  rows,
                  one ? "is the row" : "are the rows"),
      Caution::kRowsMissed);
}

// What of the rows is doubtful however well the fit meets them, or because it
// does not meet most of them.
void AddDoubts(const calibrate::CalibrateResult& result, Report& report) {
  const calibrate::Fit& fit = *result.fit;
  constexpr double kUseless = 0.5;
  if (fit.in_sample_error > kUseless) {
    report.warnings.emplace_back(
        fmt::format("the fit misses half of its own runs by more than {:.0f} "
                    "%: are their units, batches and stacks right?",
                    100.0 * fit.in_sample_error),
        Caution::kRowsMissed);
  }
  for (const calibrate::FarApart& two : calibrate::RunsFarApart(fit)) {
    const std::string& least = two.least->label;
    const std::string& most = two.most->label;
    report.warnings.emplace_back(
        fmt::format(
            "rows of one run, {}, are {:.0f} times apart ({} and {}): "
            "is the unit of one another?",
            least == most ? least : fmt::format("{} and {}", least, most),
            two.most->measured / two.least->measured,
            hardware::FormatTime(two.least->measured),
            hardware::FormatTime(two.most->measured)),
        Caution::kRowsMissed);
  }
  if (auto note = RoomNote(result.observations)) {
    report.notes.push_back(std::move(*note));
  }
}

}  // namespace

Report CalibrationReport(const calibrate::CalibrateResult& result,
                         const Origin& origin) {
  Report report;
  report.answers = {"/fit"};
  Json json = ResultHead("trainfare.calibration/1", origin);
  json["interrupted"] = result.interrupted;
  json["fit_path"] =
      result.fit_path.empty() ? Json(nullptr) : Json(result.fit_path);
  json["kept"] = result.kept.empty() ? Json(nullptr) : Json(result.kept);
  json["records_path"] =
      result.records_path.empty() ? Json(nullptr) : Json(result.records_path);
  for (const auto& [reason, count] : result.left_out) {
    report.warnings.emplace_back(
        fmt::format("{} skipped: {}", Plural(count, "row"), reason),
        Caution::kRowsSkipped);
  }
  if (result.fit) {
    const calibrate::Fit& fit = *result.fit;
    AddHeadline(fit, report);
    AddMisses(fit, report);
    AddDoubts(result, report);
    report.tables.push_back(ParameterTable(fit));
    if (!fit.ranks.empty()) report.tables.push_back(RankTable(fit));
    if (!result.kept.empty()) {
      report.notes.push_back(result.kept);
    } else {
      report.notes.push_back(fmt::format("the fit is {}", result.fit_path));
    }
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
        result.records_path.empty()
            ? "interrupted before the first run"
            : "interrupted; what was measured is kept, run the command again "
              "to go on";
  }
  report.json = AnswerText(std::move(json), report);
  return report;
}

Report ExampleOfCalibration(const Origin& origin) {
  calibrate::Fit fit =
      calibrate::PriorFit(hardware::DeviceCatalog::Shipped().devices().front());
  fit.alone = fit.parameters.front();
  calibrate::CalibrateResult result;
  result.fit = std::move(fit);
  // Texts, and no figures that are not known.
  result.fit_path = result.kept = result.records_path = "...";
  return CalibrationReport(result, origin);
}

}  // namespace trainfare::scenarios
