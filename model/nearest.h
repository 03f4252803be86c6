#pragma once

// "did you mean": the known names nearest to one that is not known.

#include <string>
#include <string_view>
#include <vector>

namespace trainfare::model {

// Insertions, deletions, replacements and swaps of neighbours between `a` and
// `b`, no letter touched twice (optimal string alignment). Bytes, case counts.
int EditDistance(std::string_view a, std::string_view b);

// At most `limit` of `known`, nearest first, ties in the order given. Letter
// case is ignored. A known name counts when a third of the letters or fewer
// differ, or when one name begins with the other ("h100" for "h100_sxm").
std::vector<std::string> Nearest(std::string_view name,
                                 const std::vector<std::string_view>& known,
                                 size_t limit = 3);

// `a`, `b` or `c`, each in double quotes; empty for no names.
std::string QuotedAlternatives(const std::vector<std::string>& names);

// "; did you mean "a" or "b"?" for the end of a message, empty when nothing is
// near.
std::string DidYouMean(std::string_view name,
                       const std::vector<std::string_view>& known);

// "a, b, c", and ", ..." in place of what passes `limit` names.
std::string JoinNames(const std::vector<std::string_view>& names,
                      size_t limit = 10);

// "; did you mean "a"? known: a, b": the nearest and all up to `limit`, for the
// end of a message.
std::string OfKnown(std::string_view name,
                    const std::vector<std::string_view>& known,
                    size_t limit = 10);

// Any range of strings as the views that the functions above take. The range
// must outlive them.
template <class Range>
std::vector<std::string_view> NameViews(const Range& names) {
  return {names.begin(), names.end()};
}

}  // namespace trainfare::model
