// The kernels that the model core says a stack launches, against the operators
// that the trainer's stacks do launch.

#include <ATen/record_function.h>
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "model/kernels.h"
#include "trainer/network/dropout.h"
#include "trainer/network/make_transformer.h"
#include "trainer/network/transformer.h"

namespace trainfare::trainer {
namespace {

std::map<std::string, int64_t>& Calls() {
  static std::map<std::string, int64_t> calls;
  return calls;
}

std::unique_ptr<at::ObserverContext> Count(const at::RecordFunction& call) {
  ++Calls()[call.name()];
  return nullptr;
}

// Operators of what runs while it exists, by name.
class OperatorCounter {
 public:
  OperatorCounter()
      : callback_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(&Count).scopes(
                {at::RecordScope::FUNCTION}))) {
    Calls().clear();
  }
  ~OperatorCounter() { at::removeCallback(callback_); }
  OperatorCounter(const OperatorCounter&) = delete;
  OperatorCounter& operator=(const OperatorCounter&) = delete;

  static int64_t Of(std::initializer_list<const char*> names) {
    int64_t sum = 0;
    for (const char* name : names) sum += Calls()[name];
    return sum;
  }

 private:
  at::CallbackHandle callback_;
};

model::Workload SmallWorkload(model::Family family, model::Fusion fusion) {
  model::Workload w;
  model::Architecture& a = w.architecture;
  w.batch = 12;
  w.sequence_length = 17;
  a.name = "small";
  a.family = family;
  a.layers = 3;
  a.hidden = 32;
  a.heads = 4;
  a.intermediate = 64;
  a.vocabulary = 100;
  if (family == model::Family::kEncoder) {
    a.positions = 32;
    a.token_types = 2;
  } else {
    if (family == model::Family::kDecoder) {
      a.positions = 32;
    } else {
      a.decoder_layers = 2;
      w.target_length = 9;
    }
    a.head = model::Head::kCausalLanguageModel;
    a.embedding_layer_norm = false;
    a.pooler = false;
  }
  w.stack.fusion = fusion;
  return w;
}

Batch BatchOf(const model::Workload& w) {
  Batch batch;
  batch.input_ids = at::ones({w.batch, w.sequence_length}, at::kLong);
  if (w.architecture.family == model::Family::kEncoder) {
    batch.labels = at::zeros({w.batch}, at::kLong);
  } else if (w.architecture.family == model::Family::kDecoder) {
    batch.labels = NextTokens(batch.input_ids, {});
  } else {
    batch.labels = at::ones({w.batch, w.target_length}, at::kLong);
    batch.target_ids = ShiftRight(batch.labels, 0, 0);
  }
  return batch;
}

class Expected {
 public:
  Expected(const model::KernelList& list, model::Phase phase)
      : list_(list), phase_(phase) {}

  template <class Is>
  int64_t Of(const Is& is) const {
    int64_t launches = 0;
    for (const model::Segment& segment : list_.segments) {
      if (segment.phase != phase_) continue;
      for (int64_t i = segment.begin; i < segment.end; ++i) {
        const model::Kernel& k = list_.kernels[static_cast<size_t>(i)];
        if (is(k)) launches += segment.repeat * k.launches;
      }
    }
    return launches;
  }
  int64_t Named(model::KernelName name) const {
    return Of([&](const model::Kernel& k) { return k.name == name; });
  }
  int64_t OfKind(model::KernelKind kind) const {
    return Of([&](const model::Kernel& k) { return k.kind == kind; });
  }

 private:
  const model::KernelList& list_;
  model::Phase phase_;
};

void CheckProducts(const Expected& expected) {
  DOCTEST_CHECK(OperatorCounter::Of(
                    {"mkldnn::_linear_pointwise", "aten::addmm", "aten::mm"}) ==
                expected.OfKind(model::KernelKind::kGemm));
  DOCTEST_CHECK(OperatorCounter::Of({"aten::bmm"}) ==
                expected.OfKind(model::KernelKind::kBatchedGemm));
}

// How often autograd runs the backward pass of one of its operators.
int64_t BackwardsOf(const char* node) {
  return OperatorCounter::Of(
      {(std::string("autograd::engine::evaluate_function: ") + node).c_str()});
}

// Sums and products of tensors: forward by what autograd goes back through, as
// linear layers add within themselves.
void CheckElementwise(const model::Workload& w,
                      const Expected& forward,
                      const Expected& backward) {
  int64_t added =
      forward.Named("embedding add") + forward.Named("residual add");
  // Without padding there is a mask where attention is causal only.
  if (w.stack.fusion == model::Fusion::kEager) {
    if (w.architecture.family == model::Family::kDecoder) {
      added += w.architecture.layers;
    }
    added += w.architecture.decoder_layers;
  }
  DOCTEST_CHECK(BackwardsOf("AddBackward0") == added);
  DOCTEST_CHECK(BackwardsOf("MulBackward1") ==
                backward.Named("scale gradient") +
                    backward.Named("embedding scale gradient"));
  int64_t gradients_added = backward.Named("residual gradient add") +
                            backward.Named("input gradient add") +
                            backward.Named("tied gradient add");
  if (w.architecture.family == model::Family::kEncoderDecoder) {
    // The first gradient of the encoder's output has nothing to be added to.
    --gradients_added;
  }
  if (w.architecture.family == model::Family::kDecoder &&
      w.stack.fusion == model::Fusion::kFused) {
    ++gradients_added;  // of the embeddings, before the first block
  }
  DOCTEST_CHECK(OperatorCounter::Of({"aten::add", "aten::add_"}) ==
                gradients_added);
  DOCTEST_CHECK(OperatorCounter::Of({"aten::cat"}) ==
                backward.Named("join projection gradients"));
  DOCTEST_CHECK(OperatorCounter::Of({"aten::embedding_dense_backward"}) ==
                (w.target_length > 0 ? 2 : 1));
}

DOCTEST_TEST_CASE("the model's kernels are those that the stacks launch") {
  for (const model::Family family : {model::Family::kEncoder,
                                     model::Family::kDecoder,
                                     model::Family::kEncoderDecoder}) {
    for (const model::Fusion fusion :
         {model::Fusion::kEager, model::Fusion::kFused}) {
      const model::Workload w = SmallWorkload(family, fusion);
      const std::string what = std::string(model::ToText(family)) + " " +
                               std::string(model::ToText(fusion));
      DOCTEST_INFO(what);
      const model::KernelList list = model::ExpandKernels(w);
      TransformerOptions options = DefaultOptions(w.architecture);
      options.fusion = fusion;
      options.activation = Activation::kGelu;
      const auto transformer =
          MakeTransformer(w.architecture, options, at::kCPU, 1);
      const Batch batch = BatchOf(w);
      SeedDropout(1);
      at::Tensor loss;
      {
        const OperatorCounter counter;
        loss = transformer->Forward(batch, true).loss;
        const Expected forward(list, model::Phase::kForward);
        CheckProducts(forward);
        DOCTEST_CHECK(counter.Of({"aten::native_layer_norm"}) ==
                      forward.Named("layer norm"));
        DOCTEST_CHECK(counter.Of({"aten::_softmax"}) ==
                      forward.Named("softmax"));
        DOCTEST_CHECK(counter.Of({"aten::gelu"}) == forward.Named("gelu"));
        DOCTEST_CHECK(counter.Of({"trainfare::bias_activation"}) ==
                      forward.Named("bias and gelu"));
        DOCTEST_CHECK(counter.Of({"trainfare::add_norm"}) ==
                      forward.Named("bias, dropout, residual and layer norm"));
        DOCTEST_CHECK(counter.Of({"trainfare::softmax_dropout"}) ==
                      forward.Named("mask, softmax and dropout"));
        DOCTEST_CHECK(static_cast<int64_t>(DropoutState().calls) ==
                      forward.Of([](const model::Kernel& k) {
                        return k.random_draws > 0;
                      }));
      }
      const OperatorCounter counter;
      loss.backward();
      const Expected backward(list, model::Phase::kBackward);
      CheckProducts(backward);
      CheckElementwise(w, Expected(list, model::Phase::kForward), backward);
      DOCTEST_CHECK(counter.Of({"aten::native_layer_norm_backward"}) ==
                    backward.Named("layer norm gradient"));
      DOCTEST_CHECK(counter.Of({"aten::gelu_backward"}) ==
                    backward.Named("gelu gradient"));
      DOCTEST_CHECK(counter.Of({"trainfare::bias_activation_gradient"}) ==
                    backward.Named("gelu and bias gradient"));
      DOCTEST_CHECK(
          counter.Of({"trainfare::add_norm_gradient"}) ==
          backward.Named("layer norm, residual and dropout gradient"));
      DOCTEST_CHECK(counter.Of({"trainfare::softmax_dropout_gradient"}) ==
                    backward.Named("dropout and softmax gradient"));
    }
  }
}

}  // namespace
}  // namespace trainfare::trainer
