#include "trainer/optimizer/adamw.h"

#include <cmath>
#include <utility>

#include "trainer/device/device.h"
#include "trainer/kernels/fused_adamw.h"
#include "trainer/optimizer/fused_operator.h"

namespace trainfare::trainer {
namespace {

using model::OptimizerImplementation;

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

}  // namespace

std::unique_ptr<Optimizer> MakeAdamW(const std::vector<Parameter>& parameters,
                                     const OptimizerOptions& options) {
  return std::make_unique<AdamW>(parameters, options);
}

}  // namespace trainfare::trainer
