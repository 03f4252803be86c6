#include "model/error.h"
#include "trainer/bench/programs/programs.h"
#include "trainer/network/encoder.h"

namespace trainfare::trainer::programs {
namespace {

// What a loss chooses from.
int64_t ClassesOf(const Setting& s) {
  const model::Architecture& a = s.architecture();
  switch (a.head) {
    case model::Head::kSequenceClassification:
      return a.labels;
    case model::Head::kQuestionAnswering:
      return s.workload.sequence_length;
    default:
      return a.vocabulary;
  }
}

// The parts of LibTorch's cross entropy, which is of fp32.
struct LossParts {
  at::Tensor log_probabilities;  // (rows, classes)
  at::Tensor labels;             // (rows)
};
LossParts LossPartsOf(const Setting& s, int64_t rows) {
  const int64_t classes = ClassesOf(s);
  return {at::log_softmax(s.Random({rows, classes}, at::kFloat), -1),
          at::randint(classes, {rows}, at::kLong).to(s.device)};
}

at::Tensor ActivatedAs(EncoderLayout layout, const at::Tensor& input) {
  return layout == EncoderLayout::kRoberta ? at::tanh(input) : at::relu(input);
}

}  // namespace

Program LogSoftmax(const Setting& s) {
  return [logits = s.Random({s.kernel().work_items, ClassesOf(s)}, at::kFloat)](
             int64_t) { return at::log_softmax(logits, -1); };
}
Program LogSoftmaxGradient(const Setting& s) {
  const int64_t rows = s.kernel().work_items;
  return [parts = LossPartsOf(s, rows),
          gradient = s.Random({rows, ClassesOf(s)}, at::kFloat)](int64_t) {
    return at::_log_softmax_backward_data(
        gradient, parts.log_probabilities, -1, at::kFloat);
  };
}

// One FLOP a row.
Program NegativeLogLikelihood(const Setting& s) {
  return [parts = LossPartsOf(s, s.kernel().vector_flops)](int64_t) {
    return at::nll_loss(parts.log_probabilities,
                        parts.labels,
                        {},
                        at::Reduction::Mean,
                        kNoLabel);
  };
}
// Zeros for all classes, and what the row's own has.
Program NegativeLogLikelihoodGradient(const Setting& s) {
  const int64_t rows = s.operation.kernels.back().work_items;
  const auto scalar = at::TensorOptions(at::kFloat).device(s.device);
  return [parts = LossPartsOf(s, rows),
          gradient = at::ones({}, scalar),
          weight = at::full({}, static_cast<double>(rows), scalar)](int64_t) {
    return at::nll_loss_backward(gradient,
                                 parts.log_probabilities,
                                 parts.labels,
                                 {},
                                 at::Reduction::Mean,
                                 kNoLabel,
                                 weight);
  };
}

// That of each sequence, by itself as a product takes it.
Program FirstTokens(const Setting& s) {
  const int64_t hidden = s.architecture().hidden;
  return [states = s.Wide({s.kernel().work_items / hidden,
                           s.workload.sequence_length,
                           hidden}),
          narrow = s.narrow](int64_t) {
    return states.select(1, 0).to(narrow).contiguous();
  };
}
Program FirstTokensGradient(const Setting& s) {
  const int64_t hidden = s.architecture().hidden;
  const int64_t length = s.workload.sequence_length;
  const int64_t batch = s.kernel().work_items / (hidden * length);
  return [gradient = s.Wide({batch, hidden}), batch, length, hidden](int64_t) {
    return at::select_backward(gradient, {batch, length, hidden}, 1, 0);
  };
}

Program Tanh(const Setting& s) {
  return [input = s.Narrow({s.kernel().work_items})](int64_t) {
    return at::tanh(input);
  };
}
Program TanhGradient(const Setting& s) {
  const int64_t elements = s.kernel().work_items;
  return [output = s.Narrow({elements}), gradient = s.Narrow({elements})](
             int64_t) { return at::tanh_backward(gradient, output); };
}

// RoBERTa's is tanh, DistilBERT's ReLU.
Program HeadActivation(const Setting& s) {
  return [input = s.Narrow({s.kernel().work_items}),
          layout = LayoutOf(s.architecture())](int64_t) {
    return ActivatedAs(layout, input);
  };
}
Program HeadActivationGradient(const Setting& s) {
  const at::Tensor input = s.Narrow({s.kernel().work_items});
  return Backward(
      {input}, [&] { return ActivatedAs(LayoutOf(s.architecture()), input); });
}

}  // namespace trainfare::trainer::programs
