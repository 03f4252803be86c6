// Parts of blocks that few models have: chunks of attention, norms of queries and
// keys that rotate, clipped queries, experts in every n-th block, logits by rows
// of unit length.

#include <doctest/doctest.h>

#include <cstdint>

#include "model/activations.h"
#include "model/architecture.h"
#include "model/kernels.h"
#include "model/presets.h"
#include "model/sharding.h"
#include "model/trainable.h"
#include "model/validate.h"
#include "tests/model/decoder_workloads.h"
#include "tests/model/refusal.h"
#include "tests/model/step_kernels.h"

namespace trainfare::model {
namespace {

// A dense block, and behind it turns of one without experts and one with.
Workload ByTurns() {
  Workload w = Narrow("mixtral-8x7b", 1, 64);
  w.architecture.layers = 5;
  w.architecture.dense_layers = 1;
  w.architecture.expert_period = 2;
  return w;
}

}  // namespace

// docs/models/llm.md, "Llama 4". Chunks of 4 of 10 tokens: 4 x 5 / 2 pairs twice,
// and 2 x 3 / 2 of the two that are left, beside 55 of a block that sees all.
TEST_CASE("attention within chunks, by hand") {
  Workload w = Narrow("llama-3.1-8b", 1, 10);
  w.architecture.layers = 2;
  w.architecture.window = 4;
  w.architecture.windowed_layers = 1;
  w.architecture.chunked_window = true;
  const auto pairs = [&] {
    return SumsOf(w, "flash attention", Phase::kForward).matrix_flops /
           (32 * 2 * 256);
  };
  CHECK(pairs() == 2 * 10 + 3 + 55);
  // As far as a window, or within one chunk, all are seen.
  w.sequence_length = 4;
  CHECK(pairs() == 2 * 10);
  w.architecture.family = Family::kEncoder;
  CHECK(RefusalOf(w) ==
        "model.chunked_window: expected false, or a decoder, got true");
  // Half a chunk on average: 8192 x 8193 / 2 pairs a chunk of Scout's 36 blocks.
  Workload scout = Narrow("llama-4-scout-17b-16e", 1, 32768);
  const int64_t chunked = 4LL * 8192 * 8193 / 2;
  const int64_t all = 32768LL * 32769 / 2;
  CHECK(SumsOf(scout, "flash attention", Phase::kForward).matrix_flops ==
        40LL * 2 * 256 * (36 * chunked + 12 * all));
}

// Of Scout's 48 blocks 36 rotate: a norm each of queries and of keys, which have
// no weights.
TEST_CASE("norms of queries and keys that rotate, by hand") {
  const Workload with = Narrow("llama-4-scout-17b-16e", 1, 64);
  Workload without = with;
  without.architecture.query_key_norm = QueryKeyNorm::kNone;
  Workload of_all = with;
  of_all.architecture.query_key_norm = QueryKeyNorm::kHead;
  CHECK(TotalParameters(with.architecture) ==
        TotalParameters(without.architecture));
  CHECK(TotalParameters(of_all.architecture) -
            TotalParameters(with.architecture) ==
        48 * 2 * 128);
  const auto launches = [](const Workload& w, KernelName name, Phase phase) {
    return SumsOf(w, name, phase).launches;
  };
  const auto more = [&](const Workload& w, KernelName name, Phase phase) {
    return launches(w, name, phase) - launches(without, name, phase);
  };
  CHECK(more(with, "rms norm", Phase::kForward) == 2 * 36);
  CHECK(more(with, "rms norm gradient", Phase::kBackward) == 2 * 36);
  CHECK(more(with, "rms norm weight gradient", Phase::kBackward) == 0);
  CHECK(more(of_all, "rms norm weight gradient", Phase::kBackward) == 2 * 48);
  // Operation by operation one product less, that by the weights.
  const auto eager = [&](Workload w) {
    w.stack.fusion = Fusion::kEager;
    return launches(w, "rms norm", Phase::kForward);
  };
  CHECK((eager(of_all) - eager(without)) / (2 * 48) -
            (eager(with) - eager(without)) / (2 * 36) ==
        1);
  Workload unrotated = with;
  unrotated.architecture.position_kind = PositionKind::kAlibi;
  CHECK(RefusalOf(unrotated) ==
        "model.query_key_norm: expected rotary positions beside rotated");
  // Liger keeps what a norm took, 40 and 8 heads of 128 in bf16; operation by
  // operation it is that in fp32, and of a norm with weights the quotient, too.
  const int64_t elements = 64 * (40 + 8) * 128;
  const auto kept = [](Workload w, Fusion fusion) {
    w.stack.fusion = fusion;
    return LayerActivationBytes(w);
  };
  CHECK(kept(with, Fusion::kLiger) - kept(without, Fusion::kLiger) ==
        2 * elements);
  CHECK(kept(with, Fusion::kEager) - kept(without, Fusion::kEager) ==
        4 * elements);
  CHECK(kept(of_all, Fusion::kEager) - kept(without, Fusion::kEager) ==
        6 * elements);
}

// DBRX: 48 heads of queries, 8 of keys and 8 of values, of 128, in one product.
TEST_CASE("clipped queries, keys and values, by hand") {
  Workload w = Narrow("dbrx", 1, 64);
  w.stack.fusion = Fusion::kEager;
  const int64_t elements = 64 * (48 + 8 + 8) * 128;
  const auto forward = [&] {
    return SumsOf(w, "clip projections", Phase::kForward);
  };
  const auto backward = [&] {
    return SumsOf(w, "clip gradient", Phase::kBackward);
  };
  // Read and written; the gradient reads what was clipped, too.
  CHECK(forward().launches == 40);
  CHECK(forward().bytes == 40 * elements * (2 + 2));
  CHECK(backward().launches == 40);
  CHECK(backward().bytes == 40 * elements * (2 + 2 + 2));
  w.architecture.separate_projections = true;
  CHECK(forward().launches == 3 * 40);
  CHECK(forward().bytes == 40 * elements * (2 + 2));
  w.architecture.separate_projections = false;
  const int64_t kept = LayerActivationBytes(w, true);
  w.architecture.clipped_projections = false;
  CHECK(forward().launches == 0);
  CHECK(kept - LayerActivationBytes(w, true) == 2 * elements);
  // A compiler clips as it reads, in both passes.
  w.stack.fusion = Fusion::kCompiled;
  const int64_t compiled = LayerActivationBytes(w, true);
  w.architecture.clipped_projections = true;
  CHECK(LayerActivationBytes(w, true) == compiled);
  CHECK(forward().launches + backward().launches == 0);
  w.architecture.latent_key_value = 512;
  CHECK(RefusalOf(w) ==
        "model.clipped_projections: expected false beside latent_key_value, "
        "got true");
}

// Baichuan 2 7B, 125696 words of 4096 in bf16: their lengths are read of 1.03 GB,
// which then are read and written; back six operations of so many read and
// written, two that read twice, one in place, a sum, and one by a mask of rows.
TEST_CASE("logits by rows of unit length, by hand") {
  Workload w = Narrow("llama-2-7b", 1, 64);
  w.architecture.vocabulary = 125'696;
  w.architecture.unit_output_rows = true;
  w.stack.fusion = Fusion::kEager;
  const int64_t words = 125'696;
  const int64_t matrix = words * 4096 * 2;
  const auto forward = [&] { return SumsOf(w, "unit rows", Phase::kForward); };
  const auto backward = [&] {
    return SumsOf(w, "unit rows gradient", Phase::kBackward);
  };
  CHECK(forward().launches == 3);
  CHECK(forward().bytes == 3 * matrix + 3 * words * 2);
  CHECK(backward().launches == 11);
  CHECK(backward().bytes ==
        6 * 2 * matrix + 2 * 3 * matrix + matrix + 4 * words * 2 + words);
  // A compiler has a sum and a pass each way.
  w.stack.fusion = Fusion::kCompiled;
  CHECK(forward().launches == 2);
  CHECK(backward().launches == 2);
  CHECK(backward().bytes == (2 + 3) * matrix + words * 2);
  // The rows stand until the gradient of what goes in is made.
  const int64_t kept = Activations(w).head;
  // A frozen matrix has no gradient.
  w.trainable.lora_rank = 8;
  w.trainable.lora.query = true;
  CHECK(forward().launches == 2);
  CHECK(backward().launches == 0);
  w.trainable = {};
  w.architecture.unit_output_rows = false;
  CHECK(kept - Activations(w).head == matrix);
  CHECK(forward().launches + backward().launches == 0);
  w.architecture.unit_output_rows = true;
  w.architecture.untied_output = false;
  CHECK(RefusalOf(w) ==
        "model.unit_output_rows: expected false, or a decoder that predicts "
        "tokens by untied_output, got true");
}

// By hand: attention 5120 (2 x 5120 + 2 x 1024) = 62,914,560 and two norms a
// block; every other block 3 x 5120 x 16384, or 128 experts and a shared one of 3
// x 5120 x 8192 beside a router of 5120 x 128; two tables, and a norm.
TEST_CASE("parameters of Llama 4 Maverick, by hand") {
  const int64_t attention = 62'914'560 + 2 * 5120;
  const int64_t dense = 3LL * 5120 * 16384;
  const int64_t expert = 3LL * 5120 * 8192;
  const int64_t experts = (128 + 1) * expert + 5120 * 128;
  const int64_t all =
      48 * attention + 24 * (dense + experts) + 2 * 5120LL * 202048 + 5120;
  CHECK(all == 400'711'848'960);
  const Architecture maverick = FindArchitecture("llama-4-maverick-17b-128e");
  CHECK(TotalParameters(maverick) == all);
  CHECK(maverick.expert_layers() == 24);
  CHECK_FALSE(maverick.has_experts(0));
  CHECK(maverick.has_experts(1));
}

TEST_CASE("blocks with experts by turns") {
  const Workload w = ByTurns();
  const Architecture& a = w.architecture;
  CHECK_NOTHROW(Validate(w));
  CHECK(a.expert_layers() == 2);
  const int64_t expert_of[] = {0, 0, 1, 0, 1};
  const int64_t dense = LayerActivationBytes(w);
  const int64_t expert = LayerActivationBytes(w, true);
  REQUIRE(dense != expert);
  int64_t elements = 0;
  int64_t kept = 0;
  for (int64_t block = 0; block < 5; ++block) {
    const bool has = expert_of[block] == 1;
    CHECK(a.has_experts(block) == has);
    CHECK(KeptByBlock(w, block) == (has ? expert : dense));
    kept += KeptByBlock(w, block);
  }
  CHECK(KeptByBlocks(w) == kept);
  CHECK(kept == 3 * dense + 2 * expert);
  int64_t routers = 0;
  for (const ParameterTensor& tensor : ParameterTensorsOf(a)) {
    elements += tensor.elements;
    if (tensor.module != "router") continue;
    ++routers;
    CHECK(expert_of[tensor.layer - 1] == 1);
  }
  CHECK(routers == 2);
  CHECK(elements == TotalParameters(a));
  CHECK(SumsOf(w, "router", Phase::kForward).launches == 2);
}

TEST_CASE("the lowest blocks of those by turns run again") {
  for (const auto& [blocks, routers] : {std::pair{2, 0}, {3, 1}, {5, 2}}) {
    Workload w = ByTurns();
    w.gradient_checkpointing = true;
    w.checkpointed_blocks = blocks;
    CHECK_NOTHROW(Validate(w));
    // The forward pass of those that run again stands in the pass backward.
    CHECK(SumsOf(w, "expert in", Phase::kBackward).matrix_flops ==
          routers * SumsOf(w, "expert in", Phase::kForward).matrix_flops / 2);
    const int64_t input = 64 * 4096 * 2;
    CHECK(KeptByBlocks(w) ==
          blocks * input + (3 - (blocks - routers)) * LayerActivationBytes(w) +
              (2 - routers) * LayerActivationBytes(w, true));
  }
  // Four blocks without a backward pass leave one with experts.
  Workload frozen = ByTurns();
  frozen.trainable.frozen_layers = 4;
  CHECK(KeptByBlocks(frozen) == LayerActivationBytes(frozen, true));
}

TEST_CASE("units of blocks by turns stand in model order and add up") {
  Workload w = ByTurns();
  w.parallel.data = 8;
  w.parallel.shard = Shard::kFsdp;
  w.trainable.lora_rank = 8;
  w.trainable.lora.output = w.trainable.lora.feed_forward_out = true;
  const ShardUnits units = ShardUnitsOf(w);
  REQUIRE(units.blocks.size() == 4);
  int64_t elements = units.root.elements;
  int64_t trained = units.root.trained;
  const int64_t counts[] = {2, 1, 1, 1};
  for (size_t i = 0; i < units.blocks.size(); ++i) {
    const ShardedBlocks& alike = units.blocks[i];
    CHECK(alike.count == counts[i]);
    CHECK(alike.unit.elements == units.blocks[i % 2].unit.elements);
    elements += alike.count * alike.unit.elements;
    trained += alike.count * alike.unit.trained;
  }
  CHECK(elements == TotalParameters(w.architecture) + AdapterParameters(w));
  CHECK(trained == TrainableParameters(w));
  w.architecture.expert_period = 0;
  CHECK(RefusalOf(w) ==
        "model.expert_period: expected a count of at least 1, got 0");
}

}  // namespace trainfare::model
