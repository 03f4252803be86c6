#include "hardware/files/unwritten.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "model/error.h"

namespace trainfare::hardware {

void RefuseUnwritten(std::string_view path, int error) {
  throw model::InputError(
      fmt::format("{}: cannot be written: {}",
                  path,
                  std::error_code(error, std::generic_category()).message()));
}

void WriteOut(std::ostream& out, std::string_view text) {
  errno = 0;
  out << text << std::flush;
  if (out) return;
  if (errno != 0) RefuseUnwritten("standard output", errno);
  // It had failed before, and says no more why.
  throw model::InputError("standard output: cannot be written");
}

}  // namespace trainfare::hardware
