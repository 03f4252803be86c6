#include "trainer/network/fused_layers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "trainer/network/dropout.h"
#include "trainer/network/make_transformer.h"
#include "trainer/network/transformer.h"

namespace trainfare::trainer {
namespace {

// fp64 sums of thousands of elements agree to this; fp32 to its own epsilon.
constexpr double kDoubleTolerance = 1e-12;
constexpr double kFloatTolerance = 1e-5;

double ToleranceOf(at::ScalarType type) {
  return type == at::kDouble ? kDoubleTolerance : kFloatTolerance;
}

class Inputs {
 public:
  explicit Inputs(at::ScalarType type) : type_(type) {}
  at::Tensor Draw(at::IntArrayRef sizes) {
    all_.push_back(at::randn(sizes, random_, at::kDouble).to(type_));
    return all_.back().requires_grad_(true);
  }
  // Gradients of sum(output * direction), which are then cleared.
  std::vector<at::Tensor> GradientsOf(const at::Tensor& output,
                                      const at::Tensor& direction) {
    (output * direction).sum().backward();
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& input : all_) {
      gradients.push_back(input.grad());
      input.mutable_grad().reset();
    }
    return gradients;
  }

 private:
  at::ScalarType type_;
  at::Generator random_ = at::detail::createCPUGenerator(3);
  std::vector<at::Tensor> all_;
};

void CheckSame(const at::Tensor& got, const at::Tensor& want) {
  DOCTEST_REQUIRE(got.defined());
  DOCTEST_REQUIRE(want.defined());
  const double largest = want.abs().max().item<double>();
  const double off = (got - want).abs().max().item<double>();
  DOCTEST_CHECK((got.scalar_type() == want.scalar_type()));
  DOCTEST_CHECK(off <= ToleranceOf(want.scalar_type()) * (largest + 1));
}

void CheckSame(const std::vector<at::Tensor>& got,
               const std::vector<at::Tensor>& want) {
  DOCTEST_REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    DOCTEST_INFO(i);
    CheckSame(got[i], want[i]);
  }
}

// dropout by a mask that is known.
at::Tensor Masked(const at::Tensor& input, double dropout) {
  if (dropout <= 0) return input;
  return input * DropoutMask(input.sizes(), dropout).to(input.scalar_type()) /
         (1.0 - dropout);
}

// Rows beyond the number of partial sums and below it; widths with a tail.
constexpr int64_t kShapes[][2] = {{70, 37}, {5, 64}, {1, 19}};

DOCTEST_TEST_CASE("masks are those of Dropout") {
  const at::Tensor ones = at::ones({3, 5001});
  SeedDropout(8);
  const at::Tensor dropped = Dropout(ones, 0.3, true);
  SeedDropout(8);
  DOCTEST_CHECK(DropoutMask({3, 5001}, 0.3).to(at::kBool).equal(dropped.ne(0)));
  DOCTEST_CHECK(DropoutState().calls == 1);
}

DOCTEST_TEST_CASE("bias and activation in one pass") {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const auto& [rows, columns] : kShapes) {
      for (const Activation activation :
           {Activation::kGelu, Activation::kGeluTanh, Activation::kRelu}) {
        Inputs inputs(type);
        const at::Tensor input = inputs.Draw({2, rows, columns});
        const at::Tensor bias = inputs.Draw({columns});
        const at::Tensor direction = inputs.Draw({2, rows, columns}).detach();
        const at::Tensor sum = input + bias;
        const at::Tensor eager = activation == Activation::kGelu ? at::gelu(sum)
                                 : activation == Activation::kGeluTanh
                                     ? at::gelu(sum, "tanh")
                                     : at::relu(sum);
        const at::Tensor fused = FusedBiasActivation(input, bias, activation);
        CheckSame(fused, eager);
        std::vector<at::Tensor> want = inputs.GradientsOf(eager, direction);
        std::vector<at::Tensor> got = inputs.GradientsOf(fused, direction);
        want.resize(2);
        got.resize(2);
        CheckSame(got, want);
      }
    }
  }
}

DOCTEST_TEST_CASE("GELU in fp32 is right to its last digits, tails included") {
  const at::Tensor x = at::linspace(-15, 15, 30001, at::kDouble);
  const at::Tensor want = at::gelu(x);
  const at::Tensor got =
      FusedBiasActivation(
          x.to(at::kFloat).view({1, -1}), at::zeros({30001}), Activation::kGelu)
          .view(-1);
  const double off =
      (got.to(at::kDouble) - at::gelu(x.to(at::kFloat).to(at::kDouble)))
          .abs()
          .div(want.abs() + 1e-3)
          .max()
          .item<double>();
  DOCTEST_CHECK(off < 2e-6);
}

DOCTEST_TEST_CASE("bias, dropout, residual and LayerNorm in one pass") {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const auto& [rows, columns] : kShapes) {
      for (const double dropout : {0.0, 0.25}) {
        // The sum goes on as in a model with LayerNorm before the block, or
        // nobody reads it.
        for (const bool sum_used : {false, true}) {
          Inputs inputs(type);
          const at::Tensor input = inputs.Draw({rows, columns});
          const at::Tensor bias = inputs.Draw({columns});
          const at::Tensor residual = inputs.Draw({rows, columns});
          const at::Tensor weight = inputs.Draw({columns});
          const at::Tensor shift = inputs.Draw({columns});
          SeedDropout(4);
          const at::Tensor sum = Masked(input + bias, dropout) + residual;
          const at::Tensor normed =
              at::layer_norm(sum, {columns}, weight, shift, 1e-5);
          SeedDropout(4);
          const SumAndNorm fused =
              FusedAddNorm(input, bias, residual, weight, shift, 1e-5, dropout);
          CheckSame(fused.sum, sum);
          CheckSame(fused.normed, normed);
          const at::Tensor direction = at::sin(sum.detach() * 9);
          const auto result = [&](const at::Tensor& s, const at::Tensor& n) {
            return sum_used ? n + 0.5 * s : n;
          };
          const std::vector<at::Tensor> want =
              inputs.GradientsOf(result(sum, normed), direction);
          const std::vector<at::Tensor> got =
              inputs.GradientsOf(result(fused.sum, fused.normed), direction);
          CheckSame(got, want);
        }
      }
    }
  }
}

DOCTEST_TEST_CASE("softmax and dropout in one pass") {
  constexpr int64_t kBatch = 2;
  constexpr int64_t kHeads = 3;
  constexpr int64_t kQueries = 21;
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const double dropout : {0.0, 0.25}) {
      for (const int mode : {0, 1, 2}) {  // plain, padding, causal
        const int64_t keys = mode == 2 ? kQueries : 35;
        Inputs inputs(type);
        const at::Tensor scores = inputs.Draw({kBatch, kHeads, kQueries, keys});
        at::Tensor mask;
        if (mode == 1) {
          mask = at::zeros({kBatch, 1, 1, keys});
          mask.select(0, 1)
              .narrow(-1, 20, 15)
              .fill_(std::numeric_limits<float>::lowest());
        } else if (mode == 2) {
          mask = at::full({kQueries, kQueries},
                          std::numeric_limits<float>::lowest())
                     .triu_(1);
        }
        at::Tensor shifted = scores * 0.37;
        if (mask.defined()) shifted = shifted + mask;
        SeedDropout(4);
        const at::Tensor eager = Masked(at::softmax(shifted, -1), dropout);
        SeedDropout(4);
        const at::Tensor fused = FusedSoftmaxDropout(
            scores, mode == 1 ? mask : at::Tensor(), mode == 2, 0.37, dropout);
        CheckSame(fused, eager);
        const at::Tensor direction = at::sin(scores.detach() * 9);
        CheckSame(inputs.GradientsOf(fused, direction),
                  inputs.GradientsOf(eager, direction));
      }
    }
  }
}

model::Architecture Small(model::Family family) {
  model::Architecture a;
  a.name = std::string(model::ToText(family));
  a.family = family;
  a.layers = 2;
  a.hidden = 32;
  a.heads = 4;
  a.intermediate = 64;
  a.vocabulary = 100;
  a.positions = 32;
  if (family == model::Family::kEncoder) {
    a.token_types = 2;
    return a;
  }
  a.head = model::Head::kCausalLanguageModel;
  a.embedding_layer_norm = false;
  a.pooler = false;
  if (family == model::Family::kEncoderDecoder) {
    a.positions = 0;
    a.decoder_layers = 2;
  }
  return a;
}

// Both stacks draw their masks in one order, so dropout is compared too.
DOCTEST_TEST_CASE("a model of the fused stack is the eager one") {
  for (const model::Family family : {model::Family::kEncoder,
                                     model::Family::kDecoder,
                                     model::Family::kEncoderDecoder}) {
    const model::Architecture a = Small(family);
    DOCTEST_INFO(a.name);
    at::Generator random = at::detail::createCPUGenerator(11);
    Batch batch;
    batch.input_ids = at::randint(1, 100, {3, 17}, random, at::kLong);
    if (family == model::Family::kEncoder) {
      batch.labels = at::randint(0, 2, {3}, random, at::kLong);
    } else if (family == model::Family::kDecoder) {
      batch.labels = NextTokens(batch.input_ids, {});
    } else {
      batch.labels = at::randint(1, 100, {3, 9}, random, at::kLong);
      batch.target_ids = ShiftRight(batch.labels, 0, 0);
    }
    if (family != model::Family::kDecoder) {
      batch.attention_mask = at::ones({3, 17}, at::kBool);
      batch.attention_mask.select(0, 1).narrow(0, 12, 5).fill_(false);
    }
    TransformerOptions options = DefaultOptions(a);
    const auto eager = MakeTransformer(a, options, at::kCPU, 3);
    options.fusion = model::Fusion::kFused;
    const auto fused = MakeTransformer(a, options, at::kCPU, 3);
    SeedDropout(6);
    const Output want = eager->Forward(batch, true);
    const uint64_t calls = DropoutState().calls;
    SeedDropout(6);
    const Output got = fused->Forward(batch, true);
    DOCTEST_CHECK(DropoutState().calls == calls);
    CheckSame(got.logits, want.logits);
    want.loss.backward();
    got.loss.backward();
    for (size_t i = 0; i < eager->parameters().size(); ++i) {
      DOCTEST_INFO(eager->parameters()[i].name);
      CheckSame(fused->parameters()[i].value.grad(),
                eager->parameters()[i].value.grad());
    }
  }
}

// Narrow operands give what double gives of the same values, rounded once.
DOCTEST_TEST_CASE("narrow weights have narrow results, rounded once") {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const double epsilon = type == at::kBFloat16 ? 0x1p-8 : 0x1p-11;
    DOCTEST_INFO(std::string(at::toString(type)));
    const auto both = [&](const auto& make, size_t count) {
      std::vector<std::vector<at::Tensor>> results;
      for (const at::ScalarType as : {type, at::kDouble}) {
        at::manual_seed(6);
        std::vector<at::Tensor> inputs;
        for (size_t i = 0; i < count; ++i) {
          inputs.push_back(
              (i == 0 || i == 2 ? at::randn({2, 70, 37}) : at::randn({37}))
                  .to(type)
                  .to(as)
                  .requires_grad_(true));
        }
        const at::Tensor output = make(inputs);
        const at::Tensor direction = at::randn({2, 70, 37}).to(type).to(as);
        (output * direction).sum().backward();
        std::vector<at::Tensor> all = {output.detach()};
        for (const at::Tensor& input : inputs) all.push_back(input.grad());
        results.push_back(all);
      }
      for (size_t i = 0; i < results[0].size(); ++i) {
        DOCTEST_INFO(i);
        const at::Tensor& want = results[1][i];
        DOCTEST_CHECK((results[0][i].scalar_type() == type));
        const double off =
            (results[0][i].to(at::kDouble) - want).abs().max().item<double>();
        DOCTEST_CHECK(off <= epsilon * want.abs().max().item<double>());
      }
    };
    both(
        [](const std::vector<at::Tensor>& in) {
          return FusedBiasActivation(in[0], in[1], Activation::kGelu);
        },
        2);
    both(
        [](const std::vector<at::Tensor>& in) {
          return FusedAddNorm(in[0], in[1], in[2], in[3], in[4], 1e-5, 0.0)
              .normed;
        },
        5);
  }
}

}  // namespace
}  // namespace trainfare::trainer
