#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "hardware/catalog/device.h"
#include "hardware/files/date.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/device_models.h"
#include "scenarios/commands/job_notes.h"
#include "scenarios/commands/memory_advice.h"
#include "scenarios/commands/recommendation_report.h"
#include "scenarios/job/memory_range.h"
#include "scenarios/job/open_times.h"

namespace trainfare::scenarios {
namespace {

// A price older than this many days is worth a warning.
constexpr int kStalePriceDays = 90;
// What is the best as often as this is not doubted.
constexpr double kSureEnough = 0.95;

std::string PriceLine(const std::vector<Candidate>& candidates, bool spot) {
  std::map<std::string, std::string> dates;
  std::map<std::string, double> factors;
  std::map<std::string, std::string> billing;  // where it changes a cost
  std::set<std::string> excludes;
  for (const Candidate& c : candidates) {
    if (!c.tariff) continue;
    std::string& date = dates[c.instance->cloud];
    date = std::max(date, c.tariff->date);
    factors[c.instance->cloud] = c.tariff->factor;
    if (c.timed() && BillingCounts(*c.job, *c.tariff)) {
      billing[c.instance->cloud] = " billed " + BillingWords(c.tariff->billing);
    }
    excludes.insert(c.tariff->excludes.begin(), c.tariff->excludes.end());
  }
  std::vector<std::string> clouds;
  clouds.reserve(dates.size());
  for (const auto& [cloud, date] : dates) {
    const double factor = factors[cloud];
    clouds.push_back(
        fmt::format("{} {}{}{}",
                    cloud,
                    date,
                    factor == 1.0 ? "" : fmt::format(" times {:g}", factor),
                    billing[cloud]));
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
        "and accumulation that are best for it, on as many as an instance has "
        "or one, whatever parallel.data says; all-reduce over links from their "
        "datasheets and networks as clouds state them, where they do, not "
        "measured; whole instances are paid for",
        *options.global_batch);
  }
  const bool parallel =
      std::any_of(candidates.begin(), candidates.end(), [](const Candidate& c) {
        return c.devices > 1;
      });
  if (!parallel) return std::nullopt;
  if (options.ChoosesBatch()) {
    return "several devices train data parallel, so the global batch is that "
           "many times the batch a device; whole instances are paid for";
  }
  return fmt::format(
      "several devices train data parallel with {} each, so the "
      "global batch grows; all-reduce over links from their datasheets, not "
      "measured; the whole instance is paid for, also for one device",
      hardware::Plural(scenario.workload.batch, "sequence"));
}

// That a number of micro-batches was asked for, and is not kept.
std::optional<Note> AccumulationNote(const RecommendOptions& options) {
  if (!options.global_batch) return std::nullopt;
  for (const std::string& setting : options.overrides.settings) {
    if (!setting.starts_with("accumulation=")) continue;
    return Note(fmt::format(
        "{} is not kept: of --global-batch each candidate has as many "
        "micro-batches as are best for it; --batch says how large",
        setting));
  }
  return std::nullopt;
}

// Whether the choice would have room for another job.
bool HasRoomOn(const Candidate& chosen,
               const Scenario& changed,
               const RecommendOptions& options) {
  if (chosen.instance == nullptr) return false;
  RecommendOptions there = options;
  there.instances = {chosen.instance->FullName()};
  there.also.clear();
  there.global_batch.reset();
  there.progress = nullptr;
  std::vector<std::string> left_out_fits;
  const std::vector<Candidate> places =
      EstimateCandidates({changed}, there, left_out_fits);
  return std::any_of(places.begin(), places.end(), [&](const Candidate& c) {
    return c.instance == chosen.instance && c.devices == chosen.devices &&
           c.hosts == chosen.hosts && c.batch == changed.workload.batch &&
           c.timed() && HasRoom(c.job->memory, c.job->capacity);
  });
}

// How many are out because nobody says what joins their hosts, and which clouds
// have none of several.
void AddNetworkNotes(const std::vector<Candidate>& candidates,
                     const RecommendOptions& options,
                     std::vector<Note>& notes) {
  std::set<std::string> clouds;
  std::set<std::string> markets;
  for (const Candidate& c : candidates) {
    if (c.objection.kind == Obstacle::kNetworkUnknown) {
      clouds.insert(c.instance->cloud);
    }
    if (c.instance != nullptr && c.instance->marketplace && !options.network &&
        (options.global_batch || options.hosts)) {
      markets.insert(c.instance->cloud);
    }
  }
  if (const auto count = CountOf(Obstacle::kNetworkUnknown, candidates)) {
    notes.emplace_back(fmt::format(
        "{} of several hosts of {} {} out, timed over a network that is "
        "assumed: which they have is not known; --network 100Gbit/s says it",
        hardware::Plural(count, "candidate"),
        fmt::join(clouds, ", "),
        count == 1 ? "is" : "are"));
  }
  if (!markets.empty()) {
    notes.emplace_back(fmt::format(
        "{}: nothing says that hosts of a marketplace stand together, so none "
        "are several; --network 100Gbit/s has them, joined by that",
        fmt::join(markets, ", ")));
  }
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
  if (auto note = CheckpointNote(*chosen.job, scenario, chosen.cluster)) {
    report.notes.emplace_back(*note, Caution::kCheckpointAssumed);
  }
  const auto has_room = [&](const Scenario& changed) {
    return HasRoomOn(chosen, changed, options);
  };
  // What would not divide the global batch could not be asked for.
  const Smaller smaller =
      options.global_batch ? Smaller::kDivisors : Smaller::kAny;
  if (auto note = MemoryNote(*chosen.job, scenario, has_room, smaller)) {
    report.notes.push_back(std::move(*note));
  }
  if (auto note = EpochNote(*chosen.job, scenario)) {
    report.notes.push_back(std::move(*note));
  }
  if (auto note = SourceNote(*chosen.job, scenario)) {
    report.notes.push_back(std::move(*note));
  }
}

// Where no candidate has room for the job, which is why some are out: with what
// one would, and which.
void AddAdvice(const std::vector<Candidate>& candidates,
               const Scenario& scenario,
               const RecommendOptions& options,
               Report& report) {
  const auto fits = [](const Candidate& c) { return c.timed(); };
  if (CountOf(Obstacle::kDoesNotFit, candidates) == 0 ||
      std::any_of(candidates.begin(), candidates.end(), fits)) {
    return;
  }
  Places places;
  for (const Candidate& c : candidates) {
    places.devices = std::max(places.devices, c.devices);
    places.devices_of_host =
        std::max(places.devices_of_host, c.devices / c.hosts);
  }
  const std::vector<std::string> advice = MemoryAdvice(
      scenario,
      places,
      [&](const Scenario& changed) -> std::optional<std::string> {
        std::vector<std::string> left_out_fits;
        std::vector<Candidate> others =
            EstimateCandidates({changed}, options, left_out_fits);
        Rank(others, options.objective);
        const Candidate& best = others.front();
        if (!best.chosen) return std::nullopt;
        return fmt::format(
            "{}: {} and {}",
            best.Name(),
            hardware::FormatTime(best.job->run.total()),
            best.cost ? hardware::FormatMoney(best.cost->usual) : "no price");
      });
  if (advice.empty()) return;
  report.notes.emplace_back(
      fmt::format("an instance fits with {}", fmt::join(advice, ", or with ")));
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

// Whether there is a choice that may well not be the best.
bool IsUnsure(const std::vector<Candidate>& candidates) {
  return !candidates.empty() && candidates.front().chosen &&
         candidates.front().best_probability.value_or(1.0) < kSureEnough;
}

// That some compile their shapes, and what of it the answer has.
std::optional<Note> CompileNote(const std::vector<Candidate>& candidates) {
  bool open = false;
  bool unbounded = false;
  model::Seconds<> longest;
  for (const Candidate& c : candidates) {
    if (!c.timed() || c.job->compile_known) continue;
    open = true;
    unbounded = unbounded || !c.job->longest_compile;
    longest = std::max(longest, c.job->longest_compile.value_or(longest));
  }
  if (!open) return std::nullopt;
  return Note(
      fmt::format("devices with static shapes compile each of them; how long "
                  "is {}: set run.compile_per_shape, or run.warm_cache",
                  unbounded ? "not counted"
                            : fmt::format("not known: their intervals have up "
                                          "to {} a shape",
                                          hardware::FormatTime(longest))),
      Caution::kCompileTimeUnknown);
}

// Devices that are out because they lack the precision, which nobody may have
// asked for, and how they are in.
std::optional<Note> PrecisionNote(const std::vector<Candidate>& candidates,
                                  const Scenario& scenario) {
  const model::Precision asked = scenario.workload.precision;
  std::set<std::string> without;
  std::set<std::string_view> instead;
  for (const Candidate& c : candidates) {
    if (c.objection.kind != Obstacle::kCannotRun || c.here) continue;
    const hardware::Device& device =
        hardware::DeviceCatalog::Shipped().Find(c.device);
    const auto nearest = hardware::NearestPrecision(device, asked);
    if (device.MatrixPeak(asked) || !nearest) continue;
    without.insert(device.name);
    instead.insert(model::ToText(*nearest));
  }
  if (without.empty()) return std::nullopt;
  return Note(fmt::format("{} {} no {}; --precision {},{} compares {}, too",
                          fmt::join(without, ", "),
                          without.size() == 1 ? "has" : "have",
                          model::ToText(asked),
                          model::ToText(asked),
                          fmt::join(instead, ","),
                          without.size() == 1 ? "it" : "them"));
}

// Devices that have not the stack's kernels, and what they are compared by.
std::optional<Note> StackNote(const std::vector<Candidate>& candidates,
                              const Scenario& scenario) {
  const model::Fusion asked = scenario.workload.stack.fusion;
  model::Fusion instead = asked;
  std::set<std::string> without;
  for (const Candidate& c : candidates) {
    if (c.job && c.job->workload.stack.fusion != asked) {
      instead = c.job->workload.stack.fusion;
      without.insert(c.device);
    }
  }
  if (without.empty()) return std::nullopt;
  return Note(CompiledStackNote(asked, instead, without));
}

}  // namespace

void AddNotes(const std::vector<Candidate>& candidates,
              const Scenario& scenario,
              const RecommendOptions& options,
              const Overview& overview,
              Report& report) {
  if (auto note = EndNote(scenario)) report.notes.push_back(std::move(*note));
  if (auto note = WeightsNote(scenario)) {
    report.notes.push_back(std::move(*note));
  }
  if (auto note = PositionsNote(scenario.workload)) {
    report.notes.push_back(std::move(*note));
  }
  if (auto note = TaskNote(scenario.workload)) {
    report.notes.push_back(std::move(*note));
  }
  report.notes.push_back(PriceLine(candidates, options.spot));
  std::set<std::string> named;
  for (const Candidate& c : candidates) {
    if (c.instance != nullptr && !c.instance->named_only.empty()) {
      named.insert(NamedCloudNote(*c.instance));
    }
  }
  report.notes.insert(report.notes.end(), named.begin(), named.end());
  if (options.spot) {
    report.notes.emplace_back("work lost to spot interruptions is not counted");
  }
  if (auto note = DevicesNote(candidates, scenario, options)) {
    report.notes.emplace_back(std::move(*note));
  }
  if (auto note = AccumulationNote(options)) {
    report.notes.push_back(std::move(*note));
  }
  AddNetworkNotes(candidates, options, report.notes);
  if (AnyIsCut(candidates, scenario, options)) {
    report.notes.emplace_back(fmt::format(
        "where a batch of {} does not fit a device it is cut into equal ones "
        "that are accumulated",
        scenario.workload.batch));
  }
  if (!scenario.extras.start_up) {
    const bool compiled = std::any_of(
        candidates.begin(), candidates.end(), [](const Candidate& c) {
          return c.job && c.job->compiles_at_start;
        });
    report.notes.emplace_back(StartUpNote(true, compiled),
                              Caution::kStartUpAssumed);
  }
  if (auto note = CompileNote(candidates)) {
    report.notes.push_back(std::move(*note));
  }
  if (auto note = PrecisionNote(candidates, scenario)) {
    report.notes.push_back(std::move(*note));
  }
  if (auto note = StackNote(candidates, scenario)) {
    report.notes.push_back(std::move(*note));
  }
  if (!candidates.empty() && candidates.front().chosen) {
    AddChosenNotes(candidates, scenario, options, report);
  } else {
    AddAdvice(candidates, scenario, options, report);
  }
  WarnOfOldPrices(candidates, options, report);
  if (!overview.calibration && IsUnsure(candidates)) {
    report.notes.emplace_back(
        "no one calibration would make the choice so much surer that it is "
        "worth renting an instance for it");
  }
}

}  // namespace trainfare::scenarios
