#pragma once

// A parallel loop on LibTorch's own thread pool.

#include <cstdint>
#include <functional>

namespace trainfare::trainer {

// Calls body(first, last) on disjoint ranges that cover [0, count), on the
// threads that LibTorch's operators use. `body` must not throw.
void ParallelRanges(int64_t count,
                    const std::function<void(int64_t, int64_t)>& body);

}  // namespace trainfare::trainer
