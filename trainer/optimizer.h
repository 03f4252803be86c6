#pragma once

// Optimizers, each in the implementations whose cost the simulator tells apart.

#include <cstdint>
#include <memory>
#include <vector>

#include "model/workload.h"
#include "trainer/aten.h"
#include "trainer/transformer.h"

namespace trainfare::trainer {

struct OptimizerOptions {
  model::Optimizer kind;
  double learning_rate = 5e-5;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;  // not of biases and LayerNorm
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Applies the gradients of one step.
  virtual void Step() = 0;
  // Forgets all steps, as if new.
  virtual void Reset() = 0;
  // Drops the gradients, so that backward writes instead of adds.
  void ZeroGradients();
  void set_learning_rate(double rate) { options_.learning_rate = rate; }

 protected:
  Optimizer(const std::vector<Parameter>& parameters,
            const OptimizerOptions& options);
  // Parameters that share one weight decay. Lists as LibTorch takes them.
  struct Group {
    std::vector<at::Tensor> parameters;
    double weight_decay;
  };
  OptimizerOptions options_;
  std::vector<Group> groups_;
};

// Throws InputError for an optimizer or implementation that is not here.
std::unique_ptr<Optimizer> MakeOptimizer(
    const std::vector<Parameter>& parameters, const OptimizerOptions& options);

}  // namespace trainfare::trainer
