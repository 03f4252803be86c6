#include "trainer/data/safetensors.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "model/error.h"

namespace trainfare::trainer {
namespace {

// A path that is gone at the end of a test.
class TemporaryFile {
 public:
  TemporaryFile()
      : path_(
            (std::filesystem::temp_directory_path() /
             ("trainfare_test_" + std::to_string(::getpid()) + ".safetensors"))
                .string()) {}
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

  void Write(const std::string& header, const std::string& data) const {
    std::ofstream file(path_, std::ios::binary);
    for (size_t i = 0; i < 8; ++i) {
      file.put(static_cast<char>(header.size() >> (8 * i) & 0xff));
    }
    file << header << data;
  }

 private:
  std::string path_;
};

std::string MessageOf(const std::string& header, const std::string& data) {
  const TemporaryFile file;
  file.Write(header, data);
  try {
    const SafetensorsFile read(file.path());
  } catch (const model::InputError& error) {
    const std::string text = error.what();
    return text.substr(text.find(".safetensors: ") + 14);
  }
  return "";
}

DOCTEST_TEST_CASE("what is written is read") {
  const float first[] = {1, 2, 3, 4, 5, 6};
  const float second[] = {7};
  const TemporaryFile file;
  WriteSafetensors(file.path(),
                   {{"a",
                     {TensorType::kF32,
                      {2, 3},
                      reinterpret_cast<const std::byte*>(first),
                      sizeof first}},
                    {"b",
                     {TensorType::kF32,
                      {},
                      reinterpret_cast<const std::byte*>(second),
                      sizeof second}}});
  const SafetensorsFile read(file.path());
  DOCTEST_REQUIRE(read.tensors().size() == 2);
  const TensorBytes& a = read.tensors().at("a");
  DOCTEST_CHECK(a.shape == std::vector<int64_t>{2, 3});
  DOCTEST_CHECK(std::memcmp(a.data, first, sizeof first) == 0);
  DOCTEST_CHECK(read.tensors().at("b").shape.empty());
}

DOCTEST_TEST_CASE("each broken file has its own message") {
  const std::string four(4, '\0');
  const auto entry = [](const char* dtype, const char* shape, const char* at) {
    return std::string(R"({"w":{"dtype":")") + dtype + R"(","shape":)" + shape +
           R"(,"data_offsets":)" + at + "}}";
  };
  DOCTEST_CHECK(MessageOf(entry("F32", "[1]", "[0,4]"), four).empty());
  DOCTEST_CHECK(MessageOf("[]", "") == "header: expected a JSON object");
  DOCTEST_CHECK(MessageOf("{", "") ==
                "header:1:2: expected a JSON value, got the end of the text; "
                "is it cut short?");
  DOCTEST_CHECK(MessageOf(entry("F8_E5M2", "[1]", "[0,4]"), four) ==
                "w: dtype: expected F32, F16, BF16 or F64, got \"F8_E5M2\"");
  DOCTEST_CHECK(MessageOf(entry("F32", "[2]", "[0,4]"), four) ==
                "w: expected 8 bytes for shape [2], got 4");
  DOCTEST_CHECK(MessageOf(entry("F32", "[-1]", "[0,4]"), four) ==
                "w: shape: expected counts, got [-1]");
  DOCTEST_CHECK(
      MessageOf(entry("F32", "[4294967296,4294967296]", "[0,4]"), four) ==
      "w: shape: expected counts, got [4294967296,4294967296]");
  DOCTEST_CHECK(MessageOf(entry("F32", "[2]", "[0,8]"), four) ==
                "w: data_offsets: expected a range within 4 bytes, got [0,8]; "
                "cut short?");
  DOCTEST_CHECK(MessageOf(entry("F32", "[1]", "[4,0]"), four) ==
                "w: data_offsets: expected a range within 4 bytes, got [4,0]; "
                "cut short?");
  DOCTEST_CHECK(MessageOf(entry("F32", "[1]", "[0,4]"), four + four) ==
                "expected 4 bytes of data, got 8");
  DOCTEST_CHECK(
      MessageOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                four) == "data_offsets: overlap at byte 0");
  DOCTEST_CHECK(MessageOf(R"({"w":3})", "") ==
                "w: expected dtype, shape and data_offsets");
  const TemporaryFile file;
  std::ofstream(file.path()) << "\xff\xff\xff\xff\xff\xff\xff\x7f{}";
  DOCTEST_CHECK_THROWS_AS(SafetensorsFile{file.path()}, model::InputError);
  DOCTEST_CHECK_THROWS_AS(SafetensorsFile{"/nowhere/x"}, model::InputError);
}

// Opening one waits for a writer.
DOCTEST_TEST_CASE("a queue in the place of a shard is refused") {
  const TemporaryFile file;
  DOCTEST_REQUIRE(::mkfifo(file.path().c_str(), 0600) == 0);
  DOCTEST_CHECK_THROWS_AS(SafetensorsFile{file.path()}, model::InputError);
}

}  // namespace
}  // namespace trainfare::trainer
