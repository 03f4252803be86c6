#include "scenarios/published/published_validation.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/records/import/published_reader.h"
#include "model/error.h"
#include "scenarios/published/compared_runs.h"
#include "scenarios/published/published_files.h"
#include "scenarios/published/published_groups.h"
#include "scenarios/published/published_result.h"
#include "scenarios/published/published_rows.h"
#include "scenarios/report/result_json.h"
#include "scenarios/validation/error_summary.h"
#include "scenarios/validation/summary_json.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Published;

constexpr std::array kProtocols = {PublishedProtocol::kAsShipped,
                                   PublishedProtocol::kLeaveOneOut};

PublishedProtocol ProtocolOf(Protocol protocol) {
  if (protocol == Protocol::kLeaveOneOut) {
    return PublishedProtocol::kLeaveOneOut;
  }
  if (protocol == Protocol::kAsShipped) return PublishedProtocol::kAsShipped;
  throw UsageError(
      "--protocol: expected as-shipped or leave-one-out for published figures; "
      "every row is of a run, which is left out whole");
}

// Percent errors of a protocol, of rows that nothing was inferred for or all.
ErrorSummary Overall(const PublishedResult& result,
                     PublishedProtocol protocol) {
  std::vector<RowError> errors;
  for (const JudgedAnswers& answers : result.answers) {
    if (answers.protocol != protocol) continue;
    for (const size_t i : result.rows) {
      const auto& error = answers.errors[i];
      if (!error || error->measure != PublishedMeasure::kPercent) continue;
      errors.push_back({error->error, error->covered});
    }
  }
  return Summarise(errors);
}

// How many answers with an 80 % interval have it around the figure, whatever
// they are of; those without one are counted apart.
struct Coverage {
  int64_t with_interval = 0;
  int64_t inside = 0;
  int64_t without = 0;
};

Coverage CoverageOf(const PublishedResult& result, PublishedProtocol protocol) {
  Coverage coverage;
  for (const JudgedAnswers& answers : result.answers) {
    if (answers.protocol != protocol) continue;
    for (const size_t i : result.rows) {
      const auto& error = answers.errors[i];
      if (!error || error->measure == PublishedMeasure::kExact ||
          error->measure == PublishedMeasure::kOutcome) {
        continue;
      }
      if (!error->covered) {
        ++coverage.without;
        continue;
      }
      ++coverage.with_interval;
      if (*error->covered) ++coverage.inside;
    }
  }
  return coverage;
}

Json ToJson(const Coverage& coverage) {
  return {{"with_interval", coverage.with_interval},
          {"inside", coverage.inside},
          {"without_interval", coverage.without}};
}

std::string CoverageLine(std::string_view name, const Coverage& of) {
  const double share = of.with_interval == 0
                           ? 0.0
                           : static_cast<double>(of.inside) /
                                 static_cast<double>(of.with_interval);
  return fmt::format(
      "80 % intervals {}: {} of {} rows inside ({:.0f} %), {} "
      "without an interval",
      name,
      of.inside,
      of.with_interval,
      100.0 * share,
      of.without);
}

// Bounds, outcomes and counts that the answer is past, each by its row.
void NameWrong(const PublishedResult& result,
               const JudgedAnswers& answers,
               Report& report) {
  for (const size_t i : result.rows) {
    const auto& error = answers.errors[i];
    const PublishedPrediction& prediction = answers.predictions.rows[i];
    if (!error || error->right || prediction.checks_data ||
        error->measure == PublishedMeasure::kPercent ||
        error->measure == PublishedMeasure::kPoints) {
      continue;
    }
    const calibrate::PublishedRow& row = result.published.rows[i];
    report.notes.push_back(
        fmt::format("{}: {} is wrong: {} for {}",
                    ToText(answers.protocol),
                    row.id,
                    PublishedAnswerText(row, prediction.answer),
                    row.value.text));
  }
}

// Every pair of devices that a table orders, under each protocol.
Json OrdersJson(const PublishedResult& result) {
  Json orders = Json::array();
  for (const JudgedAnswers& answers : result.answers) {
    for (const PublishedRank& rank : answers.ranks) {
      const auto label = [&](size_t row) {
        return result.published.rows[row].id;
      };
      orders.push_back({{"protocol", ToText(answers.protocol)},
                        {"table", rank.table},
                        {"quantity", rank.quantity},
                        {"first", rank.first},
                        {"second", rank.second},
                        {"right", rank.right},
                        {"first_row", label(rank.rows[0])},
                        {"second_row", label(rank.rows[1])}});
    }
  }
  return orders;
}

void AddNotes(const PublishedResult& result, Report& report) {
  report.notes.emplace_back(
      "as-shipped: what `predict` answers for FILE.yaml#run; leave-one-out: "
      "the same with a fit to the other runs of the device in its document, "
      "without any figure of the run or its twin");
  report.notes.emplace_back(
      "not \"stated\": rows of whose run or workload something is assumed "
      "that moves the answer (model, batch, length, samples, precision, "
      "optimizer, device); limits are about all");
  report.notes.emplace_back(
      "every row of a group is in one of its lines, by what its error is in; a "
      "limit in percent is of errors in percent, and what is wrong misses "
      "whatever limit its group has");
  for (const JudgedAnswers& answers : result.answers) {
    NameWrong(result, answers, report);
    for (const PublishedRank& rank : answers.ranks) {
      if (rank.right) continue;
      report.notes.push_back(
          fmt::format("{}: order of {} and {} by {} in {} is wrong",
                      ToText(answers.protocol),
                      rank.first,
                      rank.second,
                      rank.quantity,
                      rank.table));
    }
  }
  std::map<std::string, int64_t> reasons;
  for (const size_t i : result.rows) {
    const auto& p = result.answers.front().predictions.rows[i];
    if (!p.reason.empty()) ++reasons[p.reason];
  }
  for (const auto& [reason, count] : reasons) {
    report.notes.emplace_back(
        fmt::format(
            "{} not predicted: {}", hardware::Plural(count, "row"), reason),
        Caution::kRowsSkipped);
  }
}

// Also says in the report how many are the best.
Json ChoicesJson(const PublishedResult& result,
                 PublishedProtocol protocol,
                 const DevicePrices& prices,
                 Report& report) {
  std::vector<MeasuredAnswer> runs;
  for (const JudgedAnswers& answers : result.answers) {
    if (answers.protocol != protocol) continue;
    runs =
        MeasuredRuns(result.published, result.rows, answers.predictions.rows);
  }
  const std::vector<MeasuredChoice> choices = ChoicesOf(runs, prices.of_device);
  if (!choices.empty()) report.notes.emplace_back(ChoiceNote(choices));
  return ToJson(choices);
}

}  // namespace

Report ValidatePublished(const ValidateOptions& options) {
  const PublishedProtocol protocol = ProtocolOf(options.protocol);
  const std::string folder = FolderOf(options.files.front());
  for (const std::string& file : options.files) {
    if (file != FolderOf(file)) calibrate::RequirePublished(file);
  }
  const Published published = calibrate::LoadPublished(folder);
  PublishedResult result{published, RowsOf(published, options.files), {}};
  for (const PublishedProtocol one : kProtocols) {
    result.answers.push_back(AnswersOf(published, result.rows, one));
  }
  Report report;
  Json groups = Json::array();
  Json checks = Json::array();
  LimitCount limits;
  report.tables.push_back(RowTable(result));
  report.tables.push_back(GroupTable(result, groups, limits));
  report.tables.push_back(CheckTable(result, checks));
  AddNotes(result, report);
  const ErrorSummary shipped = Overall(result, PublishedProtocol::kAsShipped);
  const ErrorSummary left_out =
      Overall(result, PublishedProtocol::kLeaveOneOut);
  report.headline.push_back(fmt::format(
      "{} rows of {}: {} of {} limits met; median error as shipped {:.1f} % of "
      "{}, left out {:.1f} % of {}",
      result.rows.size(),
      folder,
      limits.met,
      limits.set,
      shipped.median,
      shipped.count,
      left_out.median,
      left_out.count));
  const Coverage shipped_coverage =
      CoverageOf(result, PublishedProtocol::kAsShipped);
  const Coverage left_out_coverage =
      CoverageOf(result, PublishedProtocol::kLeaveOneOut);
  report.headline.push_back(CoverageLine("as shipped", shipped_coverage));
  report.headline.push_back(CoverageLine("left out", left_out_coverage));
  const ErrorSummary& overall =
      protocol == PublishedProtocol::kAsShipped ? shipped : left_out;
  Json json;
  json["overall"] = ToJson(overall);
  json["intervals"] = {{"as-shipped", ToJson(shipped_coverage)},
                       {"leave-one-out", ToJson(left_out_coverage)}};
  json["groups"] = std::move(groups);
  json["orders"] = OrdersJson(result);
  json["data_checks"] = std::move(checks);
  json["rows"] = Json::array();
  for (const size_t i : result.rows) json["rows"].push_back(RowJson(result, i));
  const DevicePrices prices = ShippedDevicePrices();
  json["choices"] = ChoicesJson(result, protocol, prices, report);
  json.update(ValidationHead(options, prices.sources));
  json["protocol"] = ToText(protocol);
  json["files"] = options.files;
  json["limits"] = limits.set;
  json["limits_met"] = limits.met;
  report.json = AnswerText(std::move(json), report);
  AnswerWithOverall(overall, report);
  return report;
}

}  // namespace trainfare::scenarios
