#include "trainer/transformer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "model/error.h"
#include "trainer/dropout.h"
#include "trainer/linear.h"

namespace trainfare::trainer {
namespace {

// Devlin et al. 2019; initializer_range of the published configurations.
constexpr double kInitialDeviation = 0.02;

using model::Architecture;
using model::Head;
using model::InputError;

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

void CheckSupported(const Architecture& architecture) {
  if (architecture.family != model::Family::kEncoder) {
    throw InputError(
        fmt::format("model {}: family: this trainer runs encoders, got {}",
                    architecture.name,
                    model::ToText(architecture.family)));
  }
  if (architecture.head != Head::kSequenceClassification &&
      architecture.head != Head::kQuestionAnswering) {
    throw InputError(
        fmt::format("model {}: head: this trainer has sequence-classification "
                    "and question-answering, got {}",
                    architecture.name,
                    model::ToText(architecture.head)));
  }
  const auto require_positive = [&](const char* key, int64_t value) {
    if (value <= 0) {
      throw InputError(
          fmt::format("model {}: {}: expected a positive count, got {}",
                      architecture.name,
                      key,
                      value));
    }
  };
  require_positive("layers", architecture.layers);
  require_positive("hidden", architecture.hidden);
  require_positive("heads", architecture.heads);
  require_positive("intermediate", architecture.intermediate);
  require_positive("vocabulary", architecture.vocabulary);
  require_positive("positions", architecture.positions);
  if (architecture.head == Head::kSequenceClassification) {
    require_positive("labels", architecture.labels);
  }
  const bool bert = LayoutOf(architecture) == EncoderLayout::kBert;
  if (architecture.head == Head::kSequenceClassification &&
      (architecture.pooler != bert || architecture.classifier_dense == bert)) {
    throw InputError(fmt::format(
        "model {}: expected a pooler in BERT and a dense layer in the "
        "classifier of RoBERTa and DistilBERT, got pooler {}, classifier_dense "
        "{}",
        architecture.name,
        architecture.pooler,
        architecture.classifier_dense));
  }
  if (architecture.hidden % architecture.heads != 0) {
    throw InputError(fmt::format(
        "model {}: hidden: expected a multiple of heads ({}), got {}",
        architecture.name,
        architecture.heads,
        architecture.hidden));
  }
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

EncoderLayout LayoutOf(const Architecture& architecture) {
  if (architecture.token_types == 0) return EncoderLayout::kDistilBert;
  if (architecture.position_offset > 0) return EncoderLayout::kRoberta;
  return EncoderLayout::kBert;
}

EncoderOptions DefaultOptions(const Architecture& architecture) {
  EncoderOptions options;
  options.hidden_dropout = architecture.dropout;
  options.attention_dropout = architecture.dropout;
  options.classifier_dropout = architecture.dropout;
  if (LayoutOf(architecture) == EncoderLayout::kRoberta) {
    options.layer_norm_epsilon = 1e-5;
    options.padding_id = architecture.position_offset - 1;
  }
  return options;
}

Encoder::Encoder(const Architecture& architecture,
                 const EncoderOptions& options,
                 at::Device device,
                 uint64_t seed)
    : architecture_(architecture),
      options_(options),
      layout_(LayoutOf(architecture)),
      device_(device) {
  CheckSupported(architecture);
  if (options.attention == model::Attention::kFlash && device.is_cpu() &&
      options.attention_dropout > 0) {
    throw InputError(
        "attention: flash has no dropout on a CPU; take materialised, or a "
        "model with dropout 0");
  }
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
  const int64_t hidden = architecture_.hidden;
  const int64_t labels = architecture_.labels;
  if (architecture_.head == Head::kQuestionAnswering) {
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

at::Tensor Encoder::Add(const std::string& name, at::IntArrayRef sizes) {
  at::Tensor value =
      at::empty(sizes, at::TensorOptions(at::kFloat).device(device_))
          .requires_grad_(true);
  parameters_.push_back({name, value});
  return value;
}

Encoder::Dense Encoder::AddDense(const std::string& name,
                                 int64_t out,
                                 int64_t in) {
  Dense dense;
  dense.weight = Add(name + ".weight", {out, in});
  dense.bias = Add(name + ".bias", {out});
  return dense;
}

Encoder::Norm Encoder::AddNorm(const std::string& name) {
  Norm norm;
  norm.weight = Add(name + ".weight", {architecture_.hidden});
  norm.bias = Add(name + ".bias", {architecture_.hidden});
  return norm;
}

void Encoder::Reset(uint64_t seed) {
  const at::NoGradGuard no_grad;
  // Drawn on the host, so that one seed gives one model on every device.
  at::Generator generator = at::detail::createCPUGenerator(seed);
  for (const Parameter& parameter : parameters_) {
    const at::Tensor& value = parameter.value;
    if (value.dim() == 1) {
      // Biases are 0, and so are LayerNorm's; its scale is 1.
      const bool scale =
          parameter.name.substr(parameter.name.rfind('.')) == ".weight";
      value.fill_(scale ? 1.0 : 0.0);
    } else if (value.is_cpu()) {
      value.normal_(0.0, kInitialDeviation, generator);
    } else {
      value.copy_(at::empty(value.sizes(), at::kFloat)
                      .normal_(0.0, kInitialDeviation, generator));
    }
  }
}

int64_t Encoder::parameter_count() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameters_) {
    count += parameter.value.numel();
  }
  return count;
}

at::Tensor Encoder::Normalise(const Norm& norm, const at::Tensor& input) const {
  return at::layer_norm(input,
                        {architecture_.hidden},
                        norm.weight,
                        norm.bias,
                        options_.layer_norm_epsilon);
}

at::Tensor Encoder::Embed(const Batch& batch, bool training) const {
  const int64_t length = batch.input_ids.size(1);
  // BERT's and DistilBERT's word tables ignore their padding row in backward.
  at::Tensor sum = at::embedding(word_embeddings_,
                                 batch.input_ids,
                                 options_.padding_id);  // (B, T, H)
  if (type_embeddings_.defined()) {
    // Without types all tokens are of type 0: one row, broadcast.
    sum = sum + (batch.token_types.defined()
                     ? at::embedding(type_embeddings_, batch.token_types)
                     : type_embeddings_.select(0, 0));
  }
  if (layout_ == EncoderLayout::kRoberta && batch.attention_mask.defined()) {
    // Positions count tokens only, and start behind the padding id.
    const at::Tensor tokens = batch.input_ids.ne(options_.padding_id);
    const at::Tensor positions =
        tokens.cumsum(1) * tokens + options_.padding_id;
    sum = sum +
          at::embedding(position_embeddings_, positions, options_.padding_id);
  } else {
    sum = sum + position_embeddings_.narrow(
                    0, architecture_.position_offset, length);  // (T, H)
  }
  return Dropout(
      Normalise(embedding_norm_, sum), options_.hidden_dropout, training);
}

at::Tensor Encoder::SelfAttention(const Layer& layer,
                                  const at::Tensor& hidden,
                                  const at::Tensor& bias,
                                  bool training) const {
  const int64_t batch = hidden.size(0);
  const int64_t length = hidden.size(1);
  const int64_t heads = architecture_.heads;
  const int64_t head_size = architecture_.hidden / heads;
  const auto split = [&](const Dense& dense) {
    return Linear(hidden, dense.weight, dense.bias)
        .view({batch, length, heads, head_size})
        .transpose(1, 2);  // (B, heads, T, head_size)
  };
  const at::Tensor query = split(layer.query);
  const at::Tensor key = split(layer.key);
  const at::Tensor value = split(layer.value);

  at::Tensor context;  // (B, heads, T, head_size)
  if (options_.attention == model::Attention::kFlash) {
    const auto mask =
        bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt;
    context = at::scaled_dot_product_attention(
        query, key, value, mask, training ? options_.attention_dropout : 0.0);
  } else {
    // Scaling the query costs T x head_size, scaling the scores T x T.
    const double scale = 1.0 / std::sqrt(static_cast<double>(head_size));
    at::Tensor scores =
        at::matmul(query * scale, key.transpose(-1, -2));  // (B, heads, T, T)
    if (bias.defined()) scores = scores + bias;
    const at::Tensor probabilities =
        Dropout(at::softmax(scores, -1), options_.attention_dropout, training);
    context = at::matmul(probabilities, value);
  }
  return context.transpose(1, 2).reshape({batch, length, architecture_.hidden});
}

Output Encoder::Forward(const Batch& batch,
                        bool training,
                        const PartEnd& part_end) const {
  at::Tensor bias;  // (B, 1, 1, T): 0 on tokens, lowest on padding
  if (batch.attention_mask.defined()) {
    const at::Tensor padding =
        batch.attention_mask.logical_not().unsqueeze(1).unsqueeze(1);
    bias = at::zeros(padding.sizes(), word_embeddings_.options())
               .detach()
               .masked_fill_(padding, std::numeric_limits<float>::lowest());
  }

  at::Tensor hidden = Embed(batch, training);  // (B, T, H)
  if (part_end) part_end("embeddings", hidden);
  size_t index = 0;
  for (const Layer& layer : layers_) {
    const at::Tensor context = SelfAttention(layer, hidden, bias, training);
    const at::Tensor attended = Linear(
        context, layer.attention_output.weight, layer.attention_output.bias);
    hidden = Normalise(
        layer.attention_norm,
        Dropout(attended, options_.hidden_dropout, training) + hidden);
    const at::Tensor inner = at::gelu(
        Linear(hidden, layer.intermediate.weight, layer.intermediate.bias));
    const at::Tensor outer =
        Linear(inner, layer.output.weight, layer.output.bias);
    hidden =
        Normalise(layer.output_norm,
                  Dropout(outer, options_.hidden_dropout, training) + hidden);
    if (part_end) part_end(fmt::format("layer {}", index), hidden);
    ++index;
  }

  Output output;
  if (architecture_.head == Head::kQuestionAnswering) {
    const at::Tensor states =
        layout_ == EncoderLayout::kDistilBert
            ? Dropout(hidden, options_.classifier_dropout, training)
            : hidden;
    output.logits = Linear(states, head_.weight, head_.bias);  // (B, T, 2)
    if (batch.start_positions.defined()) {
      output.loss =
          (SpanLoss(output.logits.select(-1, 0), batch.start_positions) +
           SpanLoss(output.logits.select(-1, 1), batch.end_positions)) /
          2;
    }
    return output;
  }

  at::Tensor pooled = hidden.select(1, 0);  // (B, H)
  const double dropout = options_.classifier_dropout;
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
  output.logits =
      Linear(Dropout(pooled, dropout, training), head_.weight, head_.bias);
  if (batch.labels.defined()) {
    output.loss =
        at::cross_entropy_loss(output.logits.to(at::kFloat), batch.labels);
  }
  return output;
}

}  // namespace trainfare::trainer
