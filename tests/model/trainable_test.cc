#include "model/trainable.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/activations.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/memory.h"
#include "model/optimizer_kernels.h"
#include "model/presets.h"
#include "model/validate.h"
#include "tests/model/trained_parts.h"

namespace trainfare::model {
// docs/models/counts.md, "What trains": 6 blocks of 7,087,872, the pooler of
// 590,592 and the classifier of 2 x 768 + 2.
TEST_CASE("frozen layers leave the blocks above them, pooler and head") {
  const Workload w = Frozen(6);
  CHECK(TrainableParameters(w) == 6 * 7'087'872 + 590'592 + 1'538);
  CHECK(TrainableParameters(w) == 43'119'362);
  // 16 tensors a block, 2 of the pooler, 2 of the classifier.
  CHECK(TrainableTensorCount(w) == 6 * 16 + 4);
  CHECK(AdapterParameters(w) == 0);
  CHECK(TrainableParameters(Frozen(12)) == 590'592 + 1'538);
}

TEST_CASE("what trains is counted as it is listed") {
  for (const char* name : {"bert-base-cased",
                           "gpt2",
                           "llama-3.1-8b",
                           "transformer-base",
                           "qwen1.5-moe-a2.7b",
                           "deepseek-v2-lite"}) {
    for (const int64_t rank : {0, 8}) {
      for (const int64_t frozen : {0, 2}) {
        if (rank > 0 && frozen > 0) continue;
        Workload w;
        w.architecture = FindArchitecture(name);
        w.trainable.lora_rank = rank;
        w.trainable.lora.output = w.trainable.lora.feed_forward_in = true;
        w.trainable.frozen_layers = frozen;
        CAPTURE(name);
        CAPTURE(rank);
        CAPTURE(frozen);
        int64_t elements = 0;
        const std::vector<ParameterTensor> tensors = TrainableTensorsOf(w);
        for (const ParameterTensor& tensor : tensors) {
          elements += tensor.elements;
        }
        CHECK(TrainableParameters(w) == elements);
        CHECK(TrainableTensorCount(w) == static_cast<int64_t>(tensors.size()));
      }
    }
  }
}

// Backward of one product is two of its size; attention's four become eight.
// By hand for one block of 1024 tokens (batch 8 of 128):
//   linear maps  2 x 1024 x 7,077,888                       14,495,514,624
//   attention    4 x 8 x 12 x 128 x 128 x 64                   402,653,184
TEST_CASE("blocks below the first that trains have no backward pass") {
  const int64_t linear = int64_t{2} * 1024 * (4 * 768 * 768 + 2 * 768 * 3072);
  const int64_t attention = 4 * 8 * 12 * 128 * 128 * 64;
  CHECK(linear == 14'495'514'624);
  CHECK(attention == 402'653'184);
  const int64_t head = 2 * (2 * 8 * 768 * 768 + 2 * 8 * 2 * 768);
  CHECK(MatrixFlops(Frozen(6), Phase::kBackward) ==
        6 * 2 * (linear + attention) + head);
  CHECK(MatrixFlops(Frozen(12), Phase::kBackward) == head);
  CHECK(MatrixFlops(Frozen(6), Phase::kForward) ==
        MatrixFlops(BertToTrain(), Phase::kForward));
}

TEST_CASE("blocks that are computed again pass forward once more each") {
  Workload w = BertToTrain();
  const auto backward = [&] { return MatrixFlops(w, Phase::kBackward); };
  const int64_t none = backward();
  w.gradient_checkpointing = true;
  const int64_t all = backward();
  CHECK(BlocksComputedAgain(w) == 12);
  for (const int64_t blocks : {1, 5, 12}) {
    CAPTURE(blocks);
    w.checkpointed_blocks = blocks;
    CHECK(BlocksComputedAgain(w) == blocks);
    CHECK(12 * (backward() - none) == blocks * (all - none));
  }
  // As many of the blocks that have a backward pass.
  w.checkpointed_blocks = 8;
  w.trainable.frozen_layers = 10;
  CHECK(BlocksComputedAgain(w) == 2);
  Validate(w);
  w.gradient_checkpointing = false;
  CHECK_THROWS_WITH_AS(
      Validate(w),
      "checkpointed_blocks: expected gradient_checkpointing beside it, got 8",
      InputError);
  w.gradient_checkpointing = true;
  w.checkpointed_blocks = 13;
  CHECK_THROWS_AS(Validate(w), InputError);
  w = BertToTrain();
  w.architecture = FindArchitecture("transformer-base");
  w.gradient_checkpointing = true;
  w.checkpointed_blocks = 1;
  CHECK_THROWS_AS(Validate(w), InputError);
}

TEST_CASE("model FLOPs of a step are three forward passes, or what trains") {
  Workload w = BertToTrain();
  CHECK(StepModelFlops(w) == 3 * ForwardModelFlops(w));
  w.accumulation = 4;
  CHECK(MicroBatchModelFlops(w) == 3 * ForwardModelFlops(w));
  CHECK(StepModelFlops(w) == 4 * 3 * ForwardModelFlops(w));
  w.work = Work::kForward;
  CHECK(StepModelFlops(w) == 4 * ForwardModelFlops(w));
  w = BertToTrain();
  w.trainable.frozen_layers = 12;
  CHECK(StepModelFlops(w) ==
        MatrixFlops(w, Phase::kForward) + MatrixFlops(w, Phase::kBackward));
  // Recomputed products are not the model's.
  Workload again = Frozen(6);
  again.gradient_checkpointing = true;
  again.stack.attention = Attention::kFlash;
  CHECK(StepModelFlops(again) == StepModelFlops(Frozen(6)));
  again.gradient_checkpointing = false;
  again.operation_checkpointing = true;
  CHECK(StepModelFlops(again) == StepModelFlops(Frozen(6)));
  again.operation_checkpointing = false;
  again.attention_checkpointing = true;
  CHECK(StepModelFlops(again) == StepModelFlops(Frozen(6)));
}

TEST_CASE("the update visits what trains") {
  Workload w = BertLora(8);
  w.optimizer = {OptimizerKind::kAdamW, OptimizerImplementation::kForLoop};
  std::vector<Kernel> kernels;
  AppendOptimizerKernels(w, kernels);
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].launches == 8 * 50);
}

TEST_CASE("gradients and state are of what trains, weights of all") {
  const MemorySurroundings none;
  Workload full = BertToTrain();
  full.optimizer = {OptimizerKind::kAdamW, OptimizerImplementation::kFused};
  Workload lora = full;
  lora.trainable = BertLora(8).trainable;
  const MemoryEstimate m = EstimateMemory(lora, none);
  CHECK(m.Of("parameters").base() ==
        4.0 *
            static_cast<double>(TotalParameters(full.architecture) + 294'912));
  CHECK(m.Of("optimizer state").base() == 2 * 4.0 * 296'450);
  CHECK(m.total() < EstimateMemory(full, none).total());
  // Frozen halves keep half of the blocks' activations, and none of the
  // embeddings'.
  Workload half = full;
  half.trainable.frozen_layers = 6;
  const Bytes<> head_and_blocks =
      Byte(6.0 * static_cast<double>(LayerActivationBytes(half)));
  CHECK(EstimateMemory(half, none).Of("activations").base() ==
        head_and_blocks.base());
}

// What one block keeps in fp32 without dropout's changes: x 4 B for the
// adapters of query and value, but neither context, nor the input of the
// feed-forward, nor its activation's result (h + h + i elements), and X A
// twice.
TEST_CASE("a frozen matrix keeps no input") {
  const int64_t tokens = 1024;
  const int64_t saved = tokens * (768 + 768 + 3072) * 4;
  const int64_t inner = 2 * tokens * 8 * 4;
  CHECK(LayerActivationBytes(BertToTrain()) -
            LayerActivationBytes(BertLora(8)) ==
        saved - inner);
}

TEST_CASE("what trains is checked") {
  Workload w = Frozen(13);
  CHECK_THROWS_WITH_AS(Validate(w),
                       "trainable.frozen_layers: expected 0 to 12, the layers "
                       "of bert-base-uncased, got 13",
                       InputError);
  w = Frozen(12);
  w.architecture.head = Head::kNone;
  w.architecture.pooler = false;
  CHECK_THROWS_WITH_AS(Validate(w),
                       "trainable.frozen_layers: expected something left to "
                       "train above the frozen layers of bert-base-uncased, "
                       "got 12 of 12",
                       InputError);
  w = BertLora(8);
  w.trainable.frozen_layers = 1;
  CHECK_THROWS_AS(Validate(w), InputError);
  w = BertLora(8);
  w.trainable.lora = {};
  CHECK_THROWS_AS(Validate(w), InputError);
  LoraMatrices matrices;
  CHECK_THROWS_WITH_AS(
      AddLoraMatrix("valeu", matrices),
      "unknown matrix \"valeu\"; did you mean \"value\"?; known: query, key, "
      "value, output, attention_gate, feed_forward_gate, feed_forward_in, "
      "feed_forward_out, query_down, query_up, key_value_down, key_value_up, "
      "state_space_in, state_space_out, delta_rule_in, delta_rule_gate, "
      "delta_rule_write, delta_rule_decay, delta_rule_out, convolution_in, "
      "convolution_out, expert_latent_in, expert_latent_out, layer_gate, "
      "layer_projection, layer_embeddings",
      InputError);
}

}  // namespace trainfare::model
