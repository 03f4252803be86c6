#pragma once

#include <memory>
#include <vector>

#include "trainer/optimizer/optimizer.h"

namespace trainfare::trainer {

// AdamW, in any implementation.
std::unique_ptr<Optimizer> MakeAdamW(const std::vector<Parameter>& parameters,
                                     const OptimizerOptions& options);

}  // namespace trainfare::trainer
