// The stages of a pipeline have together what the model has.

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "model/architecture.h"
#include "model/presets.h"
#include "model/split.h"
#include "model/trainable.h"
#include "model/workload.h"
#include "tests/model/refusal.h"

namespace trainfare::model {
namespace {

Workload InStages(const Architecture& a, int64_t stages) {
  Workload w;
  w.architecture = a;
  w.sequence_length = 128;
  w.precision = Precision::kBf16;
  w.stack = {Fusion::kMegatron, Attention::kFlash};
  w.parallel.pipeline = stages;
  return w;
}

// What of a model is in each stage once, added up over them.
struct Together {
  int64_t parameters = 0;
  int64_t trained = 0;
  int64_t blocks = 0;
  int64_t of_experts = 0;
  int64_t windowed = 0;
  int64_t unrotated = 0;
  int64_t state_spaces = 0;

  friend bool operator==(const Together&, const Together&) = default;
};

void Add(const Workload& w, Together& sums) {
  const Architecture& a = w.architecture;
  sums.parameters += TotalParameters(a);
  sums.trained += TrainableParameters(w);
  sums.blocks += a.layers;
  sums.of_experts += a.expert_layers();
  sums.windowed += a.windowed_layers;
  sums.unrotated += a.unrotated_layers;
  sums.state_spaces += a.state_space_layers;
}

// The output layer of a last stage is a copy of the table that it is tied to.
int64_t TiedTable(const Workload& w) {
  const Architecture& a = w.architecture;
  const bool words = a.head == Head::kCausalLanguageModel ||
                     a.head == Head::kMaskedLanguageModel ||
                     a.head == Head::kPreTraining;
  return words && !a.untied_output ? a.vocabulary * a.word_width() : 0;
}

TEST_CASE("stages have all of a model together, of every preset") {
  int divided = 0;
  for (const Architecture& a : ArchitecturePresets()) {
    for (const int64_t stages : {2, 5, 8}) {
      const Workload w = InStages(a, stages);
      if (!RefusalOf(w).empty()) continue;
      ++divided;
      CAPTURE(a.name);
      CAPTURE(stages);
      Together whole;
      Add(w, whole);
      whole.parameters += TiedTable(w);
      whole.trained += TiedTable(w);
      Together sums;
      for (int64_t stage = 0; stage < stages; ++stage) {
        Add(OfStage(w, stage), sums);
      }
      CHECK(sums.parameters == whole.parameters);
      CHECK((sums == whole));
    }
  }
  CHECK(divided > 300);
}

// 48 blocks of which every second has experts, three a stage.
TEST_CASE("experts of every second block are in stages of three") {
  const Workload w = InStages(FindArchitecture("llama-4-maverick"), 16);
  CHECK(OfStage(w, 0).architecture.expert_layers() == 1);
  CHECK(OfStage(w, 1).architecture.expert_layers() == 2);
  CHECK(OfStage(w, 2).architecture.expert_layers() == 1);
}

TEST_CASE(
    "tables that train beside adapters are in the stages that have them") {
  for (const char* name : {"llama-3.1-8b", "llama-3.2-1b"}) {
    Workload w = InStages(FindArchitecture(name), 4);
    w.trainable.lora_rank = 16;
    w.trainable.lora.query = true;
    w.trainable.embeddings_beside_adapters = true;
    CAPTURE(name);
    REQUIRE(RefusalOf(w).empty());
    int64_t trained = 0;
    int64_t tensors = 0;
    for (int64_t stage = 0; stage < 4; ++stage) {
      const Workload part = OfStage(w, stage);
      trained += TrainableParameters(part);
      tensors += TrainableTensorCount(part);
      CHECK(std::ssize(TrainableTensorsOf(part)) == TrainableTensorCount(part));
    }
    const bool tied = TiedTable(w) > 0;
    CHECK(trained == TrainableParameters(w) + TiedTable(w));
    CHECK(tensors == TrainableTensorCount(w) + (tied ? 1 : 0));
  }
}

TEST_CASE("frozen blocks are in the stages that have them") {
  Workload w = InStages(FindArchitecture("llama-3.1-8b"), 4);
  w.trainable.frozen_layers = 10;
  REQUIRE(RefusalOf(w).empty());
  int64_t trained = 0;
  for (int64_t stage = 0; stage < 4; ++stage) {
    trained += TrainableParameters(OfStage(w, stage));
  }
  CHECK(trained == TrainableParameters(w));
  // A copy of a table in the last stage would train.
  w = InStages(FindArchitecture("llama-3.2-1b"), 2);
  w.trainable.frozen_layers = 8;
  CHECK(RefusalOf(w) ==
        "parallel.pipeline: expected 1 beside trainable.frozen_layers of a "
        "model whose output layer is its word embeddings, got 2");
}

// Two a block of the encoder, three of the decoder, one of the looked-up words;
// backward the head's in its place.
TEST_CASE("sums within layers of two sides, by hand") {
  Workload w;
  w.architecture = FindArchitecture("t5-base");
  w.sequence_length = 128;
  w.target_length = 128;
  w.parallel.tensor = 2;
  REQUIRE(RefusalOf(w).empty());
  const TensorMessages messages = TensorMessagesOf(w, OfStage(w, 0));
  CHECK(messages.forward == 2 * 12 + 3 * 12 + 1);
  CHECK(messages.backward == 2 * 12 + 3 * 12 + 1);
}

}  // namespace
}  // namespace trainfare::model
