#include "hardware/files/text_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.h"
#include "tests/hardware/temporary_folder.h"

namespace trainfare::hardware {

TEST_CASE("a file is read as it is, and what is none says why") {
  const TemporaryFolder folder;
  const std::string text = std::string("a\r\n\0b", 5);
  CHECK(ReadTextFile(folder.Write("a.txt", text), "a text") == text);
  const auto message = [&](const std::string& path) {
    return MessageOf<model::InputError>(folder,
                                        [&] { ReadTextFile(path, "a text"); });
  };
  CHECK(message(folder.path() + "/none") ==
        "none: cannot be opened: No such file or directory");
  CHECK_THROWS_WITH_AS(RequireThere("/no/such"),
                       "/no/such: cannot be opened: No such file or directory",
                       model::InputError);
  CHECK_NOTHROW(RequireThere(folder.path()));
  CHECK_THROWS_WITH_AS(
      ReadTextFile(folder.path(), "a text"),
      (folder.path() + ": expected a text, got a directory").c_str(),
      model::InputError);
}

TEST_CASE("what a program has open is told from files by its name") {
  CHECK(IsOpenFile("/dev/fd/63"));
  CHECK(IsOpenFile("/dev/stdin"));
  CHECK(IsOpenFile("/proc/self/fd/0"));
  CHECK_FALSE(IsOpenFile("/dev/shm/config.json"));
  CHECK_FALSE(IsOpenFile("fd/63"));
}

TEST_CASE("a file that another file names lies beside it") {
  const TemporaryFolder folder;
  std::filesystem::create_directories((folder.path() + "/inside/deep"));
  const std::string scenario = folder.Write("inside/s.yaml", "");
  folder.Write("inside/deep/lengths.yaml", "x");
  const std::string secret = folder.Write("secret", "x");
  CHECK_NOTHROW(PathBeside(scenario, "deep/lengths.yaml"));
  CHECK_NOTHROW(PathBeside(scenario, "deep/../deep/lengths.yaml"));
  std::filesystem::create_symlink(secret, (folder.path() + "/inside/link"));
  for (const std::string& named : {std::string("../secret"),
                                   secret,
                                   std::string("link"),
                                   std::string("/etc/passwd")}) {
    CAPTURE(named);
    CHECK_THROWS_WITH_AS(
        PathBeside(scenario, named),
        doctest::Contains("expected a file within the folder of this one"),
        model::InputError);
  }
  CHECK_THROWS_AS(PathBeside(scenario, "deep"), model::InputError);
  CHECK_THROWS_AS(PathBeside(scenario, "/dev/zero"), model::InputError);
  ::mkfifo((folder.path() + "/inside/fifo").c_str(), 0600);
  CHECK_THROWS_WITH_AS(PathBeside(scenario, "fifo"),
                       "expected a regular file, got \"fifo\"",
                       model::InputError);
}

TEST_CASE("lines of a text, whether or not its last has an end") {
  const auto lines = [](std::string_view text) {
    std::vector<std::string> found;
    ForEachLine(text, [&](std::string_view line) { found.emplace_back(line); });
    return found;
  };
  using Found = std::vector<std::string>;
  CHECK(lines("") == Found{});
  CHECK(lines("a\n\nb\n") == Found{"a", "", "b"});
  CHECK(lines("a\r\nb") == Found{"a\r", "b"});
}

}  // namespace trainfare::hardware
