#include "hardware/files/text_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>

#include "hardware/files/foreign_text.h"
#include "model/error.h"

namespace trainfare::hardware {

using model::InputError;

namespace {

// "16 MiB", "4 GiB": of limits, which are whole.
std::string ShownLimit(size_t bytes) {
  return bytes >= size_t{1} << 30 ? fmt::format("{} GiB", bytes >> 30)
                                  : fmt::format("{} MiB", bytes >> 20);
}

[[noreturn]] void RefuseUnopened(const std::string& path, int error) {
  throw InputError(
      path,
      0,
      0,
      fmt::format("cannot be opened: {}",
                  std::generic_category().message(error == 0 ? EIO : error)));
}

}  // namespace

void RequireThere(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) return;
  RefuseUnopened(path, error ? error.value() : ENOENT);
}

std::string ReadTextFile(const std::string& path,
                         std::string_view kind,
                         size_t most) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw InputError(
        path, 0, 0, fmt::format("expected {}, got a directory", kind));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) RefuseUnopened(path, errno);
  // How long any other is shows when it ends, if it does.
  constexpr size_t kMostOfUnknown = size_t{256} << 20;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    most = std::min(most, kMostOfUnknown);
  }
  std::string text;
  constexpr std::streamsize kChunk = 65536;
  const auto chunk = std::make_unique_for_overwrite<char[]>(kChunk);
  while (file.read(chunk.get(), kChunk) || file.gcount() > 0) {
    text.append(chunk.get(), static_cast<size_t>(file.gcount()));
    if (text.size() > most) {
      throw InputError(
          path,
          0,
          0,
          fmt::format(
              "expected {} of at most {}, got more", kind, ShownLimit(most)));
    }
  }
  if (file.bad()) throw InputError(path, 0, 0, "cannot be read");
  return text;
}

bool IsOpenFile(std::string_view path) {
  return path == "/dev/stdin" || path.starts_with("/dev/fd/") ||
         (path.starts_with("/proc/") &&
          path.find("/fd/") != std::string_view::npos);
}

NamedFile FileNamedIn(const std::string& of, const std::string& named) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path folder = fs::path(of).parent_path();
  if (folder.empty()) folder = ".";
  folder = fs::canonical(folder, error);
  const fs::path path =
      error ? fs::path() : fs::canonical(folder / named, error);
  const auto refuse = [&](std::string_view what) {
    throw InputError(fmt::format("{}, got \"{}\"", what, OneLine(named, 200)));
  };
  if (error) refuse("expected a file beside this one");
  if (!fs::is_regular_file(path, error)) refuse("expected a regular file");
  const uintmax_t size = fs::file_size(path, error);
  if (error || size > kLargestByHand)
    refuse("expected a file of at most 16 MiB");
  const fs::path inside = path.lexically_relative(folder);
  return {path.string(), !inside.empty() && *inside.begin() != ".."};
}

std::string PathBeside(const std::string& of, const std::string& named) {
  NamedFile file = FileNamedIn(of, named);
  if (!file.is_beside) {
    throw InputError(
        fmt::format("expected a file within the folder of this one, got \"{}\"",
                    OneLine(named, 200)));
  }
  return std::move(file.path);
}

}  // namespace trainfare::hardware
