#include "trainer/training/training_data.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "model/error.h"
#include "model/limits.h"
#include "trainer/runtime/signals.h"
#include "trainer/training/model_files.h"

namespace trainfare::trainer {
namespace {

using model::InputError;

// As many examples as the steps take, of random tokens and drawn lengths.
std::vector<Example> DrawExamples(const TrainOptions& options,
                                  const PretrainedConfig& config,
                                  const Share& share) {
  const int64_t wanted =
      model::CheckedProduct({options.steps.value_or(1),
                             options.workload.batch,
                             options.workload.accumulation,
                             static_cast<int64_t>(share.world_size)},
                            "--steps x --batch x --accumulation");
  constexpr int64_t kMostDrawn = 1'000'000'000;
  if (wanted > kMostDrawn) {
    throw InputError(fmt::format(
        "--steps x --batch x --accumulation: expected at most {} random "
        "examples, got {}",
        kMostDrawn,
        wanted));
  }
  return LengthHistogram::FromFile(options.lengths)
      .Draw(wanted,
            config.architecture,
            config.options.padding_id + 1,
            options.workload.sequence_length,
            options.seed);
}

}  // namespace

TrainingData ReadData(const TrainOptions& options,
                      const PretrainedConfig& config,
                      const Share& share) {
  // A pipe may never be written to.
  const NothingToLose reading;
  const model::Architecture& architecture = config.architecture;
  const std::optional<WordPiece> tokenizer =
      OpenTokenizer(options.tokenizer, options.model, architecture);
  const WordPiece* words = tokenizer ? &*tokenizer : nullptr;
  TrainingData data;
  data.examples = options.data.empty()
                      ? DrawExamples(options, config, share)
                      : ReadExamples(options.data,
                                     words,
                                     architecture,
                                     options.workload.sequence_length);
  if (options.evaluation.empty()) return data;
  if (architecture.head != model::Head::kSequenceClassification) {
    throw InputError("--eval: expected a sequence classifier");
  }
  data.evaluation = ReadExamples(options.evaluation,
                                 words,
                                 architecture,
                                 options.workload.sequence_length);
  return data;
}

}  // namespace trainfare::trainer
