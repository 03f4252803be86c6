#include "trainer/training/options.h"

#include <fmt/format.h>

#include "model/error.h"

namespace trainfare::trainer {

using model::InputError;

std::string_view ToText(Padding padding) {
  switch (padding) {
    case Padding::kStatic:
      return "static";
    case Padding::kDynamic:
      return "dynamic";
    case Padding::kBucketed:
      return "bucketed";
  }
  ENSURE(false, "unknown padding");
}

Padding PaddingFromText(std::string_view text) {
  for (const Padding padding :
       {Padding::kStatic, Padding::kDynamic, Padding::kBucketed}) {
    if (text == ToText(padding)) return padding;
  }
  throw InputError(
      fmt::format("expected static, dynamic or bucketed, got \"{}\"", text));
}

model::Workload UsualStep() {
  model::Workload workload;
  workload.batch = 32;
  workload.sequence_length = 128;
  workload.optimizer = {model::OptimizerKind::kAdamW,
                        model::OptimizerImplementation::kFused};
  return workload;
}

}  // namespace trainfare::trainer
