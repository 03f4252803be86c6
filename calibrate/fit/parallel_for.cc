#include "calibrate/fit/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "hardware/files/progress_line.h"

namespace trainfare::calibrate {
namespace {

// Whether this thread is at work for a loop already.
thread_local bool at_work = false;

}  // namespace

void ParallelFor(size_t count,
                 const std::function<void(size_t)>& work,
                 hardware::ProgressLine* progress) {
  std::atomic<size_t> next = 0;
  std::exception_ptr failure;
  std::mutex failing;
  // Loops in a loop have its threads already.
  const size_t threads =
      at_work ? 1
              : std::min<size_t>(
                    count, std::max(1U, std::thread::hardware_concurrency()));
  const auto run = [&] {
    const bool was_at_work = std::exchange(at_work, at_work || threads > 1);
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
        if (progress != nullptr) progress->Add();
      } catch (...) {
        const std::lock_guard lock(failing);
        if (!failure) failure = std::current_exception();
        next = count;  // the others stop behind what they are at
      }
    }
    at_work = was_at_work;
  };
  {
    std::vector<std::jthread> pool;
    for (size_t t = 1; t < threads; ++t) pool.emplace_back(run);
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace trainfare::calibrate
