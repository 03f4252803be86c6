#pragma once

#include <memory>
#include <vector>

#include "trainer/optimizer/optimizer.h"

namespace trainfare::trainer {

// Adan, in any implementation.
std::unique_ptr<Optimizer> MakeAdan(const std::vector<Parameter>& parameters,
                                    const OptimizerOptions& options);

}  // namespace trainfare::trainer
