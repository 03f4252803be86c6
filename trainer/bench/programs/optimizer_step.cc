#include <memory>

#include "trainer/bench/programs/programs.h"
#include "trainer/network/make_transformer.h"
#include "trainer/network/transformer.h"
#include "trainer/optimizer/make_optimizer.h"
#include "trainer/optimizer/optimizer.h"

namespace trainfare::trainer::programs {

Program OptimizerStep(const Setting& s, model::FusedAccess access) {
  TransformerOptions model = DefaultOptions(s.architecture());
  model.type = s.wide;
  const std::shared_ptr<Transformer> transformer =
      MakeTransformer(s.architecture(), model, s.device, /*seed=*/1);
  for (const Parameter& parameter : transformer->parameters()) {
    parameter.value.mutable_grad() = at::randn_like(parameter.value).mul_(1e-3);
  }
  OptimizerOptions options;
  options.kind = s.workload.optimizer;
  options.access = access;
  const std::shared_ptr<Optimizer> optimizer =
      MakeOptimizer(transformer->parameters(), options);
  return [transformer, optimizer](int64_t) {
    optimizer->Step();
    return at::Tensor();
  };
}

}  // namespace trainfare::trainer::programs
