#include "trainer/optimizer.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "model/error.h"

namespace trainfare::trainer {
namespace {

using model::OptimizerImplementation;
using model::OptimizerKind;

bool Decays(const std::string& name) {
  const auto ends_with = [&](std::string_view end) {
    return name.size() >= end.size() &&
           std::string_view(name).substr(name.size() - end.size()) == end;
  };
  return !ends_with(".bias") && !ends_with("LayerNorm.weight") &&
         !ends_with("layer_norm.weight");
}

std::vector<at::Tensor> Gradients(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters.size());
  for (const at::Tensor& parameter : parameters) {
    ENSURE(parameter.grad().defined(), "a parameter took no part in the loss");
    gradients.push_back(parameter.grad());
  }
  return gradients;
}

class Sgd final : public Optimizer {
 public:
  Sgd(const std::vector<Parameter>& parameters, const OptimizerOptions& options)
      : Optimizer(parameters, options) {}

  void Reset() override {}  // has no state

  void Step() override {
    const at::NoGradGuard no_grad;
    for (const Group& group : groups_) {
      std::vector<at::Tensor> gradients = Gradients(group.parameters);
      if (options_.kind.implementation ==
          OptimizerImplementation::kMultiTensor) {
        at::_foreach_add_(gradients, group.parameters, group.weight_decay);
        at::_foreach_add_(group.parameters, gradients, -options_.learning_rate);
        continue;
      }
      for (size_t i = 0; i < gradients.size(); ++i) {
        gradients[i].add_(group.parameters[i], group.weight_decay);
        group.parameters[i].add_(gradients[i], -options_.learning_rate);
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
      : Optimizer(parameters, options) {
    for (const Group& group : groups_) {
      State state;
      for (const at::Tensor& parameter : group.parameters) {
        state.first_moments.push_back(at::zeros_like(parameter.detach()));
        state.second_moments.push_back(at::zeros_like(parameter.detach()));
        state.steps.push_back(at::zeros(
            {}, parameter.options().dtype(at::kFloat).requires_grad(false)));
      }
      states_.push_back(std::move(state));
    }
  }

  void Reset() override {
    steps_ = 0;
    for (const State& state : states_) {
      for (const auto* tensors :
           {&state.first_moments, &state.second_moments, &state.steps}) {
        for (const at::Tensor& tensor : *tensors) tensor.zero_();
      }
    }
  }

  void Step() override {
    const at::NoGradGuard no_grad;
    ++steps_;
    for (size_t i = 0; i < groups_.size(); ++i) {
      const std::vector<at::Tensor> gradients =
          Gradients(groups_[i].parameters);
      switch (options_.kind.implementation) {
        case OptimizerImplementation::kForLoop:
          StepForLoop(groups_[i], gradients, states_[i]);
          break;
        case OptimizerImplementation::kMultiTensor:
          StepMultiTensor(groups_[i], gradients, states_[i]);
          break;
        case OptimizerImplementation::kFused:
          StepFused(groups_[i], gradients, states_[i]);
          break;
      }
    }
  }

 private:
  struct State {
    std::vector<at::Tensor> first_moments;
    std::vector<at::Tensor> second_moments;
    std::vector<at::Tensor> steps;  // scalars, as the fused operator wants them
  };

  double step_size() const {
    return options_.learning_rate /
           (1.0 - std::pow(options_.beta1, static_cast<double>(steps_)));
  }
  double second_correction() const {
    return std::sqrt(1.0 -
                     std::pow(options_.beta2, static_cast<double>(steps_)));
  }

  void StepForLoop(const Group& group,
                   const std::vector<at::Tensor>& gradients,
                   const State& state) const {
    for (size_t i = 0; i < gradients.size(); ++i) {
      const at::Tensor& gradient = gradients[i];
      group.parameters[i].mul_(1.0 -
                               options_.learning_rate * group.weight_decay);
      state.first_moments[i].lerp_(gradient, 1.0 - options_.beta1);
      state.second_moments[i]
          .mul_(options_.beta2)
          .addcmul_(gradient, gradient, 1.0 - options_.beta2);
      const at::Tensor denominator =
          (state.second_moments[i].sqrt() / second_correction())
              .add_(options_.epsilon);
      group.parameters[i].addcdiv_(
          state.first_moments[i], denominator, -step_size());
    }
  }

  void StepMultiTensor(const Group& group,
                       const std::vector<at::Tensor>& gradients,
                       const State& state) const {
    at::_foreach_mul_(group.parameters,
                      1.0 - options_.learning_rate * group.weight_decay);
    at::_foreach_lerp_(state.first_moments, gradients, 1.0 - options_.beta1);
    at::_foreach_mul_(state.second_moments, options_.beta2);
    at::_foreach_addcmul_(
        state.second_moments, gradients, gradients, 1.0 - options_.beta2);
    const std::vector<at::Tensor> denominators =
        at::_foreach_sqrt(state.second_moments);
    at::_foreach_div_(denominators, second_correction());
    at::_foreach_add_(denominators, options_.epsilon);
    at::_foreach_addcdiv_(
        group.parameters, state.first_moments, denominators, -step_size());
  }

  void StepFused(const Group& group,
                 const std::vector<at::Tensor>& gradients,
                 const State& state) const {
    // The operator reads the step count after its increment.
    at::_foreach_add_(state.steps, 1);
    at::_fused_adamw_(group.parameters,
                      gradients,
                      state.first_moments,
                      state.second_moments,
                      {},
                      state.steps,
                      options_.learning_rate,
                      options_.beta1,
                      options_.beta2,
                      group.weight_decay,
                      options_.epsilon,
                      /*amsgrad=*/false,
                      /*maximize=*/false);
  }

  std::vector<State> states_;
  int64_t steps_ = 0;
};

}  // namespace

Optimizer::Optimizer(const std::vector<Parameter>& parameters,
                     const OptimizerOptions& options)
    : options_(options), groups_{{{}, options.weight_decay}, {{}, 0.0}} {
  for (const Parameter& parameter : parameters) {
    groups_[Decays(parameter.name) ? 0 : 1].parameters.push_back(
        parameter.value);
  }
}

void Optimizer::ZeroGradients() {
  for (const Group& group : groups_) {
    for (const at::Tensor& parameter : group.parameters) {
      parameter.mutable_grad().reset();
    }
  }
}

std::unique_ptr<Optimizer> MakeOptimizer(
    const std::vector<Parameter>& parameters, const OptimizerOptions& options) {
  switch (options.kind.kind) {
    case OptimizerKind::kAdamW:
      return std::make_unique<AdamW>(parameters, options);
    case OptimizerKind::kSgd:
      if (options.kind.implementation != OptimizerImplementation::kFused) {
        return std::make_unique<Sgd>(parameters, options);
      }
      throw model::InputError(
          "optimizer: sgd has for_loop and multi_tensor, got fused");
    case OptimizerKind::kNone:
    case OptimizerKind::kAdan:
    case OptimizerKind::kLamb:
    case OptimizerKind::kBertAdam:
      break;
  }
  throw model::InputError(
      fmt::format("optimizer: this trainer has adamw and sgd, got {}",
                  model::ToText(options.kind.kind)));
}

}  // namespace trainfare::trainer
