#include "trainer/training/checkpoint.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "hardware/files/foreign_text.h"
#include "model/error.h"
#include "model/limits.h"
#include "trainer/data/safetensors.h"
#include "trainer/network/pretrained.h"

namespace trainfare::trainer {
namespace {

using model::InputError;

constexpr const char* kFormat = "trainfare.checkpoint/1";
constexpr const char* kRunPrefix = "run.";

// All tensors of a run under the names that they have in the file.
std::vector<Parameter> TensorsOf(const Transformer& transformer,
                                 const Optimizer& optimizer) {
  std::vector<Parameter> tensors;
  for (const Parameter& parameter : transformer.parameters()) {
    tensors.push_back({"model." + parameter.name, parameter.value});
  }
  for (const Parameter& state : optimizer.State()) {
    tensors.push_back({"optimizer." + state.name, state.value});
  }
  return tensors;
}

// Counts of a run are no greater than a run can be: nothing overflows.
constexpr int64_t kMost = model::kLargestCount;
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
    throw InputError(fmt::format(
        "{}: expected a checkpoint ({}), got {}",
        file.path(),
        kFormat,
        format == file.metadata().end() ? "another file" : format->second));
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
                      saved));
    }
  }
}

}  // namespace

void SaveCheckpoint(const std::string& path,
                    const Checkpoint& checkpoint,
                    const Transformer& transformer,
                    const Optimizer& optimizer) {
  std::map<std::string, std::string> metadata = {
      {"format", kFormat},
      {"step", std::to_string(checkpoint.step)},
      {"epoch", std::to_string(checkpoint.epoch)},
      {"position", std::to_string(checkpoint.position)},
      {"dropout_calls", std::to_string(checkpoint.dropout_calls)},
      // A power of two, so an exponent says it all.
      {"loss_scale_exponent",
       std::to_string(std::ilogb(checkpoint.loss_scale.scale))},
      {"good_steps", std::to_string(checkpoint.loss_scale.good_steps)},
      {"skipped_steps", std::to_string(checkpoint.loss_scale.skipped_steps)}};
  for (const auto& [key, value] : checkpoint.run) {
    metadata[kRunPrefix + key] = value;
  }
  SaveTensors(path, TensorsOf(transformer, optimizer), metadata);
}

Checkpoint LoadCheckpoint(const std::string& path,
                          const std::map<std::string, std::string>& run,
                          const Transformer& transformer,
                          Optimizer& optimizer) {
  const SafetensorsFile file(path);
  CheckRun(file, run);
  Checkpoint checkpoint;
  checkpoint.run = run;
  checkpoint.step = ReadCount<int64_t>(file, "step", 0, kMost);
  checkpoint.epoch = ReadCount<int64_t>(file, "epoch", 0, kMost);
  checkpoint.position = ReadCount<int64_t>(file, "position", 0, kMost);
  checkpoint.dropout_calls = ReadCount<uint64_t>(
      file, "dropout_calls", 0, std::numeric_limits<uint64_t>::max());
  checkpoint.loss_scale = {
      std::ldexp(1.0,
                 ReadCount<int>(file,
                                "loss_scale_exponent",
                                -kLargestExponent,
                                kLargestExponent)),
      ReadCount<int64_t>(file, "good_steps", 0, kMost),
      ReadCount<int64_t>(file, "skipped_steps", 0, checkpoint.step)};

  // Looked up and checked all, before the first is changed.
  std::vector<std::pair<const TensorBytes*, at::Tensor>> copies;
  for (const Parameter& tensor : TensorsOf(transformer, optimizer)) {
    const auto found = file.tensors().find(tensor.name);
    if (found == file.tensors().end()) {
      throw InputError(fmt::format(
          "{}: expected a tensor {}, got none; a checkpoint of another model",
          path,
          tensor.name));
    }
    if (found->second.shape != tensor.value.sizes().vec()) {
      throw InputError(
          fmt::format("{}: {}: expected shape [{}], got [{}]; a checkpoint of "
                      "another model",
                      path,
                      tensor.name,
                      fmt::join(tensor.value.sizes(), ", "),
                      fmt::join(found->second.shape, ", ")));
    }
    copies.emplace_back(&found->second, tensor.value);
  }
  const at::NoGradGuard no_grad;
  for (const auto& [bytes, tensor] : copies) CopyTensor(*bytes, tensor);
  // Steps whose gradients overflowed updated nothing.
  optimizer.Restore(checkpoint.step - checkpoint.loss_scale.skipped_steps);
  return checkpoint;
}

}  // namespace trainfare::trainer
