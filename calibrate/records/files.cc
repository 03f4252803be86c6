#include "calibrate/records/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "model/error.h"

namespace trainfare::calibrate::internal {
namespace {

[[noreturn]] void Fail(const std::string& path, int error) {
  throw model::InputError(
      fmt::format("{}: cannot be written: {}",
                  path,
                  std::error_code(error, std::generic_category()).message()));
}

bool WriteAll(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

void MakeFolderOf(const std::string& path) {
  const std::filesystem::path folder =
      std::filesystem::path(path).parent_path();
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) Fail(path, error.value());
}

void WriteWhole(const std::string& path, std::string_view text) {
  MakeFolderOf(path);
  const std::string beside = fmt::format("{}.partial.{}", path, ::getpid());
  const int descriptor =
      ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) Fail(path, errno);
  int error = 0;
  if (!WriteAll(descriptor, text) || ::fsync(descriptor) != 0) error = errno;
  if (::close(descriptor) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(beside.c_str(), path.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) {
    ::unlink(beside.c_str());
    Fail(path, error);
  }
}

}  // namespace trainfare::calibrate::internal
