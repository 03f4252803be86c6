#include "scenarios/command_line/quantity_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "hardware/files/unit_text.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {
namespace {

template <class Q>
Q QuantityFlag(std::string_view flag,
               std::string_view text,
               std::string_view example) {
  const auto value = hardware::ParseQuantity<Q>(text);
  if (value && value->base() > 0) return *value;
  throw UsageError(fmt::format(
      "{}: expected {} {}such as \"{}\", got \"{}\"{}",
      flag,
      example.back() == 'h' ? "a time" : "an amount",
      value ? "above 0 " : "",
      example,
      text,
      value ? "" : hardware::UnitHint(hardware::DimensionOf<Q>(), text)));
}

}  // namespace

model::Seconds<> TimeFlag(std::string_view flag, std::string_view text) {
  return QuantityFlag<model::Seconds<>>(flag, text, "4h");
}

model::Usd<> MoneyFlag(std::string_view flag, std::string_view text) {
  // "20usd" is how one types it; the reader's unit is USD.
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return QuantityFlag<model::Usd<>>(flag, upper, "20 USD");
}

}  // namespace trainfare::scenarios
