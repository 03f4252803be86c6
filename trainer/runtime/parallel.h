#pragma once

// Parallel loops on LibTorch's own thread pool.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace trainfare::trainer {

// Calls body(first, last) on disjoint ranges that cover [0, count), on the
// threads that LibTorch's operators use. `body` must not throw.
void ParallelRanges(int64_t count,
                    const std::function<void(int64_t, int64_t)>& body);

// Calls body(which, first, last) on chunks of at most `chunk` elements that
// cover arrays of these sizes: one parallel region, so that small arrays do not
// leave threads idle.
void ParallelChunks(const std::vector<int64_t>& sizes,
                    int64_t chunk,
                    const std::function<void(size_t, int64_t, int64_t)>& body);

}  // namespace trainfare::trainer
