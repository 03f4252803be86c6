// Parses the YAML files that ship when trainfare is built:
//
//   trainfare-parse-yaml OUTPUT_FOLDER FOLDER..
//
// Every *.yaml below the folders, into one file of its own
// (hardware/files/internal/parsed_yaml.h). One that is no YAML ends it.

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "hardware/files/internal/parsed_yaml.h"
#include "hardware/files/internal/yaml_tree.h"
#include "hardware/files/text_file.h"
#include "hardware/files/whole_file.h"

namespace {

namespace fs = std::filesystem;
namespace hardware = trainfare::hardware;

void ParseInto(const fs::path& output, const fs::path& yaml) {
  const std::string text = hardware::ReadTextFile(yaml.string(), "a YAML file");
  hardware::internal::YamlDocument document;
  document.file = yaml.string();
  hardware::internal::ParseYaml(text, document);
  hardware::WriteWholeFile(
      (output / hardware::internal::ParsedName(text)).string(),
      hardware::internal::WriteParsed(text, document));
}

void ParseAll(const fs::path& output, int folders, char** folder) {
  // Nothing stays of files that are no more.
  fs::remove_all(output);
  fs::create_directories(output);
  for (int i = 0; i < folders; ++i) {
    for (const fs::directory_entry& entry :
         fs::recursive_directory_iterator(folder[i])) {
      if (entry.path().extension() == ".yaml") ParseInto(output, entry.path());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: trainfare-parse-yaml OUTPUT_FOLDER FOLDER..\n");
    return 2;
  }
  try {
    ParseAll(argv[1], argc - 2, argv + 2);
  } catch (const std::exception& error) {
    fmt::print(stderr, "trainfare-parse-yaml: {}\n", error.what());
    return 1;
  }
  return 0;
}
