#include "hardware/catalog/price_words.h"

#include <fmt/format.h>

#include "hardware/files/data_directory.h"
#include "hardware/files/yaml_reader.h"
#include "model/error.h"

namespace trainfare::hardware {
namespace {

std::map<std::string, std::string, std::less<>> ReadNames(const Reader& map) {
  std::map<std::string, std::string, std::less<>> names;
  for (const std::string& key : map.Keys()) names.emplace(key, map.Text(key));
  return names;
}

Billing ReadBilling(const Reader& map) {
  return {map.Time("granularity"), map.Time("minimum")};
}

PriceWords ReadWords(const std::string& path) {
  const Reader root = Reader::FromFile(path);
  const Reader billing = root.Map("billing");
  PriceWords words{.billing = {},
                   .elsewhere = ReadBilling(billing.Map("elsewhere")),
                   .apart = ListedApart(root.Map("apart"))};
  for (const std::string& cloud : billing.Keys()) {
    if (cloud == "elsewhere") continue;
    words.billing.emplace(cloud, ReadBilling(billing.Map(cloud)));
  }
  root.Text("source");
  root.Date("date");
  root.Finish();
  return words;
}

}  // namespace

ListedApart::ListedApart(const Reader& map)
    : file_(map.file()),
      cloud_(map.Text("cloud")),
      placeholder_(map.Price("placeholder")),
      other_offer_below_(map.Number("other_offer_below", 0.0, 1.0)),
      accelerators_(ReadNames(map.Map("accelerators"))),
      named_otherwise_(ReadNames(map.Map("named_otherwise"))),
      hosts_(ReadNames(map.Map("hosts"))) {
  for (std::string& instance : map.Texts("whole")) {
    whole_.insert(std::move(instance));
  }
}

ListedApart::Parts ListedApart::PartsOf(const Instance& instance) const {
  if (whole_.contains(instance.name)) {
    return {std::nullopt, instance.name, 1.0};
  }
  const auto count = static_cast<double>(instance.count);
  const auto host = hosts_.find(instance.name);
  const std::string& of_host =
      host == hosts_.end() ? instance.name : host->second;
  const auto otherwise = named_otherwise_.find(instance.name);
  if (otherwise != named_otherwise_.end()) {
    return {of_host, otherwise->second, count};
  }
  const auto name = accelerators_.find(instance.device);
  if (name == accelerators_.end()) {
    throw model::InputError(fmt::format(
        "{}: apart.accelerators: expected a name of {}, the device of {}",
        file_,
        instance.device,
        instance.name));
  }
  return {of_host, name->second, count};
}

Billing PriceWords::BillingOf(std::string_view cloud) const {
  const auto known = billing.find(cloud);
  return known == billing.end() ? elsewhere : known->second;
}

const PriceWords& WordsOfSkyPilot() {
  static const PriceWords words =
      ReadWords(ShippedDirectory("hardware/prices/import") + "/skypilot.yaml");
  return words;
}

}  // namespace trainfare::hardware
