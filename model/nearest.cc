#include "model/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "model/letters.h"

namespace trainfare::model {
namespace {

bool BeginsWithinOneEdit(std::string_view wanted, std::string_view longer) {
  for (size_t length = wanted.size() - 1; length <= wanted.size() + 1;
       ++length) {
    if (EditDistance(wanted, longer.substr(0, length)) <= 1) return true;
  }
  return false;
}

}  // namespace

int EditDistance(std::string_view a, std::string_view b) {
  // Three rows of the table suffice: a swap looks two rows back.
  std::vector<int> before(b.size() + 1);
  std::vector<int> above(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::vector<std::string> Nearest(std::string_view name,
                                 const std::vector<std::string_view>& known,
                                 size_t limit) {
  struct Candidate {
    int distance;
    int edits;  // of the whole name, where the distance is that of its begin
    std::string_view name;
  };
  // A name of any length would make the table large; nobody mistypes that much.
  constexpr size_t kLongestName = 200;
  // Among names of three letters one other letter makes half of all alike.
  constexpr size_t kShortestMistyped = 4;
  if (name.empty() || name.size() > kLongestName) return {};
  const std::string wanted = Lowered(name);
  std::vector<Candidate> candidates;
  for (const std::string_view other : known) {
    const std::string lowered = Lowered(other);
    const size_t shorter = std::min(wanted.size(), lowered.size());
    const size_t longer = std::max(wanted.size(), lowered.size());
    const int edits = EditDistance(wanted, lowered);
    const bool begins =
        shorter >= 2 && wanted.compare(0, shorter, lowered, 0, shorter) == 0;
    // What only lacks its end is nearer than what has other letters.
    const int distance = begins ? std::min(edits, 1) : edits;
    if (distance <= std::max<int>(1, static_cast<int>(longer / 3))) {
      candidates.push_back({distance, edits, other});
    }
  }
  // Nothing near: what lacks its end and has one letter wrong besides.
  if (candidates.empty() && wanted.size() >= kShortestMistyped) {
    for (const std::string_view other : known) {
      if (BeginsWithinOneEdit(wanted, Lowered(other))) {
        candidates.push_back({0, EditDistance(wanted, Lowered(other)), other});
      }
    }
  }
  std::stable_sort(candidates.begin(),
                   candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return std::tie(a.distance, a.edits) <
                            std::tie(b.distance, b.edits);
                   });
  std::vector<std::string> nearest;
  for (const Candidate& candidate : candidates) {
    if (nearest.size() == limit) break;
    nearest.emplace_back(candidate.name);
  }
  return nearest;
}

std::string QuotedAlternatives(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += fmt::format("\"{}\"", names[i]);
  }
  return text;
}

std::string DidYouMean(std::string_view name,
                       const std::vector<std::string_view>& known) {
  const std::vector<std::string> nearest = Nearest(name, known);
  if (nearest.empty()) return "";
  return fmt::format("; did you mean {}?", QuotedAlternatives(nearest));
}

std::string JoinNames(const std::vector<std::string_view>& names,
                      size_t limit) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += ", ";
    if (i == limit) return text + "...";
    text += names[i];
  }
  return text;
}

std::string OfKnown(std::string_view name,
                    const std::vector<std::string_view>& known,
                    size_t limit) {
  const std::string near = DidYouMean(name, known);
  return fmt::format(
      "{}{} known: {}", near, near.empty() ? ";" : "", JoinNames(known, limit));
}

}  // namespace trainfare::model
