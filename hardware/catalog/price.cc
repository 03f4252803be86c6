#include "hardware/catalog/price.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <utility>

#include "hardware/catalog/price_fields.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/yaml_fields.h"
#include "hardware/files/yaml_reader.h"
#include "hardware/files/yaml_text.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::hardware {

using model::InputError;

void ReadValue(
    const Reader& map,
    std::string_view key,
    const HourlyPrice<std::optional<model::UsdPerSecond<>>>& hourly) {
  const model::UsdPerSecond<> price = map.Price(key);
  if (price < model::DollarsPerHour(kLowestUsdPerHour) ||
      price > model::DollarsPerHour(kHighestUsdPerHour)) {
    map.Fail(key,
             fmt::format("expected {} to {} USD/h; what has no price has "
                         "no row",
                         kLowestUsdPerHour,
                         kHighestUsdPerHour));
  }
  hourly.price = price;
}

void ReadValue(const Reader& map,
               std::string_view key,
               const Day<std::string>& day) {
  day.text = map.Date(key);
}

void ReadValue(const Reader& map,
               std::string_view key,
               const Name<std::string>& name) {
  name.text = map.Text(key);
}

void ReadValue(const Reader& map, std::string_view key, const Currency&) {
  map.Choice<int>(key, {{"USD", 0}});
}

CloudPrices LoadPrices(const std::string& path) {
  const Reader root = Reader::FromFile(path);
  CloudPrices prices;
  YamlFieldReader head(root);
  VisitFields(head, prices);
  std::map<std::string, std::string> seen;  // instance -> where
  for (const Reader& reader : root.Maps("prices")) {
    const std::string instance = reader.Text("instance");
    const auto [first, fresh] =
        seen.emplace(instance, reader.Position("instance"));
    if (!fresh) {
      reader.Fail(
          "instance",
          fmt::format(
              "\"{}\" stands twice; first at {}", instance, first->second));
    }
    const Reader regions = reader.Map("regions");
    for (const std::string& name : regions.Keys()) {
      const Reader region = regions.Map(name);
      Price& price = prices.prices.emplace_back();
      price.cloud = prices.cloud;
      price.instance = instance;
      price.region = name;
      YamlFieldReader fields(region);
      VisitFields(fields, RegionPrice<Price>{price, prices});
      if (!price.on_demand && !price.spot_low) {
        region.Fail("expected on_demand, spot or both");
      }
    }
  }
  root.Finish();
  return prices;
}

std::string ToYaml(const CloudPrices& prices) {
  std::string yaml;
  YamlFieldWriter head(yaml);
  VisitFields(head, prices);
  yaml += prices.prices.empty() ? "prices: []\n" : "prices:\n";
  std::string_view open;
  for (const Price& price : prices.prices) {
    if (price.instance != open) {
      yaml += fmt::format("  - instance: {}\n    regions:\n",
                          PlainOrQuoted(price.instance));
      open = price.instance;
    }
    yaml += fmt::format(
        "      {}: {}\n",
        PlainOrQuoted(price.region),
        YamlFieldWriter::Flow(RegionPrice<const Price>{price, prices}));
  }
  return yaml;
}

struct PriceCatalog::State {
  std::string directory;
  std::mutex mutex;
  std::map<std::string, CloudPrices, std::less<>> loaded;
};

PriceCatalog::PriceCatalog(const std::string& directory)
    : state_(std::make_shared<State>()) {
  state_->directory = directory;
}

PriceCatalog PriceCatalog::With(const std::vector<std::string>& files) const {
  if (files.empty()) return *this;
  PriceCatalog catalog(state_->directory);
  std::map<std::string, std::string> file_of;
  for (const std::string& file : files) {
    CloudPrices prices = LoadPrices(file);
    const auto [first, fresh] = file_of.emplace(prices.cloud, file);
    if (!fresh) {
      throw InputError(file,
                       0,
                       0,
                       fmt::format("cloud: the prices of {} are in {} too",
                                   prices.cloud,
                                   first->second));
    }
    catalog.state_->loaded.emplace(prices.cloud, std::move(prices));
  }
  return catalog;
}

const PriceCatalog& PriceCatalog::Shipped() {
  static const PriceCatalog catalog(DataDirectory("prices"));
  return catalog;
}

PriceCatalog PriceCatalog::Load(const std::string& directory) {
  PriceCatalog catalog(directory);
  for (const std::string& cloud : catalog.clouds()) catalog.Of(cloud);
  return catalog;
}

std::vector<std::string> PriceCatalog::clouds() const {
  std::vector<std::string> names;
  for (const std::string& file : YamlFiles(state_->directory)) {
    names.push_back(Stem(file));
  }
  return names;
}

const CloudPrices& PriceCatalog::Of(std::string_view cloud) const {
  const std::lock_guard lock(state_->mutex);
  const auto known = state_->loaded.find(cloud);
  if (known != state_->loaded.end()) return known->second;
  const std::vector<std::string> names = clouds();
  if (std::find(names.begin(), names.end(), cloud) == names.end()) {
    throw InputError(fmt::format("unknown cloud \"{}\"; known: {}",
                                 cloud,
                                 model::JoinNames(model::NameViews(names))));
  }
  const std::string path = fmt::format("{}/{}.yaml", state_->directory, cloud);
  CloudPrices prices = LoadPrices(path);
  if (prices.cloud != cloud) {
    throw InputError(
        path,
        0,
        0,
        fmt::format("cloud: expected \"{}\", the name of the file, got \"{}\"",
                    cloud,
                    prices.cloud));
  }
  return state_->loaded.emplace(std::string(cloud), std::move(prices))
      .first->second;
}

std::vector<Price> PriceCatalog::FindAll(std::string_view cloud,
                                         std::string_view instance) const {
  std::vector<Price> found;
  for (const Price& price : Of(cloud).prices) {
    if (price.instance == instance) found.push_back(price);
  }
  return found;
}

std::optional<Price> PriceCatalog::Find(std::string_view cloud,
                                        std::string_view instance,
                                        std::optional<std::string_view> region,
                                        bool spot) const {
  const std::vector<Price> all = FindAll(cloud, instance);
  if (region) {
    for (const Price& price : all) {
      if (price.region == *region) return price;
    }
    return std::nullopt;
  }
  if (all.empty()) return std::nullopt;
  const Price* first = nullptr;
  for (const Price& price : all) {
    if (!price.Has(spot)) continue;
    if (price.suspicious.empty()) return price;
    if (first == nullptr) first = &price;
  }
  return first != nullptr ? *first : all.front();
}

}  // namespace trainfare::hardware
