#include "hardware/files/whole_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <iterator>

#include "hardware/files/text_file.h"
#include "model/error.h"
#include "tests/hardware/temporary_folder.h"

namespace trainfare::hardware {
namespace {

namespace fs = std::filesystem;

std::ptrdiff_t FilesIn(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder),
                       fs::directory_iterator());
}

}  // namespace

TEST_CASE("a file is the old one or the new one, and nothing is left over") {
  const TemporaryFolder folder;
  const std::string path = folder.Write("f", "old");
  {
    WholeFile file(path);
    file.Write("half");
    CHECK(ReadTextFile(path, "a file") == "old");
  }
  CHECK(ReadTextFile(path, "a file") == "old");
  WriteWholeFile(path, "new");
  CHECK(ReadTextFile(path, "a file") == "new");
  CHECK(FilesIn(fs::path(path).parent_path()) == 1);
  // As open() would have made it, not as a temporary file.
  WriteWholeFile((folder.path() + "/g"), "new");
  CHECK((fs::status((folder.path() + "/g")).permissions() &
         fs::perms::owner_all) ==
        (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("a link in its place is neither replaced nor followed") {
  const TemporaryFolder folder;
  const std::string other = folder.Write("other", "mine");
  const std::string link = folder.path() + "/f";
  fs::create_symlink(other, link);
  CHECK_THROWS_WITH_AS(
      WriteWholeFile(link, "new"),
      (link + ": cannot be written: expected a regular file or none, "
              "got a link; name its target")
          .c_str(),
      model::InputError);
  CHECK(ReadTextFile(other, "a file") == "mine");
  CHECK(fs::is_symlink(link));
}

TEST_CASE("a pipe, a device and a folder stay what they are") {
  const TemporaryFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {pipe, folder.path()}) {
    CHECK_THROWS_WITH_AS(WriteWholeFile(path, "x"),
                         (path + ": cannot be written: expected a regular file "
                                 "or none")
                             .c_str(),
                         model::InputError);
  }
  CHECK(fs::is_fifo(pipe));
}

TEST_CASE("a folder that is not there is said") {
  CHECK_THROWS_WITH_AS(
      WriteWholeFile("nowhere/f", "x"),
      "nowhere/f: cannot be written: No such file or directory",
      model::InputError);
  CHECK_THROWS_WITH_AS(
      RequireWritable("nowhere/f"),
      "nowhere/f: cannot be written: No such file or directory",
      model::InputError);
  const TemporaryFolder folder;
  const std::string below = folder.Write("file", "in the way") + "/f";
  CHECK_THROWS_WITH_AS(RequireWritable(below),
                       (below + ": cannot be written: Not a directory").c_str(),
                       model::InputError);
  CHECK_NOTHROW(RequireWritable(folder.path() + "/f"));
}

}  // namespace trainfare::hardware
