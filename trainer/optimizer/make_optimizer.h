#pragma once

#include <memory>
#include <vector>

#include "trainer/optimizer/optimizer.h"

namespace trainfare::trainer {

// Throws InputError for an optimizer or implementation that is not here.
std::unique_ptr<Optimizer> MakeOptimizer(
    const std::vector<Parameter>& parameters, const OptimizerOptions& options);

}  // namespace trainfare::trainer
