#include "calibrate/records/record_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "hardware/files/unwritten.h"
#include "model/error.h"

namespace trainfare::calibrate::internal {

RecordFile::RecordFile(std::string path) : path_(std::move(path)) {
  // Its name is easy to guess: a link planted there would have another file
  // written to, a pipe would wait for a reader.
  descriptor_ = ::open(
      path_.c_str(),
      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
      0666);
  if (descriptor_ < 0) Fail(errno);
  struct stat there {};
  if (::fstat(descriptor_, &there) != 0 || !S_ISREG(there.st_mode)) {
    ::close(descriptor_);
    throw model::InputError(fmt::format(
        "{}: cannot be written: expected a regular file or none", path_));
  }
}

RecordFile::~RecordFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void RecordFile::Append(const std::string& line) {
  const off_t before = ::lseek(descriptor_, 0, SEEK_END);
  const std::string text = line + "\n";
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t written = ::write(descriptor_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      // Half a line would make the whole file unreadable.
      if (before >= 0 && ::ftruncate(descriptor_, before) != 0) Fail(errno);
      Fail(error);
    }
    left.remove_prefix(static_cast<size_t>(written));
  }
  if (::fsync(descriptor_) != 0 && errno != EINVAL) Fail(errno);
}

void RecordFile::Fail(int error) const {
  hardware::RefuseUnwritten(path_, error);
}

}  // namespace trainfare::calibrate::internal
