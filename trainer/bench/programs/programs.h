#pragma once

// The programs of operations, each on random operands of its own: what the
// trainer calls for the same kernels, a file a paragraph. They throw InputError
// where the trainer cannot run one on the device.

#include "model/kernel_name.h"
#include "model/optimizer_kernels.h"
#include "trainer/bench/programs/program.h"

namespace trainfare::trainer::programs {

// products: by weights, and the sum that is a bias's gradient.
Program LinearForward(const Setting& s);
Program LinearWithoutBias(const Setting& s);
Program InputGradient(const Setting& s);
Program WeightGradient(const Setting& s);
Program BiasGradient(const Setting& s);

// attention: A B, A B^T and A^T B of each head, what stands between them, and
// heads apart and together again.
Program BatchedProduct(const Setting& s);
Program BatchedProductByTransposed(const Setting& s);
Program BatchedProductOfTransposed(const Setting& s);
Program FlashAttention(const Setting& s);
Program FlashAttentionGradient(const Setting& s);
Program AddMask(const Setting& s);
Program Softmax(const Setting& s);
Program SoftmaxGradient(const Setting& s);
Program Transpose(const Setting& s);
Program Join(const Setting& s);

// heads: turned by their position, and those of keys as often as queries.
Program RotaryForward(const Setting& s);
Program RotaryGradient(const Setting& s);
Program RepeatForward(const Setting& s);
Program RepeatGradient(const Setting& s);

// experts: tokens to the rows of their experts and back, and what a shared one
// adds.
Program Route(const Setting& s);
Program RouteGradient(const Setting& s);
Program Combine(const Setting& s);
Program CombineGradient(const Setting& s);
Program SharedExpert(const Setting& s);
Program SharedExpertGradient(const Setting& s);

// task_heads: losses, and what an encoder has before its classifier.
Program LogSoftmax(const Setting& s);
Program LogSoftmaxGradient(const Setting& s);
Program NegativeLogLikelihood(const Setting& s);
Program NegativeLogLikelihoodGradient(const Setting& s);
Program FirstTokens(const Setting& s);
Program FirstTokensGradient(const Setting& s);
Program Tanh(const Setting& s);
Program TanhGradient(const Setting& s);
Program HeadActivation(const Setting& s);
Program HeadActivationGradient(const Setting& s);

// norms
Program LayerNorm(const Setting& s);
Program LayerNormGradient(const Setting& s);
Program RmsNormForward(const Setting& s);
Program RmsNormGradient(const Setting& s);
// Among the kernels of the last: its factor trains.
inline constexpr model::KernelName kRmsWeightGradient =
    "rms norm weight gradient";

// embeddings: rows of a table, and their gradients into one.
Program Gather(const Setting& s);
Program TableGradient(const Setting& s);

// elementwise
Program ActivationForward(const Setting& s);
Program ActivationGradient(const Setting& s);
Program WrittenOutGelu(const Setting& s);
Program WrittenOutGeluGradient(const Setting& s);
Program DropoutForward(const Setting& s);
Program DropoutGradient(const Setting& s);
Program Gate(const Setting& s);
Program GateGradient(const Setting& s);
Program GateProduct(const Setting& s);
Program Add(const Setting& s);
Program AdapterAdd(const Setting& s);
Program Scale(const Setting& s);
Program Cast(const Setting& s);

// optimizer_step: of all parameters; a fused optimizer visits its tensors by
// `access`.
Program OptimizerStep(const Setting& s, model::FusedAccess access);

}  // namespace trainfare::trainer::programs
