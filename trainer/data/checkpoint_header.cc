#include "trainer/data/checkpoint_header.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "hardware/files/foreign_text.h"
#include "model/error.h"
#include "model/limits.h"

namespace trainfare::trainer {
namespace {

using model::InputError;

constexpr const char* kFormat = "trainfare.checkpoint/1";
constexpr const char* kRunPrefix = "run.";

// Counts of a run are no greater than a run can be: nothing overflows.
constexpr int64_t kLargestHeaderCount = model::kLargestCount;
constexpr int kLargestExponent = 126;

template <class Count>
Count ReadCount(const SafetensorsFile& file,
                const char* key,
                Count least,
                Count most) {
  const auto found = file.metadata().find(key);
  Count value = 0;
  if (found != file.metadata().end()) {
    const std::string& text = found->second;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() &&
        value >= least && value <= most) {
      return value;
    }
  }
  throw InputError(fmt::format(
      "{}: {}: expected an integer from {} to {}, got {}",
      file.path(),
      key,
      least,
      most,
      found == file.metadata().end() ? "nothing"
                                     : hardware::OneLine(found->second, 60)));
}

void CheckRun(const SafetensorsFile& file,
              const std::map<std::string, std::string>& run) {
  const auto format = file.metadata().find("format");
  if (format == file.metadata().end() || format->second != kFormat) {
    throw InputError(fmt::format("{}: expected a checkpoint ({}), got {}",
                                 file.path(),
                                 kFormat,
                                 format == file.metadata().end()
                                     ? "another file"
                                     : hardware::OneLine(format->second, 60)));
  }
  for (const auto& [key, value] : run) {
    const auto found = file.metadata().find(kRunPrefix + key);
    const std::string saved =
        found == file.metadata().end() ? "nothing" : found->second;
    if (saved != value) {
      throw InputError(
          fmt::format("{}: {}: expected {}, as this run has, got {}; a "
                      "checkpoint of another run",
                      file.path(),
                      key,
                      value,
                      hardware::OneLine(saved, 60)));
    }
  }
}

}  // namespace

std::map<std::string, std::string> ToMetadata(
    const CheckpointHeader& header,
    const std::map<std::string, std::string>& run) {
  std::map<std::string, std::string> metadata = {
      {"format", kFormat},
      {"step", std::to_string(header.step)},
      {"epoch", std::to_string(header.epoch)},
      {"position", std::to_string(header.position)},
      {"dropout_calls", std::to_string(header.dropout_calls)},
      {"loss_scale_exponent", std::to_string(header.loss_scale_exponent)},
      {"good_steps", std::to_string(header.good_steps)},
      {"skipped_steps", std::to_string(header.skipped_steps)}};
  for (const auto& [key, value] : run) metadata[kRunPrefix + key] = value;
  return metadata;
}

CheckpointHeader ReadCheckpointHeader(
    const SafetensorsFile& file,
    const std::map<std::string, std::string>& run) {
  CheckRun(file, run);
  CheckpointHeader header;
  header.step = ReadCount<int64_t>(file, "step", 0, kLargestHeaderCount);
  header.epoch = ReadCount<int64_t>(file, "epoch", 0, kLargestHeaderCount);
  header.position =
      ReadCount<int64_t>(file, "position", 0, kLargestHeaderCount);
  header.dropout_calls = ReadCount<uint64_t>(
      file, "dropout_calls", 0, std::numeric_limits<uint64_t>::max());
  header.loss_scale_exponent = ReadCount<int>(
      file, "loss_scale_exponent", -kLargestExponent, kLargestExponent);
  header.good_steps =
      ReadCount<int64_t>(file, "good_steps", 0, kLargestHeaderCount);
  header.skipped_steps =
      ReadCount<int64_t>(file, "skipped_steps", 0, header.step);
  return header;
}

}  // namespace trainfare::trainer
