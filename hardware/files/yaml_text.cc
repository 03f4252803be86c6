#include "hardware/files/yaml_text.h"

#include <nlohmann/json.hpp>

namespace trainfare::hardware {

std::string Quoted(std::string_view text) {
  // A JSON string is a YAML scalar. DEL is allowed in neither YAML nor here.
  std::string quoted = nlohmann::json(text).dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (size_t at = quoted.find('\x7f'); at != std::string::npos;
       at = quoted.find('\x7f', at)) {
    quoted.replace(at, 1, "\\x7f");
  }
  return quoted;
}

}  // namespace trainfare::hardware
