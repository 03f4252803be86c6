#pragma once

// What a rented instance costs for a time, on demand or spot.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hardware/catalog/instance.h"
#include "hardware/catalog/price.h"
#include "model/cost.h"
#include "model/units.h"
#include "scenarios/job/estimate.h"

namespace trainfare::scenarios {

// A price as this program uses it. Of a range of spot prices over zones the
// highest counts, so that a bill is not higher than was said.
struct Tariff {
  model::UsdPerSecond<> price;
  double factor = 1.0;              // of the list's price that this one is
  int64_t instances = 1;            // that it is the price of, together
  model::UsdPerSecond<> price_low;  // of the range; equal when there is none
  bool spot = false;
  std::string region;
  std::string date;
  std::string source;
  std::string caution;  // what speaks against it; may be empty
  model::Billing billing;
  std::vector<std::string> excludes;
};

// Where prices are looked up.
struct PriceOptions {
  std::vector<std::string> files;  // in place of the shipped clouds
  // The first of these that has a price; empty: the catalog's choice. One text
  // may name several, with commas between them: "eu-west-1,Taiwan, TW, AS".
  std::vector<std::string> regions;
  // What a cloud takes of its list, "aws=0.8".
  std::vector<std::string> discounts;
};

// Clouds whose prices somebody brings in files.
std::set<std::string> CloudsOfFiles(const PriceOptions& options);

class Pricing {
 public:
  // Throws InputError for a region or cloud that no list has, and for a
  // discount that is none.
  explicit Pricing(const PriceOptions& options);

  // Reads the prices of these clouds before they are asked for. Throws
  // InputError.
  void Read(const std::set<std::string>& clouds) const;
  // The tariff of so many of the instance. nullopt: no price is known. Never 0.
  std::optional<Tariff> Of(const hardware::Instance& instance,
                           bool spot,
                           int64_t count = 1) const;

 private:
  std::optional<hardware::Price> Find(const hardware::Instance& instance,
                                      bool spot) const;

  hardware::PriceCatalog catalog_;
  std::vector<std::string> regions_;
  std::map<std::string, double> factors_;  // by cloud
};

// What the run and the ends of its interval cost; nullopt: no price is known,
// or the job does not fit.
struct RunCost {
  model::Usd<> usual;
  model::Usd<> low;
  model::Usd<> high;
};
std::optional<RunCost> CostOf(const JobEstimate& job,
                              const std::optional<Tariff>& tariff);

// "by the hour", "in pieces of 10 min".
std::string BillingWords(const model::Billing& billing);
// Whether that makes the job dearer by more than is lost among other things.
bool BillingCounts(const JobEstimate& job, const Tariff& tariff);

// Where the prices of a cloud are from, and of which day.
struct PriceSource {
  std::string cloud;
  std::string date;
  std::string source;
};
// The catalogs of the clouds that have any price.
std::vector<PriceSource> SourcesOf(const PriceOptions& options,
                                   const std::set<std::string>& clouds);

// "1.006 USD/h on demand in us-east-1 (2026-07-20)".
std::string Describe(const Tariff& tariff);
// ", 0.8 of the list"; empty of 1.
std::string DiscountWords(double factor);

}  // namespace trainfare::scenarios
