#include "scenarios/published/published_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "calibrate/records/statistics.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "scenarios/report/result_json.h"

namespace trainfare::scenarios {
namespace {

namespace fs = std::filesystem;
using model::InputError;

// What is asked of a group. Absent: shown without a limit.
struct Limit {
  std::optional<double> mean;
  std::optional<double> median;
  std::optional<double> max;
  bool all_right = false;
};

struct GroupInfo {
  std::string_view name;
  PublishedMeasure measure;
  Limit limit;
  std::string_view asked;  // in words
};

constexpr auto kPercent = PublishedMeasure::kPercent;
constexpr auto kPoints = PublishedMeasure::kPoints;
constexpr auto kExact = PublishedMeasure::kExact;
constexpr std::string_view kNoLimit = "none set";

const std::vector<GroupInfo>& Groups() {
  static const std::vector<GroupInfo> groups = {
      {"GPU run and step times",
       kPercent,
       {{}, 5, 15},
       "median 5 %, worst 15 %"},
      {"emotion, baseline and optimised",
       kPercent,
       {{}, 5, 15},
       "median 5 %, worst 15 %"},
      {"Adan steps", kPercent, {{}, 5, 15}, "median 5 %, worst 15 %"},
      {"Adan active ratio", kPoints, {}, kNoLimit},
      {"Adan kernels by grid", kPoints, {}, kNoLimit},
      {"kernels of a step", kPercent, {}, kNoLimit},
      {"TPU run times", kPercent, {{}, 8, {}}, "median 8 %"},
      {"data parallel", kPercent, {{}, {}, 10}, "worst 10 %"},
      {"layers and all-reduces", kPercent, {}, kNoLimit},
      {"recursion", kExact, {{}, {}, {}, true}, "exact"},
      {"Trainium step", kPercent, {{}, {}, 10}, "worst 10 %"},
      {"Trainium run times", kPercent, {}, kNoLimit},
      {"utilisation by batch", kPoints, {4, {}, {}}, "mean 4 points"},
      {"SambaNova", kPercent, {{}, {}, 10}, "worst 10 %"},
      {"Cerebras", kPercent, {{}, {}, 10}, "worst 10 %"},
      {"Groq", kPercent, {{}, {}, 10}, "worst 10 %"},
      {"Graphcore", kPercent, {}, kNoLimit},
      {"energy", kPercent, {{}, {}, 10}, "worst 10 %"},
      {"cost", kExact, {{}, {}, {}, true}, "exact"},
      {"score", kExact, {{}, {}, {}, true}, "exact"},
      {"launches", kExact, {{}, {}, {}, true}, "exact"},
      {"fits", PublishedMeasure::kOutcome, {{}, {}, {}, true}, "all right"},
      {"peak memory", kPercent, {}, kNoLimit},
      {"device facts", kPercent, {}, kNoLimit},
      {"speed-ups", PublishedMeasure::kRange, {}, kNoLimit},
      {"profiler ratios", PublishedMeasure::kRange, {}, kNoLimit},
      {"accuracy and occupancy", kPercent, {}, kNoLimit},
      {"ranking by time",
       PublishedMeasure::kOutcome,
       {{}, {}, {}, true},
       "same order"},
      {"ranking by cost",
       PublishedMeasure::kOutcome,
       {{}, {}, {}, true},
       "same order"},
  };
  return groups;
}

const GroupInfo& InfoOf(std::string_view name) {
  for (const GroupInfo& info : Groups()) {
    if (info.name == name) return info;
  }
  ENSURE(false, "a group without a line");
}

std::string_view GroupOf(const PublishedRow& row) {
  static const std::map<std::string, std::string_view> names = {
      {"accuracy", "accuracy and occupancy"},
      {"active_ratio", "Adan active ratio"},
      {"adan_kernels", "Adan kernels by grid"},
      {"adan_steps", "Adan steps"},
      {"baseline_optimised", "emotion, baseline and optimised"},
      {"cerebras", "Cerebras"},
      {"cost", "cost"},
      {"data_parallel", "data parallel"},
      {"energy", "energy"},
      {"facts", "device facts"},
      {"fits", "fits"},
      {"gpu_run_times", "GPU run and step times"},
      {"gpu_step_times", "GPU run and step times"},
      {"graphcore", "Graphcore"},
      {"groq", "Groq"},
      {"kernel_times", "kernels of a step"},
      {"launches", "launches"},
      {"memory", "peak memory"},
      {"occupancy", "accuracy and occupancy"},
      {"profile_ratios", "profiler ratios"},
      {"recursion", "recursion"},
      {"sambanova", "SambaNova"},
      {"score", "score"},
      {"speedups", "speed-ups"},
      {"tpu_run_times", "TPU run times"},
      {"trainium_run_times", "Trainium run times"},
      {"trainium_step", "Trainium step"},
      {"utilisation_by_batch", "utilisation by batch"},
  };
  if (row.group == "recursion" &&
      (row.quantity == "layer_time" || row.quantity == "allreduce_time")) {
    return "layers and all-reduces";
  }
  // Times are steps; of this group only the ratio is a share.
  if (row.group == "active_ratio" && row.quantity != "active_ratio") {
    return "Adan steps";
  }
  return names.at(row.group);
}

std::string_view UnitOf(std::string_view quantity) {
  static const std::map<std::string_view, std::string_view> units = {
      {"achieved_flops", "FLOP/s"},
      {"active_time", "s"},
      {"allreduce_bandwidth", "B/s"},
      {"allreduce_time", "s"},
      {"arithmetic_intensity", "FLOP/B"},
      {"backward_time", "s"},
      {"billing_unit_price", "USD"},
      {"bytes_per_gradient", "B"},
      {"bytes_per_parameter", "B"},
      {"cost", "USD"},
      {"energy", "J"},
      {"epoch_cost", "USD"},
      {"epoch_time", "s"},
      {"flops_per_step", "FLOP"},
      {"forward_time", "s"},
      {"hbm_traffic", "B"},
      {"host_memory", "B"},
      {"kernel_time", "s"},
      {"latency", "s"},
      {"layer_time", "s"},
      {"mean_power", "W"},
      {"memory_capacity", "B"},
      {"memory_used", "B"},
      {"optimizer_time", "s"},
      {"peak_bandwidth", "B/s"},
      {"peak_compute", "FLOP/s"},
      {"peak_memory", "B"},
      {"price", "USD/s"},
      {"run_time", "s"},
      {"step_time", "s"},
      {"swap", "B"},
      {"throughput", "samples/s"},
      {"token_rate", "tokens/s"}};
  const auto found = units.find(quantity);
  return found == units.end() ? "1" : found->second;
}

// As a person reads a figure in base units.
std::string FigureText(std::string_view quantity, double value) {
  const std::string_view unit = UnitOf(quantity);
  if (unit == "s") return hardware::FormatTime(model::Seconds<>(value));
  if (unit == "B") return hardware::FormatDecimalBytes(model::Bytes<>(value));
  if (unit == "J") return hardware::FormatEnergy(model::Joules<>(value));
  if (unit == "USD") return hardware::FormatMoney(model::Usd<>(value));
  if (unit == "B/s") {
    return hardware::FormatBandwidth(model::BytesPerSecond<>(value));
  }
  if (unit == "FLOP") return hardware::FormatFlops(model::Flops<>(value));
  if (unit == "FLOP/s") {
    return hardware::FormatComputeRate(model::FlopsPerSecond<>(value));
  }
  if (unit == "USD/s") {
    return hardware::FormatPrice(model::UsdPerSecond<>(value));
  }
  if (unit == "W") return hardware::FormatPower(model::Watts<>(value));
  if (quantity.starts_with("utilisation.") || quantity == "mfu" ||
      quantity == "active_ratio" || quantity == "gemm_share") {
    return fmt::format("{:.2f} %", value * 100.0);
  }
  if (unit == "1") return fmt::format("{:.4g}", value);
  return fmt::format("{:.5g} {}", value, unit);
}

bool Counts(const PublishedRow& row) {
  return row.use == PublishedUse::kFit || row.use == PublishedUse::kCheck;
}

// One predicted row.
struct Judged {
  const PublishedRow* row = nullptr;
  const PublishedPrediction* prediction = nullptr;
  std::string_view group;
  PublishedError error;
  // Whether the group's limit is about it: what a model may be fitted to, and
  // every figure where exactness is asked.
  bool counted = false;
};

struct Summary {
  ErrorSummary errors;
  int64_t right = 0;
  bool met = true;
  bool limited = false;
  std::string verdict;
};

Summary Summarise(const GroupInfo& info, const std::vector<PublishedError>& e) {
  Summary s;
  std::vector<RowError> errors;
  for (const PublishedError& error : e) {
    errors.push_back({error.error, error.right});
    if (error.right) ++s.right;
  }
  s.errors = scenarios::Summarise(errors);
  std::vector<std::string> missed;
  const auto check = [&](std::string_view what,
                         const std::optional<double>& limit,
                         double value) {
    if (!limit) return;
    s.limited = true;
    if (value <= *limit) return;
    s.met = false;
    missed.push_back(fmt::format("{} by {:.1f}", what, value - *limit));
  };
  check("mean", info.limit.mean, s.errors.mape);
  check("median", info.limit.median, s.errors.median);
  check("worst", info.limit.max, s.errors.max);
  if (info.limit.all_right) {
    s.limited = true;
    const int64_t wrong = s.errors.count - s.right;
    if (wrong > 0) {
      s.met = false;
      missed.push_back(fmt::format("{} of {} wrong", wrong, s.errors.count));
    }
  }
  if (s.errors.count == 0) {
    s.verdict = "only checked";
    s.met = false;
  } else if (!s.limited) {
    s.verdict = std::string("-");
  } else {
    s.verdict =
        s.met ? "met" : fmt::format("missed: {}", fmt::join(missed, ", "));
  }
  return s;
}

PublishedMeasure MeasureOf(const PublishedRow& row) {
  const PublishedMeasure of_group = InfoOf(GroupOf(row)).measure;
  if (row.value.kind == PublishedValue::Kind::kRange) {
    return PublishedMeasure::kRange;
  }
  // Shares of a step in a group of times.
  if (of_group == kPercent && (row.quantity.starts_with("utilisation.") ||
                               row.quantity == "gemm_share")) {
    return kPoints;
  }
  return of_group;
}

std::string MeasureText(PublishedMeasure measure) {
  switch (measure) {
    case PublishedMeasure::kPercent:
      return "percent";
    case PublishedMeasure::kPoints:
      return "points";
    case PublishedMeasure::kExact:
      return "exact";
    case PublishedMeasure::kOutcome:
      return "outcome";
    case PublishedMeasure::kRange:
      return "range";
  }
  ENSURE(false, "a measure without a name");
}

std::string ErrorText(const PublishedError& error) {
  switch (error.measure) {
    case PublishedMeasure::kPercent:
      return fmt::format("{:+.1f} %", error.error);
    case PublishedMeasure::kPoints:
      return fmt::format("{:+.1f} points", error.error);
    case PublishedMeasure::kExact:
    case PublishedMeasure::kOutcome:
      return error.right ? "right" : "wrong";
    case PublishedMeasure::kRange:
      return error.right ? "overlaps" : "apart";
  }
  ENSURE(false, "a measure without words");
}

std::string PredictedText(const PublishedRow& row,
                          const PublishedPrediction& prediction) {
  if (prediction.fits) return *prediction.fits ? "fits" : "does not fit";
  std::string text = FigureText(row.quantity, *prediction.value);
  if (prediction.high) {
    text += fmt::format(" .. {}", FigureText(row.quantity, *prediction.high));
  }
  return text;
}

// The table that a row stands in: "table 4.16" of its document.
std::vector<std::string> TablesOf(const PublishedRow& row) {
  std::vector<std::string> tables;
  for (size_t i = 0; i < row.refs.size(); ++i) {
    // Records are "s003_t4_16_devices_overall/...": the document first.
    tables.push_back(
        fmt::format("{}, {}", row.records[i].substr(0, 4), row.refs[i]));
  }
  return tables;
}

std::string ToText(PublishedProtocol protocol) {
  return protocol == PublishedProtocol::kLeaveOneOut ? "leave-one-out"
                                                     : "in-sample";
}

PublishedProtocol ProtocolOf(Protocol protocol) {
  if (protocol == Protocol::kLeaveOneOut) {
    return PublishedProtocol::kLeaveOneOut;
  }
  if (protocol == Protocol::kInSample) return PublishedProtocol::kInSample;
  throw UsageError(
      "--protocol: expected leave-one-out or in-sample for published figures; "
      "every row is of a run, which is left out whole");
}

bool IsYaml(const fs::path& path) { return path.extension() == ".yaml"; }

std::string FolderOf(const std::string& file) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) return file;
  const fs::path parent = fs::path(file).parent_path();
  return parent.empty() ? "." : parent.string();
}

double MetricOf(const ErrorSummary& s, std::string_view metric) {
  if (metric == "mape") return s.mape;
  if (metric == "median") return s.median;
  if (metric == "p90") return s.p90;
  if (metric == "max") return s.max;
  if (metric == "bias") return s.bias;
  return s.coverage;
}

void CheckLimits(const ValidateOptions& options,
                 const ErrorSummary& overall,
                 Report& report) {
  std::vector<std::string> passed;
  for (const FailIf& limit : options.fail_if) {
    const double value = MetricOf(overall, limit.metric);
    const bool at = limit.inclusive && value == limit.limit;
    if (!at && !(limit.above ? value > limit.limit : value < limit.limit)) {
      continue;
    }
    passed.push_back(fmt::format(
        "{} is {:.2f} %, limit {}", limit.metric, value, limit.text));
  }
  if (passed.empty()) return;
  report.exit_code = kLimitPassed;
  report.complaint = fmt::format("--fail-if: {}", fmt::join(passed, "; "));
}

Json ToJson(const ErrorSummary& s) {
  Json json;
  const bool any = s.count > 0;
  json["mape"] = any ? Json(s.mape) : Json(nullptr);
  json["median"] = any ? Json(s.median) : Json(nullptr);
  json["p90"] = any ? Json(s.p90) : Json(nullptr);
  json["max"] = any ? Json(s.max) : Json(nullptr);
  json["n"] = s.count;
  json["bias"] = any ? Json(s.bias) : Json(nullptr);
  json["right"] = any ? Json(s.coverage) : Json(nullptr);
  return json;
}

std::vector<Cell> GroupCells(const GroupInfo& info,
                             const Summary& s,
                             int64_t checked,
                             int64_t checked_right) {
  const auto count = [](int64_t value) {
    return Cell(fmt::format("{}", value), static_cast<double>(value));
  };
  const bool numbers = info.measure == kPercent || info.measure == kPoints;
  std::vector<Cell> cells = {std::string(info.name), count(s.errors.count)};
  for (const double value :
       {s.errors.median, s.errors.mape, s.errors.max, s.errors.bias}) {
    if (!numbers || s.errors.count == 0) {
      cells.push_back(Cell("-", std::string()));
    } else {
      cells.push_back(
          Cell(fmt::format(
                   "{:.1f} {}", value, info.measure == kPercent ? "%" : "pt"),
               value));
    }
  }
  cells.push_back(fmt::format("{} of {}", s.right, s.errors.count));
  cells.push_back(checked == 0
                      ? std::string("-")
                      : fmt::format("{} of {}", checked_right, checked));
  cells.push_back(std::string(info.asked));
  cells.push_back(s.verdict);
  return cells;
}

}  // namespace

std::optional<PublishedError> ErrorOf(const Published& published,
                                      const PublishedRow& row,
                                      const PublishedPrediction& prediction) {
  PublishedError error;
  error.measure = MeasureOf(row);
  const PublishedValue& printed = row.value;
  if (printed.kind == PublishedValue::Kind::kOutcome) {
    if (!prediction.fits) return std::nullopt;
    error.right = *prediction.fits == (printed.text == "fits");
    return error;
  }
  if (!prediction.value) return std::nullopt;
  const double value = *prediction.value;
  const double high = prediction.high.value_or(value);
  const bool of_batches =
      row.quantity == "largest_batch" || row.quantity == "failing_batch";
  // "at least": nothing larger was tried.
  if (of_batches && printed.kind != PublishedValue::Kind::kAtLeast) {
    // Between the largest that ran and the next that was tried; twice the
    // largest where that is not printed.
    const bool largest = row.quantity == "largest_batch";
    const std::string part = row.part ? "/" + *row.part : "";
    const PublishedRow* failing =
        published.Find(row.run + "/failing_batch" + part);
    const double next =
        failing != nullptr ? failing->value.low : 2 * printed.low;
    error.right =
        largest ? value >= printed.low && value < next : value < printed.low;
    error.error = 100.0 * (value / printed.low - 1.0);
    return error;
  }
  // Printed digits are decimal: the last of them is not lost to rounding.
  const double known = printed.tolerance * (1 + 1e-9);
  switch (printed.kind) {
    case PublishedValue::Kind::kAtLeast:
      error.right = high >= printed.low - known;
      break;
    case PublishedValue::Kind::kAtMost:
      error.right = value <= printed.high + known;
      break;
    case PublishedValue::Kind::kRange:
      error.right =
          value <= printed.high + known && high >= printed.low - known;
      break;
    default:
      error.right = value <= printed.low + known && high >= printed.low - known;
      // Some figures are cut at their last digit instead of rounded.
      if (error.measure == PublishedMeasure::kExact && value > printed.low) {
        error.right = value < printed.low + 2 * known;
      }
      break;
  }
  // A bound that holds is no error; else how far past it.
  const double nearest = std::clamp(printed.low, value, high);
  const bool bound = printed.kind != PublishedValue::Kind::kNumber;
  if (bound && error.right) return error;
  const double against =
      bound && nearest > printed.high ? printed.high : printed.low;
  error.error = error.measure == PublishedMeasure::kPoints
                    ? 100.0 * (nearest - against)
                    : 100.0 * (nearest / against - 1.0);
  return error;
}

std::vector<PublishedRank> RankPublished(
    const Published& published,
    const std::vector<PublishedPrediction>& predictions) {
  constexpr double kGap = 0.05;
  struct Entry {
    const PublishedRun* run;
    double printed;
    double predicted;
  };
  std::map<std::pair<std::string, std::string>, std::vector<Entry>> tables;
  std::map<std::string, double> times;  // predicted, by run
  for (size_t i = 0; i < published.rows.size(); ++i) {
    if (published.rows[i].quantity == "run_time" && predictions[i].value) {
      times[published.rows[i].run] = *predictions[i].value;
    }
  }
  for (const PublishedRow& row : published.rows) {
    const bool time = row.quantity == "run_time";
    if ((!time && row.quantity != "cost") || !Counts(row)) continue;
    if (row.value.kind != PublishedValue::Kind::kNumber) continue;
    const PublishedRun& run = published.RunOf(row);
    const auto predicted = times.find(run.name);
    if (!run.device || predicted == times.end()) continue;
    if (!time && !run.price) continue;
    const double ours = time ? predicted->second
                             : predicted->second * run.price->base() *
                                   static_cast<double>(run.device_count);
    for (const std::string& table : TablesOf(row)) {
      tables[{table, row.quantity}].push_back({&run, row.value.low, ours});
    }
  }
  std::vector<PublishedRank> ranks;
  for (const auto& [key, entries] : tables) {
    for (size_t a = 0; a < entries.size(); ++a) {
      for (size_t b = 0; b < entries.size(); ++b) {
        const Entry& first = entries[a];
        const Entry& second = entries[b];
        if (first.run->device == second.run->device ||
            second.printed <= first.printed * (1 + kGap)) {
          continue;
        }
        ranks.push_back({key.first,
                         key.second,
                         first.run->name,
                         second.run->name,
                         first.predicted < second.predicted});
      }
    }
  }
  return ranks;
}

bool IsPublished(const std::vector<std::string>& files) {
  size_t published = 0;
  for (const std::string& file : files) {
    std::error_code ignored;
    if (fs::is_directory(file, ignored) || IsYaml(file)) ++published;
  }
  if (published == 0) return false;
  if (published < files.size()) {
    throw UsageError(
        "expected measurement files or published figures, got both");
  }
  for (const std::string& file : files) {
    if (hardware::YamlFiles(FolderOf(file)).empty()) {
      throw InputError(
          file,
          0,
          0,
          "expected measurements (.jsonl, .csv) or a folder of published "
          "figures, got a folder without any .yaml");
    }
    if (FolderOf(file) != FolderOf(files.front())) {
      throw UsageError(
          "expected published figures of one folder: runs have one name in all "
          "its files");
    }
  }
  return true;
}

Report ValidatePublished(const ValidateOptions& options) {
  const PublishedProtocol protocol = ProtocolOf(options.protocol);
  const std::string folder = FolderOf(options.files.front());
  const Published published = LoadPublished(folder);
  const std::vector<PublishedPrediction> predictions =
      PredictPublished(published, protocol);

  // A file stands for its rows; the other files' runs are still seen.
  const auto asked = [&](const PublishedRow& row) {
    const std::string file = row.position.substr(0, row.position.find(".yaml"));
    return std::any_of(
        options.files.begin(), options.files.end(), [&](const auto& name) {
          return !IsYaml(name) ||
                 fs::path(file).stem() == fs::path(name).stem();
        });
  };

  std::vector<Judged> judged;
  Json skipped = Json::array();
  std::map<std::string, int64_t> reasons;
  for (size_t i = 0; i < published.rows.size(); ++i) {
    const PublishedRow& row = published.rows[i];
    if (!asked(row)) continue;
    const auto error = ErrorOf(published, row, predictions[i]);
    if (!error) {
      ++reasons[predictions[i].reason];
      skipped.push_back({{"label", row.id},
                         {"group", GroupOf(row)},
                         {"printed", row.value.text},
                         {"use", ToText(row.use)},
                         {"reason", predictions[i].reason}});
      continue;
    }
    Judged j{&row, &predictions[i], GroupOf(row), *error, false};
    const PublishedMeasure measure = InfoOf(j.group).measure;
    j.counted = row.use == PublishedUse::kFit ||
                (measure != kPercent && measure != kPoints);
    judged.push_back(j);
  }

  Report report;
  Table rows;
  rows.columns = {{"row", "label", Align::kLeft},
                  {"group", "group", Align::kLeft},
                  {"device", "device", Align::kLeft},
                  {"quantity", "quantity", Align::kLeft},
                  {"printed", "printed_base", Align::kRight},
                  {"predicted", "predicted_base", Align::kRight},
                  {"error", "error", Align::kDecimal},
                  {"use", "use", Align::kLeft},
                  {"from", "how", Align::kLeft}};
  Json row_list = Json::array();
  // Every row, in the order of the files; without a prediction why.
  const Cell none("-", std::string());
  auto next = judged.begin();
  for (size_t i = 0; i < published.rows.size(); ++i) {
    const PublishedRow& row = published.rows[i];
    if (!asked(row)) continue;
    const PublishedRun& run = published.RunOf(row);
    const Cell device = run.device ? Cell(*run.device) : none;
    if (next == judged.end() || next->row != &row) {
      rows.Add({row.id,
                std::string(GroupOf(row)),
                device,
                row.quantity,
                Cell(row.value.text, row.value.low),
                none,
                none,
                std::string(ToText(row.use)),
                predictions[i].reason});
      continue;
    }
    const Judged& j = *next++;
    const double predicted = j.prediction->value.value_or(0);
    rows.Add({row.id,
              std::string(j.group),
              device,
              row.quantity,
              Cell(row.value.text, row.value.low),
              Cell(PredictedText(row, *j.prediction), predicted),
              Cell(ErrorText(j.error), j.error.error),
              std::string(ToText(row.use)),
              j.prediction->how});
    Json json;
    json["label"] = row.id;
    json["group"] = j.group;
    json["device"] = OrNull(run.device);
    json["devices"] = run.device_count;
    json["quantity"] = row.quantity;
    json["unit"] = UnitOf(row.quantity);
    json["printed"] = row.value.text;
    json["measured"] = row.value.low;
    json["predicted"] = OrNull(j.prediction->value);
    json["predicted_high"] = OrNull(j.prediction->high);
    json["fits"] = OrNull(j.prediction->fits);
    json["measure"] = MeasureText(j.error.measure);
    json["error"] = j.error.error;
    json["right"] = j.error.right;
    json["counted"] = j.counted;
    json["use"] = ToText(row.use);
    json["how"] = j.prediction->how;
    json["source"] = row.records;
    row_list.push_back(std::move(json));
  }

  const std::vector<PublishedRank> ranks =
      RankPublished(published, predictions);

  Table summary;
  summary.title = "Limits";
  summary.columns = {{"group", "group", Align::kLeft},
                     {"rows", "n", Align::kRight},
                     {"median", "median", Align::kDecimal},
                     {"mean", "mape", Align::kDecimal},
                     {"worst", "max", Align::kDecimal},
                     {"bias", "bias", Align::kDecimal},
                     {"to printed digits", "right", Align::kRight},
                     {"only checked", "checked_right", Align::kRight},
                     {"limit", "limit", Align::kLeft},
                     {"verdict", "verdict", Align::kLeft}};
  Json group_list = Json::array();
  int64_t limits = 0;
  int64_t met = 0;
  std::vector<RowError> all;
  for (const GroupInfo& info : Groups()) {
    std::vector<PublishedError> counted;
    int64_t checked = 0;
    int64_t checked_right = 0;
    for (const Judged& j : judged) {
      if (j.group != info.name) continue;
      if (!j.counted) {
        ++checked;
        if (j.error.right) ++checked_right;
        continue;
      }
      counted.push_back(j.error);
      if (j.error.measure == kPercent) {
        all.push_back({j.error.error, j.error.right});
      }
    }
    const bool ranking = info.name.starts_with("ranking");
    if (ranking) {
      for (const PublishedRank& rank : ranks) {
        const bool time = rank.quantity == "run_time";
        if (time != (info.name == "ranking by time")) continue;
        counted.push_back({info.measure, 0, rank.right});
      }
    }
    if (counted.empty() && checked == 0) continue;
    const Summary s = Summarise(info, counted);
    summary.Add(GroupCells(info, s, checked, checked_right));
    if (s.limited && !counted.empty()) {
      ++limits;
      if (s.met) ++met;
    }
    Json json;
    json["group"] = info.name;
    json["measure"] = MeasureText(info.measure);
    json.update(ToJson(s.errors));
    json["right_rows"] = s.right;
    json["checked_rows"] = checked;
    json["checked_right_rows"] = checked_right;
    json["limit"] = info.asked;
    json["met"] = s.limited && !counted.empty() ? Json(s.met) : Json(nullptr);
    json["verdict"] = s.verdict;
    group_list.push_back(std::move(json));
  }

  const ErrorSummary overall = scenarios::Summarise(all);
  report.headline.push_back(fmt::format(
      "{} of {} rows of {} predicted ({}): {} of {} limits met; median error "
      "of {} left-out times, rates and energies {:.1f} %",
      judged.size(),
      judged.size() + skipped.size(),
      folder,
      ToText(protocol),
      met,
      limits,
      overall.count,
      overall.median));
  report.tables.push_back(std::move(rows));
  report.tables.push_back(std::move(summary));
  report.notes.push_back(
      protocol == PublishedProtocol::kLeaveOneOut
          ? "every run was predicted by models fitted to the other runs; runs "
            "that are printed twice were left out together"
          : "models were fitted to all runs: no test of prediction");
  report.notes.emplace_back(
      "counted are rows that a model may be fitted to, and all rows of groups "
      "judged right or wrong; the others are only checked");
  for (const PublishedRank& rank : ranks) {
    if (rank.right) continue;
    report.notes.push_back(
        fmt::format("order of {} and {} by {} in {} is wrong",
                    rank.first,
                    rank.second,
                    rank.quantity,
                    rank.table));
  }
  for (const auto& [reason, count] : reasons) {
    report.notes.push_back(
        fmt::format("{} rows without a prediction: {}", count, reason));
  }

  Json rankings = Json::array();
  for (const PublishedRank& rank : ranks) {
    rankings.push_back({{"table", rank.table},
                        {"quantity", rank.quantity},
                        {"first", rank.first},
                        {"second", rank.second},
                        {"right", rank.right}});
  }
  Json json;
  json["overall"] = ToJson(overall);
  json["groups"] = std::move(group_list);
  json["rows"] = std::move(row_list);
  json["schema"] = "trainfare.validation/1";
  json["tool_version"] = Version();
  json["protocol"] = ToText(protocol);
  json["files"] = options.files;
  json["limits"] = limits;
  json["limits_met"] = met;
  json["rankings"] = std::move(rankings);
  json["skipped"] = std::move(skipped);
  json["notes"] = report.notes;
  report.json = JsonText(json);
  if (judged.empty()) {
    report.exit_code = kInput;
    report.complaint = "no row could be predicted; the result lists why";
  } else {
    CheckLimits(options, overall, report);
  }
  return report;
}

}  // namespace trainfare::scenarios
