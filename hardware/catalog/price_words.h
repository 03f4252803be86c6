#pragma once

// What a catalog of prices does not say itself, and its words for what it does:
// hardware/prices/import/skypilot.yaml.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "hardware/catalog/instance.h"
#include "hardware/catalog/price.h"
#include "model/units.h"

namespace trainfare::hardware {

class Reader;

// A cloud whose catalog lists hosts and accelerators apart.
class ListedApart {
 public:
  explicit ListedApart(const Reader& map);

  const std::string& cloud() const { return cloud_; }
  // Stands where nothing is sold.
  model::UsdPerSecond<> placeholder() const { return placeholder_; }
  // Of the price of the dearest region, below which it is another offer's.
  double other_offer_below() const { return other_offer_below_; }

  // The rows that make up an instance's price; no host: one row has it all.
  struct Parts {
    std::optional<std::string> host;
    std::string accelerator;
    double count = 0.0;
  };
  // Throws InputError where its device has no name there.
  Parts PartsOf(const Instance& instance) const;

 private:
  using Names = std::map<std::string, std::string, std::less<>>;

  std::string file_;
  std::string cloud_;
  model::UsdPerSecond<> placeholder_;
  double other_offer_below_ = 0;
  Names accelerators_;     // by device
  Names named_otherwise_;  // accelerators by instance
  Names hosts_;            // by instance, where not by its own name
  std::set<std::string, std::less<>> whole_;
};

struct PriceWords {
  std::map<std::string, Billing, std::less<>> billing;  // by cloud
  Billing elsewhere;
  ListedApart apart;

  Billing BillingOf(std::string_view cloud) const;
};

const PriceWords& WordsOfSkyPilot();  // read once

}  // namespace trainfare::hardware
