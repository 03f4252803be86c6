#include "model/split.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "model/activations.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/logits.h"
#include "model/memory.h"
#include "model/optimizer_kernels.h"
#include "model/parallel.h"
#include "model/presets.h"
#include "model/rounding.h"
#include "model/sharding.h"
#include "model/trainable.h"
#include "model/validate.h"
#include "model/workload.h"
#include "tests/model/step_kernels.h"
#include "tests/near.h"

namespace trainfare::model {
namespace {

// Llama 3.1 8B over 4 x 2 ranks, as docs/models/splits.md works it.
Workload Divided() {
  Workload w;
  w.architecture = FindArchitecture("llama-3.1-8b");
  w.batch = 1;
  w.sequence_length = 4096;
  w.accumulation = 8;
  w.precision = Precision::kBf16;
  w.stack = {Fusion::kMegatron, Attention::kFlash};
  w.stack.narrow_weights = true;
  w.parallel.tensor = 4;
  w.parallel.pipeline = 2;
  return w;
}

std::vector<int64_t> BlocksOf(const Workload& w) {
  std::vector<int64_t> blocks;
  for (int64_t stage = 0; stage < w.parallel.pipeline; ++stage) {
    blocks.push_back(BlocksOfStage(w, stage));
  }
  return blocks;
}

TEST_CASE("ranks of a layer have parts of heads, inner width and vocabulary") {
  const Workload w = Divided();
  Validate(w);
  CHECK(RanksOfModel(w.parallel) == 8);
  const Workload first = OfStage(w, 0);
  const Architecture& a = first.architecture;
  CHECK(a.hidden == 4096);
  CHECK(a.heads == 8);
  CHECK(a.key_heads() == 2);
  CHECK(a.query_head_size() == 128);
  CHECK(a.intermediate == 3584);
  CHECK(a.vocabulary == 32064);
  CHECK(a.layers == 16);
  CHECK(a.looks_up_tokens);
  CHECK_FALSE(PredictsVocabulary(first));
  const Workload last = OfStage(w, 1);
  CHECK_FALSE(last.architecture.looks_up_tokens);
  CHECK(PredictsVocabulary(last));
  // By hand: a block 54,534,144, a table 131,334,144, the last norm 4096.
  CHECK(TotalParameters(a) == 16 * 54'534'144 + 131'334'144);
  CHECK(TotalParameters(last.architecture) ==
        16 * 54'534'144 + 131'334'144 + 4096);
  // All ranks together have the whole, and norms four times.
  CHECK(4 * (TotalParameters(a) + TotalParameters(last.architecture)) -
            3 * (32 * 8192 + 4096) ==
        TotalParameters(w.architecture));
  CHECK(RanksOfModel(first.parallel) == 1);
}

TEST_CASE(
    "of ranks that divide a model those of whole ones keep what they share") {
  const Parallel whole{.data = 16,
                       .shard = Shard::kFsdp,
                       .replicate = 2,
                       .reshard_after_forward = false,
                       .offload = Offload::kParameters,
                       .offload_activations = true,
                       .embedding_units = true};
  Parallel divided = whole;
  divided.tensor = divided.context = divided.expert = divided.pipeline = 2;
  divided.sequence = divided.expert_overlap = true;
  divided.tensor_overlap = TensorOverlap::kProducts;
  divided.expert_tensor = 1;
  divided.expert_exchange = ExpertExchange::kByHost;
  divided.chunks = 2;
  divided.stages = StageCut::kCost;
  CHECK(divided.OfWholeModels() == whole);
  CHECK(Parallel{.tensor = 4}.OfWholeModels() == Parallel{});
}

TEST_CASE("each rank has its part of what a model takes on an average") {
  CHECK(OfEachRank(24.0, Parallel{.tensor = 2, .context = 3, .pipeline = 4}) ==
        1.0);
  // Copies have all of it, and experts are of ranks with the same weights.
  CHECK(OfEachRank(24.0, Parallel{.data = 8, .expert = 8}) == 24.0);
}

TEST_CASE("products of all ranks are those of the whole") {
  Workload w = Divided();
  int64_t flops = 0;
  for (int64_t stage = 0; stage < 2; ++stage) {
    flops +=
        4 *
        ExpandKernels(OfStage(w, stage)).Counts(Phase::kForward).matrix_flops;
  }
  w.parallel = {};
  CHECK(flops == ExpandKernels(w).Counts(Phase::kForward).matrix_flops);
}

TEST_CASE("ranks that divide tokens, too, norm a part of them") {
  Workload w = Divided();
  const auto read = [](const Workload& of) {
    int64_t bytes = 0;
    for (const Kernel& kernel : ExpandKernels(OfStage(of, 0)).kernels) {
      if (kernel.name == "rms norm") bytes += kernel.bytes();
    }
    return bytes;
  };
  const int64_t whole = read(w);
  w.parallel.sequence = true;
  CHECK(4 * read(w) == whole);
  CHECK(LayerActivationBytes(OfStage(w, 0)) <
        LayerActivationBytes(OfStage(Divided(), 0)));
}

TEST_CASE("stages are cut by blocks, with tables, or by cost") {
  Workload w = Divided();
  w.parallel.tensor = 1;
  w.parallel.pipeline = 12;
  w.architecture.layers = 70;
  const std::vector<int64_t> fewer_at_ends = {
      5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5};
  CHECK(BlocksOf(w) == fewer_at_ends);
  // 70 and two tables are twelve times six (BLOOM's own cut).
  w.parallel.stages = StageCut::kTables;
  CHECK(BlocksOf(w) == fewer_at_ends);
  // A head over 131,072 tokens is worth four blocks of 67,108,864 parameters:
  // five each, and one beside it (nanotron's Llama of 1.3 B).
  Architecture& a = w.architecture;
  a.layers = 16;
  a.hidden = 2048;
  a.heads = a.key_value_heads = 32;
  a.intermediate = 8192;
  a.vocabulary = 131'072;
  w.parallel.pipeline = 4;
  w.parallel.stages = StageCut::kCost;
  CHECK(BlocksOf(w) == std::vector<int64_t>{5, 5, 5, 1});
  w.parallel.stages = StageCut::kBlocks;
  CHECK(BlocksOf(w) == std::vector<int64_t>{4, 4, 4, 4});
}

TEST_CASE(
    "what does not divide is one block more, of stages between the ends") {
  Workload w = Divided();
  w.parallel.tensor = 1;
  w.architecture.layers = 32;
  w.parallel.pipeline = 5;
  CHECK(BlocksOf(w) == std::vector<int64_t>{6, 7, 6, 7, 6});
  w.architecture.layers = 80;
  w.parallel.pipeline = 3;
  CHECK(BlocksOf(w) == std::vector<int64_t>{27, 27, 26});
  for (w.architecture.layers = 2; w.architecture.layers < 130;
       ++w.architecture.layers) {
    for (w.parallel.pipeline = 2;
         w.parallel.pipeline <= std::min<int64_t>(w.architecture.layers, 24);
         ++w.parallel.pipeline) {
      const int64_t layers = w.architecture.layers;
      const int64_t stages = w.parallel.pipeline;
      CAPTURE(layers);
      CAPTURE(stages);
      w.parallel.stages = StageCut::kBlocks;
      const std::vector<int64_t> blocks = BlocksOf(w);
      const int64_t fewest = *std::min_element(blocks.begin(), blocks.end());
      const int64_t most = *std::max_element(blocks.begin(), blocks.end());
      CHECK(fewest == layers / stages);
      CHECK(most == CeilDivide(layers, stages));
      CHECK(blocks.back() == fewest);
      CHECK(blocks.front() == (layers % stages == stages - 1 ? most : fewest));
      CHECK(std::accumulate(blocks.begin(), blocks.end(), int64_t{0}) ==
            layers);
      // Tables are a block each at both ends.
      w.parallel.stages = StageCut::kTables;
      std::vector<int64_t> beside = BlocksOf(w);
      if (layers < 2 * stages) continue;  // stages of a block at least
      ++beside.front();
      ++beside.back();
      CHECK(*std::max_element(beside.begin(), beside.end()) ==
            CeilDivide(layers + 2, stages));
    }
  }
}

TEST_CASE("what ranks of a layer and stages send each other") {
  Workload w = Divided();
  const TensorMessages first = TensorMessagesOf(w, OfStage(w, 0));
  CHECK(first.hidden.base() == 32.0 * 1024 * 1024);
  CHECK(first.forward == 2 * 16 + 1);
  CHECK(first.again == 0);
  CHECK(first.backward == 2 * 16);
  const TensorMessages last = TensorMessagesOf(w, OfStage(w, 1));
  CHECK(last.forward == 2 * 16);
  CHECK(last.backward == 2 * 16 + 1);
  CHECK(SentBetweenStages(w).base() == 32.0 * 1024 * 1024);
  w.parallel.sequence = true;
  CHECK(SentBetweenStages(w).base() == 8.0 * 1024 * 1024);
  w.gradient_checkpointing = true;
  CHECK(TensorMessagesOf(w, OfStage(w, 1)).again == 2 * 16);
  w.parallel.tensor = 1;
  w.parallel.sequence = false;
  CHECK(TensorMessagesOf(w, OfStage(w, 0)).forward == 0);
}

TEST_CASE("ranks that exchange tokens gather all copies for parts of experts") {
  Workload w = Divided();
  w.architecture = FindArchitecture("mixtral-8x7b");
  w.parallel.tensor = 2;
  w.parallel.pipeline = 1;
  w.parallel.expert = 4;
  w.parallel.sequence = true;
  // Of a block one of attention and two of a token's two experts.
  CHECK(TensorMessagesOf(w, OfStage(w, 0)).forward == 32 * 3 + 1);
  CHECK(TensorMessagesOf(w, OfStage(w, 0)).backward == 32 * 3 + 1);
  w.gradient_checkpointing = true;
  CHECK(TensorMessagesOf(w, OfStage(w, 0)).again == 32 * 3);
  // All ranks of a layer have the same tokens.
  w.parallel.sequence = false;
  CHECK(TensorMessagesOf(w, OfStage(w, 0)).forward == 32 * 2 + 1);
  // Experts are whole.
  w.parallel.sequence = true;
  w.parallel.expert_tensor = 1;
  CHECK(TensorMessagesOf(w, OfStage(w, 0)).forward == 32 + 1);
}

// DeepSeek-V3's ranks of a layer make 1536 and 576 numbers of an eighth of the
// tokens each, and queries of all of them for 16 of 128 heads.
TEST_CASE("ranks that divide tokens make latents of their own") {
  Workload w = Divided();
  w.architecture = FindArchitecture("deepseek-v3");
  w.parallel = {.tensor = 8, .sequence = true, .expert = 8};
  const auto flops = [&](KernelName name) {
    return SumsOf(OfStage(w, 0), name, Phase::kForward).matrix_flops;
  };
  const int64_t blocks = w.architecture.blocks();
  CHECK(flops("query down projection") == blocks * 2 * 512 * 7168 * 1536);
  CHECK(flops("latent projection") == blocks * 2 * 512 * 7168 * 576);
  CHECK(flops("query up projection") == blocks * 2 * 4096 * 1536 * 16 * 192);
  w.parallel.sequence = false;
  CHECK(flops("query down projection") == blocks * 2 * 4096 * 7168 * 1536);
}

TEST_CASE("the first stage and the last sum the gradient of one table") {
  Workload w = Divided();
  CHECK(SummedOfTiedTable(w) == Bytes<>());
  w.architecture.untied_output = false;
  CHECK(SummedOfTiedTable(w) == Byte(32'064.0 * 4096 * 2));
  w.optimizer.wide_gradients = true;
  CHECK(SummedOfTiedTable(w) == Byte(32'064.0 * 4096 * 4));
  w.parallel.pipeline = 1;
  CHECK(SummedOfTiedTable(w) == Bytes<>());
}

// Sequences of 16,384 tokens over four ranks, as docs/models/splits.md works
// them.
Workload DividedSequences() {
  Workload w = Divided();
  w.sequence_length = 16'384;
  w.parallel.context = 4;
  return w;
}

TEST_CASE("ranks of a sequence have parts of its tokens, and whole weights") {
  Workload w = DividedSequences();
  w.parallel.data = 2;
  Validate(w);
  CHECK(RanksOfModel(w.parallel) == 32);
  CHECK(PartsOfWeights(w.parallel) == 8);
  CHECK(CopiesOf(w.parallel) == 2);
  CHECK(RanksThatSum(w.parallel) == 8);
  const Workload first = OfStage(w, 0);
  Validate(first);
  CHECK(first.sequence_length == 4096);
  CHECK(first.key_length() == 16'384);
  CHECK(first.parallel.data == 8);
  CHECK(TotalParameters(first.architecture) ==
        TotalParameters(OfStage(Divided(), 0).architecture));
  // Activations are those of so many tokens.
  CHECK(Activations(first).kept == Activations(OfStage(Divided(), 0)).kept);
  // State is divided over all of them.
  w.parallel.shard = Shard::kZero1;
  CHECK(ShardsOf(w.parallel) == 8);
  CHECK(ShardsOf(OfStage(w, 0).parallel) == 8);
  w.parallel.data = 1;
  CHECK(OverDevices(w.parallel, 32).shard == Shard::kZero1);
}

TEST_CASE("products of ranks of a sequence are those of the whole") {
  for (const Attention attention :
       {Attention::kFlash, Attention::kMaterialised}) {
    Workload w = DividedSequences();
    w.stack.attention = attention;
    w.parallel.tensor = w.parallel.pipeline = 1;
    const int64_t flops =
        4 * ExpandKernels(OfStage(w, 0)).Counts(Phase::kForward).matrix_flops;
    w.parallel = {};
    CHECK(flops == ExpandKernels(w).Counts(Phase::kForward).matrix_flops);
  }
}

TEST_CASE("scores of ranks of a sequence are those of the whole") {
  Workload w = DividedSequences();
  w.stack = {Fusion::kFused, Attention::kMaterialised};
  w.parallel.tensor = w.parallel.pipeline = 1;
  const int64_t part = LayerActivationBytes(OfStage(w, 0));
  w.parallel = {};
  CHECK(4 * part == LayerActivationBytes(w));
}

TEST_CASE("keys and values go round, by hand") {
  Workload w = DividedSequences();
  const ContextMessages first = ContextMessagesOf(w, OfStage(w, 0));
  // 4096 tokens, two heads of 128 of keys, and of values.
  CHECK(first.keys.base() == 4.0 * 1024 * 1024);
  CHECK(first.forward == 16);
  CHECK(first.backward == 2 * 16);
  // Of 8192.5 keys a query, 2 x 1024 columns, beside a block's matrices.
  const double core = 2048 * 8192.5;
  CHECK(first.core == Near(core / (core + 54'525'952), 1e-5));
  w.gradient_checkpointing = true;
  CHECK(ContextMessagesOf(w, OfStage(w, 0)).backward == 3 * 16);
  CHECK(SentBetweenStages(w).base() == 32.0 * 1024 * 1024);
  CHECK(TensorMessagesOf(w, OfStage(w, 0)).hidden.base() == 32.0 * 1024 * 1024);
  CHECK(ContextMessagesOf(Divided(), OfStage(Divided(), 0)).forward == 0);
}

// Mixtral 8x7B over eight ranks with an expert each, as docs/models/splits.md
// works it.
Workload DividedExperts() {
  Workload w;
  w.architecture = FindArchitecture("mixtral-8x7b");
  w.batch = 1;
  w.sequence_length = 4096;
  w.precision = Precision::kBf16;
  w.stack = {Fusion::kMegatron, Attention::kFlash};
  w.stack.narrow_weights = true;
  w.optimizer = {OptimizerKind::kAdamW, OptimizerImplementation::kFused};
  w.parallel.expert = 8;
  w.parallel.data = 8;
  return w;
}

TEST_CASE("ranks of experts have some of them, and score all") {
  Workload w = DividedExperts();
  Validate(w);
  CHECK(RanksOfModel(w.parallel) == 1);
  CHECK(DividesModel(w.parallel));
  const Workload rank = OfStage(w, 0);
  Validate(rank);
  const Architecture& a = rank.architecture;
  CHECK(a.experts == 1);
  CHECK(a.scored_experts() == 8);
  // By hand: an expert is 3 x 4096 x 14,336, of 32 blocks 5,637,144,576; all
  // else of the model is 1,605,636,096.
  CHECK(ExpertParametersInAll(rank) == 5'637'144'576);
  CHECK(TrainableExpertParameters(rank) == 5'637'144'576);
  CHECK(TotalParameters(a) == 5'637'144'576 + 1'605'636'096);
  CHECK(TotalParameters(w.architecture) == 8 * 5'637'144'576 + 1'605'636'096);
}

TEST_CASE("products of ranks of experts are those of as many tokens") {
  Workload w = DividedExperts();
  const auto flops = [](const Workload& of) {
    return ExpandKernels(of).Counts(Phase::kForward).matrix_flops;
  };
  const int64_t part = flops(OfStage(w, 0));
  w.parallel = {};
  CHECK(part == flops(w));
}

TEST_CASE("state of experts is divided over ranks with the same ones") {
  Workload w = DividedExperts();
  w.parallel.shard = Shard::kZero1;
  // Of eight ranks none has the same experts, of sixteen two have.
  CHECK(UpdatedByRank(OfStage(w, 0)) == 5'637'144'576 + 200'704'512);
  const MemorySurroundings none;
  const MemoryEstimate memory = EstimateMemory(OfStage(w, 0), none);
  CHECK(memory.Of("optimizer state").base() == 8.0 * 5'837'849'088);
  double updated = 0;
  std::vector<Kernel> kernels;
  AppendOptimizerKernels(OfStage(w, 0), kernels);
  for (const Kernel& kernel : kernels) {
    if (kernel.name != "optimizer") continue;
    updated += static_cast<double>(kernel.work_items * kernel.launches);
  }
  CHECK(updated == Near(5'837'849'088, 1e-8));
  w.parallel.data = 16;
  CHECK(UpdatedByRank(OfStage(w, 0)) == 2'818'572'288 + 100'352'256);
}

TEST_CASE("tokens that are sent to experts and back, by hand") {
  Workload w = DividedExperts();
  const ExpertMessages messages = ExpertMessagesOf(w, OfStage(w, 0));
  // Two rows a token, 4096 x 2 x 4096 x 2 B.
  CHECK(messages.rows.base() == 64.0 * 1024 * 1024);
  CHECK(messages.forward == 2 * 32);
  CHECK(messages.backward == 2 * 32);
  w.gradient_checkpointing = true;
  CHECK(ExpertMessagesOf(w, OfStage(w, 0)).backward == 4 * 32);
  w.load_factor = 1.5;
  CHECK(ExpertMessagesOf(w, OfStage(w, 0)).rows.base() == 96.0 * 1024 * 1024);
  w.parallel.tensor = 2;
  w.parallel.sequence = true;
  CHECK(ExpertMessagesOf(w, OfStage(w, 0)).rows.base() == 48.0 * 1024 * 1024);
}

// The same over ranks of a layer, too: 16 copies of a model that two ranks
// divide, each of eight experts whole on one of 32 ranks.
Workload FoldedExperts() {
  Workload w = DividedExperts();
  w.parallel.tensor = 2;
  w.parallel.sequence = true;
  w.parallel.expert_tensor = 1;
  w.parallel.data = 16;
  return w;
}

TEST_CASE("ranks of a layer have other experts each, whole ones") {
  const Workload w = FoldedExperts();
  Validate(w);
  const Workload rank = OfStage(w, 0);
  Validate(rank);
  CHECK(rank.architecture.experts == 1);
  CHECK(rank.architecture.expert_intermediate == 14336);
  CHECK(rank.architecture.heads == 16);
  CHECK(ExpertParametersInAll(rank) == 5'637'144'576);
  Workload as_layers = w;
  as_layers.parallel.expert_tensor = 0;
  CHECK(ExpertParametersInAll(OfStage(as_layers, 0)) == 5'637'144'576 / 2);
  // As many products, and as many rows to send: a rank's share of the tokens
  // to experts of whole width, or all of them to halves.
  const auto flops = [](const Workload& of) {
    return ExpandKernels(OfStage(of, 0)).Counts(Phase::kForward).matrix_flops;
  };
  // But for the router, 8 columns, which scores the share alone.
  CHECK(flops(as_layers) - flops(w) == int64_t{32} * 2 * 2048 * 4096 * 8);
  CHECK(ExpertMessagesOf(w, rank).rows.base() ==
        ExpertMessagesOf(as_layers, OfStage(as_layers, 0)).rows.base());
  const auto kept = [](const Workload& of) {
    return Activations(OfStage(of, 0)).kept;
  };
  CHECK(kept(w) < kept(as_layers));
}

TEST_CASE("behind experts of their own ranks of a layer sum nothing") {
  Workload w = FoldedExperts();
  const auto messages = [&] { return TensorMessagesOf(w, OfStage(w, 0)); };
  // Of 32 blocks those of attention, and the embeddings' and the logits'.
  CHECK(messages().forward == 32 + 1);
  CHECK(messages().backward == 32 + 1);
  w.gradient_checkpointing = true;
  CHECK(messages().again == 32);
  // Both copies of a token's hidden states are gathered for parts of experts.
  w.parallel.expert_tensor = 2;
  CHECK(messages().forward == 3 * 32 + 1);
  // Experts of every token are divided as layers.
  w.parallel.expert_tensor = 1;
  w.architecture.shared_intermediate = 2048;
  CHECK(messages().forward == 2 * 32 + 1);
}

TEST_CASE("state of experts is divided over ranks of layers, too") {
  Workload w = FoldedExperts();
  w.parallel.shard = Shard::kZero1;
  // 16 x 2 ranks have 8 experts of a block: four have the same one.
  const Workload rank = OfStage(w, 0);
  const int64_t rest =
      TotalParameters(rank.architecture) - ExpertParametersInAll(rank);
  CHECK(UpdatedByRank(rank) == 5'637'144'576 / 4 + (rest + 15) / 16);
  // What is gathered and summed of a block is so in two groups.
  const ShardUnit block = ShardUnitsOf(rank).blocks.front().unit;
  CHECK(block.of_experts == 3 * 4096 * 14336);
  const UnitParts parts = PartsOfUnit(block);
  CHECK(parts.experts.trained == 3 * 4096 * 14336);
  CHECK(parts.rest.elements + parts.experts.elements == block.elements);
  CHECK(parts.rest.of_experts == 0);
  CHECK(ShardUnitsOf(rank).root.of_experts == 0);
}

TEST_CASE("a stage keeps activations of all passes under way") {
  Workload w = Divided();
  w.parallel.pipeline = 4;
  const auto kept = [&](int64_t stage) {
    return Activations(OfStageInFlight(w, stage)).kept;
  };
  const int64_t one = Activations(OfStage(w, 1)).kept;
  // 1F1B: as many as there are stages from it on.
  CHECK(kept(1) == 3 * one);
  CHECK(kept(2) == 2 * one);
  // Two chunks of stage 1 of 4: 2 x 2 + 4 + 1 = 9 halves.
  w.parallel.chunks = 2;
  CHECK(2 * kept(1) == 9 * one);
  const MemorySurroundings none;
  CHECK(EstimateMemory(OfStageInFlight(w, 1), none).total() >
        EstimateMemory(OfStage(w, 1), none).total());
}

// As docs/models/splits.md works it.
TEST_CASE("under a pipeline what is shared is gathered and summed once") {
  Workload w = Divided();
  w.parallel.data = 2;
  w.parallel.shard = Shard::kZero2;
  Workload zero1 = w;
  zero1.parallel.shard = Shard::kZero1;
  // Gradients are whole until the last micro-batch, of either.
  CHECK(OfStage(w, 1) == OfStage(zero1, 1));

  w.stack.narrow_weights = false;
  w.stack.fusion = Fusion::kCompiled;
  w.parallel.shard = Shard::kFsdp;
  w.parallel.reshard_after_forward = false;
  Validate(w);
  const Workload last = OfStage(w, 1);
  CHECK(last.part.gathered_once);
  CHECK_FALSE(KeepsShareOfGradients(last));
  const MemoryEstimate memory = EstimateMemory(last, {});
  // Masters and AdamW's state are shares, weights and gradients are not.
  const double all = 1'003'884'544;
  CHECK(memory.Of("master weights") == Byte(4.0 * all / 2));
  CHECK(memory.Of("optimizer state") == Byte(8.0 * all / 2));
  CHECK(memory.Of("gathered parameters") == Byte(2.0 * all));
  CHECK(memory.Of("gradients") == Byte(4.0 * all));
  // Without a pipeline gradients are, too.
  w.parallel.pipeline = 1;
  w.parallel.tensor = 8;
  CHECK(KeepsShareOfGradients(OfStage(w, 0)));
}

TEST_CASE("sums in fp32 that products write need no narrow gradients beside") {
  Workload w = Divided();
  w.parallel.data = 4;
  w.parallel.shard = Shard::kZero1;
  w.optimizer.wide_gradients = true;
  w.optimizer.masters = Masters::kApart;
  MemorySurroundings among_ranks;
  among_ranks.communication_buckets = true;
  const auto memory = [&](Fusion stack) {
    w.stack.fusion = stack;
    return EstimateMemory(OfStage(w, 0), among_ranks);
  };
  // Of 1,003,880,448 parameters 4 bytes a gradient, and 2 of what is added.
  CHECK(memory(Fusion::kMegatron).Of("gradients").base() ==
        4.0 * 1'003'880'448);
  CHECK(memory(Fusion::kMegatron).Of("communication buckets").base() == 0.0);
  CHECK(memory(Fusion::kLightSeq).Of("communication buckets").base() ==
        2.0 * 1'003'880'448);
}

TEST_CASE("a model that ranks cannot divide so is refused") {
  const auto message = [](const Workload& w) -> std::string {
    try {
      Validate(w);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  Workload w = Divided();
  w.parallel.tensor = 3;
  CHECK(message(w) ==
        "parallel.tensor: expected a divisor of the 32 heads, got 3");
  w.parallel.tensor = 16;  // two ranks a head of keys
  CHECK(message(w).empty());
  w = Divided();
  w.parallel.context = 3;
  CHECK(message(w) ==
        "parallel.context: expected a divisor of the 4096 tokens of a "
        "sequence, got 3");
  w = Divided();
  w.architecture = FindArchitecture("bart-base");
  w.sequence_length = 512;
  w.parallel.pipeline = 1;
  w.parallel.context = 2;
  CHECK(message(w).starts_with("parallel.context: expected 1 of a model of"));
  w = Divided();
  w.parallel.expert = 2;
  CHECK(message(w) ==
        "parallel.expert: expected 1 in a model without experts, got 2; hint: "
        "model.experts");
  w = DividedExperts();
  w.parallel.expert = 3;
  w.parallel.data = 0;
  CHECK(message(w) ==
        "parallel.expert: expected a divisor of the 8 experts, got 3");
  w = DividedExperts();
  w.parallel.data = 4;
  CHECK(message(w) ==
        "parallel.expert: expected a divisor of the 4 ranks with the same "
        "weights, got 8");
  w = FoldedExperts();
  w.parallel.data = 2;
  CHECK(message(w) ==
        "parallel.expert: expected a divisor of the 4 ranks that experts lie "
        "over, got 8");
  w = FoldedExperts();
  w.parallel.expert_tensor = 3;
  CHECK(message(w) ==
        "parallel.expert_tensor: expected a divisor of the 2 ranks of a layer, "
        "or 0, got 3");
  w = FoldedExperts();
  w.parallel.sequence = false;
  CHECK(message(w) ==
        "parallel.expert_tensor: expected 2 where ranks of a layer have the "
        "same tokens, got 1; hint: sequence: true");
  w = FoldedExperts();
  w.parallel.expert = 1;
  CHECK(message(w) ==
        "parallel.expert_tensor: expected 2 where no ranks divide experts, got "
        "1; hint: expert");
  w.parallel.expert_tensor = 0;
  w.parallel.expert_overlap = true;
  CHECK(message(w).starts_with("parallel.expert_overlap: expected false"));
  w.parallel.expert_overlap = false;
  w.parallel.expert_exchange = ExpertExchange::kByHost;
  CHECK(message(w) ==
        "parallel.expert_exchange: expected all_to_all where no ranks divide "
        "experts, got by_host; hint: expert");
  w = DividedExperts();
  w.architecture.expert_groups = 3;
  CHECK(message(w) ==
        "model.expert_groups: expected a divisor of the 8 experts, got 3");
  w.architecture.expert_groups = 8;
  CHECK(message(w) ==
        "model.expert_groups_per_token: expected groups of 2 experts in all, "
        "those of a token, got 1");
  w = Divided();
  w.parallel.pipeline = 33;
  CHECK(message(w).starts_with("parallel.pipeline: expected at most 32"));
  w = Divided();
  w.parallel.chunks = 17;
  CHECK(message(w).starts_with("parallel.chunks: expected at most 32"));
  w = Divided();
  w.parallel.tensor = 1;
  w.parallel.sequence = true;
  CHECK(message(w).starts_with("parallel.sequence: expected false"));
  w = Divided();
  w.parallel.pipeline = 1;
  w.parallel.chunks = 2;
  CHECK(message(w).starts_with("parallel.chunks: expected 1"));
  w = Divided();
  w.parallel.shard = Shard::kZero3;
  CHECK(message(w).starts_with("parallel.shard: expected none, zero1, zero2"));
  w.parallel.shard = Shard::kFsdp;
  CHECK(message(w).starts_with("parallel.reshard_after_forward: expected"));
  w = Divided();
  w.parallel.offload_activations = true;
  CHECK(message(w).starts_with("parallel.offload_activations: expected none"));
}

TEST_CASE("devices are copies of a model times the ranks of each") {
  const Parallel parallel = Divided().parallel;
  CHECK(OverDevices(parallel, 32).data == 4);
  CHECK(CopiesOf(OverDevices(parallel, 8)) == 1);
  const auto refusal = [&](Parallel asked, int64_t devices) -> std::string {
    try {
      OverDevices(asked, devices);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(
      refusal(parallel, 12) ==
      "parallel.tensor: expected ranks of a model that divide the 12 devices, "
      "got 8; hint: --devices 16");
  const Parallel experts = DividedExperts().parallel;
  CHECK(FewestDevices(experts) == 8);
  Parallel folded = FoldedExperts().parallel;
  folded.data = 0;
  CHECK(FewestDevices(folded) == 8);
  Parallel any = experts;
  any.data = 0;
  any.context = 6;
  CHECK(FewestDevices(any) == 24);
  any.context = 1;
  CHECK(refusal(any, 1).starts_with("parallel.expert: expected a divisor"));
  Parallel two = parallel;
  two.data = 2;
  CHECK(refusal(two, 32).starts_with("parallel.data: expected 4 copies"));
}

}  // namespace
}  // namespace trainfare::model
