// The corpora through their readers, as they are and changed at random: what
// fuzzing found once stays found, with any compiler and under the sanitizers.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace trainfare::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> CorpusOf(const Target& target) {
  std::vector<fs::path> files;
  const fs::path folder =
      fs::path(TRAINFARE_ROOT) / "tests" / "fuzz" / "corpus" / target.name;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(in),
                       std::istreambuf_iterator<char>());
  }
  return texts;
}

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

}  // namespace

TEST_CASE("readers take or refuse what is in their corpus, and what is near") {
  // Repeat a finding with its seed; more of them find more.
  const char* seed_text = std::getenv("TRAINFARE_FUZZ_SEED");
  const char* count_text = std::getenv("TRAINFARE_FUZZ_MUTATIONS");
  const uint64_t seed =
      seed_text != nullptr ? std::strtoull(seed_text, nullptr, 10) : 20261122;
  const uint64_t count =
      count_text != nullptr ? std::strtoull(count_text, nullptr, 10) : 300;
  MESSAGE("seed " << seed);
  for (const Target& target : Targets()) {
    CAPTURE(target.name);
    const std::vector<std::string> corpus = CorpusOf(target);
    REQUIRE_FALSE(corpus.empty());
    Mutator mutated(seed);
    for (const std::string& text : corpus) {
      CHECK_NOTHROW(Run(target, text));
      for (uint64_t i = 0; i < count; ++i) {
        const std::string changed = mutated(text);
        CAPTURE(changed);
        CHECK_NOTHROW(Run(target, changed));
      }
    }
  }
}

}  // namespace trainfare::fuzz
