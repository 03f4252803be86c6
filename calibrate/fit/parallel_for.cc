#include "calibrate/fit/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "hardware/files/progress_line.h"

namespace trainfare::calibrate {

void ParallelFor(size_t count,
                 const std::function<void(size_t)>& work,
                 hardware::ProgressLine* progress) {
  std::atomic<size_t> next = 0;
  std::exception_ptr failure;
  std::mutex failing;
  const auto run = [&] {
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
  };
  {
    const size_t threads = std::min<size_t>(
        count, std::max(1U, std::thread::hardware_concurrency()));
    std::vector<std::jthread> pool;
    for (size_t t = 1; t < threads; ++t) pool.emplace_back(run);
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace trainfare::calibrate
