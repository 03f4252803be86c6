#pragma once

// Errors of the whole program: bad input and broken invariants.

#include <stdexcept>
#include <string>
#include <string_view>

namespace trainfare::model {

// Bad input: what a person gave is wrong. what() is the whole one-line message,
// "file:line:col: path.to.key: expected X, got Y; hint". Exit code 1.
class InputError : public std::runtime_error {
 public:
  explicit InputError(const std::string& message)
      : std::runtime_error(message) {}
  // Position in `file`; line and column count from 1, 0 means unknown.
  InputError(std::string_view file,
             int line,
             int column,
             std::string_view message);
};

// Nothing that was asked about fits or meets the limits. Exit code 3.
class NothingFits : public std::runtime_error {
 public:
  explicit NothingFits(const std::string& message)
      : std::runtime_error(message) {}
};

[[noreturn]] void EnsureFailed(const char* condition,
                               const char* file,
                               int line,
                               std::string_view message);

}  // namespace trainfare::model

// A broken invariant is our defect, also in Release. Exit code 70.
#define ENSURE(condition, message)                  \
  do {                                              \
    if (!(condition)) {                             \
      ::trainfare::model::EnsureFailed(             \
          #condition, __FILE__, __LINE__, message); \
    }                                               \
  } while (false)
