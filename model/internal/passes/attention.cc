#include "model/internal/passes/attention.h"

#include <array>
#include <vector>

#include "model/internal/passes/adapters.h"
#include "model/internal/passes/attention_scores.h"
#include "model/internal/passes/casts.h"
#include "model/internal/passes/matrices.h"
#include "model/internal/passes/norms.h"
#include "model/internal/passes/positions.h"
#include "model/internal/passes/products.h"

namespace trainfare::model::internal {
namespace {

// Whether one product makes queries, keys and values.
bool Joint(const Pass& pass, Attends attends) {
  return attends == Attends::kSelf && JoinsProjections(pass.workload);
}

// A sigmoid of each gate times what attention gave (Qiu et al. 2025). By
// operations the gates that come with the queries are laid out apart from them
// before.
void AttentionGate(Pass& pass, int64_t elements) {
  if (!pass.architecture.gated_attention) return;
  constexpr KernelName kName = "attention gate";
  const int64_t width = pass.element;
  if (!pass.EagerOutside()) {
    pass.Elementwise(kName, elements, 2 * width, width, 3, 1);
    return;
  }
  if (!pass.architecture.separate_attention_gate) {
    pass.Copy(kName, elements, width, width);
  }
  pass.Elementwise(kName, elements, width, width, 2, 1);
  pass.Elementwise(kName, elements, 2 * width, width, 1);
}

// By operations both products, the sigmoid's, and queries' gradients beside
// those of their gates where these came together.
void AttentionGateBackward(Pass& pass, int64_t elements) {
  if (!pass.architecture.gated_attention) return;
  constexpr KernelName kName = "attention gate gradient";
  const int64_t width = pass.element;
  if (!pass.EagerOutside()) {
    pass.Elementwise(kName, elements, 3 * width, 2 * width, 7, 1);
    return;
  }
  for (int product = 0; product < 2; ++product) {
    pass.Elementwise(kName, elements, 2 * width, width, 1);
  }
  pass.Elementwise(kName, elements, 2 * width, width, 3);
  if (pass.architecture.separate_attention_gate) return;
  pass.Copy(kName, 2 * elements, width, width);
}

// The product that makes gates of their own.
void GateProjection(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  if (!a.separate_attention_gate) return;
  const int64_t width = a.attention_gate_width();
  CastOperand(pass, tokens * a.hidden);
  BlockGemm(pass, "attention gate projection", tokens, width, a.hidden);
  AdapterForward(pass, Matrix::kAttentionGate, tokens, width, a.hidden);
}
void GateProjectionBackward(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  if (!a.separate_attention_gate) return;
  LinearBackward(pass,
                 Matrix::kAttentionGate,
                 tokens,
                 a.attention_gate_width(),
                 a.hidden,
                 /*bias=*/false,
                 Input::kNarrowed);
  if (!pass.EagerOutside()) return;
  pass.Elementwise(
      "input gradient add", tokens * a.hidden, 2 * pass.wide, pass.wide, 1);
}

// DeepSeek-AI 2024, section 2.1. Ranks that divide tokens between products make
// latents of their own, norm these and gather them before the products up, whose
// columns they divide (Megatron-Core's multi_latent_attention.py).
void LatentProjections(Pass& pass,
                       const AttentionShape& shape,
                       int64_t tokens) {
  const Architecture& a = pass.architecture;
  const int64_t h = a.hidden;
  const auto product =
      [&](KernelName name, Matrix matrix, int64_t rows, int64_t n, int64_t k) {
        BlockGemm(pass, name, rows, n, k);
        AdapterForward(pass, matrix, rows, n, k);
      };
  const int64_t own = pass.OfTokens(tokens);
  using enum Matrix;
  if (a.latent_query > 0) {
    product("query down projection", kQueryDown, own, a.latent_query, h);
    NormForward(pass, own, a.latent_query, pass.element);
    product("query up projection",
            kQueryUp,
            tokens,
            a.query_width(),
            a.latent_query);
  } else {
    product("query projection", kQuery, tokens, a.query_width(), h);
  }
  product("latent projection", kKeyValueDown, own, a.key_value_down_width(), h);
  NormForward(pass, own, a.latent_key_value, pass.element);
  product("key and value up projection",
          kKeyValueUp,
          tokens,
          a.key_value_up_width(),
          a.latent_key_value);
  RotaryForward(pass, shape, tokens, tokens);
  // Both parts of keys, and of queries, side by side.
  pass.Copy("gather latent keys",
            2 * tokens * a.query_width(),
            pass.element,
            pass.element);
}

// The backward pass of LatentProjections(), last first.
void LatentBackward(Pass& pass, const AttentionShape& shape, int64_t tokens) {
  const Architecture& a = pass.architecture;
  const int64_t h = a.hidden;
  const int64_t own = pass.OfTokens(tokens);
  pass.Copy("gather latent keys",
            2 * tokens * a.query_width(),
            pass.element,
            pass.element);
  RotaryBackward(pass, shape, tokens, tokens);
  const auto up = [&](Matrix matrix, int64_t n, int64_t k) {
    LinearBackward(pass, matrix, tokens, n, k, false);
    NormBackward(pass, own, k, pass.element);
  };
  const auto down = [&](Matrix matrix, int64_t rows, int64_t n) {
    LinearBackward(pass, matrix, rows, n, h, false, Input::kNarrowed);
  };
  using enum Matrix;
  up(kKeyValueUp, a.key_value_up_width(), a.latent_key_value);
  down(kKeyValueDown, own, a.key_value_down_width());
  if (a.latent_query > 0) {
    up(kQueryUp, a.query_width(), a.latent_query);
    down(kQueryDown, own, a.latent_query);
  } else {
    down(kQuery, tokens, a.query_width());
  }
  pass.Elementwise("input gradient add", own * h, 2 * pass.wide, pass.wide, 1);
}

// The elements of queries, keys and values that are clipped at once. A compiler
// does it as it reads them.
std::vector<int64_t> ClippedTogether(const Pass& pass,
                                     Attends attends,
                                     int64_t query_tokens,
                                     int64_t key_tokens) {
  const Architecture& a = pass.architecture;
  if (!a.clipped_projections || pass.Compiled()) return {};
  const int64_t queries = query_tokens * a.query_width();
  const int64_t keys = key_tokens * a.key_width();
  const int64_t values = key_tokens * a.value_width();
  if (Joint(pass, attends)) return {queries + keys + values};
  return {queries, keys, values};
}

// Keys and values by products of their own, where the block makes them.
void KeysAndValues(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  const int64_t h = a.hidden;
  if (a.borrows_keys()) return;
  if (pass.HandFused()) {
    // They are made of the encoder's output, queries are not.
    BlockGemm(pass,
              "key and value projection",
              tokens,
              a.key_width() + a.value_projection_width(),
              h);
    return;
  }
  CastOperand(pass, tokens * h);
  BlockGemm(pass, "key projection", tokens, a.key_width(), h);
  AdapterForward(pass, Matrix::kKey, tokens, a.key_width(), h);
  if (a.shares_keys()) return;
  CastOperand(pass, tokens * h);
  BlockGemm(pass, "value projection", tokens, a.value_width(), h);
  AdapterForward(pass, Matrix::kValue, tokens, a.value_width(), h);
}

// Queries, keys and values, with their biases and adapters.
void ProjectionsForward(Pass& pass,
                        Attends attends,
                        const AttentionShape& shape,
                        int64_t query_tokens,
                        int64_t key_tokens) {
  const Architecture& a = pass.architecture;
  const int64_t h = a.hidden;
  // A module of one matrix has its adapter behind it.
  const bool apart = !a.latent() && !Joint(pass, attends) && !pass.HandFused();
  const auto adapter = [&](Matrix matrix, int64_t tokens, int64_t n) {
    AdapterForward(pass, matrix, tokens, n, h);
  };
  if (a.latent()) {
    LatentProjections(pass, shape, query_tokens);
  } else if (Joint(pass, attends)) {
    BlockGemm(pass,
              "query, key and value projection",
              query_tokens,
              a.projections_width(),
              h);
  } else {
    const int64_t wide = a.query_projection_width();
    BlockGemm(pass, "query projection", query_tokens, wide, h);
    if (apart) adapter(Matrix::kQuery, query_tokens, wide);
    KeysAndValues(pass, key_tokens);
  }
  const int64_t queries = query_tokens * a.query_projection_width();
  const int64_t keys = key_tokens * a.key_projection_width();
  const int64_t values = a.borrows_keys() ? 0 : key_tokens * a.value_width();
  if (pass.HandFused() && CopiesHeads(pass)) {
    pass.Elementwise("bias and head split",
                     queries + keys + values,
                     pass.element,
                     pass.element,
                     1);
  }
  if (!a.latent() && !apart) {
    adapter(Matrix::kQuery, query_tokens, a.query_projection_width());
    adapter(Matrix::kKey, key_tokens, a.key_width());
    adapter(Matrix::kValue, key_tokens, a.value_width());
  }
  if (a.attention_bias) {
    LaidOutBias(pass, queries);
    if (a.key_projection_width() > 0) LaidOutBias(pass, keys);
    if (a.value_projection_width() > 0) LaidOutBias(pass, values);
  }
  for (const int64_t elements :
       ClippedTogether(pass, attends, query_tokens, key_tokens)) {
    pass.Elementwise(
        "clip projections", elements, pass.element, pass.element, 2);
  }
}

// Gradients of keys and values of another block are added to those that blocks
// above gave.
void BorrowedKeysBackward(Pass& pass, int64_t key_tokens) {
  const Architecture& a = pass.architecture;
  if (!a.borrows_keys() || pass.Compiled()) return;
  for (const int64_t width : {a.key_width(), a.value_width()}) {
    pass.Elementwise("input gradient add",
                     key_tokens * width,
                     2 * pass.element,
                     pass.element,
                     1);
  }
}

// Gradients of the projections, and through them of what they read.
void ProjectionsBackward(Pass& pass,
                         Attends attends,
                         const AttentionShape& shape,
                         int64_t query_tokens,
                         int64_t key_tokens) {
  const Architecture& a = pass.architecture;
  const int64_t h = a.hidden;
  BorrowedKeysBackward(pass, key_tokens);
  RotaryBackward(pass, shape, query_tokens, key_tokens);
  HeadNormsBackward(pass, Rotates(pass, shape), query_tokens, key_tokens);
  if (a.shares_keys() && !a.borrows_keys() && !pass.Compiled()) {
    pass.Elementwise("input gradient add",
                     key_tokens * a.key_width(),
                     2 * pass.element,
                     pass.element,
                     1);
  }
  // What was beyond has no gradient, as what the products gave tells.
  for (const int64_t elements :
       ClippedTogether(pass, attends, query_tokens, key_tokens)) {
    pass.Elementwise(
        "clip gradient", elements, 2 * pass.element, pass.element, 2);
  }
  const bool bias = a.attention_bias;
  using enum Matrix;
  if (Joint(pass, attends)) {
    if (pass.EagerOutside()) {
      pass.Copy("join projection gradients",
                query_tokens * a.query_projection_width() +
                    key_tokens * (a.key_width() + a.value_projection_width()),
                pass.element,
                pass.element);
    }
    MergedLinearBackward(
        pass, std::array{kQuery, kKey, kValue}, query_tokens, bias);
  } else if (pass.HandFused()) {
    LinearBackward(
        pass, kQuery, query_tokens, a.query_projection_width(), h, bias);
    if (a.borrows_keys()) return;
    MergedLinearBackward(pass, std::array{kKey, kValue}, key_tokens, bias);
  } else {
    LinearBackward(pass,
                   kQuery,
                   query_tokens,
                   a.query_projection_width(),
                   h,
                   bias,
                   Input::kNarrowed);
    if (a.borrows_keys()) return;
    LinearBackward(
        pass, kKey, key_tokens, a.key_width(), h, bias, Input::kNarrowed);
    if (!a.shares_keys()) {
      LinearBackward(
          pass, kValue, key_tokens, a.value_width(), h, bias, Input::kNarrowed);
    }
    if (pass.EagerOutside()) {
      pass.Elementwise(
          "input gradient add", query_tokens * h, 2 * pass.wide, pass.wide, 1);
      if (a.shares_keys()) return;
      pass.Elementwise(
          "input gradient add", key_tokens * h, 2 * pass.wide, pass.wide, 1);
    }
  }
}

}  // namespace

void AttentionForward(Pass& pass,
                      Attends attends,
                      const AttentionShape& shape,
                      int64_t query_tokens,
                      int64_t key_tokens) {
  const Architecture& a = pass.architecture;
  const int64_t h = a.hidden;
  const int64_t queries = query_tokens * a.query_width();
  const int64_t context = query_tokens * a.context_width();
  CastOperand(pass, query_tokens * h);
  ProjectionsForward(pass, attends, shape, query_tokens, key_tokens);
  GateProjection(pass, query_tokens);
  HeadNormsForward(pass, Rotates(pass, shape), query_tokens, key_tokens);
  if (!a.latent()) RotaryForward(pass, shape, query_tokens, key_tokens);
  if (pass.rules.scales_queries && a.scaled_scores) {
    pass.Elementwise("scale queries", queries, pass.element, pass.element, 1);
  }
  AttentionCoreForward(pass, shape, queries, key_tokens * a.key_width());
  if (CopiesHeads(pass)) {
    pass.Copy("merge heads", context, pass.element, pass.element);
  }
  AttentionGate(pass, context);
  BlockGemm(
      pass, "attention output projection", query_tokens, h, a.context_width());
  AdapterForward(pass, Matrix::kOutput, query_tokens, h, a.context_width());
  if (a.output_bias) LaidOutBias(pass, query_tokens * h);
  ResidualAndNormForward(pass, query_tokens);
}

void AttentionBackward(Pass& pass,
                       Attends attends,
                       const AttentionShape& shape,
                       int64_t query_tokens,
                       int64_t key_tokens) {
  const Architecture& a = pass.architecture;
  ResidualAndNormBackward(pass, query_tokens);
  LinearBackward(pass,
                 Matrix::kOutput,
                 query_tokens,
                 a.hidden,
                 a.context_width(),
                 a.output_bias && !pass.FusedPasses());
  const auto copy = [&](KernelName name, int64_t elements) {
    if (CopiesHeads(pass)) {
      pass.Copy(name, elements, pass.element, pass.element);
    }
  };
  AttentionGateBackward(pass, query_tokens * a.context_width());
  copy("split head gradients", query_tokens * a.context_width());
  AttentionCoreBackward(
      pass, shape, query_tokens * a.query_width(), key_tokens * a.key_width());
  copy("merge head gradients", query_tokens * a.query_width());
  if (!a.borrows_keys()) {
    copy("merge head gradients", key_tokens * a.key_width());
    copy("merge head gradients", key_tokens * a.value_width());
  }
  if (a.latent()) {
    LatentBackward(pass, shape, query_tokens);
  } else {
    ProjectionsBackward(pass, attends, shape, query_tokens, key_tokens);
  }
  GateProjectionBackward(pass, query_tokens);
  ResidualGradientAdd(pass, query_tokens);
}

}  // namespace trainfare::model::internal
