#include "hardware/catalog/price.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "hardware/catalog/instance.h"
#include "hardware/files/csv_file.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "tests/hardware/temporary_folder.h"
#include "tests/near.h"
#include "tests/shared_data.h"

namespace trainfare::hardware {
namespace {

namespace fs = std::filesystem;

double PerHour(const std::optional<model::UsdPerSecond<>>& price) {
  REQUIRE(price.has_value());
  return model::ToDollarsPerHour(*price);
}

// Equal to half a unit of the last digit that the table prints.
void CheckPrinted(double actual, double printed) {
  CHECK(actual == Near(printed, 1e-4));
}

}  // namespace

TEST_CASE("every shipped price is of a known instance") {
  const PriceCatalog catalog = PriceCatalog::Load(DataDirectory("prices"));
  CHECK(catalog.clouds() ==
        std::vector<std::string>{
            "aws", "azure", "gcp", "lambda", "nebius", "vast", "verda"});
  size_t count = 0;
  for (const std::string& cloud : catalog.clouds()) {
    const CloudPrices& prices = catalog.Of(cloud);
    CHECK_FALSE(prices.excludes.empty());
    for (const Price& price : prices.prices) {
      CAPTURE(price.cloud + "/" + price.instance + " " + price.region);
      CHECK(InstanceCatalog::Shipped().TryFind(price.cloud + "/" +
                                               price.instance) != nullptr);
      CHECK((price.on_demand || price.spot_low));
      CHECK(price.date.size() == 10);
      ++count;
    }
  }
  CHECK(count > 600);
}

TEST_CASE("only instances that nobody prices have no price") {
  std::set<std::string> without;
  for (const Instance& instance : InstanceCatalog::Shipped().instances()) {
    if (!PriceCatalog::Shipped().Find(instance.cloud, instance.name)) {
      without.insert(instance.FullName());
    }
  }
  // Capacity blocks only; no catalog has Azure's newest.
  CHECK(without ==
        std::set<std::string>{"aws/p5e.48xlarge",
                              "aws/trn2.48xlarge",
                              "azure/Standard_ND128isr_GB300_v6",
                              "azure/Standard_ND128isr_NDR_GB200_v6"});
}

TEST_CASE("the default region is one that nothing speaks against") {
  const PriceCatalog& catalog = PriceCatalog::Shipped();
  const Price h100 = *catalog.Find("gcp", "a3-highgpu-8g");
  CHECK(h100.suspicious.empty());
  CHECK(PerHour(h100.on_demand) > 80.0);
  const Price central = *catalog.Find("gcp", "a3-highgpu-8g", "us-central1");
  CHECK(central.suspicious ==
        "accelerator at 33 % of the dearest region: probably another offer");
  CheckPrinted(PerHour(central.on_demand), 43.0662);
  CheckPrinted(
      PerHour(catalog.Find("gcp", "a3-highgpu-8g", "us-east5")->on_demand),
      98.9257);
  const Price a100 = *catalog.Find("gcp", "a2-ultragpu-1g");
  CHECK(a100.region == "us-east5");
  CheckPrinted(PerHour(a100.on_demand), 5.5238);
  CHECK_FALSE(
      catalog.Find("gcp", "a2-ultragpu-1g", "us-central1")->suspicious.empty());
}

TEST_CASE("Google's price is host and accelerator together") {
  // 2.93391 for the accelerator and 0.73948 for the host.
  const Price price =
      *PriceCatalog::Shipped().Find("gcp", "a2-highgpu-1g", "us-central1");
  CHECK(PerHour(price.on_demand) == Near(3.673, 2e-4));
  // Everything stands on the accelerator here.
  CheckPrinted(PerHour(PriceCatalog::Shipped()
                           .Find("gcp", "a4-highgpu-8g", "us-central1")
                           ->on_demand),
               90.216);
}

TEST_CASE("spot is a range where zones differ, and marked where derived") {
  const PriceCatalog& catalog = PriceCatalog::Shipped();
  const Price p5 = *catalog.Find("aws", "p5.48xlarge", "us-east-1");
  CheckPrinted(PerHour(p5.spot_low), 14.246);
  CheckPrinted(PerHour(p5.spot_high), 55.04);
  CHECK_FALSE(p5.spot_derived);
  CHECK(p5.interruption_low == 0.2);
  const Price g5 = *catalog.Find("aws", "g5.xlarge");
  CHECK(g5.region == "us-east-1");
  CHECK(g5.spot_derived);
  CheckPrinted(PerHour(g5.spot_low), 0.4125);
  CHECK_FALSE(catalog.Find("lambda", "gpu_1x_a10")->spot_low.has_value());
  CHECK(catalog.Of("lambda").billing.granularity == model::Seconds<>(60));
  CHECK(catalog.Of("azure").billing.minimum == model::Seconds<>(300));
}

TEST_CASE("what is not known is no price, and an unknown cloud an error") {
  const PriceCatalog& catalog = PriceCatalog::Shipped();
  CHECK_FALSE(catalog.Find("aws", "trn2.48xlarge").has_value());
  CHECK_FALSE(catalog.Find("aws", "g5.xlarge", "mars-1").has_value());
  CHECK(catalog.FindAll("aws", "g5.xlarge").size() == 5);
  CHECK_THROWS_WITH_AS(catalog.Of("ibm"),
                       "unknown cloud \"ibm\"; known: aws, azure, gcp, lambda, "
                       "nebius, vast, verda",
                       model::InputError);
}

TEST_CASE("the shipped prices are those of the quick table" *
          doctest::test_suite("shared/prices/quick_table") *
          doctest::skip(!SharedHas("prices/quick_table.csv"))) {
  const CsvFile file =
      CsvFile::Read(SharedPath("prices/quick_table.csv").string());
  const auto field = [&](const CsvRow& row, std::string_view column) {
    return row.fields[file.Column(column)];
  };
  int compared = 0;
  std::set<std::string> left_out;
  for (const CsvRow& row : file.rows()) {
    const std::string cloud = field(row, "provider");
    std::string name = field(row, "instance");
    // N1 hosts carry several devices; the name of ours says which.
    if (name.starts_with("n1-")) {
      name = fmt::format(
          "{}+{}x{}", name, field(row, "count"), field(row, "accelerator"));
    }
    const std::string full_name = fmt::format("{}/{}", cloud, name);
    CAPTURE(full_name);
    if (InstanceCatalog::Shipped().TryFind(full_name) == nullptr) {
      left_out.insert(name);
      continue;
    }
    const std::optional<Price> price =
        PriceCatalog::Shipped().Find(cloud, name, field(row, "region"));
    const auto on_demand = ParseNumber(field(row, "on_demand_usd_per_hour"));
    CHECK(price.has_value() == on_demand.has_value());
    if (!price || !on_demand) continue;
    CheckPrinted(PerHour(price->on_demand), *on_demand);
    auto low = ParseNumber(field(row, "spot_usd_per_hour_min"));
    const auto high = ParseNumber(field(row, "spot_usd_per_hour_max"));
    // A spot price that is the on-demand price is none.
    if (cloud == "azure" && high == on_demand) low.reset();
    CHECK(price->spot_low.has_value() == low.has_value());
    if (low && high) {
      CHECK(PerHour(price->spot_low) == Near(*low, 5e-4));
      CHECK(PerHour(price->spot_high) == Near(*high, 5e-4));
      CHECK(price->spot_derived ==
            field(row, "spot_source").starts_with("derived"));
    }
    ++compared;
  }
  // H100 NVL: no facts about the device.
  CHECK(left_out == std::set<std::string>{"Standard_NC40ads_H100_v5"});
  CHECK(compared == 55);
}

TEST_CASE("prices survive being written and read") {
  const TemporaryFolder folder;
  for (const std::string& cloud : PriceCatalog::Shipped().clouds()) {
    const CloudPrices& prices = PriceCatalog::Shipped().Of(cloud);
    const CloudPrices again =
        LoadPrices(folder.Write(cloud + ".yaml", ToYaml(prices)));
    CHECK(again.excludes == prices.excludes);
    REQUIRE(again.prices.size() == prices.prices.size());
    for (size_t i = 0; i < prices.prices.size(); ++i) {
      const Price& a = prices.prices[i];
      const Price& b = again.prices[i];
      CAPTURE(a.instance + " " + a.region);
      CHECK(a.instance == b.instance);
      CHECK(a.region == b.region);
      CHECK(a.on_demand.has_value() == b.on_demand.has_value());
      if (a.on_demand) {
        CHECK(PerHour(a.on_demand) == Near(PerHour(b.on_demand)));
      }
      CHECK(a.spot_low.has_value() == b.spot_low.has_value());
      CHECK(a.spot_derived == b.spot_derived);
      CHECK(a.interruption_high == b.interruption_high);
      CHECK(a.suspicious == b.suspicious);
      CHECK(a.date == b.date);
      CHECK(a.source == b.source);
    }
  }
}

TEST_CASE("a spot price is of the first region that has one") {
  const TemporaryFolder folder;
  folder.Write("c.yaml",
               "cloud: c\ncurrency: USD\ndate: 2026-11-20\nsource: s\n"
               "billing: { granularity: 1 s, minimum: 60 s }\nexcludes: []\n"
               "prices:\n  - instance: a\n    regions:\n"
               "      east: { on_demand: 2 USD/h }\n"
               "      north: { spot: { low: 0.5 USD/h, high: 0.6 USD/h },\n"
               "               suspicious: of one zone }\n"
               "      west: { on_demand: 3 USD/h,\n"
               "              spot: { low: 1 USD/h, high: 1.5 USD/h } }\n"
               "  - instance: b\n    regions:\n"
               "      east: { on_demand: 2 USD/h }\n");
  const PriceCatalog catalog = PriceCatalog::Load(folder.path());
  CHECK(catalog.Find("c", "a")->region == "east");
  CHECK(catalog.Find("c", "a", std::nullopt, /*spot=*/true)->region == "west");
  // Where none has one, it is known by its other price.
  CHECK_FALSE(
      catalog.Find("c", "b", std::nullopt, /*spot=*/true)->Has(/*spot=*/true));
}

TEST_CASE("no shipped region has an empty part") {
  const PriceCatalog& catalog = PriceCatalog::Shipped();
  for (const std::string& cloud : catalog.clouds()) {
    for (const Price& price : catalog.Of(cloud).prices) {
      CAPTURE(price.region);
      CHECK(price.region.front() != ',');
      CHECK(price.region.find(", ,") == std::string::npos);
    }
  }
}

TEST_CASE("one bad price file per message") {
  const auto message = [](const std::string& region) {
    const TemporaryFolder folder;
    const std::string path = folder.Write(
        "p.yaml",
        "cloud: c\ncurrency: USD\ndate: 2026-11-20\nsource: s\n"
        "billing: { granularity: 1 s, minimum: 60 s }\nexcludes: []\n"
        "prices:\n  - instance: a\n    regions:\n      r: " +
            region + "\n");
    return MessageOf<model::InputError>(folder, [&] { LoadPrices(path); });
  };
  CHECK(message("{ on_demand: 2 USD/h, spot: { low: 1 USD/h, high: 2 USD/h } "
                "}") == "no error");
  CHECK(message("{ on_demand: 0 USD/h }") ==
        "p.yaml:10:23: prices[0].regions.r.on_demand: expected a price such "
        "as \"2.75 USD/h\", got \"0 USD/h\"; it must be above 0");
  CHECK(message("{ on_demand: 0.001 USD/h }") ==
        "p.yaml:10:23: prices[0].regions.r.on_demand: expected 0.01 to 2000 "
        "USD/h; what has no price has no row");
  CHECK(message("{ on_demand: 2 USD }") ==
        "p.yaml:10:23: prices[0].regions.r.on_demand: expected a price such "
        "as \"2.75 USD/h\", got \"2 USD\"; known units: USD/h, USD/min, "
        "USD/s");
  CHECK(message("{ on_demand: 2 USD/h, spot: { low: 1 USD/h, high: 3 USD/h } "
                "}") ==
        "p.yaml:10:60: prices[0].regions.r.spot.high: expected at most "
        "on_demand");
  CHECK(message("{ spot: { low: 2 USD/h, high: 1 USD/h } }") ==
        "p.yaml:10:25: prices[0].regions.r.spot.low: expected at most "
        "spot.high");
  CHECK(message("{ spot: { low: 1 USD/h, high: 2 USD/h, interruptions: [0.5] "
                "} }") ==
        "p.yaml:10:64: prices[0].regions.r.spot.interruptions: expected "
        "[low, high], shares of a month's instances");
  CHECK(message("{}") ==
        "p.yaml:10:10: prices[0].regions.r: expected on_demand, spot or both");
}

}  // namespace trainfare::hardware
