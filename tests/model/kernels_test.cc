#include "model/kernels.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/error.h"
#include "model/presets.h"
#include "model/validate.h"
#include "tests/model/step_kernels.h"

namespace trainfare::model {
// docs/models/counts.md, "FLOPs". A token of BERT-base passes 12 layers of
//   2 (4 x 768^2 + 2 x 768 x 3072) = 14,155,776 FLOPs in products with weights
//   4 x 768 x L in scores and context
// and the first token of a sequence 2 x 768^2 (pooler) + 2 x 768 x 2.
TEST_CASE("forward FLOPs of BERT-base") {
  for (const int64_t length : {32, 128, 512}) {
    const int64_t a_token = 12 * (14'155'776 + 4 * 768 * length);
    const int64_t a_sequence = 2 * 768 * 768 + 2 * 768 * 2;
    CHECK(ForwardModelFlops(BertBase(8, length)) ==
          8 * (length * a_token + a_sequence));
  }
  // At length 128: 8 sequences are 8 (128 x 174,587,904 + 1,182,720).
  CHECK(ForwardModelFlops(BertBase(8, 128)) == 178'787'475'456);
}

// BERT-large: 24 layers of 2 (4 x 1024^2 + 2 x 1024 x 4096) = 25,165,824.
TEST_CASE("forward FLOPs of BERT-large") {
  Workload w = BertBase(1, 384);
  w.architecture = FindArchitecture("bert-large-uncased");
  w.architecture.head = Head::kQuestionAnswering;
  CHECK(ForwardModelFlops(w) ==
        384 * (24 * (int64_t{25'165'824} + 4 * 1024 * 384) + 2 * 1024 * 2));
}

// Every product has two in the backward pass: input and weight gradients. All
// inputs of BERT's products want a gradient, since embeddings are trained.
TEST_CASE("backward products are twice the forward's") {
  for (const auto fusion :
       {Fusion::kEager, Fusion::kFused, Fusion::kLightSeq, Fusion::kCompiled}) {
    Workload w = BertBase(4, 64);
    w.stack.fusion = fusion;
    const KernelList list = ExpandKernels(w);
    CHECK(list.Counts(Phase::kBackward).matrix_flops ==
          2 * list.Counts(Phase::kForward).matrix_flops);
  }
}

// Scores are computed anew in the backward pass: 5 products for 4.
TEST_CASE("flash attention recomputes its scores") {
  Workload w = BertBase(4, 64);
  w.stack.attention = Attention::kFlash;
  const KernelList list = ExpandKernels(w);
  const int64_t scores_flops = 12 * 4 * 12 * 64 * 64 * 64 * int64_t{2};
  CHECK(list.Counts(Phase::kForward).matrix_flops == ForwardModelFlops(w));
  CHECK(list.Counts(Phase::kBackward).matrix_flops ==
        2 * ForwardModelFlops(w) + scores_flops);
}

TEST_CASE("flash attention caps scores again in its backward pass") {
  Workload w;
  w.architecture = FindArchitecture("gemma-2-2b");
  w.precision = Precision::kBf16;
  w.stack.attention = Attention::kFlash;
  const auto special = [&](KernelName name, Phase phase) {
    return SumsOf(w, name, phase).special_ops;
  };
  const int64_t forward = special("flash attention", Phase::kForward);
  CHECK(special("flash attention gradient", Phase::kBackward) == forward);
  w.architecture.attention_soft_cap = false;
  CHECK(2 * special("flash attention", Phase::kForward) == forward);
  CHECK(2 * special("flash attention gradient", Phase::kBackward) == forward);
}

TEST_CASE("fusion changes bytes and launches, never the products") {
  Workload w = BertBase(8, 128);
  const KernelList eager = ExpandKernels(w);
  w.stack.fusion = Fusion::kLightSeq;
  const KernelList fused = ExpandKernels(w);
  w.stack.fusion = Fusion::kCompiled;
  const KernelList compiled = ExpandKernels(w);
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    const PhaseCounts e = eager.Counts(phase);
    const PhaseCounts f = fused.Counts(phase);
    const PhaseCounts c = compiled.Counts(phase);
    CHECK(e.matrix_flops == f.matrix_flops);
    CHECK(e.matrix_flops == c.matrix_flops);
    CHECK(e.launches > f.launches);
    CHECK(f.launches > c.launches);
    CHECK(e.bytes_read > f.bytes_read);
    CHECK(e.bytes_written > f.bytes_written);
    CHECK(f.bytes_read > c.bytes_read);
  }
}

int64_t LaunchesOfLayer(const KernelList& list, Phase phase) {
  int64_t launches = 0;
  for (const Segment& segment : list.segments) {
    if (segment.phase != phase || segment.role != SegmentRole::kLayer) continue;
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      launches += list.kernels[static_cast<std::size_t>(i)].launches;
    }
  }
  return launches;
}

// The trainer's fused stack: docs/models/counts.md, "Stacks". A layer of BERT
// forward: 6 products with weights, 2 of attention, 3 heads split, 1 merge,
// softmax, GELU, 2 add-and-norm = 16; eager: 4 around softmax, 3 for each
// residual = 23. Backward: 12 products with weights, 4 of attention, 1 split, 3
// merges, softmax, GELU and its partial sums, 2 x 3 for add-and-norm (the last
// adds partial sums), biases of query, key and value, 2 adds of input
// gradients, 2 of residuals = 36.
TEST_CASE("launches of the trainer's stacks, by hand") {
  Workload w = BertBase(2, 16);
  CHECK(LaunchesOfLayer(ExpandKernels(w), Phase::kForward) == 23);
  w.stack.fusion = Fusion::kFused;
  const KernelList list = ExpandKernels(w);
  CHECK(LaunchesOfLayer(list, Phase::kForward) == 16);
  CHECK(LaunchesOfLayer(list, Phase::kBackward) == 36);
}

// The docs' `graphs` (docs/models/counts.md): a layer of BERT with flash
// attention forward has four products, attention, GELU and twice the residual
// and its norm; LightSeq's also copies heads apart and together. Back: eight
// products, attention, GELU, twice norm, dropout and sum; LightSeq's also four
// copies of heads, four gradients of biases, two of norms. In 8 bits the
// gradients of three products are cast; that of GELU is in 8 bits already.
TEST_CASE("launches of products with epilogues, by hand") {
  Workload w = BertBase(2, 16);
  w.precision = Precision::kBf16;
  w.stack = {Fusion::kGraphs, Attention::kFlash};
  w.stack.narrow_weights = true;
  const KernelList graphs = ExpandKernels(w);
  CHECK(LaunchesOfLayer(graphs, Phase::kForward) == 10);
  CHECK(LaunchesOfLayer(graphs, Phase::kBackward) == 16);
  w.stack.fusion = Fusion::kLightSeq;
  CHECK(LaunchesOfLayer(ExpandKernels(w), Phase::kForward) == 12);
  CHECK(LaunchesOfLayer(ExpandKernels(w), Phase::kBackward) == 26);
  w.stack.fusion = Fusion::kGraphs;
  w.precision = Precision::kFp8;
  Validate(w);
  CHECK(LaunchesOfLayer(ExpandKernels(w), Phase::kBackward) == 16 + 3);
}

// GPT-2's c_attn: one product of (tokens, 768) and (768, 2304), and one copy
// that joins the three gradients before its backward products. A layer then
// launches, eager: 1 + 3 products with weights, 2 of attention, 4 copies of
// heads, scale, mask, softmax, dropout, 8 of GELU, 2 x 3 of residuals = 28.
TEST_CASE("GPT-2 makes query, key and value in one product") {
  Workload w = BertBase(2, 16);
  w.architecture = FindArchitecture("gpt2");
  const KernelList list = ExpandKernels(w);
  CHECK(LaunchesOfLayer(list, Phase::kForward) == 28);
  using enum SegmentRole;
  constexpr std::string_view kJoint = "query, key and value projection";
  CHECK(CountOf(list, kLayer, Phase::kForward, kJoint) == 1);
  CHECK(CountOf(list, kLayer, Phase::kForward, "query projection") == 0);
  CHECK(CountOf(list, kLayer, Phase::kBackward, "weight gradient") == 4);
  CHECK(CountOf(list, kLayer, Phase::kBackward, "join projection gradients") ==
        1);
  CHECK(CountOf(list, kLayer, Phase::kBackward, "input gradient add") == 0);
  for (const Kernel& kernel : list.kernels) {
    if (kernel.name.text() != kJoint) continue;
    CHECK(kernel.gemm.m == 32);
    CHECK(kernel.gemm.n == 2304);
    CHECK(kernel.gemm.k == 768);
  }
  // The logits' gradient of the one table is added to the embeddings'.
  CHECK(CountOf(list, kEmbeddings, Phase::kBackward, "tied gradient add") == 1);
  // The same FLOPs as three: 2 (4 x 768^2 + 2 x 768 x 3072) a token and layer.
  CHECK(ForwardModelFlops(w) ==
        32 * (int64_t{12} * (14'155'776 + 4 * 768 * 16) +
              int64_t{2} * 768 * 50257));
  w.architecture.separate_projections = true;  // as OPT, but for its ReLU
  CHECK(LaunchesOfLayer(ExpandKernels(w), Phase::kForward) == 30);
}

namespace {

// Launches of kernels of this name, and their bytes for each element inside
// GPT-2's feed-forward of 2 sequences of 8 tokens.
std::pair<int64_t, int64_t> SumsInside(const Workload& w,
                                       std::string_view name) {
  int64_t launches = 0;
  int64_t bytes = 0;
  for (const Kernel& kernel : ExpandKernels(w).kernels) {
    if (kernel.name.text() != name) continue;
    launches += kernel.launches;
    bytes += kernel.bytes();
  }
  return {launches, bytes / (2 * 8 * 3072)};
}

}  // namespace

// GPT-2's GELU is eight operations forward and eleven backward, each a pass: of
// e bytes an element 10 e read and 8 e written, 17 e and 11 e. Under autocast w =
// 4 and e = 2: forward 7 w + 3 e and 7 w + e, beside one cast to fp32 and one back;
// backward 11 w + 6 e and 8 w + 3 e, beside four casts.
TEST_CASE("GPT-2's activation by operations, by hand") {
  Workload w = BertBase(2, 8);
  w.architecture = FindArchitecture("gpt2");
  const auto sums = [&](std::string_view name) { return SumsInside(w, name); };
  CHECK(sums("gelu operation") == std::pair<int64_t, int64_t>{8, 72});
  CHECK(sums("gelu operation gradient") ==
        std::pair<int64_t, int64_t>{11, 112});
  w.precision = Precision::kBf16;
  CHECK(sums("gelu operation") == std::pair<int64_t, int64_t>{8, 64});
  CHECK(sums("gelu operation gradient") == std::pair<int64_t, int64_t>{11, 94});
  w.architecture.activation = Activation::kGeluTanh;
  CHECK(sums("gelu operation").first == 0);
  w.architecture.activation = Activation::kGeluNew;
  w.stack.fusion = Fusion::kCompiled;
  CHECK(sums("gelu operation").first == 0);
}

// Bytes an element, by hand: fp32 8 (ReLU) + 8 (square), and back 8 (the base) +
// 8 (twice) + 12 (by what comes) + 12 (ReLU); under autocast ReLU's in 2 bytes.
TEST_CASE("the square of ReLU runs operation by operation") {
  Workload w;
  w.architecture = FindArchitecture("gpt2");
  w.architecture.activation = Activation::kReluSquared;
  w.architecture.layers = 1;
  w.batch = 2;
  w.sequence_length = 8;
  const auto sums = [&](std::string_view name) { return SumsInside(w, name); };
  using Sums = std::pair<int64_t, int64_t>;
  CHECK(sums("squared relu operation") == Sums{2, 16});
  CHECK(sums("squared relu gradient") == Sums{4, 40});
  w.precision = Precision::kBf16;
  CHECK(sums("squared relu operation") == Sums{2, 12});
  CHECK(sums("squared relu gradient") == Sums{4, 34});
  w.stack.fusion = Fusion::kCompiled;
  CHECK(sums("squared relu operation").first == 0);
}

// Bytes an element, by hand (docs/models/llm.md); three launches each way are of
// the two weights alone.
TEST_CASE("xIELU runs operation by operation") {
  Workload w;
  w.architecture = FindArchitecture("gpt2");
  w.architecture.activation = Activation::kXielu;
  w.architecture.layers = 1;
  w.batch = 2;
  w.sequence_length = 8;
  const auto sums = [&](std::string_view name) { return SumsInside(w, name); };
  using Sums = std::pair<int64_t, int64_t>;
  CHECK(sums("xielu operation") == Sums{12 + 3, 114});
  CHECK(sums("xielu operation gradient") == Sums{23 + 3, 226});
  CHECK(sums("activation weight gradient") == Sums{2, 2 * 4});
  w.precision = Precision::kBf16;
  CHECK(sums("xielu operation") == Sums{12 + 3, 90});
  CHECK(sums("xielu operation gradient") == Sums{23 + 3, 166});
  // Beside adapters its weights are frozen.
  Workload adapters = w;
  adapters.trainable.lora_rank = 4;
  adapters.trainable.lora.feed_forward_in = true;
  std::swap(w, adapters);
  CHECK(sums("xielu operation gradient") == Sums{21 + 3, 166 - 12 - 10});
  CHECK(sums("activation weight gradient").first == 0);
  std::swap(w, adapters);
  // In one kernel, and one of both sums.
  w.stack.fusion = Fusion::kCompiled;
  CHECK(sums("xielu operation").first == 0);
  CHECK(sums("activation weight gradient") == Sums{1, 4});
}

// Queries of cross-attention come from the decoder, keys and values from the
// encoder: LightSeq2 makes the latter two in one product, also where both
// sides are of one length.
TEST_CASE("cross-attention has a product for each side") {
  Workload w = BertBase(2, 16);
  w.architecture = FindArchitecture("transformer-base");
  w.stack.fusion = Fusion::kLightSeq;
  for (const int64_t target : {16, 9}) {
    w.target_length = target;
    const KernelList list = ExpandKernels(w);
    constexpr auto kDecoder = SegmentRole::kDecoderLayer;
    for (const char* name : {"query, key and value projection",
                             "query projection",
                             "key and value projection"}) {
      CAPTURE(name);
      CHECK(CountOf(list, kDecoder, Phase::kForward, name) == 1);
    }
    // Two projections, two of their outputs, one of self-attention, 2 x 1 of
    // the feed-forward block.
    CHECK(CountOf(list, kDecoder, Phase::kBackward, "weight gradient") == 7);
  }
}

// Vaswani et al. 2017: word vectors are scaled and sinusoids added, on either
// side: 2 x (gather, scale, add, dropout) forward, and the scale again
// backward.
TEST_CASE("embeddings of the Transformer are scaled and sinusoids added") {
  Workload w = BertBase(2, 16);
  w.architecture = FindArchitecture("transformer-base");
  const KernelList list = ExpandKernels(w);
  using enum SegmentRole;
  for (const char* name :
       {"embedding gather", "embedding scale", "embedding add", "dropout"}) {
    CAPTURE(name);
    CHECK(CountOf(list, kEmbeddings, Phase::kForward, name) == 2);
  }
  CHECK(CountOf(
            list, kEmbeddings, Phase::kBackward, "embedding scale gradient") ==
        2);
  // One table for both sides and the logits.
  CHECK(CountOf(list, kEmbeddings, Phase::kBackward, "tied gradient add") == 2);
  w.architecture = FindArchitecture("bert-tiny");
  CHECK(CountOf(ExpandKernels(w),
                kEmbeddings,
                Phase::kForward,
                "embedding scale") == 0);
}

// Add-and-norm of 2 x 16 x 768 elements, fp32: reads the product and the
// residual, 8 bytes; writes the sum, its norm and a byte of mask, 9 bytes.
TEST_CASE("bytes of the fused residual and LayerNorm") {
  Workload w = BertBase(2, 16);
  w.stack.fusion = Fusion::kFused;
  int64_t found = 0;
  for (const Kernel& kernel : ExpandKernels(w).kernels) {
    if (kernel.name != "bias, dropout, residual and layer norm") continue;
    ++found;
    CHECK(kernel.bytes_read == 196'608);
    CHECK(kernel.bytes_written == 221'184);
  }
  CHECK(found == 2);
}

// Softmax waits for a row's largest and for its sum, a norm for its moments; a
// bias gradient is one sum.
TEST_CASE("how often reductions go over a row") {
  Workload w = BertBase(1, 128);
  w.architecture.dropout = 0.1;
  const auto reads = [&](KernelName name) {
    const KernelList list = ExpandKernels(w);
    const auto kernel = std::find_if(
        list.kernels.begin(), list.kernels.end(), [&](const Kernel& k) {
          return k.name == name;
        });
    REQUIRE(kernel != list.kernels.end());
    return kernel->row_reads;
  };
  CHECK(reads("softmax") == RowReads::kThrice);
  CHECK(reads("softmax gradient") == RowReads::kTwice);
  CHECK(reads("layer norm") == RowReads::kNorm);
  CHECK(reads("layer norm gradient") == RowReads::kNorm);
  CHECK(reads("layer norm weight gradient") == RowReads::kOnce);
  CHECK(reads("bias gradient") == RowReads::kOnce);
  CHECK(reads("loss") == RowReads::kThrice);
  for (const Fusion fusion :
       {Fusion::kFused, Fusion::kLightSeq, Fusion::kCompiled}) {
    CAPTURE(fusion);
    w.stack.fusion = fusion;
    CHECK(reads(fusion == Fusion::kLightSeq
                    ? KernelName("mask and softmax")
                    : KernelName("mask, softmax and dropout")) ==
          RowReads::kThrice);
    CHECK(reads("dropout and softmax gradient") == RowReads::kTwice);
  }
}

// Bytes of one product, (m, k) (k, n) -> (m, n) in fp32: feed-forward in of
// BERT-base at batch 2, length 16: m = 32, k = 768, n = 3072.
//   read (32 x 768 + 768 x 3072) 4 = 9,535,488, written 32 x 3072 x 4 = 393,216
TEST_CASE("bytes of a product") {
  const KernelList list = ExpandKernels(BertBase(2, 16));
  bool found = false;
  for (const Kernel& kernel : list.kernels) {
    if (kernel.name != "feed-forward in") continue;
    found = true;
    CHECK(kernel.gemm.m == 32);
    CHECK(kernel.gemm.n == 3072);
    CHECK(kernel.gemm.k == 768);
    CHECK(kernel.bytes_read == 9'535'488);
    CHECK(kernel.bytes_written == 393'216);
    CHECK(kernel.parameter_bytes == 768 * 3072 * 4);
  }
  CHECK(found);
}

TEST_CASE("dropout draws one number an element, and none without it") {
  Workload w = BertBase(2, 16);
  const int64_t hidden = 2 * 16 * 768;
  const int64_t scores = 2 * 12 * 16 * 16;
  // Embeddings, then per layer: scores, two residual branches; the classifier.
  CHECK(ExpandKernels(w).Counts(Phase::kForward).random_draws ==
        hidden + 12 * (scores + 2 * hidden) + 2 * 768);
  w.architecture.dropout = 0;
  CHECK(ExpandKernels(w).Counts(Phase::kForward).random_draws == 0);
}

TEST_CASE("inference has a forward pass only and no dropout") {
  Workload w = BertBase(2, 16);
  w.work = Work::kForward;
  const KernelList list = ExpandKernels(w);
  CHECK(list.Counts(Phase::kBackward).launches == 0);
  CHECK(list.Counts(Phase::kOptimizer).launches == 0);
  CHECK(list.Counts(Phase::kForward).random_draws == 0);
}

namespace {

// What cannot be of a kernel; nothing where all can.
std::string FaultOf(const Kernel& kernel) {
  if (kernel.bytes() <= 0) return "no bytes";
  if (kernel.parameter_bytes > kernel.bytes()) return "more than all bytes";
  if (kernel.launches <= 0) return "no launch";
  if (kernel.work_items <= 0) return "no work";
  const bool product = kernel.kind == KernelKind::kGemm ||
                       kernel.kind == KernelKind::kBatchedGemm ||
                       kernel.kind == KernelKind::kChunkGemm;
  const GemmExtents& g = kernel.gemm;
  const bool of_extents = kernel.matrix_flops == 2 * g.batch * g.m * g.n * g.k;
  return product && !of_extents ? "FLOPs of other extents" : "";
}

// The kernels of `w` that cannot be, with what is wrong.
std::vector<std::string> FaultsOf(const Workload& w) {
  std::vector<std::string> faults;
  for (const Kernel& kernel : ExpandKernels(w).kernels) {
    const std::string fault = FaultOf(kernel);
    if (fault.empty()) continue;
    faults.push_back(fmt::format("{} in {} {} {}: {}",
                                 kernel.name.text(),
                                 ToText(w.stack.fusion),
                                 ToText(w.precision),
                                 ToText(w.stack.attention),
                                 fault));
  }
  return faults;
}

}  // namespace

TEST_CASE("every preset expands with every stack and precision") {
  for (const Architecture& preset : ArchitecturePresets()) {
    std::vector<std::string> faults;
    for (const auto& [fusion, stack] : kWords<Fusion>.words) {
      for (const auto& [precision, bits] : kWords<Precision>.words) {
        for (const auto attention :
             {Attention::kMaterialised, Attention::kFlash}) {
          Workload w;
          w.architecture = preset;
          w.batch = 2;
          w.sequence_length = 64;
          w.precision = precision;
          w.stack = {fusion, attention};
          Validate(w);
          const std::vector<std::string> of_one = FaultsOf(w);
          faults.insert(faults.end(), of_one.begin(), of_one.end());
        }
      }
    }
    CAPTURE(preset.name);
    CHECK(faults == std::vector<std::string>{});
  }
}

// Two documents of 16 in a row of 32 see half the pairs.
TEST_CASE("attention stays inside packed documents") {
  Workload w = BertBase(3, 32);
  w.stack.attention = Attention::kFlash;
  const auto attention_flops = [&] {
    int64_t flops = 0;
    for (const Kernel& kernel : ExpandKernels(w).kernels) {
      if (kernel.name == "flash attention") flops = kernel.matrix_flops;
    }
    return flops;
  };
  const int64_t whole = attention_flops();
  CHECK(whole == 4 * int64_t{3} * 32 * 32 * 768);
  w.documents = 2;
  Validate(w);
  CHECK(attention_flops() == whole / 2);
  w.documents = 33;
  CHECK_THROWS_WITH_AS(Validate(w),
                       "documents: expected a count of at most 32, got 33",
                       InputError);
}

TEST_CASE("a workload is refused with the limit it passes") {
  Workload w = BertBase(1, 513);
  CHECK_THROWS_WITH_AS(Validate(w),
                       "sequence_length: expected at most 512, the positions "
                       "of bert-base-uncased, got 513",
                       InputError);
  w = BertBase(0, 8);
  CHECK_THROWS_WITH_AS(
      Validate(w), "batch: expected a count of at least 1, got 0", InputError);
}

TEST_CASE("norms of heads run alike, whose weights they have or not") {
  Workload shared;
  shared.architecture = FindArchitecture("qwen3-0.6b");
  Workload own = shared;
  own.architecture.query_key_norm = QueryKeyNorm::kEachHead;
  // 28 blocks, 16 and 8 heads of 128, of which one is there anyway.
  CHECK(TotalParameters(own.architecture) -
            TotalParameters(shared.architecture) ==
        28 * (15 + 7) * 128);
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    const auto one = ExpandKernels(shared).Counts(phase);
    const auto other = ExpandKernels(own).Counts(phase);
    CHECK(one.vector_flops == other.vector_flops);
    CHECK(one.launches == other.launches);
  }
}

}  // namespace trainfare::model
