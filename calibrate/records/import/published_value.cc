#include "calibrate/records/import/published_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "calibrate/records/import/published_quantity.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;

// What "about" leaves open.
constexpr double kAbout = 0.10;

// Half a unit of the last digit of "2034.45": 0.005.
double HalfLastDigit(std::string_view number) {
  const size_t point = number.find('.');
  if (point == std::string_view::npos) return 0.5;
  const size_t decimals = number.size() - point - 1;
  return 0.5 * std::pow(10.0, -static_cast<double>(decimals));
}

bool TakePrefix(std::string_view prefix, std::string_view& text) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

void RequireOutcome(const Measure& measure, std::string_view text) {
  if (text == "fits" || text == "does not fit" || text == "not supported") {
    return;
  }
  throw InputError(
      fmt::format("expected {}, got \"{}\"", ExampleOf(measure), text));
}

}  // namespace

PublishedValue ParsePublishedValue(const Measure& measure,
                                   std::string_view text) {
  const auto fail = [&]() -> InputError {
    return InputError(
        fmt::format("expected {}, got \"{}\"; before it may "
                    "stand about, at least or at most, and a "
                    "range is written 1 .. 2",
                    ExampleOf(measure),
                    text));
  };
  PublishedValue value;
  value.text = text;
  if (measure.outcome) {
    value.kind = PublishedValue::Kind::kOutcome;
    RequireOutcome(measure, text);
    return value;
  }
  std::string_view rest = text;
  const bool about = TakePrefix("about ", rest);
  if (!about) {
    if (TakePrefix("at least ", rest)) {
      value.kind = PublishedValue::Kind::kAtLeast;
    } else if (TakePrefix("at most ", rest)) {
      value.kind = PublishedValue::Kind::kAtMost;
    }
  }
  const auto take_number = [&rest, &fail] {
    const size_t end =
        std::min(rest.find_first_not_of("0123456789."), rest.size());
    const std::string_view digits = rest.substr(0, end);
    const std::optional<double> number = hardware::ParseNumber(digits);
    if (!number) throw fail();
    rest.remove_prefix(end);
    return std::pair(*number, digits);
  };
  const auto [low, digits] = take_number();
  double high = low;
  double half = HalfLastDigit(digits);
  if (TakePrefix(" .. ", rest)) {
    if (value.kind != PublishedValue::Kind::kNumber) throw fail();
    value.kind = PublishedValue::Kind::kRange;
    const auto [last, last_digits] = take_number();
    high = last;
    half = std::max(half, HalfLastDigit(last_digits));
    if (!(high > low)) throw fail();
  }
  TakePrefix(" ", rest);
  const std::optional<double> scale = UnitScale(measure, rest);
  if (!scale) throw fail();
  value.low = low * *scale;
  value.high = high * *scale;
  value.tolerance = half * *scale;
  if (about) {
    value.tolerance = std::max(value.tolerance, kAbout * value.high);
  }
  return value;
}

void WidenTolerance(const std::string& text, PublishedValue& value) {
  std::string_view rest = text;
  const bool absolute = rest.ends_with(" absolute");
  if (absolute) rest.remove_suffix(std::string_view(" absolute").size());
  const bool percent = !absolute && rest.ends_with(" %");
  if (percent) rest.remove_suffix(2);
  const std::optional<double> number = hardware::ParseNumber(rest);
  if (!number || !(*number > 0) || absolute == percent) {
    throw InputError(fmt::format(
        "expected a tolerance such as \"2 %\" or \"0.001 absolute\", got "
        "\"{}\"",
        text));
  }
  const double widened =
      absolute ? *number : *number / 100.0 * std::abs(value.high);
  value.tolerance = std::max(value.tolerance, widened);
}

}  // namespace trainfare::calibrate
