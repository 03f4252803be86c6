#include "model/workload.h"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::model {
namespace {

constexpr std::array<std::pair<std::string_view, bool LoraMatrices::*>, 11>
    kLoraMatrices = {{
        {"query", &LoraMatrices::query},
        {"key", &LoraMatrices::key},
        {"value", &LoraMatrices::value},
        {"output", &LoraMatrices::output},
        {"feed_forward_gate", &LoraMatrices::feed_forward_gate},
        {"feed_forward_in", &LoraMatrices::feed_forward_in},
        {"feed_forward_out", &LoraMatrices::feed_forward_out},
        {"query_down", &LoraMatrices::query_down},
        {"query_up", &LoraMatrices::query_up},
        {"key_value_down", &LoraMatrices::key_value_down},
        {"key_value_up", &LoraMatrices::key_value_up},
    }};

}  // namespace

int64_t BytesPerElement(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
    case Precision::kTf32:
      return 4;
    case Precision::kFp16:
    case Precision::kBf16:
    case Precision::kFp8:
      return 2;
  }
  ENSURE(false, "a precision without a width");
}

Precision OutsideBlockProducts(Precision precision) {
  return precision == Precision::kFp8 ? Precision::kBf16 : precision;
}

std::vector<std::string> ToWords(const LoraMatrices& matrices) {
  std::vector<std::string> words;
  for (const auto& [name, member] : kLoraMatrices) {
    if (matrices.*member) words.emplace_back(name);
  }
  return words;
}
std::vector<std::string_view> LoraMatrixNames() {
  std::vector<std::string_view> names;
  for (const auto& [name, member] : kLoraMatrices) names.push_back(name);
  return names;
}
void AddLoraMatrix(std::string_view name, LoraMatrices& matrices) {
  for (const auto& [matrix, member] : kLoraMatrices) {
    if (matrix == name) {
      matrices.*member = true;
      return;
    }
  }
  const std::vector<std::string_view> known = LoraMatrixNames();
  throw InputError(fmt::format("unknown matrix \"{}\"{}; known: {}",
                               name,
                               DidYouMean(name, known),
                               fmt::join(known, ", ")));
}

}  // namespace trainfare::model
