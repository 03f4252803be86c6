#include "trainer/data/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "model/error.h"

namespace trainfare::trainer {
namespace {

using model::InputError;
using Json = nlohmann::ordered_json;

constexpr size_t kLengthBytes = 8;
// The limit of the reference implementation.
constexpr uint64_t kLongestHeader = 100'000'000;

struct TypeName {
  const char* name;
  TensorType type;
  size_t bytes;
};
constexpr TypeName kTypes[] = {{"F32", TensorType::kF32, 4},
                               {"F16", TensorType::kF16, 2},
                               {"BF16", TensorType::kBf16, 2}};

uint64_t LittleEndian(const std::byte* bytes) {
  uint64_t value = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    value = value << 8 | static_cast<uint64_t>(bytes[i]);
  }
  return value;
}

// A rename may reach the disk before the data it names.
bool Flush(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool flushed = ::fsync(descriptor) == 0;
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return flushed;
}

std::optional<uint64_t> Unsigned(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<uint64_t>();
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    throw InputError(
        fmt::format("{}: cannot read: {}", path, std::strerror(errno)));
  }
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && status.st_size > 0) {
    size_ = static_cast<size_t>(status.st_size);
    void* mapping =
        ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapping != MAP_FAILED) mapping_ = static_cast<std::byte*>(mapping);
  }
  ::close(descriptor);
  try {
    ReadHeader();
  } catch (...) {
    if (mapping_ != nullptr) ::munmap(mapping_, size_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() {
  if (mapping_ != nullptr) ::munmap(mapping_, size_);
}

void SafetensorsFile::ReadHeader() {
  const auto fail = [&](const std::string& message) {
    throw InputError(fmt::format("{}: {}", path_, message));
  };
  if (mapping_ == nullptr || size_ < kLengthBytes) {
    fail(fmt::format("expected a safetensors file, got {} bytes", size_));
  }
  const uint64_t header_size = LittleEndian(mapping_);
  if (header_size > kLongestHeader || header_size > size_ - kLengthBytes) {
    fail(fmt::format("header: expected at most {} bytes, got {}; cut short?",
                     std::min<uint64_t>(kLongestHeader, size_ - kLengthBytes),
                     header_size));
  }
  const auto* text = reinterpret_cast<const char*>(mapping_ + kLengthBytes);
  const Json header = Json::parse(
      text, text + header_size, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) fail("header: expected a JSON object");

  const std::byte* data = mapping_ + kLengthBytes + header_size;
  const uint64_t data_size = size_ - kLengthBytes - header_size;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      for (const auto& [key, attached] : entry.items()) {
        if (attached.is_string()) {
          metadata_[key] = attached.get<std::string>();
        }
      }
      continue;
    }
    if (!entry.is_object() || !entry.contains("dtype") ||
        !entry.contains("shape") || !entry.contains("data_offsets")) {
      fail(fmt::format("{}: expected dtype, shape and data_offsets", name));
    }
    const Json& dtype = entry["dtype"];
    const auto* type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) {
          return dtype == t.name;
        });
    // Buffers such as position ids may be integers: no parameter is.
    if (type == std::end(kTypes) && dtype != "I64" && dtype != "I32" &&
        dtype != "U8" && dtype != "BOOL") {
      fail(fmt::format(
          "{}: dtype: expected F32, F16 or BF16, got {}", name, dtype.dump()));
    }
    const Json& shape = entry["shape"];
    const Json& offsets = entry["data_offsets"];
    if (!shape.is_array() || !offsets.is_array() || offsets.size() != 2) {
      fail(fmt::format("{}: expected lists for shape and data_offsets", name));
    }
    const auto begin = Unsigned(offsets[0]);
    const auto end = Unsigned(offsets[1]);
    if (!begin || !end || *begin > *end || *end > data_size) {
      fail(
          fmt::format("{}: data_offsets: expected a range within {} bytes, "
                      "got {}; cut short?",
                      name,
                      data_size,
                      offsets.dump()));
    }
    ranges.emplace_back(*begin, *end);
    if (type == std::end(kTypes)) continue;

    TensorBytes tensor;
    tensor.type = type->type;
    uint64_t bytes = type->bytes;
    for (const Json& extent : shape) {
      const auto count = Unsigned(extent);
      if (!count ||
          (*count > 0 &&
           bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) /
                       *count)) {
        fail(fmt::format(
            "{}: shape: expected counts, got {}", name, shape.dump()));
      }
      bytes *= *count;
      tensor.shape.push_back(static_cast<int64_t>(*count));
    }
    if (bytes != *end - *begin) {
      fail(fmt::format("{}: expected {} bytes for shape {}, got {}",
                       name,
                       bytes,
                       shape.dump(),
                       *end - *begin));
    }
    tensor.data = data + *begin;
    tensor.size = bytes;
    tensors_.emplace(name, std::move(tensor));
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t covered = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != covered) {
      fail(fmt::format("data_offsets: {} at byte {}",
                       begin < covered ? "overlap" : "gap",
                       std::min(begin, covered)));
    }
    covered = end;
  }
  if (covered != data_size) {
    fail(fmt::format("expected {} bytes of data, got {}", covered, data_size));
  }
}

void WriteSafetensors(const std::string& path,
                      const std::vector<NamedTensorBytes>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", "F32"},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, offset + tensor.size}}};
    offset += tensor.size;
  }
  std::string text = header.dump();
  // Data starts at a multiple of 8, as the reference implementation writes it.
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');

  const std::string temporary = path + ".part";
  std::ofstream file(temporary, std::ios::binary);
  for (size_t i = 0; i < kLengthBytes; ++i) {
    file.put(static_cast<char>(text.size() >> (8 * i) & 0xff));
  }
  file << text;
  for (const auto& [name, tensor] : tensors) {
    file.write(reinterpret_cast<const char*>(tensor.data),
               static_cast<std::streamsize>(tensor.size));
  }
  file.close();
  if (!file || !Flush(temporary) ||
      std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    std::remove(temporary.c_str());
    throw InputError(
        fmt::format("{}: cannot write: {}", path, std::strerror(error)));
  }
}

}  // namespace trainfare::trainer
