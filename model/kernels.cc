#include "model/kernels.h"

#include <array>
#include <span>

#include "model/gradient_compression.h"
#include "model/internal/enum_names.h"
#include "model/optimizer_kernels.h"
#include "model/trainable.h"

namespace trainfare::model {
namespace {

constexpr std::array kKinds = {
    std::pair{KernelKind::kGemm, std::string_view("gemm")},
    std::pair{KernelKind::kBatchedGemm, std::string_view("batched gemm")},
    std::pair{KernelKind::kAttention, std::string_view("attention")},
    std::pair{KernelKind::kElementwise, std::string_view("elementwise")},
    std::pair{KernelKind::kReduction, std::string_view("reduction")},
    std::pair{KernelKind::kEmbedding, std::string_view("embedding")},
    std::pair{KernelKind::kOptimizer, std::string_view("optimizer")},
    std::pair{KernelKind::kCopy, std::string_view("copy")},
};
constexpr std::array kPhases = {
    std::pair{Phase::kForward, std::string_view("forward")},
    std::pair{Phase::kBackward, std::string_view("backward")},
    std::pair{Phase::kOptimizer, std::string_view("optimizer")},
};

// Arithmetic an element, from the textbook form of each operation; a
// transcendental is counted apart as a special operation.
constexpr int64_t kLayerNormForwardFlops = 8;    // mean, variance, affine
constexpr int64_t kLayerNormBackwardFlops = 14;  // two sums, two products
constexpr int64_t kSoftmaxForwardFlops = 4;      // max, subtract, sum, divide
constexpr int64_t kSoftmaxBackwardFlops = 4;     // dot, subtract, multiply
constexpr int64_t kGeluForwardFlops = 4;         // x (1 + erf(x / sqrt 2)) / 2
constexpr int64_t kGeluBackwardFlops = 8;
constexpr int64_t kDropoutFlops = 2;  // compare, scale

constexpr int64_t kIndexBytes = 8;  // token ids are int64
constexpr int64_t kMaskBytes = 1;   // a dropout mask element

// Extents of one attention block: queries of one side, keys of another.
struct AttentionShape {
  int64_t batch;
  int64_t heads;
  int64_t query_length;
  int64_t key_length;
  int64_t head_size;

  int64_t products() const { return batch * heads; }
  int64_t scores() const { return products() * query_length * key_length; }
  int64_t query_elements() const {
    return products() * query_length * head_size;
  }
  int64_t key_elements() const { return products() * key_length * head_size; }
};

// Matrices of a model, as far as training tells them apart.
enum class Matrix {
  kQuery,
  kKey,
  kValue,
  kOutput,
  kFeedForwardIn,
  kFeedForwardOut,
  kPooler,
  kTaskHead,        // trains beside adapters
  kVocabularyHead,  // the transform before the logits
  kVocabulary,      // tied to the word embeddings
};

// Appends kernels in the order in which a stack launches them.
class Expander {
 public:
  explicit Expander(const Workload& w)
      : w_(w),
        a_(w.architecture),
        fusion_(w.stack.fusion),
        element_(BytesPerElement(w.precision)),
        // Autocast keeps LayerNorm and softmax results in fp32; hand-fused and
        // compiled stacks keep them in the narrow type.
        wide_(Autocasts(w) ? 4 : element_),
        autocast_(Autocasts(w)),
        dropout_(a_.dropout > 0 && w.work != Work::kForward) {
    list_.kernels.reserve(128);
    list_.segments.reserve(12);
  }

  KernelList Expand() {
    Forward();
    if (w_.work != Work::kForward) Backward();
    if (w_.work == Work::kTraining) {
      if (w_.compression.kind != CompressionKind::kNone) {
        Open(Phase::kOptimizer, SegmentRole::kCompression, 1);
        AppendCompressionKernels(w_, list_.kernels);
        Close();
      }
      Open(Phase::kOptimizer, SegmentRole::kOptimizer, 1);
      AppendOptimizerKernels(w_, list_.kernels);
      Close();
    }
    return std::move(list_);
  }

 private:
  int64_t SourceTokens() const { return w_.batch * w_.sequence_length; }
  int64_t TargetLength() const {
    return w_.target_length > 0 ? w_.target_length : w_.sequence_length;
  }
  // Which side attention takes its keys and values from: the queries' own, or
  // the encoder's.
  enum class Attends { kSelf, kCross };
  // Whether one product makes queries, keys and values.
  bool Joint(Attends attends) const {
    return attends == Attends::kSelf &&
           (fusion_ == Fusion::kLightSeq || a_.joint_projection());
  }
  bool TwoSided() const { return a_.family == Family::kEncoderDecoder; }
  int64_t HeadTokens() const {
    return w_.batch * (TwoSided() ? TargetLength() : w_.sequence_length);
  }

  void Open(Phase phase, SegmentRole role, int64_t repeat) {
    Segment segment;
    segment.phase = phase;
    segment.role = role;
    segment.repeat = repeat;
    segment.begin = static_cast<int64_t>(list_.kernels.size());
    list_.segments.push_back(segment);
  }
  void Close() {
    list_.segments.back().end = static_cast<int64_t>(list_.kernels.size());
  }

  Kernel& Push(std::string_view name, KernelKind kind, int64_t work_items) {
    Kernel kernel;
    kernel.name = name;
    kernel.kind = kind;
    kernel.work_items = work_items;
    list_.kernels.push_back(kernel);
    return list_.kernels.back();
  }

  // C (m, n) = A (m, k) B (k, n).
  void Gemm(std::string_view name,
            int64_t m,
            int64_t n,
            int64_t k,
            int64_t batch = 1) {
    Kernel& kernel =
        Push(name,
             batch == 1 ? KernelKind::kGemm : KernelKind::kBatchedGemm,
             batch * m * n);
    kernel.gemm = {batch, m, n, k};
    kernel.matrix_flops = 2 * batch * m * n * k;
    kernel.bytes_read = batch * (m * k + k * n) * element_;
    kernel.bytes_written = batch * m * n * element_;
    if (batch == 1) kernel.parameter_bytes = k * n * element_;
  }

  void Elementwise(std::string_view name,
                   int64_t elements,
                   int64_t read_bytes,
                   int64_t written_bytes,
                   int64_t flops,
                   int64_t special = 0,
                   int64_t random = 0) {
    Kernel& kernel = Push(name, KernelKind::kElementwise, elements);
    kernel.vector_flops = flops * elements;
    kernel.special_ops = special * elements;
    kernel.random_draws = random * elements;
    kernel.bytes_read = read_bytes * elements;
    kernel.bytes_written = written_bytes * elements;
  }
  void Copy(std::string_view name,
            int64_t elements,
            int64_t read_bytes,
            int64_t written_bytes) {
    Kernel& kernel = Push(name, KernelKind::kCopy, elements);
    kernel.bytes_read = read_bytes * elements;
    kernel.bytes_written = written_bytes * elements;
  }
  void Reduction(std::string_view name,
                 int64_t rows,
                 int64_t elements,
                 int64_t read_bytes,
                 int64_t written_bytes,
                 int64_t flops,
                 int64_t special = 0,
                 int64_t random = 0) {
    Elementwise(
        name, elements, read_bytes, written_bytes, flops, special, random);
    list_.kernels.back().kind = KernelKind::kReduction;
    list_.kernels.back().work_items = rows;
  }
  // Bias gradients: column sums of (rows, columns).
  void BiasGradient(int64_t rows, int64_t columns) {
    Reduction("bias gradient", columns, rows * columns, element_, 0, 1);
    list_.kernels.back().bytes_written = columns * element_;
  }

  // The trainer's fused stack is eager where nothing of it applies.
  bool EagerOutside() const {
    return OperationByOperation(w_.stack) || fusion_ == Fusion::kFused;
  }
  bool Fairseq() const { return fusion_ == Fusion::kFairseq; }
  // Before CUDA 11.4 PyTorch lays a bias out as the result of its product,
  // which adds to it.
  void LaidOutBias(int64_t elements) {
    if (Fairseq()) Elementwise("bias", elements, element_, element_, 1);
  }

  // Whether a weight has a gradient, in a block that has a backward pass.
  bool Trains(Matrix matrix) const {
    if (w_.trainable.lora_rank > 0) return matrix == Matrix::kTaskHead;
    return matrix != Matrix::kVocabulary || w_.trainable.everything();
  }
  // LayerNorm's scales and shifts.
  bool NormsTrain() const { return w_.trainable.lora_rank == 0; }
  bool HasAdapter(Matrix matrix) const {
    const LoraMatrices& m = w_.trainable.lora;
    if (w_.trainable.lora_rank == 0) return false;
    switch (matrix) {
      case Matrix::kQuery:
        return m.query;
      case Matrix::kKey:
        return m.key;
      case Matrix::kValue:
        return m.value;
      case Matrix::kOutput:
        return m.output;
      case Matrix::kFeedForwardIn:
        return m.feed_forward_in;
      case Matrix::kFeedForwardOut:
        return m.feed_forward_out;
      case Matrix::kPooler:
      case Matrix::kTaskHead:
      case Matrix::kVocabularyHead:
      case Matrix::kVocabulary:
        return false;
    }
    ENSURE(false, "a matrix without an answer");
  }

  // (X A) B s, added to X W: two thin products and a pass over the result,
  // which a compiler fuses into the second.
  void AdapterForward(Matrix matrix, int64_t m, int64_t n, int64_t k) {
    if (!HasAdapter(matrix)) return;
    const int64_t rank = w_.trainable.lora_rank;
    Gemm("adapter down", m, rank, k);
    Gemm("adapter up", m, n, rank);
    if (fusion_ != Fusion::kCompiled) {
      Elementwise("adapter add", m * n, 2 * element_, element_, 2);
    }
  }
  // Of the same: B's gradient, that of X A, A's gradient, and X's, added.
  void AdapterBackward(Matrix matrix, int64_t m, int64_t n, int64_t k) {
    if (!HasAdapter(matrix)) return;
    const int64_t rank = w_.trainable.lora_rank;
    WeightGradientGemm("adapter up gradient", rank, n, m);
    Gemm("adapter inner gradient", m, rank, n);
    WeightGradientGemm("adapter down gradient", k, rank, m);
    Gemm("adapter input gradient", m, k, rank);
    if (fusion_ != Fusion::kCompiled) {
      Elementwise("adapter gradient add", m * k, 2 * element_, element_, 1);
    }
  }
  // W (k, n) = X^T (k, m) Y (m, n).
  void WeightGradientGemm(std::string_view name,
                          int64_t k,
                          int64_t n,
                          int64_t m) {
    Gemm(name, k, n, m);
    list_.kernels.back().parameter_bytes = k * n * element_;
    list_.kernels.back().parameter_bytes_written = k * n * element_;
  }

  int64_t DropoutDraws() const { return dropout_ ? 1 : 0; }
  int64_t DropoutFlops() const { return dropout_ ? kDropoutFlops : 0; }
  int64_t DropoutMask() const { return dropout_ ? kMaskBytes : 0; }

  // ---- forward ----

  void Forward() {
    Open(Phase::kForward, SegmentRole::kEmbeddings, 1);
    EmbeddingsForward(SourceTokens());
    if (TwoSided()) EmbeddingsForward(w_.batch * TargetLength());
    if (autocast_) CastWeights();
    Close();

    Open(Phase::kForward, SegmentRole::kLayer, a_.layers);
    LayerForward(SelfAttention(w_.sequence_length), SourceTokens());
    Close();
    if (TwoSided()) {
      Open(Phase::kForward, SegmentRole::kDecoderLayer, a_.decoder_layers);
      DecoderLayerForward();
      Close();
    }

    Open(Phase::kForward, SegmentRole::kHead, 1);
    HeadForward();
    Close();
  }

  AttentionShape SelfAttention(int64_t length) const {
    return {w_.batch, a_.heads, length, length, a_.hidden / a_.heads};
  }
  AttentionShape CrossAttention() const {
    return {w_.batch,
            a_.heads,
            TargetLength(),
            w_.sequence_length,
            a_.hidden / a_.heads};
  }

  // Vaswani et al. 2017: word vectors times sqrt(h), plus fixed sinusoids.
  bool Sinusoids() const { return TwoSided() && a_.positions == 0; }

  void EmbeddingsForward(int64_t tokens) {
    const int64_t elements = tokens * a_.hidden;
    int64_t tables = 1;
    if (a_.positions > 0) ++tables;
    if (a_.token_types > 0) ++tables;
    const int64_t gathers = EagerOutside() ? tables : 1;
    const bool in_one = Sinusoids() && !EagerOutside();
    for (int64_t i = 0; i < gathers; ++i) {
      Kernel& kernel =
          Push("embedding gather", KernelKind::kEmbedding, elements);
      const int64_t rows_read = EagerOutside() ? 1 : tables;
      kernel.bytes_read = rows_read * (elements * 4 + tokens * kIndexBytes);
      kernel.bytes_written = elements * (EagerOutside() ? 4 : wide_);
      kernel.vector_flops = (rows_read - 1 + (in_one ? 2 : 0)) * elements;
    }
    if (EagerOutside()) {
      if (Sinusoids()) Elementwise("embedding scale", elements, 4, 4, 1);
      const int64_t added = tables - 1 + (Sinusoids() ? 1 : 0);
      for (int64_t i = 0; i < added; ++i) {
        Elementwise("embedding add", elements, 8, 4, 1);
      }
    }
    if (a_.embedding_layer_norm) LayerNormForward(tokens);
    if (dropout_ && fusion_ != Fusion::kCompiled) Dropout(elements, wide_);
  }

  // Autocast keeps a narrow copy of every matrix for the length of a pass.
  void CastWeights() {
    const int64_t square = a_.hidden * a_.hidden;
    const int64_t feed_forward = 2 * a_.hidden * a_.intermediate;
    const int64_t elements =
        (a_.layers + a_.decoder_layers) * (4 * square + feed_forward) +
        a_.decoder_layers * 4 * square;  // cross-attention
    const int64_t matrices =
        a_.layers * (a_.joint_projection() ? 4 : 6) + a_.decoder_layers * 10;
    // A matrix and a bias are a launch each.
    const int64_t launches = 2 * matrices;
    Copy("cast weights", elements / launches, 4, element_);
    Kernel& kernel = list_.kernels.back();
    kernel.launches = launches;
    kernel.parameter_bytes = kernel.bytes();
    kernel.parameter_bytes_written = kernel.bytes_written;
  }

  void LayerNormForward(int64_t rows) {
    Reduction("layer norm",
              rows,
              rows * a_.hidden,
              wide_,
              wide_,
              kLayerNormForwardFlops);
    if (autocast_) CastActivation(rows * a_.hidden);
  }
  void CastActivation(int64_t elements) {
    Copy("cast activation", elements, 4, element_);
  }
  void Dropout(int64_t elements, int64_t width) {
    if (!dropout_) return;
    Elementwise(
        "dropout", elements, width, width + kMaskBytes, kDropoutFlops, 0, 1);
  }

  void LayerForward(const AttentionShape& shape, int64_t tokens) {
    AttentionForward(Attends::kSelf, shape, tokens, tokens);
    FeedForwardForward(tokens);
  }
  void DecoderLayerForward() {
    const int64_t tokens = w_.batch * TargetLength();
    AttentionForward(
        Attends::kSelf, SelfAttention(TargetLength()), tokens, tokens);
    AttentionForward(Attends::kCross, CrossAttention(), tokens, SourceTokens());
    FeedForwardForward(tokens);
  }

  // Projections, scores, softmax, context, output projection, residual, norm.
  void AttentionForward(Attends attends,
                        const AttentionShape& shape,
                        int64_t query_tokens,
                        int64_t key_tokens) {
    const int64_t h = a_.hidden;
    const int64_t queries = query_tokens * h;
    const int64_t keys = key_tokens * h;
    if (Joint(attends)) {
      Gemm("query, key and value projection", query_tokens, 3 * h, h);
    } else {
      Gemm("query projection", query_tokens, h, h);
      if (fusion_ == Fusion::kLightSeq) {
        // Of the encoder's output, which queries are not made of.
        Gemm("key and value projection", key_tokens, 2 * h, h);
      } else {
        Gemm("key projection", key_tokens, h, h);
        Gemm("value projection", key_tokens, h, h);
      }
    }
    if (fusion_ == Fusion::kLightSeq) {
      Elementwise(
          "bias and head split", queries + 2 * keys, element_, element_, 1);
    }
    AdapterForward(Matrix::kQuery, query_tokens, h, h);
    AdapterForward(Matrix::kKey, key_tokens, h, h);
    AdapterForward(Matrix::kValue, key_tokens, h, h);
    LaidOutBias(queries);
    LaidOutBias(keys);
    LaidOutBias(keys);
    if (Fairseq()) Elementwise("scale queries", queries, element_, element_, 1);
    if (w_.stack.attention == Attention::kFlash) {
      Kernel& kernel = Push(
          "flash attention", KernelKind::kAttention, shape.query_elements());
      kernel.gemm = {shape.products(),
                     shape.query_length,
                     shape.key_length,
                     shape.head_size};
      kernel.matrix_flops = 4 * shape.scores() * shape.head_size;
      kernel.vector_flops =
          (kSoftmaxForwardFlops + 1 + DropoutFlops()) * shape.scores();
      kernel.special_ops = shape.scores();
      kernel.random_draws = DropoutDraws() * shape.scores();
      kernel.bytes_read =
          (shape.query_elements() + 2 * shape.key_elements()) * element_;
      kernel.bytes_written = shape.query_elements() * element_;
    } else {
      MaterialisedAttentionForward(shape, queries, keys);
    }
    if (fusion_ != Fusion::kCompiled) {
      Copy("merge heads", queries, element_, element_);
    }
    Gemm("attention output projection", query_tokens, h, h);
    AdapterForward(Matrix::kOutput, query_tokens, h, h);
    LaidOutBias(queries);
    ResidualAndNormForward(query_tokens);
  }

  void MaterialisedAttentionForward(const AttentionShape& shape,
                                    int64_t queries,
                                    int64_t keys) {
    const int64_t scores = shape.scores();
    const int64_t rows = shape.products() * shape.query_length;
    if (EagerOutside() && !Fairseq()) {
      // Strided heads are not one batched product: each operand is copied.
      // (Fairseq's tokens come before its sentences: heads are one stride.)
      Copy("split heads", queries, element_, element_);
      Copy("split heads", keys, element_, element_);
      Copy("split heads", keys, element_, element_);
    }
    Gemm("attention scores",
         shape.query_length,
         shape.key_length,
         shape.head_size,
         shape.products());
    if (OperationByOperation(w_.stack)) {
      if (!Fairseq()) {
        Elementwise("scale scores", scores, element_, element_, 1);
      }
      Elementwise("mask scores", scores, element_, element_, 1);
      Reduction(
          "softmax", rows, scores, element_, wide_, kSoftmaxForwardFlops, 1);
      Dropout(scores, wide_);
      if (autocast_) CastActivation(scores);
    } else if (fusion_ == Fusion::kLightSeq) {
      Reduction("mask and softmax",
                rows,
                scores,
                element_,
                element_,
                kSoftmaxForwardFlops + 1,
                1);
      Dropout(scores, element_);
    } else if (fusion_ == Fusion::kFused) {
      // Probabilities are kept for the backward pass, dropped or not.
      Reduction("mask, softmax and dropout",
                rows,
                scores,
                element_,
                dropout_ ? 2 * element_ + kMaskBytes : element_,
                kSoftmaxForwardFlops + 2 + DropoutFlops(),
                1,
                DropoutDraws());
    } else {
      Reduction("mask, softmax and dropout",
                rows,
                scores,
                element_,
                element_ + DropoutMask(),
                kSoftmaxForwardFlops + 2 + DropoutFlops(),
                1,
                DropoutDraws());
    }
    Gemm("attention context",
         shape.query_length,
         shape.head_size,
         shape.key_length,
         shape.products());
  }

  // dropout(x + bias) + residual, then LayerNorm (before the block in a
  // decoder: the same kernels in another order).
  void ResidualAndNormForward(int64_t tokens) {
    const int64_t elements = tokens * a_.hidden;
    switch (fusion_) {
      case Fusion::kEager:
      case Fusion::kFairseq:
        Dropout(elements, element_);
        Elementwise("residual add", elements, element_ + wide_, wide_, 1);
        LayerNormForward(tokens);
        break;
      case Fusion::kFused:
        // Writes the sum, which the backward pass reads, and its norm.
        Reduction("bias, dropout, residual and layer norm",
                  tokens,
                  elements,
                  element_ + wide_,
                  2 * wide_ + DropoutMask(),
                  2 + DropoutFlops() + kLayerNormForwardFlops,
                  0,
                  DropoutDraws());
        if (autocast_) CastActivation(elements);
        break;
      case Fusion::kLightSeq:
        Elementwise("bias, dropout and residual",
                    elements,
                    2 * element_,
                    element_ + DropoutMask(),
                    2 + DropoutFlops(),
                    0,
                    DropoutDraws());
        LayerNormForward(tokens);
        break;
      case Fusion::kCompiled:
        Reduction("bias, dropout, residual and layer norm",
                  tokens,
                  elements,
                  2 * element_,
                  element_ + DropoutMask(),
                  2 + DropoutFlops() + kLayerNormForwardFlops,
                  0,
                  DropoutDraws());
        break;
    }
  }

  void FeedForwardForward(int64_t tokens) {
    const int64_t elements = tokens * a_.intermediate;
    Gemm("feed-forward in", tokens, a_.intermediate, a_.hidden);
    AdapterForward(Matrix::kFeedForwardIn, tokens, a_.intermediate, a_.hidden);
    LaidOutBias(elements);
    if (fusion_ == Fusion::kFused || fusion_ == Fusion::kLightSeq) {
      // LightSeq2 also drops out the activation in the same pass.
      Elementwise("bias and gelu",
                  elements,
                  element_,
                  element_,
                  kGeluForwardFlops + 1,
                  1);
    } else {
      Elementwise("gelu", elements, element_, element_, kGeluForwardFlops, 1);
    }
    Gemm("feed-forward out", tokens, a_.hidden, a_.intermediate);
    AdapterForward(Matrix::kFeedForwardOut, tokens, a_.hidden, a_.intermediate);
    LaidOutBias(tokens * a_.hidden);
    ResidualAndNormForward(tokens);
  }

  bool VocabularyHead() const {
    return a_.head == Head::kMaskedLanguageModel ||
           a_.head == Head::kPreTraining ||
           a_.head == Head::kCausalLanguageModel;
  }
  int64_t PredictedTokens() const {
    return w_.predictions_per_sequence > 0
               ? w_.batch * w_.predictions_per_sequence
               : HeadTokens();
  }

  void HeadForward() {
    const int64_t b = w_.batch;
    const int64_t h = a_.hidden;
    if (a_.family == Family::kDecoder) LayerNormForward(HeadTokens());
    if (a_.has_pooler()) {
      Copy("first tokens", b * h, wide_, element_);
      Gemm("pooler", b, h, h);
      Elementwise("tanh", b * h, element_, element_, 0, 1);
    }
    if (a_.head == Head::kSequenceClassification) {
      if (a_.classifier_dense) {
        Copy("first tokens", b * h, wide_, element_);
        Gemm("classifier dense", b, h, h);
        Elementwise("activation", b * h, element_, element_, 1, 1);
      }
      Dropout(b * h, element_);
      Gemm("classifier", b, a_.labels, h);
      Loss(b, a_.labels);
    } else if (a_.head == Head::kQuestionAnswering) {
      Gemm("span logits", HeadTokens(), 2, h);
      Loss(2 * b, w_.sequence_length);
    } else if (VocabularyHead()) {
      const int64_t rows = PredictedTokens();
      if (a_.head == Head::kPreTraining) {
        Gemm("next sentence", b, 2, h);
        Loss(b, 2);
      }
      if (w_.predictions_per_sequence > 0) {
        Copy("gather predicted tokens", rows * h, wide_, element_);
      }
      if (a_.head != Head::kCausalLanguageModel) {
        Gemm("head transform", rows, h, h);
        Elementwise("gelu", rows * h, element_, element_, kGeluForwardFlops, 1);
        LayerNormForward(rows);
      }
      Gemm("vocabulary logits", rows, a_.vocabulary, h);
      Loss(rows, a_.vocabulary);
    }
  }
  // Log-softmax and negative log-likelihood, in fp32.
  void Loss(int64_t rows, int64_t classes) {
    // LightSeq2's criterion writes no probabilities.
    Reduction("loss",
              rows,
              rows * classes,
              element_,
              OneKernelCriterion() ? 0 : 4,
              kSoftmaxForwardFlops,
              1);
    if (OneKernelCriterion()) list_.kernels.back().bytes_written = rows * 4;
    if (Fairseq()) {
      // Label smoothing: what the target has, and the mean over all classes.
      Copy("gather target", rows, 4 + kIndexBytes, 4);
      Reduction("smooth loss", rows, rows * classes, 4, 0, 1);
      list_.kernels.back().bytes_written = rows * 4;
    }
  }
  // LightSeq2 (not DeepSpeed, which has no translation models) computes the
  // probabilities once more in the backward pass.
  bool OneKernelCriterion() const {
    return TwoSided() && fusion_ == Fusion::kLightSeq;
  }

  // ---- backward ----

  void Backward() {
    Open(Phase::kBackward, SegmentRole::kHead, 1);
    HeadBackward();
    Close();
    if (TwoSided()) {
      Open(Phase::kBackward, SegmentRole::kDecoderLayer, a_.decoder_layers);
      if (w_.gradient_checkpointing) DecoderLayerForward();
      const int64_t tokens = w_.batch * TargetLength();
      FeedForwardBackward(tokens);
      AttentionBackward(
          Attends::kCross, CrossAttention(), tokens, SourceTokens());
      AttentionBackward(
          Attends::kSelf, SelfAttention(TargetLength()), tokens, tokens);
      Close();
    }
    // What lies below the first weights that train has no backward pass. (A
    // first block with adapters is counted like the others: its own input
    // gradient is not needed.)
    if (LayersWithBackward(w_) > 0) {
      Open(Phase::kBackward, SegmentRole::kLayer, LayersWithBackward(w_));
      if (w_.gradient_checkpointing) {
        LayerForward(SelfAttention(w_.sequence_length), SourceTokens());
      }
      FeedForwardBackward(SourceTokens());
      AttentionBackward(Attends::kSelf,
                        SelfAttention(w_.sequence_length),
                        SourceTokens(),
                        SourceTokens());
      Close();
    }
    if (w_.trainable.everything()) {
      Open(Phase::kBackward, SegmentRole::kEmbeddings, 1);
      EmbeddingsBackward(SourceTokens());
      if (TwoSided()) EmbeddingsBackward(w_.batch * TargetLength());
      Close();
    }
  }

  // Of Y (m, n) = X (m, k) W (k, n): input gradient, weight gradient, bias.
  // `bias`: its gradient is a kernel of its own.
  void LinearBackward(
      Matrix matrix, int64_t m, int64_t n, int64_t k, bool bias = true) {
    Gemm("input gradient", m, k, n);
    AdapterBackward(matrix, m, n, k);
    if (!Trains(matrix)) return;
    WeightGradientGemm("weight gradient", k, n, m);
    if (autocast_) {
      Copy("cast weight gradient", k * n, element_, 4);
      list_.kernels.back().parameter_bytes = list_.kernels.back().bytes();
      list_.kernels.back().parameter_bytes_written =
          list_.kernels.back().bytes_written;
    }
    if (bias) BiasGradient(m, n);
  }

  void LayerNormBackward(int64_t rows) {
    const int64_t elements = rows * a_.hidden;
    if (autocast_) Copy("cast gradient", elements, element_, 4);
    Reduction("layer norm gradient",
              rows,
              elements,
              2 * wide_,
              wide_,
              kLayerNormBackwardFlops);
    if (!NormsTrain()) return;
    // Scale and shift: column sums over the same tensors.
    Reduction(
        "layer norm weight gradient", a_.hidden, elements, 2 * wide_, 0, 4);
    list_.kernels.back().bytes_written = 2 * a_.hidden * 4;
  }
  void DropoutBackward(int64_t elements, int64_t width) {
    if (!dropout_) return;
    Elementwise(
        "dropout gradient", elements, width + kMaskBytes, width, kDropoutFlops);
  }

  void ResidualAndNormBackward(int64_t tokens) {
    const int64_t elements = tokens * a_.hidden;
    if (fusion_ == Fusion::kCompiled) {
      Reduction("layer norm, residual and dropout gradient",
                tokens,
                elements,
                2 * element_ + DropoutMask(),
                2 * element_,
                kLayerNormBackwardFlops + 1 + DropoutFlops());
      if (!NormsTrain()) return;
      Reduction("layer norm weight gradient",
                a_.hidden,
                elements,
                2 * element_,
                0,
                4);
      list_.kernels.back().bytes_written = 2 * a_.hidden * 4;
      return;
    }
    if (fusion_ == Fusion::kFused) {
      // Before the block, LayerNorm also takes the residual's own gradient.
      const int64_t own = a_.family == Family::kDecoder ? wide_ : 0;
      const bool two = dropout_ || autocast_;  // gradients that differ
      Reduction("layer norm, residual and dropout gradient",
                tokens,
                elements,
                2 * wide_ + own + DropoutMask(),
                wide_ + (two ? element_ : 0),
                kLayerNormBackwardFlops + 1 + DropoutFlops());
      if (!NormsTrain()) return;
      Reduction("bias and layer norm weight gradient",
                a_.hidden,
                elements,
                3 * wide_ + DropoutMask(),
                0,
                6);
      list_.kernels.back().bytes_written = 3 * a_.hidden * 4;
      return;
    }
    LayerNormBackward(tokens);
    DropoutBackward(elements, element_);
  }

  // Gradients of the two branches of a residual meet.
  void ResidualGradientAdd(int64_t tokens) {
    const bool within =
        fusion_ == Fusion::kCompiled ||
        (fusion_ == Fusion::kFused && a_.family == Family::kDecoder);
    if (!within) {
      Elementwise("residual gradient add",
                  tokens * a_.hidden,
                  element_ + wide_,
                  wide_,
                  1);
    }
  }

  void FeedForwardBackward(int64_t tokens) {
    const bool fused = fusion_ == Fusion::kFused;
    ResidualAndNormBackward(tokens);
    LinearBackward(
        Matrix::kFeedForwardOut, tokens, a_.hidden, a_.intermediate, !fused);
    Elementwise(fused ? "gelu and bias gradient" : "gelu gradient",
                tokens * a_.intermediate,
                2 * element_,
                element_,
                kGeluBackwardFlops + (fused ? 1 : 0),
                2);
    LinearBackward(
        Matrix::kFeedForwardIn, tokens, a_.intermediate, a_.hidden, !fused);
    ResidualGradientAdd(tokens);
  }

  void AttentionBackward(Attends attends,
                         const AttentionShape& shape,
                         int64_t query_tokens,
                         int64_t key_tokens) {
    const int64_t h = a_.hidden;
    const int64_t queries = query_tokens * h;
    const int64_t keys = key_tokens * h;
    ResidualAndNormBackward(query_tokens);
    LinearBackward(
        Matrix::kOutput, query_tokens, h, h, fusion_ != Fusion::kFused);
    if (fusion_ != Fusion::kCompiled) {
      Copy("split head gradients", queries, element_, element_);
    }
    if (w_.stack.attention == Attention::kFlash) {
      // Scores are computed anew: five products instead of four.
      Kernel& kernel = Push("flash attention gradient",
                            KernelKind::kAttention,
                            shape.query_elements());
      kernel.gemm = {shape.products(),
                     shape.query_length,
                     shape.key_length,
                     shape.head_size};
      kernel.matrix_flops = 10 * shape.scores() * shape.head_size;
      kernel.vector_flops =
          (kSoftmaxForwardFlops + kSoftmaxBackwardFlops + DropoutFlops()) *
          shape.scores();
      kernel.special_ops = shape.scores();
      kernel.random_draws = DropoutDraws() * shape.scores();
      kernel.bytes_read =
          (3 * shape.query_elements() + 2 * shape.key_elements()) * element_;
      kernel.bytes_written =
          (shape.query_elements() + 2 * shape.key_elements()) * element_;
    } else {
      MaterialisedAttentionBackward(shape);
    }
    if (fusion_ != Fusion::kCompiled) {
      Copy("merge head gradients", queries, element_, element_);
      Copy("merge head gradients", keys, element_, element_);
      Copy("merge head gradients", keys, element_, element_);
    }
    using enum Matrix;
    if (Joint(attends)) {
      if (EagerOutside()) {
        Copy("join projection gradients", 3 * queries, element_, element_);
      }
      MergedLinearBackward(std::array{kQuery, kKey, kValue}, query_tokens);
    } else if (fusion_ == Fusion::kLightSeq) {
      LinearBackward(kQuery, query_tokens, h, h);
      MergedLinearBackward(std::array{kKey, kValue}, key_tokens);
    } else {
      LinearBackward(kQuery, query_tokens, h, h);
      LinearBackward(kKey, key_tokens, h, h);
      LinearBackward(kValue, key_tokens, h, h);
      if (EagerOutside()) {
        Elementwise("input gradient add", queries, 2 * element_, element_, 1);
        Elementwise("input gradient add", keys, 2 * element_, element_, 1);
      }
    }
    ResidualGradientAdd(query_tokens);
  }

  // Of one product of several square matrices side by side; each may have its
  // own adapter.
  void MergedLinearBackward(std::span<const Matrix> matrices, int64_t tokens) {
    const int64_t h = a_.hidden;
    const auto outputs = static_cast<int64_t>(matrices.size()) * h;
    if (w_.trainable.lora_rank == 0) {
      LinearBackward(matrices.front(), tokens, outputs, h);
      return;
    }
    Gemm("input gradient", tokens, h, outputs);
    for (const Matrix matrix : matrices) AdapterBackward(matrix, tokens, h, h);
  }

  void MaterialisedAttentionBackward(const AttentionShape& shape) {
    const int64_t scores = shape.scores();
    const int64_t rows = shape.products() * shape.query_length;
    Gemm("probability gradient",
         shape.query_length,
         shape.key_length,
         shape.head_size,
         shape.products());
    Gemm("value gradient",
         shape.key_length,
         shape.head_size,
         shape.query_length,
         shape.products());
    if (OperationByOperation(w_.stack)) {
      if (autocast_) Copy("cast gradient", scores, element_, 4);
      DropoutBackward(scores, wide_);
      Reduction("softmax gradient",
                rows,
                scores,
                2 * wide_,
                wide_,
                kSoftmaxBackwardFlops);
      if (autocast_) CastActivation(scores);
      Elementwise(Fairseq() ? "mask gradient" : "scale gradient",
                  scores,
                  element_,
                  element_,
                  1);
    } else {
      Reduction("dropout and softmax gradient",
                rows,
                scores,
                2 * element_ + DropoutMask(),
                element_,
                kSoftmaxBackwardFlops + DropoutFlops() + 1);
    }
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
  }

  void HeadBackward() {
    const int64_t b = w_.batch;
    const int64_t h = a_.hidden;
    if (a_.head == Head::kSequenceClassification) {
      LossBackward(b, a_.labels);
      LinearBackward(Matrix::kTaskHead, b, a_.labels, h);
      DropoutBackward(b * h, element_);
      if (a_.classifier_dense) {
        Elementwise("activation gradient", b * h, 2 * element_, element_, 1);
        LinearBackward(Matrix::kTaskHead, b, h, h);
        ScatterFirstTokens();
      }
    } else if (a_.head == Head::kQuestionAnswering) {
      LossBackward(2 * b, w_.sequence_length);
      LinearBackward(Matrix::kTaskHead, HeadTokens(), 2, h);
    } else if (VocabularyHead()) {
      const int64_t rows = PredictedTokens();
      LossBackward(rows, a_.vocabulary);
      LinearBackward(Matrix::kVocabulary, rows, a_.vocabulary, h);
      if (a_.head != Head::kCausalLanguageModel) {
        LayerNormBackward(rows);
        Elementwise("gelu gradient",
                    rows * h,
                    2 * element_,
                    element_,
                    kGeluBackwardFlops,
                    2);
        LinearBackward(Matrix::kVocabularyHead, rows, h, h);
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
    if (a_.family == Family::kDecoder) LayerNormBackward(HeadTokens());
  }
  void ScatterFirstTokens() {
    Copy("scatter first tokens", HeadTokens() * a_.hidden, 0, wide_);
  }
  void LossBackward(int64_t rows, int64_t classes) {
    const int64_t scores = rows * classes;
    if (Fairseq()) {
      // Of both terms of the smoothed loss, added.
      Copy("zero target gradient", scores, 0, 4);
      Copy("scatter target gradient", rows, 4 + kIndexBytes, 4);
      Elementwise("loss gradient add", scores, 4, 4, 1);
      Reduction("loss gradient", rows, scores, 8, element_, 3, 1);
      return;
    }
    if (OneKernelCriterion()) {
      Reduction("loss gradient",
                rows,
                scores,
                element_,
                element_,
                kSoftmaxForwardFlops + 2,
                1);
      return;
    }
    Elementwise("loss gradient", scores, 4, element_, 2, 1);
  }

  // Gradients of tables are dense: zeroed, then rows added. A table that the
  // logits are made with too has that gradient added to it.
  void EmbeddingsBackward(int64_t tokens) {
    const int64_t elements = tokens * a_.hidden;
    DropoutBackward(elements, wide_);
    if (a_.embedding_layer_norm) LayerNormBackward(tokens);
    if (Sinusoids() && EagerOutside()) {
      Elementwise("embedding scale gradient", elements, 4, 4, 1);
    }
    const std::array table_rows = {a_.vocabulary, a_.positions, a_.token_types};
    for (const int64_t rows : table_rows) {
      if (rows == 0) continue;
      Copy("zero table gradient", rows * a_.hidden, 0, 4);
      list_.kernels.back().parameter_bytes = list_.kernels.back().bytes();
      Kernel& kernel = Push("table gradient", KernelKind::kEmbedding, elements);
      kernel.vector_flops = elements;
      kernel.bytes_read = 2 * elements * 4 + tokens * kIndexBytes;
      kernel.bytes_written = elements * 4;
    }
    if (VocabularyHead() && EagerOutside()) {
      Elementwise("tied gradient add", a_.vocabulary * a_.hidden, 8, 4, 1);
      list_.kernels.back().parameter_bytes = list_.kernels.back().bytes();
      list_.kernels.back().parameter_bytes_written =
          list_.kernels.back().bytes_written;
    }
  }

  const Workload& w_;
  const Architecture& a_;
  const Fusion fusion_;
  const int64_t element_;  // bytes of a matrix-product operand
  const int64_t wide_;     // bytes of a LayerNorm or softmax result
  const bool autocast_;
  const bool dropout_;
  KernelList list_;
};

}  // namespace

PhaseCounts KernelList::Counts(Phase phase) const {
  PhaseCounts sum;
  for (const Segment& segment : segments) {
    if (segment.phase != phase) continue;
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      const Kernel& kernel = kernels[static_cast<std::size_t>(i)];
      const int64_t times = segment.repeat * kernel.launches;
      sum.matrix_flops += times * kernel.matrix_flops;
      sum.vector_flops += times * kernel.vector_flops;
      sum.special_ops += times * kernel.special_ops;
      sum.random_draws += times * kernel.random_draws;
      sum.bytes_read += times * kernel.bytes_read;
      sum.bytes_written += times * kernel.bytes_written;
      sum.launches += times;
    }
  }
  return sum;
}

KernelList ExpandKernels(const Workload& workload) {
  return Expander(workload).Expand();
}

int64_t StepModelFlops(const Workload& workload) {
  // In full training every product of the forward pass has two in the backward.
  if (workload.trainable.everything()) return 3 * ForwardModelFlops(workload);
  // Nothing recomputed: neither checkpointed blocks nor flash's scores.
  Workload passes = workload;
  passes.work = Work::kForwardBackward;
  passes.gradient_checkpointing = false;
  passes.stack.attention = Attention::kMaterialised;
  passes.compression = {};
  const KernelList list = ExpandKernels(passes);
  return list.Counts(Phase::kForward).matrix_flops +
         list.Counts(Phase::kBackward).matrix_flops;
}

int64_t ForwardModelFlops(const Workload& workload) {
  Workload forward = workload;
  forward.work = Work::kForward;
  return ExpandKernels(forward).Counts(Phase::kForward).matrix_flops;
}

std::string_view ToText(KernelKind kind) {
  return internal::EnumName(kind, kKinds);
}
std::string_view ToText(Phase phase) {
  return internal::EnumName(phase, kPhases);
}
KernelKind KernelKindFromText(std::string_view text) {
  return internal::EnumFromName(text, kKinds, "kind of kernel");
}
Phase PhaseFromText(std::string_view text) {
  return internal::EnumFromName(text, kPhases, "phase");
}

}  // namespace trainfare::model
