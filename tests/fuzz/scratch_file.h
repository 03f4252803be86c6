#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace trainfare::fuzz {

// A file for readers that take a path, alone in a folder that is gone with it.
class ScratchFile {
 public:
  explicit ScratchFile(std::string_view name) {
    std::string folder =
        (std::filesystem::temp_directory_path() / "trainfare_fuzz_XXXXXX")
            .string();
    if (::mkdtemp(folder.data()) == nullptr) ::abort();
    folder_ = folder;
    path_ = folder_ / name;
  }
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  std::string With(std::string_view bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
    return path_.string();
  }
  std::string FolderWith(std::string_view bytes) const {
    With(bytes);
    return folder_.string();
  }

 private:
  std::filesystem::path folder_;
  std::filesystem::path path_;
};

}  // namespace trainfare::fuzz
