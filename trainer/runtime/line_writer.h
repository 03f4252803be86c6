#pragma once

#include <string>

namespace trainfare::trainer {

// Appends whole lines to a file, or to standard output for "-". A line that
// cannot be written whole is taken back, so that the file stays readable.
class LineWriter {
 public:
  // Throws InputError where the file cannot be opened for writing, or is
  // another one to which `path` is a link.
  explicit LineWriter(const std::string& path);
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  void Write(std::string line);

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace trainfare::trainer
