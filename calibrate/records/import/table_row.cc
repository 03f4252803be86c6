#include "calibrate/records/import/table_row.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <sstream>
#include <vector>

#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/limits.h"

namespace trainfare::calibrate {
namespace {

bool EndsAClause(char letter) {
  constexpr std::string_view kEnds = ";,.()+/|:";
  return kEnds.find(letter) != std::string_view::npos;
}

// Whether one of the three words right before, in the same clause, says that it
// is not so: "no activation or CPU offload".
bool DeniedBefore(std::string_view text) {
  static const std::regex without(R"(\bw/o\b)");
  const std::string before =
      std::regex_replace(std::string(text), without, "without");
  size_t clause = before.size();
  while (clause > 0 && !EndsAClause(before[clause - 1])) --clause;
  std::istringstream words(before.substr(clause));
  std::vector<std::string> said;
  for (std::string word; words >> word;) {
    if (word == "with" || word == "-") said.clear();
    if (word != "and" && word != "or") said.push_back(word);
  }
  constexpr auto kDenials = std::to_array<std::string_view>(
      {"no", "not", "without", "disabled", "disable"});
  constexpr size_t kWordsBefore = 3;
  return std::any_of(
      said.end() -
          static_cast<std::ptrdiff_t>(std::min(said.size(), kWordsBefore)),
      said.end(),
      [&](const std::string& word) {
        return std::find(kDenials.begin(), kDenials.end(), word) !=
               kDenials.end();
      });
}

// The same of what stands right behind, or behind the rest of its word.
bool DeniedBehind(std::string_view behind) {
  const size_t rest = static_cast<size_t>(
      std::find_if(behind.begin(),
                   behind.end(),
                   [](char letter) { return letter < 'a' || letter > 'z'; }) -
      behind.begin());
  behind.remove_prefix(rest);
  const size_t begin = behind.find_first_not_of(" =:");
  if (begin == std::string_view::npos || begin == 0) return false;
  behind.remove_prefix(begin);
  // "no" and "0" may begin something else: "no dropout", a version "0.4".
  static const std::regex denial(
      R"((off|false|none|disabled|not (used|stated))\b.*|)"
      R"((no|0)(\.?| *[;,)+/|].*))");
  return std::regex_match(behind.begin(), behind.end(), denial);
}

// Whether a word stands somewhere where `counts` holds, and is not denied there.
template <class Counts>
bool SaysAt(std::string_view text,
            std::string_view word,
            const Counts& counts) {
  for (size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    if (counts(at) && !DeniedBefore(text.substr(0, at)) &&
        !DeniedBehind(text.substr(at + word.size()))) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool Says(std::string_view text, std::string_view word) {
  return SaysAt(text, word, [](size_t) { return true; });
}

std::string WordsApart(std::string_view cells) {
  const std::string text = Lowered(cells);
  constexpr std::string_view kWithinWords = "-_=: \t\n\r";
  constexpr std::string_view kMarks = ";,()+/|";
  std::string apart = " ";
  const auto part = [&] {
    if (apart.back() != ' ') apart += ' ';
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    const bool ends = letter == '.' &&
                      (i + 1 == text.size() || kWithinWords.find(text[i + 1]) !=
                                                   std::string_view::npos);
    if (kWithinWords.find(letter) != std::string_view::npos) {
      part();
    } else if (ends || kMarks.find(letter) != std::string_view::npos) {
      part();
      apart += letter;
      part();
    } else {
      apart += letter;
    }
  }
  part();
  return apart;
}

bool SaysWhole(std::string_view apart, std::string_view words) {
  return SaysAt(apart, words, [&](size_t at) {
    const size_t end = at + words.size();
    return at > 0 && apart[at - 1] == ' ' && end < apart.size() &&
           apart[end] == ' ';
  });
}

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
  // Groups of three digits.
  static const std::regex grouped(R"(\d{1,3}(,\d{3})+(\.\d+)?)");
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
