#include "model/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace trainfare::model {
namespace {

class TextArchive {
 public:
  TextArchive(std::string prefix, std::map<std::string, std::string>& texts)
      : prefix_(std::move(prefix)), texts_(texts) {}

  template <class T>
  void operator()(const Field& field, const T& value) {
    const std::string path = fmt::format("{}{}", prefix_, field.name);
    if constexpr (std::is_enum_v<T>) {
      texts_[path] = ToText(value);
    } else if constexpr (IsQuantity<T>) {
      texts_[path] = fmt::format("{}", value.base());
    } else if constexpr (HasWords<T>) {
      texts_[path] = fmt::format("{}", fmt::join(ToWords(value), ", "));
    } else if constexpr (std::is_arithmetic_v<T> ||
                         std::is_same_v<T, std::string>) {
      texts_[path] = fmt::format("{}", value);
    } else {
      TextArchive inner(fmt::format("{}.", path), texts_);
      VisitFields(inner, value);
    }
  }

 private:
  std::string prefix_;
  std::map<std::string, std::string>& texts_;
};

}  // namespace

void FromWords(const std::vector<std::string>& words, LoraMatrices& matrices) {
  matrices = {};
  for (const std::string& word : words) AddLoraMatrix(word, matrices);
}

void SetFamilyDefaults(Architecture& a) {
  a.pooler = a.embedding_layer_norm = a.family == Family::kEncoder;
}

std::map<std::string, std::string> BlockTexts(const Architecture& a) {
  std::map<std::string, std::string> texts;
  TextArchive archive("", texts);
  VisitBlock(archive, a);
  return texts;
}

std::map<std::string, std::string> DimensionTexts(const Architecture& a) {
  std::map<std::string, std::string> texts;
  TextArchive archive("", texts);
  VisitDimensions(archive, a);
  return texts;
}

bool HasPlainBlock(const Architecture& a) {
  Architecture plain;
  // GPT-2's differ in how they write GELU out.
  if (a.family == Family::kDecoder && a.activation == Activation::kGeluNew) {
    plain.activation = a.activation;
  }
  return BlockTexts(a) == BlockTexts(plain);
}

std::map<std::string, std::string> FieldTexts(const Workload& workload) {
  std::map<std::string, std::string> texts;
  TextArchive archive("", texts);
  VisitFields(archive, workload);
  return texts;
}

}  // namespace trainfare::model
