#include "calibrate/records/record_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "model/error.h"
#include "tests/hardware/temporary_folder.h"

namespace trainfare::calibrate::internal {
namespace {

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("lines are added to what is there") {
  const hardware::TemporaryFolder folder;
  const std::string path = folder.Write("records.jsonl", "one\n");
  RecordFile file(path);
  file.Append("two");
  CHECK(TextOf(path) == "one\ntwo\n");
}

TEST_CASE("neither a link nor a pipe of that name is written to") {
  const hardware::TemporaryFolder folder;
  const std::string kept = folder.Write("kept.jsonl", "kept\n");
  const std::string link = folder.path() + "/link.jsonl";
  std::filesystem::create_symlink(kept, link);
  CHECK_THROWS_AS(RecordFile{link}, model::InputError);
  CHECK(TextOf(kept) == "kept\n");
  const std::string pipe = folder.path() + "/pipe.jsonl";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_AS(RecordFile{pipe}, model::InputError);
}

}  // namespace trainfare::calibrate::internal
