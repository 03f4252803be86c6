#include "calibrate/records/import/table_row.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <regex>
#include <sstream>
#include <utility>

#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/limits.h"

namespace trainfare::calibrate {
namespace {

bool EndsAClause(char letter) {
  return letter == ';' || letter == ',' || letter == '.' || letter == '(' ||
         letter == ')';
}

// Whether the words right before say that it is not so: the last of them, or
// the one before that.
bool DeniedBefore(std::string_view before) {
  size_t clause = before.size();
  while (clause > 0 && !EndsAClause(before[clause - 1])) --clause;
  std::istringstream words{std::string(before.substr(clause))};
  std::string last;
  std::string word;
  const auto denies = [](std::string_view one) {
    return one == "no" || one == "not" || one == "without" || one == "w/o";
  };
  std::string second;
  while (words >> word) {
    second = std::move(last);
    last = word;
  }
  return denies(last) || denies(second);
}

// The same of what stands right behind.
bool DeniedBehind(std::string_view behind) {
  const size_t begin = behind.find_first_not_of(" =:");
  if (begin == std::string_view::npos) return false;
  // "offloaded": another word's end is none of ours.
  if (begin == 0) return false;
  behind.remove_prefix(begin);
  constexpr auto kDenials = std::to_array<std::string_view>(
      {"off", "false", "none", "disabled", "not used"});
  return std::any_of(
      kDenials.begin(), kDenials.end(), [&](std::string_view denial) {
        if (!behind.starts_with(denial)) return false;
        return behind.size() == denial.size() || behind[denial.size()] == ' ' ||
               EndsAClause(behind[denial.size()]);
      });
}

}  // namespace

bool Says(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    if (!DeniedBefore(text.substr(0, at)) &&
        !DeniedBehind(text.substr(at + word.size()))) {
      return true;
    }
  }
  return false;
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
  // Groups of three digits.
  static const std::regex grouped(R"(\d{1,3}(,\d{3})+(\.\d+)?)");
  if (std::regex_match(text, grouped)) std::erase(text, ',');
  return hardware::ParseNumber(text);
}

std::optional<int64_t> TableRow::Count(std::string_view column) const {
  const std::string text = Lowered((*this)[column]);
  constexpr auto kNothing =
      std::to_array<std::string_view>({"", "-", "n/a", "nan"});
  if (std::find(kNothing.begin(), kNothing.end(), text) != kNothing.end()) {
    return std::nullopt;
  }
  const auto value = Number(column);
  if (!value || *value < 1 || *value > double{model::kLargestDimension} ||
      *value != std::floor(*value)) {
    Fail(column, fmt::format("a count from 1 to {}", model::kLargestDimension));
  }
  return static_cast<int64_t>(*value);
}

int64_t TableRow::WholeNumber(std::string_view column,
                              std::string_view what) const {
  if ((*this)[column].empty()) throw Unused{fmt::format("{} not stated", what)};
  // "128+512", "22.75", "64 (seq128)": several runs or an average.
  const auto value = Number(column);
  if (!value || *value < 1 || *value > 0x1p53 || *value != std::floor(*value)) {
    throw Unused{fmt::format("{} is not one whole number", what)};
  }
  return static_cast<int64_t>(*value);
}

}  // namespace trainfare::calibrate
