#include "hardware/files/data_directory.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "model/error.h"
#include "tests/hardware/temporary_folder.h"

namespace trainfare::hardware {
namespace {

// Sets TRAINFARE_DATA_DIR for one test. Nothing else runs meanwhile.
class DataDirVariable {
 public:
  explicit DataDirVariable(const std::string& value) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    setenv("TRAINFARE_DATA_DIR", value.c_str(), 1);
  }
  ~DataDirVariable() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    unsetenv("TRAINFARE_DATA_DIR");
  }
  DataDirVariable(const DataDirVariable&) = delete;
  DataDirVariable& operator=(const DataDirVariable&) = delete;
};

}  // namespace

TEST_CASE("the data lies in the source tree unless the variable says where") {
  CHECK(DataDirectory("devices") == TRAINFARE_ROOT "/hardware/devices");
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() + "/devices");
  const DataDirVariable variable(folder.path());
  CHECK(DataDirectory("devices") == folder.path() + "/devices");
  CHECK(MessageOf<model::InputError>(folder, [] { DataDirectory("prices"); }) ==
        "TRAINFARE_DATA_DIR: expected a folder with \"prices\" in it, "
        "got \"" +
            folder.path() + "\"");
}

TEST_CASE("YAML files are listed by name, others left out") {
  const TemporaryFolder folder;
  folder.Write("b.yaml", "");
  folder.Write("a.yaml", "");
  folder.Write("c.txt", "");
  CHECK(YamlFiles(folder.path()) ==
        std::vector<std::string>{folder.path() + "/a.yaml",
                                 folder.path() + "/b.yaml"});
  CHECK(Stem(folder.path() + "/a.yaml") == "a");
  CHECK(MessageOf<model::InputError>(folder, [&] {
          YamlFiles(folder.path() + "/none");
        }) == "none: cannot be read: No such file or directory");
  // Opening a queue would wait for a writer.
  REQUIRE(::mkfifo((folder.path() + "/d.yaml").c_str(), 0600) == 0);
  CHECK(YamlPaths(folder.path()).size() == 3);
  CHECK(MessageOf<model::InputError>(folder, [&] {
          YamlFiles(folder.path());
        }) == "d.yaml: expected a regular file");
}

}  // namespace trainfare::hardware
