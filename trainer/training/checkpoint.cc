#include "trainer/training/checkpoint.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "model/error.h"
#include "trainer/data/checkpoint_header.h"
#include "trainer/data/safetensors.h"
#include "trainer/network/pretrained.h"

namespace trainfare::trainer {
namespace {

using model::InputError;

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

}  // namespace

void SaveCheckpoint(const std::string& path,
                    const Checkpoint& checkpoint,
                    const Transformer& transformer,
                    const Optimizer& optimizer) {
  const CheckpointHeader header = {
      .step = checkpoint.step,
      .epoch = checkpoint.epoch,
      .position = checkpoint.position,
      .dropout_calls = checkpoint.dropout_calls,
      .loss_scale_exponent = std::ilogb(checkpoint.loss_scale.scale),
      .good_steps = checkpoint.loss_scale.good_steps,
      .skipped_steps = checkpoint.loss_scale.skipped_steps};
  SaveTensors(path,
              TensorsOf(transformer, optimizer),
              ToMetadata(header, checkpoint.run));
}

Checkpoint LoadCheckpoint(const std::string& path,
                          const std::map<std::string, std::string>& run,
                          const Transformer& transformer,
                          Optimizer& optimizer) {
  const SafetensorsFile file(path);
  const CheckpointHeader header = ReadCheckpointHeader(file, run);
  const Checkpoint checkpoint = {
      .run = run,
      .step = header.step,
      .epoch = header.epoch,
      .position = header.position,
      .dropout_calls = header.dropout_calls,
      .loss_scale = {std::ldexp(1.0, header.loss_scale_exponent),
                     header.good_steps,
                     header.skipped_steps}};

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
