#include "calibrate/session/output_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "hardware/files/unwritten.h"
#include "model/error.h"

namespace trainfare::calibrate::internal {
namespace {

using model::InputError;

// Whether the open file is the one that has the name: whoever held the lock
// before may have removed it meanwhile.
bool HasTheName(int descriptor, const std::string& path) {
  struct stat open_file {};
  struct stat named {};
  return ::fstat(descriptor, &open_file) == 0 &&
         ::stat(path.c_str(), &named) == 0 &&
         open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

}  // namespace

OutputLock::OutputLock(const std::string& path) : path_(path + ".lock") {
  while (true) {
    descriptor_ =
        ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ < 0) hardware::RefuseUnwritten(path_, errno);
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      const bool held = errno == EWOULDBLOCK;
      // A file system without locks has none that could be in the way.
      if (!held) return;
      ::close(descriptor_);
      descriptor_ = -1;
      throw InputError(fmt::format(
          "{}: another calibrate is writing it; wait for its end, or give "
          "this one an --output of its own",
          path));
    }
    if (HasTheName(descriptor_, path_)) return;
    ::close(descriptor_);
  }
}

OutputLock::~OutputLock() {
  if (descriptor_ < 0) return;
  ::unlink(path_.c_str());
  ::close(descriptor_);
}

}  // namespace trainfare::calibrate::internal
