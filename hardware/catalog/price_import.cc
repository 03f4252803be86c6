#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "hardware/catalog/instance.h"
#include "hardware/catalog/price.h"
#include "hardware/catalog/price_words.h"
#include "hardware/files/csv_file.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"

namespace trainfare::hardware {
namespace {

// The parts of a place that are there: ", CN, AS" where the town is not known
// is "CN, AS".
std::string RegionName(std::string_view text) {
  std::string name;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const size_t first = part.find_first_not_of(' ');
    if (first == std::string_view::npos) continue;
    part = part.substr(first, part.find_last_not_of(' ') - first + 1);
    if (!name.empty()) name += ", ";
    name += part;
  }
  return name;
}

struct Row {
  std::string instance;     // empty: an accelerator of Google's
  std::string accelerator;  // empty: a host
  double count = 0.0;
  std::string region;
  std::string zone;
  std::optional<double> on_demand;  // USD per hour
  std::optional<double> spot;
};

class Importer {
 public:
  Importer(const std::string& path, std::string_view cloud)
      : file_(CsvFile::Read(path)),
        cloud_(cloud),
        apart_(WordsOfSkyPilot().apart.cloud() == cloud
                   ? &WordsOfSkyPilot().apart
                   : nullptr) {
    for (const Instance& instance : InstanceCatalog::Shipped().instances()) {
      if (instance.cloud == cloud_) known_[instance.name] = &instance;
    }
    imported_.rows = static_cast<int64_t>(file_.rows().size());
  }

  ImportedPrices Run() {
    const std::vector<Row> rows = ReadRows();
    if (apart_ != nullptr) {
      JoinHostsAndAccelerators(rows);
    } else {
      for (const Row& row : rows) {
        if (row.accelerator.empty()) {
          Drop("no accelerator");
        } else if (row.instance.empty()) {
          Drop("no instance");
        } else if (!known_.empty() && !known_.contains(row.instance)) {
          Drop("instance not in the catalog");
        } else {
          Use(row.instance, row.region, row.on_demand, row.spot);
          ++imported_.used;
        }
      }
    }
    Collect();
    return std::move(imported_);
  }

 private:
  void Drop(const std::string& reason) { ++imported_.dropped[reason]; }

  // Where a row has what is read of it.
  struct Columns {
    size_t instance = 0;
    size_t accelerator = 0;
    size_t count = 0;
    size_t on_demand = 0;
    size_t spot = 0;
    size_t region = 0;
    std::optional<size_t> zone;
  };

  Columns FindColumns() const {
    return {file_.Column("InstanceType"),
            file_.Column("AcceleratorName"),
            file_.Column("AcceleratorCount"),
            file_.Column("Price"),
            file_.Column("SpotPrice"),
            file_.Column("Region"),
            file_.TryColumn("AvailabilityZone")};
  }

  // Rows that make sense by themselves.
  std::vector<Row> ReadRows() {
    const Columns columns = FindColumns();
    // Azure's last column holds lists without quotes: "V1,V2".
    const bool ragged = file_.header().back() == "Generation";
    const size_t width = file_.header().size();
    std::vector<Row> rows;
    std::set<std::vector<std::string>> seen;
    for (const CsvRow& raw : file_.rows()) {
      if (raw.fields.size() < width || (raw.fields.size() > width && !ragged)) {
        Drop("wrong number of fields");
        continue;
      }
      auto row = ReadPrices(raw, columns);
      if (!row) continue;
      if (!seen.insert(raw.fields).second) {
        Drop("duplicate row");
        continue;
      }
      if (!ReadCount(raw, columns, *row)) continue;
      DropSpotThatIsNone(columns, *row);
      if (Plausible(*row)) rows.push_back(std::move(*row));
    }
    return rows;
  }

  // What costs how much where; nullopt: it is dropped.
  std::optional<Row> ReadPrices(const CsvRow& raw, const Columns& columns) {
    Row row;
    row.instance = raw.fields[columns.instance];
    row.accelerator = raw.fields[columns.accelerator];
    row.region = RegionName(raw.fields[columns.region]);
    if (columns.zone) row.zone = raw.fields[*columns.zone];
    if (row.region.empty()) {
      Drop("no region");
      return std::nullopt;
    }
    const auto price = [&](size_t column) {
      return ParseNumber(raw.fields[column]);
    };
    const auto is_text = [&](size_t column) {
      return !raw.fields[column].empty() &&
             !std::isfinite(price(column).value_or(NAN));
    };
    if (is_text(columns.on_demand) || is_text(columns.spot)) {
      Drop("price is no number");
      return std::nullopt;
    }
    row.on_demand = price(columns.on_demand);
    row.spot = price(columns.spot);
    if (apart_ != nullptr && row.on_demand &&
        model::DollarsPerHour(*row.on_demand) == apart_->placeholder()) {
      Drop("sentinel price");
      return std::nullopt;
    }
    return row;
  }

  // How many accelerators it has; false: it is dropped.
  bool ReadCount(const CsvRow& raw, const Columns& columns, Row& row) {
    if (row.accelerator.empty()) return true;
    row.count = ParseNumber(raw.fields[columns.count]).value_or(0.0);
    if (row.count > 0.0 && row.count == std::floor(row.count)) return true;
    Drop("fraction of an accelerator");
    return false;
  }

  // A region without zones whose spot costs the same sells none, as does a
  // marketplace where nobody has bid: 0.00. A spot price that cannot be is no
  // reason against the other.
  void DropSpotThatIsNone(const Columns& columns, Row& row) const {
    if (!columns.zone && row.spot == row.on_demand) row.spot.reset();
    if (!IsHost(row) && row.spot == 0.0) row.spot.reset();
    if (row.on_demand && !IsOfAnHour(row.spot)) row.spot.reset();
  }

  // There is one host whose whole price stands on its accelerator's row; the
  // sum is checked again.
  bool IsHost(const Row& row) const {
    return row.accelerator.empty() && apart_ != nullptr;
  }

  // The parts of a sum may be anything.
  bool IsOfAnHour(const std::optional<double>& price) const {
    return !price || apart_ != nullptr ||
           (*price >= kLowestUsdPerHour && *price <= kHighestUsdPerHour);
  }

  bool Plausible(const Row& row) {
    if (!row.on_demand && !row.spot) {
      Drop("no price");
      return false;
    }
    const bool host = IsHost(row);
    const auto positive = [&](const std::optional<double>& price) {
      return !price || (host ? *price >= 0.0 : *price > 0.0);
    };
    if (!positive(row.on_demand) || !positive(row.spot)) {
      Drop("price not above 0");
      return false;
    }
    if (!IsOfAnHour(row.on_demand) || !IsOfAnHour(row.spot)) {
      Drop("no price of an hour");
      return false;
    }
    if (row.on_demand && row.spot && *row.spot > *row.on_demand) {
      Drop("spot above on-demand");
      return false;
    }
    return true;
  }

  void JoinHostsAndAccelerators(const std::vector<Row>& rows) {
    using Zone = std::pair<std::string, std::string>;  // region, zone
    using Part = std::tuple<std::string, double, Zone>;
    std::map<Part, size_t> hosts;
    std::map<std::pair<std::string, double>, std::vector<size_t>> accelerators;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Row& row = rows[i];
      if (row.accelerator.empty()) {
        hosts[{row.instance, 0.0, {row.region, row.zone}}] = i;
      } else {
        accelerators[{row.accelerator, row.count}].push_back(i);
      }
    }
    std::vector<bool> used(rows.size(), false);
    for (const auto& [name, instance] : known_) {
      const ListedApart::Parts parts = apart_->PartsOf(*instance);
      const std::vector<size_t>& offers =
          accelerators[{parts.accelerator, parts.count}];
      double dearest = 0.0;
      for (const size_t i : offers) {
        dearest = std::max(dearest, rows[i].on_demand.value_or(0.0));
      }
      for (const size_t i : offers) {
        const Row& row = rows[i];
        if (row.on_demand.value_or(dearest) <
            apart_->other_offer_below() * dearest) {
          suspicious_[{name, row.region}] = fmt::format(
              "accelerator at {:.0f} % of the dearest region: "
              "probably another offer",
              100.0 * *row.on_demand / dearest);
        }
        if (!parts.host) {
          Use(name, row.region, row.on_demand, row.spot);
          used[i] = true;
          continue;
        }
        const auto host =
            hosts.find({*parts.host, 0.0, {row.region, row.zone}});
        if (host == hosts.end()) continue;
        const auto sum = [](const std::optional<double>& a,
                            const std::optional<double>& b) {
          return a && b ? std::optional<double>(*a + *b) : std::nullopt;
        };
        const Row& host_row = rows[host->second];
        Use(name,
            row.region,
            sum(host_row.on_demand, row.on_demand),
            sum(host_row.spot, row.spot));
        used[i] = true;
        used[host->second] = true;
      }
    }
    CountJoined(rows, used);
  }

  void CountJoined(const std::vector<Row>& rows,
                   const std::vector<bool>& used) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (used[i]) {
        ++imported_.used;
      } else if (rows[i].accelerator.empty()) {
        Drop("host without an accelerator");
      } else {
        Drop("accelerator of no instance in the catalog");
      }
    }
  }

  // One zone of a region more.
  void Use(const std::string& instance,
           const std::string& region,
           const std::optional<double>& on_demand,
           const std::optional<double>& spot) {
    Price& price = prices_[instance][region];
    if (on_demand) {
      // Zones of a region cost the same on demand; if not, no promise is made.
      const auto value = model::DollarsPerHour(*on_demand);
      price.on_demand =
          price.on_demand ? std::max(*price.on_demand, value) : value;
    }
    if (spot) {
      const auto value = model::DollarsPerHour(*spot);
      price.spot_low =
          price.spot_low ? std::min(*price.spot_low, value) : value;
      price.spot_high =
          price.spot_high ? std::max(*price.spot_high, value) : value;
    }
  }

  void Collect() {
    CloudPrices& result = imported_.prices;
    result.cloud = cloud_;
    for (auto& [instance, regions] : prices_) {
      for (auto& [region, price] : regions) {
        price.cloud = cloud_;
        price.instance = instance;
        price.region = region;
        const auto suspicious = suspicious_.find({instance, region});
        if (suspicious != suspicious_.end()) {
          price.suspicious = suspicious->second;
        }
        result.prices.push_back(price);
      }
    }
  }

  CsvFile file_;
  std::string cloud_;
  const ListedApart* apart_;  // nullptr: its rows are whole
  std::map<std::string, const Instance*> known_;
  // instance -> region -> price
  std::map<std::string, std::map<std::string, Price>> prices_;
  // (instance, region) -> why
  std::map<std::pair<std::string, std::string>, std::string> suspicious_;
  ImportedPrices imported_;
};

}  // namespace

ImportedPrices ImportSkyPilotCatalog(const std::string& path,
                                     std::string_view cloud,
                                     std::string_view date) {
  ImportedPrices imported = Importer(path, cloud).Run();
  CloudPrices& prices = imported.prices;
  prices.date = date;
  prices.source = fmt::format("SkyPilot catalog {}", path);
  prices.billing = WordsOfSkyPilot().BillingOf(cloud);
  prices.excludes = {"disks", "local SSD", "data transfer", "tax"};
  for (Price& price : prices.prices) {
    price.date = prices.date;
    price.source = prices.source;
  }
  return imported;
}

}  // namespace trainfare::hardware
