#include "scenarios/commands/recommend.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "model/error.h"
#include "scenarios/commands/candidates.h"
#include "scenarios/commands/predict.h"
#include "scenarios/report/json.h"
#include "tests/near.h"
#include "tests/scenarios/commands/recommended.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {

TEST_CASE("every instance is there, with a reason unless chosen") {
  const FitFolder none;
  const Report report = Recommend(For("emotion_bert_base"));
  const Json json = Json::parse(report.json);
  std::map<std::string, int> seen;
  for (const Json& candidate : json.at("candidates")) {
    ++seen[candidate.at("instance")];
    if (candidate.at("chosen").get<bool>()) {
      CHECK(candidate.at("reason").is_null());
    } else {
      CHECK_FALSE(candidate.at("reason").get<std::string>().empty());
    }
  }
  for (const auto& instance :
       hardware::InstanceCatalog::Shipped().instances()) {
    CAPTURE(instance.FullName());
    const int places = instance.count > 1 ? 2 : 1;
    CHECK(seen[instance.FullName()] ==
          (instance.named_only.empty() ? places : 0));
  }
}

TEST_CASE("the winner is best by its objective, and one in all places") {
  const FitFolder none;
  for (const Objective objective :
       {Objective::kCost, Objective::kTime, Objective::kEnergy}) {
    RecommendOptions options = For("imdb_bert_base");
    options.objective = objective;
    const Report report = Recommend(options);
    const Json winner = Winner(report);
    const auto score = [&](const Json& candidate) {
      if (objective == Objective::kCost) {
        return candidate.at("cost_usd").get<double>();
      }
      return candidate.at("estimate")
          .at(objective == Objective::kTime ? "run_time_s" : "energy_j")
          .get<double>();
    };
    const Json all = Json::parse(report.json);
    for (const Json& candidate : all.at("candidates")) {
      if (candidate.at("cost_usd").is_null()) continue;
      if (objective == Objective::kEnergy &&
          candidate.at("estimate").at("energy_j").is_null()) {
        continue;
      }
      CHECK(score(candidate) >= score(winner));
    }
  }
}

// One that costs so much, or so many times less or more.
Candidate Costing(double dollars, double times, calibrate::Grade grade) {
  Candidate c;
  c.device = "a10g";
  c.job.emplace();
  c.job->step.grade = grade;
  c.job->step.low_factor = 1 / times;
  c.cost = {model::Usd<>(dollars),
            model::Usd<>(dollars / times),
            model::Usd<>(dollars * times)};
  return c;
}

TEST_CASE("a measured candidate wins a tie, and no more than a tie") {
  using calibrate::Grade;
  struct Case {
    double dollars;
    double times;
    bool wins;
  };
  for (const Case& one : {Case{1.04, 1.05, true},
                          Case{1.06, 1.05, false},
                          Case{1.6, 2.0, false}}) {
    CAPTURE(one.dollars);
    std::vector<Candidate> candidates = {
        Costing(1.0, 1.5, Grade::kDatasheetOnly),
        Costing(one.dollars, one.times, Grade::kMeasured),
        Costing(1.1, 1.5, Grade::kExtrapolated)};
    Rank(candidates, Objective::kCost);
    CHECK(candidates[0].chosen);
    CHECK(candidates[0].by_measurement == one.wins);
    CHECK((candidates[0].job->step.grade == Grade::kMeasured) == one.wins);
    if (one.wins) {
      CHECK(candidates[1].worse == "not measured, 4.0 % cheaper");
      CHECK(candidates[1].tied);
    }
  }
}

TEST_CASE("what fits with room to spare goes before what may not fit") {
  const FitFolder none;
  RecommendOptions options = For("llama_8b_lora");
  options.global_batch = 512;
  const Json all = Json::parse(Recommend(options).json);
  const Json& chosen = all.at("candidates").at(0);
  const Json& memory = chosen.at("estimate");
  CAPTURE(memory.dump());
  CHECK(chosen.at("accumulation").get<int64_t>() > 1);
  CHECK(memory.at("memory_high_bytes").get<double>() <=
        memory.at("memory_capacity_bytes").get<double>());
}

TEST_CASE("a weighted score is of shares of the largest") {
  const FitFolder none;
  RecommendOptions options = For("imdb_bert_base");
  options.objective = ObjectiveFromText("cost_energy_time");
  const Report report = Recommend(options);
  CHECK(report.headline.front().find(
            "best by cost before energy before time") != std::string::npos);
  const Json winner = Winner(report);
  const Json all = Json::parse(report.json);
  const auto energy = [](const Json& candidate) {
    return candidate.at("estimate").at("energy_j").get<double>();
  };
  const auto time = [](const Json& candidate) {
    return candidate.at("estimate").at("run_time_s").get<double>();
  };
  const auto cost = [](const Json& candidate) {
    return candidate.at("cost_usd").get<double>();
  };
  std::vector<Json> in;
  for (const Json& candidate : all.at("candidates")) {
    if (candidate.at("score").is_null()) continue;
    in.push_back(candidate);
  }
  REQUIRE(in.size() > 10);
  const auto largest = [&](const auto& of) {
    double most = 0;
    for (const Json& candidate : in) most = std::max(most, of(candidate));
    return most;
  };
  for (const Json& candidate : in) {
    const double score = candidate.at("score");
    CHECK(score == Near(0.1 * time(candidate) / largest(time) +
                            0.5 * cost(candidate) / largest(cost) +
                            0.3 * energy(candidate) / largest(energy),
                        1e-5));
    CHECK(score >= winner.at("score").get<double>());
  }
}

TEST_CASE("no price is no price: never 0, never the winner") {
  const FitFolder none;
  const Json json = Json::parse(Recommend(For("emotion_bert_base")).json);
  int without = 0;
  for (const Json& candidate : json.at("candidates")) {
    if (!candidate.at("price").is_null()) {
      CHECK(candidate.at("price").at("price_usd_per_hour") > 0.0);
      continue;
    }
    ++without;
    CHECK(candidate.at("cost_usd").is_null());
    CHECK_FALSE(candidate.at("chosen").get<bool>());
  }
  CHECK(without > 0);  // aws/p5e.48xlarge has no public price
}

TEST_CASE("limits rule out what passes them and say by how much") {
  const FitFolder none;
  RecommendOptions options = For("imdb_bert_base");
  options.overrides.start_up.emplace("0");
  const Json cheapest = Winner(Recommend(options));
  const double run = cheapest.at("estimate").at("run_time_s").get<double>();
  options.deadline = model::Second(run / 4.0);
  const Json faster = Winner(Recommend(options));
  CHECK(faster.at("estimate").at("run_time_s").get<double>() <= run / 4.0);
  CHECK(faster.at("cost_usd") > cheapest.at("cost_usd"));

  options.budget = model::Dollars(cheapest.at("cost_usd").get<double>());
  const Report none_left = Recommend(options);
  CHECK(none_left.exit_code == kNothingFits);
  const Json json = Json::parse(none_left.json);
  CHECK(json.at("chosen").is_null());
  bool late = false;
  bool dear = false;
  for (const Json& candidate : json.at("candidates")) {
    const std::string reason = candidate.at("reason");
    late = late || reason.starts_with("misses the deadline by ");
    dear = dear || reason.starts_with("over the budget by ");
  }
  CHECK(late);
  CHECK(dear);
}

TEST_CASE("a tie is a candidate within the choice's interval, and is counted") {
  const FitFolder none;
  RecommendOptions options = For("emotion_bert_base");
  // Long enough that billing by the minute leaves an interval.
  options.overrides.epochs = 30;
  const Report report = Recommend(options);
  const Json json = Json::parse(report.json);
  const Json winner = Winner(report);
  int ties = 0;
  for (const Json& candidate : json.at("candidates")) {
    bool within = !candidate.at("chosen").get<bool>() &&
                  !candidate.at("cost_usd").is_null() &&
                  candidate.at("cost_usd") <= winner.at("cost_high_usd");
    // What errs alike is not better for it.
    if (candidate.at("device") == winner.at("device") && within) {
      within = candidate.at("cost_low_usd") <= winner.at("cost_low_usd") ||
               candidate.at("cost_high_usd") <= winner.at("cost_high_usd");
    }
    CHECK(candidate.at("tied").get<bool>() == within);
    ties += within ? 1 : 0;
  }
  CHECK(ties > 0);
  CHECK(json.at("chosen").at("ties") == ties);
  CHECK(winner.at("cost_low_usd") <= winner.at("cost_usd"));
  CHECK(winner.at("cost_usd") <= winner.at("cost_high_usd"));
}

TEST_CASE("a choice that is sure is in no tie with its own device") {
  const FitFolder none;
  RecommendOptions options = For("imdb_bert_base");
  options.instances = {"aws/g6e.xlarge", "aws/g6e.2xlarge", "aws/g6e.4xlarge"};
  const Report report = Recommend(options);
  const Json json = Json::parse(report.json);
  const Json& candidates = json.at("candidates");
  REQUIRE(candidates.size() == 3);
  CHECK(json.at("chosen").at("best_probability") == 1.0);
  CHECK(json.at("chosen").at("ties") == 0);
  // By its figure alone it would be one.
  CHECK(candidates.at(1).at("cost_usd") < candidates.at(0).at("cost_high_usd"));
}

TEST_CASE("people see the best ten and the answer last; all of it on request") {
  const FitFolder none;
  RecommendOptions options = For("emotion_bert_base");
  const Report report = Recommend(options);
  const Table& table = report.tables.front();
  CHECK(table.rows.size() - table.elided.size() == 10);
  CHECK(table.rest.find("--all shows them") != std::string::npos);
  CHECK(report.closing == report.headline.front());
  const std::string narrow = Render(report, Format::kTable, false, 80);
  for (size_t at = 0; at < narrow.size(); at = narrow.find('\n', at) + 1) {
    CHECK(narrow.find('\n', at) - at <= 80);
  }
  const std::string csv = Render(report, Format::kCsv);
  CHECK(static_cast<size_t>(std::count(csv.begin(), csv.end(), '\n')) ==
        table.rows.size() + 1);
  options.all = true;
  CHECK(Recommend(options).tables.front().elided.empty());
}

TEST_CASE("where a limit leaves nothing, what misses it by least comes first") {
  const FitFolder none;
  RecommendOptions options = For("imdb_bert_base");
  options.deadline = model::Second(1);
  const Report report = Recommend(options);
  const Json json = Json::parse(report.json);
  double last = 0;
  int misses = 0;
  for (const Json& candidate : json.at("candidates")) {
    const std::string reason = candidate.at("reason");
    if (!reason.starts_with("misses the deadline by ")) break;
    const double run = candidate.at("estimate").at("run_time_s");
    CHECK(run >= last);
    last = run;
    ++misses;
  }
  CHECK(misses > 10);
  const Table& table = report.tables.front();
  CHECK(table.rows.size() - table.elided.size() == 3);
}

TEST_CASE("of two limits the one that is missed by more counts") {
  const FitFolder none;
  RecommendOptions options = For("squad_bert_large");
  options.deadline = model::Second(1800);
  options.budget = model::Usd<>(1);
  const Json json = Json::parse(Recommend(options).json);
  double last = 0;
  int both = 0;
  for (const Json& candidate : json.at("candidates")) {
    if (candidate.at("chosen") == true) continue;
    const std::string reason = candidate.at("reason");
    const bool late = reason.starts_with("misses the deadline by ");
    const bool dear = reason.find("over the budget by ") != std::string::npos;
    if (!late && !dear) break;
    both += late && dear ? 1 : 0;
    const double run = candidate.at("estimate").at("run_time_s");
    const double cost = candidate.at("cost_usd");
    const double miss = std::max(run / 1800.0, cost / 1.0);
    CHECK(miss >= last);
    CHECK(late == (run > 1800.0));
    CHECK(dear == (cost > 1.0));
    last = miss;
  }
  CHECK(both > 10);
}

TEST_CASE("what does not fit and what lacks the precision say so") {
  const FitFolder none;
  RecommendOptions options = For("squad_bert_large");
  options.overrides.batches = {64};
  options.overrides.precisions = {"bf16"};
  const Json json = Json::parse(Recommend(options).json);
  bool memory = false;
  bool precision = false;
  for (const Json& candidate : json.at("candidates")) {
    if (candidate.at("chosen").get<bool>()) continue;
    const std::string reason = candidate.at("reason");
    memory = memory || reason.starts_with("does not fit memory by ");
    precision = precision || reason.find("bf16") != std::string::npos;
  }
  CHECK(memory);
  CHECK(precision);
}

TEST_CASE("of what does not fit the nearest to it comes first") {
  const FitFolder none;
  RecommendOptions options;
  options.overrides.model = "deepseek-v3";
  options.overrides.samples = 5000;
  options.overrides.lengths = {4096};
  options.overrides.batches = {1};
  options.clouds = {"aws", "gcp"};
  const Json json = Json::parse(Recommend(options).json);
  double last = 0;
  bool unable = false;
  size_t unfit = 0;
  for (const Json& candidate : json.at("candidates")) {
    if (!candidate.contains("estimate") || candidate["estimate"].is_null()) {
      unable = true;
      continue;
    }
    CHECK_FALSE(unable);  // what cannot run it is behind all of these
    const Json& estimate = candidate.at("estimate");
    const double share = estimate.at("memory_bytes").get<double>() /
                         estimate.at("memory_capacity_bytes").get<double>();
    CHECK(share > 1.0);
    CHECK(share >= last);
    last = share;
    ++unfit;
  }
  CHECK(unable);
  CHECK(unfit > 20);
}

TEST_CASE("where no instance has room, the fewest changes are named") {
  const FitFolder none;
  RecommendOptions options;
  options.overrides.model = "llama-3.1-70b";
  options.overrides.samples = 1000;
  options.overrides.lengths = {4096};
  options.hosts = 2;
  const Report report = Recommend(options);
  CHECK(report.exit_code == kNothingFits);
  std::string advice;
  for (const Note& note : report.notes) {
    if (note.text.starts_with("an instance fits with ")) advice = note.text;
  }
  CAPTURE(advice);
  // 70 B and their optimizer's state are on no one device.
  CHECK(advice.find("parallel.shard=fsdp") != std::string::npos);
  CHECK(advice.find(", or with --set ") != std::string::npos);
  // Done as it says, there is a choice, of that cost.
  const std::string first = advice.substr(0, advice.find(", or with"));
  std::istringstream words(first);
  for (std::string word; words >> word;) {
    if (word == "--set" && words >> word) {
      options.overrides.settings.push_back(word);
    }
  }
  const Report changed = Recommend(options);
  CHECK(changed.exit_code == kOk);
  const Json chosen = Json::parse(changed.json).at("chosen");
  CHECK(first.find(chosen.at("instance").get<std::string>()) !=
        std::string::npos);
}

// A decoder over several hosts.
RecommendOptions OverHosts(int64_t global_batch) {
  RecommendOptions options;
  options.overrides.model = "llama-3.2-1b";
  options.overrides.samples = 40'000;
  options.overrides.lengths = {8192};
  options.overrides.settings = {"parallel.shard=fsdp"};
  options.global_batch = global_batch;
  return options;
}

bool SaysOf(const Report& report, std::string_view words) {
  return std::any_of(
      report.notes.begin(), report.notes.end(), [&](const Note& note) {
        return note.text.find(words) != std::string::npos;
      });
}

TEST_CASE("hosts whose network nobody names are never the choice") {
  const FitFolder none;
  RecommendOptions options = OverHosts(128);
  options.clouds = {"lambda"};
  options.devices = {"gh200_96gb"};
  options.objective = Objective::kTime;
  const Report report = Recommend(options);
  CHECK(Winner(report).at("devices") == 1);
  // They are shown, timed, behind the others, and counted.
  const Json unnamed = Json::parse(report.json).at("candidates").at(1);
  CHECK(unnamed.at("hosts") == 8);
  CHECK(unnamed.at("reason") == "network not known; --network 100Gbit/s");
  CHECK_FALSE(unnamed.at("cost_usd").is_null());
  CHECK(unnamed.at("best_probability").is_null());
  CHECK(SaysOf(report, "3 candidates of several hosts of lambda are out"));
  CHECK_FALSE(report.tables.front().elided.contains(1));
  // Once it is named, the answer is that of `predict` over it.
  options.network = "100Gbit/s";
  const Report named = Recommend(options);
  const Json winner = Winner(named);
  CHECK(winner.at("hosts") == 8);
  CHECK_FALSE(SaysOf(named, "of several hosts"));
  PredictOptions of_choice;
  of_choice.overrides = options.overrides;
  of_choice.overrides.batches = {winner.at("batch")};
  of_choice.overrides.settings.push_back("accumulation=" +
                                         winner.at("accumulation").dump());
  of_choice.instances = {winner.at("instance")};
  of_choice.hosts = winner.at("hosts");
  of_choice.network = options.network;
  const Json predicted = Json::parse(Predict(of_choice).json);
  CHECK(predicted.at("predictions").at(0).at("run_time_s") ==
        winner.at("estimate").at("run_time_s"));
  options.network = "fast";
  CHECK_THROWS_WITH_AS(
      Recommend(options),
      "--network: expected a rate such as 400Gbit/s, got \"fast\"",
      model::InputError);
  // One whose network its cloud states keeps that.
  options.clouds = {"aws"};
  options.devices = {"h100_sxm"};
  options.network.reset();
  const Json stated = Winner(Recommend(options));
  REQUIRE(stated.at("devices").get<int>() > 8);
  options.network = "1Gbit/s";
  CHECK(Winner(Recommend(options)) == stated);
}

TEST_CASE("where only hosts of no known network have room, that is said") {
  const FitFolder none;
  RecommendOptions options = OverHosts(128);
  options.overrides.model = "llama-3.2-3b";
  options.overrides.settings = {
      "parallel.shard=fsdp", "gradient_checkpointing=true", "stack=liger"};
  options.clouds = {"lambda"};
  options.devices = {"a10"};
  const Report report = Recommend(options);
  CHECK(report.exit_code == kNothingFits);
  CHECK(report.complaint.find("of several hosts would, over a network that is "
                              "not known; hint: --network 100Gbit/s") !=
        std::string::npos);
}

TEST_CASE("hosts of no known network that miss a limit are not said to do") {
  const FitFolder none;
  RecommendOptions options = For("llama_8b_fsdp");
  const auto says = [&] {
    return Recommend(options).complaint.find("of several hosts would") !=
           std::string::npos;
  };
  options.deadline = model::Second(600);
  CHECK_FALSE(says());
  // Nor are they over one that is named.
  options.network = "100Gbit/s";
  CHECK(Recommend(options).exit_code == kNothingFits);
  options.network.reset();
  options.deadline.reset();
  options.budget = model::Usd<>(10);
  CHECK_FALSE(says());
}

TEST_CASE("hosts of a marketplace are several where somebody joins them") {
  const FitFolder none;
  RecommendOptions options = OverHosts(64);
  options.clouds = {"vast"};
  const auto most_hosts = [&] {
    int64_t most = 0;
    const Json all = Json::parse(Recommend(options).json);
    for (const Json& c : all.at("candidates")) {
      most = std::max(most, c.at("hosts").get<int64_t>());
    }
    return most;
  };
  CHECK(most_hosts() == 1);
  CHECK(SaysOf(Recommend(options), "hosts of a marketplace stand together"));
  options.network = "100Gbit/s";
  CHECK(most_hosts() == 8);
  CHECK_FALSE(
      SaysOf(Recommend(options), "hosts of a marketplace stand together"));
}

TEST_CASE("a global batch beyond the epoch is said") {
  const FitFolder none;
  RecommendOptions options = OverHosts(128);
  options.overrides.samples = 100;
  options.instances = {"aws/p5.48xlarge"};
  CHECK(SaysOf(Recommend(options),
               "the global batch of 128 is more than the 100 samples of an "
               "epoch"));
}

TEST_CASE("CSV has the memory of what does not fit, as JSON has") {
  const FitFolder none;
  RecommendOptions options;
  options.overrides.model = "llama-3.1-8b";
  options.overrides.samples = 1000;
  options.overrides.lengths = {2048};
  options.overrides.precisions = {"fp16"};
  options.instances = {"aws/g4dn.xlarge"};
  const Report report = Recommend(options);
  const Json estimate =
      Json::parse(report.json).at("candidates").at(0).at("estimate");
  CHECK_FALSE(estimate.at("fits").get<bool>());
  const Table& table = report.tables.front();
  std::map<std::string, std::string> row;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    row[table.columns[i].key] = table.rows.front()[i].raw;
  }
  for (const char* key :
       {"memory_bytes", "memory_low_bytes", "memory_high_bytes"}) {
    CAPTURE(key);
    CHECK(std::stod(row[key]) == estimate.at(key).get<double>());
  }
  CHECK(row["run_time_s"].empty());
}

TEST_CASE("a region is named with the commas that it has") {
  const FitFolder none;
  RecommendOptions options = For("emotion_bert_base");
  options.clouds = {"vast"};
  const auto regions = [&](const std::string& asked) {
    options.prices.regions = {asked};
    std::set<std::string> priced;
    const Json answer = Json::parse(Recommend(options).json);
    for (const Json& candidate : answer.at("candidates")) {
      const Json& price = candidate.at("price");
      if (!price.is_null()) priced.insert(price.at("region"));
    }
    return priced;
  };
  CHECK(regions("Iceland, IS, EU") == std::set<std::string>{"Iceland, IS, EU"});
  CHECK(regions("us-east-1,Iceland,IS,EU, CN, AS") ==
        std::set<std::string>{"CN, AS", "Iceland, IS, EU"});
  CHECK_THROWS_WITH_AS(
      regions("us-east-1,Iceland, IS"),
      doctest::Contains("--region: unknown region \"Iceland\""),
      model::InputError);
  CHECK_THROWS_WITH_AS(regions("us-east-1,"),
                       "--region: expected a name, got \"\"",
                       model::InputError);
}

TEST_CASE("spot prices are not above those on demand") {
  const FitFolder none;
  RecommendOptions options = For("emotion_bert_base");
  const Report on_demand = Recommend(options);
  options.spot = true;
  const Report spot = Recommend(options);
  CHECK(Winner(spot).at("cost_usd") <= Winner(on_demand).at("cost_usd"));
  CHECK(spot.notes.front().text.find("spot") != std::string::npos);
  CHECK(on_demand.notes.front().text.find("on demand") != std::string::npos);
  CHECK(on_demand.notes.front().text.find("excludes") != std::string::npos);
}

TEST_CASE("a cost by spot prices holds their range over zones") {
  const FitFolder none;
  PredictOptions options;
  options.scenario = "llama_8b_fsdp";
  options.instances = {"aws/p5.48xlarge"};
  options.spot = true;
  const Json json = Json::parse(Predict(options).json);
  const Json& price = json.at("price");
  const double low = price.at("price_low_usd_per_hour");
  const double high = price.at("price_usd_per_hour");
  REQUIRE(low < high);
  const Json& p = json.at("predictions").at(0);
  const auto cost = [&](const char* time, double price_per_hour) {
    return Near(p.at(time).get<double>() / 3600.0 * price_per_hour, 1e-3);
  };
  CHECK(p.at("cost_usd").get<double>() == cost("run_time_s", high));
  CHECK(p.at("cost_low_usd").get<double>() == cost("run_time_low_s", low));
  CHECK(p.at("cost_high_usd").get<double>() == cost("run_time_high_s", high));
}

}  // namespace trainfare::scenarios
