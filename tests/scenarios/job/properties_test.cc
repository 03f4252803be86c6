// Random questions: whatever the device, model and shape, an answer is finite,
// lies in its interval, is the same when asked again, and does not shrink when
// the work grows.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "calibrate/fit/fit_file.h"
#include "calibrate/fit/predictor.h"
#include "hardware/catalog/device.h"
#include "hardware/models/device_memory.h"
#include "hardware/models/memory_plan.h"
#include "model/activations.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/logits.h"
#include "model/memory.h"
#include "model/presets.h"
#include "scenarios/job/cluster.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/step_estimate.h"

namespace trainfare::scenarios {
namespace {

// Twice the batch or length may take so much less time: tiles that fit better.
constexpr double kTileTolerance = 0.03;
// Below so many rows a product has a tile or two, and a larger one may hide
// more of its traffic than it adds (docs/models/gpu.md, "Warps needed").
constexpr int64_t kRowsOfManyTiles = 1024;

// Rows of the smallest products of a step.
int64_t RowsOf(const model::Workload& workload) {
  const model::Architecture& a = workload.architecture;
  const int64_t experts = std::max<int64_t>(a.experts, 1);
  const int64_t chosen = std::max<int64_t>(a.experts_per_token, 1);
  return workload.tokens() * chosen / experts;
}

// Every device by its datasheet, and those with a shipped fit by it.
std::vector<calibrate::Predictor> AllPredictors() {
  const auto& catalog = hardware::DeviceCatalog::Shipped();
  std::vector<calibrate::Predictor> all;
  for (const hardware::Device& device : catalog.devices()) {
    all.emplace_back(device);
    const auto fit = std::filesystem::path(TRAINFARE_ROOT) / "calibrate/fits" /
                     (device.name + ".yaml");
    if (std::filesystem::exists(fit)) {
      all.emplace_back(device, calibrate::LoadFit(fit));
    }
  }
  return all;
}

class Questions {
 public:
  explicit Questions(uint64_t seed) : random_(seed) {}

  const calibrate::Predictor& Of(
      const std::vector<calibrate::Predictor>& predictors) {
    return predictors[Below(predictors.size())];
  }

  model::Workload Workload() {
    const auto presets = model::ArchitecturePresets();
    model::Workload workload;
    workload.architecture = presets[Below(presets.size())];
    workload.batch = Count(1024);
    workload.sequence_length =
        Count(std::min<int64_t>(workload.architecture.positions, 16384));
    workload.accumulation = Below(4) == 0 ? Count(32) : 1;
    workload.precision = Any({model::Precision::kFp32,
                              model::Precision::kTf32,
                              model::Precision::kFp16,
                              model::Precision::kBf16});
    workload.optimizer.kind = Any({model::OptimizerKind::kSgd,
                                   model::OptimizerKind::kAdamW,
                                   model::OptimizerKind::kAdan});
    workload.optimizer.implementation =
        Any({model::OptimizerImplementation::kForLoop,
             model::OptimizerImplementation::kMultiTensor,
             model::OptimizerImplementation::kFused});
    workload.stack.fusion = Any({model::Fusion::kEager,
                                 model::Fusion::kFused,
                                 model::Fusion::kLightSeq,
                                 model::Fusion::kCompiled});
    workload.stack.attention =
        Any({model::Attention::kMaterialised, model::Attention::kFlash});
    workload.stack.narrow_weights = Below(2) == 0;
    workload.work = Any({model::Work::kTraining,
                         model::Work::kForwardBackward,
                         model::Work::kForward});
    workload.gradient_checkpointing = Below(4) == 0;
    return workload;
  }

  int64_t Ranks() { return int64_t{1} << Below(4); }

 private:
  size_t Below(size_t end) { return random_() % end; }

  template <typename T>
  T Any(std::initializer_list<T> values) {
    return values.begin()[Below(values.size())];
  }

  // Even over the logarithm.
  int64_t Count(int64_t largest) {
    const double share = std::uniform_real_distribution<double>()(random_);
    return std::clamp<int64_t>(
        std::llround(std::pow(static_cast<double>(largest), share)),
        1,
        largest);
  }

  std::mt19937_64 random_;
};

std::string Words(const calibrate::Predictor& predictor,
                  const model::Workload& workload,
                  int64_t ranks) {
  return predictor.device().name + " (" +
         std::to_string(predictor.fit().provenance.observations) +
         " figures) x " + std::to_string(ranks) + ", " +
         workload.architecture.name + " " + std::to_string(workload.batch) +
         " x " + std::to_string(workload.sequence_length) + ", " +
         std::string(ToText(workload.precision)) + ", " +
         std::string(ToText(workload.stack.fusion)) + ", " +
         std::string(ToText(workload.stack.attention)) + ", " +
         std::string(ToText(workload.optimizer.implementation)) + ", " +
         std::string(ToText(workload.work));
}

// Absent: it is refused, for a reason.
std::optional<StepEstimate> Ask(const calibrate::Predictor& predictor,
                                const model::Workload& workload,
                                int64_t ranks) {
  try {
    const Cluster cluster =
        ClusterOf(predictor, ranks * (predictor.device().part_of ? 2 : 1));
    return EstimateStep(predictor, workload, cluster);
  } catch (const model::InputError& error) {
    const std::string reason = error.what();
    CHECK_FALSE(reason.empty());
    CHECK(reason.find('\n') == std::string::npos);
    return std::nullopt;
  }
}

void CheckSense(const StepEstimate& step) {
  CHECK(std::isfinite(ToSeconds(step.total())));
  CHECK(ToSeconds(step.total()) > 0);
  for (const Term& term : TermsOf(step)) {
    CHECK(std::isfinite(ToSeconds(term.time)));
    CHECK(ToSeconds(term.time) >= 0);
  }
  CHECK(step.low_factor > 0);
  CHECK(step.low_factor <= 1);
  CHECK(std::isfinite(step.high_factor));
  CHECK(step.high_factor >= 1);
}

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace

TEST_CASE("answers to random questions make sense") {
  // Repeat a finding with its seed; more questions find more.
  const uint64_t seed = FromEnvironment("TRAINFARE_PROPERTY_SEED", 20261122);
  const uint64_t count = FromEnvironment("TRAINFARE_PROPERTY_QUESTIONS", 1500);
  MESSAGE("seed " << seed);
  const std::vector<calibrate::Predictor> predictors = AllPredictors();
  Questions questions(seed);
  uint64_t answered = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const calibrate::Predictor& predictor = questions.Of(predictors);
    model::Workload workload = questions.Workload();
    const int64_t ranks = questions.Ranks();
    CAPTURE(Words(predictor, workload, ranks));
    const auto step = Ask(predictor, workload, ranks);
    if (!step) continue;
    ++answered;
    CheckSense(*step);
    const auto again = Ask(predictor, workload, ranks);
    REQUIRE(again.has_value());
    CHECK(again->total() == step->total());
    CHECK(again->high_factor == step->high_factor);

    const auto grown = [&](const char* what, const model::Workload& larger) {
      const auto more = Ask(predictor, larger, ranks);
      if (!more) return;
      CAPTURE(what);
      CHECK(ToSeconds(more->total()) >=
            ToSeconds(step->total()) * (1 - kTileTolerance));
      const auto surroundings =
          hardware::SurroundingsOf(predictor.device(), ranks);
      CHECK(EstimateMemory(larger, surroundings).total() >=
            EstimateMemory(workload, surroundings).total());
    };
    if (RowsOf(workload) < kRowsOfManyTiles) continue;
    model::Workload larger = workload;
    larger.batch *= 2;
    grown("batch", larger);
    larger = workload;
    larger.sequence_length *= 2;
    grown("length", larger);
    larger = workload;
    ++larger.accumulation;
    grown("accumulation", larger);
  }
  CHECK(answered > count / 4);
}

// docs/models/llm.md, "What a stack fuses": a step gets shorter by a token more
// only where the loss is made in chunks of twice as many rows, and so in half
// as many of them.
TEST_CASE("a token more shortens a step of liger only by fewer chunks") {
  constexpr double kLeastOfChunks = 0.5;
  constexpr double kLeast = 1 - 0.044;  // docs/models/gpu.md
  model::Workload workload;
  workload.architecture = model::FindArchitecture("llama-3.1-8b");
  workload.architecture.head = model::Head::kCausalLanguageModel;
  workload.precision = model::Precision::kBf16;
  workload.stack.fusion = model::Fusion::kLiger;
  workload.stack.attention = model::Attention::kFlash;
  workload.stack.narrow_weights = true;
  workload.trainable.lora_rank = 16;
  workload.trainable.lora.query = workload.trainable.lora.value = true;
  workload.gradient_checkpointing = true;
  int64_t shortened = 0;
  for (const char* name : {"a100_sxm4_80gb", "h100_sxm", "l4", "mi300x"}) {
    CAPTURE(name);
    const calibrate::Predictor predictor(
        hardware::DeviceCatalog::Shipped().Find(name));
    double before = 0;
    for (int64_t length = 2; length <= 600; ++length) {
      CAPTURE(length);
      workload.sequence_length = length;
      const double now = ToSeconds(predictor.PredictTime(workload).total());
      const auto chunk = [&](int64_t rows) {
        return model::LossChunk(workload.architecture, rows);
      };
      const bool larger = chunk(length) > chunk(length - 1);
      CHECK(now >= before * (larger ? kLeastOfChunks : kLeast));
      if (now < before) ++shortened;
      before = now;
    }
  }
  CHECK(shortened > 0);
}

}  // namespace trainfare::scenarios
