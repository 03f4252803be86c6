#include "calibrate/records/files.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "hardware/files/unwritten.h"

namespace trainfare::calibrate::internal {

namespace fs = std::filesystem;

void MakeFolderOf(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) return;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) hardware::RefuseUnwritten(path, error.value());
}

std::string FreeNameBeside(const std::string& path) {
  // A link that leads nowhere has the name, too.
  const auto is_taken = [](const std::string& name) {
    std::error_code ignored;
    return fs::exists(fs::symlink_status(name, ignored));
  };
  std::string name = path + ".old";
  for (int number = 2; is_taken(name); ++number) {
    name = fmt::format("{}.old.{}", path, number);
  }
  return name;
}

}  // namespace trainfare::calibrate::internal
