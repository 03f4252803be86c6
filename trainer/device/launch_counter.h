#pragma once

#include <cstdint>

namespace trainfare::trainer {

// Counts the operators that this thread runs while one exists: each is one
// kernel, on a GPU one launch. Not those that only call others, allocate, or
// convert a single number. Slows them down a little; not nested.
class LaunchCounter {
 public:
  LaunchCounter();
  ~LaunchCounter();
  LaunchCounter(const LaunchCounter&) = delete;
  LaunchCounter& operator=(const LaunchCounter&) = delete;

  int64_t count() const;

 private:
  uint64_t callback_;
};

}  // namespace trainfare::trainer
