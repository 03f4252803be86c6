#include "scenarios/commands/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "hardware/catalog/instance.h"
#include "hardware/files/date.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/limits.h"
#include "scenarios/commands/asked_job.h"
#include "scenarios/commands/candidate_charts.h"
#include "scenarios/commands/candidates.h"
#include "scenarios/commands/choice_odds.h"
#include "scenarios/commands/prediction_report.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/open_times.h"
#include "scenarios/job/pricing.h"
#include "scenarios/report/answer_figures.h"
#include "scenarios/report/job_units.h"
#include "scenarios/report/result_json.h"

namespace trainfare::scenarios {
namespace {

using hardware::FormatBytes;
using hardware::FormatEnergy;
using hardware::FormatMoney;
using hardware::FormatTime;
using hardware::Instance;

constexpr int64_t kMostCandidates = 1'000'000;  // any number beyond the catalog
// A price older than this many days is worth a warning.
constexpr int kStalePriceDays = 90;
// What is the best as often as this is not doubted.
constexpr double kSureEnough = 0.95;

// Leaves the first `top` and says what went.
std::string Shorten(std::vector<Candidate>& candidates, int64_t top) {
  const auto first = candidates.begin() +
                     std::min(top, static_cast<int64_t>(candidates.size()));
  const auto viable = std::count_if(
      first, candidates.end(), [](const Candidate& c) { return c.viable(); });
  const auto left = candidates.end() - first;
  candidates.erase(first, candidates.end());
  return fmt::format(
      "--top {}: {} more candidates are worse, {} do not fit, have no price or "
      "miss a limit",
      top,
      viable,
      left - viable);
}

// The units that the table has, by what it shows people.
JobUnits UnitsOf(const std::vector<Candidate>& candidates, size_t shown) {
  std::vector<const JobEstimate*> jobs;
  for (size_t i = 0; i < std::min(shown, candidates.size()); ++i) {
    if (candidates[i].timed()) jobs.push_back(&*candidates[i].job);
  }
  return UnitsOf(jobs);
}

// Whether a candidate has a choice of batch, of precision.
bool ChoosesBatch(const RecommendOptions& options) {
  return options.global_batch || options.overrides.batches.size() > 1;
}
bool ChoosesPrecision(const RecommendOptions& options) {
  return options.overrides.precisions.size() > 1;
}

// Whether one takes the scenario's batch in parts, as it does not fit at once.
bool IsCut(const Candidate& c,
           const Scenario& scenario,
           const RecommendOptions& options) {
  return !ChoosesBatch(options) && c.timed() &&
         c.accumulation != scenario.workload.accumulation;
}
bool AnyIsCut(const std::vector<Candidate>& candidates,
              const Scenario& scenario,
              const RecommendOptions& options) {
  return std::any_of(
      candidates.begin(), candidates.end(), [&](const Candidate& c) {
        return IsCut(c, scenario, options);
      });
}

// "8", "8 x 4" with four micro-batches, "8 x 4 bf16".
std::string ChosenOf(const Candidate& c,
                     bool with_batch,
                     const RecommendOptions& options) {
  std::vector<std::string> words;
  if (with_batch) {
    words.push_back(c.accumulation > 1
                        ? fmt::format("{} x {}", c.batch, c.accumulation)
                        : fmt::format("{}", c.batch));
  }
  if (ChoosesPrecision(options)) words.emplace_back(ToText(c.precision));
  return fmt::format("{}", fmt::join(words, " "));
}

std::string WhyOf(const Candidate& c) {
  std::string why = c.chosen ? "chosen" : c.Reason();
  if (c.tied) why += ", a tie";
  if (c.tariff && !c.tariff->caution.empty()) {
    why += fmt::format("; price: {}", c.tariff->caution);
  }
  return why;
}

// "-" for people, nothing for machines, where there is no figure.
Cell NoCell() { return {"-", std::string()}; }

Cell NumberCell(const std::optional<double>& value, int decimals) {
  if (!value) return NoCell();
  return {fmt::format("{:.{}f}", *value, decimals), *value};
}

using CandidateColumn = ColumnWith<Candidate>;

// Columns that machines alone see.
template <class Of>
CandidateColumn Hidden(std::string key, Align align, Of cell) {
  return {{"", std::move(key), align, 0, Audience::kMachines}, std::move(cell)};
}

// The figures of its run, in the order of the table.
std::vector<CandidateColumn> FigureColumns(const JobUnits& units) {
  constexpr FigureColumn kHidden = {.audience = Audience::kMachines};
  std::vector<CandidateColumn> columns;
  const auto add = [&](std::string_view key, const FigureColumn& column) {
    const AnswerFigure& figure = FigureOf(key);
    columns.push_back({ColumnOf(figure, column, units),
                       [&figure, &units](const Candidate& c) {
                         return c.timed()
                                    ? CellOf(figure, {*c.job, c.cost}, units)
                                    : NoCell();
                       }});
  };
  add("run_time_s", {.title = "time"});
  add("run_time_low_s", {.title = "80 % from", .drop = 3, .names_unit = false});
  add("run_time_high_s", {.title = "to", .drop = 3, .names_unit = false});
  add("cost_usd", {.title = "cost ($)"});
  add("cost_low_usd", kHidden);
  add("cost_high_usd", kHidden);
  add("energy_j", {.title = "energy", .drop = 6});
  add("memory_bytes", {.title = "memory", .drop = 7});
  add("memory_low_bytes", kHidden);
  add("memory_high_bytes", kHidden);
  return columns;
}

// What people are shown of every candidate beside its figures.
struct ShownChoices {
  bool batch = false;
  bool precision = false;
};

// What it is, and its price.
std::vector<CandidateColumn> NameColumns(const ShownChoices& shown,
                                         const RecommendOptions& options) {
  constexpr Audience kPeople = Audience::kPeople;
  constexpr Audience kMachines = Audience::kMachines;
  std::vector<CandidateColumn> columns = {
      {{"", "chosen", Align::kLeft},
       [](const Candidate& c) {
         return Cell(c.chosen ? "*" : "", c.chosen ? "yes" : "no");
       }},
      {{"instance", "instance", Align::kLeft},
       [](const Candidate& c) -> Cell {
         return c.instance != nullptr || c.here ? c.Name() : "-";
       }},
      {{"devices", "", Align::kLeft, 0, kPeople},
       [](const Candidate& c) -> Cell {
         return fmt::format("{} x {}", c.devices, c.device);
       }}};
  if (shown.batch || shown.precision) {
    columns.push_back({{"batch", "", Align::kLeft, 0, kPeople},
                       [shown, &options](const Candidate& c) -> Cell {
                         return ChosenOf(c, shown.batch, options);
                       }});
  }
  columns.push_back({{"device", "device", Align::kLeft, 0, kMachines},
                     [](const Candidate& c) -> Cell { return c.device; }});
  columns.push_back({{"devices", "devices", Align::kRight, 0, kMachines},
                     [](const Candidate& c) -> Cell {
                       return fmt::format("{}", c.devices);
                     }});
  columns.push_back({{"region", "region", Align::kLeft, 0, kMachines},
                     [](const Candidate& c) -> Cell {
                       return c.tariff ? c.tariff->region : "";
                     }});
  columns.push_back({{"$/h", "price_usd_per_hour", Align::kDecimal, 5},
                     [](const Candidate& c) {
                       if (!c.tariff) return NoCell();
                       return NumberCell(ToDollarsPerHour(c.tariff->price), 3);
                     }});
  return columns;
}

// How good a choice it is, and what was chosen for it.
std::vector<CandidateColumn> ChoiceColumns() {
  return {Hidden("best_probability",
                 Align::kDecimal,
                 [](const Candidate& c) {
                   return NumberCell(c.best_probability, 2);
                 }),
          Hidden("limits_probability",
                 Align::kDecimal,
                 [](const Candidate& c) {
                   return NumberCell(c.limits_probability, 2);
                 }),
          Hidden("on_front",
                 Align::kLeft,
                 [](const Candidate& c) -> Cell {
                   return c.on_front ? "yes" : "no";
                 }),
          Hidden("batch",
                 Align::kRight,
                 [](const Candidate& c) -> Cell {
                   return fmt::format("{}", c.batch);
                 }),
          Hidden("accumulation",
                 Align::kRight,
                 [](const Candidate& c) -> Cell {
                   return fmt::format("{}", c.accumulation);
                 }),
          Hidden("precision",
                 Align::kLeft,
                 [](const Candidate& c) -> Cell {
                   return std::string(ToText(c.precision));
                 }),
          {{"grade", "grade", Align::kLeft, 4},
           [](const Candidate& c) {
             return c.timed() ? Cell(GradeWords(c.job->step, c.job->devices))
                              : NoCell();
           }},
          {{"why", "reason", Align::kLeft},
           [](const Candidate& c) -> Cell { return WhyOf(c); }}};
}

// What of the candidates a person sees unless all of them are asked for: the
// best, after them those that miss a limit by least, and devices asked for by
// name.
constexpr size_t kShownViable = 10;
constexpr size_t kShownMisses = 3;

std::set<size_t> ElidedOf(const std::vector<Candidate>& candidates) {
  std::set<size_t> elided;
  size_t viable = 0;
  size_t misses = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& c = candidates[i];
    const bool shown = c.viable() ? ++viable <= kShownViable
                       : c.objection.miss > 0
                           ? ++misses <= kShownMisses && viable < kShownViable
                           : c.instance == nullptr;
    if (!shown) elided.insert(i);
  }
  return elided;
}

std::string RestOf(const std::vector<Candidate>& candidates,
                   const std::set<size_t>& elided) {
  if (elided.empty()) return "";
  const auto worse = std::count_if(elided.begin(), elided.end(), [&](size_t i) {
    return candidates[i].viable();
  });
  const std::string out = CountObstacles(candidates);
  return fmt::format("not shown: {}{}{}; --all shows them",
                     worse > 0 ? fmt::format("{} worse", worse) : "",
                     worse > 0 && !out.empty() ? "; of all candidates " : "",
                     out);
}

Table CandidateTable(const std::vector<Candidate>& candidates,
                     const Scenario& scenario,
                     const RecommendOptions& options) {
  const JobUnits units = UnitsOf(candidates, kShownViable);
  const ShownChoices shown = {
      ChoosesBatch(options) || AnyIsCut(candidates, scenario, options),
      ChoosesPrecision(options)};
  std::vector<CandidateColumn> columns = NameColumns(shown, options);
  for (auto& more : {FigureColumns(units), ChoiceColumns()}) {
    columns.insert(columns.end(), more.begin(), more.end());
  }
  Table table = TableOf(columns, candidates);
  if (!options.all && !options.top) table.elided = ElidedOf(candidates);
  table.rest = RestOf(candidates, table.elided);
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].chosen) table.marked = i;
  }
  return table;
}

Json ToJson(const Candidate& c) {
  Json json;
  json["instance"] =
      c.instance != nullptr ? Json(c.instance->FullName()) : Json(nullptr);
  json["device"] = c.device;
  json["devices"] = c.devices;
  json["hosts"] = c.hosts;
  json["batch"] = c.batch;
  json["accumulation"] = c.accumulation;
  json["precision"] = ToText(c.precision);
  json["chosen"] = c.chosen;
  json["tied"] = c.tied;
  json["on_front"] = c.on_front;
  json["best_probability"] = OrNull(c.best_probability);
  json["limits_probability"] = OrNull(c.limits_probability);
  json["score"] = c.weighted ? Json(c.weighted->value) : Json(nullptr);
  json["reason"] = c.chosen ? Json(nullptr) : Json(c.Reason());
  json["price"] = scenarios::ToJson(c.tariff);
  for (const AnswerFigure& figure : AnswerFigures()) {
    if (figure.part != FigurePart::kCost) continue;
    json[std::string(figure.key)] =
        c.timed() ? OrNull(ValueOf(figure, {*c.job, c.cost})) : Json(nullptr);
  }
  json["estimate"] = c.job ? scenarios::ToJson(*c.job) : Json(nullptr);
  return json;
}

std::string PriceLine(const std::vector<Candidate>& candidates, bool spot) {
  std::map<std::string, std::string> dates;
  std::map<std::string, double> factors;
  std::set<std::string> excludes;
  for (const Candidate& c : candidates) {
    if (!c.tariff) continue;
    std::string& date = dates[c.instance->cloud];
    date = std::max(date, c.tariff->date);
    factors[c.instance->cloud] = c.tariff->factor;
    excludes.insert(c.tariff->excludes.begin(), c.tariff->excludes.end());
  }
  std::vector<std::string> clouds;
  clouds.reserve(dates.size());
  for (const auto& [cloud, date] : dates) {
    const double factor = factors[cloud];
    clouds.push_back(
        fmt::format("{} {}{}",
                    cloud,
                    date,
                    factor == 1.0 ? "" : fmt::format(" times {:g}", factor)));
  }
  std::string line = fmt::format("prices: {}, {}",
                                 spot ? "spot, highest zone" : "on demand",
                                 fmt::join(clouds, ", "));
  if (!excludes.empty()) {
    line += fmt::format("; excludes {}", fmt::join(excludes, ", "));
  }
  return line;
}

// How likely the choice is the one to take.
std::string OddsLine(const std::vector<Candidate>& candidates,
                     const RecommendOptions& options) {
  const Candidate& best = candidates.front();
  const bool limited = options.deadline || options.budget;
  const auto on_front = std::count_if(
      candidates.begin(), candidates.end(), [](const Candidate& c) {
        return c.on_front;
      });
  return fmt::format(
      "{} is {} with a probability of {:.0f} %{}, by the intervals of all; {} "
      "on the Pareto front of cost and time",
      best.Name(),
      Superlative(options.objective),
      100.0 * best.best_probability.value_or(0.0),
      limited ? fmt::format(" and meets the limits with {:.0f} %",
                            100.0 * best.limits_probability.value_or(0.0))
              : "",
      hardware::Plural(on_front, "candidate"));
}

// Whether there is a choice that may well not be the best.
bool IsUnsure(const std::vector<Candidate>& candidates) {
  return !candidates.empty() && candidates.front().chosen &&
         candidates.front().best_probability.value_or(1.0) < kSureEnough;
}

// Days from `date` to `now`; nullopt: it is none.
std::optional<int> AgeOf(const std::string& date,
                         std::chrono::sys_seconds now) {
  const auto day = hardware::ParseDate(date);
  if (!day) return std::nullopt;
  const auto today = std::chrono::floor<std::chrono::days>(now);
  return static_cast<int>((today - std::chrono::sys_days(*day)).count());
}

// What an answer of several devices assumes.
std::optional<std::string> DevicesNote(const std::vector<Candidate>& candidates,
                                       const Scenario& scenario,
                                       const RecommendOptions& options) {
  if (options.global_batch) {
    return fmt::format(
        "{} sequences an optimizer step over all devices, each with the batch "
        "and accumulation that are best for it; all-reduce over links and "
        "networks from their datasheets, not measured; whole instances are "
        "paid for",
        *options.global_batch);
  }
  const bool parallel =
      std::any_of(candidates.begin(), candidates.end(), [](const Candidate& c) {
        return c.devices > 1;
      });
  if (!parallel) return std::nullopt;
  if (ChoosesBatch(options)) {
    return "several devices train data parallel, so the global batch is that "
           "many times the batch a device; whole instances are paid for";
  }
  return fmt::format(
      "several devices train data parallel with {} each, so the "
      "global batch grows; all-reduce over links from their datasheets, not "
      "measured; the whole instance is paid for, also for one device",
      hardware::Plural(scenario.workload.batch, "sequence"));
}

void AddChosenNotes(const std::vector<Candidate>& candidates,
                    const Scenario& scenario,
                    const RecommendOptions& options,
                    Report& report) {
  const Candidate& chosen = candidates.front();
  if (options.deadline && chosen.job->run_high > *options.deadline) {
    report.notes.emplace_back(
        fmt::format("the 80 % interval of {} reaches past the deadline",
                    chosen.Name()),
        Caution::kDeadlineInInterval);
  }
  report.notes.emplace_back(OddsLine(candidates, options));
  if (auto note = MemoryNote(*chosen.job)) {
    report.notes.push_back(std::move(*note));
  }
  if (auto note = SourceNote(*chosen.job, scenario)) {
    report.notes.push_back(std::move(*note));
  }
}

void WarnOfOldPrices(const std::vector<Candidate>& candidates,
                     const RecommendOptions& options,
                     Report& report) {
  for (const Candidate& c : candidates) {
    if (!c.chosen) continue;
    if (const auto age = AgeOf(c.tariff->date, options.origin.time);
        age && *age > kStalePriceDays) {
      report.warnings.emplace_back(
          fmt::format("the price of {} is {} days old; import newer ones with "
                      "`trainfare prices import` and pass them with --prices",
                      c.Name(),
                      *age),
          Caution::kPriceOld);
    }
  }
}

void AddNotes(const std::vector<Candidate>& candidates,
              const Scenario& scenario,
              const RecommendOptions& options,
              Report& report) {
  report.notes.push_back(PriceLine(candidates, options.spot));
  if (options.spot) {
    report.notes.emplace_back("work lost to spot interruptions is not counted");
  }
  if (auto note = DevicesNote(candidates, scenario, options)) {
    report.notes.emplace_back(std::move(*note));
  }
  if (AnyIsCut(candidates, scenario, options)) {
    report.notes.emplace_back(fmt::format(
        "where a batch of {} does not fit a device it is cut into equal ones "
        "that are accumulated",
        scenario.workload.batch));
  }
  if (!scenario.extras.start_up) {
    const bool compiled =
        scenario.workload.stack.fusion == model::Fusion::kCompiled &&
        !scenario.extras.warm_cache;
    report.notes.emplace_back(StartUpNote(true, compiled),
                              Caution::kStartUpAssumed);
  }
  const bool compiles =
      std::any_of(candidates.begin(), candidates.end(), [](const Candidate& c) {
        return c.job && c.job->compiles;
      });
  if (compiles && !scenario.extras.compile_per_shape &&
      !scenario.extras.warm_cache) {
    report.notes.emplace_back(
        "devices with static shapes compile each of them; how long is not "
        "counted: set run.compile_per_shape",
        Caution::kCompileTimeUnknown);
  }
  if (!candidates.empty() && candidates.front().chosen) {
    AddChosenNotes(candidates, scenario, options, report);
  }
  WarnOfOldPrices(candidates, options, report);
}

std::string Answer(const std::vector<Candidate>& candidates,
                   const Scenario& scenario,
                   const RecommendOptions& options) {
  if (candidates.empty() || !candidates.front().chosen) {
    return fmt::format("{}: no instance fits and meets the limits",
                       scenario.title);
  }
  const Candidate& best = candidates.front();
  const bool with_batch =
      ChoosesBatch(options) || IsCut(best, scenario, options);
  return fmt::format(
      "{}: {}{} is {} ({} x {}{}{}): {}, {} (80 % intervals {} .. {}, {} .. "
      "{}{})",
      scenario.title,
      best.by_measurement ? "measured, in a tie for " : "",
      Superlative(options.objective),
      best.Name(),
      best.devices,
      best.device,
      with_batch                  ? ", batch "
      : ChoosesPrecision(options) ? ", "
                                  : "",
      ChosenOf(best, with_batch, options),
      FormatMoney(best.cost->usual),
      FormatTime(best.job->run.total()),
      FormatMoney(best.cost->low),
      FormatMoney(best.cost->high),
      FormatTime(best.job->run_low),
      FormatTime(best.job->run_high),
      StartUpWords(*best.job));
}

// How sure the choice is among the others.
std::string TieLine(const std::vector<Candidate>& candidates, size_t ties) {
  const auto viable = std::count_if(
      candidates.begin(), candidates.end(), [](const Candidate& c) {
        return c.viable();
      });
  return fmt::format(
      "a tie: {} of {} others lie within its 80 % interval", ties, viable - 1);
}

template <class Q>
Q QuantityFlag(std::string_view flag,
               std::string_view text,
               std::string_view example) {
  const auto value = hardware::ParseQuantity<Q>(text);
  if (value && value->base() > 0) return *value;
  throw UsageError(fmt::format(
      "{}: expected {} {}such as \"{}\", got \"{}\"{}",
      flag,
      example.back() == 'h' ? "a time" : "an amount",
      value ? "above 0 " : "",
      example,
      text,
      value ? "" : hardware::UnitHint(hardware::DimensionOf<Q>(), text)));
}

}  // namespace

namespace {

constexpr std::array kObjectives = {Objective::kCost,
                                    Objective::kTime,
                                    Objective::kEnergy,
                                    Objective::kBalance,
                                    Objective::kTimeCostEnergy,
                                    Objective::kTimeEnergyCost,
                                    Objective::kCostTimeEnergy,
                                    Objective::kCostEnergyTime,
                                    Objective::kEnergyTimeCost,
                                    Objective::kEnergyCostTime};

}  // namespace

std::vector<std::string_view> ObjectiveWords() {
  std::vector<std::string_view> words;
  for (const Objective one : kObjectives) words.push_back(ToText(one));
  return words;
}

Objective ObjectiveFromText(std::string_view text) {
  for (const Objective one : kObjectives) {
    if (ToText(one) == text) return one;
  }
  throw UsageError(fmt::format("--objective: expected {}, got \"{}\"",
                               fmt::join(ObjectiveWords(), ", "),
                               text));
}

model::Seconds<> TimeFlag(std::string_view flag, std::string_view text) {
  return QuantityFlag<model::Seconds<>>(flag, text, "4h");
}

model::Usd<> MoneyFlag(std::string_view flag, std::string_view text) {
  // "20usd" is how one types it; the reader's unit is USD.
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return QuantityFlag<model::Usd<>>(flag, upper, "20 USD");
}

namespace {

Grounds GroundsOf(const std::vector<Candidate>& candidates,
                  const RecommendOptions& options) {
  std::set<std::string> clouds;
  for (const Candidate& c : candidates) {
    if (c.instance != nullptr) clouds.insert(c.instance->cloud);
  }
  return {kOddsSeed, SourcesOf(options.prices, clouds)};
}

// What is said of all candidates, also where the worst of them are left out.
struct Overview {
  size_t ties = 0;
  Grounds grounds;
  std::optional<NextCalibration> calibration;
};

Json ToJson(const NextCalibration& next) {
  return {{"instance", next.on->FullName()},
          {"device", next.on->device},
          {"devices", next.on->count},
          {"time_s", ToSeconds(next.time)},
          {"cost_usd", ToDollars(next.cost)},
          {"best_probability", next.best_probability},
          {"saved_cost_usd",
           next.saved ? Json(ToDollars(*next.saved)) : Json(nullptr)}};
}

Json JsonOf(const std::vector<Candidate>& candidates,
            const Scenario& scenario,
            const RecommendOptions& options,
            const Overview& overview) {
  Json json = ResultHead(
      "trainfare.recommendation/1", options.origin, overview.grounds);
  json["scenario"] = ToJson(scenario);
  json["global_batch"] = OrNull(options.global_batch);
  json["objective"] = ToText(options.objective);
  json["market"] = options.spot ? "spot" : "on-demand";
  json["deadline_s"] =
      options.deadline ? Json(ToSeconds(*options.deadline)) : Json(nullptr);
  json["budget_usd"] =
      options.budget ? Json(ToDollars(*options.budget)) : Json(nullptr);
  json["chosen"] = nullptr;
  if (!candidates.empty() && candidates.front().chosen) {
    json["chosen"] = {
        {"instance", candidates.front().instance->FullName()},
        {"hosts", candidates.front().hosts},
        {"devices", candidates.front().devices},
        {"batch", candidates.front().batch},
        {"accumulation", candidates.front().accumulation},
        {"precision", ToText(candidates.front().precision)},
        {"ties", overview.ties},
        {"best_probability", OrNull(candidates.front().best_probability)},
        {"limits_probability", OrNull(candidates.front().limits_probability)}};
  }
  json["next_calibration"] =
      overview.calibration ? ToJson(*overview.calibration) : Json(nullptr);
  Json list = Json::array();
  for (const Candidate& candidate : candidates) {
    list.push_back(ToJson(candidate));
  }
  json["candidates"] = std::move(list);
  return json;
}

std::string BatchWords(const Scenario& scenario,
                       const RecommendOptions& options) {
  if (options.global_batch) {
    return fmt::format("global batch {}", *options.global_batch);
  }
  if (ChoosesBatch(options)) {
    return fmt::format("batch {} a device",
                       fmt::join(options.overrides.batches, " or "));
  }
  return fmt::format("batch {} a device", scenario.workload.batch);
}

std::string SettingsLine(const Scenario& scenario,
                         const RecommendOptions& options,
                         size_t candidates) {
  const model::Workload& workload = scenario.workload;
  return fmt::format(
      "{}, {}, length {}, {}, {}, {}; {} candidates",
      workload.architecture.name,
      BatchWords(scenario, options),
      Describe(scenario.padding),
      ChoosesPrecision(options)
          ? fmt::format("{}", fmt::join(options.overrides.precisions, " or "))
          : std::string(model::ToText(workload.precision)),
      DescribeUpdate(workload),
      model::ToText(workload.stack.fusion),
      candidates);
}

std::vector<std::string> Headline(const std::vector<Candidate>& candidates,
                                  const Scenario& scenario,
                                  const RecommendOptions& options,
                                  const Overview& overview) {
  std::vector<std::string> lines = {
      Answer(candidates, scenario, options),
      SettingsLine(scenario, options, candidates.size())};
  if (overview.ties > 0) lines.push_back(TieLine(candidates, overview.ties));
  if (overview.calibration) {
    lines.push_back(Words(*overview.calibration, candidates.front()));
  }
  return lines;
}

// What `predict` says of the choice.
Report ReportOf(const Candidate& best, const RecommendOptions& options) {
  PredictOptions of_choice;
  of_choice.scenario = options.scenario;
  if (best.instance != nullptr) {
    of_choice.instances = {best.instance->FullName()};
    of_choice.hosts = best.hosts;
  } else {
    of_choice.device = {best.device};
  }
  of_choice.devices = best.devices;
  of_choice.spot = options.spot;
  of_choice.prices = options.prices;
  of_choice.overrides = options.overrides;
  of_choice.overrides.batches = {best.batch};
  of_choice.overrides.precisions = {std::string(ToText(best.precision))};
  std::vector<std::string>& settings = of_choice.overrides.settings;
  settings.push_back(fmt::format("accumulation={}", best.accumulation));
  if (options.global_batch) {
    if (best.job->workload.parallel.shard != model::Shard::kNone) {
      settings.push_back(fmt::format("parallel.data={}", best.devices));
    }
  }
  of_choice.charts = options.charts;
  of_choice.trace = options.trace;
  return Predict(of_choice);
}

// The page also says where the time and the memory of the choice go, and what
// they rest on; a trace is of a step of the choice.
void AddChoice(const std::vector<Candidate>& candidates,
               const RecommendOptions& options,
               Report& report) {
  report.trace.emplace();
  if (options.charts) {
    report.charts = CandidateCharts(candidates, options.objective);
  }
  const bool wanted = options.charts || options.trace;
  if (!wanted || candidates.empty() || !candidates.front().chosen) return;
  Report choice = ReportOf(candidates.front(), options);
  report.trace = std::move(choice.trace);
  if (!options.charts) return;
  for (Chart& chart : choice.charts) report.charts.push_back(std::move(chart));
  for (size_t i = 1; i < choice.tables.size(); ++i) {
    report.page_tables.push_back(std::move(choice.tables[i]));
  }
  for (Table& table : choice.page_tables) {
    report.page_tables.push_back(std::move(table));
  }
  for (Note& note : choice.notes) {
    report.page_notes.push_back(std::move(note));
  }
}

// The job once for every batch and precision to choose from; the batches of a
// global one depend on the number of devices.
std::vector<Scenario> JobsOf(const RecommendOptions& options) {
  if (options.overrides.lengths.size() > 1) {
    throw UsageError("recommend: give one --seq, it compares instances");
  }
  Overrides overrides = options.overrides;
  if (options.global_batch) {
    RequireCount("--global-batch", *options.global_batch, model::kLargestBatch);
    overrides.batches.clear();
  }
  std::vector<Scenario> jobs =
      Variants(LoadJob(options.scenario, overrides), overrides);
  // Then the ranks are to be chosen, too.
  if (options.global_batch) {
    for (Scenario& job : jobs) job.workload.parallel.data = 0;
  }
  return jobs;
}

}  // namespace

Report Recommend(const RecommendOptions& options) {
  const std::vector<Scenario> jobs = JobsOf(options);
  const Scenario& scenario = jobs.front();
  if (options.hosts) {
    RequireCount("--hosts", *options.hosts, model::kMostDevices);
  }
  Report report;
  std::vector<std::string> left_out_fits;
  std::vector<Candidate> candidates =
      EstimateCandidates(jobs, options, left_out_fits);
  report.warnings = NotesOf(left_out_fits, Caution::kFitUnreadable);
  Rank(candidates, options.objective);
  const Overview overview = {
      CountTies(candidates),
      GroundsOf(candidates, options),
      NextCalibrationOf(options, SetOdds(options, candidates))};
  report.headline = Headline(candidates, scenario, options, overview);
  report.closing = report.headline.front();
  AddChoice(candidates, options, report);
  AddNotes(candidates, scenario, options, report);
  if (!overview.calibration && IsUnsure(candidates)) {
    report.notes.emplace_back(
        "no one calibration would make the choice so much surer that it is "
        "worth renting an instance for it");
  }
  if (options.top) {
    RequireCount("--top", *options.top, kMostCandidates);
    report.notes.push_back(Shorten(candidates, *options.top));
  }
  report.tables.push_back(CandidateTable(candidates, scenario, options));
  if (candidates.empty() || !candidates.front().chosen) {
    report.exit_code = kNothingFits;
    report.complaint = "no instance fits and meets the limits";
  } else {
    report.answers = {"/candidates/0"};
  }
  if (options.json) {
    report.json =
        AnswerText(JsonOf(candidates, scenario, options, overview), report);
  }
  return report;
}

}  // namespace trainfare::scenarios
