#pragma once

// What a rented instance costs for a time, on demand or spot.

#include <optional>
#include <string>
#include <vector>

#include "hardware/catalog/instance.h"
#include "hardware/catalog/price.h"
#include "model/cost.h"
#include "model/units.h"

namespace trainfare::scenarios {

// A price as this program uses it. Of a range of spot prices over zones the
// highest counts, so that a bill is not higher than was said.
struct Tariff {
  model::UsdPerSecond<> price;
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

// Where prices are looked up, and in which regions: the first of those named
// that has one; none named: the catalog's choice.
class Pricing {
 public:
  // `files` stand for the shipped prices of their clouds. Throws InputError for
  // a region that no cloud has.
  Pricing(const std::vector<std::string>& files,
          std::vector<std::string> regions);

  // The tariff of so many of the instance. nullopt: no price is known. Never 0.
  std::optional<Tariff> Of(const hardware::Instance& instance,
                           bool spot,
                           int64_t count = 1) const;

 private:
  std::optional<hardware::Price> Find(const hardware::Instance& instance,
                                      bool spot) const;

  hardware::PriceCatalog catalog_;
  std::vector<std::string> regions_;
};

// "1.006 USD/h on demand in us-east-1 (2026-07-20)".
std::string Describe(const Tariff& tariff);

}  // namespace trainfare::scenarios
