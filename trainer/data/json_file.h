#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace trainfare::trainer {

// A whole JSON file that holds an object. Throws InputError
// "file:line:col: ...".
nlohmann::json ReadJsonFile(const std::string& path);

}  // namespace trainfare::trainer
