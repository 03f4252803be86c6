#pragma once

#include <memory>
#include <vector>

#include "trainer/optimizer/optimizer.h"

namespace trainfare::trainer {

// SGD without momentum; not fused.
std::unique_ptr<Optimizer> MakeSgd(const std::vector<Parameter>& parameters,
                                   const OptimizerOptions& options);

}  // namespace trainfare::trainer
