#pragma once

// A count within its bounds, for what refuses workloads.

#include <cstdint>
#include <string_view>

namespace trainfare::model::internal {

// Throws InputError: "WHAT: expected a count of at least ..".
void RequireCount(int64_t value,
                  int64_t least,
                  int64_t most,
                  std::string_view what);

}  // namespace trainfare::model::internal
