// The corpora through their readers, as they are and changed at random: what
// fuzzing found once stays found, with any compiler and under the sanitizers.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/mutated.h"
#include "tests/fuzz/targets.h"

namespace trainfare::fuzz {
namespace {

std::vector<std::string> CorpusOf(const Target& target) {
  namespace fs = std::filesystem;
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

}  // namespace

TEST_CASE("readers take or refuse what is in their corpus, and what is near") {
  for (const Target& target : Targets()) {
    CheckMutated(target, CorpusOf(target), /*otherwise=*/300);
  }
}

}  // namespace trainfare::fuzz
