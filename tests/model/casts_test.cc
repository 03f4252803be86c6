// Kernels that narrow, widen and scale what products take.

#include <doctest/doctest.h>

#include <string_view>

#include "model/kernels.h"
#include "model/presets.h"
#include "model/split.h"
#include "model/stack_rules.h"
#include "model/validate.h"
#include "tests/model/refusal.h"
#include "tests/model/step_kernels.h"

namespace trainfare::model {
namespace {

// bert-tiny at fp16: 2 x 6 matrices, those of pooler and classifier, and their
// biases are cast one by one; gpt2's query, key and value are one of 4, and its
// table makes the logits, without a bias.
TEST_CASE("autocast casts each matrix once") {
  Workload w = BertBase(2, 16);
  w.precision = Precision::kFp16;
  const auto casts = [&w](const char* model) {
    w.architecture = FindArchitecture(model);
    return CountOf(ExpandKernels(w),
                   SegmentRole::kEmbeddings,
                   Phase::kForward,
                   "cast weights");
  };
  CHECK(casts("bert-tiny") == (2 * 6 + 2) * 2);
  CHECK(casts("gpt2") == 12 * 4 * 2 + 1);
  CHECK(casts("transformer-base") == (6 * 6 + 6 * 10) * 2 + 1);
}

// A layer of BERT under autocast: query, key, value and feed-forward each
// narrow their own input, and the product with the values the probabilities =
// 5; the mask widens the scores. Backward each of these once more, and the two
// gradients that go to the narrow terms of residual sums = 8; gradients of 6
// matrices and 6 biases are widened = 12.
TEST_CASE("autocast casts each operand of each product") {
  Workload w = BertBase(2, 16);
  w.precision = Precision::kBf16;
  const KernelList list = ExpandKernels(w);
  const auto casts = [&list](Phase phase, std::string_view name) {
    return CountOf(list, SegmentRole::kLayer, phase, name);
  };
  CHECK(casts(Phase::kForward, "cast activation") == 5);
  CHECK(casts(Phase::kBackward, "cast gradient") == 8);
  CHECK(casts(Phase::kBackward, "cast weight gradient") == 12);
}

// A compiled graph of mixed precision narrows each matrix once a pass, 2 x 6 of
// bert-tiny's layers and those of pooler and classifier, and widens each one's
// gradient; activations stay narrow and biases are cast in passing. With
// narrow weights nothing is cast.
TEST_CASE("compiled graphs cast wide weights") {
  Workload w = BertBase(2, 16);
  w.architecture = FindArchitecture("bert-tiny");
  w.precision = Precision::kFp16;
  w.stack.fusion = Fusion::kCompiled;
  const auto casts = [&w](SegmentRole role, Phase phase, KernelName name) {
    return CountOf(ExpandKernels(w), role, phase, name.text());
  };
  constexpr auto kEmbeddings = SegmentRole::kEmbeddings;
  constexpr auto kLayer = SegmentRole::kLayer;
  CHECK(CastsWeights(w));
  CHECK(casts(kEmbeddings, Phase::kForward, "cast weights") == 2 * 6 + 2);
  CHECK(casts(kLayer, Phase::kBackward, "cast weight gradient") == 6);
  CHECK(casts(kLayer, Phase::kForward, "cast activation") == 0);
  w.stack.narrow_weights = true;
  CHECK_FALSE(CastsWeights(w));
  CHECK(casts(kEmbeddings, Phase::kForward, "cast weights") == 0);
  CHECK(casts(kLayer, Phase::kBackward, "cast weight gradient") == 0);
}

// docs/models/counts.md, "8 and 4 bits": Llama-like blocks of 64 with 32 tokens. The
// query projection reads 32 x 64 + 64 x 64 bytes; its operands are cast before,
// 2 bytes in and 2 x 1 out, once as they are and once transposed.
TEST_CASE("products of blocks have operands of 8 bits in fp8") {
  Workload w;
  w.architecture = FindArchitecture("llama-3.2-1b");
  w.architecture.layers = 2;
  w.architecture.hidden = 64;
  w.architecture.heads = 4;
  w.architecture.key_value_heads = 4;
  w.architecture.head_size = 16;
  w.sequence_length = 32;
  w.precision = Precision::kBf16;
  w.stack = {Fusion::kLightSeq, Attention::kFlash};
  const KernelList wide = ExpandKernels(w);
  w.precision = Precision::kFp8;
  Validate(w);
  const KernelList narrow = ExpandKernels(w);
  const auto& kernels = narrow.kernels;
  size_t projection = 0;
  int64_t products = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const Kernel& kernel = kernels[i];
    if (kernel.narrow_operands) ++products;
    const bool of_head =
        kernel.name == "vocabulary logits" || kernel.name == "flash attention";
    CHECK_FALSE((kernel.narrow_operands && of_head));
    if (projection == 0 && kernel.name == "query, key and value projection") {
      projection = i;
    }
  }
  REQUIRE(projection > 1);
  // One product for queries, keys and values: 192 columns.
  CHECK(kernels[projection].bytes_read == 32 * 64 + 64 * 192);
  CHECK(kernels[projection].bytes_written == 2 * 32 * 192);
  const bool weights_before = kernels[projection - 1].name == "cast weights";
  CHECK(weights_before);
  CHECK(kernels[projection - 1].bytes_read == 2 * 64 * 192);
  CHECK(kernels[projection - 1].bytes_written == 2 * 64 * 192);
  // 5 products of a block forward, two for each of them back.
  CHECK(products == 15);
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    CHECK(narrow.Counts(phase).matrix_flops == wide.Counts(phase).matrix_flops);
  }
  // Forward the weights of a product and, as norms and activations leave 8
  // bits, what attention leaves; back the gradient; in two blocks.
  CHECK(narrow.Counts(Phase::kForward).launches ==
        wide.Counts(Phase::kForward).launches + 2 * (5 + 1));
  CHECK(narrow.Counts(Phase::kBackward).launches ==
        wide.Counts(Phase::kBackward).launches + 2 * 5);
  // Nothing is transposed for a pass back that does not come.
  w.work = Work::kForward;
  w.optimizer.kind = OptimizerKind::kNone;
  const KernelList forward = ExpandKernels(w);
  CHECK(forward.kernels[projection - 1].bytes() == 3 * 64 * 192);
  // Operation by operation every input is cast.
  w.stack.fusion = Fusion::kUnsloth;
  const KernelList eager = ExpandKernels(w);
  w.precision = Precision::kBf16;
  CHECK(eager.Counts(Phase::kForward).launches >=
        ExpandKernels(w).Counts(Phase::kForward).launches + 2 * 2 * 5);
}

// GPT-2's queries, keys and values are of one matrix, frozen or not: its input's
// gradient narrows that of the outputs and reads weights in 8 bits.
TEST_CASE("a joint matrix beside adapters takes 8 bits backward, too") {
  Workload w;
  w.architecture = FindArchitecture("gpt2-xl");
  w.sequence_length = 1024;
  w.precision = Precision::kFp8;
  w.stack.fusion = Fusion::kEager;
  const int64_t all = SumsOf(w, "cast gradient", Phase::kBackward).launches;
  w.trainable.lora_rank = 8;
  w.trainable.lora.query = true;
  CHECK(SumsOf(w, "cast gradient", Phase::kBackward).launches == all);
}

// docs/models/counts.md, "8 and 4 bits": the casts before the first product of the
// feed-forward block, where nothing before it leaves 8 bits.
TEST_CASE("what scales 8 bits is read, by hand") {
  Workload w;
  w.architecture = FindArchitecture("llama-3.1-8b");
  w.architecture.layers = 2;
  w.sequence_length = 8192;
  w.precision = Precision::kFp8;
  w.parallel = {.data = 8, .shard = Shard::kFsdp};
  const auto casts = [&](std::string_view name) {
    Validate(w);
    int64_t bytes = 0;
    int64_t seen = 0;
    for (const Kernel& kernel : ExpandKernels(w).kernels) {
      const std::string_view now = kernel.name.text();
      const bool casts_now = now == "cast activation" ||
                             now == "cast weights" || now == "largest value";
      if (now == name) {
        ++seen;
        return bytes;
      }
      bytes = casts_now ? bytes + kernel.bytes() : 0;
    }
    CHECK(seen > 0);
    return int64_t{0};
  };
  constexpr std::string_view kProduct = "feed-forward gate";
  CHECK(casts(kProduct) == 369'098'752);
  w.fp8.scaling = Fp8Scaling::kRows;
  CHECK(casts(kProduct) == 553'648'128);
  w.fp8.scaling = Fp8Scaling::kBlocks;
  CHECK(casts(kProduct) == 374'865'920);
  w.fp8.scaling = Fp8Scaling::kTensor;
  CHECK(casts(kProduct) == 553'648'128);
  // Inputs have one copy less, for a product in 16 bits does not read it.
  w.fp8.weight_gradients = false;
  CHECK(casts(kProduct) == 553'648'128 - 8192 * 4096);
  int64_t products = 0;
  for (const Kernel& kernel : ExpandKernels(w).kernels) {
    if (kernel.name == "weight gradient") CHECK_FALSE(kernel.narrow_operands);
    products += kernel.narrow_operands ? 1 : 0;
  }
  w.fp8.weight_gradients = true;
  CHECK(products > 0);
  w.fp8.gathered = true;
  CHECK(casts(kProduct) == 318'767'104);
  // In 4 bits: read for the largest value and once more, written twice with a
  // scale for 16 numbers; what norms and activations leave is wide.
  w.fp8 = {};
  w.precision = Precision::kFp4;
  CHECK(casts(kProduct) == 472'907'776);
}

// docs/models/counts.md, "8 and 4 bits": inputs and gradients are mixed by
// Hadamard matrices, gradients are rounded by chance, weights neither.
TEST_CASE("casts to 4 bits mix and round what weights' gradients read") {
  Workload w;
  w.architecture = FindArchitecture("llama-3.1-8b");
  w.sequence_length = 8192;
  w.precision = Precision::kFp4;
  w.stack = {Fusion::kMegatron, Attention::kFlash};
  Validate(w);
  int64_t activations = 0;
  int64_t gradients = 0;
  int64_t weights = 0;
  for (const Kernel& kernel : ExpandKernels(w).kernels) {
    const int64_t numbers = kernel.bytes_read / 2;
    if (kernel.name == "cast activation") {
      ++activations;
      CHECK(kernel.vector_flops == 4 * numbers);
      CHECK(kernel.random_draws == 0);
    } else if (kernel.name == "cast gradient") {
      ++gradients;
      CHECK(kernel.vector_flops == 4 * numbers);
      CHECK(kernel.random_draws == numbers / 2);
    } else if (kernel.name == "cast weights") {
      ++weights;
      CHECK(kernel.vector_flops == 0);
      CHECK(kernel.random_draws == 0);
      CHECK(kernel.bytes_written == numbers + numbers / 8);
    }
  }
  CHECK(activations > 0);
  CHECK(gradients > 0);
  CHECK(weights > 0);
  // A base of 4 bits is what products take.
  w.stack.narrow_weights = true;
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = true;
  w.trainable.base_bits = 4;
  Validate(w);
  for (const Kernel& kernel : ExpandKernels(w).kernels) {
    const bool widened = kernel.name == "dequantise weights";
    const bool cast = kernel.name == "cast weights";
    CHECK_FALSE((widened || cast));
  }
}

// docs/models/counts.md, "8 and 4 bits".
TEST_CASE("the highest blocks' products may stay in 16 bits, by hand") {
  Workload w;
  w.architecture = FindArchitecture("llama-3.1-8b");
  w.sequence_length = 8192;
  w.precision = Precision::kFp4;
  w.stack = {Fusion::kMegatron, Attention::kFlash};
  w.gradient_checkpointing = true;
  // Bytes that products by weights of the blocks read in 4 bits, and launches.
  struct Products {
    int64_t launches = 0;
    int64_t gate_bytes = 0;
  };
  const auto narrow_products = [&] {
    Validate(w);
    Products products;
    const KernelList list = ExpandKernels(w);
    for (const Segment& segment : list.segments) {
      for (const Kernel& kernel : list.Of(segment)) {
        if (!kernel.narrow_operands) continue;
        products.launches += segment.repeat * kernel.launches;
        if (kernel.gemm.n == 14336 && kernel.gemm.k == 4096) {
          products.gate_bytes = kernel.bytes_read;
        }
      }
    }
    return products;
  };
  const Products all = narrow_products();
  // 0.5625 bytes of 8192 x 4096 and 4096 x 14336 numbers.
  CHECK(all.gate_bytes == 51'904'512);
  // The share of a block forward, again, and twice back, of each of 32.
  CHECK(all.launches % 32 == 0);
  w.wide_blocks = 5;
  CHECK(narrow_products().launches == all.launches / 32 * 27);
  w.wide_blocks = 32;
  CHECK(narrow_products().launches == 0);
  // As in bf16 then, to the last byte.
  Workload wide = w;
  wide.precision = Precision::kBf16;
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    CHECK(ExpandKernels(w).Counts(phase).bytes_read ==
          ExpandKernels(wide).Counts(phase).bytes_read);
  }
  w.wide_blocks = 33;
  CHECK(RefusalOf(w).starts_with("wide_blocks: expected"));
  w.wide_blocks = 1;
  w.trainable.base_bits = 4;
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = true;
  CHECK(RefusalOf(w) ==
        "wide_blocks: expected 0 beside a base in the bits of its products "
        "(trainable.lora.base_bits), got 1");
}

TEST_CASE("the highest blocks are those of the last stage") {
  Workload w;
  w.architecture = FindArchitecture("llama-3.1-8b");
  w.precision = Precision::kFp8;
  w.wide_blocks = 10;
  w.parallel = {.data = 4, .pipeline = 4};
  CHECK(OfStage(w, 3).wide_blocks == 8);
  CHECK(OfStage(w, 2).wide_blocks == 2);
  CHECK(OfStage(w, 0).wide_blocks == 0);
}

}  // namespace
}  // namespace trainfare::model
