#include "trainer/bench/kernel_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "model/error.h"
#include "model/stack_rules.h"
#include "trainer/network/dropout.h"
#include "trainer/network/gated_block.h"
#include "trainer/network/linear.h"
#include "trainer/network/make_transformer.h"
#include "trainer/network/rotary.h"
#include "trainer/network/transformer.h"
#include "trainer/optimizer/make_optimizer.h"
#include "trainer/optimizer/optimizer.h"

namespace trainfare::trainer {
namespace {

using model::Kernel;
using model::KernelKind;

constexpr model::KernelName kRmsWeightGradient = "rms norm weight gradient";

// What a program is made of.
struct Setting {
  const Operation& operation;
  const model::Workload& workload;
  at::Device device;
  at::ScalarType narrow;  // of operands of products
  at::ScalarType wide;    // of weights, and of what LayerNorm and softmax make

  const Kernel& kernel() const { return operation.kernels.front(); }
  const model::Architecture& architecture() const {
    return workload.architecture;
  }
  at::Tensor Random(at::IntArrayRef sizes, at::ScalarType type) const {
    return at::randn(sizes, at::TensorOptions(at::kFloat).device(device))
        .to(type);
  }
  at::Tensor Narrow(at::IntArrayRef sizes) const {
    return Random(sizes, narrow);
  }
  at::Tensor Wide(at::IntArrayRef sizes) const { return Random(sizes, wide); }
  // As wide as the bytes that the kernel reads of an element, or writes.
  at::ScalarType WidthOf(int64_t bytes, int64_t elements) const {
    return bytes < 4 * elements ? narrow : at::kFloat;
  }
};

at::ScalarType NarrowTypeOf(model::Precision precision) {
  switch (precision) {
    case model::Precision::kFp16:
      return at::kHalf;
    case model::Precision::kBf16:
      return at::kBFloat16;
    case model::Precision::kFp32:
    case model::Precision::kTf32:
      return at::kFloat;
    case model::Precision::kFp8:
      throw model::InputError(
          "precision: kernels are measured in fp32, tf32, bf16 and fp16, got "
          "fp8");
  }
  ENSURE(false, "a precision without a type");
}

// Several tensors alike that calls take in turn.
class Rotation {
 public:
  template <class Make>
  explicit Rotation(const Make& make) {
    tensors_.push_back(make());
    const size_t count = RotationCount(tensors_.front());
    while (tensors_.size() < count) tensors_.push_back(make());
  }
  const at::Tensor& operator[](int64_t call) const {
    return tensors_[static_cast<size_t>(call) % tensors_.size()];
  }

 private:
  std::vector<at::Tensor> tensors_;
};

// y = x W^T + b: x (m, k), W (n, k).
Program LinearForward(const Setting& s) {
  const auto& g = s.kernel().gemm;
  return [input = s.Narrow({g.m, g.k}),
          weights = Rotation([&] {
            return s.Narrow({g.n, g.k});
          }),
          bias = s.Narrow({g.n})](int64_t call) {
    return Linear(input, weights[call], bias);
  };
}

// The input gradient (m, k) of the same layer, with W (k, n).
Program InputGradient(const Setting& s) {
  const auto& g = s.kernel().gemm;
  return [gradient = s.Narrow({g.m, g.k}), weights = Rotation([&] {
                                             return s.Narrow({g.k, g.n});
                                           })](int64_t call) {
    return LinearInputGradient(gradient, weights[call]);
  };
}

// Input (k, m) and gradient (k, n); k counts the tokens.
Program WeightGradient(const Setting& s) {
  const auto& g = s.kernel().gemm;
  return [gradient = s.Narrow({g.k, g.n}), input = s.Narrow({g.k, g.m})](
             int64_t) { return LinearWeightGradient(gradient, input); };
}

enum class Operand { kPlain, kTransposed };

// C (b, m, n) = A (b, m, k) B (b, k, n), either stored the other way round.
template <Operand kA, Operand kB>
Program BatchedProduct(const Setting& s) {
  const auto& g = s.kernel().gemm;
  const auto make = [&](Operand order, int64_t rows, int64_t columns) {
    return order == Operand::kPlain
               ? s.Narrow({g.batch, rows, columns})
               : s.Narrow({g.batch, columns, rows}).transpose(1, 2);
  };
  return [a = make(kA, g.m, g.k), b = make(kB, g.k, g.n)](int64_t) {
    return at::bmm(a, b);
  };
}

// Query, key and value of one attention block, (B, heads, T, head size).
std::array<at::Tensor, 3> Heads(const Setting& s) {
  const auto& g = s.kernel().gemm;
  const int64_t heads = s.architecture().heads;
  const auto make = [&](int64_t length) {
    return s.Narrow({g.batch / heads, heads, length, g.k});
  };
  return {make(g.m), make(g.n), make(g.n)};
}

double AttentionDropout(const Setting& s) {
  const double dropout = s.architecture().dropout;
  if (s.device.is_cpu() && dropout > 0) {
    throw model::InputError(
        "attention: flash has no dropout on a CPU; take a model with dropout "
        "0");
  }
  return dropout;
}

Program FlashAttention(const Setting& s) {
  return [qkv = Heads(s), dropout = AttentionDropout(s)](int64_t) {
    return at::scaled_dot_product_attention(
        qkv[0], qkv[1], qkv[2], std::nullopt, dropout);
  };
}

// The backward pass alone of what `make` computed once from `inputs`.
Program BackwardOfAll(std::vector<at::Tensor> inputs,
                      const std::function<std::vector<at::Tensor>()>& make) {
  const at::AutoGradMode with_gradients(true);
  for (const at::Tensor& input : inputs) input.requires_grad_(true);
  std::vector<at::Tensor> outputs = make();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& output : outputs) {
    gradients.push_back(at::randn_like(output));
  }
  return [inputs = std::move(inputs),
          outputs = std::move(outputs),
          gradients = std::move(gradients)](int64_t) {
    return torch::autograd::grad(
        outputs, inputs, gradients, /*retain_graph=*/true)[0];
  };
}
Program Backward(std::vector<at::Tensor> inputs,
                 const std::function<at::Tensor()>& make) {
  return BackwardOfAll(std::move(inputs),
                       [&] { return std::vector<at::Tensor>{make()}; });
}

Program FlashAttentionGradient(const Setting& s) {
  const auto qkv = Heads(s);
  const double dropout = AttentionDropout(s);
  return Backward({qkv[0], qkv[1], qkv[2]}, [&] {
    return at::scaled_dot_product_attention(
        qkv[0], qkv[1], qkv[2], std::nullopt, dropout);
  });
}

Program Gelu(const Setting& s) {
  return [input = s.Narrow({s.kernel().work_items})](int64_t) {
    return at::gelu(input);
  };
}
Program GeluGradient(const Setting& s) {
  const int64_t elements = s.kernel().work_items;
  return [input = s.Narrow({elements}), gradient = s.Narrow({elements})](
             int64_t) { return at::gelu_backward(gradient, input); };
}

Program DropoutForward(const Setting& s) {
  const Kernel& k = s.kernel();
  return
      [input = s.Random({k.work_items}, s.WidthOf(k.bytes_read, k.work_items)),
       probability = s.architecture().dropout](int64_t) {
        return Dropout(input, probability, /*training=*/true);
      };
}
Program DropoutGradient(const Setting& s) {
  const Kernel& k = s.kernel();
  const at::Tensor input =
      s.Random({k.work_items}, s.WidthOf(k.bytes_written, k.work_items));
  return Backward({input}, [&] {
    return Dropout(input, s.architecture().dropout, /*training=*/true);
  });
}

// Rows of a norm: its kernels over all elements, and its reduction over rows.
struct NormSize {
  int64_t rows = 0;
  int64_t width = 0;
  bool weighted = false;  // its factor trains
};
NormSize NormSizeOf(const Operation& operation) {
  NormSize size;
  int64_t elements = 0;
  for (const Kernel& kernel : operation.kernels) {
    elements = std::max(elements, kernel.work_items);
    const bool weight = kernel.name == kRmsWeightGradient;
    size.weighted = size.weighted || weight;
    if (kernel.kind == KernelKind::kReduction && !weight) {
      size.rows = kernel.work_items;
    }
  }
  size.width = elements / size.rows;
  return size;
}
constexpr double kRmsEpsilon = 1e-6;

Program RmsNormForward(const Setting& s) {
  const NormSize size = NormSizeOf(s.operation);
  return [input = s.Wide({size.rows, size.width}),
          weight = s.Wide({size.width})](int64_t) {
    return RmsNorm(input, weight, kRmsEpsilon);
  };
}
Program RmsNormGradient(const Setting& s) {
  const NormSize size = NormSizeOf(s.operation);
  const at::Tensor input = s.Wide({size.rows, size.width});
  const at::Tensor weight = s.Wide({size.width});
  std::vector<at::Tensor> inputs = {input};
  if (size.weighted) inputs.push_back(weight);
  return Backward(inputs, [&] { return RmsNorm(input, weight, kRmsEpsilon); });
}

// Queries and keys of one block, (B, heads, T, head size).
struct RotatedHeads {
  at::Tensor queries;
  at::Tensor keys;
  RotaryTable table;
};
RotatedHeads HeadsToRotate(const Setting& s) {
  const model::Architecture& a = s.architecture();
  const int64_t size = a.query_head_size();
  const int64_t length = s.workload.sequence_length;
  const auto heads = [&](int64_t count) {
    return s.Wide({s.workload.batch, count, length, size});
  };
  return {heads(a.heads),
          heads(a.key_heads()),
          MakeRotaryTable(RotaryOptions(),
                          size,
                          length,
                          at::TensorOptions(s.wide).device(s.device))};
}
Program RotaryForward(const Setting& s) {
  return [heads = HeadsToRotate(s)](int64_t) {
    Rotate(heads.keys, heads.table);
    return Rotate(heads.queries, heads.table);
  };
}
Program RotaryGradient(const Setting& s) {
  const RotatedHeads heads = HeadsToRotate(s);
  return BackwardOfAll({heads.queries, heads.keys}, [&] {
    return std::vector<at::Tensor>{Rotate(heads.queries, heads.table),
                                   Rotate(heads.keys, heads.table)};
  });
}

// Keys or values of one block, as often side by side as queries want them.
at::Tensor HeadsToRepeat(const Setting& s, int64_t elements) {
  const int64_t keys = s.architecture().key_heads();
  const int64_t length = s.workload.sequence_length;
  return s.Wide({s.workload.batch,
                 keys,
                 length,
                 elements / (s.workload.batch * keys * length)});
}
int64_t QueriesOfKey(const Setting& s) {
  return s.architecture().heads / s.architecture().key_heads();
}
Program RepeatForward(const Setting& s) {
  const int64_t times = QueriesOfKey(s);
  return [heads = HeadsToRepeat(s, s.kernel().work_items / times),
          times](int64_t) { return RepeatHeads(heads, times); };
}
Program RepeatGradient(const Setting& s) {
  const int64_t times = QueriesOfKey(s);
  const at::Tensor heads = HeadsToRepeat(s, s.kernel().work_items);
  return [gradient =
              RepeatHeads(heads, times).unflatten(1, {heads.size(1), times})](
             int64_t) { return gradient.sum(2); };
}

Program Gate(const Setting& s) {
  return [input = s.Wide({s.kernel().work_items}),
          activation = s.architecture().activation](int64_t) {
    return GateOf(activation, input);
  };
}
Program GateGradient(const Setting& s) {
  const at::Tensor input = s.Wide({s.kernel().work_items});
  return Backward({input},
                  [&] { return GateOf(s.architecture().activation, input); });
}
Program GateProduct(const Setting& s) {
  const int64_t elements = s.kernel().work_items;
  return [a = s.Wide({elements}), b = s.Wide({elements})](int64_t) {
    return a * b;
  };
}

// The sum of two tensors; they may be of two widths.
Program Add(const Setting& s) {
  const Kernel& k = s.kernel();
  const at::ScalarType wide = s.WidthOf(k.bytes_written, k.work_items);
  const at::ScalarType other =
      k.bytes_read < 8 * k.work_items ? s.narrow : at::kFloat;
  return [a = s.Random({k.work_items}, wide),
          b = s.Random({k.work_items}, other)](int64_t) { return a + b; };
}
// Scores (rows, length) and one mask (length) for them all.
Program AddMask(const Setting& s) {
  const int64_t length = s.workload.sequence_length;
  return [scores = s.Narrow({s.kernel().work_items / length, length}),
          mask = s.Wide({length})](int64_t) { return scores + mask; };
}
Program Scale(const Setting& s) {
  return [input = s.Narrow({s.kernel().work_items})](int64_t) {
    return input * 0.125;
  };
}

// Rows and what one of them holds, of a reduction over the last extent.
int64_t ColumnsOf(const Kernel& kernel, int64_t flops) {
  return kernel.vector_flops / flops / kernel.work_items;
}

Program LayerNorm(const Setting& s) {
  const int64_t hidden = s.architecture().hidden;
  const auto options = at::TensorOptions(at::kFloat).device(s.device);
  return [input = s.Wide({s.kernel().work_items, hidden}),
          weight = at::ones({hidden}, options),
          bias = at::zeros({hidden}, options),
          hidden](int64_t) {
    return at::layer_norm(input, {hidden}, weight, bias, 1e-12);
  };
}
Program LayerNormGradient(const Setting& s) {
  const int64_t hidden = s.architecture().hidden;
  const int64_t rows = s.kernel().work_items;
  const auto options = at::TensorOptions(at::kFloat).device(s.device);
  const at::Tensor input = s.Wide({rows, hidden});
  const at::Tensor weight = at::ones({hidden}, options);
  const at::Tensor bias = at::zeros({hidden}, options);
  const auto forward =
      at::native_layer_norm(input, {hidden}, weight, bias, 1e-12);
  return [=,
          gradient = s.Wide({rows, hidden}),
          mean = std::get<1>(forward),
          scale = std::get<2>(forward)](int64_t) {
    return std::get<0>(at::native_layer_norm_backward(gradient,
                                                      input,
                                                      {hidden},
                                                      mean,
                                                      scale,
                                                      weight,
                                                      bias,
                                                      {true, true, true}));
  };
}

Program Softmax(const Setting& s) {
  const int64_t length = s.workload.sequence_length;
  return [scores = s.Wide({s.kernel().work_items, length})](int64_t) {
    return at::softmax(scores, -1);
  };
}
Program SoftmaxGradient(const Setting& s) {
  const int64_t rows = s.kernel().work_items;
  const int64_t length = s.workload.sequence_length;
  const at::Tensor output = at::softmax(s.Wide({rows, length}), -1);
  return [output, gradient = s.Wide({rows, length})](int64_t) {
    return at::_softmax_backward_data(
        gradient, output, -1, gradient.scalar_type());
  };
}

// Column sums of (rows, columns): one FLOP an element, a column an output.
Program BiasGradient(const Setting& s) {
  const int64_t columns = s.kernel().work_items;
  const int64_t rows = ColumnsOf(s.kernel(), 1);
  return [gradient = s.Narrow({rows, columns})](int64_t) {
    return gradient.sum(0);
  };
}

at::Tensor RandomRows(const Setting& s, int64_t rows, int64_t below) {
  return at::randint(below, {rows}, at::kLong).to(s.device);
}

Program Gather(const Setting& s) {
  const int64_t hidden = s.architecture().hidden;
  const int64_t tokens = s.kernel().work_items / hidden;
  const int64_t vocabulary = s.architecture().vocabulary;
  // Other tokens at every call, as at every step.
  std::vector<at::Tensor> ids;
  constexpr int kBatches = 16;
  for (int i = 0; i < kBatches; ++i) {
    ids.push_back(RandomRows(s, tokens, vocabulary));
  }
  return [ids, table = s.Wide({vocabulary, hidden})](int64_t call) {
    return at::embedding(table, ids[static_cast<size_t>(call) % ids.size()]);
  };
}
// Zeroing the table's gradient and adding rows to it are one operation.
Program TableGradient(const Setting& s) {
  const int64_t hidden = s.architecture().hidden;
  const int64_t rows = s.kernel().work_items / hidden;
  const int64_t tokens = s.operation.kernels.back().work_items / hidden;
  return [ids = RandomRows(s, tokens, rows),
          gradient = s.Wide({tokens, hidden}),
          rows](int64_t) {
    return at::embedding_dense_backward(gradient, ids, rows, -1, false);
  };
}

// Heads apart or together again: (B, T, heads, size) to (B, heads, T, size).
Program Transpose(const Setting& s) {
  const int64_t heads = s.architecture().heads;
  const int64_t size = s.architecture().hidden / heads;
  const int64_t batch = s.workload.batch;
  const int64_t length = s.kernel().work_items / (batch * heads * size);
  return [input = s.Narrow({batch, length, heads, size})](int64_t) {
    return input.transpose(1, 2).contiguous();
  };
}

// Three tensors alike side by side.
Program Join(const Setting& s) {
  const int64_t hidden = s.architecture().hidden;
  const int64_t rows = s.kernel().work_items / (3 * hidden);
  return [parts = std::vector<at::Tensor>{s.Narrow({rows, hidden}),
                                          s.Narrow({rows, hidden}),
                                          s.Narrow({rows, hidden})}](int64_t) {
    return at::cat(parts, -1);
  };
}

// Between fp32 and the narrow type, whichever the kernel reads.
Program Cast(const Setting& s) {
  const Kernel& k = s.kernel();
  const at::ScalarType from = s.WidthOf(k.bytes_read, k.work_items);
  const at::ScalarType to = from == at::kFloat ? s.narrow : at::kFloat;
  return [inputs = Rotation([&] { return s.Random({k.work_items}, from); }),
          to](int64_t call) { return inputs[call].to(to); };
}

Program OptimizerStep(const Setting& s, model::FusedAccess access) {
  TransformerOptions model = DefaultOptions(s.architecture());
  model.type = s.wide;
  const std::shared_ptr<Transformer> transformer =
      MakeTransformer(s.architecture(), model, s.device, /*seed=*/1);
  for (const Parameter& parameter : transformer->parameters()) {
    parameter.value.mutable_grad() = at::randn_like(parameter.value).mul_(1e-3);
  }
  OptimizerOptions options;
  options.kind = s.workload.optimizer;
  options.access = access;
  const std::shared_ptr<Optimizer> optimizer =
      MakeOptimizer(transformer->parameters(), options);
  return [transformer, optimizer](int64_t) {
    optimizer->Step();
    return at::Tensor();
  };
}

struct Row {
  model::KernelName kernel;     // first of an operation's kernels
  model::KernelName following;  // the kernel that the same operation also is
  std::string_view operation;
  Program (*make)(const Setting&);
  // How many kernels, of both names and one after another, make an operation;
  // the first is the first given. nullptr: one of each name.
  size_t (*count)(std::span<const Kernel>) = nullptr;
};

bool ReadsNarrow(const Kernel& kernel) {
  return kernel.bytes_read < 4 * kernel.work_items;
}
// A cast before, and one behind, of what is narrow (RmsNormForward() of
// model/internal/passes/norms.cc).
size_t RmsNormKernels(std::span<const Kernel> kernels) {
  return ReadsNarrow(kernels.front()) ? 8 : 6;
}
// Two more of a factor that trains (RmsNormBackward()).
size_t RmsNormGradientKernels(std::span<const Kernel> kernels) {
  const bool weighted =
      kernels.size() > 1 && kernels[1].name == kRmsWeightGradient;
  // The gradient of a product with a factor is read twice.
  const int64_t reads = weighted ? 2 : 1;
  const Kernel& first = kernels.front();
  const bool narrow = first.bytes_read < 4 * reads * first.work_items;
  return (weighted ? 14U : 12U) + (narrow ? 2U : 0U);
}
// Queries' and keys'.
size_t RotaryKernels(std::span<const Kernel>) { return 2 * 5; }
size_t RotaryGradientKernels(std::span<const Kernel>) { return 2 * 9; }

constexpr auto kPlain = Operand::kPlain;
constexpr auto kTransposed = Operand::kTransposed;

constexpr std::array kRows = {
    Row{"input gradient", "", "linear input gradient", &InputGradient},
    Row{"weight gradient", "", "linear weight gradient", &WeightGradient},
    Row{"attention scores",
        "",
        "attention scores",
        &BatchedProduct<kPlain, kTransposed>},
    Row{"attention context",
        "",
        "attention context",
        &BatchedProduct<kPlain, kPlain>},
    Row{"probability gradient",
        "",
        "attention probability gradient",
        &BatchedProduct<kPlain, kTransposed>},
    Row{"value gradient",
        "",
        "attention value gradient",
        &BatchedProduct<kTransposed, kPlain>},
    Row{"query gradient",
        "",
        "attention query gradient",
        &BatchedProduct<kPlain, kPlain>},
    Row{"key gradient",
        "",
        "attention key gradient",
        &BatchedProduct<kTransposed, kPlain>},
    Row{"flash attention", "", "flash attention", &FlashAttention},
    Row{"flash attention gradient",
        "",
        "flash attention gradient",
        &FlashAttentionGradient},
    Row{"gelu", "", "gelu", &Gelu},
    Row{"gelu gradient", "", "gelu gradient", &GeluGradient},
    Row{"dropout", "", "dropout", &DropoutForward},
    Row{"dropout gradient", "", "dropout gradient", &DropoutGradient},
    Row{"embedding add", "", "add", &Add},
    Row{"tied gradient add", "", "add", &Add},
    Row{"embedding scale", "", "scale", &Scale},
    Row{"embedding scale gradient", "", "scale", &Scale},
    Row{"residual add", "", "add", &Add},
    Row{"residual gradient add", "", "add", &Add},
    Row{"input gradient add", "", "add", &Add},
    Row{"mask scores", "", "add mask", &AddMask},
    Row{"scale scores", "", "scale", &Scale},
    Row{"scale gradient", "", "scale", &Scale},
    Row{"layer norm", "", "layer norm", &LayerNorm},
    Row{"layer norm gradient",
        "layer norm weight gradient",
        "layer norm gradient",
        &LayerNormGradient},
    Row{"rms norm", "", "rms norm", &RmsNormForward, &RmsNormKernels},
    Row{"rms norm gradient",
        kRmsWeightGradient,
        "rms norm gradient",
        &RmsNormGradient,
        &RmsNormGradientKernels},
    Row{"rotary positions",
        "",
        "rotary positions",
        &RotaryForward,
        &RotaryKernels},
    Row{"rotary gradient",
        "",
        "rotary gradient",
        &RotaryGradient,
        &RotaryGradientKernels},
    Row{"repeat heads", "", "repeat heads", &RepeatForward},
    Row{"repeated head gradients",
        "",
        "repeated head gradients",
        &RepeatGradient},
    Row{"gated activation", "", "gated activation", &Gate},
    Row{"gated activation gradient",
        "",
        "gated activation gradient",
        &GateGradient},
    Row{"activation product", "", "product", &GateProduct},
    Row{"activation product gradient", "", "product", &GateProduct},
    Row{"softmax", "", "softmax", &Softmax},
    Row{"softmax gradient", "", "softmax gradient", &SoftmaxGradient},
    Row{"bias gradient", "", "bias gradient", &BiasGradient},
    Row{"embedding gather", "", "embedding", &Gather},
    Row{"zero table gradient",
        "table gradient",
        "embedding gradient",
        &TableGradient},
    Row{"split heads", "", "transpose heads", &Transpose},
    Row{"merge heads", "", "transpose heads", &Transpose},
    Row{"split head gradients", "", "transpose heads", &Transpose},
    Row{"merge head gradients", "", "transpose heads", &Transpose},
    Row{"join projection gradients", "", "join", &Join},
    Row{"cast weights", "", "cast", &Cast},
    Row{"cast activation", "", "cast", &Cast},
    Row{"cast logits", "", "cast", &Cast},
    Row{"cast gradient", "", "cast", &Cast},
    Row{"cast weight gradient", "", "cast", &Cast},
};
constexpr Row kLinear{"", "", "linear", &LinearForward};

const Row* FindRow(const model::Workload& workload,
                   const Kernel& kernel,
                   model::Phase phase) {
  const auto row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& candidate) {
        return candidate.kernel == kernel.name;
      });
  // Under autocast casts of gradients stand among the kernels of one operation.
  const bool mixed =
      row != kRows.end() && row->count != nullptr && model::Autocasts(workload);
  if (mixed) return nullptr;
  if (row != kRows.end()) return &*row;
  // Every other product with a weight is a linear layer.
  return kernel.kind == KernelKind::kGemm && phase == model::Phase::kForward
             ? &kLinear
             : nullptr;
}

// Operations are alike when the device cannot tell them apart.
std::string Likeness(const Operation& operation) {
  std::string key =
      fmt::format("{}/{}", operation.name, static_cast<int>(operation.phase));
  for (const Kernel& k : operation.kernels) {
    key += fmt::format("/{},{},{},{},{},{},{}",
                       k.gemm.batch,
                       k.gemm.m,
                       k.gemm.n,
                       k.gemm.k,
                       k.work_items,
                       k.bytes_read,
                       k.bytes_written);
  }
  return key;
}

// The kernels of the operation that begins with the first of `kernels`; those
// of one launch are timed as one launch.
std::vector<Kernel> KernelsOf(const Row& row, std::span<const Kernel> kernels) {
  if (row.count == nullptr) {
    std::vector<Kernel> own = {kernels.front()};
    own.back().launches = 1;
    if (row.following != model::KernelName()) {
      ENSURE(kernels.size() > 1 && kernels[1].name == row.following,
             "the kernels of one operation follow each other");
      own.push_back(kernels[1]);
    }
    return own;
  }
  const size_t count = row.count(kernels);
  ENSURE(count <= kernels.size(), "an operation ends with its segment");
  for (const Kernel& kernel : kernels.first(count)) {
    ENSURE(kernel.name == row.kernel || kernel.name == row.following,
           "the kernels of one operation follow each other");
  }
  return {kernels.begin(), kernels.begin() + static_cast<ptrdiff_t>(count)};
}

class OperationList {
 public:
  void Add(Operation operation) {
    const auto [place, is_new] =
        index_.emplace(Likeness(operation), operations_.size());
    if (is_new) {
      operations_.push_back(std::move(operation));
    } else {
      operations_[place->second].per_step += operation.per_step;
    }
  }
  std::vector<Operation> Take() { return std::move(operations_); }

 private:
  std::vector<Operation> operations_;
  std::map<std::string, size_t> index_;
};

Operation OptimizerOperation(const model::Workload& workload,
                             model::FusedAccess access) {
  Operation operation;
  operation.name = access == model::FusedAccess::kOneTensor
                       ? "optimizer, a launch a tensor"
                       : "optimizer";
  operation.phase = model::Phase::kOptimizer;
  operation.kind = KernelKind::kOptimizer;
  model::AppendOptimizerKernels(workload, operation.kernels, access);
  operation.per_step = 1;
  return operation;
}

}  // namespace

size_t RotationCount(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.nbytes() == 0) return 1;
  constexpr size_t kMost = 128;
  return std::clamp(
      static_cast<size_t>(kRotatedBytes) / tensor.nbytes(), size_t{1}, kMost);
}

std::vector<Operation> OperationsOf(const model::Workload& workload,
                                    std::vector<std::string>* left_out,
                                    model::FusedAccess access) {
  const model::KernelList list = model::ExpandKernels(workload);
  OperationList operations;
  for (const model::Segment& segment : list.segments) {
    if (segment.phase == model::Phase::kOptimizer) {
      operations.Add(OptimizerOperation(workload, access));
      continue;
    }
    const std::span<const Kernel> all = list.Of(segment);
    for (size_t i = 0; i < all.size();) {
      const Kernel& kernel = all[i];
      const Row* row = FindRow(workload, kernel, segment.phase);
      if (row == nullptr) {
        const std::string name(kernel.name.text());
        if (std::find(left_out->begin(), left_out->end(), name) ==
            left_out->end()) {
          left_out->push_back(name);
        }
        ++i;
        continue;
      }
      Operation operation;
      operation.name = row->operation;
      operation.phase = segment.phase;
      operation.per_step = segment.repeat * workload.accumulation *
                           (row->count == nullptr ? kernel.launches : 1);
      operation.kernels = KernelsOf(*row, all.subspan(i));
      i += operation.kernels.size();
      operation.kind = operation.kernels.back().kind;
      operations.Add(std::move(operation));
    }
  }
  return operations.Take();
}

Program ProgramOf(const Operation& operation,
                  const model::Workload& workload,
                  at::Device device,
                  model::FusedAccess access) {
  const at::NoGradGuard no_grad;
  const Setting setting{operation,
                        workload,
                        device,
                        NarrowTypeOf(workload.precision),
                        ParameterType(workload)};
  if (operation.phase == model::Phase::kOptimizer) {
    return OptimizerStep(setting, access);
  }
  const Row* row =
      FindRow(workload, operation.kernels.front(), operation.phase);
  ENSURE(row != nullptr, "an operation that has a program");
  return row->make(setting);
}

}  // namespace trainfare::trainer
