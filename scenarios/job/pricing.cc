#include "scenarios/job/pricing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/letters.h"
#include "model/nearest.h"

namespace trainfare::scenarios {

namespace {

// "aws=0.8" as the cloud and its factor.
std::pair<std::string, double> DiscountOf(
    const std::string& text, const hardware::PriceCatalog& catalog) {
  const size_t equals = text.find('=');
  const auto factor =
      equals == std::string::npos
          ? std::nullopt
          : hardware::ParseNumber(std::string_view(text).substr(equals + 1));
  if (!factor || !(*factor > 0.0 && *factor <= 1.0)) {
    throw model::InputError(fmt::format(
        "--discount: expected a cloud and what it takes of its list, above 0 "
        "and at most 1, such as aws=0.8, got \"{}\"",
        text));
  }
  const std::string asked = text.substr(0, equals);
  const std::vector<std::string> clouds = catalog.clouds();
  for (const std::string& cloud : clouds) {
    if (model::Lowered(cloud) == model::Lowered(asked)) {
      return {cloud, *factor};
    }
  }
  throw model::InputError(
      fmt::format("--discount: unknown cloud \"{}\"{}",
                  asked,
                  model::OfKnown(asked, model::NameViews(clouds))));
}

std::set<std::string> RegionsOf(const hardware::PriceCatalog& catalog) {
  std::set<std::string> regions;
  for (const std::string& cloud : catalog.clouds()) {
    for (const hardware::Price& price : catalog.Of(cloud).prices) {
      regions.insert(price.region);
    }
  }
  return regions;
}

[[noreturn]] void RefuseRegion(const std::string& region,
                               const std::set<std::string>& known) {
  if (region.empty()) {
    throw model::InputError("--region: expected a name, got \"\"");
  }
  const std::string near = model::DidYouMean(region, model::NameViews(known));
  throw model::InputError(fmt::format("--region: unknown region \"{}\"{}{}",
                                      region,
                                      near.empty() ? ";" : near,
                                      " see: trainfare list prices"));
}

// "eu-west-1, Taiwan, TW, AS" as the two that it names: what is between commas
// is of one name as far as a longer one is known.
std::vector<std::string> NamedIn(const std::string& text,
                                 const std::set<std::string>& known) {
  if (known.contains(text)) return {text};
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const size_t first = std::min(text.find_first_not_of(' ', begin), end);
    const size_t last = text.find_last_not_of(' ', end == 0 ? 0 : end - 1);
    parts.push_back(first == end ? "" : text.substr(first, last - first + 1));
    begin = end + 1;
  }
  std::vector<std::string> named;
  for (size_t i = 0; i < parts.size();) {
    std::string name;
    std::string longest;
    size_t next = i;
    for (size_t j = i; j < parts.size(); ++j) {
      name += (j > i ? ", " : "") + parts[j];
      if (!known.contains(name)) continue;
      longest = name;
      next = j + 1;
    }
    if (next == i) RefuseRegion(parts[i], known);
    named.push_back(longest);
    i = next;
  }
  return named;
}

// The regions that somebody asked for. Throws InputError where one is not known.
std::vector<std::string> RegionsAsked(const std::vector<std::string>& texts,
                                      const hardware::PriceCatalog& catalog) {
  std::vector<std::string> regions;
  if (texts.empty()) return regions;  // of no file, then
  const std::set<std::string> known = RegionsOf(catalog);
  for (const std::string& text : texts) {
    for (std::string& name : NamedIn(text, known)) {
      regions.push_back(std::move(name));
    }
  }
  return regions;
}

}  // namespace

std::set<std::string> CloudsOfFiles(const PriceOptions& options) {
  std::set<std::string> clouds;
  for (const std::string& file : options.files) {
    clouds.insert(hardware::LoadPrices(file).cloud);
  }
  return clouds;
}

Pricing::Pricing(const PriceOptions& options)
    : catalog_(hardware::PriceCatalog::Shipped().With(options.files)),
      regions_(RegionsAsked(options.regions, catalog_)) {
  for (const std::string& one : options.discounts) {
    if (!factors_.insert(DiscountOf(one, catalog_)).second) {
      throw model::InputError(
          fmt::format("--discount: \"{}\" is the second of its cloud", one));
    }
  }
}

void Pricing::Read(const std::set<std::string>& clouds) const {
  for (const std::string& cloud : clouds) catalog_.Of(cloud);
}

std::optional<hardware::Price> Pricing::Find(const hardware::Instance& instance,
                                             bool spot) const {
  if (regions_.empty()) {
    return catalog_.Find(instance.cloud, instance.name, std::nullopt, spot);
  }
  for (const std::string& region : regions_) {
    auto price = catalog_.Find(instance.cloud, instance.name, region);
    if (price && price->Has(spot)) return price;
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
  if (const auto found = factors_.find(instance.cloud);
      found != factors_.end()) {
    tariff.factor = found->second;
    tariff.price = tariff.price * tariff.factor;
    tariff.price_low = tariff.price_low * tariff.factor;
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
  if (spot && tariff.caution.empty()) {
    if (price->spot_derived) {
      tariff.caution = "spot price computed from a published saving";
    } else if (price->on_demand && *price->spot_high >= *price->on_demand) {
      tariff.caution =
          "a zone's spot price is that on demand: it saves nothing";
    }
  }
  const hardware::CloudPrices& cloud = catalog_.Of(instance.cloud);
  tariff.billing = {cloud.billing.granularity, cloud.billing.minimum};
  tariff.excludes = cloud.excludes;
  return tariff;
}

std::optional<RunCost> CostOf(const JobEstimate& job,
                              const std::optional<Tariff>& tariff) {
  if (!job.fits() || !tariff) return std::nullopt;
  const auto of = [&](model::Seconds<> time, model::UsdPerSecond<> price) {
    return model::RentalCost(time, price, tariff->billing);
  };
  return RunCost{of(job.run.total(), tariff->price),
                 of(job.run_low, tariff->price_low),
                 of(job.run_high, tariff->price)};
}

std::string BillingWords(const model::Billing& billing) {
  const auto is = [&](model::Seconds<> time) {
    return billing.granularity == time;
  };
  std::string words = is(model::Second(1.0))      ? "by the second"
                      : is(model::Second(60.0))   ? "by the minute"
                      : is(model::Second(3600.0)) ? "by the hour"
                                                  : "";
  if (words.empty()) {
    words = "in pieces of " + hardware::FormatTime(billing.granularity);
  }
  if (billing.minimum > billing.granularity) {
    words +=
        fmt::format(", {} at least", hardware::FormatTime(billing.minimum));
  }
  return words;
}

bool BillingCounts(const JobEstimate& job, const Tariff& tariff) {
  constexpr double kWorthSaying = 0.01;
  const auto cost = CostOf(job, tariff);
  return cost &&
         cost->usual / (job.run.total() * tariff.price) - 1.0 > kWorthSaying;
}

std::vector<PriceSource> SourcesOf(const PriceOptions& options,
                                   const std::set<std::string>& clouds) {
  const auto catalog = hardware::PriceCatalog::Shipped().With(options.files);
  std::vector<PriceSource> sources;
  for (const std::string& cloud : catalog.clouds()) {
    if (!clouds.contains(cloud)) continue;
    const hardware::CloudPrices& prices = catalog.Of(cloud);
    sources.push_back({cloud, prices.date, prices.source});
  }
  return sources;
}

std::string DiscountWords(double factor) {
  return factor == 1.0 ? "" : fmt::format(", {:g} of the list", factor);
}

std::string Describe(const Tariff& tariff) {
  std::string price = hardware::FormatPrice(tariff.price);
  if (tariff.price_low < tariff.price) {
    price = fmt::format("{} to {}",
                        hardware::FormatPrice(tariff.price_low),
                        hardware::FormatPrice(tariff.price));
  }
  return fmt::format("{}{} {} in {} ({}){}",
                     price,
                     tariff.instances > 1
                         ? fmt::format(" for {} instances", tariff.instances)
                         : "",
                     tariff.spot ? "spot" : "on demand",
                     tariff.region,
                     tariff.date,
                     DiscountWords(tariff.factor));
}

}  // namespace trainfare::scenarios
