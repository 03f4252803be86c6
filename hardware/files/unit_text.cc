#include "hardware/files/unit_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <system_error>

#include "hardware/files/date.h"
#include "model/error.h"

namespace trainfare::hardware {
namespace {

struct Unit {
  std::string_view text;
  double base;
};

constexpr double kKibi = 1024.0;
constexpr double kMebi = kKibi * kKibi;
constexpr double kGibi = kKibi * kMebi;
constexpr double kTebi = kKibi * kGibi;
constexpr double kPebi = kKibi * kTebi;

// Bandwidths are these with "/s".
constexpr auto kByteUnits = std::to_array<Unit>({
    {"B", 1.0},     {"kB", 1e3},     {"KB", 1e3},    {"MB", 1e6},
    {"GB", 1e9},    {"TB", 1e12},    {"PB", 1e15},   {"KiB", kKibi},
    {"MiB", kMebi}, {"GiB", kGibi},  {"TiB", kTebi}, {"PiB", kPebi},
    {"b", 0.125},   {"bit", 0.125},  {"kb", 125.0},  {"kbit", 125.0},
    {"Mb", 125e3},  {"Mbit", 125e3}, {"Gb", 125e6},  {"Gbit", 125e6},
    {"Tb", 125e9},  {"Tbit", 125e9},
});
// Rates are these with "/s".
constexpr auto kFlopUnits = std::to_array<Unit>({
    {"FLOP", 1.0},
    {"kFLOP", 1e3},
    {"MFLOP", 1e6},
    {"GFLOP", 1e9},
    {"TFLOP", 1e12},
    {"PFLOP", 1e15},
    {"EFLOP", 1e18},
});
constexpr auto kTimeUnits = std::to_array<Unit>({
    {"ns", 1e-9},
    {"us", 1e-6},
    {"\u00b5s", 1e-6},  // micro sign
    {"\u03bcs", 1e-6},  // Greek mu
    {"ms", 1e-3},
    {"s", 1.0},
    {"min", 60.0},
    {"m", 60.0},  // as people type it
    {"h", 3600.0},
    {"d", 86400.0},
});
constexpr auto kFrequencyUnits = std::to_array<Unit>({
    {"Hz", 1.0},
    {"kHz", 1e3},
    {"MHz", 1e6},
    {"GHz", 1e9},
});
constexpr auto kPowerUnits = std::to_array<Unit>({
    {"mW", 1e-3},
    {"W", 1.0},
    {"kW", 1e3},
    {"MW", 1e6},
});
constexpr auto kEnergyUnits = std::to_array<Unit>({
    {"pJ", 1e-12},
    {"nJ", 1e-9},
    {"mJ", 1e-3},
    {"J", 1.0},
    {"kJ", 1e3},
    {"MJ", 1e6},
    {"Wh", 3600.0},
    {"kWh", 3.6e6},
    {"MWh", 3.6e9},
});
constexpr auto kMoneyUnits = std::to_array<Unit>({{"USD", 1.0}});
constexpr auto kPriceUnits = std::to_array<Unit>({
    {"USD/h", 1.0 / 3600.0},
    {"USD/min", 1.0 / 60.0},
    {"USD/s", 1.0},
});

struct Family {
  std::string_view description;
  std::span<const Unit> units;
  std::string_view suffix;  // after each unit
  // In base units, far beyond any real figure: sums, products and quotients of
  // figures within stay finite. 0 is allowed, too.
  double least;
  double most;
};

const Family& FamilyOf(Dimension dimension) {
  // In the order of Dimension.
  static constexpr std::array<Family, 10> kFamilies = {{
      {R"(an amount of memory such as "141 GB")", kByteUnits, "", 1e-6, 1e24},
      {R"(a bandwidth such as "4.8 TB/s")", kByteUnits, "/s", 1e-3, 1e24},
      {R"(an amount of work such as "12 TFLOP")", kFlopUnits, "", 1e-6, 1e36},
      {R"(a compute rate such as "989 TFLOP/s")", kFlopUnits, "/s", 1, 1e30},
      {R"(a time such as "5 us")", kTimeUnits, "", 1e-15, 1e12},
      {R"(a frequency such as "1.41 GHz")", kFrequencyUnits, "", 1e-3, 1e18},
      {R"(a power such as "300 W")", kPowerUnits, "", 1e-9, 1e15},
      {R"(an energy such as "1.5 kWh")", kEnergyUnits, "", 1e-15, 1e24},
      {R"(an amount of money such as "2.75 USD")", kMoneyUnits, "", 1e-9, 1e18},
      {R"(a price such as "2.75 USD/h")", kPriceUnits, "", 1e-15, 1e12},
  }};
  return kFamilies[static_cast<size_t>(dimension)];
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

struct NumberAndUnit {
  double number;
  std::string_view unit;
};

// The number at the front and what follows it; nullopt: no finite number.
std::optional<NumberAndUnit> Split(std::string_view text) {
  text = Trimmed(text);
  std::string_view digits = text;
  const bool plus = digits.starts_with('+');
  if (plus) digits.remove_prefix(1);
  // from_chars also reads "inf" and "nan", and "-" after our "+".
  const size_t sign = !plus && digits.starts_with('-') ? 1 : 0;
  if (digits.size() <= sign) return std::nullopt;
  const char first = digits[sign];
  if (first != '.' && (first < '0' || first > '9')) return std::nullopt;
  double number = 0.0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  digits.remove_prefix(static_cast<size_t>(end - digits.data()));
  return NumberAndUnit{number, Trimmed(digits)};
}

std::optional<double> UnitBase(const Family& family, std::string_view unit) {
  if (!unit.ends_with(family.suffix)) return std::nullopt;
  unit.remove_suffix(family.suffix.size());
  for (const Unit& known : family.units) {
    if (known.text == unit) return known.base;
  }
  return std::nullopt;
}

bool InRange(const Family& family, double base) {
  const double size = std::abs(base);
  return base == 0.0 || (size >= family.least && size <= family.most);
}

// 4 significant digits without trailing zeros, never with an exponent for
// |value| < 1e6.
std::string Digits(double value) {
  std::string text = fmt::format("{:.4g}", value);
  // "%.4g" turns 12345 into 1.234e+04; whole numbers are written out.
  if (text.find('e') != std::string::npos && std::abs(value) >= 1.0 &&
      std::abs(value) < 1e6) {
    text = fmt::format("{:.0f}", value);
  }
  return text;
}

// Rounded first, so that 999.96 MB is not "1000 MB".
double Rounded(double value) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  const double scale =
      std::pow(10.0, 3.0 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

struct Prefix {
  std::string_view text;
  double factor;
};

std::string Scaled(double value,
                   std::span<const Prefix> prefixes,  // ascending
                   std::string_view unit) {
  if (!std::isfinite(value)) return fmt::format("{} {}", value, unit);
  const double size = std::abs(value);
  const Prefix* chosen = &prefixes.front();
  for (const Prefix& prefix : prefixes) {
    if (Rounded(size / prefix.factor) >= 1.0) chosen = &prefix;
  }
  if (size == 0.0) chosen = nullptr;
  if (chosen == nullptr) return fmt::format("0 {}", unit);
  return fmt::format(
      "{} {}{}", Digits(value / chosen->factor), chosen->text, unit);
}

constexpr auto kBinaryPrefixes = std::to_array<Prefix>({
    {"", 1.0},
    {"Ki", kKibi},
    {"Mi", kMebi},
    {"Gi", kGibi},
    {"Ti", kTebi},
    {"Pi", kPebi},
});
constexpr auto kDecimalPrefixes = std::to_array<Prefix>({
    {"", 1.0},
    {"k", 1e3},
    {"M", 1e6},
    {"G", 1e9},
    {"T", 1e12},
    {"P", 1e15},
    {"E", 1e18},
});
constexpr auto kSmallPrefixes = std::to_array<Prefix>({
    {"n", 1e-9},
    {"u", 1e-6},
    {"m", 1e-3},
    {"", 1.0},
});
constexpr auto kMilliPrefixes = std::to_array<Prefix>({
    {"m", 1e-3},
    {"", 1.0},
    {"k", 1e3},
    {"M", 1e6},
});

}  // namespace

std::string_view Description(Dimension dimension) {
  return FamilyOf(dimension).description;
}

std::string BaseUnit(Dimension dimension) {
  const Family& family = FamilyOf(dimension);
  const auto base = std::find_if(family.units.begin(),
                                 family.units.end(),
                                 [](const Unit& u) { return u.base == 1.0; });
  ENSURE(base != family.units.end(), "every dimension has a base unit");
  return fmt::format("{}{}", base->text, family.suffix);
}

namespace {

// "$5" and "$2.75/h" as "5USD", "2.75USD/h"; other texts as they are.
std::string WithoutDollarSign(Dimension dimension, std::string_view text) {
  text = Trimmed(text);
  const bool money =
      dimension == Dimension::kMoney || dimension == Dimension::kPrice;
  if (!money || !text.starts_with('$')) return std::string(text);
  text.remove_prefix(1);
  const size_t unit = std::min(text.find('/'), text.size());
  return fmt::format("{}USD{}", text.substr(0, unit), text.substr(unit));
}

// The length of "1h" in "1h30min": up to the first digit behind a unit.
size_t EndOfFirstPart(std::string_view text) {
  const size_t unit = text.find_first_not_of("+-.0123456789eE ");
  return std::min(
      text.find_first_of(".0123456789", std::min(unit, text.size())),
      text.size());
}

// One number with its unit, or 0.
std::optional<double> ParsePart(const Family& family, std::string_view text) {
  const std::optional<NumberAndUnit> split = Split(text);
  if (!split) return std::nullopt;
  if (split->unit.empty()) {
    return split->number == 0.0 ? std::optional<double>(0.0) : std::nullopt;
  }
  const std::optional<double> unit = UnitBase(family, split->unit);
  if (!unit) return std::nullopt;
  const double base = split->number * *unit;
  if (!InRange(family, base)) return std::nullopt;
  return base;
}

// "1h30min", "2 d 4 h": parts above 0, each less than one unit of the last.
std::optional<double> ParseParts(const Family& family, std::string_view text) {
  double sum = 0;
  double larger_unit = family.most;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, EndOfFirstPart(text));
    const std::optional<NumberAndUnit> split = Split(part);
    const std::optional<double> base = ParsePart(family, part);
    if (!base || *base <= 0 || *base >= larger_unit) return std::nullopt;
    sum += *base;
    larger_unit = *UnitBase(family, split->unit);
    text.remove_prefix(part.size());
  }
  return sum;
}

}  // namespace

std::optional<double> ParseBase(Dimension dimension, std::string_view text) {
  const Family& family = FamilyOf(dimension);
  const std::string plain = WithoutDollarSign(dimension, text);
  if (const auto part = ParsePart(family, plain)) return part;
  if (dimension != Dimension::kTime) return std::nullopt;
  return ParseParts(family, plain);
}

std::string UnitHint(Dimension dimension, std::string_view text) {
  const std::optional<NumberAndUnit> split = Split(text);
  if (!split) return "";
  if (split->unit.empty()) {
    return split->number == 0.0 ? "" : "; a number needs its unit";
  }
  const std::string_view unit = split->unit;
  const Family& family = FamilyOf(dimension);
  if (const auto known = UnitBase(family, unit);
      known && !InRange(family, split->number * *known)) {
    return fmt::format("; it must be from {:.3g} to {:.3g} {}",
                       family.least / *known,
                       family.most / *known,
                       unit);
  }
  if (dimension == Dimension::kComputeRate) {
    if (unit.ends_with("FLOPS") || unit.ends_with("FLOPs")) {
      return fmt::format("; a rate is written {}FLOP/s",
                         unit.substr(0, unit.size() - 5));
    }
  }
  if (dimension == Dimension::kBandwidth) {
    if (unit.ends_with("ps")) {  // GBps, Gbps
      return fmt::format("; a rate is written {}/s",
                         unit.substr(0, unit.size() - 2));
    }
    if (UnitBase(FamilyOf(Dimension::kBytes), unit)) {
      return fmt::format("; {} is an amount, not a rate", unit);
    }
  }
  std::string known;
  for (const Unit& candidate : family.units) {
    if (!known.empty()) known += ", ";
    known += candidate.text;
    known += family.suffix;
  }
  return fmt::format("; known units: {}", known);
}

std::optional<double> ParseNumber(std::string_view text) {
  const std::optional<NumberAndUnit> split = Split(text);
  if (!split || !split->unit.empty()) return std::nullopt;
  return split->number;
}

std::optional<int64_t> ParseInteger(std::string_view text) {
  text = Trimmed(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::string Plural(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

bool IsDate(std::string_view text) { return ParseDate(text).has_value(); }

std::string FormatBytes(model::Bytes<> value) {
  return Scaled(value.base(), kBinaryPrefixes, "B");
}
std::string FormatDecimalBytes(model::Bytes<> value) {
  return Scaled(value.base(), kDecimalPrefixes, "B");
}
std::string FormatBandwidth(model::BytesPerSecond<> value) {
  return Scaled(value.base(), kDecimalPrefixes, "B/s");
}
std::string FormatFlops(model::Flops<> value) {
  return Scaled(value.base(), kDecimalPrefixes, "FLOP");
}
std::string FormatComputeRate(model::FlopsPerSecond<> value) {
  return Scaled(value.base(), kDecimalPrefixes, "FLOP/s");
}
std::string FormatPower(model::Watts<> value) {
  return Scaled(value.base(), kMilliPrefixes, "W");
}

std::string FormatTime(model::Seconds<> value) {
  const double seconds = value.base();
  const double size = std::abs(seconds);
  if (Rounded(size) < 60.0 || !std::isfinite(seconds)) {
    return Scaled(seconds, kSmallPrefixes, "s");
  }
  struct Step {
    double large_s;
    double small_s;
    std::string_view large;
    std::string_view small;
  };
  static constexpr std::array<Step, 3> kSteps = {{
      {86400.0, 3600.0, "d", "h"},
      {3600.0, 60.0, "h", "min"},
      {60.0, 1.0, "min", "s"},
  }};
  for (const Step& step : kSteps) {
    // Rounded to the small part first: 3599.9 s is 1 h, not 59 min 60 s.
    const double parts = std::round(size / step.small_s);
    const double per_large = step.large_s / step.small_s;
    if (parts < per_large) continue;
    const double large = std::floor(parts / per_large);
    const double small = parts - large * per_large;
    const char* sign = seconds < 0.0 ? "-" : "";
    if (small == 0.0)
      return fmt::format("{}{:.0f} {}", sign, large, step.large);
    return fmt::format(
        "{}{:.0f} {} {:.0f} {}", sign, large, step.large, small, step.small);
  }
  return Scaled(seconds, kSmallPrefixes, "s");
}

std::string FormatEnergy(model::Joules<> value) {
  if (std::abs(value.base()) < 3600.0) {
    return Scaled(value.base(), kMilliPrefixes, "J");
  }
  return fmt::format("{} kWh", Digits(value.base() / 3.6e6));
}

std::string FormatMoney(model::Usd<> value) {
  const double dollars = value.base();
  const double size = std::abs(dollars);
  const char* sign = dollars < 0.0 ? "-" : "";
  if (size == 0.0 || size >= 0.995) return fmt::format("{}${:.2f}", sign, size);
  // Cents would round a small cost to nothing.
  return fmt::format("{}${}", sign, Digits(size));
}

std::string FormatPrice(model::UsdPerSecond<> value) {
  return fmt::format("{} USD/h", Digits(value.base() * 3600.0));
}

}  // namespace trainfare::hardware
