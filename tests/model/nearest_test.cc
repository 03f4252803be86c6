#include "model/nearest.h"

#include <doctest/doctest.h>

namespace trainfare::model {

TEST_CASE("the edit distance counts a swap of neighbours once") {
  CHECK(EditDistance("", "") == 0);
  CHECK(EditDistance("abc", "") == 3);
  CHECK(EditDistance("tensr", "tensor") == 1);
  CHECK(EditDistance("bathc", "batch") == 1);
  CHECK(EditDistance("kitten", "sitting") == 3);
  // No letter is touched twice: 2 in the unrestricted distance.
  CHECK(EditDistance("ca", "abc") == 3);
}

TEST_CASE("the nearest names come first and at most three") {
  const std::vector<std::string_view> known = {
      "a100_pcie_40gb", "h100_pcie", "h100_sxm", "h200_sxm", "t4"};
  CHECK(Nearest("h100_sxn", known) ==
        std::vector<std::string>{"h100_sxm", "h200_sxm"});
  CHECK(Nearest("H100", known) ==
        std::vector<std::string>{"h100_sxm", "h100_pcie"});
  CHECK(Nearest("a1000", known) == std::vector<std::string>{"a100_pcie_40gb"});
  CHECK(Nearest("x100", known) ==
        std::vector<std::string>{"h100_sxm", "h100_pcie", "a100_pcie_40gb"});
  CHECK(Nearest("banana", known).empty());
  CHECK(Nearest("", known).empty());
  CHECK(Nearest("aa", {"ab", "ac", "ad", "ae"}).size() == 3);
  CHECK(Nearest(std::string(10000, 'x'), known).empty());
}

TEST_CASE("alternatives read as a sentence") {
  CHECK(DidYouMean("dat", {"data", "date"}) ==
        "; did you mean \"data\" or \"date\"?");
  CHECK(DidYouMean("tensr", {"data", "tensor"}) ==
        "; did you mean \"tensor\"?");
  CHECK(DidYouMean("zzz", {"data"}).empty());
  CHECK(QuotedAlternatives({"a", "b", "c"}) == "\"a\", \"b\" or \"c\"");
  CHECK(JoinNames({"a", "b", "c"}) == "a, b, c");
  CHECK(JoinNames({"a", "b", "c"}, 2) == "a, b, ...");
  CHECK(OfKnown("lits", {"list", "predict"}) ==
        "; did you mean \"list\"? known: list, predict");
  CHECK(OfKnown("zzz", {"list", "predict"}) == "; known: list, predict");
}

}  // namespace trainfare::model
