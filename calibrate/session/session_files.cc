#include "calibrate/session/session_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "calibrate/records/files.h"
#include "hardware/files/text_file.h"
#include "hardware/files/whole_file.h"
#include "model/error.h"

namespace trainfare::calibrate::internal {

namespace fs = std::filesystem;

SessionFiles::SessionFiles(const std::string& fit_path) : fit_(fit_path) {
  const fs::path stem = fs::path(fit_path).replace_extension();
  partial_ = stem.string() + ".partial.jsonl";
  records_ = stem.string() + ".jsonl";
}

bool SessionFiles::HasPartial() const {
  std::error_code ignored;
  return fs::exists(partial_, ignored);
}

std::string SessionFiles::SetAside() const {
  std::string aside = FreeNameBeside(partial_);
  std::error_code error;
  fs::rename(partial_, aside, error);
  if (error) {
    throw model::InputError(
        fmt::format("{}: cannot be renamed: {}", partial_, error.message()));
  }
  return aside;
}

bool SessionFiles::DropTail() const {
  // Not through a link, whose target is not ours to cut.
  const int descriptor =
      ::open(partial_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return true;  // appending says what is wrong
  off_t end = ::lseek(descriptor, 0, SEEK_END);
  char byte = 0;
  while (end > 0 && ::pread(descriptor, &byte, 1, end - 1) == 1 &&
         byte != '\n') {
    --end;
  }
  const bool cut = end >= 0 && ::ftruncate(descriptor, end) == 0;
  ::close(descriptor);
  return cut;
}

void SessionFiles::RemovePartial() const {
  std::error_code ignored;
  fs::remove(partial_, ignored);
}

void SessionFiles::PutFirst(const std::string& records) const {
  if (records.empty()) return;
  const char* end = records.back() == '\n' ? "" : "\n";
  hardware::WriteWholeFile(
      partial_,
      records + end + hardware::ReadTextFile(partial_, "measurements"));
}

std::string SessionFiles::Keep(bool fit_in_place) const {
  const std::string path =
      fit_in_place ? records_
                   : fs::path(fit_).replace_extension(".new.jsonl").string();
  std::error_code error;
  if (fs::exists(path, error)) {
    fs::rename(path, FreeNameBeside(path), error);
  }
  if (!error) fs::rename(partial_, path, error);
  return error ? partial_ : path;
}

}  // namespace trainfare::calibrate::internal
