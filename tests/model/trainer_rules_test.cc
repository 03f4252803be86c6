#include "model/trainer_rules.h"

#include <doctest/doctest.h>

#include <string>

#include "model/error.h"
#include "model/presets.h"

namespace trainfare::model {
namespace {

// What a run is refused by; empty: it is not.
std::string TrainerRefusal(const Workload& workload) {
  try {
    RequireTrainerRun(workload);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

Workload RunOf(const std::string& name) {
  Workload workload;
  workload.architecture = FindArchitecture(name);
  workload.batch = 1;
  workload.sequence_length = 32;
  return workload;
}

TEST_CASE("the trainer runs the models that its guide names") {
  for (const char* name : {"bert-tiny",
                           "roberta-base",
                           "distilbert-base-uncased",
                           "gpt2",
                           "transformer-base",
                           "llama-3.2-1b",
                           "mixtral-8x7b",
                           "qwen3-0.6b"}) {
    CAPTURE(name);
    CHECK(TrainerRefusal(RunOf(name)).empty());
  }
}

TEST_CASE("models that the trainer has not are named, with what they have") {
  const std::string blocks =
      ": the trainer has the blocks of BERT, GPT-2, Transformer base and big, "
      "and of decoders like Llama's";
  CHECK(TrainerRefusal(RunOf("t5-small")) == "model t5-small" + blocks);
  CHECK(TrainerRefusal(RunOf("bloom-560m")).find("without ") !=
        std::string::npos);
  CHECK(TrainerRefusal(RunOf("gemma-2-2b")).find("model gemma-2-2b: ") == 0);
}

TEST_CASE("matrices that the trainer has apart or joined are named") {
  CHECK(TrainerRefusal(RunOf("ling-lite-1.5")) ==
        "model ling-lite-1.5: the trainer has decoders like Llama's, without "
        "queries, keys and values of one matrix");
  Workload w = RunOf("llama-3.2-1b");
  w.architecture.narrow_logits = true;
  CHECK(TrainerRefusal(w) ==
        "model llama-3.2-1b: the trainer has decoders like Llama's, without a "
        "loss of logits as products make them");
  w = RunOf("gpt2");
  w.architecture.separate_projections = true;
  CHECK(TrainerRefusal(w) ==
        "model gpt2: separate_projections: blocks like GPT-2's have queries, "
        "keys and values of one matrix, expected false, got true");
}

TEST_CASE("optimizers that the trainer has not are named") {
  Workload w = RunOf("llama-3.2-1b");
  w.optimizer.kind = OptimizerKind::kLion;
  CHECK(TrainerRefusal(w) ==
        "optimizer: the trainer has adamw, adan and sgd, got lion");
  w.optimizer = {OptimizerKind::kSgd, OptimizerImplementation::kFused};
  CHECK(TrainerRefusal(w) ==
        "optimizer: sgd has for_loop and multi_tensor, got fused");
}

TEST_CASE("adapters stand in decoders like Llama's alone") {
  Workload w = RunOf("llama-3.2-1b");
  w.trainable.lora_rank = 8;
  w.trainable.lora.query = true;
  CHECK(TrainerRefusal(w).empty());
  w.trainable.base_bits = 4;
  CHECK(TrainerRefusal(w) ==
        "trainable.base_bits: the trainer keeps frozen weights as they are, "
        "got 4");
  w.trainable.base_bits = 0;
  w.architecture = FindArchitecture("bert-tiny");
  CHECK(TrainerRefusal(w) ==
        "model bert-tiny: the trainer has frozen weights, adapters and "
        "gradient_checkpointing in decoders like Llama's alone");
}

TEST_CASE("a run's precision, stack and weights are the trainer's") {
  Workload w = RunOf("bert-tiny");
  w.precision = Precision::kFp8;
  CHECK(TrainerRefusal(w) ==
        "precision: the trainer has fp32, tf32, fp16 and bf16, got fp8");
  w.precision = Precision::kFp32;
  w.stack.fusion = Fusion::kCompiled;
  CHECK(TrainerRefusal(w) ==
        "stack: the trainer has eager and fused, got compiled");
  CHECK_THROWS_AS(RequireTrainerStack(Fusion::kCompiled), InputError);
  w.stack.fusion = Fusion::kFused;
  w.stack.narrow_weights = true;
  w.optimizer.masters = Masters::kInUpdate;
  CHECK(TrainerRefusal(w) ==
        "narrow_weights: expected precision bf16 or fp16, got fp32");
}

TEST_CASE("encoders are told apart by their dimensions") {
  CHECK(LayoutOf(FindArchitecture("bert-tiny")) == EncoderLayout::kBert);
  CHECK(LayoutOf(FindArchitecture("roberta-base")) == EncoderLayout::kRoberta);
  CHECK(LayoutOf(FindArchitecture("distilbert-base-uncased")) ==
        EncoderLayout::kDistilBert);
}

}  // namespace
}  // namespace trainfare::model
