#include "scenarios/commands/recommend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "hardware/catalog/device.h"
#include "model/error.h"
#include "model/limits.h"
#include "model/parallel.h"
#include "scenarios/commands/candidate_charts.h"
#include "scenarios/commands/candidates.h"
#include "scenarios/commands/catalog_flags.h"
#include "scenarios/commands/choice_odds.h"
#include "scenarios/commands/obstacles.h"
#include "scenarios/commands/predict.h"
#include "scenarios/commands/recommendation_report.h"

namespace trainfare::scenarios {
namespace {

constexpr int64_t kMostCandidates = 1'000'000;  // any number beyond the catalog

Grounds GroundsOf(const std::vector<Candidate>& candidates,
                  const RecommendOptions& options) {
  std::set<std::string> clouds;
  for (const Candidate& c : candidates) {
    if (c.instance != nullptr) clouds.insert(c.instance->cloud);
  }
  return {kOddsSeed, SourcesOf(options.prices, clouds)};
}

// What `predict` says of the choice.
Report ReportOf(const Candidate& best, const RecommendOptions& options) {
  PredictOptions of_choice;
  of_choice.scenario = options.scenario;
  if (best.instance != nullptr) {
    of_choice.instances = {best.instance->FullName()};
    of_choice.hosts = best.hosts;
    if (best.over_named_network) of_choice.network = options.network;
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
    const model::Parallel& parallel = best.job->workload.parallel;
    if (parallel.shard != model::Shard::kNone) {
      settings.push_back(
          fmt::format("parallel.data={}", model::CopiesOf(parallel)));
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
    // As little as a device can have: each place has its own.
    overrides.batches = {1};
  }
  std::vector<Scenario> jobs =
      Variants(LoadJob(options.scenario, overrides), overrides);
  // Then the ranks are to be chosen, too.
  if (options.global_batch) {
    for (Scenario& job : jobs) job.workload.parallel.data = 0;
  }
  return jobs;
}

// There is nothing to choose from: what was asked for has no instance in
// common.
[[noreturn]] void RefuseAll(const RecommendOptions& options) {
  std::vector<std::string_view> flags;
  if (!options.clouds.empty()) flags.push_back("--cloud");
  if (!options.devices.empty()) flags.push_back("--device");
  if (!options.instances.empty()) flags.push_back("--instance");
  if (flags.empty()) throw model::InputError("no instance is known");
  const std::string message =
      fmt::format("{}: expected an instance that suits {}, got none",
                  fmt::join(flags, ", "),
                  flags.size() == 1 ? "it" : "all of them");
  if (flags.size() == 1) throw model::InputError(message);
  throw UsageError(message);
}

// That nothing is left; how many hosts would be over the network that is
// assumed, were it known; where half and more cannot run the job, the reason that
// most of them have, of the first that has it: the table hides it.
std::string WhyNone(const std::vector<Candidate>& candidates,
                    const RecommendOptions& options) {
  std::string why = "no instance fits and meets the limits";
  std::map<std::string_view, size_t> reasons;
  size_t unable = 0;
  for (const Candidate& c : candidates) {
    if (c.objection.kind != Obstacle::kCannotRun) continue;
    ++unable;
    ++reasons[c.objection.words];
  }
  const auto more = std::count_if(
      candidates.begin(), candidates.end(), [&](const Candidate& c) {
        return c.objection.kind == Obstacle::kNetworkUnknown &&
               MissedLimit(c, options).kind == Obstacle::kNone;
      });
  if (more > 0) {
    return fmt::format(
        "{}; {} of several hosts would, over a network that is "
        "not known; hint: --network 100Gbit/s",
        why,
        more);
  }
  if (2 * unable < candidates.size() || unable == 0) return why;
  const Candidate* first = nullptr;
  for (const Candidate& c : candidates) {
    const auto found = reasons.find(c.objection.words);
    if (found == reasons.end()) continue;
    if (first == nullptr || found->second > reasons[first->objection.words]) {
      first = &c;
    }
  }
  return fmt::format("{}; {} ({} x {}) cannot run it: {}",
                     why,
                     first->Name(),
                     first->devices,
                     first->device,
                     first->objection.words);
}

// Devices by the catalog's names, with a note where that is a choice. Names
// that nobody has are told by their flags.
void ResolveNames(RecommendOptions& options, std::vector<Note>& notes) {
  const auto resolve = [&](std::string_view flag, std::string& name) {
    const hardware::Device& device = FindUsualDevice(flag, name);
    if (auto taken = hardware::DeviceCatalog::Shipped().TakenAs(name)) {
      notes.emplace_back(*std::move(taken));
    }
    name = device.name;
  };
  for (std::string& name : options.devices) resolve("--device", name);
  for (std::string& name : options.also) resolve("--also", name);
  for (const std::string& name : options.instances) {
    FindInstance("--instance", name);
  }
}

}  // namespace

Report Recommend(const RecommendOptions& asked) {
  RecommendOptions options = asked;
  const std::vector<Scenario> jobs = JobsOf(options);
  const Scenario& scenario = jobs.front();
  if (options.hosts) {
    RequireCount("--hosts", *options.hosts, model::kMostDevices);
  }
  Report report;
  ResolveNames(options, report.notes);
  std::vector<std::string> left_out_fits;
  std::vector<Candidate> candidates =
      EstimateCandidates(jobs, options, left_out_fits);
  if (candidates.empty()) RefuseAll(options);
  report.warnings = NotesOf(left_out_fits, Caution::kFitUnreadable);
  Rank(candidates, options.objective);
  const Overview overview = {
      CountTies(candidates),
      GroundsOf(candidates, options),
      NextCalibrationOf(options, SetOdds(options, candidates))};
  report.headline = Headline(candidates, scenario, options, overview);
  report.closing = report.headline.front();
  AddChoice(candidates, options, report);
  AddNotes(candidates, scenario, options, overview, report);
  const bool none = candidates.empty() || !candidates.front().chosen;
  if (none) report.complaint = WhyNone(candidates, options);
  if (options.top) {
    RequireCount("--top", *options.top, kMostCandidates);
    report.notes.push_back(Shorten(candidates, *options.top));
  }
  report.tables.push_back(CandidateTable(candidates, scenario, options));
  if (none) {
    report.exit_code = kNothingFits;
  } else {
    report.answers = {"/candidates/0"};
  }
  if (options.json) {
    report.json = AnswerText(
        RecommendationJson(candidates, scenario, options, overview), report);
  }
  return report;
}

}  // namespace trainfare::scenarios
