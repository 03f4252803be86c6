#pragma once

// Changes one field of a workload at a time, for tests that nothing is lost.

#include <fmt/format.h>

#include <functional>
#include <string>
#include <type_traits>

#include "model/fields.h"

namespace trainfare::model {

// An archive that changes field number `wanted` and says which it was.
class ChangeOne {
 public:
  explicit ChangeOne(int wanted, std::string prefix = "")
      : left_(wanted), prefix_(std::move(prefix)) {}

  template <class T>
  void operator()(const Field& field, T& value) {
    const std::string path = fmt::format("{}{}", prefix_, field.name);
    if constexpr (std::is_enum_v<T> || HasWords<T> || std::is_arithmetic_v<T> ||
                  std::is_same_v<T, std::string> || IsQuantity<T>) {
      if (left_-- != 0) return;
      changed_ = path;
      Change(value);
    } else {
      ChangeOne inner(left_, fmt::format("{}.", path));
      VisitFields(inner, value);
      left_ = inner.left_;
      if (!inner.changed_.empty()) changed_ = inner.changed_;
    }
  }

  const std::string& changed() const { return changed_; }

 private:
  template <class T>
  void Change(T& value) {
    if constexpr (std::is_same_v<T, OptimizerKind>) {
      // Without an optimizer a run is read as one of passes alone.
      value = value == T::kSgd ? T::kAdan : T::kSgd;
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(static_cast<int>(value) == 0 ? 1 : 0);
    } else if constexpr (std::is_same_v<T, bool>) {
      value = !value;
    } else if constexpr (std::is_same_v<T, int64_t>) {
      value += value > 1 ? -1 : 1;
    } else if constexpr (std::is_same_v<T, double>) {
      value += 0.125;
    } else if constexpr (IsQuantity<T>) {
      value += T(0.125);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value += "x";
    } else {
      value.output = !value.output;
    }
  }

  int left_;
  std::string prefix_;
  std::string changed_;
};

// Once for each field: its path, and `start` with that field changed.
inline void ForEachChangedField(
    const Workload& start,
    const std::function<void(const std::string&, const Workload&)>& check) {
  for (int i = 0;; ++i) {
    Workload workload = start;
    ChangeOne change(i);
    VisitFields(change, workload);
    if (change.changed().empty()) return;
    check(change.changed(), workload);
  }
}

}  // namespace trainfare::model
