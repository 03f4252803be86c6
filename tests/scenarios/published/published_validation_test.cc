// Published runs through the product's own path: what `predict` prints is what
// the table has, and no figure of a run has a part in its own prediction.

#include "scenarios/published/published_validation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "calibrate/records/import/published_quantity.h"
#include "calibrate/records/import/published_records.h"
#include "calibrate/records/import/published_value.h"
#include "hardware/catalog/device.h"
#include "model/error.h"
#include "scenarios/job/fits.h"
#include "scenarios/published/compared_runs.h"
#include "scenarios/published/published_error.h"
#include "scenarios/published/published_files.h"
#include "scenarios/published/published_job.h"
#include "tests/near.h"
#include "tests/scenarios/published/shipped.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Published;
using calibrate::PublishedRow;
using calibrate::PublishedRun;
using calibrate::PublishedUse;
using calibrate::PublishedValue;

// All figures of a run, and of those that are the same, by a third longer or
// more: a range stays one, and steps of a run keep their number.
Published Perturbed(const std::string& run) {
  Published changed = AllPublished();
  for (PublishedRow& row : changed.rows) {
    if (!changed.Same(row.run, run)) continue;
    // Run and step time by different factors, so that their ratio moves, too.
    const double factor = row.quantity == "run_time" ? 1.31 : 1.17;
    row.value.low *= factor;
    row.value.high *= factor;
  }
  return changed;
}

PublishedRow Row(const std::string& quantity, const std::string& text) {
  PublishedRow row;
  row.quantity = quantity;
  row.measure = &calibrate::MeasureOfQuantity(quantity, {});
  row.value = calibrate::ParsePublishedValue(*row.measure, text);
  return row;
}

PublishedError Judge(const PublishedRow& row,
                     double value,
                     std::optional<double> low = {},
                     std::optional<double> high = {}) {
  PublishedPrediction prediction;
  prediction.answer.value = value;
  prediction.answer.low = low;
  prediction.answer.high = high;
  const auto error = ErrorOf(AllPublished(), row, prediction);
  REQUIRE(error.has_value());
  return *error;
}

}  // namespace

TEST_CASE("a published run loads as a scenario, or says what is not known") {
  std::map<std::string, int> reasons;
  int loaded = 0;
  for (const auto& name_of : AllPublished().runs) {
    const auto& name = name_of.first;
    const auto& run = name_of.second;
    CAPTURE(name);
    try {
      const PublishedJob job = JobOf(AllPublished(), run);
      CHECK(job.device != nullptr);
      CHECK(job.scenario.train_samples > 0);
      CHECK(job.scenario.workload.batch == *run.batch);
      ++loaded;
    } catch (const model::InputError& error) {
      ++reasons[error.what()];
    }
  }
  CHECK(loaded > 70);
  for (const auto& reason_of : reasons) {
    const auto& reason = reason_of.first;
    CAPTURE(reason);
    CHECK((reason.ends_with("not stated") || reason.ends_with("not known")));
  }
}

TEST_CASE("what is assumed of a run stands in it, with a reason") {
  for (const auto& name_of : AllPublished().runs) {
    const auto& name = name_of.first;
    const auto& run = name_of.second;
    for (const auto& key_of : run.assumed) {
      const auto& key = key_of.first;
      const auto& why = key_of.second;
      CAPTURE(name);
      CAPTURE(key);
      CHECK(why.size() > 5);
    }
  }
}

TEST_CASE("a run of published figures is named by its file") {
  CHECK(NamesPublishedRun("scenarios/published/x.yaml#run"));
  CHECK_FALSE(NamesPublishedRun("scenarios/published/x.yaml"));
  CHECK_THROWS_WITH(
      LoadPublishedJob(std::string(kPublishedFolder) + "/score.yaml#weights"),
      doctest::Contains("unknown run \"weights\""));
  CHECK_THROWS_WITH(LoadPublishedJob("nowhere.yaml#run"),
                    "nowhere.yaml: no such file");
}

TEST_CASE("no figure of a run has a part in its own predictions") {
  const FitFolder hermetic;
  int64_t rows = 0;
  std::set<std::string> kinds;  // of figures that were moved
  for (const PublishedRow& row : AllPublished().rows)
    kinds.insert(row.quantity);
  for (const char* kind : {"run_time",
                           "step_time",
                           "allreduce_time",
                           "energy",
                           "backward_time",
                           "optimizer_time",
                           "throughput"}) {
    CAPTURE(kind);
    CHECK(kinds.contains(kind));
  }
  for (const PublishedProtocol protocol :
       {PublishedProtocol::kAsShipped, PublishedProtocol::kLeaveOneOut}) {
    const auto& before = PublishedPredictionsBy(protocol).rows;
    for (const auto& [name, run] : AllPublished().runs) {
      const std::string& target = name;
      const PublishedPredictions after = PredictPublished(
          Perturbed(target), protocol, [&](const PublishedRow& row) {
            return row.run == target;
          });
      for (size_t i = 0; i < AllPublished().rows.size(); ++i) {
        if (AllPublished().rows[i].run != target || before[i].checks_data)
          continue;
        CAPTURE(AllPublished().rows[i].id);
        CHECK(after.rows[i].answer.value == before[i].answer.value);
        CHECK(after.rows[i].answer.low == before[i].answer.low);
        CHECK(after.rows[i].answer.high == before[i].answer.high);
        CHECK(after.rows[i].answer.fits == before[i].answer.fits);
        if (before[i].predicted()) ++rows;
      }
    }
  }
  CHECK(rows > 250);
}

TEST_CASE("other runs of a device do move a prediction that is left out") {
  const FitFolder hermetic;
  const std::string id = "imdb_v100_best_fig52/run_time";
  const auto only = [&](const PublishedRow& row) { return row.id == id; };
  const auto before =
      PredictPublished(AllPublished(), PublishedProtocol::kLeaveOneOut, only);
  const auto after =
      PredictPublished(Perturbed("imdb_v100x1_ls_fp16_adan_fused_multi_b16"),
                       PublishedProtocol::kLeaveOneOut,
                       only);
  for (size_t i = 0; i < AllPublished().rows.size(); ++i) {
    if (AllPublished().rows[i].id != id) continue;
    CHECK(std::abs(*after.rows[i].answer.value / *before.rows[i].answer.value -
                   1.0) > 1e-3);
  }
}

// Names of runs, of files of published figures and of tables; those without a
// "_" are words like any other.
std::set<std::string> NamesOfData() {
  std::set<std::string> names;
  for (const auto& run : AllPublished().runs) names.insert(run.first);
  for (const auto& file :
       std::filesystem::directory_iterator(kPublishedFolder)) {
    if (file.path().extension() == ".yaml") {
      names.insert(file.path().stem().string());
    }
  }
  std::ifstream tables(TRAINFARE_ROOT
                       "/calibrate/records/import/tables_chosen.csv");
  REQUIRE(tables.is_open());
  std::string line;
  std::getline(tables, line);
  while (std::getline(tables, line)) {
    const std::string table = line.substr(0, line.find(','));
    names.insert(std::filesystem::path(table).filename().string());
  }
  std::erase_if(names, [](const std::string& name) {
    return name.find('_') == std::string::npos;
  });
  return names;
}

TEST_CASE("no line of code is there for a run, a document or a table") {
  const std::set<std::string> names = NamesOfData();
  REQUIRE(names.size() > 100);
  int64_t files = 0;
  for (const char* layer : {"model", "hardware", "calibrate", "scenarios"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             std::filesystem::path(TRAINFARE_ROOT) / layer)) {
      const std::string type = entry.path().extension().string();
      if (type != ".cc" && type != ".h") continue;
      ++files;
      std::ifstream source(entry.path());
      std::string line;
      while (std::getline(source, line)) {
        // A comment may name a source.
        const std::string code = line.substr(0, line.find("//"));
        if (code.find('_') == std::string::npos) continue;
        for (const std::string& name : names) {
          if (code.find(name) == std::string::npos) continue;
          FAIL_CHECK(entry.path().string() << ": " << name << ": " << line);
        }
      }
    }
  }
  CHECK(files > 200);
}

TEST_CASE("a speed-up has been seen where either of its runs was") {
  const auto& rows = PublishedPredictionsBy(PublishedProtocol::kAsShipped).rows;
  std::map<std::string, bool> seen;
  for (size_t i = 0; i < rows.size(); ++i) {
    seen[AllPublished().rows[i].id] = rows[i].seen;
  }
  int64_t speed_ups = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const PublishedRow& row = AllPublished().rows[i];
    const PublishedRun& run = AllPublished().RunOf(row);
    if (row.quantity != "speedup" || !run.against_run) continue;
    CAPTURE(row.id);
    const bool own = seen.at(row.run + "/run_time");
    const bool others = seen.at(*run.against_run + "/run_time");
    CHECK(rows[i].seen == (own || others));
    ++speed_ups;
  }
  CHECK(speed_ups == 4);
}

TEST_CASE("an all-reduce is answered by the ring of so many ranks") {
  const auto& rows = PublishedPredictionsBy(PublishedProtocol::kAsShipped).rows;
  const FitFolder hermetic;
  Fits fits;
  int64_t messages = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const PublishedRow& row = AllPublished().rows[i];
    if (row.quantity != "allreduce_time") continue;
    CAPTURE(row.id);
    const PublishedRun& run = AllPublished().RunOf(row);
    const calibrate::Fit* fit =
        fits.Of(hardware::DeviceCatalog::Shipped().Find(*run.device));
    REQUIRE(fit != nullptr);
    for (const calibrate::RankFit& group : fit->ranks) {
      if (group.network.ranks != run.device_count) continue;
      for (const calibrate::FittedAllReduce& one : group.all_reduces) {
        if (one.size != *row.size) continue;
        ++messages;
        CHECK(*rows[i].answer.value == Near(ToSeconds(one.modelled)));
        CHECK(*rows[i].answer.low < *rows[i].answer.value);
        CHECK(*rows[i].answer.high > *rows[i].answer.value);
      }
    }
  }
  CHECK(messages == 6);
}

TEST_CASE("every row is answered, or says why not") {
  for (const PublishedProtocol protocol :
       {PublishedProtocol::kAsShipped, PublishedProtocol::kLeaveOneOut}) {
    const auto& rows = PublishedPredictionsBy(protocol).rows;
    REQUIRE(rows.size() == AllPublished().rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      CAPTURE(AllPublished().rows[i].id);
      CHECK(rows[i].predicted() == rows[i].reason.empty());
      if (rows[i].answer.value) CHECK(std::isfinite(*rows[i].answer.value));
      const PublishedUse use = AllPublished().rows[i].use;
      if (use == PublishedUse::kShow || use == PublishedUse::kNone) {
        CHECK_FALSE(rows[i].predicted());
      }
    }
  }
}

TEST_CASE("records of a device are what a fit is made of") {
  const calibrate::ObservationFiles records =
      calibrate::RecordsOf(AllPublished());
  std::map<std::string, int> of_device;
  for (const auto& observation : records.observations) {
    ++of_device[observation.device];
    CHECK(AllPublished().Find(observation.label) != nullptr);
    CHECK(observation.measured.base() > 0);
    CHECK(observation.device_count == 1);
  }
  CHECK(of_device["cerebras_wse2"] == 3);
  CHECK(of_device["groq_lpu"] == 4);
  CHECK(of_device["sambanova_sn10"] == 2);
  CHECK(records.profiles.size() == 9);  // of a core
  CHECK(records.ranks.collectives.size() == 6);
  // For 2 and for 4 ranks: the step, its backward pass, its update, and the
  // run.
  CHECK(records.ranks.observations.size() == 8);
  // Seconds of 1000 steps.
  for (const auto& observation : records.observations) {
    if (observation.label != "cerebras_b512/run_time") continue;
    CHECK(ToSeconds(observation.measured) == Near(0.175796076613, 1e-12));
  }
}

TEST_CASE("arithmetic on printed figures checks the data, apart from errors") {
  int64_t rows = 0;
  int64_t wrong = 0;
  for (const auto& group : PublishedAnswerJson()["data_checks"]) {
    rows += group["n"].get<int64_t>();
    wrong += group["n"].get<int64_t>() - group["right"].get<int64_t>();
  }
  CHECK(rows > 110);
  // Trainium's 32 GB are 32 GiB in its file.
  CHECK(wrong <= 1);
  for (const auto& group : PublishedAnswerJson()["groups"]) {
    CHECK(group["group"] != "cost");
    CHECK(group["group"] != "score");
  }
}

TEST_CASE("errors are percent, points, digits or outcomes") {
  const auto time = Row("run_time", "100 s");
  CHECK(Judge(time, 110).error == Near(10.0, 1e-5));
  CHECK(Judge(time, 90).error == Near(-10.0, 1e-5));
  CHECK_FALSE(Judge(time, 101).right);
  CHECK_FALSE(Judge(time, 110).covered.has_value());
  CHECK(*Judge(time, 110, 95, 120).covered);
  CHECK_FALSE(*Judge(time, 110, 105, 120).covered);

  const auto share = Row("utilisation.tensor", "25.00 %");
  CHECK(Judge(share, 0.28).measure == PublishedMeasure::kPoints);
  CHECK(Judge(share, 0.28).error == Near(3.0, 1e-5));

  const auto count = Row("launches", "22");
  CHECK(Judge(count, 22).right);
  CHECK_FALSE(Judge(count, 24).right);
}

TEST_CASE("a check of the data is right to its digits, rounded or cut") {
  const auto time = Row("run_time", "1.55 s");
  const auto right = [&](double value) {
    PublishedPrediction prediction;
    prediction.checks_data = true;
    prediction.answer.value = value;
    return ErrorOf(AllPublished(), time, prediction)->right;
  };
  CHECK(right(1.5541));
  CHECK(right(1.5599));
  CHECK_FALSE(right(1.5601));
  CHECK_FALSE(right(1.5449));
}

TEST_CASE("bounds hold or are missed by what is past them") {
  const auto least = Row("utilisation.dma", "at least 80 %");
  CHECK(Judge(least, 0.9).right);
  CHECK(Judge(least, 0.9).error == 0.0);
  CHECK_FALSE(Judge(least, 0.7).right);
  const auto range = Row("speedup", "1.4 .. 2.4");
  CHECK(Judge(range, 1.5).right);
  CHECK_FALSE(Judge(range, 1.2).right);
  CHECK_FALSE(Judge(range, 2.5).right);
}

TEST_CASE("a ranking counts pairs that differ by more than 5 %") {
  const auto& shipped =
      PublishedPredictionsBy(PublishedProtocol::kAsShipped).rows;
  std::vector<size_t> all(AllPublished().rows.size());
  std::iota(all.begin(), all.end(), size_t{0});
  const auto ranks = RankPublished(AllPublished(), all, shipped);
  CHECK(ranks.size() > 100);
  for (const PublishedRank& rank : ranks) {
    const double first =
        AllPublished().Find(rank.first + "/" + rank.quantity)->value.low;
    const double second =
        AllPublished().Find(rank.second + "/" + rank.quantity)->value.low;
    CHECK(second > 1.05 * first);
    CHECK(AllPublished().runs.at(rank.first).device !=
          AllPublished().runs.at(rank.second).device);
    CHECK(AllPublished().rows[rank.rows[0]].run == rank.first);
    CHECK(AllPublished().rows[rank.rows[1]].run == rank.second);
  }
  // Pairs of rows that were not asked for are none.
  const size_t one = ranks.front().rows[0];
  std::erase(all, one);
  const auto without = RankPublished(AllPublished(), all, shipped);
  CHECK(without.size() < ranks.size());
  for (const PublishedRank& rank : without) {
    CHECK(rank.rows[0] != one);
    CHECK(rank.rows[1] != one);
  }
}

TEST_CASE("every pair of devices that is ordered is in the answer") {
  size_t wrong = 0;
  size_t pairs = 0;
  for (const auto& order : PublishedAnswerJson()["orders"]) {
    ++pairs;
    const std::string protocol = order["protocol"];
    for (const char* of : {"first", "second"}) {
      const PublishedRow* row = AllPublished().Find(
          order[std::string(of) + "_row"].get<std::string>());
      REQUIRE(row != nullptr);
      CHECK(row->run == order[of]);
      CHECK(row->quantity == "run_time");
    }
    if (order["right"] == true) continue;
    ++wrong;
    const std::string note =
        protocol + ": order of " + std::string(order["first"]) + " and " +
        std::string(order["second"]) + " by " + std::string(order["quantity"]) +
        " in " + std::string(order["table"]) + " is wrong";
    CAPTURE(note);
    const auto& notes = PublishedAnswerJson()["notes"];
    CHECK(std::find(notes.begin(), notes.end(), note) != notes.end());
  }
  CHECK(pairs > 200);
  CHECK(wrong > 0);
}

TEST_CASE("folders and YAML are published figures, other files are not") {
  CHECK(IsPublished({kPublishedFolder}));
  CHECK(IsPublished({std::string(kPublishedFolder) + "/score.yaml"}));
  CHECK_FALSE(IsPublished({"runs.jsonl"}));
  CHECK_FALSE(IsPublished({"table.csv", "runs.jsonl"}));
  CHECK_THROWS_WITH_AS(
      IsPublished({kPublishedFolder, "runs.jsonl"}),
      "expected measurement files or published figures, got both",
      UsageError);
}

TEST_CASE("only protocols that leave out runs make sense of them") {
  ValidateOptions options;
  options.files = {kPublishedFolder};
  options.protocol = Protocol::kLeaveDeviceOut;
  CHECK_THROWS_AS(ValidatePublished(options), UsageError);
}

TEST_CASE("a file stands for its rows, answered with all runs") {
  const FitFolder hermetic;
  ValidateOptions options;
  options.files = {std::string(kPublishedFolder) + "/dataflow_chips.yaml"};
  const auto result = nlohmann::json::parse(ValidatePublished(options).json);
  CHECK(result["rows"].size() == 37);
  std::map<std::string, nlohmann::json> whole;
  for (const auto& row : PublishedAnswerJson()["rows"])
    whole[row["label"]] = row;
  for (const auto& row : result["rows"]) CHECK(row == whole.at(row["label"]));
}

}  // namespace trainfare::scenarios
