#include "trainer/optimizer/adan.h"

#include <cmath>
#include <utility>

#include "trainer/device/device.h"
#include "trainer/kernels/fused_adan.h"
#include "trainer/optimizer/fused_operator.h"

namespace trainfare::trainer {
namespace {

using model::OptimizerImplementation;

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

std::unique_ptr<Optimizer> MakeAdan(const std::vector<Parameter>& parameters,
                                    const OptimizerOptions& options) {
  return std::make_unique<Adan>(parameters, options);
}

}  // namespace trainfare::trainer
