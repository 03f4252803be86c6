#include "trainer/ranks/gloo_lines.h"

#include <doctest/doctest.h>

#include <sstream>

namespace trainfare::trainer {

// With the macro that Torch has of the same name, too.
DOCTEST_TEST_CASE("Gloo's own lines are dropped, all others pass") {
  std::ostringstream kept;
  std::ostream stream(kept.rdbuf());
  DropGlooLines(stream);
  stream << "[/pytorch/third_party/gloo/gloo/transport/tcp/debug_logger.cc:9] "
            "ERROR failed to connect, willRetry=1, retry=1, retryLimit=3\n";
  stream << "note: goes on from step " << 5 << '\n';
  stream << "[a] of /gloo/\n" << std::flush;
  stream.put('\n');
  DOCTEST_CHECK(kept.str() == "note: goes on from step 5\n[a] of /gloo/\n\n");
}

}  // namespace trainfare::trainer
