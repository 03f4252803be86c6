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
                               {"BF16", TensorType::kBf16, 2},
                               {"F64", TensorType::kF64, 8}};

const char* NameOf(TensorType type) {
  return std::find_if(std::begin(kTypes),
                      std::end(kTypes),
                      [type](const TypeName& one) { return one.type == type; })
      ->name;
}

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

// The tensors that a header tells of, within the data behind it.
class TensorReader {
 public:
  TensorReader(const std::string& path, const std::byte* data, uint64_t size)
      : path_(path), data_(data), size_(size) {}

  // nullopt: of a type that no parameter has.
  std::optional<TensorBytes> Read(const std::string& name, const Json& entry);
  // Throws InputError unless those that were read fill the data.
  void RequireNoGaps();

 private:
  [[noreturn]] void Fail(const std::string& message) const {
    throw InputError(fmt::format("{}: {}", path_, message));
  }
  std::vector<int64_t> ReadShape(const std::string& name,
                                 const Json& shape,
                                 uint64_t element_bytes,
                                 uint64_t tensor_bytes) const;

  const std::string& path_;
  const std::byte* data_;
  uint64_t size_;
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;  // first byte, behind it
};

std::optional<TensorBytes> TensorReader::Read(const std::string& name,
                                              const Json& entry) {
  if (!entry.is_object() || !entry.contains("dtype") ||
      !entry.contains("shape") || !entry.contains("data_offsets")) {
    Fail(fmt::format("{}: expected dtype, shape and data_offsets", name));
  }
  const Json& dtype = entry["dtype"];
  const auto* type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) {
        return dtype == t.name;
      });
  // Buffers such as position ids may be integers: no parameter is.
  if (type == std::end(kTypes) && dtype != "I64" && dtype != "I32" &&
      dtype != "U8" && dtype != "BOOL") {
    Fail(fmt::format("{}: dtype: expected F32, F16, BF16 or F64, got {}",
                     name,
                     hardware::ShownJson(dtype)));
  }
  const Json& shape = entry["shape"];
  const Json& offsets = entry["data_offsets"];
  if (!shape.is_array() || !offsets.is_array() || offsets.size() != 2) {
    Fail(fmt::format("{}: expected lists for shape and data_offsets", name));
  }
  const auto begin = Unsigned(offsets[0]);
  const auto end = Unsigned(offsets[1]);
  if (!begin || !end || *begin > *end || *end > size_) {
    Fail(
        fmt::format("{}: data_offsets: expected a range within {} bytes, "
                    "got {}; cut short?",
                    name,
                    size_,
                    hardware::ShownJson(offsets)));
  }
  ranges_.emplace_back(*begin, *end);
  if (type == std::end(kTypes)) return std::nullopt;

  TensorBytes tensor;
  tensor.type = type->type;
  tensor.shape = ReadShape(name, shape, type->bytes, *end - *begin);
  tensor.data = data_ + *begin;
  tensor.size = *end - *begin;
  return tensor;
}

std::vector<int64_t> TensorReader::ReadShape(const std::string& name,
                                             const Json& shape,
                                             uint64_t element_bytes,
                                             uint64_t tensor_bytes) const {
  std::vector<int64_t> extents;
  uint64_t bytes = element_bytes;
  for (const Json& extent : shape) {
    const auto count = Unsigned(extent);
    if (!count ||
        (*count > 0 &&
         bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) /
                     *count)) {
      Fail(fmt::format("{}: shape: expected counts, got {}",
                       name,
                       hardware::ShownJson(shape)));
    }
    bytes *= *count;
    extents.push_back(static_cast<int64_t>(*count));
  }
  if (bytes != tensor_bytes) {
    Fail(fmt::format("{}: expected {} bytes for shape {}, got {}",
                     name,
                     bytes,
                     hardware::ShownJson(shape),
                     tensor_bytes));
  }
  return extents;
}

void TensorReader::RequireNoGaps() {
  std::sort(ranges_.begin(), ranges_.end());
  uint64_t covered = 0;
  for (const auto& [begin, end] : ranges_) {
    if (begin != covered) {
      Fail(fmt::format("data_offsets: {} at byte {}",
                       begin < covered ? "overlap" : "gap",
                       std::min(begin, covered)));
    }
    covered = end;
  }
  if (covered != size_) {
    Fail(fmt::format("expected {} bytes of data, got {}", covered, size_));
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  // A shard's name stands in a file: where it is a queue, nobody is waited for.
  const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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
  const Json header =
      hardware::ParseJson({text, header_size}, path_ + ": header");
  if (!header.is_object()) fail("header: expected a JSON object");

  TensorReader reader(path_,
                      mapping_ + kLengthBytes + header_size,
                      size_ - kLengthBytes - header_size);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      for (const auto& [key, attached] : entry.items()) {
        if (attached.is_string()) {
          metadata_[key] = attached.get<std::string>();
        }
      }
    } else if (auto tensor = reader.Read(name, entry)) {
      tensors_.emplace(name, *std::move(tensor));
    }
  }
  reader.RequireNoGaps();
}

void WriteSafetensors(const std::string& path,
                      const std::vector<NamedTensorBytes>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", NameOf(tensor.type)},
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
