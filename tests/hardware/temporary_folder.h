#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace trainfare::hardware {

// A folder of its own for one test, removed again.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(std::filesystem::temp_directory_path() /
              ("trainfare_hardware_test_" +
               std::to_string(reinterpret_cast<uintptr_t>(this)))) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // Returns the path of the file.
  std::string Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ / name;
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// What `run` throws, without the folder in front of file names; "no error".
template <class Error, class Run>
std::string MessageOf(const TemporaryFolder& folder, Run run) {
  try {
    run();
  } catch (const Error& error) {
    std::string message = error.what();
    const std::string prefix = folder.path() + "/";
    for (size_t at = message.find(prefix); at != std::string::npos;
         at = message.find(prefix)) {
      message.erase(at, prefix.size());
    }
    return message;
  }
  return "no error";
}

}  // namespace trainfare::hardware
