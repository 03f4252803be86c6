#pragma once

#include <string>

namespace trainfare::calibrate::internal {

// The records of a calibration, one line a finished run, each on the disk
// before the next is asked for.
class RecordFile {
 public:
  // Throws InputError, as Append().
  explicit RecordFile(std::string path);
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  void Append(const std::string& line);

 private:
  [[noreturn]] void Fail(int error) const;

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace trainfare::calibrate::internal
