#include "calibrate/records/import/table_row.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>

#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/limits.h"

namespace trainfare::calibrate {
std::optional<int64_t> NumberIn(const std::string& words,
                                const std::regex& pattern) {
  std::smatch found;
  if (!std::regex_search(words, found, pattern)) return std::nullopt;
  const auto number = hardware::ParseNumber(found.str(1));
  if (!number || *number < 1) return std::nullopt;
  return static_cast<int64_t>(*number);
}

void TableRow::Fail(std::string_view column, std::string_view expected) const {
  throw model::InputError(
      file,
      row.line,
      0,
      fmt::format(
          "{}: expected {}, got \"{}\"", column, expected, (*this)[column]));
}

std::optional<double> TableRow::Number(std::string_view column) const {
  std::string text = (*this)[column];
  // Groups of three digits, of which the first has no leading 0: "0,512" is a
  // half with a decimal comma.
  static const std::regex grouped(R"([1-9]\d{0,2}(,\d{3})+(\.\d+)?)");
  if (std::regex_match(text, grouped)) std::erase(text, ',');
  return hardware::ParseNumber(text);
}

bool TableRow::Blank(std::string_view column) const {
  const std::string text = Lowered((*this)[column]);
  constexpr auto kNothing =
      std::to_array<std::string_view>({"", "-", "n/a", "nan"});
  return std::find(kNothing.begin(), kNothing.end(), text) != kNothing.end();
}

std::optional<int64_t> TableRow::Count(std::string_view column) const {
  if (Blank(column)) return std::nullopt;
  const auto value = Number(column);
  if (!value || *value < 1 || *value > double{model::kLargestDimension} ||
      *value != std::floor(*value)) {
    Fail(column, fmt::format("a count from 1 to {}", model::kLargestDimension));
  }
  return static_cast<int64_t>(*value);
}

int64_t TableRow::WholeNumber(std::string_view column,
                              std::string_view what) const {
  if (Blank(column)) throw Unused{fmt::format("{} not stated", what)};
  // "128+512", "22.75", "64 (seq128)": several runs or an average.
  const auto value = Number(column);
  if (!value || *value < 1 || *value > 0x1p53 || *value != std::floor(*value)) {
    throw Unused{fmt::format("{} is not one whole number", what)};
  }
  return static_cast<int64_t>(*value);
}

}  // namespace trainfare::calibrate
