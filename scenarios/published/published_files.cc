#include "scenarios/published/published_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "hardware/files/data_directory.h"
#include "model/error.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {
namespace {

namespace fs = std::filesystem;
using model::InputError;

bool IsYaml(const fs::path& path) { return path.extension() == ".yaml"; }

}  // namespace

bool IsPublished(const std::vector<std::string>& files) {
  size_t published = 0;
  for (const std::string& file : files) {
    std::error_code ignored;
    if (fs::is_directory(file, ignored) || IsYaml(file)) ++published;
  }
  if (published == 0) return false;
  if (published < files.size()) {
    throw UsageError(
        "expected measurement files or published figures, got both");
  }
  for (const std::string& file : files) {
    if (hardware::YamlFiles(FolderOf(file)).empty()) {
      throw InputError(
          file,
          0,
          0,
          "expected measurements (.jsonl, .csv) or a folder of published "
          "figures, got a folder without any .yaml");
    }
    if (FolderOf(file) != FolderOf(files.front())) {
      throw UsageError(
          "expected published figures of one folder: runs have one name in all "
          "its files");
    }
  }
  return true;
}

std::string FolderOf(const std::string& file) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) return file;
  const fs::path parent = fs::path(file).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::vector<size_t> RowsOf(const calibrate::Published& published,
                           const std::vector<std::string>& files) {
  std::vector<size_t> rows;
  for (size_t i = 0; i < published.rows.size(); ++i) {
    const std::string& position = published.rows[i].position;
    const fs::path file = position.substr(0, position.find(".yaml"));
    const bool asked =
        std::any_of(files.begin(), files.end(), [&](const auto& name) {
          return !IsYaml(name) || file.filename() == fs::path(name).stem();
        });
    if (asked) rows.push_back(i);
  }
  return rows;
}

}  // namespace trainfare::scenarios
