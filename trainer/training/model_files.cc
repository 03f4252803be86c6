#include "trainer/training/model_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <system_error>

#include "hardware/files/foreign_text.h"
#include "hardware/files/text_file.h"
#include "hardware/files/whole_file.h"
#include "model/error.h"
#include "model/presets.h"
#include "trainer/network/make_transformer.h"

namespace trainfare::trainer {
namespace {

using model::InputError;

bool IsModelFolder(const std::string& model) {
  return std::filesystem::is_directory(model);
}

// The model's own folder may carry no vocabulary: data may be ids already.
std::string TokenizerFolder(const std::string& chosen,
                            const std::string& model) {
  if (!chosen.empty() || !IsModelFolder(model)) return chosen;
  const std::filesystem::path root(model);
  return std::filesystem::exists(root / "vocab.txt") ||
                 std::filesystem::exists(root / "tokenizer.json")
             ? model
             : "";
}

}  // namespace

PretrainedConfig Configure(const std::string& model,
                           std::optional<int64_t> labels) {
  PretrainedConfig config;
  if (IsModelFolder(model)) {
    config = ReadConfig(model);
  } else {
    config.architecture = model::FindArchitecture(model);
    config.options = DefaultOptions(config.architecture);
  }
  if (labels) config.architecture.labels = *labels;
  return config;
}

std::optional<WordPiece> OpenTokenizer(
    const std::string& chosen,
    const std::string& model,
    const model::Architecture& architecture) {
  const std::string folder = TokenizerFolder(chosen, model);
  if (folder.empty()) return std::nullopt;
  WordPiece tokenizer = WordPiece::FromFolder(folder);
  if (tokenizer.size() > architecture.vocabulary) {
    throw InputError(fmt::format(
        "{}: expected a vocabulary of at most {} tokens, as {} has, got {}",
        folder,
        architecture.vocabulary,
        architecture.name,
        tokenizer.size()));
  }
  return tokenizer;
}

std::unique_ptr<Transformer> OpenModel(const TrainOptions& options,
                                       const PretrainedConfig& config,
                                       const model::Workload& workload,
                                       at::Device device,
                                       const Share& share) {
  TransformerOptions transformer_options = config.options;
  SetStack(workload, transformer_options);
  std::unique_ptr<Transformer> transformer = MakeTransformer(
      config.architecture, transformer_options, device, options.seed);
  if (!IsModelFolder(options.model)) return transformer;
  const std::string missing = LoadWeights(options.model, *transformer);
  if (!missing.empty() && share.first()) {
    std::cerr << "note: " +
                     hardware::OneLine(fmt::format(
                         "not in {}, starts from random numbers: {}",
                         options.model,
                         missing)) +
                     "\n";
  }
  return transformer;
}

void SaveModel(const TrainOptions& options, const Transformer& transformer) {
  const std::filesystem::path folder(options.save);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw InputError(
        fmt::format("{}: cannot create: {}", options.save, error.message()));
  }
  SaveTensors((folder / "model.safetensors").string(),
              transformer.parameters());
  if (!IsModelFolder(options.model)) return;
  for (const char* name : {"config.json",
                           "vocab.txt",
                           "tokenizer.json",
                           "tokenizer_config.json"}) {
    const auto from = std::filesystem::path(options.model) / name;
    if (std::filesystem::exists(from) && options.model != options.save) {
      hardware::WriteWholeFile(
          (folder / name).string(),
          hardware::ReadTextFile(from.string(), "a file of a model"));
    }
  }
}

}  // namespace trainfare::trainer
