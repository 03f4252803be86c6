#include "calibrate/records/files.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "hardware/files/whole_file.h"
#include "model/error.h"

namespace trainfare::calibrate::internal {
namespace {

[[noreturn]] void Fail(const std::string& path, int error) {
  throw model::InputError(
      fmt::format("{}: cannot be written: {}",
                  path,
                  std::error_code(error, std::generic_category()).message()));
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
  hardware::WriteWholeFile(path, text);
}

}  // namespace trainfare::calibrate::internal
