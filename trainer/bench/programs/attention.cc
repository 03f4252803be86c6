#include <array>
#include <optional>

#include "model/error.h"
#include "trainer/bench/programs/programs.h"

namespace trainfare::trainer::programs {
namespace {

enum class Operand { kPlain, kTransposed };

// C (b, m, n) = A (b, m, k) B (b, k, n), either stored the other way round.
Program BatchedProductOf(const Setting& s, Operand first, Operand second) {
  const auto& g = s.kernel().gemm;
  const auto make = [&](Operand order, int64_t rows, int64_t columns) {
    return order == Operand::kPlain
               ? s.Narrow({g.batch, rows, columns})
               : s.Narrow({g.batch, columns, rows}).transpose(1, 2);
  };
  return [a = make(first, g.m, g.k), b = make(second, g.k, g.n)](int64_t) {
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

}  // namespace

Program BatchedProduct(const Setting& s) {
  return BatchedProductOf(s, Operand::kPlain, Operand::kPlain);
}
Program BatchedProductByTransposed(const Setting& s) {
  return BatchedProductOf(s, Operand::kPlain, Operand::kTransposed);
}
Program BatchedProductOfTransposed(const Setting& s) {
  return BatchedProductOf(s, Operand::kTransposed, Operand::kPlain);
}

Program FlashAttention(const Setting& s) {
  return [qkv = Heads(s), dropout = AttentionDropout(s)](int64_t) {
    return at::scaled_dot_product_attention(
        qkv[0], qkv[1], qkv[2], std::nullopt, dropout);
  };
}

Program FlashAttentionGradient(const Setting& s) {
  const auto qkv = Heads(s);
  const double dropout = AttentionDropout(s);
  return Backward({qkv[0], qkv[1], qkv[2]}, [&] {
    return at::scaled_dot_product_attention(
        qkv[0], qkv[1], qkv[2], std::nullopt, dropout);
  });
}

// Scores (rows, length) and one mask (length) for them all.
Program AddMask(const Setting& s) {
  const int64_t length = s.workload.sequence_length;
  return [scores = s.Narrow({s.kernel().work_items / length, length}),
          mask = s.Wide({length})](int64_t) { return scores + mask; };
}

// Behind RMSNorm it gives fp32 of narrow scores (model/element_widths.h).
Program Softmax(const Setting& s) {
  const int64_t rows = s.kernel().work_items;
  const int64_t length = s.workload.sequence_length;
  const at::ScalarType takes = s.WidthOf(s.kernel().bytes_read, rows * length);
  const at::ScalarType gives =
      s.WidthOf(s.kernel().bytes_written, rows * length);
  return [scores = s.Random({rows, length}, takes), gives](int64_t) {
    return at::softmax(scores, -1, gives);
  };
}
Program SoftmaxGradient(const Setting& s) {
  const int64_t rows = s.kernel().work_items;
  const int64_t length = s.workload.sequence_length;
  // Output and gradient are alike.
  const at::ScalarType takes =
      s.WidthOf(s.kernel().bytes_read / 2, rows * length);
  const at::ScalarType gives =
      s.WidthOf(s.kernel().bytes_written, rows * length);
  const at::Tensor output = at::softmax(s.Random({rows, length}, takes), -1);
  return [output, gradient = s.Random({rows, length}, takes), gives](int64_t) {
    return at::_softmax_backward_data(gradient, output, -1, gives);
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

}  // namespace trainfare::trainer::programs
