#include "trainer/optimizer/make_optimizer.h"

#include <fmt/format.h>

#include "model/error.h"
#include "model/trainer_rules.h"
#include "trainer/optimizer/adamw.h"
#include "trainer/optimizer/adan.h"
#include "trainer/optimizer/sgd.h"

namespace trainfare::trainer {
namespace {

using model::OptimizerImplementation;
using model::OptimizerKind;

}  // namespace

std::unique_ptr<Optimizer> MakeOptimizer(
    const std::vector<Parameter>& parameters, const OptimizerOptions& options) {
  if (options.access == model::FusedAccess::kOneTensor &&
      (options.kind.kind != OptimizerKind::kAdan ||
       options.kind.implementation != OptimizerImplementation::kFused)) {
    throw model::InputError(
        fmt::format("optimizer: a launch a tensor is for the fused adan, got "
                    "{} {}",
                    model::ToText(options.kind.kind),
                    model::ToText(options.kind.implementation)));
  }
  model::RequireTrainerOptimizer(options.kind);
  switch (options.kind.kind) {
    case OptimizerKind::kAdamW:
      return MakeAdamW(parameters, options);
    case OptimizerKind::kAdan:
      return MakeAdan(parameters, options);
    case OptimizerKind::kSgd:
      return MakeSgd(parameters, options);
    default:
      ENSURE(false, "an optimizer that the trainer has not");
  }
}

}  // namespace trainfare::trainer
