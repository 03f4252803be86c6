#include "model/error.h"

#include <fmt/format.h>

namespace trainfare::model {
namespace {

std::string Located(std::string_view file,
                    int line,
                    int column,
                    std::string_view message) {
  if (line <= 0) return fmt::format("{}: {}", file, message);
  if (column <= 0) return fmt::format("{}:{}: {}", file, line, message);
  return fmt::format("{}:{}:{}: {}", file, line, column, message);
}

}  // namespace

InputError::InputError(std::string_view file,
                       int line,
                       int column,
                       std::string_view message)
    : std::runtime_error(Located(file, line, column, message)) {}

void EnsureFailed(const char* condition,
                  const char* file,
                  int line,
                  std::string_view message) {
  throw std::logic_error(fmt::format(
      "{}:{}: {} does not hold: {}", file, line, condition, message));
}

}  // namespace trainfare::model
