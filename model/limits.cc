#include "model/limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/error.h"

namespace trainfare::model {

int64_t CheckedProduct(std::initializer_list<int64_t> factors,
                       std::string_view what) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) {
      throw InputError(fmt::format(
          "{}: expected a product within 64 bits, got {}; is one mistyped?",
          what,
          fmt::join(factors, " x ")));
    }
  }
  return product;
}

}  // namespace trainfare::model
