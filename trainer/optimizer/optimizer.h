#pragma once

// Optimizers, each in the implementations whose cost the simulator tells apart.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/optimizer_kernels.h"
#include "model/workload.h"
#include "trainer/network/transformer.h"
#include "trainer/optimizer/layer_depth.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

struct OptimizerOptions {
  model::Optimizer kind;
  // How the fused Adan launches: all tensors at once, or a launch a tensor.
  model::FusedAccess access = model::FusedAccess::kAllTensors;
  double learning_rate = 5e-5;
  // AdamW: of the mean and of the mean square.
  double beta1 = 0.9;
  double beta2 = 0.999;
  // Adan: of the mean, of the mean difference and of the mean square, each the
  // weight of the past, as in the authors' code (the paper writes 1 - beta).
  double adan_beta1 = 0.98;
  double adan_beta2 = 0.92;
  double adan_beta3 = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0.01;  // not of biases and LayerNorm
  // Layer-wise decay (Howard & Ruder 2018; Clark et al. 2020): the learning
  // rate of each layer is this fraction of that of the layer above, of the
  // embeddings that of the lowest layer's; 1 = none.
  double layer_decay = 1.0;
  // Adds up over ranks that each have a share of the parameters, in place:
  // squares of norms. Empty: all parameters are here.
  std::function<void(const at::Tensor&)> sum_over_shares;
  // The model's, where the parameters are a rank's share; nullopt: by theirs.
  std::optional<Blocks> blocks;
  // Gradients are scaled down to this global norm; 0 = never.
  double largest_gradient_norm = 0.0;
};

// For parameters in bf16 or fp16 it holds fp32 masters: these are updated, from
// gradients widened to fp32, and the parameters are the masters rounded.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Applies the gradients of one step, which are `loss_scale` times too large:
  // 1 but for narrow parameters, as narrow gradients cannot be divided in
  // place.
  void Step(double loss_scale = 1.0);
  // Forgets all steps, as if new, and takes masters from the parameters.
  void Reset() { Restore(0); }
  // The gradients of all parameters.
  std::vector<at::Tensor> Gradients() const;
  // Drops the gradients, so that backward writes instead of adds.
  void ZeroGradients();
  const OptimizerOptions& options() const { return options_; }
  void set_learning_rate(double rate) { options_.learning_rate = rate; }

  // What a checkpoint has to keep beside the parameters. The tensors are the
  // optimizer's own: filled by the reader, then Restore(steps).
  std::vector<Parameter> State() const;
  int64_t steps() const { return steps_; }
  // Takes over state tensors of so many steps; 0 clears them, and the masters
  // are those of the parameters.
  void Restore(int64_t steps);

 protected:
  // `state_names`: tensors of zeros that the optimizer keeps a parameter.
  Optimizer(const std::vector<Parameter>& parameters,
            const OptimizerOptions& options,
            std::vector<std::string> state_names);
  // Parameters that share one weight decay and one share of the learning rate.
  // Lists as LibTorch takes them.
  struct Group {
    std::vector<std::string> names;
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> masters;  // of narrow parameters, else none
    double weight_decay = 0;
    double rate_share = 1;
    // In the order of `state_names`, then of the parameters.
    std::vector<std::vector<at::Tensor>> state;

    // What an update changes, fp32.
    const std::vector<at::Tensor>& values() const {
      return masters.empty() ? parameters : masters;
    }
  };
  using Tensors = std::vector<at::Tensor>;

  virtual void Update(const std::vector<Tensors>& gradients) = 0;
  virtual void OnRestore() {}
  double RateOf(const Group& group) const {
    return options_.learning_rate * group.rate_share;
  }
  // Gradients as an update takes them: fp32, unscaled, clipped.
  at::Tensor Wide(const at::Tensor& gradient) const;
  Tensors Wide(const Tensors& gradients) const;
  // Behind the update of a group's masters, or of one of them.
  static void WriteBack(const Group& group);
  static void WriteBack(const Group& group, size_t i);
  // 1 - beta^t at the present step.
  double Correction(double beta) const;

  OptimizerOptions options_;
  std::vector<std::string> state_names_;
  std::vector<Group> groups_;
  int64_t steps_ = 0;
  at::ScalarType type_ = at::kFloat;  // of parameters and gradients
  // The factor of narrow gradients that undoes the loss scale, and clips.
  // Undefined: 1.
  at::Tensor gradient_factor_;

 private:
  at::Tensor NormOf(const Tensors& norms) const;
  void ClipGradients(const std::vector<Tensors>& gradients) const;
  at::Tensor GradientFactor(const std::vector<Tensors>& gradients,
                            double loss_scale) const;
};

}  // namespace trainfare::trainer
