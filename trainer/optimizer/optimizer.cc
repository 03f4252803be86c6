#include "trainer/optimizer/optimizer.h"

#include <ATen/record_function.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "model/error.h"
#include "trainer/device/device.h"
#include "trainer/kernels/fused_adamw.h"
#include "trainer/kernels/fused_adan.h"

namespace trainfare::trainer {
namespace {

using model::OptimizerImplementation;
using model::OptimizerKind;

bool Decays(const std::string& name) {
  const auto ends_with = [&](std::string_view end) {
    return name.size() >= end.size() &&
           std::string_view(name).substr(name.size() - end.size()) == end;
  };
  // GPT-2 calls its norms ln_1, ln_2 and ln_f.
  return !ends_with(".bias") && !ends_with("LayerNorm.weight") &&
         !ends_with("norm.weight") && name.find(".ln_") == std::string::npos;
}

// The number of the block that a parameter stands in; -1 outside of blocks.
int64_t BlockOf(std::string_view name) {
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('.'));
    int64_t number = -1;
    const auto [end, error] =
        std::from_chars(part.data(), part.data() + part.size(), number);
    if (error == std::errc() && end == part.data() + part.size()) return number;
    name.remove_prefix(std::min(part.size() + 1, name.size()));
  }
  return -1;
}

bool IsOfDecoder(std::string_view name) {
  return name.find(".decoder.") != std::string_view::npos;
}

ElementType ElementTypeOf(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return ElementType::kFloat;
    case at::kHalf:
      return ElementType::kHalf;
    case at::kBFloat16:
      return ElementType::kBfloat16;
    default:
      break;
  }
  ENSURE(false, "parameters in fp32, fp16 or bf16");
}

// One pass of ours where `gradient` is. LibTorch's profilers and our count of
// launches see it as an operator.
template <class Tensors, class Scalars>
void RunOperator(const char* name,
                 const at::Tensor& gradient,
                 const Tensors& tensors,
                 const Scalars& scalars,
                 void (*on_cpu)(const Tensors&, const Scalars&),
                 void (*on_gpu)(const Tensors&, const Scalars&)) {
  const std::vector<c10::IValue> inputs = {gradient};
  RECORD_FUNCTION(name, inputs);
  (gradient.is_cuda() ? on_gpu : on_cpu)(tensors, scalars);
}

const float* FactorPointer(const at::Tensor& factor) {
  return factor.defined() ? factor.const_data_ptr<float>() : nullptr;
}

class Sgd final : public Optimizer {
 public:
  Sgd(const std::vector<Parameter>& parameters, const OptimizerOptions& options)
      : Optimizer(parameters, options, {}) {}

 private:
  void Update(const std::vector<Tensors>& gradients) override {
    for (size_t g = 0; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      if (options_.kind.implementation ==
          OptimizerImplementation::kMultiTensor) {
        const Tensors wide = Wide(gradients[g]);
        at::_foreach_add_(wide, group.values(), group.weight_decay);
        at::_foreach_add_(group.values(), wide, -RateOf(group));
        WriteBack(group);
        continue;
      }
      for (size_t i = 0; i < group.parameters.size(); ++i) {
        const at::Tensor gradient = Wide(gradients[g][i]);
        gradient.add_(group.values()[i], group.weight_decay);
        group.values()[i].add_(gradient, -RateOf(group));
        WriteBack(group, i);
      }
    }
  }
};

// AdamW (Loshchilov & Hutter 2019), decoupled weight decay, in the order of
// operations of torch.optim.AdamW:
//
//   p *= 1 - lr wd      m = b1 m + (1 - b1) g      v = b2 v + (1 - b2) g^2
//   p -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
class AdamW final : public Optimizer {
 public:
  AdamW(const std::vector<Parameter>& parameters,
        const OptimizerOptions& options)
      : Optimizer(parameters, options, {"exp_avg", "exp_avg_sq"}) {
    if (options.kind.implementation != OptimizerImplementation::kFused ||
        type_ != at::kFloat) {
      return;
    }
    for (const Group& group : groups_) {
      Tensors steps;
      for (const at::Tensor& parameter : group.parameters) {
        steps.push_back(at::zeros(
            {}, parameter.options().dtype(at::kFloat).requires_grad(false)));
      }
      step_tensors_.push_back(std::move(steps));
    }
  }

 private:
  void OnRestore() override {
    for (const Tensors& tensors : step_tensors_) {
      for (const at::Tensor& tensor : tensors) tensor.fill_(steps_);
    }
  }

  void Update(const std::vector<Tensors>& gradients) override {
    if (options_.kind.implementation == OptimizerImplementation::kFused &&
        type_ != at::kFloat) {
      FusedWithMasters(gradients);
      return;
    }
    for (size_t g = 0; g < groups_.size(); ++g) {
      switch (options_.kind.implementation) {
        case OptimizerImplementation::kForLoop:
          ForLoop(groups_[g], gradients[g]);
          break;
        case OptimizerImplementation::kMultiTensor:
          MultiTensor(groups_[g], gradients[g]);
          break;
        case OptimizerImplementation::kFused:
          Fused(groups_[g], gradients[g], step_tensors_[g]);
          break;
      }
    }
  }

  double StepSize(const Group& group) const {
    return RateOf(group) / Correction(options_.beta1);
  }

  void ForLoop(const Group& group, const Tensors& gradients) const {
    for (size_t i = 0; i < gradients.size(); ++i) {
      const at::Tensor gradient = Wide(gradients[i]);
      const at::Tensor& value = group.values()[i];
      const at::Tensor& first = group.state[0][i];
      const at::Tensor& second = group.state[1][i];
      value.mul_(1.0 - RateOf(group) * group.weight_decay);
      first.lerp_(gradient, 1.0 - options_.beta1);
      second.mul_(options_.beta2)
          .addcmul_(gradient, gradient, 1.0 - options_.beta2);
      const at::Tensor denominator =
          second.sqrt()
              .div_(std::sqrt(Correction(options_.beta2)))
              .add_(options_.epsilon);
      value.addcdiv_(first, denominator, -StepSize(group));
      WriteBack(group, i);
    }
  }

  void MultiTensor(const Group& group, const Tensors& given) const {
    const Tensors gradients = Wide(given);
    at::_foreach_mul_(group.values(), 1.0 - RateOf(group) * group.weight_decay);
    at::_foreach_lerp_(group.state[0], gradients, 1.0 - options_.beta1);
    at::_foreach_mul_(group.state[1], options_.beta2);
    at::_foreach_addcmul_(
        group.state[1], gradients, gradients, 1.0 - options_.beta2);
    const Tensors denominators = at::_foreach_sqrt(group.state[1]);
    at::_foreach_div_(denominators, std::sqrt(Correction(options_.beta2)));
    at::_foreach_add_(denominators, options_.epsilon);
    at::_foreach_addcdiv_(
        group.values(), group.state[0], denominators, -StepSize(group));
    WriteBack(group);
  }

  void Fused(const Group& group,
             const Tensors& gradients,
             const Tensors& steps) const {
    // The operator reads the step count after its increment.
    at::_foreach_add_(steps, 1);
    at::_fused_adamw_(group.parameters,
                      gradients,
                      group.state[0],
                      group.state[1],
                      {},
                      steps,
                      RateOf(group),
                      options_.beta1,
                      options_.beta2,
                      group.weight_decay,
                      options_.epsilon,
                      /*amsgrad=*/false,
                      /*maximize=*/false);
  }

  void FusedWithMasters(const std::vector<Tensors>& gradients) const {
    std::vector<at::Tensor> held;  // what the pointers below point into
    std::vector<AdamWTensor> tensors;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      for (size_t i = 0; i < group.parameters.size(); ++i) {
        held.push_back(gradients[g][i].contiguous());
        tensors.push_back(
            {group.masters[i].mutable_data_ptr<float>(),
             held.back().const_data_ptr(),
             group.parameters[i].mutable_data_ptr(),
             group.state[0][i].mutable_data_ptr<float>(),
             group.state[1][i].mutable_data_ptr<float>(),
             held.back().numel(),
             static_cast<float>(StepSize(group)),
             static_cast<float>(1.0 - RateOf(group) * group.weight_decay)});
      }
    }
    if (held.empty()) return;
    const AdamWScalars scalars = {
        static_cast<float>(options_.beta1),
        static_cast<float>(options_.beta2),
        static_cast<float>(options_.epsilon),
        static_cast<float>(1.0 / std::sqrt(Correction(options_.beta2))),
        ElementTypeOf(type_),
        FactorPointer(gradient_factor_)};
    RunOperator("trainfare::fused_adamw",
                held.front(),
                tensors,
                scalars,
                FusedAdamW,
                FusedAdamWOnGpu);
  }

  // One scalar a parameter, as the fused operator wants them.
  std::vector<Tensors> step_tensors_;
};

// Adan (Xie et al. 2022, algorithm 1) with proximal weight decay. With
// d = g - previous g (0 at the first step) and b the weights of the past:
//
//   m = b1 m + (1 - b1) g                       the gradients' mean
//   v = b2 v + (1 - b2) d                       of their differences
//   n = b3 n + (1 - b3) (g + b2 d)^2            of the squares, looking ahead
//   p = (p - lr (m' + b2 v') / (sqrt(n') + eps)) / (1 + lr wd)
//
// m', v', n' are divided by 1 - b^t as in the authors' code: the paper starts
// from m = g, n = g^2 instead of 0, which those divisions stand for.
class Adan final : public Optimizer {
 public:
  Adan(const std::vector<Parameter>& parameters,
       const OptimizerOptions& options)
      : Optimizer(parameters,
                  options,
                  {"exp_avg", "exp_avg_diff", "exp_avg_sq", "previous_grad"}) {}

 private:
  void Update(const std::vector<Tensors>& gradients) override {
    if (options_.kind.implementation == OptimizerImplementation::kFused) {
      Fused(gradients);
      return;
    }
    const bool multi_tensor =
        options_.kind.implementation == OptimizerImplementation::kMultiTensor;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (multi_tensor) {
        MultiTensor(groups_[g], gradients[g]);
      } else {
        ForLoop(groups_[g], gradients[g]);
      }
    }
  }

  double MeanStep(const Group& group) const {
    return RateOf(group) / Correction(options_.adan_beta1);
  }
  double DifferenceStep(const Group& group) const {
    return RateOf(group) * options_.adan_beta2 /
           Correction(options_.adan_beta2);
  }
  double Growth(const Group& group) const {
    return 1.0 + RateOf(group) * group.weight_decay;
  }

  void ForLoop(const Group& group, const Tensors& gradients) const {
    const OptimizerOptions& o = options_;
    for (size_t i = 0; i < gradients.size(); ++i) {
      const at::Tensor gradient = Wide(gradients[i]);
      const at::Tensor& value = group.values()[i];
      const at::Tensor& mean = group.state[0][i];
      const at::Tensor& mean_difference = group.state[1][i];
      const at::Tensor& square = group.state[2][i];
      const at::Tensor& previous = group.state[3][i];
      if (steps_ == 1) previous.copy_(gradient);
      const at::Tensor difference = gradient - previous;
      mean.lerp_(gradient, 1.0 - o.adan_beta1);
      mean_difference.lerp_(difference, 1.0 - o.adan_beta2);
      difference.mul_(o.adan_beta2).add_(gradient);
      square.mul_(o.adan_beta3)
          .addcmul_(difference, difference, 1.0 - o.adan_beta3);
      const at::Tensor denominator =
          square.sqrt()
              .div_(std::sqrt(Correction(o.adan_beta3)))
              .add_(o.epsilon);
      value.addcdiv_(mean, denominator, -MeanStep(group));
      value.addcdiv_(mean_difference, denominator, -DifferenceStep(group));
      value.div_(Growth(group));
      previous.copy_(gradient);
      WriteBack(group, i);
    }
  }

  void MultiTensor(const Group& group, const Tensors& given) const {
    const OptimizerOptions& o = options_;
    const Tensors gradients = Wide(given);
    const Tensors& previous = group.state[3];
    if (steps_ == 1) at::_foreach_copy_(previous, gradients);
    const Tensors differences = at::_foreach_sub(gradients, previous);
    at::_foreach_lerp_(group.state[0], gradients, 1.0 - o.adan_beta1);
    at::_foreach_lerp_(group.state[1], differences, 1.0 - o.adan_beta2);
    at::_foreach_mul_(differences, o.adan_beta2);
    at::_foreach_add_(differences, gradients);
    at::_foreach_mul_(group.state[2], o.adan_beta3);
    at::_foreach_addcmul_(
        group.state[2], differences, differences, 1.0 - o.adan_beta3);
    const Tensors denominators = at::_foreach_sqrt(group.state[2]);
    at::_foreach_div_(denominators, std::sqrt(Correction(o.adan_beta3)));
    at::_foreach_add_(denominators, o.epsilon);
    at::_foreach_addcdiv_(
        group.values(), group.state[0], denominators, -MeanStep(group));
    at::_foreach_addcdiv_(
        group.values(), group.state[1], denominators, -DifferenceStep(group));
    at::_foreach_div_(group.values(), Growth(group));
    at::_foreach_copy_(previous, gradients);
    WriteBack(group);
  }

  void Fused(const std::vector<Tensors>& gradients) const {
    std::vector<at::Tensor> held;  // what the pointers below point into
    std::vector<AdanTensor> tensors;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      for (size_t i = 0; i < group.parameters.size(); ++i) {
        const auto data = [&](size_t which) {
          return group.state[which][i].mutable_data_ptr<float>();
        };
        held.push_back(gradients[g][i].contiguous());
        tensors.push_back({group.values()[i].mutable_data_ptr<float>(),
                           held.back().const_data_ptr(),
                           group.masters.empty()
                               ? nullptr
                               : group.parameters[i].mutable_data_ptr(),
                           data(0),
                           data(1),
                           data(2),
                           data(3),
                           held.back().numel(),
                           static_cast<float>(RateOf(group)),
                           static_cast<float>(1.0 / Growth(group))});
      }
    }
    const OptimizerOptions& o = options_;
    const AdanScalars scalars = {
        static_cast<float>(o.adan_beta1),
        static_cast<float>(o.adan_beta2),
        static_cast<float>(o.adan_beta3),
        static_cast<float>(o.epsilon),
        static_cast<float>(1.0 / Correction(o.adan_beta1)),
        static_cast<float>(o.adan_beta2 / Correction(o.adan_beta2)),
        static_cast<float>(1.0 / std::sqrt(Correction(o.adan_beta3))),
        steps_ == 1,
        ElementTypeOf(type_),
        FactorPointer(gradient_factor_)};
    if (held.empty()) return;
    const auto update = [&](const std::vector<AdanTensor>& some) {
      RunOperator("trainfare::fused_adan",
                  held.front(),
                  some,
                  scalars,
                  FusedAdan,
                  FusedAdanOnGpu);
    };
    if (options_.access == model::FusedAccess::kAllTensors) {
      update(tensors);
      return;
    }
    for (const AdanTensor& tensor : tensors) update({tensor});
  }
};

}  // namespace

Blocks BlocksOf(const std::vector<Parameter>& parameters) {
  Blocks blocks;
  for (const Parameter& parameter : parameters) {
    int64_t& count =
        IsOfDecoder(parameter.name) ? blocks.decoder_layers : blocks.layers;
    count = std::max(count, BlockOf(parameter.name) + 1);
  }
  return blocks;
}

int64_t DepthOf(const std::string& parameter, const Blocks& blocks) {
  const int64_t block = BlockOf(parameter);
  if (block >= 0) {
    return (IsOfDecoder(parameter) ? blocks.layers : 0) + block + 1;
  }
  const bool embedding = parameter.find("embed") != std::string::npos ||
                         parameter.find(".wte.") != std::string::npos ||
                         parameter.find(".wpe.") != std::string::npos ||
                         parameter.find(".shared.") != std::string::npos;
  return embedding ? 0 : blocks.layers + blocks.decoder_layers + 1;
}

Optimizer::Optimizer(const std::vector<Parameter>& parameters,
                     const OptimizerOptions& options,
                     std::vector<std::string> state_names)
    : options_(options), state_names_(std::move(state_names)) {
  if (!parameters.empty()) type_ = parameters.front().value.scalar_type();
  const Blocks blocks = options.blocks.value_or(BlocksOf(parameters));
  const int64_t top = blocks.layers + blocks.decoder_layers + 1;
  // By weight decay, then depth: without layer-wise decay two groups.
  std::map<std::pair<bool, int64_t>, Group> groups;
  for (const Parameter& parameter : parameters) {
    const bool decays = Decays(parameter.name);
    const int64_t below =
        options.layer_decay == 1.0 ? 0 : top - DepthOf(parameter.name, blocks);
    Group& group = groups[{!decays, below}];
    group.weight_decay = decays ? options.weight_decay : 0.0;
    group.rate_share =
        std::pow(options.layer_decay, static_cast<double>(below));
    group.names.push_back(parameter.name);
    group.parameters.push_back(parameter.value);
    ENSURE(parameter.value.scalar_type() == type_, "parameters of one type");
    if (type_ != at::kFloat) {
      group.masters.push_back(parameter.value.detach().to(at::kFloat));
    }
  }
  for (auto& [key, group] : groups) {
    for (size_t i = 0; i < state_names_.size(); ++i) {
      group.state.emplace_back();
      for (const at::Tensor& value : group.values()) {
        group.state.back().push_back(at::zeros_like(value.detach()));
      }
    }
    groups_.push_back(std::move(group));
  }
}

double Optimizer::Correction(double beta) const {
  return 1.0 - std::pow(beta, static_cast<double>(steps_));
}

at::Tensor Optimizer::Wide(const at::Tensor& gradient) const {
  if (type_ == at::kFloat) return gradient;
  at::Tensor wide = gradient.to(at::kFloat);
  if (gradient_factor_.defined()) wide.mul_(gradient_factor_);
  return wide;
}

Optimizer::Tensors Optimizer::Wide(const Tensors& gradients) const {
  if (type_ == at::kFloat) return gradients;
  Tensors wide;
  wide.reserve(gradients.size());
  for (const at::Tensor& gradient : gradients) {
    wide.push_back(at::empty_like(gradient, at::kFloat));
  }
  at::_foreach_copy_(wide, gradients);
  if (gradient_factor_.defined()) at::_foreach_mul_(wide, gradient_factor_);
  return wide;
}

void Optimizer::WriteBack(const Group& group) {
  if (!group.masters.empty()) {
    at::_foreach_copy_(group.parameters, group.masters);
  }
}

void Optimizer::WriteBack(const Group& group, size_t i) {
  if (!group.masters.empty()) group.parameters[i].copy_(group.masters[i]);
}

void Optimizer::Step(double loss_scale) {
  const at::NoGradGuard no_grad;
  ++steps_;
  std::vector<Tensors> gradients;
  for (const Group& group : groups_) {
    gradients.emplace_back();
    for (const at::Tensor& parameter : group.parameters) {
      ENSURE(parameter.grad().defined(),
             "a parameter took no part in the loss");
      gradients.back().push_back(parameter.grad());
    }
  }
  if (type_ != at::kFloat) {
    gradient_factor_ = GradientFactor(gradients, loss_scale);
  } else {
    ENSURE(loss_scale == 1.0, "fp32 gradients come unscaled");
    if (options_.largest_gradient_norm > 0) ClipGradients(gradients);
  }
  Update(gradients);
}

at::Tensor Optimizer::NormOf(const Tensors& norms) const {
  const at::Tensor all = at::stack(norms);
  if (!options_.sum_over_shares) return all.norm();
  const at::Tensor squares = all.square().sum();
  options_.sum_over_shares(squares);
  return squares.sqrt();
}

// Narrow gradients stay as they are: divided in place, small ones would vanish.
// Their norm is taken in fp32; like the clipping of fp32 gradients this waits
// for no device.
at::Tensor Optimizer::GradientFactor(const std::vector<Tensors>& gradients,
                                     double loss_scale) const {
  const bool clips = options_.largest_gradient_norm > 0;
  if (!clips && loss_scale == 1.0) return {};
  const at::Tensor inverse =
      at::full({},
               1.0 / loss_scale,
               gradients.front().front().options().dtype(at::kFloat));
  if (!clips) return inverse;
  Tensors norms;
  for (const Tensors& group : gradients) {
    for (at::Tensor& norm : at::_foreach_norm(group, 2.0, at::kFloat)) {
      norms.push_back(std::move(norm));
    }
  }
  const at::Tensor norm = NormOf(norms) * inverse;
  return (options_.largest_gradient_norm / (norm + 1e-6)).clamp_max(1.0) *
         inverse;
}

// As torch.nn.utils.clip_grad_norm_: the factor stays on the device.
void Optimizer::ClipGradients(const std::vector<Tensors>& gradients) const {
  Tensors norms;
  for (const Tensors& group : gradients) {
    for (at::Tensor& norm : at::_foreach_norm(group, 2.0)) {
      norms.push_back(std::move(norm));
    }
  }
  const at::Tensor factor =
      (options_.largest_gradient_norm / (NormOf(norms) + 1e-6)).clamp_max(1.0);
  for (const Tensors& group : gradients) at::_foreach_mul_(group, factor);
}

std::vector<at::Tensor> Optimizer::Gradients() const {
  Tensors all;
  for (const Group& group : groups_) {
    for (const at::Tensor& parameter : group.parameters) {
      ENSURE(parameter.grad().defined(),
             "a parameter took no part in the loss");
      all.push_back(parameter.grad());
    }
  }
  return all;
}

void Optimizer::ZeroGradients() {
  for (const Group& group : groups_) {
    for (const at::Tensor& parameter : group.parameters) {
      parameter.mutable_grad().reset();
    }
  }
}

std::vector<Parameter> Optimizer::State() const {
  std::vector<Parameter> tensors;
  for (const Group& group : groups_) {
    for (size_t s = 0; s < state_names_.size(); ++s) {
      for (size_t i = 0; i < group.names.size(); ++i) {
        tensors.push_back(
            {group.names[i] + "." + state_names_[s], group.state[s][i]});
      }
    }
    for (size_t i = 0; i < group.masters.size(); ++i) {
      tensors.push_back({group.names[i] + ".master", group.masters[i]});
    }
  }
  return tensors;
}

void Optimizer::Restore(int64_t steps) {
  steps_ = steps;
  if (steps == 0) {
    const at::NoGradGuard no_grad;
    for (const Group& group : groups_) {
      for (const Tensors& tensors : group.state) {
        for (const at::Tensor& tensor : tensors) tensor.zero_();
      }
      for (size_t i = 0; i < group.masters.size(); ++i) {
        group.masters[i].copy_(group.parameters[i]);
      }
    }
  }
  OnRestore();
}

std::unique_ptr<Optimizer> MakeOptimizer(
    const std::vector<Parameter>& parameters, const OptimizerOptions& options) {
  if (options.access == model::FusedAccess::kOneTensor &&
      (options.kind.kind != OptimizerKind::kAdan ||
       options.kind.implementation != OptimizerImplementation::kFused)) {
    throw model::InputError(
        fmt::format("optimizer: a launch a tensor is for the fused adan, got "
                    "{} {}",
                    model::ToText(options.kind.kind),
                    model::ToText(options.kind.implementation)));
  }
  switch (options.kind.kind) {
    case OptimizerKind::kAdamW:
      return std::make_unique<AdamW>(parameters, options);
    case OptimizerKind::kAdan:
      return std::make_unique<Adan>(parameters, options);
    case OptimizerKind::kSgd:
      if (options.kind.implementation != OptimizerImplementation::kFused) {
        return std::make_unique<Sgd>(parameters, options);
      }
      throw model::InputError(
          "optimizer: sgd has for_loop and multi_tensor, got fused");
    default:
      break;
  }
  throw model::InputError(
      fmt::format("optimizer: this trainer has adamw, adan and sgd, got {}",
                  model::ToText(options.kind.kind)));
}

}  // namespace trainfare::trainer
