#include "trainer/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "model/error.h"

namespace trainfare::trainer {
namespace {

bool Decays(const std::string& name) {
  const auto ends_with = [&](std::string_view end) {
    return name.size() >= end.size() &&
           std::string_view(name).substr(name.size() - end.size()) == end;
  };
  // GPT-2 calls its norms ln_1, ln_2 and ln_f.
  return !ends_with(".bias") && !ends_with("LayerNorm.weight") &&
         !ends_with("norm.weight") && name.find(".ln_") == std::string::npos;
}

}  // namespace

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

}  // namespace trainfare::trainer
