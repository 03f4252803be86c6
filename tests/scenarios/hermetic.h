#pragma once

// Tests see no fit of whoever runs them.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace trainfare::scenarios {

// A folder of its own, gone at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "trainfare_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string Path(std::string_view name) const {
    return (path_ / name).string();
  }
  std::string Write(std::string_view name, std::string_view text) const {
    std::string path = Path(name);
    std::filesystem::create_directories(
        std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }

 private:
  std::filesystem::path path_;
};

// Sets the folder of fits for as long as it lives.
class FitFolder {
 public:
  FitFolder() { ::setenv("TRAINFARE_FITS", folder_.Path("fits").c_str(), 1); }
  ~FitFolder() { ::unsetenv("TRAINFARE_FITS"); }
  FitFolder(const FitFolder&) = delete;
  FitFolder& operator=(const FitFolder&) = delete;

  std::string Path(std::string_view name) const { return folder_.Path(name); }
  std::string Write(std::string_view name, std::string_view text) const {
    return folder_.Write(name, text);
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace trainfare::scenarios
