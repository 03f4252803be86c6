#include "calibrate/records/import/table_row.h"

#include <fmt/format.h>

#include <cmath>

#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/limits.h"

namespace trainfare::calibrate {

void TableRow::Fail(std::string_view column, std::string_view expected) const {
  throw model::InputError(
      file,
      row.line,
      0,
      fmt::format(
          "{}: expected {}, got \"{}\"", column, expected, (*this)[column]));
}

std::optional<int64_t> TableRow::Count(std::string_view column) const {
  const std::string& text = (*this)[column];
  if (text.empty()) return std::nullopt;
  const auto value = hardware::ParseInteger(text);
  if (!value || *value < 1 || *value > model::kLargestDimension) {
    Fail(column, fmt::format("a count from 1 to {}", model::kLargestDimension));
  }
  return value;
}

int64_t TableRow::WholeNumber(std::string_view column,
                              std::string_view what) const {
  const std::string& text = (*this)[column];
  if (text.empty()) throw Unused{fmt::format("{} not stated", what)};
  // "128+512", "22.75", "64 (seq128)": several runs or an average.
  const auto value = hardware::ParseNumber(text);
  if (!value || *value < 1 || *value > 0x1p53 || *value != std::floor(*value)) {
    throw Unused{fmt::format("{} is not one whole number", what)};
  }
  return static_cast<int64_t>(*value);
}

}  // namespace trainfare::calibrate
