#include "hardware/files/text_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "model/error.h"

namespace trainfare::hardware {

using model::InputError;

std::string ReadTextFile(const std::string& path, std::string_view kind) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw InputError(
        path, 0, 0, fmt::format("expected {}, got a directory", kind));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int code = errno;
    throw InputError(
        path,
        0,
        0,
        fmt::format("cannot be opened: {}",
                    std::generic_category().message(code == 0 ? EIO : code)));
  }
  std::string text((std::istreambuf_iterator<char>(file)),
                   std::istreambuf_iterator<char>());
  if (file.bad()) throw InputError(path, 0, 0, "cannot be read");
  return text;
}

}  // namespace trainfare::hardware
