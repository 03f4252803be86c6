#pragma once

// The one place that knows which network an architecture is.

#include <cstdint>
#include <memory>

#include "model/architecture.h"
#include "trainer/network/transformer.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// The values of the published checkpoints of this architecture.
TransformerOptions DefaultOptions(const model::Architecture& architecture);

// The model of an architecture. Throws InputError for one that this trainer
// does not have.
std::unique_ptr<Transformer> MakeTransformer(
    const model::Architecture& architecture,
    const TransformerOptions& options,
    at::Device device,
    uint64_t seed);

}  // namespace trainfare::trainer
