#pragma once

// Which rows go to which experts, and how they get there and back.

#include <cstdint>

#include "model/internal/passes/grouped_products.h"
#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// Scores of all experts and the best k of each token.
void RoutingForward(Pass& pass, const Routed& r, int64_t tokens);

// Rows of one expert side by side.
void GatherRows(Pass& pass, const Routed& r);

// Back to where they came from, weighted and added.
void AddRows(Pass& pass, const Routed& r, int64_t tokens);

// The backward pass of AddRows().
void GatherRowGradients(Pass& pass, const Routed& r, int64_t tokens);

// The backward pass of GatherRows().
void AddRowGradients(Pass& pass, const Routed& r, int64_t tokens);

}  // namespace trainfare::model::internal
