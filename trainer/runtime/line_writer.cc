#include "trainer/runtime/line_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "model/error.h"

namespace trainfare::trainer {
namespace {

// Whether the descriptor is of the file that standard output or standard error
// goes to.
bool IsOwnOutput(const struct stat& file) {
  constexpr std::array kOwn = {STDOUT_FILENO, STDERR_FILENO};
  return std::any_of(kOwn.begin(), kOwn.end(), [&](int descriptor) {
    struct stat own {};
    return ::fstat(descriptor, &own) == 0 && own.st_dev == file.st_dev &&
           own.st_ino == file.st_ino;
  });
}

// A descriptor that appends to `path`; negative where errno says why not. A
// link may have been put there by somebody who must not write what it leads
// to: followed are links to pipes and devices, where nothing can be spoilt, and
// to the program's own output, as /dev/stdout is. Throws InputError.
int OpenToAppend(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC;
  const int descriptor =
      ::open(path.c_str(), kFlags | O_CREAT | O_NOFOLLOW, 0666);
  if (descriptor >= 0 || errno != ELOOP) return descriptor;
  const int followed = ::open(path.c_str(), kFlags);
  struct stat file {};
  if (followed < 0 && errno != ENOENT) return followed;
  if (followed < 0 || ::fstat(followed, &file) != 0 ||
      !(S_ISFIFO(file.st_mode) || S_ISCHR(file.st_mode) || IsOwnOutput(file))) {
    if (followed >= 0) ::close(followed);
    throw model::InputError(fmt::format(
        "{}: cannot write: a link to a file; name the file itself", path));
  }
  return followed;
}

}  // namespace

LineWriter::LineWriter(const std::string& path)
    : path_(path), descriptor_(STDOUT_FILENO) {
  if (path == "-") return;
  descriptor_ = OpenToAppend(path);
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
