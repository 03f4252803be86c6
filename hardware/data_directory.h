#pragma once

// Where the files that ship with the tool lie: devices, instances, prices.

#include <string>
#include <string_view>
#include <vector>

namespace trainfare::hardware {

// The folder `name` ("devices") of the data: under TRAINFARE_DATA_DIR where
// that is set, else in the source tree this was built from, else where it was
// installed. Throws InputError when there is no such folder.
std::string DataDirectory(std::string_view name);

// The *.yaml files of a folder, sorted; paths with the folder in front.
std::vector<std::string> YamlFiles(const std::string& directory);

// The file name without its folder and ".yaml".
std::string Stem(const std::string& path);

}  // namespace trainfare::hardware
