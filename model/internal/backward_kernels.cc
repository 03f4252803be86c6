#include <array>

#include "model/internal/pass_kernels.h"
#include "model/trainable.h"

namespace trainfare::model::internal {

void PassKernels::Backward() {
  Open(Phase::kBackward, SegmentRole::kHead, 1);
  HeadBackward();
  Close();
  if (TwoSided()) {
    Open(Phase::kBackward, SegmentRole::kDecoderLayer, a_.decoder_layers);
    if (w_.gradient_checkpointing) {
      CastWeightsAgain();
      DecoderLayerForward();
    }
    const int64_t tokens = w_.batch * TargetLength();
    FeedForwardBackward(tokens);
    AttentionBackward(
        Attends::kCross, CrossAttention(), tokens, SourceTokens());
    AttentionBackward(
        Attends::kSelf, SelfAttention(TargetLength()), tokens, tokens);
    Close();
  }
  if (a_.next_token_blocks > 0) {
    Open(Phase::kBackward, SegmentRole::kDecoderLayer, a_.next_token_blocks);
    NextTokenBackward();
    Close();
  }
  // What lies below the first weights that train has no backward pass. (A
  // first block with adapters is counted like the others: its own input
  // gradient is not needed.)
  const int64_t lowest = a_.layers - LayersWithBackward(w_);
  const int64_t kept = lowest + BlocksComputedAgain(w_);
  BlocksBackward(kept, a_.layers, /*again=*/false);
  BlocksBackward(lowest, kept, /*again=*/true);
  if (w_.trainable.everything()) {
    Open(Phase::kBackward, SegmentRole::kEmbeddings, 1);
    EmbeddingsBackward(SourceTokens());
    PositionBiasBackward(w_.sequence_length);
    if (TwoSided()) {
      EmbeddingsBackward(w_.batch * TargetLength());
      PositionBiasBackward(TargetLength());
    }
    Close();
  }
  if (w_.trainable.embeddings_beside_adapters) {
    Open(Phase::kBackward, SegmentRole::kEmbeddings, 1);
    DropoutBackward(SourceTokens() * a_.word_width(), wide_);
    TableGradient(a_.vocabulary, SourceTokens(), a_.word_width());
    AddTiedGradient();
    Close();
  }
}

void PassKernels::BlocksBackward(int64_t first, int64_t end, bool again) {
  const auto groups = LayerGroupsOf(a_, first, end);
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    Open(Phase::kBackward, SegmentRole::kLayer, group->count);
    if (again) {
      CastWeightsAgain();
      LayerForward(*group, SourceTokens());
    }
    if (!again && w_.operation_checkpointing) OperationsAgain(*group);
    LayerBackward(*group, /*core_again=*/!again && w_.attention_checkpointing);
    Close();
  }
}

// A block's forward pass without attention's core and without the first, third,
// .. of its products, whose results were kept: pytorch/torchtitan,
// torchtitan/distributed/activation_checkpoint.py ("selective", "op").
void PassKernels::OperationsAgain(const LayerGroup& group) {
  const auto first = static_cast<ptrdiff_t>(list_.kernels.size());
  CastWeightsAgain();
  LayerForward(group, SourceTokens());
  bool kept = false;
  const auto had = [&](const Kernel& kernel) {
    if (kernel.kind != KernelKind::kGemm) {
      return kernel.kind == KernelKind::kAttention;
    }
    kept = !kept;
    return kept;
  };
  // Not std::remove_if, which may copy its predicate.
  auto end = list_.kernels.begin() + first;
  for (auto at = end; at != list_.kernels.end(); ++at) {
    if (!had(*at)) *end++ = *at;
  }
  list_.kernels.erase(end, list_.kernels.end());
}

void PassKernels::LayerBackward(const LayerGroup& group, bool core_again) {
  const int64_t tokens = SourceTokens();
  const AttentionShape shape =
      SelfAttention(w_.sequence_length, group.windowed, group.positions);
  FeedForwardBackward(tokens, group.experts);
  if (core_again) {
    AttentionCoreForward(
        shape, tokens * a_.query_width(), tokens * a_.key_width());
  }
  AttentionBackward(Attends::kSelf, shape, tokens, tokens);
}

// The block that predicts one token further, last first. Its gradients of the
// tables that it shares with the model are added to the model's own.
void PassKernels::NextTokenBackward() {
  const int64_t tokens = SourceTokens();
  const int64_t h = a_.hidden;
  VocabularyBackward(PredictedTokens());
  if (!ChunkedLoss() && Trains(Matrix::kVocabulary)) {
    AddWeightGradient("tied gradient add", a_.vocabulary * h);
  }
  LayerNormBackward(tokens);
  const bool again = w_.gradient_checkpointing && w_.checkpointed_blocks == 0;
  if (again) {
    CastWeightsAgain();
    LayerForward(NextTokenGroup(), tokens);
  }
  LayerBackward(NextTokenGroup(), !again && w_.attention_checkpointing);
  LinearBackward(Matrix::kNextToken, tokens, h, 2 * h, false, Input::kNarrowed);
  LayerNormBackward(tokens);
  LayerNormBackward(tokens);
  ResidualGradientAdd(tokens);
  if (!w_.trainable.everything()) return;
  TableGradient(a_.vocabulary, tokens, h);
  AddWeightGradient("tied gradient add", a_.vocabulary * h);
}

// A second gradient of one weight, in fp32, meets the first.
void PassKernels::AddWeightGradient(KernelName name, int64_t elements) {
  Elementwise(name, elements, 8, 4, 1);
  list_.kernels.back().parameter_bytes = list_.kernels.back().bytes();
  list_.kernels.back().parameter_bytes_written =
      list_.kernels.back().bytes_written;
}

namespace {

bool IsOfBlock(Matrix matrix) { return matrix <= Matrix::kFeedForwardOut; }

}  // namespace

// The gradients of Y (m, n) = X (m, k) W (k, n): of input, weight and bias.
// `bias`: its gradient is a kernel of its own, where products do not have it.
// `input`: whether X was narrowed for this product, so that its gradient is
// widened.
void PassKernels::LinearBackward(
    Matrix matrix, int64_t m, int64_t n, int64_t k, bool bias, Input input) {
  const bool fp8 = fp8_ && IsOfBlock(matrix);
  if (IsOfBlock(matrix)) DequantiseAgain(n * k);
  const bool narrow_already = rules_.biases_in_products && !a_.gated &&
                              matrix == Matrix::kFeedForwardIn;
  if (fp8 && !narrow_already) CastToFp8("cast gradient", m * n);
  Gemm("input gradient", m, k, n);
  if (fp8) ReadFp8(Reads::kWeights);
  AdapterBackward(matrix, OneGroup(m), n, k);
  if (input == Input::kNarrowed) WidenGradient(m * k);
  if (!Trains(matrix)) return;
  WeightGradientGemm("weight gradient", k, n, m);
  if (fp8 && w_.fp8.weight_gradients) ReadFp8(Reads::kGradient);
  WidenParameterGradient(k * n);
  if (bias && !(rules_.biases_in_products && IsOfBlock(matrix))) {
    BiasGradient(m, n);
    if (!Compiled()) WidenParameterGradient(n);
  }
}

// Back through a cast of autocast's.
void PassKernels::WidenGradient(int64_t elements) {
  if (autocast_) Copy("cast gradient", elements, element_, 4);
}
void PassKernels::NarrowGradient(int64_t elements) {
  if (autocast_) Copy("cast gradient", elements, 4, element_);
}
void PassKernels::WidenParameterGradient(int64_t elements) {
  if (!casts_weights_) return;
  Copy("cast weight gradient", elements, element_, 4);
  list_.kernels.back().parameter_bytes = list_.kernels.back().bytes();
  list_.kernels.back().parameter_bytes_written =
      list_.kernels.back().bytes_written;
}

// Adds the partial sums that the trainer's fused kernels leave.
void PassKernels::AddPartialSums(int64_t sums) {
  Reduction("add partial sums", sums, sums * kPartialSums, 4, 0, 1);
  list_.kernels.back().bytes_written = sums * 4;
}

void PassKernels::NormBackward(int64_t rows, int64_t width, int64_t read) {
  if (a_.norm == Norm::kRms) {
    RmsNormBackward(rows, width, read);
    return;
  }
  const int64_t elements = rows * width;
  Reduction("layer norm gradient",
            rows,
            elements,
            2 * read,
            read,
            kLayerNormBackwardFlops);
  ReadRows(RowReads::kNorm);
  if (!NormsTrain() || rules_.one_norm_gradient) return;
  // Scale and shift: column sums over the same tensors.
  Reduction("layer norm weight gradient", width, elements, 2 * read, 0, 4);
  list_.kernels.back().bytes_written = 2 * width * 4;
}

// The backward pass of RmsNormForward(), in one pass, or an operation at a time
// as autograd runs it: g's gradient (a product and its sum), times g, a cast;
// through x r (two products, a sum of the second), through 1 / sqrt (three over
// the rows), through the mean (a quotient for each element), through x^2 (a
// power, two products), both paths added, a cast.
void PassKernels::RmsNormBackward(int64_t rows, int64_t width, int64_t read) {
  const int64_t elements = rows * width;
  const int64_t written = NormWidth(read);  // of the pass forward
  constexpr KernelName kName = "rms norm gradient";
  const auto weight_sum = [&](int64_t bytes) {
    Reduction("rms norm weight gradient", width, elements, bytes, 0, 1);
    list_.kernels.back().bytes_written = width * 4;
  };
  if (rules_.fuses_norm) {
    Reduction(
        kName, rows, elements, read + written, read, kRmsNormBackwardFlops);
    ReadRows(RowReads::kNorm);
    if (NormsTrain()) weight_sum(read + written);
    return;
  }
  if (NormsTrain()) {
    Elementwise(kName, elements, read + written, written, 1);
    weight_sum(written);
  }
  Elementwise(kName, elements, written, written, 1);
  if (autocast_ && read < 4) Copy(kName, elements, 4, read);
  if (read < 4) Copy(kName, elements, read, 4);
  Elementwise(kName, elements, 4, 4, 1);
  Elementwise(kName, elements, 8, 4, 1);
  Reduction(kName, rows, elements, 4, 0, 1);
  list_.kernels.back().bytes_written = rows * 4;
  Elementwise(kName, rows, 4, 4, 2);
  Elementwise(kName, rows, 4, 4, 1);
  Elementwise(kName, rows, 8, 4, 1);
  Elementwise(kName, elements, 0, 4, 1);
  Copy(kName, elements, 4, 4);
  Elementwise(kName, elements, 4, 4, 1);
  Elementwise(kName, elements, 8, 4, 1);
  Elementwise(kName, elements, 8, 4, 1);
  if (read < 4) Copy(kName, elements, 4, read);
}

// The backward pass of RotaryForward(). Operation by operation: the gradient
// times sin, its halves apart, - of one, each half laid into zeros, times cos,
// and all three added.
void PassKernels::RotaryBackward(const AttentionShape& shape,
                                 int64_t query_tokens,
                                 int64_t key_tokens) {
  if (!Rotates(shape)) return;
  constexpr KernelName kName = "rotary gradient";
  const Rotated r = RotatedElements(shape, query_tokens, key_tokens);
  if (rules_.fuses_positions) {
    Elementwise(kName, r.queries + r.keys, r.written, r.read, kRotaryFlops);
    return;
  }
  const auto times_table = [&](int64_t elements) {
    Elementwise(kName, elements, r.written, r.written, 1);
    if (r.read < r.written) NarrowGradient(elements);
  };
  for (const int64_t elements : {r.queries, r.keys}) {
    times_table(elements);
    Elementwise(kName, elements / 2, r.read, r.read, 1);
    for (int half = 0; half < 2; ++half) {
      Elementwise(kName, elements, 0, r.read, 0);
      Copy(kName, elements / 2, r.read, r.read);
    }
    times_table(elements);
    Elementwise(kName, elements, 2 * r.read, r.read, 1);
    Elementwise(kName, elements, 2 * r.read, r.read, 1);
  }
}

void PassKernels::DropoutBackward(int64_t elements, int64_t width) {
  if (!dropout_) return;
  Elementwise(
      "dropout gradient", elements, width + kMaskBytes, width, kDropoutFlops);
}

void PassKernels::ResidualAndNormBackward(int64_t tokens) {
  const int64_t elements = tokens * a_.hidden;
  if (Compiled()) {
    Reduction("layer norm, residual and dropout gradient",
              tokens,
              elements,
              2 * element_ + DropoutMask(),
              2 * element_,
              kLayerNormBackwardFlops + 1 + DropoutFlops());
    ReadRows(RowReads::kNorm);
    if (!NormsTrain()) return;
    Reduction(
        "layer norm weight gradient", a_.hidden, elements, 2 * element_, 0, 4);
    list_.kernels.back().bytes_written = 2 * a_.hidden * 4;
    return;
  }
  if (FusedPasses()) {
    // Before the block, LayerNorm also takes the residual's own gradient.
    const int64_t own = a_.norm_before() ? wide_ : 0;
    const bool two = dropout_ || autocast_;  // gradients that differ
    Reduction("layer norm, residual and dropout gradient",
              tokens,
              elements,
              2 * wide_ + own + DropoutMask(),
              wide_ + (two ? element_ : 0),
              kLayerNormBackwardFlops + 1 + DropoutFlops());
    ReadRows(RowReads::kNorm);
    if (!NormsTrain()) return;
    Reduction("bias and layer norm weight gradient",
              a_.hidden,
              elements,
              3 * wide_ + DropoutMask(),
              0,
              6);
    list_.kernels.back().bytes_written = 3 * a_.hidden * 4 * kPartialSums;
    AddPartialSums(3 * a_.hidden);
    return;
  }
  LayerNormBackward(tokens);
  if (a_.norm_placement == NormPlacement::kBoth) LayerNormBackward(tokens);
  NarrowGradient(elements);  // of the sum's narrow term
  DropoutBackward(elements, element_);
}

// Gradients of the two branches of a residual meet.
void PassKernels::ResidualGradientAdd(int64_t tokens) {
  const bool within = Compiled() || (FusedPasses() && a_.norm_before());
  if (!within) {
    Elementwise(
        "residual gradient add", tokens * a_.hidden, 2 * wide_, wide_, 1);
  }
}

void PassKernels::FeedForwardBackward(int64_t tokens, bool experts) {
  ResidualAndNormBackward(tokens);
  if (experts) {
    ExpertsBackward(tokens);
  } else {
    DenseBackward(tokens);
  }
  ResidualGradientAdd(tokens);
}

// What autograd runs of GeluByOperations(), last to first.
void PassKernels::GeluByOperationsBackward(int64_t elements) {
  const auto operation = [&](int64_t read, int64_t written, int64_t flops) {
    Elementwise("gelu operation gradient", elements, read, written, flops);
  };
  WidenGradient(elements);
  operation(2 * wide_, wide_, 1);  // of 0.5 x
  NarrowGradient(elements);
  operation(wide_ + element_, wide_, 1);  // of 1 + tanh
  operation(element_, element_, 1);       // of the first x
  operation(2 * wide_, wide_, 3);         // of tanh
  operation(wide_, wide_, 1);             // of x + ..
  NarrowGradient(elements);
  operation(element_ * 2, element_, 1);  // of x, twice so far
  operation(wide_, wide_, 1);            // of x^3
  operation(wide_, wide_, 1);            // x^2
  operation(wide_, wide_, 1);            // 3 x^2
  operation(2 * wide_, wide_, 1);
  NarrowGradient(elements);
  operation(element_ * 2, element_, 1);  // of x
}

void PassKernels::ActivationAloneBackward(KernelName name, int64_t elements) {
  if (WritesGeluOut(w_)) {
    GeluByOperationsBackward(elements);
  } else {
    Elementwise(name, elements, 2 * element_, element_, kGeluBackwardFlops, 2);
  }
}

void PassKernels::GatedActivationBackward(int64_t elements) {
  if (rules_.fuses_gate) {
    Elementwise("gated activation gradient",
                elements,
                3 * element_,
                2 * element_,
                kGeluBackwardFlops + 2,
                2);
    return;
  }
  Elementwise(
      "activation product gradient", elements, 2 * element_, element_, 1);
  Elementwise(
      "activation product gradient", elements, 2 * element_, element_, 1);
  ActivationAloneBackward("gated activation gradient", elements);
}

void PassKernels::DenseBackward(int64_t tokens) {
  const bool fused = FusedPasses();
  const bool bias = a_.feed_forward_bias && !fused;
  LinearBackward(
      Matrix::kFeedForwardOut, tokens, a_.hidden, a_.intermediate, bias);
  const int64_t elements = tokens * a_.intermediate;
  const bool apart = DropsActivation() && ByOperation();
  if (apart) DropoutBackward(elements, element_);
  const bool drops = DropsActivation() && !apart;
  if (a_.gated) {
    GatedActivationBackward(elements);
    if (drops) {
      list_.kernels.back().vector_flops += elements * kDropoutFlops;
      list_.kernels.back().bytes_read += elements * kMaskBytes;
    }
    GatedInputsBackward(tokens, bias);
    return;
  }
  if (WritesGeluOut(w_)) {
    GeluByOperationsBackward(elements);
  } else {
    Elementwise(
        fused ? KernelName("gelu and bias gradient")
              : KernelName("gelu gradient"),
        elements,
        2 * element_ + (drops ? DropoutMask() : 0),
        element_,
        kGeluBackwardFlops + (fused ? 1 : 0) + (drops ? DropoutFlops() : 0),
        2);
  }
  if (fused) AddPartialSums(a_.intermediate);
  LinearBackward(Matrix::kFeedForwardIn,
                 tokens,
                 a_.intermediate,
                 a_.hidden,
                 bias,
                 Input::kNarrowed);
}

// Both products behind a gate, side by side where they are one matrix.
void PassKernels::GatedInputsBackward(int64_t tokens, bool bias) {
  using enum Matrix;
  if (a_.joint_gate) {
    if (EagerOutside()) {
      Copy("join projection gradients",
           2 * tokens * a_.intermediate,
           element_,
           element_);
    }
    MergedLinearBackward(
        std::array{kFeedForwardGate, kFeedForwardIn}, tokens, bias);
    return;
  }
  const auto linear = [&](Matrix matrix) {
    LinearBackward(
        matrix, tokens, a_.intermediate, a_.hidden, bias, Input::kNarrowed);
  };
  linear(kFeedForwardGate);
  if (!Compiled()) {
    Elementwise("input gradient add", tokens * a_.hidden, 2 * wide_, wide_, 1);
  }
  linear(kFeedForwardIn);
}

// The backward pass of AddRows().
void PassKernels::GatherRowGradients(const Routed& r) {
  const int64_t h = a_.hidden;
  if (rules_.experts != ExpertKernels::kLoop) {
    Elementwise("unpermute gradient", r.rows * h, 2 * element_, element_, 2);
    return;
  }
  const size_t first = list_.kernels.size();
  Copy("unpermute gradient", r.each * h, element_, element_);
  Elementwise("unpermute gradient", r.each * h, element_, element_, 1);
  Elementwise("unpermute gradient", r.each * h, 2 * element_, element_, 1);
  Reduction("unpermute gradient", r.each, r.each * h, element_, 0, 1);
  // The weights' gradients, added to those of all pairs.
  const size_t sorted = list_.kernels.size();
  Copy("routing gradient", r.each, kIndexBytes, kIndexBytes);
  RepeatSince(sorted, kIndexPutLaunches);
  RepeatSince(first, r.groups);
}

// The backward pass of GatherRows(): in a loop each expert lays its rows into
// zeros for all tokens, which are added to those of the experts before.
void PassKernels::AddRowGradients(const Routed& r, int64_t tokens) {
  const int64_t h = a_.hidden;
  if (rules_.experts != ExpertKernels::kLoop) {
    Elementwise("permute gradient", r.rows * h, element_, element_, 1);
    return;
  }
  const size_t first = list_.kernels.size();
  Copy("permute gradient", tokens * h, 0, element_);
  Copy("permute gradient", r.each, kIndexBytes, kIndexBytes);
  list_.kernels.back().launches = kIndexPutLaunches - 1;
  Elementwise("permute gradient", r.each * h, 2 * element_, element_, 1);
  Elementwise("permute gradient", tokens * h, 2 * element_, element_, 1);
  RepeatSince(first, r.groups);
}

// The backward pass of ExpertsForward(): frozen experts have no weight
// gradient.
void PassKernels::ExpertsBackward(int64_t tokens) {
  const Routed r = RoutedRows(tokens);
  const int64_t h = a_.hidden;
  const int64_t wide = a_.expert_intermediate;
  const bool trains = Trains(Matrix::kFeedForwardIn);
  const auto product = [&](Matrix matrix, int64_t n, int64_t k) {
    ExpertGemm("expert input gradient", r, k, n);
    AdapterBackward(matrix, r, n, k);
    if (!trains) return;
    GroupWeightGradient("expert weight gradient", r, k, n);
    list_.kernels.back().launches = ExpertLaunches(r);
    if (fp8_ && w_.fp8.weight_gradients) ReadFp8(Reads::kGradient);
  };
  const auto each = [&](const auto& elementwise) {
    const size_t first = list_.kernels.size();
    elementwise();
    RepeatSince(first, ExpertLaunches(r));
  };
  const int64_t rows = ExpertRows(r);
  SharedExpertBackward(tokens);
  GatherRowGradients(r);
  product(Matrix::kFeedForwardOut, h, wide);
  if (a_.gated) {
    each([&] { GatedActivationBackward(rows * wide); });
    product(Matrix::kFeedForwardGate, wide, h);
    each([&] {
      Elementwise("input gradient add", rows * h, 2 * element_, element_, 1);
    });
  } else {
    each([&] { ActivationAloneBackward("gelu gradient", rows * wide); });
  }
  product(Matrix::kFeedForwardIn, wide, h);
  AddRowGradients(r, tokens);
  Reduction("routing gradient",
            tokens,
            tokens * a_.experts,
            8,
            element_,
            kSoftmaxBackwardFlops);
  Gemm("input gradient", tokens, h, a_.experts);
  if (trains) WeightGradientGemm("weight gradient", h, a_.experts, tokens);
}

void PassKernels::SharedExpertBackward(int64_t tokens) {
  const int64_t wide = a_.shared_intermediate;
  if (wide == 0) return;
  const int64_t h = a_.hidden;
  Elementwise("shared expert gradient", tokens * h, 2 * element_, element_, 2);
  LinearBackward(Matrix::kFeedForwardOut, tokens, h, wide, false);
  GatedActivationBackward(tokens * wide);
  LinearBackward(
      Matrix::kFeedForwardGate, tokens, wide, h, false, Input::kNarrowed);
  LinearBackward(
      Matrix::kFeedForwardIn, tokens, wide, h, false, Input::kNarrowed);
}

// The backward pass of LatentProjections(), last first.
void PassKernels::LatentBackward(const AttentionShape& shape, int64_t tokens) {
  const int64_t h = a_.hidden;
  Copy("gather latent keys", 2 * tokens * a_.query_width(), element_, element_);
  RotaryBackward(shape, tokens, tokens);
  const auto up = [&](Matrix matrix, int64_t n, int64_t k) {
    LinearBackward(matrix, tokens, n, k, false);
    NormBackward(tokens, k, element_);
  };
  const auto down = [&](Matrix matrix, int64_t n) {
    LinearBackward(matrix, tokens, n, h, false, Input::kNarrowed);
  };
  using enum Matrix;
  up(kKeyValueUp, a_.key_value_up_width(), a_.latent_key_value);
  down(kKeyValueDown, a_.key_value_down_width());
  if (a_.latent_query > 0) {
    up(kQueryUp, a_.query_width(), a_.latent_query);
    down(kQueryDown, a_.latent_query);
  } else {
    down(kQuery, a_.query_width());
  }
  Elementwise("input gradient add", tokens * h, 2 * wide_, wide_, 1);
}

void PassKernels::FlashAttentionBackward(const AttentionShape& shape) {
  const int64_t rows = shape.products() * shape.query_length;
  if (EagerOutside()) {
    // Dao et al. 2022, algorithm 4: D = rowsum(dO o O), before.
    Reduction("flash attention row sums",
              rows,
              shape.context_elements(),
              2 * element_,
              0,
              2);
    list_.kernels.back().bytes_written = rows * 4;
  }
  // Scores are computed anew: five products instead of four.
  Kernel& kernel = Push("flash attention gradient",
                        KernelKind::kAttention,
                        shape.query_elements());
  kernel.gemm = {
      shape.products(), shape.query_length, shape.key_length, shape.head_size};
  // Scores, queries' and keys' gradients of one size; probabilities' and
  // values' of the other.
  kernel.matrix_flops =
      2 * shape.seen_scores() * (3 * shape.head_size + 2 * shape.value_size);
  kernel.vector_flops =
      (kSoftmaxForwardFlops + kSoftmaxBackwardFlops + DropoutFlops()) *
      shape.seen_scores();
  kernel.special_ops = shape.seen_scores();
  kernel.random_draws = DropoutDraws() * shape.seen_scores();
  kernel.bytes_read = (shape.query_elements() + 2 * shape.context_elements() +
                       shape.key_value_elements()) *
                      element_;
  kernel.bytes_written =
      (shape.query_elements() + shape.key_value_elements()) * element_;
  if (Biased(shape)) kernel.bytes_read += shape.scores() * element_;
  if (BiasTrains(shape)) kernel.bytes_written += shape.scores() * element_;
  if (EagerOutside()) {
    // Sums of blocks of keys meet in fp32.
    Copy("flash attention query gradient", shape.query_elements(), 4, element_);
  }
  if (BiasTrains(shape)) {
    Elementwise(
        "position bias gradient", shape.scores(), 2 * element_, element_, 1);
  }
}

// Gradients of the projections, and through them of what they read.
void PassKernels::ProjectionsBackward(Attends attends,
                                      const AttentionShape& shape,
                                      int64_t query_tokens,
                                      int64_t key_tokens) {
  const int64_t h = a_.hidden;
  RotaryBackward(shape, query_tokens, key_tokens);
  HeadNorms(&PassKernels::NormBackward, query_tokens, key_tokens);
  const bool bias = a_.attention_bias;
  using enum Matrix;
  if (Joint(attends)) {
    if (EagerOutside()) {
      Copy("join projection gradients",
           query_tokens * a_.query_width() +
               key_tokens * (a_.key_width() + a_.value_width()),
           element_,
           element_);
    }
    MergedLinearBackward(std::array{kQuery, kKey, kValue}, query_tokens, bias);
  } else if (HandFused()) {
    LinearBackward(kQuery, query_tokens, a_.query_width(), h, bias);
    MergedLinearBackward(std::array{kKey, kValue}, key_tokens, bias);
  } else {
    LinearBackward(
        kQuery, query_tokens, a_.query_width(), h, bias, Input::kNarrowed);
    LinearBackward(kKey, key_tokens, a_.key_width(), h, bias, Input::kNarrowed);
    LinearBackward(
        kValue, key_tokens, a_.value_width(), h, bias, Input::kNarrowed);
    if (EagerOutside()) {
      Elementwise("input gradient add", query_tokens * h, 2 * wide_, wide_, 1);
      Elementwise("input gradient add", key_tokens * h, 2 * wide_, wide_, 1);
    }
  }
}

void PassKernels::AttentionBackward(Attends attends,
                                    const AttentionShape& shape,
                                    int64_t query_tokens,
                                    int64_t key_tokens) {
  ResidualAndNormBackward(query_tokens);
  LinearBackward(Matrix::kOutput,
                 query_tokens,
                 a_.hidden,
                 a_.context_width(),
                 a_.output_bias && !FusedPasses());
  const auto copy = [&](KernelName name, int64_t elements) {
    if (CopiesHeads()) Copy(name, elements, element_, element_);
  };
  copy("split head gradients", query_tokens * a_.context_width());
  if (ScoresOnChip(w_.stack.attention)) {
    FlashAttentionBackward(shape);
    if (EagerOutside()) SumRepeatedHeads(shape);
    WidenRotatedGradient(shape, query_tokens * a_.query_width());
    WidenRotatedGradient(shape, key_tokens * a_.key_width());
  } else {
    MaterialisedAttentionBackward(shape);
  }
  copy("merge head gradients", query_tokens * a_.query_width());
  copy("merge head gradients", key_tokens * a_.key_width());
  copy("merge head gradients", key_tokens * a_.value_width());
  if (a_.latent()) {
    LatentBackward(shape, query_tokens);
  } else {
    ProjectionsBackward(attends, shape, query_tokens, key_tokens);
  }
  ResidualGradientAdd(query_tokens);
}

int64_t PassKernels::WidthOf(Matrix matrix) const {
  switch (matrix) {
    case Matrix::kQuery:
      return a_.query_width();
    case Matrix::kKey:
      return a_.key_width();
    case Matrix::kValue:
      return a_.value_width();
    case Matrix::kFeedForwardGate:
    case Matrix::kFeedForwardIn:
      return a_.intermediate;
    default:
      ENSURE(false, "a matrix that is joined with no other");
  }
}

// The backward pass of one product of several matrices side by side; each may
// have its own adapter.
void PassKernels::MergedLinearBackward(std::span<const Matrix> matrices,
                                       int64_t tokens,
                                       bool bias) {
  const int64_t h = a_.hidden;
  int64_t outputs = 0;
  for (const Matrix matrix : matrices) outputs += WidthOf(matrix);
  if (w_.trainable.lora_rank == 0) {
    LinearBackward(
        matrices.front(), tokens, outputs, h, bias, Input::kNarrowed);
    return;
  }
  DequantiseAgain(outputs * h);
  Gemm("input gradient", tokens, h, outputs);
  for (const Matrix matrix : matrices) {
    AdapterBackward(matrix, OneGroup(tokens), WidthOf(matrix), h);
  }
  WidenGradient(tokens * h);
}

void PassKernels::SoftmaxBackward(const AttentionShape& shape) {
  const int64_t scores = shape.scores();
  const int64_t rows = shape.products() * shape.query_length;
  if (ByOperation()) {
    WidenGradient(scores);
    DropoutBackward(scores, wide_);
    Reduction("softmax gradient",
              rows,
              scores,
              2 * wide_,
              wide_,
              kSoftmaxBackwardFlops);
    ReadRows(RowReads::kTwice);
    if (BiasTrains(shape)) {
      Elementwise("position bias gradient", scores, 2 * wide_, wide_, 1);
    }
    NarrowGradient(scores);
    if (!a_.scaled_scores) return;
    Elementwise(rules_.scales_queries ? KernelName("mask gradient")
                                      : KernelName("scale gradient"),
                scores,
                element_,
                element_,
                1);
  } else {
    // A bias has the sum of all blocks' gradients.
    const int64_t sum = BiasTrains(shape) ? element_ : 0;
    Reduction("dropout and softmax gradient",
              rows,
              scores,
              2 * element_ + DropoutMask() + sum,
              element_ + sum,
              kSoftmaxBackwardFlops + DropoutFlops() + 1);
    ReadRows(RowReads::kTwice);
  }
  if (a_.attention_soft_cap && !Compiled()) {
    Elementwise("soft cap gradient", scores, 2 * element_, element_, 3);
  }
}

void PassKernels::MaterialisedAttentionBackward(const AttentionShape& shape) {
  Gemm("probability gradient",
       shape.query_length,
       shape.key_length,
       shape.value_size,
       shape.products());
  Gemm("value gradient",
       shape.key_length,
       shape.value_size,
       shape.query_length,
       shape.products());
  SoftmaxBackward(shape);
  Gemm("query gradient",
       shape.query_length,
       shape.head_size,
       shape.key_length,
       shape.products());
  Gemm("key gradient",
       shape.key_length,
       shape.head_size,
       shape.query_length,
       shape.products());
  WidenRotatedGradient(shape,
                       shape.products() * shape.query_length * shape.head_size);
  WidenRotatedGradient(shape,
                       shape.products() * shape.key_length * shape.head_size);
  SumRepeatedHeads(shape);
}

// The gradients of a key or value that several queries read: one a query, then
// their sum.
void PassKernels::SumRepeatedHeads(const AttentionShape& shape) {
  if (shape.key_heads == shape.heads || Compiled()) return;
  const bool flash = ScoresOnChip(w_.stack.attention);
  const auto sum = [&](int64_t size, int64_t width) {
    const int64_t elements = shape.products() * shape.key_length * size;
    const int64_t sums = elements / shape.heads * shape.key_heads;
    Reduction("repeated head gradients", sums, elements, width, 0, 1);
    list_.kernels.back().bytes_written = sums * width;
  };
  sum(shape.head_size, flash ? element_ : RotatedWidth(shape));
  sum(shape.value_size, element_);
}

// Back through CastRotated().
void PassKernels::WidenRotatedGradient(const AttentionShape& shape,
                                       int64_t elements) {
  if (RotatedWidth(shape) > element_) WidenGradient(elements);
}

void PassKernels::HeadBackward() {
  const int64_t b = w_.batch;
  const int64_t h = a_.hidden;
  if (a_.head == Head::kSequenceClassification) {
    LossBackward(b, a_.labels);
    LinearBackward(Matrix::kTaskHead, b, a_.labels, h);
    DropoutBackward(b * h, element_);
    if (a_.head_norm) LayerNormBackward(b);
    if (a_.classifier_dense) {
      Elementwise("activation gradient", b * h, 2 * element_, element_, 1);
      LinearBackward(Matrix::kTaskHead, b, h, h, a_.head_bias);
      ScatterFirstTokens();
    }
  } else if (a_.head == Head::kQuestionAnswering) {
    LossBackward(2 * b, w_.sequence_length);
    LinearBackward(
        Matrix::kTaskHead, HeadTokens(), 2, h, true, Input::kNarrowed);
    if (a_.head_norm) {
      HeadTransformBackward(Matrix::kTaskHead, HeadTokens(), h);
    }
  } else if (VocabularyHead()) {
    const int64_t rows = PredictedTokens();
    VocabularyBackward(rows);
    const bool causal = a_.head == Head::kCausalLanguageModel;
    if (causal && a_.projects_embeddings()) {
      LinearBackward(Matrix::kVocabularyHead,
                     rows,
                     a_.word_width(),
                     h,
                     false,
                     Input::kNarrowed);
    }
    if (ChunkedLoss()) {
      if (NormOfItsOwn()) {
        LayerNormBackward(HeadTokens());
        if (TwoSided()) LayerNormBackward(SourceTokens());
      }
      return;
    }
    if (!causal) {
      HeadTransformBackward(Matrix::kVocabularyHead, rows, a_.word_width());
    }
    if (a_.head == Head::kPreTraining) {
      LossBackward(b, 2);
      LinearBackward(Matrix::kVocabularyHead, b, 2, h);
    }
  }
  if (a_.has_pooler() && a_.head != Head::kNone) {
    Elementwise("tanh gradient", b * h, 2 * element_, element_, 3);
    LinearBackward(Matrix::kPooler, b, h, h);
    ScatterFirstTokens();
  }
  if (NormOfItsOwn()) {
    LayerNormBackward(HeadTokens());
    if (TwoSided()) LayerNormBackward(SourceTokens());
  }
}

void PassKernels::HeadTransformBackward(Matrix matrix,
                                        int64_t rows,
                                        int64_t width) {
  NormBackward(rows, width, wide_);
  Elementwise("gelu gradient",
              rows * width,
              2 * element_,
              element_,
              kGeluBackwardFlops,
              2);
  LinearBackward(
      matrix, rows, width, a_.hidden, a_.head_bias, Input::kNarrowed);
}

void PassKernels::VocabularyBackward(int64_t rows) {
  const int64_t words = a_.word_width();
  if (ChunkedLoss()) {
    Elementwise("loss gradient", rows * words, element_, element_, 1);
    return;
  }
  LossBackward(rows, a_.vocabulary);
  if (a_.output_soft_cap) {
    Elementwise(
        "soft cap gradient", rows * a_.vocabulary, 2 * element_, element_, 3);
  }
  LinearBackward(Matrix::kVocabulary,
                 rows,
                 a_.vocabulary,
                 words,
                 a_.head != Head::kCausalLanguageModel || a_.logits_bias,
                 words == a_.hidden ? Input::kNarrowed : Input::kAsItIs);
}

void PassKernels::ScatterFirstTokens() {
  Copy("scatter first tokens", HeadTokens() * a_.hidden, 0, wide_);
}

void PassKernels::LossBackward(int64_t rows, int64_t classes) {
  const int64_t scores = rows * classes;
  if (OneKernelCriterion() || FusedLoss(classes)) {
    const int64_t width = FusedLoss(classes) ? FusedLossWidth() : element_;
    Reduction("loss gradient",
              rows,
              scores,
              width,
              width,
              kSoftmaxForwardFlops + 2,
              1);
    if (!FusedLoss(classes)) ReadRows(RowReads::kThrice);
    if (width > element_) Copy("cast gradient", scores, width, element_);
    return;
  }
  if (!EagerOutside()) {
    const int64_t read = LossOf(w_).keeps_row_sums ? element_ : 4;
    Elementwise("loss gradient", scores, read, element_, 2, 1);
    return;
  }
  const int64_t width = BytesOfLossLogit(w_);
  Copy("zero target gradient", scores, 0, width);
  Copy("scatter target gradient", rows, 4 + kIndexBytes, width);
  if (rules_.smooths_labels) {
    // The gradients of both terms of the smoothed loss are added.
    Elementwise("loss gradient add", scores, 4, 4, 1);
    Reduction("loss gradient", rows, scores, 8, element_, 3, 1);
    ReadRows(RowReads::kTwice);
    return;
  }
  Reduction("loss gradient", rows, scores, 2 * width, width, 2, 1);
  ReadRows(RowReads::kTwice);
  if (element_ < 4) Copy("cast gradient", scores, width, element_);
}

// Gradients of tables are dense: zeroed, then rows added. A table that the
// logits are made with too has that gradient added to it.
void PassKernels::EmbeddingsBackward(int64_t tokens) {
  const int64_t words = a_.word_width();
  const int64_t width = a_.embedding_width();
  const bool words_alone = words != width;
  const auto through_projection = [&] {
    LinearBackward(Matrix::kEmbeddings,
                   tokens,
                   a_.hidden,
                   words,
                   a_.family == Family::kEncoder,
                   Input::kNarrowed);
  };
  if (a_.projects_embeddings() && !words_alone) through_projection();
  DropoutBackward(tokens * width, wide_);
  if (a_.embedding_layer_norm) NormBackward(tokens, width, wide_);
  if (Sinusoids() && EagerOutside()) {
    Elementwise("embedding scale gradient", tokens * width, 4, 4, 1);
  }
  if (words_alone) through_projection();
  TableGradient(a_.vocabulary, tokens, words);
  for (const int64_t rows : std::array{a_.table_rows(), a_.token_types}) {
    if (rows > 0) TableGradient(rows, tokens, width);
  }
  AddTiedGradient();
}

// A table that the logits' product reads, too, has two gradients.
void PassKernels::AddTiedGradient() {
  if (VocabularyHead() && EagerOutside() && !a_.untied_output) {
    AddWeightGradient("tied gradient add", a_.vocabulary * a_.word_width());
  }
}

// The gradients of all sequences meet, and those of a bucket.
void PassKernels::PositionBiasBackward(int64_t length) {
  if (a_.position_kind != PositionKind::kRelative) return;
  const int64_t biases = length * length * a_.heads;
  Reduction("position bias gradient",
            biases,
            w_.batch * biases,
            EagerOutside() ? wide_ : element_,
            0,
            1);
  list_.kernels.back().bytes_written = biases * 4;
  Kernel& kernel = Push("table gradient", KernelKind::kEmbedding, biases);
  kernel.vector_flops = biases;
  kernel.bytes_read = 2 * biases * 4 + length * length * kIndexBytes;
  kernel.bytes_written = biases * 4;
}

void PassKernels::TableGradient(int64_t rows, int64_t tokens, int64_t width) {
  const int64_t elements = tokens * width;
  Copy("zero table gradient", rows * width, 0, 4);
  list_.kernels.back().parameter_bytes = list_.kernels.back().bytes();
  Kernel& kernel = Push("table gradient", KernelKind::kEmbedding, elements);
  kernel.vector_flops = elements;
  kernel.bytes_read = 2 * elements * 4 + tokens * kIndexBytes;
  kernel.bytes_written = elements * 4;
}

}  // namespace trainfare::model::internal
