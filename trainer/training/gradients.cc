#include "trainer/training/gradients.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <vector>

#include "model/error.h"
#include "model/trainable.h"
#include "trainer/data/data.h"
#include "trainer/data/wordpiece.h"
#include "trainer/network/make_transformer.h"
#include "trainer/network/pretrained.h"
#include "trainer/network/transformer.h"
#include "trainer/training/feed.h"
#include "trainer/training/model_files.h"

namespace trainfare::trainer {

void WriteGradients(const GradientOptions& options, at::Device device) {
  const std::string& model = options.model;
  PretrainedConfig config = Configure(model, std::nullopt);
  if (options.wide) config.options.type = at::kDouble;
  config.options.recompute = options.gradient_checkpointing;
  config.options.trainable = options.trainable;
  model::NameUsualMatrices(config.architecture, config.options.trainable);
  model::NameAllMatrices(
      config.architecture, model::Fusion::kEager, config.options.trainable);
  const std::optional<WordPiece> tokenizer =
      OpenTokenizer("", model, config.architecture);
  const std::vector<Example> examples =
      ReadExamples(options.data,
                   tokenizer ? &*tokenizer : nullptr,
                   config.architecture,
                   options.length);
  const std::unique_ptr<Transformer> owned =
      MakeTransformer(config.architecture, config.options, device, 1);
  const Transformer& transformer = *owned;
  const std::string missing = LoadWeights(model, transformer);
  if (!missing.empty()) {
    throw model::InputError(fmt::format("{}: missing {}", model, missing));
  }
  const Batch batch = MakeBatch(examples,
                                InOrder(examples.size()),
                                0,
                                examples.size(),
                                {options.length, options.length},
                                transformer);
  const Output output = transformer.Forward(batch, /*training=*/false);
  output.loss.backward();
  std::vector<Parameter> results = {{"logits", output.logits},
                                    {"loss", output.loss}};
  for (const Parameter& parameter : transformer.parameters()) {
    if (!parameter.value.requires_grad()) continue;
    const at::Tensor& gradient = parameter.value.grad();
    // An expert that no token was sent to has zeros (experts.cc).
    ENSURE(gradient.defined(), "what trains has a gradient");
    results.push_back({parameter.name, gradient});
  }
  SaveTensors(options.out, results);
}

}  // namespace trainfare::trainer
