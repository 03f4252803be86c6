#include "trainer/data/json_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "model/error.h"

namespace trainfare::trainer {

nlohmann::json ReadJsonFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw model::InputError(fmt::format("{}: cannot read", path));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  try {
    nlohmann::json value = nlohmann::json::parse(text);
    if (!value.is_object()) {
      throw model::InputError(
          path,
          1,
          1,
          fmt::format("expected a JSON object, got {}", value.type_name()));
    }
    return value;
  } catch (const nlohmann::json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(
                                        std::min(error.byte, text.size()));
    const auto line = std::count(text.begin(), end, '\n') + 1;
    const size_t line_start =
        text.rfind('\n', error.byte > 0 ? error.byte - 1 : 0);
    const size_t column = line_start == std::string::npos
                              ? error.byte
                              : error.byte - line_start - 1;
    throw model::InputError(path,
                            static_cast<int>(line),
                            static_cast<int>(std::max<size_t>(column, 1)),
                            "expected JSON; cut short or not JSON");
  }
}

}  // namespace trainfare::trainer
