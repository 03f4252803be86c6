#include "hardware/files/data_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "model/error.h"

namespace trainfare::hardware {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> ShippedRoots() {
  std::error_code error;
  std::vector<fs::path> roots;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    roots.push_back(program.parent_path().parent_path() / "share/trainfare");
  }
  roots.emplace_back(TRAINFARE_SOURCE_ROOT);
  roots.emplace_back(TRAINFARE_INSTALL_ROOT);
  return roots;
}

}  // namespace

std::optional<std::string> FindShippedDirectory(std::string_view path) {
  std::error_code error;
  for (const fs::path& root : ShippedRoots()) {
    const fs::path folder = root / path;
    if (fs::is_directory(folder, error)) return folder.string();
  }
  return std::nullopt;
}

std::string ShippedDirectory(std::string_view path) {
  if (auto folder = FindShippedDirectory(path)) return *std::move(folder);
  std::string where;
  for (const fs::path& root : ShippedRoots()) {
    where += where.empty() ? root.string() : ", " + root.string();
  }
  throw model::InputError(fmt::format(
      "the folder \"{}\" that ships with trainfare is in none of: {}",
      path,
      where));
}

std::string DataDirectory(std::string_view name) {
  std::error_code ignored;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here writes the environment.
  const char* chosen = std::getenv("TRAINFARE_DATA_DIR");
  if (chosen != nullptr && *chosen != '\0') {
    const fs::path folder = fs::path(chosen) / name;
    if (fs::is_directory(folder, ignored)) return folder.string();
    throw model::InputError(fmt::format(
        "TRAINFARE_DATA_DIR: expected a folder with \"{}\" in it, got \"{}\"",
        name,
        chosen));
  }
  return ShippedDirectory(fmt::format("hardware/{}", name));
}

std::vector<std::string> YamlPaths(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(directory, error)) {
    if (entry.path().extension() == ".yaml") {
      files.push_back(entry.path().string());
    }
  }
  if (error) {
    throw model::InputError(
        directory, 0, 0, "cannot be read: " + error.message());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> YamlFiles(const std::string& directory) {
  std::vector<std::string> files = YamlPaths(directory);
  for (const std::string& file : files) {
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) {
      throw model::InputError(file, 0, 0, "expected a regular file");
    }
  }
  return files;
}

std::string Stem(const std::string& path) {
  return fs::path(path).stem().string();
}

}  // namespace trainfare::hardware
