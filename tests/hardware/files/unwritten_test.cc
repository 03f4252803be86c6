#include "hardware/files/unwritten.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

#include "model/error.h"

namespace trainfare::hardware {

TEST_CASE("what cannot be written says why, in one way") {
  CHECK_THROWS_WITH_AS(RefuseUnwritten("a.json", EACCES),
                       "a.json: cannot be written: Permission denied",
                       model::InputError);
  std::ofstream full("/dev/full");
  CHECK_THROWS_WITH_AS(WriteOut(full, std::string(100'000, 'a')),
                       "standard output: cannot be written: No space left on "
                       "device",
                       model::InputError);
  // What failed before does not say why once more.
  CHECK_THROWS_WITH_AS(WriteOut(full, ""),
                       "standard output: cannot be written",
                       model::InputError);
  std::ostringstream out;
  WriteOut(out, "all of it");
  CHECK(out.str() == "all of it");
}

}  // namespace trainfare::hardware
