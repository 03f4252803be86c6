#include "model/internal/passes/accumulation.h"

#include <algorithm>

#include "model/parallel.h"
#include "model/product_kernel.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model::internal {

void AccumulateGradients(Pass& pass) {
  const Workload& w = pass.workload;
  const int64_t trained = TrainableParameters(w);
  const int64_t elements =
      ShardsGradients(w.parallel) ? ShareOf(trained, w.parallel) : trained;
  const int64_t tensors = TrainableTensorCount(w);
  const int64_t made = pass.weight_width();
  const int64_t sum = SumsGradientsWide(w) ? kSingle : made;
  pass.Elementwise("gradient add", elements / tensors, made + sum, sum, 1);
  pass.last().parameter_bytes = pass.last().bytes();
  pass.last().parameter_bytes_written = pass.last().bytes_written;
  pass.last().launches = tensors;
  if (w.stack.fusion == Fusion::kXla) pass.last() = AddedByProduct(pass.last());
}

}  // namespace trainfare::model::internal
