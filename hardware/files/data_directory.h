#pragma once

// Where the files that ship with the tool lie: devices, instances, prices,
// fits, scenarios.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainfare::hardware {

// The folder `path` ("calibrate/fits") of the source tree: as installed beside
// the program (bin/../share/trainfare), so that an installation may be moved;
// else in the tree this was built from; else under the prefix it was configured
// for. Throws InputError when it is in none of them; Find has nullopt then.
std::string ShippedDirectory(std::string_view path);
std::optional<std::string> FindShippedDirectory(std::string_view path);

// The folder `name` ("devices") of the hardware: under TRAINFARE_DATA_DIR where
// that is set, else shipped. Throws InputError when there is no such folder.
std::string DataDirectory(std::string_view name);

// What a folder has under names *.yaml, sorted; paths with the folder in front.
// Throws InputError where it cannot be read.
std::vector<std::string> YamlPaths(const std::string& directory);
// The same; throws InputError for a queue or a device among them, too.
std::vector<std::string> YamlFiles(const std::string& directory);

// The file name without its folder and ".yaml".
std::string Stem(const std::string& path);

}  // namespace trainfare::hardware
