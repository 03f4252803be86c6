// libFuzzer's way in; which reader it is, the build says.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const trainfare::fuzz::Target& target : trainfare::fuzz::Targets()) {
    if (target.name != TRAINFARE_FUZZ_TARGET) continue;
    trainfare::fuzz::Run(target, {reinterpret_cast<const char*>(data), size});
    return 0;
  }
  std::abort();
}
