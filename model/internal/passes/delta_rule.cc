#include "model/internal/passes/delta_rule.h"

#include <algorithm>
#include <vector>

#include "model/internal/passes/adapters.h"
#include "model/internal/passes/casts.h"
#include "model/internal/passes/gated_mixers.h"
#include "model/internal/passes/norms.h"
#include "model/internal/passes/products.h"
#include "model/rounding.h"

namespace trainfare::model::internal {
namespace {

// Operations of PyTorch from a and b to how a head decays (g) and writes
// (beta), and back: each is a launch over numbers of heads.
constexpr int64_t kGateOperations = 8;
// Squares, their sum and a product; backward a sum more and two products.
constexpr int64_t kUnitNormFlops = 3;
constexpr int64_t kUnitNormBackwardFlops = 5;
// Blocks of the diagonal of a chunk's system of equations that are solved a row
// at a time, off the matrix engine.
constexpr int64_t kSolvedRows = 16;

// The extents of one pass of the rule: C tokens a chunk, K and V elements of a
// head of keys and of values. What is left of a sequence is a chunk as any
// other.
struct DeltaChunks {
  explicit DeltaChunks(const Pass& pass)
      : a(pass.architecture),
        element(pass.element),
        tokens(pass.workload.tokens()),
        chunk(std::min(a.delta_chunk, pass.workload.sequence_length)),
        in_row(CeilDivide(pass.workload.sequence_length, chunk)),
        rows(pass.workload.batch * a.delta_value_heads),
        heads(rows * in_row) {}

  // Elements of queries, and of keys; of what each head of values has as wide
  // as a key; of values; and of the states that chunks begin with.
  int64_t keys() const { return tokens * a.delta_key_width(); }
  int64_t head_keys() const { return steps() * a.delta_key_size; }
  int64_t values() const { return tokens * a.delta_value_width(); }
  int64_t states() const {
    return heads * a.delta_key_size * a.delta_value_size;
  }
  int64_t steps() const { return tokens * a.delta_value_heads; }
  int64_t pairs() const { return heads * chunk * chunk; }
  // Bytes of the sums of g, in fp32; of those with beta; and of the inverses.
  int64_t sums() const { return steps() * kSingle; }
  int64_t gates() const { return steps() * (kSingle + element); }
  int64_t inverses() const { return steps() * chunk * element; }

  const Architecture& a;
  int64_t element;
  int64_t tokens;
  int64_t chunk;
  int64_t in_row;  // chunks one after the other
  int64_t rows;    // heads of all sequences, which need not wait for each other
  int64_t heads;   // of all chunks
};

// How deep one product of so many columns is that takes a row as many
// multiply-adds as those of different extents which one kernel has.
int64_t DepthOf(int64_t multiply_adds, int64_t columns) {
  return CeilDivide(multiply_adds, columns);
}

struct DeltaProduct {
  KernelName name;
  Matrix matrix;
  int64_t outputs;
};
// Megatron-LM has one matrix (megatron/core/ssm/gated_delta_net.py),
// Transformers two or four.
std::vector<DeltaProduct> FirstProducts(const Pass& pass) {
  const Architecture& a = pass.architecture;
  constexpr KernelName kInput = "delta input projection";
  if (pass.HandFused())
    return {{kInput, Matrix::kDeltaRuleIn, a.delta_projection_width()}};
  if (a.delta_joint_projections) {
    return {{kInput,
             Matrix::kDeltaRuleIn,
             a.delta_channels() + a.delta_value_width()},
            {"delta write projection",
             Matrix::kDeltaRuleWrite,
             2 * a.delta_value_heads}};
  }
  return {
      {kInput, Matrix::kDeltaRuleIn, a.delta_channels()},
      {"delta gate projection", Matrix::kDeltaRuleGate, a.delta_value_width()},
      {"delta write projection", Matrix::kDeltaRuleWrite, a.delta_value_heads},
      {"delta decay projection", Matrix::kDeltaRuleDecay, a.delta_value_heads}};
}

// Heads of a joint product lie by keys, and are laid out anew by operations.
bool ReordersHeads(const Pass& pass) {
  return pass.architecture.delta_joint_projections && pass.EagerOutside();
}

void CopyHeads(Pass& pass, int64_t elements) {
  pass.Copy("delta heads", elements, pass.element, pass.element);
}

// g = -exp(A) softplus(a + dt) and beta = sigmoid(b), or their gradients; the
// sums of g along each chunk are the rule's own.
void Gates(Pass& pass, const DeltaChunks& c, KernelName name) {
  if (!pass.EagerOutside()) {
    pass.Elementwise(
        name, c.steps(), 2 * pass.element, pass.element + kSingle, 4, 3);
    return;
  }
  pass.Elementwise(name, c.steps(), kSingle, kSingle, 1, 1);
  pass.last().launches = kGateOperations;
}

// Queries and keys of unit length, apart.
void UnitNorms(Pass& pass, const DeltaChunks& c) {
  pass.Reduction("delta unit norm",
                 c.tokens * c.a.delta_key_heads,
                 c.keys(),
                 pass.element,
                 pass.element,
                 kUnitNormFlops);
  pass.RepeatSince(pass.next() - 1, 2);
}
void UnitNormsBackward(Pass& pass, const DeltaChunks& c) {
  pass.Reduction("delta unit norm gradient",
                 c.tokens * c.a.delta_key_heads,
                 c.keys(),
                 2 * pass.element,
                 pass.element,
                 kUnitNormBackwardFlops);
  pass.RepeatSince(pass.next() - 1, 2);
}

// beta K K^T of each chunk, which decays, and the inverse of one and it: blocks
// of 16 of its diagonal row by row, the others by products of such blocks,
// C^3 / 2 at 64 tokens.
void Inverse(Pass& pass, const DeltaChunks& c) {
  Push(pass,
       {"chunk inverse",
        c.heads,
        c.chunk,
        c.chunk,
        c.a.delta_key_size + c.chunk / 4,
        c.keys() * c.element + c.gates(),
        c.inverses(),
        c.pairs()});
  pass.last().vector_flops += c.heads * c.chunk * 2 * kSolvedRows * kSolvedRows;
}

// What each token writes and what it takes off before: the inverse times values
// (u) and times keys (w).
void Updates(Pass& pass, const DeltaChunks& c) {
  Push(pass,
       {"chunk updates",
        c.heads,
        c.chunk,
        c.a.delta_key_size + c.a.delta_value_size,
        c.chunk,
        (c.keys() + c.values()) * c.element + c.gates() + c.inverses(),
        (c.head_keys() + c.values()) * c.element,
        c.steps()});
}

// One chunk after another: u - w S, and S + K^T of it, where S is the state
// that stays on chip; so that sequences, heads and columns of values alone are
// beside each other.
void Recurrence(Pass& pass, const DeltaChunks& c) {
  Push(pass,
       {"chunk recurrence",
        c.rows,
        c.chunk,
        c.a.delta_value_size,
        2 * c.a.delta_key_size * c.in_row,
        (c.keys() + c.head_keys() + c.values()) * c.element + c.sums(),
        (c.states() + c.values()) * c.element,
        c.steps()});
}

// Q S of what came before a chunk, and Q K^T, which decays, by its own values.
void RuleOutputs(Pass& pass, const DeltaChunks& c) {
  const int64_t key = c.a.delta_key_size;
  const int64_t value = c.a.delta_value_size;
  const int64_t products = key * value + c.chunk * (key + value);
  Push(pass,
       {"chunk outputs",
        c.heads,
        c.chunk,
        value,
        DepthOf(products, value),
        (2 * c.keys() + c.values() + c.states()) * c.element + c.sums(),
        c.values() * c.element,
        c.pairs()});
}

// Gradients of the values through the outputs of their own chunk: K Q^T by
// them.
void ValuesBackward(Pass& pass, const DeltaChunks& c) {
  const int64_t value = c.a.delta_value_size;
  const int64_t products = c.chunk * (c.a.delta_key_size + value);
  Push(pass,
       {"chunk values gradient",
        c.heads,
        c.chunk,
        value,
        DepthOf(products, value),
        (2 * c.keys() + c.values()) * c.element + c.sums(),
        c.values() * c.element,
        c.pairs()});
}

// Recurrence() from the last chunk to the first: gradients of the values
// through the states, and of these by queries and by what was taken off.
void RecurrenceBackward(Pass& pass, const DeltaChunks& c) {
  Push(pass,
       {"chunk recurrence gradient",
        c.rows,
        c.chunk,
        c.a.delta_value_size,
        3 * c.a.delta_key_size * c.in_row,
        (2 * c.keys() + c.head_keys() + 2 * c.values()) * c.element + c.sums(),
        (c.states() + c.values()) * c.element,
        2 * c.steps()});
}

// Gradients of queries and keys through outputs and states, of w, and of how
// heads decay.
void OutputsBackward(Pass& pass, const DeltaChunks& c) {
  const int64_t key = c.a.delta_key_size;
  const int64_t value = c.a.delta_value_size;
  const int64_t products = 3 * key * value + c.chunk * (3 * key + value);
  Push(pass,
       {"chunk outputs gradient",
        c.heads,
        c.chunk,
        key,
        DepthOf(products, key),
        (2 * c.keys() + 3 * c.values() + 2 * c.states()) * c.element + c.sums(),
        3 * c.head_keys() * c.element + c.sums(),
        c.pairs()});
}

// Gradients of keys, values and beta through u and w and the inverse that made
// them, and through it of K K^T, which is made again.
void InverseBackward(Pass& pass, const DeltaChunks& c) {
  const int64_t key = c.a.delta_key_size;
  const int64_t products =
      c.chunk * (5 * key + 2 * c.a.delta_value_size + 2 * c.chunk);
  Push(pass,
       {"chunk inverse gradient",
        c.heads,
        c.chunk,
        key,
        DepthOf(products, key),
        (c.keys() + c.head_keys() + 2 * c.values()) * c.element + c.gates() +
            c.inverses(),
        (c.head_keys() + c.values()) * c.element + 2 * c.sums(),
        c.pairs()});
}

// Heads of values that share keys add up their gradients: of queries once, of
// keys of both kernels that make some, which are added.
void KeyGradients(Pass& pass, const DeltaChunks& c) {
  if (c.head_keys() > c.keys()) {
    pass.Reduction(
        "sum head gradients", c.keys(), c.head_keys(), pass.element, 0, 1);
    pass.last().bytes_written = c.keys() * pass.element;
    pass.RepeatSince(pass.next() - 1, 3);
  }
  pass.Elementwise(
      "chunk gradient add", c.keys(), 2 * pass.element, pass.element, 1);
}

// The sums of g along each chunk, and of their gradients back along it.
void DecaySums(Pass& pass, const DeltaChunks& c, KernelName name) {
  pass.Elementwise(name, c.steps(), kSingle, kSingle, 1);
}

void RuleBackward(Pass& pass, const DeltaChunks& c) {
  Updates(pass, c);
  Recurrence(pass, c);
  ValuesBackward(pass, c);
  RecurrenceBackward(pass, c);
  OutputsBackward(pass, c);
  InverseBackward(pass, c);
  KeyGradients(pass, c);
  DecaySums(pass, c, "chunk decay gradient");
}

// Behind the convolution queries, keys and values are laid out apart; Megatron-
// LM gives each head of values queries and keys of its own.
void SplitHeads(Pass& pass, const DeltaChunks& c) {
  CopyHeads(pass, c.tokens * c.a.delta_channels());
  if (pass.HandFused() && c.head_keys() > c.keys()) {
    CopyHeads(pass, 2 * c.head_keys());
  }
}

}  // namespace

void DeltaRuleForward(Pass& pass, int64_t tokens) {
  const DeltaChunks c(pass);
  const Architecture& a = c.a;
  for (const DeltaProduct& product : FirstProducts(pass)) {
    CastOperand(pass, tokens * a.hidden);
    BlockGemm(pass, product.name, tokens, product.outputs, a.hidden);
    AdapterForward(pass, product.matrix, tokens, product.outputs, a.hidden);
  }
  if (ReordersHeads(pass)) {
    CopyHeads(pass, tokens * (2 * a.delta_channels() + a.delta_value_width()));
  }
  CausalConvolution(pass, tokens * a.delta_channels(), a.delta_convolution);
  Gates(pass, c, "delta gates");
  SplitHeads(pass, c);
  UnitNorms(pass, c);
  DecaySums(pass, c, "chunk decay");
  Inverse(pass, c);
  Updates(pass, c);
  Recurrence(pass, c);
  RuleOutputs(pass, c);
  GatedNorm(pass, c.steps(), c.values());
  BlockGemm(
      pass, "delta output projection", tokens, a.hidden, a.delta_value_width());
  AdapterForward(
      pass, Matrix::kDeltaRuleOut, tokens, a.hidden, a.delta_value_width());
  ResidualAndNormForward(pass, tokens);
}

void DeltaRuleBackward(Pass& pass, int64_t tokens) {
  const DeltaChunks c(pass);
  const Architecture& a = c.a;
  ResidualAndNormBackward(pass, tokens);
  LinearBackward(pass,
                 Matrix::kDeltaRuleOut,
                 tokens,
                 a.hidden,
                 a.delta_value_width(),
                 /*bias=*/false);
  GatedNormBackward(pass, c.steps(), c.values(), /*again=*/false);
  RuleBackward(pass, c);
  UnitNormsBackward(pass, c);
  CopyHeads(pass, tokens * a.delta_channels());
  CausalConvolutionBackward(
      pass, tokens * a.delta_channels(), a.delta_convolution);
  Gates(pass, c, "delta gates gradient");
  if (ReordersHeads(pass)) {
    CopyHeads(pass, tokens * (a.delta_channels() + a.delta_value_width()));
  }
  const std::vector<DeltaProduct> products = FirstProducts(pass);
  for (auto product = products.rbegin(); product != products.rend();
       ++product) {
    LinearBackward(pass,
                   product->matrix,
                   tokens,
                   product->outputs,
                   a.hidden,
                   /*bias=*/false,
                   Input::kNarrowed);
    if (product != products.rbegin() && pass.EagerOutside()) {
      pass.Elementwise(
          "input gradient add", tokens * a.hidden, 2 * pass.wide, pass.wide, 1);
    }
  }
  ResidualGradientAdd(pass, tokens);
}

}  // namespace trainfare::model::internal
