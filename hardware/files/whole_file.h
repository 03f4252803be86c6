#pragma once

// A file that is whole or not there.

#include <string>
#include <string_view>

namespace trainfare::hardware {

// Throws InputError "path: cannot be written: .." where something else than a
// regular file has the name, and where the folder is not there or may not be
// written to.
void RequireWritable(const std::string& path);

// Written beside its place under a name that nobody can foretell, in a file
// that was not there before, and renamed once all of it is on the disk: a
// reader sees the old file or the new one; a device, a pipe or a link is
// refused. Every member throws InputError "path: cannot be written: ..", which
// leaves what was there.
class WholeFile {
 public:
  explicit WholeFile(std::string path);
  // Without Commit() nothing is left of it.
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void Write(std::string_view bytes);
  void Commit();

 private:
  [[noreturn]] void Fail(int error);
  void Discard();

  std::string path_;
  std::string beside_;
  int descriptor_ = -1;
};

// The same at once.
void WriteWholeFile(const std::string& path, std::string_view text);

}  // namespace trainfare::hardware
