#pragma once

#include <string>

namespace trainfare::calibrate::internal {

// Held by the one calibration that writes a fit and its records. The lock ends
// with the process, however it ends.
class OutputLock {
 public:
  // Locks the fit at `path`, by a file beside it. Throws InputError where
  // another process holds it, or it cannot be made.
  explicit OutputLock(const std::string& path);
  ~OutputLock();
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace trainfare::calibrate::internal
