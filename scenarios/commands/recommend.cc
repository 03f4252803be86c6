#include "scenarios/commands/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "hardware/catalog/instance.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/nearest.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/pricing.h"
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

struct Candidate {
  const Instance* instance = nullptr;  // nullptr: a device by itself
  std::string device;
  int64_t devices = 1;
  std::optional<JobEstimate> job;  // absent: cannot be estimated
  std::optional<Tariff> tariff;
  std::optional<model::Usd<>> cost;
  std::string objection;  // whatever the others offer; empty: viable
  std::string worse;      // than the choice, by how much
  bool chosen = false;

  bool viable() const { return objection.empty(); }
  const std::string& Reason() const { return viable() ? worse : objection; }
  std::string Name() const {
    return instance != nullptr ? instance->FullName() : device;
  }
};

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

// What the objective compares.
double Score(const Candidate& candidate, Objective objective) {
  switch (objective) {
    case Objective::kCost:
      return ToDollars(*candidate.cost);
    case Objective::kTime:
      return ToSeconds(candidate.job->run.total());
    case Objective::kEnergy:
      return ToJoules(*candidate.job->energy);
  }
  ENSURE(false, "an objective without a score");
}

// Why a candidate is out, whatever the others offer; empty when it is in.
std::string Objection(const Candidate& c, const RecommendOptions& options) {
  const JobEstimate& job = *c.job;
  if (!job.fits()) return job.Obstacle();
  if (c.instance == nullptr) return "by itself: no instance, so no price";
  if (!c.tariff) {
    return fmt::format("no {}price{}",
                       options.spot ? "spot " : "",
                       options.regions.empty() ? "" : " in these regions");
  }
  if (options.deadline && job.run.total() > *options.deadline) {
    return fmt::format("misses the deadline by {}",
                       FormatTime(job.run.total() - *options.deadline));
  }
  if (options.budget && *c.cost > *options.budget) {
    return fmt::format("over the budget by {}",
                       FormatMoney(*c.cost - *options.budget));
  }
  if (options.objective == Objective::kEnergy && !job.energy) {
    return "its power is not known";
  }
  return "";
}

// The estimates of all candidates; predictors are made once a device.
class Estimator {
 public:
  Estimator(const Scenario& scenario, const RecommendOptions& options)
      : scenario_(scenario), pricing_(options.prices, options.regions) {}

  Candidate Estimate(const Instance& instance,
                     int64_t devices,
                     const RecommendOptions& options) {
    Candidate c;
    c.instance = &instance;
    c.device = instance.device;
    c.devices = devices;
    c.tariff = pricing_.Of(instance, options.spot);
    try {
      const calibrate::Predictor& predictor = PredictorOf(instance.device);
      c.job = EstimateJob(
          scenario_, predictor, ClusterOf(instance, devices, predictor));
    } catch (const model::InputError& error) {
      c.objection = error.what();
      return c;
    }
    if (c.job->fits() && c.tariff) {
      c.cost = model::RentalCost(
          c.job->run.total(), c.tariff->price, c.tariff->billing);
    }
    c.objection = Objection(c, options);
    return c;
  }

  Candidate EstimateAlone(const std::string& device,
                          const RecommendOptions& options) {
    Candidate c;
    c.device = hardware::DeviceCatalog::Shipped().Find(device).name;
    try {
      c.job = EstimateJob(scenario_, PredictorOf(c.device), Cluster());
      c.objection = Objection(c, options);
    } catch (const model::InputError& error) {
      c.objection = error.what();
    }
    return c;
  }

 private:
  const calibrate::Predictor& PredictorOf(const std::string& name) {
    auto found = predictors_.find(name);
    if (found == predictors_.end()) {
      const hardware::Device& device =
          hardware::DeviceCatalog::Shipped().Find(name);
      // Also where no fit is needed: a device cannot run what it cannot run.
      hardware::RequirePrecision(device, scenario_.workload.precision);
      const calibrate::Fit* fit = fits_.Of(device);
      found = predictors_
                  .emplace(name,
                           fit != nullptr ? calibrate::Predictor(device, *fit)
                                          : calibrate::Predictor(device))
                  .first;
    }
    return found->second;
  }

  const Scenario& scenario_;
  Pricing pricing_;
  Fits fits_;
  std::map<std::string, calibrate::Predictor> predictors_;
};

std::vector<Candidate> EstimateAll(const Scenario& scenario,
                                   const RecommendOptions& options) {
  const std::vector<Instance>& instances =
      hardware::InstanceCatalog::Shipped().instances();
  std::set<std::string> clouds;
  for (const Instance& instance : instances) clouds.insert(instance.cloud);
  for (const std::string& cloud : options.clouds) {
    if (clouds.contains(cloud)) continue;
    const auto known = model::NameViews(clouds);
    throw model::InputError(fmt::format(
        "--cloud: unknown cloud \"{}\"{}", cloud, OfKnown(cloud, known)));
  }
  Estimator estimator(scenario, options);
  std::vector<Candidate> candidates;
  for (const Instance& instance : instances) {
    if (!options.clouds.empty() &&
        std::find(options.clouds.begin(),
                  options.clouds.end(),
                  instance.cloud) == options.clouds.end()) {
      continue;
    }
    if (instance.count > 1) {
      candidates.push_back(
          estimator.Estimate(instance, instance.count, options));
    }
    candidates.push_back(estimator.Estimate(instance, 1, options));
  }
  for (const std::string& device : options.also) {
    candidates.push_back(estimator.EstimateAlone(device, options));
  }
  return candidates;
}

std::string Worse(double ratio, Objective objective) {
  const double percent = 100.0 * (ratio - 1.0);
  const std::string more =
      percent < 1000 ? fmt::format("{:.{}f} %", percent, percent < 10 ? 1 : 0)
                     : fmt::format("{:.1f} times", ratio);
  switch (objective) {
    case Objective::kCost:
      return more + " dearer";
    case Objective::kTime:
      return more + " slower";
    case Objective::kEnergy:
      return more + " more energy";
  }
  ENSURE(false, "an objective without words");
}

// Best first; then what is out, in the order of its names. Names the choice
// and why the others are not it.
void Rank(std::vector<Candidate>& candidates, Objective objective) {
  std::stable_sort(candidates.begin(),
                   candidates.end(),
                   [&](const Candidate& a, const Candidate& b) {
                     if (a.viable() != b.viable()) return a.viable();
                     if (!a.viable()) return false;
                     const auto key = [&](const Candidate& c) {
                       return std::tuple(
                           Score(c, objective), ToDollars(*c.cost), c.Name());
                     };
                     return key(a) < key(b);
                   });
  if (candidates.empty() || !candidates.front().viable()) return;
  Candidate& best = candidates.front();
  best.chosen = true;
  const double least = Score(best, objective);
  for (Candidate& candidate : candidates) {
    if (candidate.chosen || !candidate.viable()) continue;
    candidate.worse = Worse(Score(candidate, objective) / least, objective);
  }
}

std::string_view ToText(Objective objective) {
  switch (objective) {
    case Objective::kCost:
      return "cost";
    case Objective::kTime:
      return "time";
    case Objective::kEnergy:
      return "energy";
  }
  ENSURE(false, "an objective without a name");
}

std::string_view Superlative(Objective objective) {
  switch (objective) {
    case Objective::kCost:
      return "cheapest";
    case Objective::kTime:
      return "fastest";
    case Objective::kEnergy:
      return "least energy";
  }
  ENSURE(false, "an objective without a superlative");
}

Table CandidateTable(const std::vector<Candidate>& candidates) {
  Table table;
  table.columns = {{"", "chosen", Align::kLeft},
                   {"instance", "instance", Align::kLeft},
                   {"devices", "devices", Align::kLeft},
                   {"price/h", "price_usd_per_hour", Align::kDecimal},
                   {"time", "run_time_s", Align::kRight},
                   {"80 % from", "run_time_low_s", Align::kRight},
                   {"to", "run_time_high_s", Align::kRight},
                   {"cost", "cost_usd", Align::kDecimal},
                   {"energy", "energy_j", Align::kRight},
                   {"grade", "grade", Align::kLeft},
                   {"why", "reason", Align::kLeft}};
  const Cell none("-", std::string());
  for (const Candidate& c : candidates) {
    const bool timed = c.job && c.job->fits();
    std::vector<Cell> row;
    row.emplace_back(c.chosen ? "*" : "", c.chosen ? "yes" : "no");
    row.emplace_back(c.instance != nullptr ? c.Name() : "-");
    row.emplace_back(fmt::format("{} x {}", c.devices, c.device));
    if (c.tariff) {
      row.emplace_back(
          fmt::format("${:.3f}", ToDollarsPerHour(c.tariff->price)),
          ToDollarsPerHour(c.tariff->price));
    } else {
      row.push_back(none);
    }
    if (timed) {
      const JobEstimate& job = *c.job;
      for (const model::Seconds<> time :
           {job.run.total(), job.run_low, job.run_high}) {
        row.emplace_back(FormatTime(time), ToSeconds(time));
      }
    } else {
      row.insert(row.end(), 3, none);
    }
    row.push_back(c.cost ? Cell(FormatMoney(*c.cost), ToDollars(*c.cost))
                         : none);
    row.push_back(timed && c.job->energy
                      ? Cell((c.job->energy_is_bound ? "< " : "") +
                                 FormatEnergy(*c.job->energy),
                             ToJoules(*c.job->energy))
                      : none);
    row.push_back(timed ? Cell(GradeWords(c.job->step, c.job->devices)) : none);
    std::string why = c.chosen ? "chosen" : c.Reason();
    if (c.tariff && !c.tariff->caution.empty()) {
      why += fmt::format("; price: {}", c.tariff->caution);
    }
    row.emplace_back(why);
    if (c.chosen) table.marked = table.rows.size();
    table.Add(std::move(row));
  }
  return table;
}

Json ToJson(const Candidate& c) {
  Json json;
  json["instance"] = c.instance != nullptr ? Json(c.Name()) : Json(nullptr);
  json["device"] = c.device;
  json["devices"] = c.devices;
  json["chosen"] = c.chosen;
  json["reason"] = c.chosen ? Json(nullptr) : Json(c.Reason());
  json["price"] = scenarios::ToJson(c.tariff);
  json["cost_usd"] = c.cost ? Json(ToDollars(*c.cost)) : Json(nullptr);
  json["estimate"] = c.job ? scenarios::ToJson(*c.job) : Json(nullptr);
  return json;
}

std::string PriceLine(const std::vector<Candidate>& candidates, bool spot) {
  std::map<std::string, std::string> dates;
  std::set<std::string> excludes;
  for (const Candidate& c : candidates) {
    if (!c.tariff) continue;
    std::string& date = dates[c.instance->cloud];
    date = std::max(date, c.tariff->date);
    excludes.insert(c.tariff->excludes.begin(), c.tariff->excludes.end());
  }
  std::vector<std::string> clouds;
  clouds.reserve(dates.size());
  for (const auto& [cloud, date] : dates) {
    clouds.push_back(fmt::format("{} {}", cloud, date));
  }
  std::string line = fmt::format("prices: {}, {}",
                                 spot ? "spot, highest zone" : "on demand",
                                 fmt::join(clouds, ", "));
  if (!excludes.empty()) {
    line += fmt::format("; excludes {}", fmt::join(excludes, ", "));
  }
  return line;
}

// Days since the oldest of the prices that were used; nullopt: none parsed.
std::optional<int> AgeOf(const std::string& date) {
  int year = 0;
  int month = 0;
  int day = 0;
  if (std::sscanf(date.c_str(), "%d-%d-%d", &year, &month, &day) != 3) {
    return std::nullopt;
  }
  using std::chrono::sys_days;
  const sys_days then = std::chrono::year(year) /
                        std::chrono::month(static_cast<unsigned>(month)) /
                        std::chrono::day(static_cast<unsigned>(day));
  const auto today =
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  return static_cast<int>((today - then).count());
}

void AddNotes(const std::vector<Candidate>& candidates,
              const Scenario& scenario,
              const RecommendOptions& options,
              Report& report) {
  report.notes.push_back(PriceLine(candidates, options.spot));
  if (options.spot) {
    report.notes.emplace_back("work lost to spot interruptions is not counted");
  }
  const bool parallel =
      std::any_of(candidates.begin(), candidates.end(), [](const Candidate& c) {
        return c.devices > 1;
      });
  if (parallel) {
    report.notes.push_back(fmt::format(
        "several devices train data parallel with {} sequences each, so the "
        "global batch grows; all-reduce over links from their datasheets, not "
        "measured; the whole instance is paid for, also for one device",
        scenario.workload.batch));
  }
  if (scenario.extras.start_up.base() == 0) {
    report.notes.emplace_back(
        "renting and setting up is not counted: set run.start_up");
  }
  const bool compiles =
      std::any_of(candidates.begin(), candidates.end(), [](const Candidate& c) {
        return c.job && c.job->compiles;
      });
  if (compiles && !scenario.extras.compile_per_shape &&
      !scenario.extras.warm_cache) {
    report.notes.emplace_back(
        "devices with static shapes compile each of them; how long is not "
        "counted: set run.compile_per_shape");
  }
  if (!candidates.empty() && candidates.front().chosen && options.deadline &&
      candidates.front().job->run_high > *options.deadline) {
    report.notes.push_back(
        fmt::format("the 80 % interval of {} reaches past the deadline",
                    candidates.front().Name()));
  }
  for (const Candidate& c : candidates) {
    if (!c.chosen) continue;
    if (const auto age = AgeOf(c.tariff->date); age && *age > kStalePriceDays) {
      report.warnings.push_back(
          fmt::format("the price of {} is {} days old; import newer ones with "
                      "`trainfare prices import` and pass them with --prices",
                      c.Name(),
                      *age));
    }
  }
}

std::string Answer(const std::vector<Candidate>& candidates,
                   const Scenario& scenario,
                   Objective objective) {
  if (candidates.empty() || !candidates.front().chosen) {
    return fmt::format("{}: no instance fits and meets the limits",
                       scenario.title);
  }
  const Candidate& best = candidates.front();
  return fmt::format("{}: {} is {} ({} x {}): {}, {} (80 % interval {} .. {})",
                     scenario.title,
                     Superlative(objective),
                     best.Name(),
                     best.devices,
                     best.device,
                     FormatMoney(*best.cost),
                     FormatTime(best.job->run.total()),
                     FormatTime(best.job->run_low),
                     FormatTime(best.job->run_high));
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

Objective ObjectiveFromText(std::string_view text) {
  for (const Objective objective :
       {Objective::kCost, Objective::kTime, Objective::kEnergy}) {
    if (ToText(objective) == text) return objective;
  }
  throw UsageError(fmt::format(
      "--objective: expected cost, time or energy, got \"{}\"", text));
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

Report Recommend(const RecommendOptions& options) {
  const Scenario loaded = LoadScenario(options.scenario);
  const std::vector<Scenario> variants = Variants(loaded, options.overrides);
  if (variants.size() != 1) {
    throw UsageError(
        "recommend: give one --batch and one --seq, it compares instances");
  }
  const Scenario& scenario = variants.front();
  std::vector<Candidate> candidates = EstimateAll(scenario, options);
  Rank(candidates, options.objective);

  Report report;
  report.headline.push_back(Answer(candidates, scenario, options.objective));
  report.headline.push_back(
      fmt::format("{}, batch {} a device, length {}, {}, {}, {}; {} candidates",
                  scenario.workload.architecture.name,
                  scenario.workload.batch,
                  Describe(scenario.padding),
                  model::ToText(scenario.workload.precision),
                  DescribeUpdate(scenario.workload),
                  model::ToText(scenario.workload.stack.fusion),
                  candidates.size()));
  AddNotes(candidates, scenario, options, report);
  if (options.top) {
    RequireCount("--top", *options.top, kMostCandidates);
    report.notes.push_back(Shorten(candidates, *options.top));
  }
  report.tables.push_back(CandidateTable(candidates));
  const bool none = candidates.empty() || !candidates.front().chosen;
  if (none) {
    report.exit_code = kNothingFits;
    report.complaint = "no instance fits and meets the limits";
  }

  Json json = ResultHead("trainfare.recommendation/1");
  json["scenario"] = ToJson(scenario);
  json["objective"] = ToText(options.objective);
  json["market"] = options.spot ? "spot" : "on-demand";
  json["deadline_s"] =
      options.deadline ? Json(ToSeconds(*options.deadline)) : Json(nullptr);
  json["budget_usd"] =
      options.budget ? Json(ToDollars(*options.budget)) : Json(nullptr);
  if (none) {
    json["chosen"] = nullptr;
  } else {
    json["chosen"] = {{"instance", candidates.front().Name()},
                      {"devices", candidates.front().devices}};
  }
  Json list = Json::array();
  for (const Candidate& candidate : candidates) {
    list.push_back(ToJson(candidate));
  }
  json["candidates"] = std::move(list);
  json["notes"] = report.notes;
  report.json = JsonText(json);
  return report;
}

}  // namespace trainfare::scenarios
