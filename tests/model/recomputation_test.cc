// Parts of a block that its backward pass computes again.

#include <doctest/doctest.h>

#include <cstdint>

#include "model/activations.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/memory.h"
#include "model/presets.h"
#include "model/validate.h"
#include "tests/model/decoder_workloads.h"

namespace trainfare::model {
namespace {

// Korthikanti et al. 2022: 5 q s / h of 34 + 5 q s / h bytes go, and the core
// runs once more.
TEST_CASE("attention's core computed again by itself") {
  Workload w = Llama8b(1, 512);
  w.architecture = FindArchitecture("gpt2");
  w.stack.attention = Attention::kMaterialised;
  w.stack.fusion = Fusion::kLightSeq;
  const int64_t kept = LayerActivationBytes(w);
  const KernelList before = ExpandKernels(w);
  w.attention_checkpointing = true;
  CHECK_NOTHROW(Validate(w));
  const int64_t scores = 12LL * 512 * 512;
  CHECK(kept - LayerActivationBytes(w) == 5 * scores);
  const KernelList after = ExpandKernels(w);
  CHECK(after.Counts(Phase::kBackward).matrix_flops -
            before.Counts(Phase::kBackward).matrix_flops ==
        12 * 2 * 2 * scores * 64);
  CHECK(after.Counts(Phase::kForward).matrix_flops ==
        before.Counts(Phase::kForward).matrix_flops);
  // Under flash attention there is next to nothing to gain.
  w.stack.attention = Attention::kFlash;
  const int64_t without = LayerActivationBytes(w);
  w.attention_checkpointing = false;
  CHECK(LayerActivationBytes(w) - without == 12 * 512 * 4);
}

// torchtitan's "selective op": of seven products of a block those of keys, the
// output and the feed-forward's input run again, attention's core does not.
TEST_CASE("every second operation computed again, by hand") {
  Workload w = Llama8b(1, 512);
  const KernelList before = ExpandKernels(w);
  w.operation_checkpointing = true;
  CHECK_NOTHROW(Validate(w));
  const KernelList after = ExpandKernels(w);
  CHECK(after.Counts(Phase::kBackward).matrix_flops -
            before.Counts(Phase::kBackward).matrix_flops ==
        32 * 512 * 159'383'552LL);
  CHECK(after.Counts(Phase::kForward).matrix_flops ==
        before.Counts(Phase::kForward).matrix_flops);
  // The block's input, queries, values, gate and output, attention's result
  // and a number a row of it.
  CHECK(LayerActivationBytes(w) ==
        512 * (2 * (4096 + 4096 + 1024 + 14336 + 4096 + 4096) + 4 * 32));
  w.gradient_checkpointing = true;
  CHECK_THROWS_AS(Validate(w), InputError);
  w.checkpointed_blocks = 16;
  CHECK_NOTHROW(Validate(w));
}

// FLOPs a token that run again of a workload's blocks, and bytes a token that
// its uppermost keeps.
struct SelectiveCounts {
  double flops;
  int64_t kept;
};
SelectiveCounts SelectiveOf(Workload w) {
  const auto backward = [&] {
    return ExpandKernels(w).Counts(Phase::kBackward).matrix_flops;
  };
  const int64_t tokens = w.tokens();
  const int64_t before = backward();
  w.operation_checkpointing = true;
  CHECK_NOTHROW(Validate(w));
  const bool experts = w.architecture.expert_layers() > 0;
  return {
      static_cast<double>(backward() - before) / static_cast<double>(tokens),
      LayerActivationBytes(w, experts) / tokens};
}

// Grouped products of experts run again, as does the router's, which is not
// counted: keys and the output, 4096 x (1024 + 4096), the router, and two
// experts. The block's input, queries, values, context and its sums are kept.
TEST_CASE("every second operation of experts, by hand") {
  Workload w = Llama8b(1, 512);
  w.architecture = FindArchitecture("mixtral-8x7b");
  w.architecture.layers = 1;
  w.stack.experts = ExpertKernels::kGrouped;
  const SelectiveCounts grouped = SelectiveOf(w);
  CHECK(grouped.flops ==
        2 * (4096.0 * (1024 + 4096 + 8) + 2 * 3 * 4096.0 * 14'336));
  CHECK(grouped.kept == 2 * (4096 + 4096 + 1024 + 4096) + 4 * 32);
  // Of experts in turn, 128 rows each, three products behind the fourth: the
  // first's gate and last, the second's input, and so on: half of 2 rows a token.
  w.stack.experts = ExpertKernels::kSplit;
  const SelectiveCounts turns = SelectiveOf(w);
  CHECK(turns.flops == 2 * (4096.0 * (1024 + 4096 + 8) + 3 * 4096.0 * 14'336));
  CHECK(turns.kept == grouped.kept + 2 * (14'336 + 14'336 + 4096));
}

// DeepSeek-V2-Lite: queries, the latent's upper product, which makes keys and
// values, and then gate and output of what all tokens share are kept.
TEST_CASE("every second operation of latent attention, by hand") {
  Workload w = Llama8b(1, 512);
  w.architecture = FindArchitecture("deepseek-v2-lite");
  w.architecture.layers = 1;
  w.architecture.dense_layers = 0;
  w.stack.experts = ExpertKernels::kGrouped;
  const SelectiveCounts counts = SelectiveOf(w);
  CHECK(counts.kept ==
        2 * (2048 + 16 * 192 + 16 * (128 + 128) + 16 * 128 + 2816 + 2048) +
            4 * 16);
  CHECK(counts.flops ==
        2 * (2048.0 * (512 + 64) + 16 * 128 * 2048.0 + 2048 * 64.0 +
             6 * 3 * 2048.0 * 1408 + 2048 * 2816.0));
}

// Three products of an adapted matrix, itself, A and B, run one after another.
// Of 8B with rank 16 on queries and values, the queries' own and B, the values'
// own and B, gate and the last are kept.
TEST_CASE("every second operation beside adapters, by hand") {
  Workload w = Llama8b(1, 512);
  w.architecture.layers = 1;
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = w.trainable.lora.value = true;
  const SelectiveCounts counts = SelectiveOf(w);
  CHECK(counts.kept ==
        2 * (4096 + 4096 + 4096 + 1024 + 1024 + 14'336 + 4096 + 4096) + 4 * 32);
  CHECK(counts.flops == 2 * (16 * 4096.0 + 4096 * 1024.0 + 16 * 4096.0 +
                             4096 * 4096.0 + 4096 * 14'336.0));
  // What is at work has all that it keeps otherwise.
  Workload whole = w;
  w.operation_checkpointing = true;
  CHECK(Activations(w).anew + LayerActivationBytes(w) ==
        LayerActivationBytes(whole));
}

TEST_CASE("operations computed again where nobody says which") {
  Workload w = Llama8b(1, 512);
  w.operation_checkpointing = true;
  w.architecture.next_token_blocks = 1;
  CHECK_THROWS_WITH_AS(Validate(w),
                       "operation_checkpointing: expected false with "
                       "next-token blocks, got true; hint: "
                       "gradient_checkpointing",
                       InputError);
}

}  // namespace
}  // namespace trainfare::model
