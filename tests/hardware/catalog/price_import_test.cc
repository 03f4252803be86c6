#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>

#include "hardware/catalog/price.h"
#include "model/error.h"
#include "tests/hardware/temporary_folder.h"
#include "tests/near.h"
#include "tests/shared_data.h"
#include "tests/units.h"

namespace trainfare::hardware {
namespace {

namespace fs = std::filesystem;
using Counts = std::map<std::string, int64_t>;

std::string Catalog(const std::string& cloud) {
  return "prices/" + cloud + "/vms.csv";
}

int64_t Sum(const Counts& counts) {
  int64_t sum = 0;
  for (const auto& [reason, count] : counts) sum += count;
  return sum;
}

const Price* FindPrice(const ImportedPrices& imported,
                       const std::string& instance,
                       const std::string& region) {
  for (const Price& price : imported.prices.prices) {
    if (price.instance == instance && price.region == region) return &price;
  }
  return nullptr;
}

ImportedPrices ImportText(const std::string& cloud, const std::string& text) {
  const TemporaryFolder folder;
  return ImportSkyPilotCatalog(
      folder.Write("vms.csv", text), cloud, "2026-05-20");
}

const std::string kGoogleHeader =
    "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,"
    "Region,AvailabilityZone,Price,SpotPrice\n";

}  // namespace

TEST_CASE("Google's catalog: everything dropped is counted" *
          doctest::test_suite("shared/prices/gcp") *
          doctest::skip(!SharedHas(Catalog("gcp")))) {
  const ImportedPrices imported = ImportSkyPilotCatalog(
      SharedPath(Catalog("gcp")).string(), "gcp", "2026-05-20");
  CHECK(imported.rows == 31285);
  CHECK(imported.used + Sum(imported.dropped) == imported.rows);
  // 8 of the 154 duplicates are of sentinels, and counted as these.
  CHECK(imported.dropped ==
        Counts{{"accelerator of no instance in the catalog", 1434},
               {"duplicate row", 154 - 8},
               {"host without an accelerator", 28079},
               {"sentinel price", 32},
               {"spot above on-demand", 24}});
  const Price* price = FindPrice(imported, "a2-highgpu-1g", "us-central1");
  REQUIRE(price != nullptr);
  CHECK(model::ToDollarsPerHour(*price->on_demand) ==
        Near(2.93391 + 0.73948, 1e-6));
  // Whole price on the accelerator's row, 0 on the host's.
  price = FindPrice(imported, "a4-highgpu-8g", "us-central1");
  REQUIRE(price != nullptr);
  CHECK(model::ToDollarsPerHour(*price->on_demand) == Near(90.216, 1e-4));
  // Both were rejected in all zones of this region.
  CHECK(FindPrice(imported, "a2-ultragpu-1g", "us-central1") == nullptr);
  for (const Price& each : imported.prices.prices) {
    CHECK(model::ToDollarsPerHour(
              each.on_demand.value_or(model::DollarsPerHour(1.0))) < 699.0);
  }
}

TEST_CASE("Google's offers in the place of on-demand are marked" *
          doctest::test_suite("shared/prices/gcp") *
          doctest::skip(!SharedHas(Catalog("gcp")))) {
  const ImportedPrices imported = ImportSkyPilotCatalog(
      SharedPath(Catalog("gcp")).string(), "gcp", "2026-05-20");
  for (const char* region :
       {"us-central1", "us-west1", "us-west4", "asia-northeast1"}) {
    CAPTURE(region);
    const Price* price = FindPrice(imported, "a3-highgpu-8g", region);
    REQUIRE(price != nullptr);
    CHECK_FALSE(price->suspicious.empty());
  }
  for (const char* instance : {"a3-megagpu-8g", "a3-ultragpu-8g"}) {
    CAPTURE(instance);
    const Price* price = FindPrice(imported, instance, "us-east5");
    REQUIRE(price != nullptr);
    CHECK_FALSE(price->suspicious.empty());
  }
  CHECK(FindPrice(imported, "a3-highgpu-8g", "us-east5")->suspicious.empty());
  CHECK(
      FindPrice(imported, "g2-standard-4", "us-central1")->suspicious.empty());
}

TEST_CASE("Azure's lines of 11 fields are read" *
          doctest::test_suite("shared/prices/azure") *
          doctest::skip(!SharedHas(Catalog("azure")))) {
  const ImportedPrices imported = ImportSkyPilotCatalog(
      SharedPath(Catalog("azure")).string(), "azure", "2026-05-20");
  CHECK(imported.rows == 829);
  CHECK(imported.used + Sum(imported.dropped) == imported.rows);
  CHECK(imported.dropped == Counts{{"fraction of an accelerator", 108},
                                   {"instance not in the catalog", 216}});
  const Price* price = FindPrice(imported, "Standard_NC6s_v3", "eastus");
  REQUIRE(price != nullptr);
  CHECK(model::ToDollarsPerHour(*price->on_demand) == Near(3.06));
  CHECK(price->spot_low.has_value());
  price = FindPrice(imported, "Standard_ND96isr_H200_v5", "westus3");
  REQUIRE(price != nullptr);
  CHECK_FALSE(price->spot_low.has_value());
}

TEST_CASE("Lambda's machines without a GPU are left out" *
          doctest::test_suite("shared/prices/lambda") *
          doctest::skip(!SharedHas(Catalog("lambda")))) {
  const ImportedPrices imported = ImportSkyPilotCatalog(
      SharedPath(Catalog("lambda")).string(), "lambda", "2026-05-07");
  CHECK(imported.rows == 425);
  CHECK(imported.used == 391);
  CHECK(imported.dropped == Counts{{"no accelerator", 34}});
}

TEST_CASE("the marketplace whose spot prices are all 0 keeps its rows" *
          doctest::test_suite("shared/prices/vast") *
          doctest::skip(!SharedHas(Catalog("vast")))) {
  const ImportedPrices imported = ImportSkyPilotCatalog(
      SharedPath(Catalog("vast")).string(), "vast", "2026-04-29");
  CHECK(imported.rows == 64);
  // One name for cards of two sizes, cards of no certain form or without a
  // file: hardware/instances/vast.yaml says which.
  CHECK(imported.dropped == Counts{{"instance not in the catalog", 8}});
  CHECK(imported.used == 56);
  const Price* price =
      FindPrice(imported, "1x-RTX_4090-32-65536", "Sweden, SE, EU");
  REQUIRE(price != nullptr);
  CHECK(*price->on_demand == model::DollarsPerHour(0.40));
  CHECK_FALSE(price->spot_low.has_value());
}

TEST_CASE("the shipped prices of clouds that are named are their catalogs'" *
          doctest::test_suite("shared/prices/named") *
          doctest::skip(!SharedHas(Catalog("vast")) ||
                        !SharedHas(Catalog("verda")) ||
                        !SharedHas(Catalog("nebius")))) {
  for (const char* cloud : {"vast", "verda", "nebius"}) {
    const ImportedPrices imported = ImportSkyPilotCatalog(
        SharedPath(Catalog(cloud)).string(), cloud, "2026-11-20");
    const CloudPrices& shipped = PriceCatalog::Shipped().Of(cloud);
    CHECK(imported.prices.billing.granularity == shipped.billing.granularity);
    CHECK(imported.prices.prices.size() == shipped.prices.size());
    for (const Price& price : shipped.prices) {
      CAPTURE(price.cloud + "/" + price.instance + " " + price.region);
      const Price* read = FindPrice(imported, price.instance, price.region);
      REQUIRE(read != nullptr);
      const auto per_hour = [](const auto& one) {
        return one ? model::ToDollarsPerHour(*one) : 0.0;
      };
      CHECK(per_hour(read->on_demand) == Near(per_hour(price.on_demand)));
      CHECK(per_hour(read->spot_low) == Near(per_hour(price.spot_low)));
    }
  }
}

TEST_CASE("a cloud that is not in the catalog keeps its instances" *
          doctest::test_suite("shared/prices/nebius") *
          doctest::skip(!SharedHas(Catalog("nebius")))) {
  const ImportedPrices imported = ImportSkyPilotCatalog(
      SharedPath(Catalog("nebius")).string(), "a new one", "2026-11-20");
  CHECK(imported.used == imported.rows);
  CHECK_FALSE(imported.prices.prices.empty());
  // Nobody said how it bills: by the hour.
  CHECK(imported.prices.billing.granularity == model::Hours(1));
}

TEST_CASE("zones become a range") {
  const ImportedPrices imported = ImportText(
      "aws",
      "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,"
      "Price,SpotPrice,Region,AvailabilityZone,Arch\n"
      "g5.xlarge,A10G,1.0,4,16,,1.0,0.4,r,z1,x\n"
      "g5.xlarge,A10G,1.0,4,16,,1.0,0.6,r,z2,x\n"
      "g5.xlarge,A10G,1.0,4,16,,1.0,,r,z3,x\n");
  REQUIRE(imported.prices.prices.size() == 1);
  const Price& price = imported.prices.prices.front();
  CHECK(*price.on_demand == model::DollarsPerHour(1.0));
  CHECK(*price.spot_low == model::DollarsPerHour(0.4));
  CHECK(*price.spot_high == model::DollarsPerHour(0.6));
  CHECK(imported.used == 3);
}

TEST_CASE("each reason to drop a row is counted") {
  const ImportedPrices imported = ImportText(
      "aws",
      "InstanceType,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region\n"
      "g5.xlarge,A10G,1,,,r\n"
      "g5.xlarge,A10G,1,0,0,r\n"
      "g5.xlarge,A10G,1,-1,,r\n"
      "g5.xlarge,A10G,1,1,2,r\n"
      "g5.xlarge,A10G,0.5,1,0.5,r\n"
      "g5.xlarge,A10G,1,1,0.5\n"
      "m5.large,,,1,0.5,r\n"
      "other,A10G,1,1,0.5,r\n"
      "g5.xlarge,A10G,1,0.001,,r\n"
      "g5.xlarge,A10G,1,1,0.5,\n"
      "g5.xlarge,A10G,1,1,0.5,r\n"
      "g5.xlarge,A10G,1,1,0.5,r\n");
  CHECK(imported.dropped == Counts{{"no price", 1},
                                   {"price not above 0", 2},
                                   {"spot above on-demand", 1},
                                   {"fraction of an accelerator", 1},
                                   {"wrong number of fields", 1},
                                   {"no accelerator", 1},
                                   {"instance not in the catalog", 1},
                                   {"no price of an hour", 1},
                                   {"no region", 1},
                                   {"duplicate row", 1}});
  CHECK(imported.used == 1);
}

TEST_CASE("a spot price of 0 is none, and costs no row") {
  const ImportedPrices imported = ImportText(
      "aws",
      "InstanceType,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region\n"
      "g5.xlarge,A10G,1,0.44,0.00,r\n"
      "g5.2xlarge,A10G,1,,0.00,r\n");
  CHECK(imported.used == 1);
  CHECK(imported.dropped == Counts{{"no price", 1}});
  const Price* price = FindPrice(imported, "g5.xlarge", "r");
  REQUIRE(price != nullptr);
  CHECK(*price->on_demand == model::DollarsPerHour(0.44));
  CHECK_FALSE(price->spot_low.has_value());
}

TEST_CASE("what is imported is read back, whatever it is called") {
  const TemporaryFolder folder;
  const std::string path = folder.Write(
      "vms.csv",
      "InstanceType,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region\n"
      "1x-A,A,1,0.5,,\", CA, NA\"\n"
      "1x-A,A,1,0.5,,\"C\u00f4te d'Ivoire: south, {x} # 1\"\n"
      "1x-A,A,1,0.5,,no\n"
      "1x-A,A,1,0.5,,12\n"
      "1x-A,A,1,0.5,,- a\n"
      "1x-A,A,1,0.5,,us-east-1\n"
      "1: 2,A,1,0.5,,r\n"
      ",A,1,0.5,,r\n");
  const ImportedPrices imported =
      ImportSkyPilotCatalog(path, "me: my rack", "2026-05-20");
  CHECK(imported.dropped == Counts{{"no instance", 1}});
  CHECK(imported.used == 7);
  const std::string yaml = ToYaml(imported.prices);
  CHECK(yaml.find("\n      us-east-1: {") != std::string::npos);
  const CloudPrices again = LoadPrices(folder.Write("p.yaml", yaml));
  CHECK(again.cloud == "me: my rack");
  REQUIRE(again.prices.size() == 7);
  for (size_t i = 0; i < again.prices.size(); ++i) {
    CHECK(again.prices[i].instance == imported.prices.prices[i].instance);
    CHECK(again.prices[i].region == imported.prices.prices[i].region);
  }
}

TEST_CASE("a region is called by the parts of its name that are there") {
  const ImportedPrices imported = ImportText(
      "me",
      "InstanceType,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region\n"
      "1x-A,A,1,0.5,,\", CN, AS\"\n"
      "1x-A,A,1,0.5,,\"Taiwan,TW , AS\"\n"
      "1x-A,A,1,0.5,,\" , \"\n");
  CHECK(imported.dropped == Counts{{"no region", 1}});
  CHECK(FindPrice(imported, "1x-A", "CN, AS") != nullptr);
  CHECK(FindPrice(imported, "1x-A", "Taiwan, TW, AS") != nullptr);
}

TEST_CASE("a host and its accelerator meet in the same zone only") {
  const ImportedPrices imported =
      ImportText("gcp",
                 kGoogleHeader +
                     "n1-standard-8,8,30,,,,r,r-a,0.38,0.14\n"
                     "n1-standard-8,8,30,,,,r,r-b,0.38,0.14\n"
                     ",,,T4,1,,r,r-a,0.35,0.16\n"
                     ",,,T4,1,,r,r-c,0.35,0.16\n"
                     ",,,tpu-v2-8,1,,r,r-a,4.5,\n"
                     ",,,tpu-v2-32,1,,r,r-a,24,\n");
  CHECK(imported.dropped ==
        Counts{{"accelerator of no instance in the catalog", 2},
               {"host without an accelerator", 1}});
  CHECK(imported.used == 3);
  const Price* price = FindPrice(imported, "n1-standard-8+1xT4", "r");
  REQUIRE(price != nullptr);
  CHECK(model::ToDollarsPerHour(*price->on_demand) == Near(0.73, 1e-12));
  CHECK(model::ToDollarsPerHour(*price->spot_low) == Near(0.30, 1e-12));
  price = FindPrice(imported, "tpu-v2-8", "r");
  REQUIRE(price != nullptr);
  CHECK_FALSE(price->spot_low.has_value());
}

TEST_CASE("what is no catalog of SkyPilot's is refused") {
  const TemporaryFolder folder;
  const std::string path = folder.Write("vms.csv", "a,b\n1,2\n");
  CHECK(MessageOf<model::InputError>(folder, [&] {
          ImportSkyPilotCatalog(path, "aws", "2026-05-20");
        }) == "vms.csv:1: missing column \"InstanceType\"; known: a, b");
}

}  // namespace trainfare::hardware
