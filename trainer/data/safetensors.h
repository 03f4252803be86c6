#pragma once

// The safetensors format: 8 bytes little-endian header length, a JSON header
// {name: {dtype, shape, data_offsets}}, then the data without gaps.
// https://github.com/huggingface/safetensors (format, 2023)

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace trainfare::trainer {

enum class TensorType { kF32, kF16, kBf16, kF64 };

struct TensorBytes {
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;  // at any alignment
  size_t size = 0;                  // bytes
};

// A file mapped into memory, its header checked whole: offsets, sizes,
// overlaps, gaps. Throws InputError "file: ...".
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::map<std::string, TensorBytes>& tensors() const { return tensors_; }
  // Texts that the writer attached, `__metadata__`.
  const std::map<std::string, std::string>& metadata() const {
    return metadata_;
  }
  const std::string& path() const { return path_; }

 private:
  void ReadHeader();

  std::string path_;
  std::byte* mapping_ = nullptr;
  size_t size_ = 0;
  std::map<std::string, TensorBytes> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Writes tensors, beside `path` first, flushed to the disk and
// then renamed: there is a whole file at `path` at any time.
struct NamedTensorBytes {
  std::string name;
  TensorBytes tensor;
};
void WriteSafetensors(const std::string& path,
                      const std::vector<NamedTensorBytes>& tensors,
                      const std::map<std::string, std::string>& metadata = {
                          {"format", "pt"}});

}  // namespace trainfare::trainer
