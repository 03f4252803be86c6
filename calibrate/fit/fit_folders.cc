#include "calibrate/fit/fit_folders.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "calibrate/fit/fit_file.h"
#include "hardware/files/data_directory.h"
#include "hardware/models/kind.h"
#include "model/error.h"

namespace trainfare::calibrate {

namespace fs = std::filesystem;
using model::InputError;

std::string UserFitDirectory() {
  const auto variable = [](const char* name) -> std::string {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here writes it.
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (std::string chosen = variable("TRAINFARE_FITS"); !chosen.empty()) {
    return chosen;
  }
  if (const std::string data = variable("XDG_DATA_HOME"); !data.empty()) {
    return (fs::path(data) / "trainfare" / "fits").string();
  }
  if (const std::string home = variable("HOME"); !home.empty()) {
    return (fs::path(home) / ".local/share/trainfare/fits").string();
  }
  throw InputError(
      "no place for fits: set TRAINFARE_FITS to a folder, or HOME");
}

namespace {

// Where the shipped fits lie: in the folder of the data that TRAINFARE_DATA_DIR
// names, else with the program.
std::string ShippedFitDirectory() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here writes the environment.
  const char* chosen = std::getenv("TRAINFARE_DATA_DIR");
  if (chosen != nullptr && *chosen != '\0') {
    return (fs::path(chosen) / "fits").string();
  }
  return hardware::ShippedDirectory("calibrate/fits");
}

// The folders that are there, the user's first.
std::vector<std::string> FitFolders() {
  std::vector<std::string> folders;
  try {
    folders.push_back(UserFitDirectory());
  } catch (const InputError&) {
    // Nowhere to keep fits: the user has none.
  }
  folders.push_back(ShippedFitDirectory());
  std::error_code ignored;
  std::erase_if(folders, [&](const std::string& folder) {
    return !fs::is_directory(folder, ignored);
  });
  return folders;
}

// Not a queue or a device, which has no end.
bool IsRegular(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// What a line `device: <name>` of the file names, quoted or not.
std::string DeviceOf(const std::string& path) {
  if (!IsRegular(path)) return "";
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    constexpr std::string_view kKey = "device:";
    if (!line.starts_with(kKey)) continue;
    std::string value = line.substr(kKey.size());
    std::erase_if(value, [](char c) {
      return c == ' ' || c == '"' || c == '\'' || c == '\r';
    });
    return value;
  }
  return "";
}

void Load(const std::string& path, LoadedFits& files) {
  try {
    if (!IsRegular(path)) throw InputError(path, 0, 0, "no regular file");
    files.fits.push_back(LoadFit(path));
  } catch (const InputError& error) {
    files.left_out.push_back(
        fmt::format("{}; this fit is left out", error.what()));
  }
}

}  // namespace

std::vector<FitFile> ListFitFiles() {
  std::vector<FitFile> files;
  for (const std::string& folder : FitFolders()) {
    for (const std::string& path : hardware::YamlPaths(folder)) {
      files.push_back({path, DeviceOf(path)});
    }
  }
  return files;
}

LoadedFits LoadFits() {
  LoadedFits all;
  for (const FitFile& file : ListFitFiles()) Load(file.path, all);
  return all;
}

const Fit* FitFor(const hardware::Device& device,
                  const std::vector<Fit>& fits) {
  for (const Fit& fit : fits) {
    // A fit of another processor says nothing of this one.
    if (!hardware::KindOf(device).is_host ||
        fit.reported_name == device.reported_name) {
      return &fit;
    }
  }
  return nullptr;
}

LoadedFits LoadFitsOf(std::string_view device,
                      const std::vector<FitFile>& files) {
  LoadedFits of_device;
  for (const FitFile& file : files) {
    if (file.device == device) Load(file.path, of_device);
  }
  return of_device;
}

}  // namespace trainfare::calibrate
