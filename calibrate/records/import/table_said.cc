#include "calibrate/records/import/table_said.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <regex>
#include <sstream>
#include <vector>

#include "calibrate/records/import/table_rules.h"
#include "model/letters.h"

namespace trainfare::calibrate {
namespace {

bool IsIn(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

bool EndsAClause(char letter) { return IsIn(";,.()+/|:", letter); }

constexpr std::string_view kJoinsWords = "-_";

bool SameLetter(char one, char other) {
  const bool joins = one == ' ' || IsIn(kJoinsWords, one);
  return one == other || (joins && (other == ' ' || IsIn(kJoinsWords, other)));
}

// Where `word` stands in `text` from `from` on; npos: nowhere.
size_t FindWord(std::string_view text, std::string_view word, size_t from) {
  const auto found = std::search(
      text.begin() + static_cast<std::ptrdiff_t>(std::min(from, text.size())),
      text.end(),
      word.begin(),
      word.end(),
      SameLetter);
  return found == text.end() ? std::string_view::npos
                             : static_cast<size_t>(found - text.begin());
}

std::string WithoutWo(std::string_view text) {
  static const std::regex without(R"(\bw/o\b)");
  return std::regex_replace(std::string(text), without, "without");
}

// The words of the clause that `text` ends with; those that are joined to what
// stands behind it, as of "--no-flash-attn", are apart.
std::vector<std::string> WordsBefore(std::string_view text) {
  std::string before = WithoutWo(text);
  size_t clause = before.size();
  while (clause > 0 && !EndsAClause(before[clause - 1])) --clause;
  before.erase(0, clause);
  const size_t joined = before.find_last_of(' ') + 1;  // 0 where there is none
  for (size_t i = joined; i < before.size(); ++i) {
    if (IsIn("-_=", before[i])) before[i] = ' ';
  }
  std::istringstream words(before);
  std::vector<std::string> said;
  for (std::string word; words >> word;) {
    if (word == "with" || word == "-") said.clear();
    word.erase(0, word.find_first_not_of('-'));
    if (word.ends_with("n't")) word = "not";
    if (!word.empty() && word != "and" && word != "or") said.push_back(word);
  }
  return said;
}

bool IsAmongWords(const std::vector<std::string>& words,
                  const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Whether one of the three words right before, in the same clause, says that it
// is not so: "no activation or CPU offload".
bool DeniedBefore(std::string_view text) {
  const std::vector<std::string> said = WordsBefore(text);
  const Denials& denials = RulesOfTables().denials;
  constexpr size_t kWordsBefore = 3;
  return std::any_of(said.end() - static_cast<std::ptrdiff_t>(
                                      std::min(said.size(), kWordsBefore)),
                     said.end(),
                     [&](const std::string& word) {
                       return IsAmongWords(denials.before, word);
                     }) ||
         (!said.empty() && IsAmongWords(denials.right_before, said.back()));
}

// What denies the word that it stands behind: after a number ("flash attention
// 2") and words that say nothing.
std::regex PatternBehind() {
  const Denials& denials = RulesOfTables().denials;
  // "no" and "0" may begin something else: "no dropout", a version "0.4".
  return std::regex(
      fmt::format(R"re(([ =:("']{{0,9}}(v?\d[\d.]{{0,9}}|{})){{0,4}})re"
                  R"re([ =:("']{{1,9}}(({})\b|({})(["'.]? *$| *[;,)+/|])))re",
                  fmt::join(denials.between, "|"),
                  fmt::join(denials.behind, "|"),
                  fmt::join(denials.behind_alone, "|")));
}

bool DeniedBehind(std::string_view behind) {
  // The rest of the word.
  behind.remove_prefix(static_cast<size_t>(
      std::find_if_not(behind.begin(),
                       behind.end(),
                       [](char letter) {
                         return (letter >= 'a' && letter <= 'z') ||
                                (letter >= '0' && letter <= '9') ||
                                IsIn(kJoinsWords, letter);
                       }) -
      behind.begin()));
  static const std::regex denial = PatternBehind();
  return std::regex_search(behind.begin(),
                           behind.end(),
                           denial,
                           std::regex_constants::match_continuous);
}

// Whether a word stands somewhere where `counts` holds, and is not denied there.
template <class Counts>
bool SaysAt(std::string_view text,
            std::string_view word,
            const Counts& counts) {
  // Of a word that ends with a blank that blank is behind it.
  const size_t size = word.size() - (word.ends_with(' ') ? 1 : 0);
  for (size_t at = FindWord(text, word, 0); at != std::string_view::npos;
       at = FindWord(text, word, at + 1)) {
    if (counts(at) && !DeniedBefore(text.substr(0, at)) &&
        !DeniedBehind(text.substr(at + size))) {
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
  const std::string text = WithoutWo(model::Lowered(cells));
  constexpr std::string_view kWithinWords = "-_=: \t\n\r";
  constexpr std::string_view kMarks = ";,()+/|";
  std::string apart = " ";
  const auto part = [&] {
    if (apart.back() != ' ') apart += ' ';
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    const bool ends = letter == '.' &&
                      (i + 1 == text.size() || IsIn(kWithinWords, text[i + 1]));
    if (IsIn(kWithinWords, letter)) {
      part();
    } else if (ends || IsIn(kMarks, letter)) {
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

}  // namespace trainfare::calibrate
