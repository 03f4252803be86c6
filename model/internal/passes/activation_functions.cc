#include "model/internal/passes/activation_functions.h"

#include "model/internal/passes/casts.h"
#include "model/internal/passes/norms.h"

namespace trainfare::model::internal {
namespace {

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), each operation a kernel;
// autocast takes the power in fp32, and all that comes of it (NewGELUActivation
// in activations.py of Transformers 4.57).
void GeluByOperations(Pass& pass, int64_t elements) {
  const auto operation = [&](int64_t read, int64_t flops, int64_t special = 0) {
    pass.Elementwise(
        "gelu operation", elements, read, pass.wide, flops, special);
  };
  if (pass.autocast) {
    pass.Copy("cast activation", elements, pass.element, pass.wide);
  }
  operation(pass.wide, 2);                 // x^3
  operation(pass.wide, 1);                 // 0.044715 x^3
  operation(pass.element + pass.wide, 1);  // x + ..
  operation(pass.wide, 1);                 // sqrt(2 / pi) ..
  operation(pass.wide, 0, 1);              // tanh
  operation(pass.wide, 1);                 // 1 + ..
  pass.Elementwise(
      "gelu operation", elements, pass.element, pass.element, 1);  // 0.5 x
  operation(pass.element + pass.wide, 1);
  CastOperand(pass, elements);
}

// What autograd runs of GeluByOperations(), last to first.
void GeluByOperationsBackward(Pass& pass, int64_t elements) {
  const auto operation = [&](int64_t read, int64_t written, int64_t flops) {
    pass.Elementwise("gelu operation gradient", elements, read, written, flops);
  };
  WidenGradient(pass, elements);
  operation(2 * pass.wide, pass.wide, 1);  // of 0.5 x
  NarrowGradient(pass, elements);
  operation(pass.wide + pass.element, pass.wide, 1);  // of 1 + tanh
  operation(pass.element, pass.element, 1);           // of the first x
  operation(2 * pass.wide, pass.wide, 3);             // of tanh
  operation(pass.wide, pass.wide, 1);                 // of x + ..
  NarrowGradient(pass, elements);
  operation(pass.element * 2, pass.element, 1);  // of x, twice so far
  operation(pass.wide, pass.wide, 1);            // of x^3
  operation(pass.wide, pass.wide, 1);            // x^2
  operation(pass.wide, pass.wide, 1);            // 3 x^2
  operation(2 * pass.wide, pass.wide, 1);
  NarrowGradient(pass, elements);
  operation(pass.element * 2, pass.element, 1);  // of x
}

// ReLU and its square, which autocast takes in fp32, as powers
// (ReLUSquaredActivation in activations.py of Transformers 4.57; at::square is
// at::pow, which is on autocast's list).
void SquaredReluByOperations(Pass& pass, int64_t elements) {
  constexpr KernelName kName = "squared relu operation";
  pass.Elementwise(kName, elements, pass.element, pass.element, 1);
  if (pass.autocast) {
    pass.Copy("cast activation", elements, pass.element, pass.wide);
  }
  pass.Elementwise(kName, elements, pass.wide, pass.wide, 1);
  CastOperand(pass, elements);
}

// What autograd runs of it, last to first: the gradient of a power is its
// exponent times that power less one (a copy) times what comes, one after the
// other.
void SquaredReluByOperationsBackward(Pass& pass, int64_t elements) {
  constexpr KernelName kName = "squared relu gradient";
  WidenGradient(pass, elements);
  pass.Elementwise(kName, elements, pass.wide, pass.wide, 0);
  pass.Elementwise(kName, elements, pass.wide, pass.wide, 1);
  pass.Elementwise(kName, elements, 2 * pass.wide, pass.wide, 1);
  NarrowGradient(pass, elements);
  pass.Elementwise(kName, elements, 2 * pass.element, pass.element, 1);
}

}  // namespace

bool DropsActivation(const Pass& pass) {
  const Architecture& a = pass.architecture;
  return pass.dropout &&
         (a.drops_activation || (a.two_sided() && pass.rules.drops_activation));
}

void DropActivation(Pass& pass, int64_t elements) {
  if (pass.ByOperation()) {
    Dropout(pass, elements, pass.element);
    return;
  }
  Kernel& kernel = pass.last();
  kernel.vector_flops += elements * kDropoutFlops;
  kernel.random_draws += elements;
  kernel.bytes_written += elements * kMaskBytes;
}

void ActivationAlone(Pass& pass, KernelName name, int64_t elements) {
  const Workload& w = pass.workload;
  if (WritesGeluOut(w)) {
    GeluByOperations(pass, elements);
  } else if (WritesSquareOut(w)) {
    SquaredReluByOperations(pass, elements);
  } else {
    pass.Elementwise(
        name, elements, pass.element, pass.element, kGeluForwardFlops, 1);
  }
}

void ActivationAloneBackward(Pass& pass, KernelName name, int64_t elements) {
  const Workload& w = pass.workload;
  if (WritesGeluOut(w)) {
    GeluByOperationsBackward(pass, elements);
  } else if (WritesSquareOut(w)) {
    SquaredReluByOperationsBackward(pass, elements);
  } else {
    pass.Elementwise(
        name, elements, 2 * pass.element, pass.element, kGeluBackwardFlops, 2);
  }
}

void GatedActivation(Pass& pass, int64_t elements) {
  if (pass.rules.fuses_gate) {
    pass.Elementwise("gated activation",
                     elements,
                     2 * pass.element,
                     pass.element,
                     kGeluForwardFlops + 1,
                     1);
    return;
  }
  ActivationAlone(pass, "gated activation", elements);
  pass.Elementwise(
      "activation product", elements, 2 * pass.element, pass.element, 1);
}

void GatedActivationBackward(Pass& pass, int64_t elements) {
  if (pass.rules.fuses_gate) {
    pass.Elementwise("gated activation gradient",
                     elements,
                     3 * pass.element,
                     2 * pass.element,
                     kGeluBackwardFlops + 2,
                     2);
    return;
  }
  pass.Elementwise("activation product gradient",
                   elements,
                   2 * pass.element,
                   pass.element,
                   1);
  pass.Elementwise("activation product gradient",
                   elements,
                   2 * pass.element,
                   pass.element,
                   1);
  ActivationAloneBackward(pass, "gated activation gradient", elements);
}

void ActivationForward(Pass& pass, int64_t elements) {
  if (pass.FusedPasses() || pass.HandFused()) {
    // LightSeq2 also drops out the activation in the same pass.
    const bool drops = DropsActivation(pass);
    pass.Elementwise("bias and gelu",
                     elements,
                     pass.element,
                     pass.element + (drops ? pass.DropoutMask() : 0),
                     kGeluForwardFlops + 1 + (drops ? pass.DropoutFlops() : 0),
                     1,
                     drops ? pass.DropoutDraws() : 0);
  } else {
    ActivationAlone(pass, "gelu", elements);
    if (DropsActivation(pass)) DropActivation(pass, elements);
  }
}

void ActivationBackward(Pass& pass, int64_t elements) {
  if (WritesGeluOut(pass.workload)) {
    GeluByOperationsBackward(pass, elements);
    return;
  }
  if (WritesSquareOut(pass.workload)) {
    SquaredReluByOperationsBackward(pass, elements);
    return;
  }
  const bool fused = pass.FusedPasses();
  const bool drops = DropsActivation(pass) && !pass.ByOperation();
  pass.Elementwise(
      fused ? KernelName("gelu and bias gradient")
            : KernelName("gelu gradient"),
      elements,
      2 * pass.element + (drops ? pass.DropoutMask() : 0),
      pass.element,
      kGeluBackwardFlops + (fused ? 1 : 0) + (drops ? pass.DropoutFlops() : 0),
      2);
}

}  // namespace trainfare::model::internal
