#include "trainer/network/encoder.h"

#include <fmt/format.h>

#include <utility>

#include "model/error.h"
#include "trainer/network/dropout.h"
#include "trainer/network/linear.h"
#include "trainer/runtime/signals.h"

namespace trainfare::trainer {
namespace {

using model::Architecture;
using model::Head;

std::string LayerPrefix(EncoderLayout layout, int64_t layer) {
  switch (layout) {
    case EncoderLayout::kBert:
      return fmt::format("bert.encoder.layer.{}.", layer);
    case EncoderLayout::kRoberta:
      return fmt::format("roberta.encoder.layer.{}.", layer);
    case EncoderLayout::kDistilBert:
      return fmt::format("distilbert.transformer.layer.{}.", layer);
  }
  ENSURE(false, "unknown layout");
}

std::string ModelPrefix(EncoderLayout layout) {
  switch (layout) {
    case EncoderLayout::kBert:
      return "bert.";
    case EncoderLayout::kRoberta:
      return "roberta.";
    case EncoderLayout::kDistilBert:
      return "distilbert.";
  }
  ENSURE(false, "unknown layout");
}

// Cross entropy over positions; a label outside the sequence counts for
// nothing, as in Hugging Face's question-answering heads.
at::Tensor SpanLoss(const at::Tensor& logits, const at::Tensor& positions) {
  const int64_t length = logits.size(1);
  return at::cross_entropy_loss(logits.to(at::kFloat),
                                positions.clamp(0, length),
                                {},
                                at::Reduction::Mean,
                                length);
}

}  // namespace

Encoder::Encoder(const Architecture& architecture,
                 const TransformerOptions& options,
                 at::Device device,
                 uint64_t seed)
    : Transformer(architecture, options, device),
      layout_(LayoutOf(architecture)) {
  const int64_t hidden = architecture.hidden;
  const std::string prefix = ModelPrefix(layout_);
  const bool distil = layout_ == EncoderLayout::kDistilBert;

  word_embeddings_ = Add(prefix + "embeddings.word_embeddings.weight",
                         {architecture.vocabulary, hidden});
  position_embeddings_ = Add(prefix + "embeddings.position_embeddings.weight",
                             {architecture.positions, hidden});
  if (!distil) {
    type_embeddings_ = Add(prefix + "embeddings.token_type_embeddings.weight",
                           {architecture.token_types, hidden});
  }
  embedding_norm_ = AddNorm(prefix + "embeddings.LayerNorm");
  for (int64_t index = 0; index < architecture.layers; ++index) {
    ThrowIfStopRequested();
    const std::string at = LayerPrefix(layout_, index);
    Layer layer;
    const auto dense = [&](const char* bert, const char* distilbert) {
      return AddDense(at + (distil ? distilbert : bert), hidden, hidden);
    };
    layer.query = dense("attention.self.query", "attention.q_lin");
    layer.key = dense("attention.self.key", "attention.k_lin");
    layer.value = dense("attention.self.value", "attention.v_lin");
    layer.attention_output =
        dense("attention.output.dense", "attention.out_lin");
    layer.attention_norm =
        AddNorm(at + (distil ? "sa_layer_norm" : "attention.output.LayerNorm"));
    layer.intermediate =
        AddDense(at + (distil ? "ffn.lin1" : "intermediate.dense"),
                 architecture.intermediate,
                 hidden);
    layer.output = AddDense(at + (distil ? "ffn.lin2" : "output.dense"),
                            hidden,
                            architecture.intermediate);
    layer.output_norm =
        AddNorm(at + (distil ? "output_layer_norm" : "output.LayerNorm"));
    layers_.push_back(std::move(layer));
  }

  AddHead();
  Reset(seed);
}

void Encoder::AddHead() {
  const int64_t hidden = architecture().hidden;
  const int64_t labels = architecture().labels;
  if (architecture().head == Head::kQuestionAnswering) {
    head_ = AddDense("qa_outputs", 2, hidden);
    return;
  }
  switch (layout_) {
    case EncoderLayout::kBert:
      pooler_ = AddDense("bert.pooler.dense", hidden, hidden);
      head_ = AddDense("classifier", labels, hidden);
      break;
    case EncoderLayout::kRoberta:
      head_dense_ = AddDense("classifier.dense", hidden, hidden);
      head_ = AddDense("classifier.out_proj", labels, hidden);
      break;
    case EncoderLayout::kDistilBert:
      head_dense_ = AddDense("pre_classifier", hidden, hidden);
      head_ = AddDense("classifier", labels, hidden);
      break;
  }
}

at::Tensor Encoder::Embed(const Batch& batch, bool training) const {
  const int64_t length = batch.input_ids.size(1);
  // BERT's and DistilBERT's word tables ignore their padding row in backward.
  at::Tensor sum = at::embedding(word_embeddings_,
                                 batch.input_ids,
                                 options().padding_id);  // (B, T, H)
  if (type_embeddings_.defined()) {
    // Without types all tokens are of type 0: one row, broadcast.
    sum = sum + (batch.token_types.defined()
                     ? at::embedding(type_embeddings_, batch.token_types)
                     : type_embeddings_.select(0, 0));
  }
  if (layout_ == EncoderLayout::kRoberta && batch.attention_mask.defined()) {
    // Positions count tokens only, and start behind the padding id.
    const at::Tensor tokens = batch.input_ids.ne(options().padding_id);
    const at::Tensor positions =
        tokens.cumsum(1) * tokens + options().padding_id;
    sum = sum +
          at::embedding(position_embeddings_, positions, options().padding_id);
  } else {
    sum = sum + position_embeddings_.narrow(
                    0, architecture().position_offset, length);  // (T, H)
  }
  return Dropout(
      Normalise(embedding_norm_, sum), options().hidden_dropout, training);
}

at::Tensor Encoder::SelfAttention(const Layer& layer,
                                  const at::Tensor& hidden,
                                  const at::Tensor& mask,
                                  bool training) const {
  const auto project = [&](const Dense& dense) {
    return SplitHeads(Linear(hidden, dense.weight, dense.bias));
  };
  return Attend(
      {project(layer.query), project(layer.key), project(layer.value)},
      mask,
      /*causal=*/false,
      training);
}

at::Tensor Encoder::RunLayer(const Layer& layer,
                             const at::Tensor& hidden,
                             const at::Tensor& mask,
                             bool training) const {
  const at::Tensor context = SelfAttention(layer, hidden, mask, training);
  const at::Tensor middle = ProjectAndAdd(layer.attention_output,
                                          context,
                                          hidden,
                                          layer.attention_norm,
                                          training)
                                .normed;
  const at::Tensor inner = ProjectAndActivate(layer.intermediate, middle);
  return ProjectAndAdd(layer.output, inner, middle, layer.output_norm, training)
      .normed;
}

Output Encoder::Run(const Batch& batch,
                    bool training,
                    const PartEnd& part_end) const {
  const at::Tensor mask = PaddingMask(batch.attention_mask);
  at::Tensor hidden = Embed(batch, training);  // (B, T, H)
  if (part_end) part_end({"embeddings"}, hidden);
  for (size_t i = 0; i < layers_.size(); ++i) {
    hidden = RunLayer(layers_[i], hidden, mask, training);
    if (part_end) part_end({fmt::format("layer {}", i), true}, hidden);
  }
  return architecture().head == Head::kQuestionAnswering
             ? AnswerQuestions(hidden, batch, training)
             : Classify(hidden, batch, training);
}

Output Encoder::AnswerQuestions(const at::Tensor& hidden,
                                const Batch& batch,
                                bool training) const {
  const at::Tensor states =
      layout_ == EncoderLayout::kDistilBert
          ? Dropout(hidden, options().classifier_dropout, training)
          : hidden;
  Output output;
  output.logits = Linear(states, head_.weight, head_.bias);  // (B, T, 2)
  if (batch.start_positions.defined()) {
    output.loss =
        (SpanLoss(output.logits.select(-1, 0), batch.start_positions) +
         SpanLoss(output.logits.select(-1, 1), batch.end_positions)) /
        2;
  }
  return output;
}

Output Encoder::Classify(const at::Tensor& hidden,
                         const Batch& batch,
                         bool training) const {
  at::Tensor pooled = hidden.select(1, 0);  // (B, H)
  const double dropout = options().classifier_dropout;
  switch (layout_) {
    case EncoderLayout::kBert:
      pooled = at::tanh(Linear(pooled, pooler_.weight, pooler_.bias));
      break;
    case EncoderLayout::kRoberta:
      pooled = at::tanh(Linear(Dropout(pooled, dropout, training),
                               head_dense_.weight,
                               head_dense_.bias));
      break;
    case EncoderLayout::kDistilBert:
      pooled = at::relu(Linear(pooled, head_dense_.weight, head_dense_.bias));
      break;
  }
  Output output;
  output.logits =
      Linear(Dropout(pooled, dropout, training), head_.weight, head_.bias);
  if (batch.labels.defined()) {
    output.loss =
        at::cross_entropy_loss(output.logits.to(at::kFloat), batch.labels);
  }
  return output;
}

}  // namespace trainfare::trainer
