#include "trainer/network/transformer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "model/error.h"
#include "model/trainer_rules.h"
#include "trainer/network/autocast.h"
#include "trainer/network/dropout.h"
#include "trainer/network/fused_layers.h"
#include "trainer/network/gated_block.h"
#include "trainer/network/linear.h"
#include "trainer/network/random.h"
#include "trainer/network/widen.h"

namespace trainfare::trainer {

using model::Architecture;
using model::InputError;

at::Tensor NextTokens(const at::Tensor& ids, const at::Tensor& tokens) {
  const int64_t length = ids.size(1);
  at::Tensor next = at::full_like(ids, kNoLabel);
  next.narrow(1, 0, length - 1).copy_(ids.narrow(1, 1, length - 1));
  if (tokens.defined()) {
    next.narrow(1, 0, length - 1)
        .masked_fill_(tokens.narrow(1, 1, length - 1).logical_not(), kNoLabel);
  }
  return next;
}

at::Tensor ShiftRight(const at::Tensor& labels,
                      int64_t start,
                      int64_t padding) {
  const int64_t length = labels.size(1);
  at::Tensor shifted = at::full_like(labels, start);
  shifted.narrow(1, 1, length - 1).copy_(labels.narrow(1, 0, length - 1));
  return shifted.masked_fill_(shifted.eq(kNoLabel), padding);
}

at::Tensor LanguageModelLoss(const at::Tensor& logits,
                             const at::Tensor& labels) {
  return at::cross_entropy_loss(Widened(logits.view({-1, logits.size(-1)})),
                                labels.view(-1),
                                {},
                                at::Reduction::Mean,
                                kNoLabel);
}

model::Activation ActivationOf(const model::Architecture& architecture,
                               const TransformerOptions& options) {
  switch (options.activation) {
    case Activation::kGelu:
      return model::Activation::kGelu;
    case Activation::kGeluTanh:
      return architecture.activation == model::Activation::kGeluNew
                 ? model::Activation::kGeluNew
                 : model::Activation::kGeluTanh;
    case Activation::kRelu:
      return model::Activation::kRelu;
  }
  ENSURE(false, "unknown activation");
}

at::ScalarType ParameterType(const model::Workload& workload) {
  model::RequireTrainerWeights(workload);
  if (!workload.stack.narrow_weights) return at::kFloat;
  return workload.precision == model::Precision::kBf16 ? at::kBFloat16
                                                       : at::kHalf;
}

void SetStack(const model::Workload& workload, TransformerOptions& options) {
  options.fusion = workload.stack.fusion;
  options.attention = workload.stack.attention;
  options.type = ParameterType(workload);
  options.trainable = workload.trainable;
  options.recompute = workload.gradient_checkpointing;
  options.recomputed_blocks = workload.checkpointed_blocks;
}

Transformer::Transformer(const Architecture& architecture,
                         const TransformerOptions& options,
                         at::Device device)
    : architecture_(architecture), options_(options), device_(device) {
  model::RequireTrainerStack(options.fusion);
  if (options.attention == model::Attention::kFlash && device.is_cpu() &&
      options.attention_dropout > 0) {
    throw InputError(
        "attention: flash has no dropout on a CPU; take materialised, or a "
        "model with dropout 0");
  }
}

at::Tensor Transformer::Add(const std::string& name,
                            at::IntArrayRef sizes,
                            double deviation) {
  at::Tensor value =
      at::empty(sizes, at::TensorOptions(options_.type).device(device_))
          .requires_grad_(!frozen_);
  parameters_.push_back({name, value});
  deviations_.push_back(deviation);
  return value;
}

Transformer::Dense Transformer::AddDense(const std::string& name,
                                         int64_t out,
                                         int64_t in,
                                         bool bias) {
  Dense dense;
  dense.weight = Add(name + ".weight", {out, in});
  if (bias) dense.bias = Add(name + ".bias", {out});
  return dense;
}

Transformer::Norm Transformer::AddNorm(const std::string& name) {
  Norm norm;
  norm.weight = Add(name + ".weight", {architecture_.hidden});
  norm.bias = Add(name + ".bias", {architecture_.hidden});
  return norm;
}

void Transformer::Reset(uint64_t seed) {
  const at::NoGradGuard no_grad;
  // Drawn on the host, so that one seed gives one model on every device.
  std::vector<at::Tensor> drawn;
  std::vector<at::Tensor> targets;  // of those that are drawn elsewhere
  std::vector<double> deviations;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const std::string& name = parameters_[i].name;
    const at::Tensor value = parameters_[i].value.detach();
    if (value.dim() == 1) {
      // Biases are 0, and so are LayerNorm's; its scale is 1.
      const bool scale = name.substr(name.rfind('.')) == ".weight";
      value.fill_(scale ? 1.0 : 0.0);
      continue;
    }
    const bool here = value.is_cpu() && value.scalar_type() == at::kFloat;
    drawn.push_back(here ? value : at::empty(value.sizes(), at::kFloat));
    targets.push_back(here ? at::Tensor() : value);
    deviations.push_back(deviations_[i]);
  }
  DrawNormal(drawn, deviations, seed);
  for (size_t i = 0; i < drawn.size(); ++i) {
    if (targets[i].defined()) targets[i].copy_(drawn[i]);
  }
}

std::vector<Parameter> Transformer::TrainedParameters() const {
  std::vector<Parameter> trained;
  for (const Parameter& parameter : parameters_) {
    if (parameter.value.requires_grad()) trained.push_back(parameter);
  }
  return trained;
}

int64_t Transformer::parameter_count() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameters_) {
    count += parameter.value.numel();
  }
  return count;
}

at::Tensor Transformer::Normalise(const Norm& norm,
                                  const at::Tensor& input) const {
  return at::layer_norm(input,
                        {architecture_.hidden},
                        norm.weight,
                        norm.bias,
                        options_.layer_norm_epsilon);
}

at::Tensor Transformer::Activate(const at::Tensor& input) const {
  return GateOf(ActivationOf(architecture_, options_), input);
}

at::Tensor Transformer::SplitHeads(const at::Tensor& input, int64_t heads) {
  return input.unflatten(-1, {heads, input.size(-1) / heads}).transpose(1, 2);
}

at::Tensor Transformer::Project(const Dense& dense, const at::Tensor& input) {
  const at::Tensor product = dense.transposed
                                 ? Affine(input, dense.weight, dense.bias)
                                 : Linear(input, dense.weight, dense.bias);
  if (!dense.adapter_down.defined()) return product;
  const at::Tensor inner = Linear(input, dense.adapter_down, {});
  return product.add(Linear(inner, dense.adapter_up, {}), kAdapterScale);
}

at::Tensor Transformer::ProjectAndActivate(const Dense& dense,
                                           const at::Tensor& input) const {
  if (options_.fusion == model::Fusion::kFused) {
    return FusedBiasActivation(
        Project(WithoutBias(dense), input), dense.bias, options_.activation);
  }
  return Activate(Project(dense, input));
}

Transformer::Residual Transformer::ProjectAndAdd(const Dense& dense,
                                                 const at::Tensor& input,
                                                 const at::Tensor& residual,
                                                 const Norm& norm,
                                                 bool training) const {
  if (options_.fusion == model::Fusion::kFused) {
    const SumAndNorm result =
        FusedAddNorm(Project(WithoutBias(dense), input),
                     dense.bias,
                     residual,
                     norm.weight,
                     norm.bias,
                     options_.layer_norm_epsilon,
                     training ? options_.hidden_dropout : 0.0);
    return {result.sum, result.normed};
  }
  const at::Tensor sum =
      Dropout(Project(dense, input), options_.hidden_dropout, training) +
      residual;
  return {sum, Normalise(norm, sum)};
}

at::Tensor Transformer::Probabilities(const Heads& heads,
                                      const at::Tensor& mask,
                                      bool causal,
                                      bool training) const {
  const auto& [query, key, value] = heads;
  const double scale = 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
  // The fused operator has masks of padding and causality, not of windows.
  const bool window = mask.defined() && mask.dim() == 2;
  if (options_.fusion == model::Fusion::kFused && !window) {
    return FusedSoftmaxDropout(at::matmul(query, key.transpose(-1, -2)),
                               mask,
                               causal,
                               scale,
                               training ? options_.attention_dropout : 0.0);
  }
  // Scaling the query costs T x head_size, scaling the scores T x T.
  at::Tensor scores =
      at::matmul(query * scale, key.transpose(-1, -2));  // (B, heads, T, T)
  if (mask.defined()) scores = scores + mask;
  // Models with RMSNorm take it of narrow scores in fp32
  // (model/element_widths.h).
  const at::ScalarType type = scores.scalar_type();
  const at::Tensor probabilities =
      architecture().norm == model::Norm::kRms && scores.element_size() < 4
          ? at::softmax(scores, -1, at::kFloat).to(type)
          : at::softmax(scores, -1);
  return Dropout(probabilities, options_.attention_dropout, training);
}

at::Tensor Transformer::Attend(const Heads& heads,
                               const at::Tensor& mask,
                               bool causal,
                               bool training) const {
  const auto& [query, key, value] = heads;
  at::Tensor context;  // (B, heads, T, head_size)
  if (options_.attention == model::Attention::kFlash) {
    const auto given =
        mask.defined() ? std::optional<at::Tensor>(mask) : std::nullopt;
    context = at::scaled_dot_product_attention(
        query,
        key,
        value,
        given,
        training ? options_.attention_dropout : 0.0,
        causal,
        /*scale=*/std::nullopt,
        /*enable_gqa=*/key.size(1) < query.size(1));
  } else {
    context = at::matmul(Probabilities(heads, mask, causal, training), value);
  }
  return context.transpose(1, 2).flatten(2);
}

bool Transformer::GroupsKeys() const {
  const bool narrow = options_.type == at::kHalf ||
                      options_.type == at::kBFloat16 ||
                      Autocast::TypeOn(device_.type()).has_value();
  return options_.attention == model::Attention::kFlash && device_.is_cuda() &&
         narrow;
}

double Transformer::LowestValue() const {
  switch (options_.type) {
    case at::kHalf:
      return static_cast<float>(std::numeric_limits<at::Half>::lowest());
    case at::kBFloat16:
      return static_cast<float>(std::numeric_limits<at::BFloat16>::lowest());
    default:
      return std::numeric_limits<float>::lowest();
  }
}

at::Tensor Transformer::PaddingMask(const at::Tensor& attention_mask) const {
  if (!attention_mask.defined()) return {};
  const at::Tensor padding =
      attention_mask.logical_not().unsqueeze(1).unsqueeze(1);
  return at::zeros(padding.sizes(),
                   at::TensorOptions(options_.type).device(device_))
      .masked_fill_(padding, LowestValue());
}

at::Tensor Transformer::CausalMask(int64_t length) const {
  if (options_.attention == model::Attention::kFlash ||
      options_.fusion == model::Fusion::kFused) {
    return {};
  }
  return at::full({length, length},
                  LowestValue(),
                  at::TensorOptions(options_.type).device(device_))
      .triu_(1);
}

}  // namespace trainfare::trainer
