#include "trainer/runtime/line_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "model/error.h"

namespace trainfare::trainer {

LineWriter::LineWriter(const std::string& path)
    : path_(path), descriptor_(STDOUT_FILENO) {
  if (path == "-") return;
  descriptor_ =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    throw model::InputError(
        fmt::format("{}: cannot write: {}", path, std::strerror(errno)));
  }
}

LineWriter::~LineWriter() {
  if (path_ != "-") ::close(descriptor_);
}

void LineWriter::Write(std::string line) {
  line += '\n';
  const off_t before = ::lseek(descriptor_, 0, SEEK_END);
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t count =
        ::write(descriptor_, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int error = errno;
      if (before >= 0 && ::ftruncate(descriptor_, before) != 0) {
        // Nothing more can be done; the write error below says it all.
      }
      throw model::InputError(
          fmt::format("{}: cannot write: {}", path_, std::strerror(error)));
    }
    written += static_cast<size_t>(count);
  }
}

}  // namespace trainfare::trainer
