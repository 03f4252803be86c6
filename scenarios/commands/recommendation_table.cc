#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "hardware/files/unit_text.h"
#include "scenarios/commands/recommendation_report.h"
#include "scenarios/report/answer_figures.h"
#include "scenarios/report/job_units.h"

namespace trainfare::scenarios {
namespace {

// The units that the table has, by what it shows people; of what nothing shown
// has, by all.
JobUnits UnitsOf(const std::vector<Candidate>& candidates, size_t shown) {
  std::vector<const JobEstimate*> jobs;
  std::vector<const JobEstimate*> all;
  for (const Candidate& c : candidates) {
    const bool is_shown = static_cast<size_t>(&c - candidates.data()) < shown;
    if (c.timed() && is_shown) jobs.push_back(&*c.job);
    if (c.job) all.push_back(&*c.job);
  }
  JobUnits units = UnitsOf(jobs);
  const JobUnits of_all = UnitsOf(all);
  for (ColumnUnit JobUnits::*unit : {&JobUnits::memory,
                                     &JobUnits::step,
                                     &JobUnits::run,
                                     &JobUnits::energy}) {
    if ((units.*unit).name.empty()) units.*unit = of_all.*unit;
  }
  return units;
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
                         // What does not fit has its memory alone.
                         const bool has_it =
                             figure.part == FigurePart::kMemory && c.job;
                         return c.timed() || has_it
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
// best, after them those that miss a limit by least, those whose network nobody
// says, and devices asked for by name.
constexpr size_t kShownViable = 10;
constexpr size_t kShownMisses = 3;
constexpr size_t kShownUnjoined = 3;

std::set<size_t> ElidedOf(const std::vector<Candidate>& candidates) {
  std::set<size_t> elided;
  size_t viable = 0;
  size_t misses = 0;
  size_t unjoined = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& c = candidates[i];
    const bool shown = c.viable() ? ++viable <= kShownViable
                       : c.objection.miss > 0
                           ? ++misses <= kShownMisses && viable < kShownViable
                       : c.objection.kind == Obstacle::kNetworkUnknown
                           ? ++unjoined <= kShownUnjoined
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

}  // namespace

bool IsCut(const Candidate& c,
           const Scenario& scenario,
           const RecommendOptions& options) {
  return !options.ChoosesBatch() && c.timed() &&
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

std::string ChosenOf(const Candidate& c,
                     bool with_batch,
                     const RecommendOptions& options) {
  std::vector<std::string> words;
  if (with_batch) {
    words.push_back(c.accumulation > 1
                        ? fmt::format("{} x {}", c.batch, c.accumulation)
                        : fmt::format("{}", c.batch));
  }
  if (options.ChoosesPrecision()) words.emplace_back(ToText(c.precision));
  return fmt::format("{}", fmt::join(words, " "));
}

Table CandidateTable(const std::vector<Candidate>& candidates,
                     const Scenario& scenario,
                     const RecommendOptions& options) {
  const JobUnits units = UnitsOf(candidates, kShownViable);
  const ShownChoices shown = {
      options.ChoosesBatch() || AnyIsCut(candidates, scenario, options),
      options.ChoosesPrecision()};
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

std::string Shorten(std::vector<Candidate>& candidates, int64_t top) {
  const auto first = candidates.begin() +
                     std::min(top, static_cast<int64_t>(candidates.size()));
  const auto viable = std::count_if(
      first, candidates.end(), [](const Candidate& c) { return c.viable(); });
  const auto left = candidates.end() - first;
  candidates.erase(first, candidates.end());
  return fmt::format(
      "--top {}: {} {} worse, {} do not fit, have no price or known network or "
      "miss a limit",
      top,
      hardware::Plural(viable, "more candidate"),
      viable == 1 ? "is" : "are",
      left - viable);
}

}  // namespace trainfare::scenarios
