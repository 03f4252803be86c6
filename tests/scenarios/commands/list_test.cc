#include "scenarios/commands/list.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_file.h"
#include "calibrate/fit/prior_fit.h"
#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {

TEST_CASE("every list has rows and parses") {
  const FitFolder none;
  for (const char* name : {"devices",
                           "instances",
                           "models",
                           "scenarios",
                           "prices",
                           "keys",
                           "parameters"}) {
    CAPTURE(name);
    const Report report = List(ListingFromText(name));
    const auto json = nlohmann::json::parse(report.json);
    CHECK(json.at("list") == name);
    CHECK(json.at("rows").size() == report.tables.front().rows.size());
    CHECK_FALSE(json.at("rows").empty());
  }
  CHECK(List(Listing::kInstances).tables.front().rows.size() ==
        hardware::InstanceCatalog::Shipped().instances().size());
}

TEST_CASE("figures of files have the digits of files in CSV") {
  const std::string csv = CsvTable(List(Listing::kDevices, {}).tables.front());
  CHECK(csv.find(",2039000000000,") != std::string::npos);
  CHECK(csv.find("00000.0") == std::string::npos);
  CHECK(csv.find(".99") == std::string::npos);
}

TEST_CASE("the list of fits says which ranks' ring they know") {
  const FitFolder folder;
  calibrate::Fit fit = calibrate::PriorFit(
      hardware::DeviceCatalog::Shipped().Find("a100_sxm4_80gb"));
  std::filesystem::create_directories(folder.Path("fits"));
  calibrate::SaveFit(fit, folder.Path("fits/plain.yaml"));
  calibrate::RankFit group;
  group.network.ranks = 2;
  group.network.alone.ring.link = model::GBPerSecond(1);
  group.backend = "nccl";
  group.all_reduces = {{model::MiB(1.0),
                        false,
                        model::Milliseconds(1.0),
                        model::Milliseconds(1.0)}};
  fit.ranks = {group, group};
  fit.ranks[1].network.ranks = 8;
  calibrate::SaveFit(fit, folder.Path("fits/rings.yaml"));
  const auto json = nlohmann::json::parse(List(Listing::kFits).json);
  const auto& rows = json.at("rows");
  CHECK(rows[0].at("fit") == "plain");
  CHECK(rows[0].at("rings").is_null());
  CHECK(rows[1].at("rings") == "2 ranks (nccl), 8 ranks (nccl)");
}

TEST_CASE("the parameters of BERT-base stand in the list of models") {
  const auto json = nlohmann::json::parse(List(Listing::kModels).json);
  bool found = false;
  for (const auto& row : json.at("rows")) {
    if (row.at("model") != "bert-base-uncased") continue;
    found = true;
    // 109,482,240 of the encoder and 1538 of a head for two labels.
    CHECK(row.at("parameters") == 109483778);
  }
  CHECK(found);
}

TEST_CASE("other names of a model stand in its row, and find it") {
  const Report report = List(Listing::kModels, {"zephyr-7b-beta"});
  const auto rows = nlohmann::json::parse(report.json).at("rows");
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].at("model") == "mistral-7b-v0.1");
  CHECK(rows[0].at("aliases") ==
        nlohmann::json({"zephyr-7b", "zephyr-7b-alpha", "zephyr-7b-beta"}));
  const Table& table = report.tables.front();
  CHECK(table.columns.back().title == "also named");
  CHECK(table.columns.back().drop == 0);
  CHECK(table.rows.front().back().text ==
        "zephyr-7b, zephyr-7b-alpha, zephyr-7b-beta");
  const Report bart = List(Listing::kModels, {"bart-base"});
  CHECK(nlohmann::json::parse(bart.json).at("rows")[0].at("aliases") ==
        nlohmann::json::array());
}

TEST_CASE("an unknown list gets the nearest") {
  CHECK_THROWS_WITH_AS(
      ListingFromText("device"),
      "list: unknown \"device\"; did you mean \"devices\"? known: devices, "
      "instances, models, fits, scenarios, prices, keys, parameters",
      UsageError);
}

TEST_CASE("imported prices are counted and written") {
  const TemporaryFolder folder;
  const std::string csv = folder.Write(
      "vms.csv",
      "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,"
      "Price,SpotPrice,Region\n"
      "gpu_1x_a10,A10,1,30,200,,0.75,,us-east-1\n"
      "gpu_1x_a10,A10,1,30,200,,0,,us-west-1\n");
  const Report report = ImportPrices(csv,
                                     ReadCatalog(csv, "lambda", "2026-05-07"),
                                     folder.Path("lambda.yaml"));
  const auto json = nlohmann::json::parse(report.json);
  CHECK(json.at("rows") == 2);
  CHECK(json.at("used") == 1);
  REQUIRE(json.at("prices").size() == 1);
  CHECK(json.at("prices")[0].at("price_usd_per_hour") == 0.75);
  CHECK(std::filesystem::exists(folder.Path("lambda.yaml")));
}

}  // namespace trainfare::scenarios
