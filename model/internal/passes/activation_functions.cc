#include "model/internal/passes/activation_functions.h"

#include "model/internal/passes/casts.h"
#include "model/internal/passes/norms.h"
#include "model/trainable.h"

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

// Operations of PyTorch from both weights of xIELU to what it takes of them, and
// back: softplus of each, and b beside one.
constexpr int64_t kXieluScalars = 3;

// a x^2 + b x above 0, and c (exp(min(x, e)) - 1 - x) + b x below it, where
// softplus makes a and c of weights; each operation a kernel over all of x
// (XIELUActivation in activations.py of Transformers 5.24, where the kernel of
// its authors is not installed). What the weights are in is in fp32 under
// autocast.
void XieluByOperations(Pass& pass, int64_t elements) {
  constexpr KernelName kName = "xielu operation";
  const int64_t narrow = pass.element;
  const int64_t wide = pass.wide;
  const auto operation =
      [&](int64_t read, int64_t written, int64_t flops, int64_t special = 0) {
        pass.Elementwise(kName, elements, read, written, flops, special);
      };
  pass.Elementwise(kName, 1, wide, wide, 2, 1);
  pass.last().launches = kXieluScalars;
  operation(narrow, kMaskBytes, 1);   // x > 0
  operation(narrow, wide, 1);         // a x
  operation(wide + narrow, wide, 1);  // a x x
  operation(narrow, narrow, 1);       // b x
  operation(wide + narrow, wide, 1);  // a x x + b x
  operation(narrow, narrow, 1);       // min(x, e)
  if (pass.autocast) pass.Copy("cast activation", elements, narrow, wide);
  operation(wide, wide, 1, 1);                // exp(..) - 1
  operation(wide + narrow, wide, 1);          // .. - x
  operation(wide, wide, 1);                   // c ..
  operation(narrow, narrow, 1);               // b x
  operation(wide + narrow, wide, 1);          // .. + b x
  operation(kMaskBytes + 2 * wide, wide, 1);  // one of both
  CastOperand(pass, elements);
}

// The gradient of a weight of xIELU: of what it scales times what comes, summed
// over all elements.
void XieluWeightBackward(Pass& pass, int64_t elements, int64_t read) {
  if (!ActivationTrains(pass.workload)) return;
  pass.Elementwise("xielu operation gradient", elements, read, pass.wide, 1);
  pass.Reduction("activation weight gradient", 1, elements, pass.wide, 0, 1);
}

// What autograd runs of XieluByOperations(), last to first: what is below 0,
// then what is above.
void XieluByOperationsBackward(Pass& pass, int64_t elements) {
  constexpr KernelName kName = "xielu operation gradient";
  const int64_t narrow = pass.element;
  const int64_t wide = pass.wide;
  const auto operation = [&](int64_t read, int64_t written, int64_t flops) {
    pass.Elementwise(kName, elements, read, written, flops);
  };
  // Of x as each operation took it, added to what others gave.
  const auto add = [&] { operation(2 * narrow, narrow, 1); };
  WidenGradient(pass, elements);
  operation(kMaskBytes + wide, wide, 1);  // of one of both, and the other
  operation(kMaskBytes + wide, wide, 1);
  NarrowGradient(pass, elements);
  operation(narrow, narrow, 1);  // of b x
  operation(wide, wide, 1);      // of what c scales
  XieluWeightBackward(pass, elements, 2 * wide);
  operation(wide, wide, 1);  // of - x
  NarrowGradient(pass, elements);
  add();
  operation(wide, wide, 1);  // of exp(..) - 1: that and 1, times
  operation(2 * wide, wide, 1);
  NarrowGradient(pass, elements);
  // Of min(x, e): where they are one, a half, which of both, and which less.
  operation(narrow, kMaskBytes, 1);
  operation(narrow, narrow, 1);
  operation(kMaskBytes + 2 * narrow, narrow, 1);
  operation(narrow, kMaskBytes, 1);
  operation(kMaskBytes + narrow, narrow, 1);
  add();
  NarrowGradient(pass, elements);
  operation(narrow, narrow, 1);  // of b x
  add();
  operation(2 * wide, wide, 1);  // of the second x
  NarrowGradient(pass, elements);
  add();
  operation(wide + narrow, wide, 1);  // of a x
  operation(wide, wide, 1);           // of the first x
  NarrowGradient(pass, elements);
  add();
  XieluWeightBackward(pass, elements, wide + narrow);
  pass.Elementwise(kName, 1, 2 * wide, wide, 2, 1);
  pass.last().launches = kXieluScalars;
}

// The gradients of both weights where one kernel makes all that of x.
void WeightsBackward(Pass& pass, int64_t elements) {
  if (!ActivationTrains(pass.workload)) return;
  pass.Reduction("activation weight gradient",
                 2,
                 elements,
                 2 * pass.element,
                 0,
                 kGeluForwardFlops,
                 1);
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
  } else if (WritesXieluOut(w)) {
    XieluByOperations(pass, elements);
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
  } else if (WritesXieluOut(w)) {
    XieluByOperationsBackward(pass, elements);
  } else {
    pass.Elementwise(
        name, elements, 2 * pass.element, pass.element, kGeluBackwardFlops, 2);
    WeightsBackward(pass, elements);
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
    WeightsBackward(pass, elements);
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
  if (WritesXieluOut(pass.workload)) {
    XieluByOperationsBackward(pass, elements);
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
  WeightsBackward(pass, elements);
}

}  // namespace trainfare::model::internal
