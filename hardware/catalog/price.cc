#include "hardware/catalog/price.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <utility>

#include "hardware/files/data_directory.h"
#include "hardware/files/yaml_reader.h"
#include "hardware/files/yaml_text.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::hardware {
namespace {

using model::InputError;

// No instance of today is outside this; a sentinel is.
constexpr double kLowestUsdPerHour = 0.01;
constexpr double kHighestUsdPerHour = 2000.0;

model::UsdPerSecond<> ReadPrice(const Reader& reader, std::string_view key) {
  const model::UsdPerSecond<> price = reader.Price(key);
  if (price < model::DollarsPerHour(kLowestUsdPerHour) ||
      price > model::DollarsPerHour(kHighestUsdPerHour)) {
    reader.Fail(key,
                fmt::format("expected {} to {} USD/h; what has no price has "
                            "no row",
                            kLowestUsdPerHour,
                            kHighestUsdPerHour));
  }
  return price;
}

Price ReadRegion(const Reader& region, const CloudPrices& cloud) {
  Price price;
  price.cloud = cloud.cloud;
  price.date = region.OptionalDate("date").value_or(cloud.date);
  price.source = region.OptionalText("source").value_or(cloud.source);
  price.suspicious = region.OptionalText("suspicious").value_or("");
  if (region.Has("on_demand")) price.on_demand = ReadPrice(region, "on_demand");
  if (const std::optional<Reader> spot = region.OptionalMap("spot")) {
    price.spot_low = ReadPrice(*spot, "low");
    price.spot_high = ReadPrice(*spot, "high");
    price.spot_derived = spot->OptionalFlag("derived").value_or(false);
    if (spot->Has("interruptions")) {
      const std::vector<double> band = spot->Numbers("interruptions", 0.0, 1.0);
      if (band.size() != 2 || band[0] > band[1]) {
        spot->Fail("interruptions",
                   "expected [low, high], shares of a month's instances");
      }
      price.interruption_low = band[0];
      price.interruption_high = band[1];
    }
    if (*price.spot_low > *price.spot_high) {
      spot->Fail("low", "expected at most spot.high");
    }
    if (price.on_demand && *price.spot_high > *price.on_demand) {
      spot->Fail("high", "expected at most on_demand");
    }
  }
  if (!price.on_demand && !price.spot_low) {
    region.Fail("expected on_demand, spot or both");
  }
  return price;
}

std::string PriceText(model::UsdPerSecond<> price) {
  return fmt::format("{:.10g} USD/h", model::ToDollarsPerHour(price));
}

}  // namespace

CloudPrices LoadPrices(const std::string& path) {
  const Reader root = Reader::FromFile(path);
  CloudPrices prices;
  prices.cloud = root.Text("cloud");
  prices.date = root.Date("date");
  prices.source = root.Text("source");
  root.Choice<int>("currency", {{"USD", 0}});
  const Reader billing = root.Map("billing");
  prices.billing.granularity = billing.Time("granularity");
  prices.billing.minimum = billing.Time("minimum", Reader::Sign::kZeroOrMore);
  prices.excludes = root.Texts("excludes");
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
      Price price = ReadRegion(regions.Map(name), prices);
      price.instance = instance;
      price.region = name;
      prices.prices.push_back(std::move(price));
    }
  }
  root.Finish();
  return prices;
}

std::string ToYaml(const CloudPrices& prices) {
  std::string yaml;
  auto out = std::back_inserter(yaml);
  fmt::format_to(out, "cloud: {}\ncurrency: USD\n", prices.cloud);
  fmt::format_to(
      out, "date: {}\nsource: {}\n", prices.date, Quoted(prices.source));
  fmt::format_to(out,
                 "billing: {{ granularity: {:g} s, minimum: {:g} s }}\n",
                 prices.billing.granularity.base(),
                 prices.billing.minimum.base());
  fmt::format_to(out, "excludes: [");
  for (size_t i = 0; i < prices.excludes.size(); ++i) {
    fmt::format_to(out, "{}{}", i == 0 ? "" : ", ", Quoted(prices.excludes[i]));
  }
  fmt::format_to(out, "]\nprices:{}\n", prices.prices.empty() ? " []" : "");
  std::string_view open;
  for (const Price& price : prices.prices) {
    if (price.instance != open) {
      fmt::format_to(out, "  - instance: {}\n    regions:\n", price.instance);
      open = price.instance;
    }
    std::string fields;
    const auto add = [&](const std::string& field) {
      fields += fields.empty() ? field : ", " + field;
    };
    if (price.on_demand) add("on_demand: " + PriceText(*price.on_demand));
    if (price.spot_low) {
      std::string band;
      if (price.interruption_low) {
        band = fmt::format(", interruptions: [{:g}, {:g}]",
                           *price.interruption_low,
                           *price.interruption_high);
      }
      add(fmt::format("spot: {{ low: {}, high: {}{}{} }}",
                      PriceText(*price.spot_low),
                      PriceText(*price.spot_high),
                      price.spot_derived ? ", derived: true" : "",
                      band));
    }
    if (!price.suspicious.empty()) {
      add("suspicious: " + Quoted(price.suspicious));
    }
    if (price.date != prices.date) add("date: " + price.date);
    if (price.source != prices.source) add("source: " + Quoted(price.source));
    fmt::format_to(out, "      {}: {{ {} }}\n", price.region, fields);
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

std::optional<Price> PriceCatalog::Find(
    std::string_view cloud,
    std::string_view instance,
    std::optional<std::string_view> region) const {
  const std::vector<Price> all = FindAll(cloud, instance);
  if (region) {
    for (const Price& price : all) {
      if (price.region == *region) return price;
    }
    return std::nullopt;
  }
  for (const Price& price : all) {
    if (price.on_demand && price.suspicious.empty()) return price;
  }
  if (all.empty()) return std::nullopt;
  return all.front();
}

}  // namespace trainfare::hardware
