// Which instances, batches and precisions a choice is among.

#include "scenarios/commands/candidates.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_file.h"
#include "calibrate/fit/prior_fit.h"
#include "hardware/catalog/device.h"
#include "model/error.h"
#include "scenarios/commands/batch_cuts.h"
#include "scenarios/commands/predict.h"
#include "scenarios/commands/recommend.h"
#include "scenarios/report/json.h"
#include "tests/scenarios/commands/recommended.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {

TEST_CASE("a global batch is cut from the largest batch down") {
  const Scenario job = LoadScenario("llama_8b_lora");
  Cluster cluster;
  cluster.devices = 8;
  std::vector<std::pair<int64_t, int64_t>> cuts;
  for (const Scenario& cut : CutsOf(job, 96, cluster)) {
    cuts.emplace_back(cut.workload.batch, cut.workload.accumulation);
  }
  CHECK(cuts == std::vector<std::pair<int64_t, int64_t>>{
                    {12, 1}, {6, 2}, {4, 3}, {3, 4}, {2, 6}, {1, 12}});
  CHECK(CutsOf(job, 100, cluster).empty());
  Scenario passes = job;
  passes.workload.work = model::Work::kForward;
  REQUIRE(CutsOf(passes, 96, cluster).size() == 1);
  CHECK(CutsOf(passes, 96, cluster).front().workload.batch == 12);
}

TEST_CASE("a global batch stays, however many devices share it") {
  const FitFolder none;
  RecommendOptions options = For("llama_8b_fsdp");
  options.global_batch = 64;
  options.clouds = {"lambda"};
  const Report report = Recommend(options);
  const Json winner = Winner(report);
  const Json all = Json::parse(report.json);
  CHECK(all.at("global_batch") == 64);
  std::map<int64_t, int> hosts;
  for (const Json& c : all.at("candidates")) {
    const int64_t devices = c.at("devices");
    ++hosts[c.at("hosts").get<int64_t>()];
    if (c.at("cost_usd").is_null()) continue;
    CHECK(c.at("batch").get<int64_t>() * c.at("accumulation").get<int64_t>() *
              devices ==
          64);
    CHECK(c.at("estimate").at("devices") == devices);
  }
  for (const int64_t n : {1, 2, 4, 8}) CHECK(hosts[n] > 0);
  // What `predict` says of the choice.
  PredictOptions of_choice;
  of_choice.scenario = "llama_8b_fsdp";
  of_choice.instances = {winner.at("instance")};
  of_choice.devices = winner.at("devices");
  of_choice.hosts = winner.at("hosts");
  of_choice.overrides.batches = {winner.at("batch")};
  of_choice.overrides.settings = {
      "accumulation=" + winner.at("accumulation").dump(),
      "parallel.data=" + winner.at("devices").dump()};
  const Json predicted = Json::parse(Predict(of_choice).json);
  CHECK(predicted.at("predictions").at(0).at("run_time_s") ==
        winner.at("estimate").at("run_time_s"));
}

TEST_CASE("each candidate takes the best of the batches and precisions") {
  const FitFolder none;
  RecommendOptions options = For("imdb_bert_base");
  const auto times = [&](const std::vector<int64_t>& batches,
                         const std::vector<std::string>& precisions) {
    options.overrides.batches = batches;
    options.overrides.precisions = precisions;
    std::map<std::string, double> of_candidate;
    const Json all = Json::parse(Recommend(options).json);
    for (const Json& c : all.at("candidates")) {
      if (c.at("cost_usd").is_null()) continue;
      of_candidate[c.at("instance").get<std::string>() +
                   c.at("devices").dump()] = c.at("estimate").at("run_time_s");
    }
    return of_candidate;
  };
  const auto best = times({4, 8}, {"fp32", "fp16"});
  REQUIRE(!best.empty());
  for (const int64_t batch : {4, 8}) {
    for (const char* precision : {"fp32", "fp16"}) {
      for (const auto& one : times({batch}, {precision})) {
        CAPTURE(one.first);
        REQUIRE(best.contains(one.first));
        CHECK(best.at(one.first) <= one.second);
      }
    }
  }
}

// A model that is as large as a host takes it, on that host alone.
RecommendOptions LargeOn(const char* model, const char* instance) {
  RecommendOptions options;
  options.overrides.model = model;
  options.overrides.samples = 10000;
  options.overrides.lengths = {4096};
  options.overrides.settings = {
      "parallel.shard=fsdp", "gradient_checkpointing=true", "stack=liger"};
  options.instances = {instance};
  return options;
}

bool MayRunOut(const Report& report) {
  return std::any_of(
      report.notes.begin(), report.notes.end(), [](const Note& note) {
        return note.text.find("of its memory reaches to") != std::string::npos;
      });
}

TEST_CASE("the order of precisions does not choose among them") {
  const FitFolder none;
  RecommendOptions options =
      LargeOn("llama-3.3-70b", "lambda/gpu_8x_b200_sxm6");
  options.global_batch = 1024;
  const auto chosen = [&](const std::vector<std::string>& precisions) {
    options.overrides.precisions = precisions;
    const Json winner = Winner(Recommend(options));
    return std::pair(winner.at("precision").get<std::string>(),
                     winner.at("cost_usd").get<double>());
  };
  const auto narrow = chosen({"fp8"});
  CHECK(narrow.second < chosen({"bf16"}).second);
  CHECK(chosen({"bf16", "fp8"}) == narrow);
  CHECK(chosen({"fp8", "bf16"}) == narrow);
}

TEST_CASE("a batch that is safe is found behind those that may run out") {
  const FitFolder none;
  RecommendOptions options =
      LargeOn("mistral-small-24b", "lambda/gpu_8x_h100_sxm5");
  options.global_batch = 64;
  const Report report = Recommend(options);
  CHECK(Winner(report).at("accumulation") > 1);
  CHECK_FALSE(MayRunOut(report));
  // The whole batch is faster, and may run out.
  options.overrides.batches = {8};
  const Report whole = Recommend(options);
  CHECK(Winner(whole).at("cost_usd") < Winner(report).at("cost_usd"));
  CHECK(MayRunOut(whole));
}

TEST_CASE("of a global batch the safe batches that are named divide it") {
  const FitFolder none;
  RecommendOptions options =
      LargeOn("mistral-small-24b", "lambda/gpu_8x_h100_sxm5");
  options.global_batch = 64;
  options.overrides.batches = {8};
  const Report risky = Recommend(options);
  std::string note;
  for (const Note& one : risky.notes) {
    if (one.text.find(" is safe") != std::string::npos) note = one.text;
  }
  CAPTURE(note);
  const size_t flag = note.find("; --batch ");
  REQUIRE(flag != std::string::npos);
  const int64_t batch = std::stoll(note.substr(flag + 10));
  CHECK(64 / 8 % batch == 0);
  options.overrides.batches = {batch};
  const Report followed = Recommend(options);
  CHECK(Winner(followed).at("batch") == batch);
  CHECK_FALSE(MayRunOut(followed));
}

TEST_CASE("a global batch that does not divide says what would") {
  const FitFolder none;
  RecommendOptions options = For("llama_8b_lora");
  options.clouds = {"lambda"};
  const auto words = [&](int64_t global_batch) {
    options.global_batch = global_batch;
    const Json all = Json::parse(Recommend(options).json);
    return all.at("candidates").dump();
  };
  CHECK(words(7).find("a global batch of 7 does not divide over 4 ranks; "
                      "4 or 8 would") != std::string::npos);
  CHECK(words(3).find("a global batch of 3 does not divide over 2 ranks; "
                      "2 or 4 would") != std::string::npos);
}

// Of four ranks that have a model together each copy takes a batch: three
// sequences go on one copy, not on two.
TEST_CASE("a global batch is divided over copies of a divided model") {
  const FitFolder none;
  RecommendOptions options = For("llama_8b_lora");
  options.instances = {"aws/p4d.24xlarge"};
  options.overrides.settings = {"parallel.tensor=4"};
  options.global_batch = 3;
  const Json winner = Winner(Recommend(options));
  CHECK(winner.at("devices") == 4);
  CHECK(winner.at("batch").get<int64_t>() *
            winner.at("accumulation").get<int64_t>() ==
        3);
  options.all = true;
  options.global_batch = 9;
  const std::string all =
      Json::parse(Recommend(options).json).at("candidates").dump();
  CHECK(all.find("does not divide over 2 copies of the model; 8 or 10 would") !=
        std::string::npos);
  CHECK(all.find("parallel.tensor: 4 ranks have a model together, and 1 is no "
                 "multiple of that") != std::string::npos);
}

TEST_CASE("what does not fit as one batch is cut into some that do") {
  const FitFolder none;
  RecommendOptions options;
  options.overrides.model = "llama-3.1-8b";
  options.overrides.samples = 10000;
  options.overrides.lengths = {2048};
  const auto chosen = [&] {
    return Json::parse(Recommend(options).json).at("candidates").at(0);
  };
  const Json cut = chosen();
  CHECK(cut.at("chosen") == true);
  CHECK(cut.at("batch") < 8);
  CHECK(cut.at("batch").get<int>() * cut.at("accumulation").get<int>() == 8);
  // As if somebody had asked for these.
  options.overrides.batches = {cut.at("batch").get<int64_t>()};
  options.overrides.settings = {
      "accumulation=" + std::to_string(cut.at("accumulation").get<int>())};
  CHECK(chosen().at("estimate") == cut.at("estimate"));
  // Who names a batch means it.
  options.overrides.batches = {8};
  options.overrides.settings.clear();
  CHECK(chosen().at("batch") == 8);
  CHECK(chosen().at("instance") != cut.at("instance"));
}

TEST_CASE("candidates are of the devices and instances asked for") {
  const FitFolder none;
  RecommendOptions options = For("imdb_bert_base");
  options.devices = {"L4", "a10g"};
  std::set<std::string> devices;
  const Json both = Json::parse(Recommend(options).json).at("candidates");
  for (const Json& c : both) devices.insert(c.at("device"));
  CHECK(devices == std::set<std::string>{"a10g", "l4"});
  options.devices = {"groq_lpu"};
  CHECK_THROWS_WITH_AS(Recommend(options),
                       "--device: no cloud of the catalog rents out groq_lpu; "
                       "hint: --also groq_lpu",
                       model::InputError);
  options.devices.clear();
  options.instances = {"g5.xlarge"};
  const Json one = Json::parse(Recommend(options).json).at("candidates");
  CHECK(one.size() == 1);
  CHECK(one.at(0).at("instance") == "aws/g5.xlarge");
}

TEST_CASE("a job of more ranks than an instance has goes over several") {
  const FitFolder none;
  RecommendOptions options;
  options.scenario = "llama_8b_fsdp";
  options.clouds = {"aws"};
  options.overrides.settings = {"parallel.data=16"};
  const Json json = Json::parse(Recommend(options).json);
  CHECK(json.at("chosen").at("hosts") == 2);
  CHECK(json.at("chosen").at("devices") == 16);
  options.hosts = 0;
  CHECK_THROWS_AS(Recommend(options), model::InputError);
}

TEST_CASE("clouds filter, unknown ones get the nearest") {
  const FitFolder none;
  RecommendOptions options = For("emotion_bert_base");
  options.clouds = {"gcp"};
  const Json json = Json::parse(Recommend(options).json);
  for (const Json& candidate : json.at("candidates")) {
    CHECK(candidate.at("instance").get<std::string>().starts_with("gcp/"));
  }
  options.clouds = {"asw"};
  CHECK_THROWS_WITH_AS(Recommend(options),
                       "--cloud: unknown cloud \"asw\"; did you mean \"aws\"? "
                       "known: aws, azure, gcp, lambda, nebius, vast, verda",
                       model::InputError);
}

TEST_CASE("a marketplace counts where it is named") {
  const FitFolder none;
  RecommendOptions options = For("llama_8b_lora");
  const auto clouds = [&] {
    std::set<std::string> of;
    const Json all = Json::parse(Recommend(options).json);
    for (const Json& c : all.at("candidates")) {
      const std::string name = c.at("instance");
      of.insert(name.substr(0, name.find('/')));
    }
    return of;
  };
  const std::set<std::string> usual = {"aws", "azure", "gcp", "lambda"};
  CHECK(clouds() == usual);
  // By a device that nobody else rents out: a 7 B LoRA on a consumer card.
  options.devices = {"rtx_4090", "a10"};
  CHECK(clouds() == std::set<std::string>{"azure", "lambda", "vast"});
  options.devices = {"rtx_4090"};
  const Report report = Recommend(options);
  CHECK(Winner(report).at("instance").get<std::string>().starts_with("vast/"));
  const bool said = std::any_of(
      report.notes.begin(), report.notes.end(), [](const Note& note) {
        return note.text.starts_with("vast: hosts of other people");
      });
  CHECK(said);
  options.devices = {"h100_sxm"};
  CHECK_FALSE(clouds().contains("vast"));
  options.devices.clear();
  options.instances = {"1x-H100_SXM-32-65536"};
  CHECK(clouds() == std::set<std::string>{"vast"});
  options.instances.clear();
  options.clouds = {"Vast", "lambda"};
  CHECK(clouds() == std::set<std::string>{"lambda", "vast"});
  // By prices of its own.
  options.clouds.clear();
  const TemporaryFolder folder;
  options.prices.files = {
      folder.Write("vast.yaml",
                   "cloud: vast\ncurrency: USD\ndate: 2026-11-20\nsource: s\n"
                   "billing: { granularity: 1 s, minimum: 1 s }\n"
                   "excludes: []\nprices:\n"
                   "  - instance: 1x-RTX_4090-32-65536\n    regions:\n"
                   "      \", CA, NA\": { on_demand: 0.1 USD/h }\n")};
  std::set<std::string> with_prices = usual;
  with_prices.insert("vast");
  CHECK(clouds() == with_prices);
  CHECK(Winner(Recommend(options)).at("instance") ==
        "vast/1x-RTX_4090-32-65536");
}

TEST_CASE("a device that nobody rents out is answered for, and never chosen") {
  const FitFolder none;
  RecommendOptions options = For("emotion_bert_base");
  options.objective = Objective::kTime;
  options.also = {"sambanova_sn30", "cerebras_wse2", "groq_lpu", "ipu_gc200"};
  const Json json = Json::parse(Recommend(options).json);
  CHECK(json.at("chosen").at("instance").is_string());
  std::map<std::string, Json> seen;
  for (const Json& candidate : json.at("candidates")) {
    if (candidate.at("instance").is_null()) {
      seen[candidate.at("device")] = candidate;
    }
  }
  REQUIRE(seen.size() == 4);
  const Json& timed = seen["sambanova_sn30"];
  CHECK(timed.at("reason") == "by itself: no instance, so no price");
  CHECK(timed.at("estimate").at("step_time_s").get<double>() > 0);
  CHECK(timed.at("estimate").at("fit_figures") == 1);
  CHECK(timed.at("cost_usd").is_null());
  // bf16 on chips of fp16.
  CHECK(seen["cerebras_wse2"].at("reason") ==
        "precision: cerebras_wse2 has no bf16; it runs fp16");
  for (const auto& [device, candidate] : seen) {
    CHECK_FALSE(candidate.at("chosen").get<bool>());
  }
  options.also = {"cerebras_wse3"};
  CHECK_THROWS_AS(Recommend(options), model::InputError);
}

TEST_CASE("this machine stands beside the instances once it was calibrated") {
  const FitFolder fits;
  const auto rows_here = [](const Report& report) {
    const Table& table = report.tables.front();
    int rows = 0;
    for (const auto& row : table.rows) {
      if (row[1].text == "this machine") ++rows;
    }
    return rows;
  };
  const RecommendOptions options = For("emotion_bert_base");
  const Report before = Recommend(options);
  CHECK(rows_here(before) == 0);
  calibrate::Fit fit = calibrate::PriorFit(hardware::HostCpu());
  fit.measured_device = hardware::HostCpu();
  std::filesystem::create_directories(fits.Path("fits"));
  calibrate::SaveFit(fit, fits.Path("fits/mine.yaml"));
  const Report after = Recommend(options);
  CHECK(rows_here(after) == 1);
  CHECK(Winner(after) == Winner(before));
  const Json json = Json::parse(after.json);
  const Json& here = json.at("candidates").back();
  CHECK(here.at("device") == "cpu");
  CHECK(here.at("reason") == "not for rent");
  CHECK(here.at("estimate").at("run_time_s").get<double>() > 0);
  // A processor that is not this one.
  fit.reported_name = "Example 9000";
  calibrate::SaveFit(fit, fits.Path("fits/mine.yaml"));
  CHECK(rows_here(Recommend(options)) == 0);
}

TEST_CASE("devices without the precision are named, and how they count") {
  const FitFolder none;
  RecommendOptions options;
  options.scenario = "emotion_bert_base";
  options.devices = {"t4", "l4"};
  const auto says = [&] {
    const Report report = Recommend(options);
    return std::any_of(
        report.notes.begin(), report.notes.end(), [](const Note& note) {
          return note.text ==
                 "t4 has no bf16; --precision bf16,fp16 compares it, too";
        });
  };
  CHECK(says());
  options.overrides.precisions = {"bf16", "fp16"};
  CHECK_FALSE(says());
}

}  // namespace trainfare::scenarios
