#pragma once

// What an instance costs: a small dated catalog, hardware/prices/<cloud>.yaml,
// and the import of SkyPilot's catalogs.
//
// A price is of the whole instance. What has no price has no row: nothing is
// ever 0.00.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.h"

namespace trainfare::hardware {

// No instance of today costs less or more an hour; a sentinel does. Files of
// prices have no other.
inline constexpr double kLowestUsdPerHour = 0.01;
inline constexpr double kHighestUsdPerHour = 2000.0;

struct Price {
  std::string cloud;
  std::string instance;
  std::string region;
  std::optional<model::UsdPerSecond<>> on_demand;
  // Range over the zones of the region; both or none.
  std::optional<model::UsdPerSecond<>> spot_low;
  std::optional<model::UsdPerSecond<>> spot_high;
  // Spot computed from on-demand and a published saving, not observed.
  bool spot_derived = false;
  // Share of spot instances taken back within a month, as a band: AWS
  // publishes one, 2025-06. Both or none.
  std::optional<double> interruption_low;
  std::optional<double> interruption_high;
  // Why not to trust it; empty when nothing speaks against it.
  std::string suspicious;
  std::string date;  // 2026-05-20
  std::string source;

  // Whether it has one of that market.
  bool Has(bool spot) const {
    return spot ? spot_high.has_value() : on_demand.has_value();
  }
};

struct Billing {
  model::Seconds<> granularity;  // billed time is rounded up to this
  model::Seconds<> minimum;
};

struct CloudPrices {
  std::string cloud;
  std::string date;
  std::string source;
  Billing billing;
  std::vector<std::string> excludes;  // "disks", "data transfer", ...
  std::vector<Price> prices;          // best region of an instance first
};

CloudPrices LoadPrices(const std::string& path);
// The YAML that LoadPrices() reads.
std::string ToYaml(const CloudPrices& prices);

class PriceCatalog {
 public:
  // The catalog that ships with the tool; a cloud's file is read when asked
  // for.
  static const PriceCatalog& Shipped();
  // One <cloud>.yaml each. Reads and checks every file.
  static PriceCatalog Load(const std::string& directory);
  // This one with the clouds of these files in place of its own. Throws
  // InputError where two files are of one cloud.
  PriceCatalog With(const std::vector<std::string>& files) const;

  // Names of the clouds, sorted.
  std::vector<std::string> clouds() const;
  // Throws InputError for a cloud without prices.
  const CloudPrices& Of(std::string_view cloud) const;
  // Without a region: the first that nothing speaks against and that has a
  // price of the market, else the first that has one, else the first. nullopt:
  // no price is known.
  std::optional<Price> Find(
      std::string_view cloud,
      std::string_view instance,
      std::optional<std::string_view> region = std::nullopt,
      bool spot = false) const;
  // In all regions; empty when no price is known.
  std::vector<Price> FindAll(std::string_view cloud,
                             std::string_view instance) const;

 private:
  struct State;
  explicit PriceCatalog(const std::string& directory);

  std::shared_ptr<State> state_;
};

// A SkyPilot catalog (vms.csv) as prices of known instances.
struct ImportedPrices {
  CloudPrices prices;
  int64_t rows = 0;  // of the file, header left out
  // Rows that went into a price. rows == used + all of dropped.
  int64_t used = 0;
  std::map<std::string, int64_t> dropped;  // by reason
};

// `cloud` as SkyPilot calls it: aws, gcp, azure, lambda, ... Prices of a cloud
// that hardware/instances/ knows are kept for its instances only. `date` is
// that of the data, 2026-05-20; the file has none.
//
// Left out and counted: a price missing, 0 or a sentinel (700.0 of some TPUs),
// spot above on-demand, duplicate rows, fractions of a device, hosts without
// one. Azure's spot price that is the on-demand price is none. Google lists
// host and accelerator apart: both are added. Azure writes lists without
// quotes: what passes the header belongs to the last column.
ImportedPrices ImportSkyPilotCatalog(const std::string& path,
                                     std::string_view cloud,
                                     std::string_view date);

}  // namespace trainfare::hardware
