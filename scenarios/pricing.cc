#include "scenarios/pricing.h"

#include <fmt/format.h>

#include "hardware/unit_text.h"

namespace trainfare::scenarios {

std::optional<Tariff> TariffOf(const hardware::Instance& instance,
                               bool spot,
                               const hardware::PriceCatalog& catalog) {
  const auto price = catalog.Find(instance.cloud, instance.name);
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
  tariff.region = price->region;
  tariff.date = price->date;
  tariff.source = price->source;
  tariff.caution = price->suspicious;
  if (spot && price->spot_derived && tariff.caution.empty()) {
    tariff.caution = "spot price computed from a published saving";
  }
  const hardware::CloudPrices& cloud = catalog.Of(instance.cloud);
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
  return fmt::format("{} {} in {} ({})",
                     price,
                     tariff.spot ? "spot" : "on demand",
                     tariff.region,
                     tariff.date);
}

}  // namespace trainfare::scenarios
