#include "trainer/data/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "hardware/files/json_text.h"
#include "hardware/files/whole_file.h"
#include "model/error.h"

namespace trainfare::trainer {
namespace {

using model::InputError;
using Json = nlohmann::json;

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
  const nlohmann::json header =
      hardware::ParseJson({text, header_size}, path_ + ": header");
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
      fail(fmt::format("{}: dtype: expected F32, F16 or BF16, got {}",
                       name,
                       hardware::ShownJson(dtype)));
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
                      hardware::ShownJson(offsets)));
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
        fail(fmt::format("{}: shape: expected counts, got {}",
                         name,
                         hardware::ShownJson(shape)));
      }
      bytes *= *count;
      tensor.shape.push_back(static_cast<int64_t>(*count));
    }
    if (bytes != *end - *begin) {
      fail(fmt::format("{}: expected {} bytes for shape {}, got {}",
                       name,
                       bytes,
                       hardware::ShownJson(shape),
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
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", "F32"},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, offset + tensor.size}}};
    offset += tensor.size;
  }
  std::string text = hardware::WriteJson(header);
  // Data starts at a multiple of 8, as the reference implementation writes it.
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');

  std::string length;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length += static_cast<char>(text.size() >> (8 * i) & 0xff);
  }
  hardware::WholeFile file(path);
  file.Write(length);
  file.Write(text);
  for (const auto& [name, tensor] : tensors) {
    file.Write({reinterpret_cast<const char*>(tensor.data), tensor.size});
  }
  file.Commit();
}

}  // namespace trainfare::trainer
