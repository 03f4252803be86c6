// Experts of a latent width, and a block that predicts tokens further and is
// used again for each: Nemotron 3 Super and Ultra. docs/models/state_spaces.md
// works the numbers.

#include <doctest/doctest.h>

#include <cstdint>
#include <string_view>

#include "model/activations.h"
#include "model/architecture.h"
#include "model/kernels.h"
#include "model/presets.h"
#include "model/sharding.h"
#include "model/split.h"
#include "model/trainable.h"
#include "model/transients.h"
#include "tests/model/decoder_workloads.h"
#include "tests/model/refusal.h"
#include "tests/model/step_kernels.h"
#include "tests/near.h"

namespace trainfare::model {
namespace {

// Super: 22 of 512 experts of 2688 a token, on rows of 1024, and one of 5376.
constexpr int64_t kSuperHidden = 4096;
constexpr int64_t kSuperLatent = 1024;
constexpr int64_t kExpertInner = 2688;
constexpr int64_t kRoutedExperts = 512LL * 2 * kSuperLatent * kExpertInner;
constexpr int64_t kExpertBlock =
    kSuperHidden * 512 + kRoutedExperts + 2 * kSuperHidden * kSuperLatent +
    2 * kSuperHidden * 2 * kExpertInner + kSuperHidden;
constexpr int64_t kAttentionBlock =
    2 * kSuperHidden * kSuperHidden + 2 * kSuperHidden * 256 + kSuperHidden;
constexpr BlockParts kOfExperts{Mixer::kNone, FeedForwardKind::kExperts};

Workload Super(int64_t length) {
  return Narrow("nemotron-3-super-120b-a12b", 1, length);
}

int64_t ListedParameters(const Architecture& a) {
  int64_t listed = 0;
  for (const ParameterTensor& tensor : ParameterTensorsOf(a)) {
    listed += tensor.elements;
  }
  return listed;
}

}  // namespace

// Transformers 5.24's NemotronHForCausalLM has as many, of which the file's
// config.json has the dimensions.
TEST_CASE("parameters of experts of a latent width, by hand") {
  CHECK(kExpertBlock == 2'873'102'336);
  const Architecture& a = FindArchitecture("nemotron-3-super-120b-a12b");
  CHECK(TotalParameters(a) == 40 * 109'640'064LL + 40 * kExpertBlock +
                                  8 * kAttentionBlock +
                                  (2LL * 131072 + 1) * kSuperHidden);
  CHECK(TotalParameters(a) == 120'668'687'360);
  CHECK(TotalParameters(FindArchitecture("nemotron-3-ultra-550b-a55b")) ==
        549'308'968'960);
  CHECK(ListedParameters(a) == TotalParameters(a));
}

TEST_CASE("blocks that predict tokens further may be one") {
  Architecture a = FindArchitecture("nemotron-3-super-120b-a12b");
  CHECK(a.shared_next_token);
  const int64_t without = TotalParameters(a);
  // Two norms, the product of both inputs, attention, experts, a norm.
  const int64_t block = 3 * kSuperHidden + 2 * kSuperHidden * kSuperHidden +
                        kAttentionBlock + kExpertBlock;
  a.next_token_blocks = 2;
  CHECK(TotalParameters(a) == without + block);
  CHECK(ListedParameters(a) == without + block);
  Workload w = Super(256);
  w.architecture = a;
  w.parallel.shard = Shard::kFsdp;
  w.parallel.data = 8;
  const auto in_units = [&] {
    const ShardUnits units = ShardUnitsOf(w);
    int64_t elements = units.root.elements;
    for (const ShardedBlocks& alike : units.blocks) {
      elements += alike.count * alike.unit.elements;
    }
    CHECK(units.blocks.back().unit.elements == block);
    return elements;
  };
  CHECK(in_units() == without + block);
  // Others have weights each.
  w.architecture.shared_next_token = false;
  CHECK(TotalParameters(w.architecture) == without + 2 * block);
  CHECK(in_units() == without + 2 * block);

  // Either way each runs, and keeps what it keeps; what shares weights adds its
  // gradients to those that are there.
  Workload shared = Super(256);
  shared.architecture.next_token_blocks = 2;
  Workload apart = shared;
  apart.architecture.shared_next_token = false;
  using enum Phase;
  CHECK(SumsOf(shared, "next-token projection", kForward).launches == 2);
  CHECK(KeptByBlocks(shared) == KeptByBlocks(apart));
  CHECK(ExpandKernels(shared).Counts(kForward).matrix_flops ==
        ExpandKernels(apart).Counts(kForward).matrix_flops);
  const auto added = [](const Workload& of) {
    return SumsOf(of, "tied gradient add", kBackward).bytes;
  };
  const int64_t tensors = 3 + 1 + 5 + 512 * 2 + 6;
  CHECK(added(shared) - added(apart) == block / tensors * tensors * 3 * 2);
}

// What Megatron-LM counts, of rates that NVIDIA publishes of runs that predict
// two tokens further (Megatron-Bridge's summary of performance): half of all
// pairs.
TEST_CASE("FLOPs of a token of latent experts are near those published") {
  const auto of_token = [](std::string_view preset) {
    Workload w = Narrow(preset, 1, 8192);
    w.architecture.next_token_blocks = 2;
    return static_cast<double>(MicroBatchModelFlops(w, CountedPairs::kSeen)) /
           8192;
  };
  CHECK(of_token("nemotron-3-super-120b-a12b") == Near(827e12 / 9728, 0.02));
  CHECK(of_token("nemotron-3-ultra-550b-a55b") == Near(1281e12 / 3552, 0.02));
}

TEST_CASE("FLOPs of latent experts, by hand") {
  const Workload w = Super(256);
  using enum Phase;
  const auto flops = [&](KernelName name, Phase phase) {
    return SumsOf(w, name, phase).matrix_flops / 40;
  };
  const int64_t narrowing = 2LL * 256 * kSuperHidden * kSuperLatent;
  const int64_t expert = 2LL * 256 * 22 * kSuperLatent * kExpertInner;
  CHECK(flops("router", kForward) == 2 * 256 * kSuperHidden * 512);
  CHECK(flops("expert latent in", kForward) == narrowing);
  CHECK(flops("expert in", kForward) == expert);
  CHECK(flops("expert out", kForward) == expert);
  CHECK(flops("expert latent out", kForward) == narrowing);
  CHECK(flops("feed-forward in", kForward) ==
        2 * 256 * kSuperHidden * 2 * kExpertInner);
  CHECK(flops("expert input gradient", kBackward) == 2 * expert);
  CHECK(flops("expert weight gradient", kBackward) == 2 * expert);
  // Without a latent width experts take tokens as they are.
  Workload wide = w;
  wide.architecture.expert_latent = 0;
  CHECK(SumsOf(wide, "expert in", kForward).matrix_flops / 40 == 4 * expert);
  CHECK(SumsOf(wide, "expert latent in", kForward).launches == 0);
  CHECK(SumsOf(wide, "permute tokens", kForward).bytes ==
        4 * SumsOf(w, "permute tokens", kForward).bytes);
}

// In bf16: rows of 22 a token, what they come back as, and ReLU's result with
// its square; of the shared expert the same, and what it gave.
TEST_CASE("what latent experts keep, by hand") {
  Workload w = Super(256);
  w.stack.experts = ExpertKernels::kGrouped;
  const int64_t rows = 256 * 22;
  const auto inner = [](int64_t width) { return 2 * 2 * width; };
  const int64_t kept = 256 * 512 * 4 +
                       rows * (2 * 2 * kSuperLatent + inner(kExpertInner)) +
                       256 * 2 * kSuperLatent +
                       256 * (inner(2 * kExpertInner) + 2 * kSuperHidden) +
                       256 * (2 * kSuperHidden + 2 * kSuperHidden + 8);
  CHECK(LayerActivationBytes(w, kOfExperts) == kept);
}

TEST_CASE("ranks exchange rows of the latent width") {
  Workload w = Super(256);
  w.stack.fusion = Fusion::kMegatron;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  w.parallel.expert = 64;
  w.parallel.data = 64;
  CHECK(RefusalOf(w).empty());
  const Workload rank = OfStage(w, 0);
  const ExpertMessages messages = ExpertMessagesOf(w, rank);
  CHECK(messages.rows.base() == 256 * 22 * kSuperLatent * 2);
  CHECK(messages.forward == 2 * 40);
  // Products of the latent width are no expert's, whose ranks have 8 each.
  CHECK(ExpertParametersInAll(rank) == 40 * kRoutedExperts / 64);
  w.architecture.next_token_blocks = 2;
  CHECK(ExpertMessagesOf(w, OfStage(w, 0)).forward == 2 * 42);
  // With them attention and experts of each are summed where ranks divide.
  w.parallel.expert = 1;
  w.parallel.tensor = 2;
  CHECK(TensorMessagesOf(w, OfStage(w, 0)).forward == 88 + 2 * 2 + 1);
}

TEST_CASE("a latent width is of experts, and no wider than tokens") {
  Workload w = Super(256);
  CHECK(RefusalOf(w).empty());
  w.architecture.expert_latent = 4097;
  CHECK(RefusalOf(w) ==
        "model.expert_latent: expected a count of at most 4096, got 4097");
  w = Narrow("llama-3.1-8b", 1, 256);
  w.architecture.expert_latent = 16;
  CHECK(RefusalOf(w) ==
        "model.expert_latent: expected a count of at most 0, got 16");
}

}  // namespace trainfare::model
