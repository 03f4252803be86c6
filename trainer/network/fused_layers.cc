#include "trainer/network/fused_layers.h"

#include <ATen/record_function.h>

#include <tuple>
#include <vector>

#include "model/error.h"
#include "trainer/device/device.h"
#include "trainer/network/dropout.h"

namespace trainfare::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

ElementType TypeOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return ElementType::kFloat;
    case at::kDouble:
      return ElementType::kDouble;
    case at::kHalf:
      return ElementType::kHalf;
    case at::kBFloat16:
      return ElementType::kBfloat16;
    default:
      ENSURE(false, "fused layers take floating-point tensors");
  }
}

// The loops of a CPU have no narrow types; what follows casts again.
at::Tensor WidenedOnCpu(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.element_size() < 4 ? tensor.to(at::kFloat)
                                                      : tensor;
}
// Sums are kept in double for double, else in fp32.
at::ScalarType WideType(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

enum class Pass { kForward, kBackward };

// LibTorch's profilers and our count of launches see it as an operator.
template <class Arguments>
void Launch(const char* name,
            Pass pass,
            const at::Tensor& input,
            const Arguments& arguments) {
  const std::vector<c10::IValue> inputs = {input};
  RECORD_FUNCTION(name, inputs);
  if (input.is_cuda()) {
    pass == Pass::kForward ? FusedForwardOnGpu(arguments)
                           : FusedBackwardOnGpu(arguments);
  } else {
    pass == Pass::kForward ? FusedForward(arguments) : FusedBackward(arguments);
  }
}

// Activations of narrow weights are narrow, too.
at::Tensor NarrowAs(const at::Tensor& weight, const at::Tensor& result) {
  return weight.element_size() < 4 ? result.to(weight.scalar_type()) : result;
}

// Null without a tensor.
const void* Read(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}
void* Write(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr() : nullptr;
}
uint8_t* Bytes(const at::Tensor& mask) {
  return mask.defined() ? mask.mutable_data_ptr<uint8_t>() : nullptr;
}

// What dropout needs of the sequence of masks.
struct Mask {
  at::Tensor bytes;  // undefined without dropout; on a GPU yet to be drawn
  MaskDraw draw{0, 0};
  double scale = 1;

  Mask(const at::Tensor& like, double dropout) {
    if (dropout <= 0) return;
    scale = 1.0 / (1.0 - dropout);
    if (like.is_cpu()) {
      bytes = DropoutMask(like.sizes(), dropout);
    } else {
      bytes = at::empty(like.sizes(), like.options().dtype(at::kByte));
      draw = {NextDropoutKey(), DropoutThreshold(dropout)};
    }
  }
};

class BiasActivationFunction
    : public torch::autograd::Function<BiasActivationFunction> {
 public:
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& given,
                            const at::Tensor& bias,
                            int64_t activation) {
    const at::Tensor input = given.contiguous();
    at::Tensor output = at::empty_like(input);
    BiasActivation a = Shape(input, bias, activation);
    a.output = Write(output);
    Launch("trainfare::bias_activation", Pass::kForward, input, a);
    context->save_for_backward({input, bias});
    context->saved_data["activation"] = activation;
    return output;
  }

  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor input_gradient = at::empty_like(saved[0]);
    const at::Tensor partials =
        at::empty({kFusedChunks, saved[1].numel()}, saved[1].options());
    BiasActivation a =
        Shape(saved[0], saved[1], context->saved_data["activation"].toInt());
    a.gradient = Read(gradient);
    a.input_gradient = Write(input_gradient);
    a.bias_partials = Write(partials);
    Launch("trainfare::bias_activation_gradient", Pass::kBackward, gradient, a);
    return {input_gradient, partials.sum(0), at::Tensor()};
  }

 private:
  static BiasActivation Shape(const at::Tensor& input,
                              const at::Tensor& bias,
                              int64_t activation) {
    BiasActivation a{};
    a.columns = bias.numel();
    a.rows = input.numel() / a.columns;
    a.activation = static_cast<Activation>(activation);
    a.type = TypeOf(input);
    a.input = Read(input);
    a.bias = Read(bias);
    return a;
  }
};

class AddNormFunction : public torch::autograd::Function<AddNormFunction> {
 public:
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& given,
                               const at::Tensor& bias,
                               const at::Tensor& given_residual,
                               const at::Tensor& weight,
                               const at::Tensor& shift,
                               double epsilon,
                               double dropout) {
    const at::Tensor input = given.contiguous();
    const at::Tensor residual = given_residual.contiguous();
    const Mask mask(input, dropout);
    at::Tensor sum = at::empty_like(residual);
    at::Tensor normed = at::empty_like(residual);
    AddNorm a = Shape(input, weight);
    const at::Tensor mean = at::empty({a.rows}, residual.options());
    const at::Tensor deviation = at::empty_like(mean);
    a.epsilon = epsilon;
    a.scale = mask.scale;
    a.draw = mask.draw;
    a.mask = Bytes(mask.bytes);
    a.input = Read(input);
    a.bias = Read(bias);
    a.residual = Read(residual);
    a.shift = Read(shift);
    a.sum = Write(sum);
    a.normed = Write(normed);
    a.mean = Write(mean);
    a.deviation = Write(deviation);
    Launch("trainfare::add_norm", Pass::kForward, input, a);
    context->save_for_backward({sum, weight, mean, deviation, mask.bytes});
    context->saved_data["scale"] = mask.scale;
    context->saved_data["type"] = static_cast<int64_t>(input.scalar_type());
    // The sum's gradient is often absent: no zeros for it.
    context->set_materialize_grads(false);
    return {sum, normed};
  }

  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto& [sum, weight, mean, deviation, mask] =
        std::tie(saved[0], saved[1], saved[2], saved[3], saved[4]);
    const at::Tensor gradient = gradients[1].defined()
                                    ? gradients[1].contiguous()
                                    : at::zeros_like(sum);
    const at::Tensor sum_gradient =
        gradients[0].defined() ? gradients[0].contiguous() : at::Tensor();
    const auto type =
        static_cast<at::ScalarType>(context->saved_data["type"].toInt());
    at::Tensor residual_gradient = at::empty_like(sum);
    at::Tensor input_gradient;
    if (mask.defined() || type != sum.scalar_type()) {
      input_gradient = at::empty(sum.sizes(), sum.options().dtype(type));
    }
    AddNorm a = Shape(sum, weight);
    if (input_gradient.defined()) a.type = TypeOf(input_gradient);
    const at::Tensor partials =
        at::empty({3, kFusedChunks, a.columns}, sum.options());
    a.scale = context->saved_data["scale"].toDouble();
    a.mask = Bytes(mask);
    a.sum = Write(sum);
    a.mean = Write(mean);
    a.deviation = Write(deviation);
    a.normed_gradient = Read(gradient);
    a.sum_gradient = Read(sum_gradient);
    a.residual_gradient = Write(residual_gradient);
    a.input_gradient = Write(input_gradient);
    a.partials = Write(partials);
    Launch("trainfare::add_norm_gradient", Pass::kBackward, gradient, a);
    const at::Tensor sums = partials.sum(1);
    return {input_gradient.defined() ? input_gradient : residual_gradient,
            sums[0],
            residual_gradient,
            sums[1],
            sums[2],
            at::Tensor(),
            at::Tensor()};
  }

 private:
  static AddNorm Shape(const at::Tensor& input, const at::Tensor& weight) {
    AddNorm a{};
    a.columns = weight.numel();
    a.rows = input.numel() / a.columns;
    a.type = TypeOf(input);
    a.weight = Read(weight);
    return a;
  }
};

class SoftmaxDropoutFunction
    : public torch::autograd::Function<SoftmaxDropoutFunction> {
 public:
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& given,
                            const std::optional<at::Tensor>& padding,
                            bool causal,
                            double score_scale,
                            double dropout) {
    const at::Tensor scores = given.contiguous();
    const Mask mask(scores, dropout);
    at::Tensor probabilities = at::empty_like(scores);
    at::Tensor dropped;
    if (mask.bytes.defined()) dropped = at::empty_like(scores);
    SoftmaxDropout a = Shape(scores);
    a.score_scale = score_scale;
    a.causal = causal;
    a.scale = mask.scale;
    a.draw = mask.draw;
    a.mask = Bytes(mask.bytes);
    a.scores = Read(scores);
    const at::Tensor added =
        padding ? padding->to(WideType(scores)).contiguous() : at::Tensor();
    a.padding = Read(added);
    a.probabilities = Write(probabilities);
    a.dropped = Write(dropped);
    Launch("trainfare::softmax_dropout", Pass::kForward, scores, a);
    context->save_for_backward({probabilities, mask.bytes});
    context->saved_data["score_scale"] = score_scale;
    context->saved_data["scale"] = mask.scale;
    return dropped.defined() ? dropped : probabilities;
  }

  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor score_gradient = at::empty_like(saved[0]);
    SoftmaxDropout a = Shape(saved[0]);
    a.score_scale = context->saved_data["score_scale"].toDouble();
    a.scale = context->saved_data["scale"].toDouble();
    a.mask = Bytes(saved[1]);
    a.probabilities = Write(saved[0]);
    a.gradient = Read(gradient);
    a.score_gradient = Write(score_gradient);
    Launch("trainfare::softmax_dropout_gradient", Pass::kBackward, gradient, a);
    return {
        score_gradient, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }

 private:
  static SoftmaxDropout Shape(const at::Tensor& scores) {
    SoftmaxDropout a{};
    a.columns = scores.size(-1);
    a.rows = scores.numel() / a.columns;
    a.queries = scores.size(-2);
    a.rows_per_batch = scores.size(1) * a.queries;
    a.type = TypeOf(scores);
    return a;
  }
};

}  // namespace

at::Tensor FusedBiasActivation(const at::Tensor& input,
                               const at::Tensor& bias,
                               Activation activation) {
  return NarrowAs(
      bias,
      BiasActivationFunction::apply(WidenedOnCpu(input),
                                    bias.to(WideType(bias)),
                                    static_cast<int64_t>(activation)));
}

SumAndNorm FusedAddNorm(const at::Tensor& input,
                        const at::Tensor& bias,
                        const at::Tensor& residual,
                        const at::Tensor& weight,
                        const at::Tensor& shift,
                        double epsilon,
                        double dropout) {
  const variable_list results =
      AddNormFunction::apply(WidenedOnCpu(input),
                             bias.to(WideType(bias)),
                             residual.to(WideType(residual)),
                             weight.to(WideType(weight)),
                             shift.to(WideType(shift)),
                             epsilon,
                             dropout);
  return {NarrowAs(weight, results[0]), NarrowAs(weight, results[1])};
}

at::Tensor FusedSoftmaxDropout(const at::Tensor& scores,
                               const at::Tensor& padding,
                               bool causal,
                               double scale,
                               double dropout) {
  return SoftmaxDropoutFunction::apply(WidenedOnCpu(scores),
                                       padding.defined()
                                           ? std::optional<at::Tensor>(padding)
                                           : std::nullopt,
                                       causal,
                                       scale,
                                       dropout)
      .to(scores.scalar_type());
}

}  // namespace trainfare::trainer
