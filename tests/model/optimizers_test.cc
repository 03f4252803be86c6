// Muon and Adafactor, which look at whole matrices.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "model/error.h"
#include "model/kernels.h"
#include "model/memory.h"
#include "model/muon.h"
#include "model/optimizer_kernels.h"
#include "model/presets.h"
#include "model/product_kernel.h"
#include "model/validate.h"
#include "tests/near.h"

namespace trainfare::model {
namespace {

Workload LlamaUpdatedBy(OptimizerKind kind) {
  Workload w;
  w.architecture = FindArchitecture("llama-3.1-8b");
  w.batch = 1;
  w.sequence_length = 128;
  w.precision = Precision::kBf16;
  w.optimizer = {kind, OptimizerImplementation::kForLoop};
  return w;
}

PhaseCounts Update(const Workload& w) {
  return ExpandKernels(w).Counts(Phase::kOptimizer);
}

double StateBytes(const Workload& w) {
  return ToBytes(EstimateMemory(w, {}).Of("optimizer state"));
}

// A block of Llama 3.1 8B: query and output 4096 x 4096, key and value
// 1024 x 4096, gate, up and down 4096 x 14336.
constexpr int64_t kMatrixElements =
    32 * (2 * 4096LL * 4096 + 2 * 1024LL * 4096 + 3 * 4096LL * 14336);
// Embeddings and head apart, and norms.
constexpr int64_t kOtherElements = 2 * 128256LL * 4096 + (2 * 32 + 1) * 4096;

}  // namespace

// docs/models/counts.md, "Muon".
TEST_CASE("Muon orthogonalises the matrices of blocks, by hand") {
  const Workload w = LlamaUpdatedBy(OptimizerKind::kMuon);
  CHECK_NOTHROW(Validate(w));
  const MuonParts parts = MuonPartsOf(w);
  CHECK(parts.matrix_count == 32 * 7);
  CHECK(parts.matrix_elements == kMatrixElements);
  CHECK(parts.other_tensors == 2 + 2 * 32 + 1);
  CHECK(parts.other_elements == kOtherElements);
  // Five times 4 m^2 n + 2 m^3.
  const auto of = [](int64_t m, int64_t n) {
    return 5 * (4 * m * m * n + 2 * m * m * m);
  };
  CHECK(of(4096, 14336) == 5'497'558'138'880);
  CHECK(Update(w).matrix_flops ==
        32 * (2 * of(4096, 4096) + 2 * of(1024, 4096) + 3 * of(4096, 14336)));
  // A number of a matrix, two of all else.
  CHECK(StateNumbersOf(w) == kMatrixElements + 2 * kOtherElements);
  CHECK(StateBytes(w) == 4.0 * (kMatrixElements + 2.0 * kOtherElements));
  // Of a matrix 5 and 2 operations and 15 products, AdamW's 8 of all else.
  CHECK(Update(w).launches == 32 * 7 * 22 + 8 * 67);
}

TEST_CASE("Muon's others are updated as the implementation says") {
  Workload w = LlamaUpdatedBy(OptimizerKind::kMuon);
  w.optimizer.implementation = OptimizerImplementation::kFused;
  CHECK(Update(w).launches == 32 * 7 * 22 + 2);
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = true;
  // Adapters alone: two matrices a block, 16 x 4096.
  CHECK(MuonPartsOf(w).other_tensors == 0);
  CHECK(Update(w).matrix_flops ==
        32 * 2 * 5 * (4 * 16 * 16 * 4096LL + 2 * 16 * 16 * 16));
}

// docs/models/counts.md, "Muon".
TEST_CASE("ranks have whole matrices of Muon, by hand") {
  Workload w = LlamaUpdatedBy(OptimizerKind::kMuon);
  w.optimizer.implementation = OptimizerImplementation::kFused;
  const int64_t all = Update(w).matrix_flops;
  w.parallel = {.data = 8, .shard = Shard::kZero1};
  CHECK_NOTHROW(Validate(w));
  // 8 of each 64, 12 of 96: an eighth of the work, and of the momentum.
  CHECK(Update(w).matrix_flops == all / 8);
  CHECK(Update(w).launches == 28 * 22 + 2);
  CHECK(MuonExchangedBytes(w) == 0);
  CHECK(StateBytes(w) == 4.0 * (kMatrixElements + 2.0 * kOtherElements) / 8);
  // All keep shards of each; the work is the same.
  w.parallel.shard = Shard::kFsdp;
  CHECK(Update(w).matrix_flops == all / 8);
  CHECK(Update(w).launches == 224 * 5 + 28 * 17 + 2);
  CHECK(MuonExchangedBytes(w) == 2 * kMatrixElements);
  CHECK(StateBytes(w) == 4.0 * (kMatrixElements + 2.0 * kOtherElements) / 8);
  CHECK(StateNumbersOf(w) == kMatrixElements + 2 * kOtherElements);
  // Over 64 ranks 32 have two of the 96 largest, and the others two square ones
  // beside the one, which is less: who has least takes the next.
  w.parallel.data = 64;
  const MuonShare share = MuonShareOf(w, MuonPartsOf(w));
  CHECK(share.orthogonalised.at({4096, 14336}) == 2);
  CHECK(share.orthogonalised.count({4096, 4096}) == 0);
  // More ranks than matrices: one each, the costliest counts.
  w.parallel.data = 512;
  const MuonShare one = MuonShareOf(w, MuonPartsOf(w));
  CHECK(one.whole.count == 1);
  CHECK(one.whole.elements == 4096 * 14336);
}

TEST_CASE("what an update of Muon makes and drops") {
  Workload w = LlamaUpdatedBy(OptimizerKind::kMuon);
  w.optimizer.implementation = OptimizerImplementation::kFused;
  // No narrow copies of weights in the backward pass, and all gradients in fp32
  // in the update: most is held there.
  w.stack.narrow_weights = true;
  const auto temporaries = [&] {
    return ToBytes(EstimateMemory(w, {}).Of("optimizer temporaries"));
  };
  // The update of the largest matrix in fp32, and X twice in bf16.
  CHECK(MuonTemporaries(w, MuonPartsOf(w)) == 4096 * 14336 * (4 + 2 * 2));
  CHECK(temporaries() == 4096.0 * 14336 * 8);
  // AdamW's root of the embeddings' second moment is larger.
  w.optimizer.implementation = OptimizerImplementation::kForLoop;
  CHECK(temporaries() == 128256.0 * 4096 * 4);
}

TEST_CASE("Adafactor keeps rows and columns, by hand") {
  const Workload w = LlamaUpdatedBy(OptimizerKind::kAdafactor);
  CHECK_NOTHROW(Validate(w));
  const int64_t block =
      2 * (4096 + 4096) + 2 * (1024 + 4096) + 3 * (4096 + 14336) + 2 * 4096;
  CHECK(StateNumbersOf(w) == 32 * block + 2 * (128256 + 4096) + 4096);
  CHECK(StateBytes(w) == 4.0 * 3'152'384);
  CHECK(Update(w).launches == 11 * (32 * 9 + 3));
  const auto bytes = [](const Workload& of) {
    const PhaseCounts counts = Update(of);
    return static_cast<double>(counts.bytes_read + counts.bytes_written) /
           static_cast<double>(kMatrixElements + kOtherElements);
  };
  CHECK(bytes(w) == Near(4 * (12 + 7), 1e-3));
}

// A piece of a flat tensor has no rows and columns: a number a parameter, and
// operations that read and write them.
TEST_CASE("Adafactor over ranks that share the state, by hand") {
  Workload w = LlamaUpdatedBy(OptimizerKind::kAdafactor);
  w.optimizer.implementation = OptimizerImplementation::kMultiTensor;
  w.parallel.data = 8;
  for (const auto shard : {Shard::kZero1, Shard::kZero3, Shard::kFsdp}) {
    CAPTURE(ToText(shard));
    w.parallel.shard = shard;
    CHECK_NOTHROW(Validate(w));
    // 8,030,261,248 parameters, an eighth of them.
    CHECK(StateBytes(w) == 4.0 * 1'003'782'656);
    const PhaseCounts counts = Update(w);
    CHECK(static_cast<double>(counts.bytes_read + counts.bytes_written) ==
          Near(4.0 * (14 + 9) * 1'003'782'656, 1e-6));
  }
  // Copies of the whole state beside each other have its matrices.
  w.parallel.shard = Shard::kNone;
  CHECK(StateBytes(w) == 4.0 * 3'152'384);
}

// torch.optim.Muon: the momentum is as wide as the parameters, X in bf16
// whatever they are. m lerp g reads 2 and writes 1 number of 4 bytes, u = g
// lerp m the same, X = u reads 4 bytes and writes 2; |X| reads 2; X /= |X| reads
// and writes 2; p *= 1 - lr wd reads and writes 4, p -= lr X reads 4 and 2 and
// writes 4: 20 + 10, 4 + 2 and 10 + 8 bytes an element.
TEST_CASE("Muon of weights in fp32, by hand") {
  Workload w = LlamaUpdatedBy(OptimizerKind::kMuon);
  const auto kernels = [&] {
    std::vector<Kernel> own;
    AppendMuonKernels(w, MuonPartsOf(w), own);
    return own;
  };
  // Under autocast parameters are in fp32, too: the same update.
  const std::vector<Kernel> autocast = kernels();
  w.precision = Precision::kFp32;
  CHECK_NOTHROW(Validate(w));
  CHECK(StateBytes(w) == 4.0 * (kMatrixElements + 2.0 * kOtherElements));
  const std::vector<Kernel> wide = kernels();
  REQUIRE(wide.size() == autocast.size());
  int64_t bytes = 0;
  for (size_t i = 0; i < wide.size(); ++i) {
    CHECK(wide[i].bytes() == autocast[i].bytes());
    CHECK(wide[i].launches == autocast[i].launches);
    CHECK_FALSE(autocast[i].in_bf16);
    CHECK(wide[i].in_bf16 == (wide[i].kind == KernelKind::kGemm));
    if (wide[i].in_bf16) continue;
    bytes += wide[i].launches * wide[i].bytes();
  }
  // Bytes of a launch are whole.
  CHECK(static_cast<double>(bytes) ==
        Near((30.0 + 6.0 + 18.0) * kMatrixElements, 1e-6));
  // Its products are bf16's, the others the step's.
  CHECK(OperandsOf(wide[2], Precision::kFp32) == Precision::kBf16);
  CHECK(OperandsOf(Kernel(), Precision::kFp32) == Precision::kFp32);
  CHECK(OperandsOf(Kernel(), Precision::kFp8) == Precision::kBf16);
  // Weights in bf16 without masters have their momentum in it.
  w.precision = Precision::kBf16;
  w.stack.narrow_weights = true;
  w.optimizer.masters = Masters::kNone;
  CHECK(StateBytes(w) == 2.0 * (kMatrixElements + 2.0 * kOtherElements));
}

TEST_CASE("what Muon and Adafactor do not go with is refused") {
  const auto message = [](const Workload& of) -> std::string {
    try {
      Validate(of);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  Workload w = LlamaUpdatedBy(OptimizerKind::kMuon);
  w.optimizer.implementation = OptimizerImplementation::kFused;
  w.optimizer.state_bits = 16;
  CHECK(message(w) ==
        "optimizer.state_bits: expected 0 beside optimizer muon, got 16");
  w = LlamaUpdatedBy(OptimizerKind::kAdafactor);
  w.optimizer.implementation = OptimizerImplementation::kFused;
  CHECK(message(w) ==
        "optimizer.implementation: expected for_loop or multi_tensor beside "
        "optimizer adafactor, got fused");
  // A compiler of whole graphs makes few passes of it.
  for (const Fusion graph : {Fusion::kXla, Fusion::kCompiled}) {
    w.stack.fusion = graph;
    CHECK(message(w).empty());
  }
  w = LlamaUpdatedBy(OptimizerKind::kAdafactor);
  w.optimizer.state_bits = 8;
  CHECK(message(w) ==
        "optimizer.state_bits: expected 0 beside optimizer adafactor, got 8");
}

}  // namespace trainfare::model
