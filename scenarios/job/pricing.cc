#include "scenarios/job/pricing.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::scenarios {

Pricing::Pricing(const std::vector<std::string>& files,
                 std::vector<std::string> regions)
    : catalog_(hardware::PriceCatalog::Shipped().With(files)),
      regions_(std::move(regions)) {
  if (regions_.empty()) return;
  std::set<std::string> known;
  for (const std::string& cloud : catalog_.clouds()) {
    for (const hardware::Price& price : catalog_.Of(cloud).prices) {
      known.insert(price.region);
    }
  }
  for (const std::string& region : regions_) {
    if (known.contains(region)) continue;
    const std::string near = model::DidYouMean(region, model::NameViews(known));
    throw model::InputError(fmt::format("--region: unknown region \"{}\"{}{}",
                                        region,
                                        near.empty() ? ";" : near,
                                        " see: trainfare list prices"));
  }
}

std::optional<hardware::Price> Pricing::Find(const hardware::Instance& instance,
                                             bool spot) const {
  if (regions_.empty()) return catalog_.Find(instance.cloud, instance.name);
  for (const std::string& region : regions_) {
    auto price = catalog_.Find(instance.cloud, instance.name, region);
    if (price && (spot ? price->spot_high : price->on_demand)) return price;
  }
  return std::nullopt;
}

std::optional<Tariff> Pricing::Of(const hardware::Instance& instance,
                                  bool spot,
                                  int64_t count) const {
  const auto price = Find(instance, spot);
  if (!price) return std::nullopt;
  Tariff tariff;
  tariff.spot = spot;
  if (spot) {
    if (!price->spot_low || !price->spot_high) return std::nullopt;
    tariff.price = *price->spot_high;
    tariff.price_low = *price->spot_low;
  } else {
    if (!price->on_demand) return std::nullopt;
    tariff.price = *price->on_demand;
    tariff.price_low = tariff.price;
  }
  if (count > 1) {
    tariff.price = tariff.price * static_cast<double>(count);
    tariff.price_low = tariff.price_low * static_cast<double>(count);
    tariff.instances = count;
  }
  tariff.region = price->region;
  tariff.date = price->date;
  tariff.source = price->source;
  tariff.caution = price->suspicious;
  if (spot && price->spot_derived && tariff.caution.empty()) {
    tariff.caution = "spot price computed from a published saving";
  }
  const hardware::CloudPrices& cloud = catalog_.Of(instance.cloud);
  tariff.billing = {cloud.billing.granularity, cloud.billing.minimum};
  tariff.excludes = cloud.excludes;
  return tariff;
}

std::string Describe(const Tariff& tariff) {
  std::string price = hardware::FormatPrice(tariff.price);
  if (tariff.price_low < tariff.price) {
    price = fmt::format("{} to {}",
                        hardware::FormatPrice(tariff.price_low),
                        hardware::FormatPrice(tariff.price));
  }
  return fmt::format("{}{} {} in {} ({})",
                     price,
                     tariff.instances > 1
                         ? fmt::format(" for {} instances", tariff.instances)
                         : "",
                     tariff.spot ? "spot" : "on demand",
                     tariff.region,
                     tariff.date);
}

}  // namespace trainfare::scenarios
