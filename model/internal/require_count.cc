#include "model/internal/require_count.h"

#include <fmt/format.h>

#include "model/error.h"

namespace trainfare::model::internal {

void RequireCount(int64_t value,
                  int64_t least,
                  int64_t most,
                  std::string_view what) {
  if (value >= least && value <= most) return;
  throw InputError(value < least
                       ? fmt::format("{}: expected a count of at least {}, got "
                                     "{}",
                                     what,
                                     least,
                                     value)
                       : fmt::format("{}: expected a count of at most {}, got "
                                     "{}",
                                     what,
                                     most,
                                     value));
}

}  // namespace trainfare::model::internal
