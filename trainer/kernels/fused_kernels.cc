#include "trainer/kernels/fused_kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "trainer/kernels/vector_versions.h"
#include "trainer/runtime/parallel.h"

#define TRAINFARE_VERSIONS TRAINFARE_VECTOR_VERSIONS("avx512f", "arch=haswell")

namespace trainfare::trainer {
namespace {

constexpr int64_t kLanes = 16;

// ---- functions of one element ----

// e^x. Cody & Waite's reduction to |r| <= ln 2 / 2, Taylor's series to r^7
// (6e-9 of the value), and the power of two put into the exponent.
TRAINFARE_INLINE float Exp(float x) {
  const bool vanishes = x < -87.0F;  // of what padding hides
  x = vanishes ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds
  const float shifted = x * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const auto bits = std::bit_cast<uint32_t>(shifted) << 23;
  const auto value = std::bit_cast<float>(std::bit_cast<uint32_t>(p) + bits);
  return vanishes ? 0.0F : value;
}
TRAINFARE_INLINE double Exp(double x) { return std::exp(x); }

// Phi(x) of the normal distribution and, with it at no cost, e^(-x^2 / 2).
template <class S>
struct Normal {
  S below;
  S bell;
};

// Phi(-a) = e^(-a^2 / 2) R(a) with R(a) = t P(t), t = 1 / (1 + 0.3 a): the form
// of Abramowitz & Stegun 7.1.26, its coefficients fitted for the least largest
// relative error in 0 <= a <= 13.5, which is 1.3e-7.
TRAINFARE_INLINE Normal<float> NormalOf(float x) {
  const float a = x < 0.0F ? -x : x;
  const float t = 1.0F / (1.0F + 0.3F * a);
  float p = 0.035932302F;
  p = p * t - 0.15827818F;
  p = p * t + 0.20821005F;
  p = p * t - 0.05539673F;
  p = p * t + 0.12947059F;
  p = p * t + 0.099637114F;
  p = p * t + 0.12079842F;
  p = p * t + 0.11962639F;
  const float bell = Exp(-0.5F * a * a);
  const float tail = bell * p * t;
  return {x < 0.0F ? tail : 1.0F - tail, bell};
}
TRAINFARE_INLINE Normal<double> NormalOf(double x) {
  return {0.5 * std::erfc(-x * M_SQRT1_2), std::exp(-0.5 * x * x)};
}

// Hendrycks & Gimpel 2016: (1 + tanh u) / 2 is 1 / (1 + e^(-2u)).
template <class S>
TRAINFARE_INLINE S TanhGate(S x) {
  constexpr S kSlope = static_cast<S>(2.0 * 0.79788456080286536);  // sqrt(2/pi)
  return S(1) /
         (S(1) + Exp(-kSlope * (x + static_cast<S>(0.044715) * x * x * x)));
}

template <Activation activation, class S>
TRAINFARE_INLINE S Activated(S x) {
  if constexpr (activation == Activation::kGelu) return x * NormalOf(x).below;
  if constexpr (activation == Activation::kGeluTanh) return x * TanhGate(x);
  if constexpr (activation == Activation::kRelu) return x > S(0) ? x : S(0);
}

template <Activation activation, class S>
TRAINFARE_INLINE S Slope(S x) {
  if constexpr (activation == Activation::kGelu) {
    const Normal<S> normal = NormalOf(x);
    constexpr S kDensity = static_cast<S>(0.39894228040143268);  // 1/sqrt(2 pi)
    return normal.below + x * kDensity * normal.bell;
  }
  if constexpr (activation == Activation::kGeluTanh) {
    constexpr S kSlope = static_cast<S>(2.0 * 0.79788456080286536);
    const S gate = TanhGate(x);
    return gate + x * gate * (S(1) - gate) * kSlope *
                      (S(1) + static_cast<S>(3.0 * 0.044715) * x * x);
  }
  if constexpr (activation == Activation::kRelu) return x > S(0) ? S(1) : S(0);
}

// ---- sums and maxima in lanes, which need no reordering by the compiler ----

template <class S, class Value>
TRAINFARE_INLINE S SumOf(int64_t count, const Value& value) {
  std::array<S, kLanes> lanes{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[static_cast<size_t>(lane)] += value(i + lane);
    }
  }
  S sum = 0;
  for (; i < count; ++i) sum += value(i);
  for (const S lane : lanes) sum += lane;
  return sum;
}

template <class S, class Value>
TRAINFARE_INLINE S LargestOf(int64_t count, const Value& value) {
  std::array<S, kLanes> lanes;
  lanes.fill(std::numeric_limits<S>::lowest());
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      S& best = lanes[static_cast<size_t>(lane)];
      const S next = value(i + lane);
      best = next > best ? next : best;
    }
  }
  S largest = std::numeric_limits<S>::lowest();
  for (; i < count; ++i) largest = std::max(largest, value(i));
  for (const S lane : lanes) largest = std::max(largest, lane);
  return largest;
}

// ---- rows [first, last) ----

template <Activation activation, class S>
TRAINFARE_INLINE void ActivateRows(const BiasActivation& a,
                                   int64_t first,
                                   int64_t last) {
  const S* __restrict bias = static_cast<const S*>(a.bias);
  for (int64_t row = first; row < last; ++row) {
    const S* __restrict in = static_cast<const S*>(a.input) + row * a.columns;
    S* __restrict out = static_cast<S*>(a.output) + row * a.columns;
    for (int64_t i = 0; i < a.columns; ++i) {
      out[i] = Activated<activation>(in[i] + bias[i]);
    }
  }
}

template <Activation activation, class S>
TRAINFARE_INLINE void ActivateGradientRows(const BiasActivation& a,
                                           S* __restrict bias_gradient,
                                           int64_t first,
                                           int64_t last) {
  const S* __restrict bias = static_cast<const S*>(a.bias);
  std::fill_n(bias_gradient, a.columns, S(0));
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * a.columns;
    const S* __restrict in = static_cast<const S*>(a.input) + at;
    const S* __restrict gradient = static_cast<const S*>(a.gradient) + at;
    S* __restrict out = static_cast<S*>(a.input_gradient) + at;
    for (int64_t i = 0; i < a.columns; ++i) {
      const S g = gradient[i] * Slope<activation>(in[i] + bias[i]);
      out[i] = g;
      bias_gradient[i] += g;
    }
  }
}

template <class S>
TRAINFARE_INLINE void AddNormRows(const AddNorm& a,
                                  int64_t first,
                                  int64_t last) {
  const int64_t n = a.columns;
  const S* __restrict bias = static_cast<const S*>(a.bias);
  const S* __restrict weight = static_cast<const S*>(a.weight);
  const S* __restrict shift = static_cast<const S*>(a.shift);
  const auto scale = static_cast<S>(a.scale);
  for (int64_t row = first; row < last; ++row) {
    const S* __restrict in = static_cast<const S*>(a.input) + row * n;
    const S* __restrict residual = static_cast<const S*>(a.residual) + row * n;
    S* __restrict sum = static_cast<S*>(a.sum) + row * n;
    S* __restrict normed = static_cast<S*>(a.normed) + row * n;
    if (a.mask != nullptr) {
      const uint8_t* __restrict mask = a.mask + row * n;
      for (int64_t i = 0; i < n; ++i) {
        const S kept = mask[i] != 0 ? (in[i] + bias[i]) * scale : S(0);
        sum[i] = kept + residual[i];
      }
    } else {
      for (int64_t i = 0; i < n; ++i) sum[i] = in[i] + bias[i] + residual[i];
    }
    const S mean =
        SumOf<S>(n, [&](int64_t i) { return sum[i]; }) / static_cast<S>(n);
    const S variance =
        SumOf<S>(n,
                 [&](int64_t i) { return (sum[i] - mean) * (sum[i] - mean); }) /
        static_cast<S>(n);
    const S deviation = S(1) / std::sqrt(variance + static_cast<S>(a.epsilon));
    for (int64_t i = 0; i < n; ++i) {
      normed[i] = (sum[i] - mean) * deviation * weight[i] + shift[i];
    }
    static_cast<S*>(a.mean)[row] = mean;
    static_cast<S*>(a.deviation)[row] = deviation;
  }
}

// With x the normalised sum and h = gradient * weight:
//   gradient of the sum = (h - mean(h) - x mean(h x)) / deviation + its own
template <class S>
TRAINFARE_INLINE void AddNormGradientRows(const AddNorm& a,
                                          int64_t chunk,
                                          int64_t first,
                                          int64_t last) {
  const int64_t n = a.columns;
  const S* __restrict weight = static_cast<const S*>(a.weight);
  S* __restrict bias_sum = static_cast<S*>(a.partials) + chunk * n;
  S* __restrict weight_sum = bias_sum + kFusedChunks * n;
  S* __restrict shift_sum = weight_sum + kFusedChunks * n;
  std::fill_n(bias_sum, n, S(0));
  std::fill_n(weight_sum, n, S(0));
  std::fill_n(shift_sum, n, S(0));
  const auto scale = static_cast<S>(a.scale);
  for (int64_t row = first; row < last; ++row) {
    const S* __restrict sum = static_cast<const S*>(a.sum) + row * n;
    const S* __restrict gradient =
        static_cast<const S*>(a.normed_gradient) + row * n;
    S* __restrict out = static_cast<S*>(a.residual_gradient) + row * n;
    const S mean = static_cast<const S*>(a.mean)[row];
    const S deviation = static_cast<const S*>(a.deviation)[row];
    const S mean_h =
        SumOf<S>(n, [&](int64_t i) { return gradient[i] * weight[i]; }) /
        static_cast<S>(n);
    const S mean_hx =
        SumOf<S>(n,
                 [&](int64_t i) {
                   return gradient[i] * weight[i] * (sum[i] - mean);
                 }) *
        deviation / static_cast<S>(n);
    for (int64_t i = 0; i < n; ++i) {
      const S x = (sum[i] - mean) * deviation;
      out[i] = (gradient[i] * weight[i] - mean_h - x * mean_hx) * deviation;
      weight_sum[i] += gradient[i] * x;
      shift_sum[i] += gradient[i];
    }
    if (a.sum_gradient != nullptr) {
      const S* __restrict own = static_cast<const S*>(a.sum_gradient) + row * n;
      for (int64_t i = 0; i < n; ++i) out[i] += own[i];
    }
    if (a.mask == nullptr) {
      for (int64_t i = 0; i < n; ++i) bias_sum[i] += out[i];
      continue;
    }
    const uint8_t* __restrict mask = a.mask + row * n;
    S* __restrict in = static_cast<S*>(a.input_gradient) + row * n;
    for (int64_t i = 0; i < n; ++i) {
      const S g = mask[i] != 0 ? out[i] * scale : S(0);
      in[i] = g;
      bias_sum[i] += g;
    }
  }
}

template <class S>
TRAINFARE_INLINE void SoftmaxRows(const SoftmaxDropout& a,
                                  int64_t first,
                                  int64_t last) {
  const int64_t n = a.columns;
  const auto score_scale = static_cast<S>(a.score_scale);
  const auto scale = static_cast<S>(a.scale);
  for (int64_t row = first; row < last; ++row) {
    const S* __restrict scores = static_cast<const S*>(a.scores) + row * n;
    S* __restrict out = static_cast<S*>(a.probabilities) + row * n;
    const int64_t seen = a.causal ? std::min(n, row % a.queries + 1) : n;
    if (a.padding != nullptr) {
      const S* __restrict padding =
          static_cast<const S*>(a.padding) + row / a.rows_per_batch * n;
      for (int64_t i = 0; i < seen; ++i) {
        out[i] = scores[i] * score_scale + padding[i];
      }
    } else {
      for (int64_t i = 0; i < seen; ++i) out[i] = scores[i] * score_scale;
    }
    const S largest = LargestOf<S>(seen, [&](int64_t i) { return out[i]; });
    for (int64_t i = 0; i < seen; ++i) out[i] = Exp(out[i] - largest);
    const S inverse = S(1) / SumOf<S>(seen, [&](int64_t i) { return out[i]; });
    for (int64_t i = 0; i < seen; ++i) out[i] *= inverse;
    std::fill_n(out + seen, n - seen, S(0));
    if (a.mask == nullptr) continue;
    const uint8_t* __restrict mask = a.mask + row * n;
    S* __restrict dropped = static_cast<S*>(a.dropped) + row * n;
    for (int64_t i = 0; i < n; ++i) {
      dropped[i] = mask[i] != 0 ? out[i] * scale : S(0);
    }
  }
}

// gradient of a score = p (h - sum(h p)) with h the gradient behind dropout.
template <class S>
TRAINFARE_INLINE void SoftmaxGradientRows(const SoftmaxDropout& a,
                                          int64_t first,
                                          int64_t last) {
  const int64_t n = a.columns;
  const auto score_scale = static_cast<S>(a.score_scale);
  const auto scale = static_cast<S>(a.scale);
  for (int64_t row = first; row < last; ++row) {
    const S* __restrict p = static_cast<const S*>(a.probabilities) + row * n;
    const S* __restrict gradient = static_cast<const S*>(a.gradient) + row * n;
    S* __restrict out = static_cast<S*>(a.score_gradient) + row * n;
    if (a.mask != nullptr) {
      const uint8_t* __restrict mask = a.mask + row * n;
      for (int64_t i = 0; i < n; ++i) {
        out[i] = mask[i] != 0 ? gradient[i] * scale : S(0);
      }
    } else {
      for (int64_t i = 0; i < n; ++i) out[i] = gradient[i];
    }
    const S mean = SumOf<S>(n, [&](int64_t i) { return out[i] * p[i]; });
    for (int64_t i = 0; i < n; ++i) {
      out[i] = p[i] * (out[i] - mean) * score_scale;
    }
  }
}

// ---- the same, for each processor and type ----

#define TRAINFARE_ACTIVATION_LOOPS(suffix, kind)                           \
  TRAINFARE_VERSIONS void Activate##suffix(                                \
      const BiasActivation& a, int64_t first, int64_t last) {              \
    ActivateRows<kind, float>(a, first, last);                             \
  }                                                                        \
  TRAINFARE_VERSIONS void ActivateGradient##suffix(                        \
      const BiasActivation& a, float* sums, int64_t first, int64_t last) { \
    ActivateGradientRows<kind, float>(a, sums, first, last);               \
  }
TRAINFARE_ACTIVATION_LOOPS(Gelu, Activation::kGelu)
TRAINFARE_ACTIVATION_LOOPS(GeluTanh, Activation::kGeluTanh)
TRAINFARE_ACTIVATION_LOOPS(Relu, Activation::kRelu)
#undef TRAINFARE_ACTIVATION_LOOPS

TRAINFARE_VERSIONS
void AddNormFloat(const AddNorm& a, int64_t first, int64_t last) {
  AddNormRows<float>(a, first, last);
}
TRAINFARE_VERSIONS
void AddNormGradientFloat(const AddNorm& a,
                          int64_t chunk,
                          int64_t first,
                          int64_t last) {
  AddNormGradientRows<float>(a, chunk, first, last);
}
TRAINFARE_VERSIONS
void SoftmaxFloat(const SoftmaxDropout& a, int64_t first, int64_t last) {
  SoftmaxRows<float>(a, first, last);
}
TRAINFARE_VERSIONS
void SoftmaxGradientFloat(const SoftmaxDropout& a,
                          int64_t first,
                          int64_t last) {
  SoftmaxGradientRows<float>(a, first, last);
}

// Shares of the rows, as many for every number of threads.
template <class Body>
void ForChunks(int64_t rows, const Body& body) {
  ParallelRanges(kFusedChunks, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      body(chunk,
           rows * chunk / kFusedChunks,
           rows * (chunk + 1) / kFusedChunks);
    }
  });
}

bool IsDouble(ElementType type) { return type == ElementType::kDouble; }

}  // namespace

void FusedForward(const BiasActivation& a) {
  ParallelRanges(a.rows, [&](int64_t first, int64_t last) {
    const bool wide = IsDouble(a.type);
    switch (a.activation) {
      case Activation::kGelu:
        wide ? ActivateRows<Activation::kGelu, double>(a, first, last)
             : ActivateGelu(a, first, last);
        break;
      case Activation::kGeluTanh:
        wide ? ActivateRows<Activation::kGeluTanh, double>(a, first, last)
             : ActivateGeluTanh(a, first, last);
        break;
      case Activation::kRelu:
        wide ? ActivateRows<Activation::kRelu, double>(a, first, last)
             : ActivateRelu(a, first, last);
        break;
    }
  });
}

void FusedBackward(const BiasActivation& a) {
  ForChunks(a.rows, [&](int64_t chunk, int64_t first, int64_t last) {
    const bool wide = IsDouble(a.type);
    float* sums = static_cast<float*>(a.bias_partials) + chunk * a.columns;
    double* wide_sums =
        static_cast<double*>(a.bias_partials) + chunk * a.columns;
    switch (a.activation) {
      case Activation::kGelu:
        wide ? ActivateGradientRows<Activation::kGelu, double>(
                   a, wide_sums, first, last)
             : ActivateGradientGelu(a, sums, first, last);
        break;
      case Activation::kGeluTanh:
        wide ? ActivateGradientRows<Activation::kGeluTanh, double>(
                   a, wide_sums, first, last)
             : ActivateGradientGeluTanh(a, sums, first, last);
        break;
      case Activation::kRelu:
        wide ? ActivateGradientRows<Activation::kRelu, double>(
                   a, wide_sums, first, last)
             : ActivateGradientRelu(a, sums, first, last);
        break;
    }
  });
}

void FusedForward(const AddNorm& a) {
  ParallelRanges(a.rows, [&](int64_t first, int64_t last) {
    IsDouble(a.type) ? AddNormRows<double>(a, first, last)
                     : AddNormFloat(a, first, last);
  });
}

void FusedBackward(const AddNorm& a) {
  ForChunks(a.rows, [&](int64_t chunk, int64_t first, int64_t last) {
    IsDouble(a.type) ? AddNormGradientRows<double>(a, chunk, first, last)
                     : AddNormGradientFloat(a, chunk, first, last);
  });
}

void FusedForward(const SoftmaxDropout& a) {
  ParallelRanges(a.rows, [&](int64_t first, int64_t last) {
    IsDouble(a.type) ? SoftmaxRows<double>(a, first, last)
                     : SoftmaxFloat(a, first, last);
  });
}

void FusedBackward(const SoftmaxDropout& a) {
  ParallelRanges(a.rows, [&](int64_t first, int64_t last) {
    IsDouble(a.type) ? SoftmaxGradientRows<double>(a, first, last)
                     : SoftmaxGradientFloat(a, first, last);
  });
}

}  // namespace trainfare::trainer
