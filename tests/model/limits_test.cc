#include "model/limits.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <string_view>

#include "model/error.h"
#include "model/kernels.h"
#include "model/memory.h"
#include "model/presets.h"
#include "model/validate.h"
#include "model/workload.h"
#include "tests/model/refusal.h"
#include "tests/near.h"

namespace trainfare::model {

TEST_CASE("a product beyond 64 bits is refused with its factors") {
  CHECK(CheckedProduct({3, 4, 5}, "counts") == 60);
  CHECK_THROWS_WITH_AS(
      CheckedProduct({int64_t{1} << 40, int64_t{1} << 40}, "counts"),
      "counts: expected a product within 64 bits, got 1099511627776 x "
      "1099511627776; is one mistyped?",
      InputError);
}

TEST_CASE("no time is below a kernel's or above an age's") {
  CHECK(IsPlausible(Second(1.0)));
  for (const double bad : {0.0,
                           -1.0,
                           1e308,
                           1e-57,
                           std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    CAPTURE(bad);
    CHECK_FALSE(IsPlausible(Second(bad)));
  }
}

// Each count within its own bound, and what they make beyond 64 bits.
TEST_CASE("sums of a step that would leave 64 bits are refused") {
  constexpr std::string_view kTooLarge = "expected a step of at most 2.3e+18";
  const auto refused = [&](const Workload& w) {
    return RefusalOf(w).find(kTooLarge) != std::string::npos;
  };
  Workload w;
  w.architecture = FindArchitecture("t5-small");
  w.batch = 1;
  w.sequence_length = w.target_length = 1;
  CHECK(RefusalOf(w).empty());
  Architecture& a = w.architecture;
  a.heads = kLargestDimension;
  a.head_size = 1;
  a.hidden = 1;
  a.relative_bias_each_block = true;
  a.layers = a.decoder_layers = kMostLayers;
  a.relative_buckets = 32;
  const bool few = refused(w);
  a.relative_buckets = kLargestDimension;
  CHECK_FALSE(few);
  CHECK(refused(w));
  // Scores of heads far wider than the model.
  w = {};
  a = FindArchitecture("llama-3.2-1b");
  a.hidden = a.intermediate = 1;
  a.heads = a.key_value_heads = 1;
  w.batch = 1;
  w.sequence_length = kLongestSequence;
  a.head_size = 64;
  CHECK_FALSE(refused(w));
  a.head_size = kLargestDimension;
  CHECK(refused(w));
  // Newton-Schulz iterations over matrices of one micro-batch.
  w = {};
  a = FindArchitecture("llama-3.2-1b");
  w.batch = 1;
  w.sequence_length = 1;
  a.hidden = a.intermediate = int64_t{1} << 19;
  CHECK_FALSE(refused(w));
  w.optimizer.kind = OptimizerKind::kMuon;
  CHECK(refused(w));
}

TEST_CASE("experts are so many in all blocks together") {
  Workload w;
  w.architecture = FindArchitecture("mixtral-8x7b");
  w.batch = 1;
  w.sequence_length = 1;
  w.architecture.experts = kMostExperts;
  CHECK(RefusalOf(w) ==
        "model.experts, those of all layers: expected a count of at most "
        "1048576, got 2097152");
}

TEST_CASE("no more tokens are predicted than there are") {
  Workload w;
  w.architecture = FindArchitecture("bert-base-uncased");
  w.architecture.head = Head::kMaskedLanguageModel;
  w.sequence_length = 128;
  w.predictions_per_sequence = 128;
  CHECK(RefusalOf(w).empty());
  w.predictions_per_sequence = 200;
  CHECK(RefusalOf(w) ==
        "predictions_per_sequence: expected a count of at most 128, got 200");
}

TEST_CASE("counts beyond any model are refused by name") {
  Workload w;
  w.architecture = FindArchitecture("bert-base-uncased");
  w.sequence_length = 128;
  w.batch = 10'000'000'000;
  CHECK_THROWS_WITH_AS(
      Validate(w),
      "batch: expected a count of at most 1048576, got 10000000000",
      InputError);
  w.batch = 8;
  w.architecture.vocabulary = int64_t{1} << 48;
  CHECK_THROWS_WITH_AS(Validate(w),
                       "model.vocabulary: expected a count of at most "
                       "16777216, got 281474976710656",
                       InputError);
  w.architecture.vocabulary = kLargestDimension;
  w.architecture.hidden = kLargestDimension;
  w.architecture.heads = 1;
  w.architecture.layers = kMostLayers;
  CHECK_THROWS_AS(Validate(w), InputError);
}

// What is let through is counted right: no sum of it wraps, which the
// sanitizers see, and the products are those of plain floating point.
TEST_CASE("extreme workloads are counted right or refused") {
  std::mt19937_64 random(20261122);
  const auto up_to = [&](int64_t most) {
    const double bits = std::uniform_real_distribution<double>(
        0.0, std::log2(static_cast<double>(most)))(random);
    return static_cast<int64_t>(std::exp2(bits));
  };
  constexpr std::array kPresets = {
      "bert-base-uncased", "gpt2", "transformer-base"};
  int64_t counted = 0;
  for (int i = 0; i < 2000; ++i) {
    Workload w;
    Architecture& a = w.architecture;
    a = FindArchitecture(kPresets[static_cast<size_t>(i) % kPresets.size()]);
    a.heads = up_to(1 << 10);
    a.hidden = a.heads * up_to(kLargestDimension / a.heads);
    a.intermediate = up_to(kLargestDimension);
    a.vocabulary = up_to(kLargestDimension);
    a.layers = up_to(256);
    if (a.decoder_layers > 0) a.decoder_layers = up_to(256);
    a.positions = 0;
    w.batch = up_to(kLargestBatch);
    w.sequence_length = up_to(kLongestSequence);
    w.gradient_checkpointing = i % 2 == 0;
    if (i % 5 == 0) {
      w.trainable.lora_rank = up_to(a.hidden);
      w.trainable.lora = {true, true, true, true, true, true};
    }
    try {
      Validate(w);
    } catch (const InputError&) {
      continue;
    }
    ++counted;
    const KernelList list = ExpandKernels(w);
    double flops = 0.0;
    for (const Segment& segment : list.segments) {
      for (int64_t k = segment.begin; k < segment.end; ++k) {
        const GemmExtents& g = list.kernels[static_cast<size_t>(k)].gemm;
        flops +=
            static_cast<double>(segment.repeat) * 2.0 *
            static_cast<double>(list.kernels[static_cast<size_t>(k)].launches) *
            static_cast<double>(g.batch) * static_cast<double>(g.m) *
            static_cast<double>(g.n) * static_cast<double>(g.k);
      }
    }
    double total = 0.0;
    for (const Phase phase :
         {Phase::kForward, Phase::kBackward, Phase::kOptimizer}) {
      const PhaseCounts counts = list.Counts(phase);
      CAPTURE(i);
      CHECK(counts.matrix_flops >= 0);
      CHECK(counts.vector_flops >= 0);
      CHECK(counts.bytes_read >= 0);
      CHECK(counts.bytes_written >= 0);
      total += static_cast<double>(counts.matrix_flops);
    }
    CHECK(total == Near(flops));
    CHECK(EstimateMemory(w, {}).total() > Bytes<>());
  }
  // Neither all of them nor none.
  CHECK(counted > 200);
  CHECK(counted < 1800);
}

}  // namespace trainfare::model
