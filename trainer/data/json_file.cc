#include "trainer/data/json_file.h"

#include <fmt/format.h>

#include "hardware/files/json_text.h"
#include "hardware/files/text_file.h"
#include "model/error.h"

namespace trainfare::trainer {

nlohmann::json ReadJsonFile(const std::string& path) {
  nlohmann::json value =
      hardware::ParseJson(hardware::ReadTextFile(path, "a JSON file"), path);
  if (!value.is_object()) {
    throw model::InputError(
        path,
        1,
        1,
        fmt::format("expected a JSON object, got {}", value.type_name()));
  }
  return value;
}

}  // namespace trainfare::trainer
