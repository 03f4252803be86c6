#pragma once

// Quantities as people write them: "141 GB", "4.8 TB/s", "5 us".
//
// GB = 1e9 B, GiB = 2^30 B; lower-case b (and bit) is bits. Letter case counts
// ("mW" is not "MW"), no prefix is guessed, and a number needs its unit; only 0
// stands alone. "KB" is read as kB.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "model/units.h"

namespace trainfare::hardware {

enum class Dimension {
  kBytes,
  kBandwidth,
  kFlops,
  kComputeRate,
  kTime,
  kFrequency,
  kPower,
  kEnergy,
  kMoney,
  kPrice,
};

// What messages say of it: `a bandwidth such as "4.8 TB/s"`.
std::string_view Description(Dimension dimension);
// The unit that a number in base units has: "B/s".
std::string BaseUnit(Dimension dimension);

// The number in base units; nullopt when `text` is not one finite number
// followed by a unit of `dimension` (space between them or not), or 0. A time
// may have parts, "1h30min"; an amount of money or a price its sign, "$5".
std::optional<double> ParseBase(Dimension dimension, std::string_view text);

// Why `text` did not parse, for the end of a message: "; a number needs its
// unit", "; lower-case b is bits", ...; empty when there is nothing to add.
std::string UnitHint(Dimension dimension, std::string_view text);

template <class Q>
constexpr Dimension DimensionOf() {
  using model::Bytes;
  if constexpr (std::is_same_v<Q, Bytes<>>) {
    return Dimension::kBytes;
  } else if constexpr (std::is_same_v<Q, model::BytesPerSecond<>>) {
    return Dimension::kBandwidth;
  } else if constexpr (std::is_same_v<Q, model::Flops<>>) {
    return Dimension::kFlops;
  } else if constexpr (std::is_same_v<Q, model::FlopsPerSecond<>>) {
    return Dimension::kComputeRate;
  } else if constexpr (std::is_same_v<Q, model::Seconds<>>) {
    return Dimension::kTime;
  } else if constexpr (std::is_same_v<Q, model::Hertz<>>) {
    return Dimension::kFrequency;
  } else if constexpr (std::is_same_v<Q, model::Watts<>>) {
    return Dimension::kPower;
  } else if constexpr (std::is_same_v<Q, model::Joules<>>) {
    return Dimension::kEnergy;
  } else if constexpr (std::is_same_v<Q, model::Usd<>>) {
    return Dimension::kMoney;
  } else {
    static_assert(std::is_same_v<Q, model::UsdPerSecond<>>, "no text form");
    return Dimension::kPrice;
  }
}

// ParseQuantity<model::Bytes<>>("141 GB").
template <class Q>
std::optional<Q> ParseQuantity(std::string_view text) {
  const std::optional<double> base = ParseBase(DimensionOf<Q>(), text);
  if (!base) return std::nullopt;
  return Q(*base);
}

// A finite decimal number and nothing else ("1e-3", "+2"; not "nan", "0x10").
std::optional<double> ParseNumber(std::string_view text);
// A whole decimal number and nothing else, within 64 bits.
std::optional<int64_t> ParseInteger(std::string_view text);
// A day of the calendar, written 2026-05-20.
bool IsDate(std::string_view text);

// "1 run", "2 runs".
std::string Plural(int64_t count, std::string_view noun);

// Human form: the prefix that leaves 1 to 999 in front, 4 significant digits,
// no trailing zeros: "4.8 TB/s", "412.3 ms", "27.85 GiB". From one minute up a
// time has two parts: "12 min 5 s", "3 h 20 min", "2 d 4 h".
std::string FormatBytes(model::Bytes<> value);         // binary: KiB, MiB, ..
std::string FormatDecimalBytes(model::Bytes<> value);  // decimal: kB, MB, ..
std::string FormatBandwidth(model::BytesPerSecond<> value);
std::string FormatFlops(model::Flops<> value);
std::string FormatComputeRate(model::FlopsPerSecond<> value);
std::string FormatTime(model::Seconds<> value);
std::string FormatPower(model::Watts<> value);
std::string FormatEnergy(model::Joules<> value);       // kWh from 3600 J up
std::string FormatMoney(model::Usd<> value);           // "$1.37", "$0.004213"
std::string FormatPrice(model::UsdPerSecond<> value);  // "2.75 USD/h"

}  // namespace trainfare::hardware
