#include "trainer/optimizer/sgd.h"

namespace trainfare::trainer {
namespace {

using model::OptimizerImplementation;

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

}  // namespace

std::unique_ptr<Optimizer> MakeSgd(const std::vector<Parameter>& parameters,
                                   const OptimizerOptions& options) {
  return std::make_unique<Sgd>(parameters, options);
}

}  // namespace trainfare::trainer
