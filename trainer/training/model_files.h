#pragma once

// The model that training begins with, and the folder that it ends in.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "model/architecture.h"
#include "model/workload.h"
#include "trainer/data/wordpiece.h"
#include "trainer/network/pretrained.h"
#include "trainer/network/transformer.h"
#include "trainer/runtime/aten.h"
#include "trainer/training/feed.h"
#include "trainer/training/options.h"

namespace trainfare::trainer {

// Of a preset's name or a model folder. Throws InputError.
PretrainedConfig Configure(const std::string& model,
                           std::optional<int64_t> labels);

// That of the folder `chosen`; without one the model's own. Throws InputError
// where the model does not know all of its tokens.
std::optional<WordPiece> OpenTokenizer(const std::string& chosen,
                                       const std::string& model,
                                       const model::Architecture& architecture);

// The model as it stands before the first step: of the folder's weights, else
// of random numbers.
std::unique_ptr<Transformer> OpenModel(const TrainOptions& options,
                                       const PretrainedConfig& config,
                                       const model::Workload& workload,
                                       at::Device device,
                                       const Share& share);

// The weights into the folder of --save, and beside them what else the model's
// own folder says of it.
void SaveModel(const TrainOptions& options, const Transformer& transformer);

}  // namespace trainfare::trainer
