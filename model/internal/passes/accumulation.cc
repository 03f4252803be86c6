#include "model/internal/passes/accumulation.h"

#include "model/internal/passes/embeddings.h"
#include "model/product_kernel.h"
#include "model/sharding.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model::internal {

void AccumulateGradients(Pass& pass) {
  const Workload& w = pass.workload;
  const int64_t elements =
      KeepsShareOfGradients(w) ? UpdatedByRank(w) : TrainableParameters(w);
  const int64_t tensors = TrainableTensorCount(w);
  const int64_t sum = SumsGradientsWide(w) ? kSingle : ParameterWidth(w);
  AddWeightGradient(pass, "gradient add", elements / tensors, sum);
  pass.last().launches = tensors;
  if (pass.rules.adds_in_products) pass.last() = AddedByProduct(pass.last());
}

}  // namespace trainfare::model::internal
