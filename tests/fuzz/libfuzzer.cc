// libFuzzer's way in; which reader it is, TRAINFARE_FUZZ_TARGET says.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/targets.h"

namespace {

const trainfare::fuzz::Target& TargetFromEnvironment() {
  const char* name = std::getenv("TRAINFARE_FUZZ_TARGET");
  for (const trainfare::fuzz::Target& target : trainfare::fuzz::Targets()) {
    if (name != nullptr && target.name == name) return target;
  }
  std::fputs("TRAINFARE_FUZZ_TARGET: expected a folder of tests/fuzz/corpus\n",
             stderr);
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const trainfare::fuzz::Target& target = TargetFromEnvironment();
  trainfare::fuzz::Run(target, {reinterpret_cast<const char*>(data), size});
  return 0;
}
