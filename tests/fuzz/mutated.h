#pragma once

// A corpus through its reader, as it is and changed at random.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/targets.h"

namespace trainfare::fuzz {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string operator()(std::string text) {
    const size_t changes = 1 + Below(4);
    for (size_t i = 0; i < changes && !text.empty(); ++i) {
      const size_t at = Below(text.size());
      const size_t length = std::min(text.size() - at, size_t{1} << Below(7));
      switch (Below(6)) {
        case 0:
          text[at] = static_cast<char>(Below(256));
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(Below(text.size()), text.substr(at, length));
          break;
        case 3:
          text.resize(at);
          break;
        case 4:
          text.insert(at, kStrange[Below(std::size(kStrange))]);
          break;
        default:
          text.replace(at, length, kStrange[Below(std::size(kStrange))]);
          break;
      }
    }
    return text;
  }

 private:
  static constexpr const char* kStrange[] = {"-1",
                                             "0",
                                             "1e308",
                                             "-1e308",
                                             "1e-308",
                                             "nan",
                                             "inf",
                                             "1e999",
                                             "null",
                                             "9223372036854775807",
                                             "-9223372036854775808",
                                             "18446744073709551615",
                                             "[[[[[[",
                                             "{\"a\":",
                                             "'",
                                             "\"",
                                             "\n",
                                             "\r\n",
                                             ",",
                                             ": ",
                                             "\xc3",
                                             "\xed\xa0\x80",
                                             "\x1b[2J",
                                             "\xe2\x80\xae",
                                             "\t"};

  size_t Below(size_t end) { return random_() % end; }

  std::mt19937_64 random_;
};

inline uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Each input as it is, and changed `otherwise` times or as often as
// TRAINFARE_FUZZ_MUTATIONS says; TRAINFARE_FUZZ_SEED repeats a finding.
inline void CheckMutated(const Target& target,
                         const std::vector<std::string>& corpus,
                         uint64_t otherwise) {
  const uint64_t seed = FromEnvironment("TRAINFARE_FUZZ_SEED", 20261122);
  const uint64_t count = FromEnvironment("TRAINFARE_FUZZ_MUTATIONS", otherwise);
  DOCTEST_CAPTURE(target.name);
  DOCTEST_CAPTURE(seed);
  DOCTEST_REQUIRE_FALSE(corpus.empty());
  Mutator mutated(seed);
  for (const std::string& text : corpus) {
    DOCTEST_CHECK_NOTHROW(Run(target, text));
    for (uint64_t i = 0; i < count; ++i) {
      const std::string changed = mutated(text);
      DOCTEST_CAPTURE(changed);
      DOCTEST_CHECK_NOTHROW(Run(target, changed));
    }
  }
  DOCTEST_MESSAGE(target.name << ": " << corpus.size() * (count + 1)
                              << " inputs, seed " << seed);
}

}  // namespace trainfare::fuzz
