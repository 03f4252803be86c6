#include "calibrate/records/files.h"

#include <filesystem>
#include <system_error>

#include "hardware/files/unwritten.h"
#include "hardware/files/whole_file.h"

namespace trainfare::calibrate::internal {
void MakeFolderOf(const std::string& path) {
  const std::filesystem::path folder =
      std::filesystem::path(path).parent_path();
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) hardware::RefuseUnwritten(path, error.value());
}

void WriteWhole(const std::string& path, std::string_view text) {
  MakeFolderOf(path);
  hardware::WriteWholeFile(path, text);
}

}  // namespace trainfare::calibrate::internal
