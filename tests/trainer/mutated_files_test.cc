// Files that the trainer reads into tensors, changed at random: taken or
// refused. Those that need no tensors are in tests/fuzz.

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/mutated.h"
#include "tests/fuzz/scratch_file.h"
#include "trainer/network/make_transformer.h"
#include "trainer/network/pretrained.h"
#include "trainer/optimizer/make_optimizer.h"
#include "trainer/optimizer/optimizer.h"
#include "trainer/training/checkpoint.h"
#include "trainer/training/measure.h"

namespace trainfare::trainer {
namespace {

using fuzz::ScratchFile;

constexpr const char* kSmall =
    R"({"model_type": "bert", "vocab_size": 16, "hidden_size": 4,
        "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 8, "max_position_embeddings": 8})";

std::string Bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// A model of a few weights, and what trains it.
struct SmallModel {
  SmallModel() {
    const ScratchFile file("config.json");
    const PretrainedConfig config = ReadConfig(file.FolderWith(kSmall));
    transformer =
        MakeTransformer(config.architecture, config.options, at::kCPU, 1);
    optimizer =
        MakeOptimizer(transformer->TrainedParameters(), OptimizerOptions());
  }
  static SmallModel& Get() {
    static SmallModel small;
    return small;
  }

  std::map<std::string, std::string> run = {{"batch", "3"}, {"seed", "1"}};
  std::unique_ptr<Transformer> transformer;
  std::unique_ptr<Optimizer> optimizer;
};

void ReadPlan(std::string_view bytes) {
  ParseMeasureRequest(std::string(bytes));
}

void ReadModelConfig(std::string_view bytes) {
  static const ScratchFile file("config.json");
  ReadConfig(file.FolderWith(bytes));
}

void ReadWeights(std::string_view bytes) {
  static const ScratchFile file("model.safetensors");
  LoadWeights(file.FolderWith(bytes), *SmallModel::Get().transformer);
}

void ReadCheckpoint(std::string_view bytes) {
  static const ScratchFile file("checkpoint.safetensors");
  SmallModel& small = SmallModel::Get();
  LoadCheckpoint(
      file.With(bytes), small.run, *small.transformer, *small.optimizer);
}

constexpr uint64_t kShort = 100;

DOCTEST_TEST_CASE("mutated files: requests of a plan") {
  fuzz::CheckMutated(
      {"plan", ReadPlan},
      {R"({"model": "bert-tiny", "batch": 3, "sequence_length": 20,
           "precision": "bf16", "steps": 4, "seed": 9,
           "optimizer": {"name": "adamw", "implementation": "for_loop"}})",
       R"({"model": {"family": "decoder", "layers": 2, "hidden": 32,
           "heads": 2, "vocabulary": 50}, "batch": 1, "sequence_length": 8,
           "max_seconds": 2.5, "stack": "fused", "accumulation": 2})"},
      kShort);
}

DOCTEST_TEST_CASE("mutated files: configurations of models") {
  fuzz::CheckMutated(
      {"config", ReadModelConfig},
      {kSmall,
       R"({"model_type": "gpt2", "vocab_size": 50, "n_positions": 16,
           "n_layer": 1, "n_embd": 8, "n_head": 2, "n_inner": null,
           "activation_function": "gelu_new", "resid_pdrop": 0.1})",
       R"({"model_type": "llama", "vocab_size": 50, "hidden_size": 8,
           "num_hidden_layers": 1, "num_attention_heads": 2,
           "num_key_value_heads": 1, "intermediate_size": 16,
           "max_position_embeddings": 32, "rms_norm_eps": 1e-05,
           "hidden_act": "silu", "tie_word_embeddings": true,
           "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
             "low_freq_factor": 1.0, "high_freq_factor": 4.0,
             "original_max_position_embeddings": 16}})"},
      kShort);
}

DOCTEST_TEST_CASE("mutated files: weights") {
  const ScratchFile file("model.safetensors");
  const std::string path = file.With("");
  SaveTensors(path, SmallModel::Get().transformer->parameters());
  DOCTEST_CHECK_NOTHROW(ReadWeights(Bytes(path)));
  fuzz::CheckMutated({"weights", ReadWeights}, {Bytes(path)}, kShort);
}

DOCTEST_TEST_CASE("mutated files: checkpoints") {
  const ScratchFile file("checkpoint.safetensors");
  const std::string path = file.With("");
  const SmallModel& small = SmallModel::Get();
  Checkpoint checkpoint;
  checkpoint.run = small.run;
  checkpoint.step = 7;
  checkpoint.epoch = 1;
  checkpoint.position = 3;
  SaveCheckpoint(path, checkpoint, *small.transformer, *small.optimizer);
  DOCTEST_CHECK_NOTHROW(ReadCheckpoint(Bytes(path)));
  fuzz::CheckMutated({"checkpoint", ReadCheckpoint}, {Bytes(path)}, kShort);
}

}  // namespace
}  // namespace trainfare::trainer
