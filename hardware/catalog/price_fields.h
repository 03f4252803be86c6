#pragma once

// The keys of hardware/prices/<cloud>.yaml, once (model/fields.h): LoadPrices()
// reads them, ToYaml() writes them.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/catalog/price.h"
#include "hardware/files/yaml_reader.h"
#include "hardware/files/yaml_text.h"
#include "model/fields.h"

namespace trainfare::hardware {

// A price in USD an hour; `P` is optional.
template <class P>
struct HourlyPrice {
  P& price;
  bool empty() const { return !price; }
};
template <class P>
HourlyPrice(P&) -> HourlyPrice<P>;
void ReadValue(const Reader& map,
               std::string_view key,
               const HourlyPrice<std::optional<model::UsdPerSecond<>>>& hourly);
template <class P>
std::string YamlText(const HourlyPrice<P>& hourly) {
  return fmt::format("{:.10g} USD/h", model::ToDollarsPerHour(*hourly.price));
}

// A date, 2026-05-20.
template <class S>
struct Day {
  S& text;
  bool empty() const { return text.empty(); }
};
template <class S>
Day(S&) -> Day<S>;
void ReadValue(const Reader& map,
               std::string_view key,
               const Day<std::string>& day);
template <class S>
std::string YamlText(const Day<S>& day) {
  return day.text;
}

// A name, which may be any text: without quotes where it needs none.
template <class S>
struct Name {
  S& text;
};
template <class S>
Name(S&) -> Name<S>;
void ReadValue(const Reader& map,
               std::string_view key,
               const Name<std::string>& name);
template <class S>
std::string YamlText(const Name<S>& name) {
  return PlainOrQuoted(name.text);
}

// There is one.
struct Currency {};
void ReadValue(const Reader& map,
               std::string_view key,
               const Currency& currency);
inline std::string YamlText(const Currency& currency) {
  (void)currency;
  return "USD";
}

// Parts of a price that are structs of their own in files.
template <class P>
struct SpotPrice {
  P& price;
  bool empty() const { return !price.spot_low; }
};
template <class P>
struct RegionPrice {
  P& price;
  const CloudPrices& cloud;  // whose date and source it has where it says none
};

template <class Archive, class P>
void VisitFields(Archive& archive, const SpotPrice<P>& spot) {
  using model::Field;
  P& p = spot.price;
  const HourlyPrice low{p.spot_low};
  const HourlyPrice high{p.spot_high};
  archive(Field{.name = "low", .required = true}, low);
  archive(Field{.name = "high", .required = true}, high);
  archive(Field{.name = "derived"}, p.spot_derived);
  std::optional<std::vector<double>> band;
  if (p.interruption_low && p.interruption_high) {
    band = {*p.interruption_low, *p.interruption_high};
  }
  archive(Field{.name = "interruptions"}, band);
  if constexpr (model::ReadingArchive<Archive>) {
    if (band && (band->size() != 2 || band->front() > band->back())) {
      archive.Fail("interruptions",
                   "expected [low, high], shares of a month's instances");
    }
    if (band) {
      p.interruption_low = band->front();
      p.interruption_high = band->back();
    }
    if (*p.spot_low > *p.spot_high) {
      archive.Fail("low", "expected at most spot.high");
    }
    if (p.on_demand && *p.spot_high > *p.on_demand) {
      archive.Fail("high", "expected at most on_demand");
    }
  }
}

template <class Archive, class P>
void VisitFields(Archive& archive, const RegionPrice<P>& region) {
  using model::Field;
  P& p = region.price;
  const HourlyPrice on_demand{p.on_demand};
  archive(Field{.name = "on_demand"}, on_demand);
  const SpotPrice<P> spot{p};
  archive(Field{.name = "spot", .one_line = true}, spot);
  archive(Field{.name = "suspicious"}, p.suspicious);
  // Written where they are not the cloud's.
  std::string date = p.date == region.cloud.date ? "" : p.date;
  std::string source = p.source == region.cloud.source ? "" : p.source;
  const Day day{date};
  archive(Field{.name = "date"}, day);
  archive(Field{.name = "source"}, source);
  if constexpr (model::ReadingArchive<Archive>) {
    p.date = date.empty() ? region.cloud.date : date;
    p.source = source.empty() ? region.cloud.source : source;
  }
}

template <class Archive, model::Of<Billing> B>
void VisitFields(Archive& archive, B& billing) {
  using model::Field;
  archive(Field{.name = "granularity", .required = true}, billing.granularity);
  archive(Field{.name = "minimum", .required = true, .may_be_zero = true},
          billing.minimum);
}

// What stands above the prices, which are by instance and region.
template <class Archive, model::Of<CloudPrices> C>
void VisitFields(Archive& archive, C& prices) {
  using model::Field;
  const Name cloud{prices.cloud};
  archive(Field{.name = "cloud", .required = true}, cloud);
  const Currency currency;
  archive(Field{.name = "currency", .required = true}, currency);
  const Day day{prices.date};
  archive(Field{.name = "date", .required = true}, day);
  archive(Field{.name = "source", .required = true}, prices.source);
  archive(Field{.name = "billing", .required = true, .one_line = true},
          prices.billing);
  archive(Field{.name = "excludes", .required = true}, prices.excludes);
}

}  // namespace trainfare::hardware
