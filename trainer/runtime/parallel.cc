#include "trainer/runtime/parallel.h"

#include <algorithm>

#include "trainer/runtime/aten.h"

// The two entry points of GNU OpenMP that a parallel region compiles to.
// Calling them directly puts our loops on the very threads that LibTorch's
// operators use, with any compiler: clang's -fopenmp would bring a second
// runtime.
extern "C" {
void GOMP_parallel(void (*function)(void*),
                   void* data,
                   unsigned threads,
                   unsigned flags);
int omp_get_thread_num();
int omp_get_num_threads();
}

namespace trainfare::trainer {
namespace {

struct Region {
  int64_t count;
  const std::function<void(int64_t, int64_t)>* body;
};

void RunRange(void* data) {
  const auto& region = *static_cast<const Region*>(data);
  const int64_t threads = omp_get_num_threads();
  const int64_t share = (region.count + threads - 1) / threads;
  const int64_t first = share * omp_get_thread_num();
  const int64_t last = std::min(first + share, region.count);
  if (first < last) (*region.body)(first, last);
}

}  // namespace

void ParallelRanges(int64_t count,
                    const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  Region region{count, &body};
  GOMP_parallel(&RunRange,
                &region,
                static_cast<unsigned>(at::get_num_threads()),
                /*flags=*/0);
}

void ParallelChunks(const std::vector<int64_t>& sizes,
                    int64_t chunk,
                    const std::function<void(size_t, int64_t, int64_t)>& body) {
  std::vector<int64_t> first_chunk = {0};
  for (const int64_t size : sizes) {
    first_chunk.push_back(first_chunk.back() + (size + chunk - 1) / chunk);
  }
  ParallelRanges(first_chunk.back(), [&](int64_t begin, int64_t end) {
    auto which = static_cast<size_t>(
        std::upper_bound(first_chunk.begin(), first_chunk.end(), begin) -
        first_chunk.begin() - 1);
    for (int64_t at = begin; at < end; ++at) {
      while (first_chunk[which + 1] <= at) ++which;
      const int64_t first = (at - first_chunk[which]) * chunk;
      body(which, first, std::min(first + chunk, sizes[which]));
    }
  });
}

}  // namespace trainfare::trainer
