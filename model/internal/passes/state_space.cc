#include "model/internal/passes/state_space.h"

#include <algorithm>

#include "model/internal/passes/adapters.h"
#include "model/internal/passes/casts.h"
#include "model/internal/passes/gated_mixers.h"
#include "model/internal/passes/matrices.h"
#include "model/internal/passes/norms.h"
#include "model/internal/passes/products.h"
#include "model/rounding.h"
#include "model/trainable.h"

namespace trainfare::model::internal {
namespace {

// The extents of one scan. What is left of a sequence is a chunk as any other.
struct Scan {
  explicit Scan(const Pass& pass)
      : a(pass.architecture),
        tokens(pass.workload.tokens()),
        chunk(std::min(a.state_chunk, pass.workload.sequence_length)),
        chunks(pass.workload.batch *
               CeilDivide(pass.workload.sequence_length, chunk)) {}

  // Elements of x and y; of B, and of C; of the steps of time; of the states
  // that chunks end with; and of C B^T, which groups have.
  int64_t values() const { return tokens * a.state_width(); }
  int64_t keys() const { return tokens * a.state_groups * a.state_size; }
  int64_t steps() const { return tokens * a.state_heads; }
  int64_t states() const { return chunks * a.state_width() * a.state_size; }
  int64_t scores() const { return chunks * a.state_groups * chunk * chunk; }
  // Numbers by which each head scales the scores of its group.
  int64_t decays() const { return chunks * a.state_heads * chunk * chunk; }
  int64_t of_heads() const { return chunks * a.state_heads; }
  int64_t of_groups() const { return chunks * a.state_groups; }

  const Architecture& a;
  int64_t tokens;
  int64_t chunk;
  int64_t chunks;
};

// Of both sums over time that products are scaled by: dt and A dt, in fp32.
constexpr int64_t kStepBytes = 2 * kSingle;

// x, B and C, through their filters.
void Convolution(Pass& pass, const Scan& scan) {
  CausalConvolution(
      pass, scan.tokens * scan.a.state_channels(), scan.a.state_convolution);
}

// dt through softplus, and the sums of A dt along each chunk.
void Decay(Pass& pass, const Scan& scan) {
  pass.Elementwise("chunk decay", scan.steps(), pass.element, kStepBytes, 4, 2);
}

// C B^T of each chunk, all of it.
void Scores(Pass& pass, const Scan& scan) {
  const Architecture& a = scan.a;
  Push(pass,
       {"chunk scores",
        scan.of_groups(),
        scan.chunk,
        scan.chunk,
        a.state_size,
        2 * scan.keys() * pass.element,
        scan.scores() * kSingle});
}

// Values by keys of each chunk, as large as its states.
void ValuesByKeys(Pass& pass, const Scan& scan, const KernelName& name) {
  const Architecture& a = scan.a;
  Push(
      pass,
      {name,
       scan.of_heads(),
       a.state_head_size,
       a.state_size,
       scan.chunk,
       (scan.values() + scan.keys()) * pass.element + scan.steps() * kStepBytes,
       scan.states() * kSingle,
       scan.steps()});
}

// The state that each chunk alone ends with, x^T B, and then that of all up to
// it; `width`: bytes of an element of these.
void States(Pass& pass, const Scan& scan, int64_t width) {
  ValuesByKeys(pass, scan, "chunk states");
  pass.Elementwise("state passing", scan.states(), kSingle, width, 2);
}

// C h of what came before a chunk, and (C B^T, which decays) x of its own.
void Outputs(Pass& pass, const Scan& scan) {
  const Architecture& a = scan.a;
  Push(pass,
       {"chunk scan",
        scan.of_heads(),
        scan.chunk,
        a.state_head_size,
        a.state_size + scan.chunk,
        (scan.values() + scan.keys() + scan.states()) * pass.element +
            scan.steps() * kStepBytes + scan.scores() * kSingle,
        scan.values() * pass.element,
        scan.decays()});
  // D x beside it.
  pass.last().vector_flops += 2 * scan.values();
}

// Gradients of the states: C^T dy of each chunk, then of all behind it.
void StatesBackward(Pass& pass, const Scan& scan) {
  ValuesByKeys(pass, scan, "chunk states gradient");
  pass.Elementwise("state passing gradient",
                   scan.states(),
                   2 * kSingle,
                   2 * pass.element,
                   4);
}

// Gradients of x, of what the states and the scores of its chunk give; of B and
// C through the states.
void InputsBackward(Pass& pass, const Scan& scan) {
  const Architecture& a = scan.a;
  const int64_t batch = scan.of_heads();
  Push(pass,
       {"chunk scan gradient",
        batch,
        scan.chunk,
        a.state_head_size,
        a.state_size + scan.chunk,
        (2 * scan.values() + scan.keys() + scan.states()) * pass.element +
            scan.steps() * kStepBytes + scan.scores() * kSingle,
        scan.values() * pass.element + scan.steps() * kSingle,
        scan.decays()});
  pass.last().vector_flops += 4 * scan.values();  // D, and the steps' gradients
  const ChunkProduct of_keys{
      "chunk states gradient",
      batch,
      scan.chunk,
      a.state_size,
      a.state_head_size,
      (scan.values() + scan.keys() + scan.states()) * pass.element +
          scan.steps() * kStepBytes,
      (scan.keys() + scan.steps()) * kSingle,
      scan.steps()};
  Push(pass, of_keys);
  pass.RepeatSince(pass.next() - 1, 2);
}

// Gradients of C B^T, through it of B and C, and of how it decays.
void ScoresBackward(Pass& pass, const Scan& scan) {
  const Architecture& a = scan.a;
  const int64_t read =
      2 * scan.values() * pass.element + scan.steps() * kStepBytes;
  Push(pass,
       {"chunk scores gradient",
        scan.of_groups(),
        scan.chunk,
        scan.chunk,
        a.state_width() / a.state_groups,
        read,
        scan.scores() * kSingle,
        scan.decays()});
  Push(pass,
       {"chunk scores gradient",
        scan.of_groups(),
        scan.chunk,
        a.state_size,
        scan.chunk,
        scan.scores() * kSingle + scan.keys() * (pass.element + kSingle),
        scan.keys() * pass.element});
  pass.RepeatSince(pass.next() - 1, 2);
  Push(pass,
       {"chunk decay gradient",
        scan.of_heads(),
        scan.chunk,
        scan.chunk,
        a.state_head_size,
        read + scan.scores() * kSingle,
        scan.steps() * kSingle,
        scan.decays()});
  pass.Elementwise("chunk decay gradient",
                   scan.steps(),
                   pass.element + 3 * kSingle,
                   pass.element,
                   6,
                   2);
}

// The kernel of all makes the gradient of its last product's weight though that
// is frozen (doutproj_weight of ssd_combined.py).
void UnaskedGradient(Pass& pass, int64_t tokens) {
  const Workload& w = pass.workload;
  if (Trains(w, Matrix::kStateSpaceOut)) return;
  if (StateSpaceOutIsModule(w.stack.fusion)) return;
  const Architecture& a = pass.architecture;
  pass.Gemm("weight gradient", a.state_width(), a.hidden, tokens);
}

}  // namespace

void StateSpaceForward(Pass& pass, int64_t tokens) {
  const Scan scan(pass);
  const Architecture& a = scan.a;
  CastOperand(pass, tokens * a.hidden);
  BlockGemm(pass,
            "state-space input projection",
            tokens,
            a.state_projection_width(),
            a.hidden);
  AdapterForward(pass,
                 Matrix::kStateSpaceIn,
                 tokens,
                 a.state_projection_width(),
                 a.hidden);
  Convolution(pass, scan);
  Decay(pass, scan);
  States(pass, scan, pass.element);
  Scores(pass, scan);
  Outputs(pass, scan);
  // Of y and its gate z, groups of channels apart.
  GatedNorm(pass, scan.tokens * a.state_groups, scan.values());
  BlockGemm(
      pass, "state-space output projection", tokens, a.hidden, a.state_width());
  AdapterForward(
      pass, Matrix::kStateSpaceOut, tokens, a.hidden, a.state_width());
  ResidualAndNormForward(pass, tokens);
}

void StateSpaceBackward(Pass& pass, int64_t tokens) {
  const Scan scan(pass);
  const Architecture& a = scan.a;
  ResidualAndNormBackward(pass, tokens);
  LinearBackward(pass,
                 Matrix::kStateSpaceOut,
                 tokens,
                 a.hidden,
                 a.state_width(),
                 /*bias=*/false);
  UnaskedGradient(pass, tokens);
  Convolution(pass, scan);
  GatedNormBackward(
      pass, scan.tokens * a.state_groups, scan.values(), /*again=*/true);
  Decay(pass, scan);
  Scores(pass, scan);
  States(pass, scan, kSingle);
  StatesBackward(pass, scan);
  InputsBackward(pass, scan);
  ScoresBackward(pass, scan);
  CausalConvolutionBackward(
      pass, tokens * a.state_channels(), a.state_convolution);
  LinearBackward(pass,
                 Matrix::kStateSpaceIn,
                 tokens,
                 a.state_projection_width(),
                 a.hidden,
                 /*bias=*/false,
                 Input::kNarrowed);
  ResidualGradientAdd(pass, tokens);
}

}  // namespace trainfare::model::internal
