#include "scenarios/command_line/quantity_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "hardware/files/unit_text.h"
#include "model/error.h"

namespace trainfare::scenarios {
namespace {

// `text` is what was typed, `spelled` the same as the reader of units wants it.
template <class Q>
Q QuantityFlag(std::string_view flag,
               std::string_view text,
               std::string_view spelled,
               std::string_view example) {
  const auto value = hardware::ParseQuantity<Q>(spelled);
  if (value && value->base() > 0) return *value;
  throw model::InputError(fmt::format(
      "{}: expected {} {}such as \"{}\", got \"{}\"{}",
      flag,
      example.back() == 'h' ? "a time" : "an amount",
      value ? "above 0 " : "",
      example,
      text,
      value ? "" : hardware::UnitHint(hardware::DimensionOf<Q>(), spelled)));
}

}  // namespace

model::Seconds<> TimeFlag(std::string_view flag, std::string_view text) {
  return QuantityFlag<model::Seconds<>>(flag, text, text, "4h");
}

model::Usd<> MoneyFlag(std::string_view flag, std::string_view text) {
  // "20usd" is how one types it; the reader's unit is USD.
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return QuantityFlag<model::Usd<>>(flag, text, upper, "20 USD");
}

}  // namespace trainfare::scenarios
