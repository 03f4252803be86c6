#include "hardware/files/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "hardware/files/held_signals.h"
#include "hardware/files/unwritten.h"
#include "model/error.h"

namespace trainfare::hardware {
namespace {

// What a file of ours may be read and written by, as open() has it; umask() can
// only be asked by changing it, which another thread would see.
mode_t Permissions() {
  std::ifstream status("/proc/self/status");
  unsigned mask = 022;
  for (std::string line; std::getline(status, line);) {
    if (std::sscanf(line.c_str(), "Umask: %o", &mask) == 1) break;
  }
  return 0666 & ~static_cast<mode_t>(mask);
}

void RequireReplaceable(const std::string& path) {
  // A rename would put a file in the place of a device, a pipe or a link, such
  // as /dev/stdout.
  struct stat there {};
  if (::lstat(path.c_str(), &there) != 0 || S_ISREG(there.st_mode)) return;
  throw model::InputError(fmt::format(
      "{}: cannot be written: expected a regular file or none{}",
      path,
      S_ISLNK(there.st_mode) ? ", got a link; name its target" : ""));
}

}  // namespace

void RequireWritable(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  // With a slash at its end it is no file.
  folder = folder.empty() ? "." : folder / "";
  if (::access(folder.c_str(), W_OK) != 0) RefuseUnwritten(path, errno);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    RefuseUnwritten(path, EISDIR);
  }
  RequireReplaceable(path);
}

WholeFile::WholeFile(std::string path)
    : path_(std::move(path)), beside_(path_ + ".XXXXXX") {
  RequireReplaceable(path_);
  // O_EXCL: neither a file nor a link of that name was there.
  descriptor_ = ::mkostemp(beside_.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    const int error = errno;
    beside_.clear();
    Fail(error);
  }
  // Where the file system knows of none, there are none to set.
  [[maybe_unused]] const int set = ::fchmod(descriptor_, Permissions());
}

WholeFile::~WholeFile() { Discard(); }

void WholeFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) Fail(errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void WholeFile::Commit() {
  // A rename may reach the disk before the data it names.
  if (::fsync(descriptor_) != 0) Fail(errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) Fail(errno);
  if (std::rename(beside_.c_str(), path_.c_str()) != 0) Fail(errno);
  beside_.clear();
}

void WholeFile::Fail(int error) {
  Discard();
  RefuseUnwritten(path_, error);
}

void WholeFile::Discard() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  if (!beside_.empty()) ::unlink(beside_.c_str());
  beside_.clear();
}

void WriteWholeFile(const std::string& path, std::string_view text) {
  const HeldSignals held;  // nothing is left beside it
  WholeFile file(path);
  file.Write(text);
  file.Commit();
}

}  // namespace trainfare::hardware
