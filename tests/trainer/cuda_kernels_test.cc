// The source of the CUDA kernels, run on a CPU (cuda_on_cpu.h) and held
// against what fused_kernels.h does there in fp64, and the optimizers'
// updates against theirs. In each order of threads the same, bit for bit.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/trainer/cuda_on_cpu.h"
// After it, since it says what a kernel is.
#include "trainer/kernels/adamw.cu"
#include "trainer/kernels/adan.cu"
#include "trainer/kernels/fused_layers.cu"

namespace trainfare::trainer {
namespace {

using cuda_on_cpu::Order;
using Doubles = std::vector<double>;

constexpr size_t kGuard = 64;
constexpr uint8_t kGuardByte = 0xa5;

// `size` elements and, before and behind them, what nobody may touch.
template <class T>
class Array {
 public:
  // `shift` elements behind an address that vectors may start at.
  explicit Array(int64_t size, size_t shift = 0)
      : size_(static_cast<size_t>(size)),
        shift_(shift),
        bytes_((size_ + shift) * sizeof(T) + 2 * kGuard, kGuardByte) {
    std::fill_n(data(), size_, T(0.0F));
  }
  explicit Array(const Doubles& values, size_t shift = 0)
      : Array(static_cast<int64_t>(values.size()), shift) {
    for (size_t i = 0; i < size_; ++i) {
      data()[i] = T(static_cast<float>(values[i]));
    }
  }
  T* data() { return reinterpret_cast<T*>(bytes_.data() + kGuard) + shift_; }
  int64_t size() const { return static_cast<int64_t>(size_); }
  Doubles Values() {
    Doubles values(size_);
    for (size_t i = 0; i < size_; ++i) {
      values[i] = static_cast<double>(static_cast<float>(data()[i]));
    }
    return values;
  }
  bool Unharmed() {
    const auto clean = [](const uint8_t* begin, const uint8_t* end) {
      return std::all_of(begin, end, [](uint8_t b) { return b == kGuardByte; });
    };
    const auto* first = reinterpret_cast<const uint8_t*>(data());
    const auto* last = reinterpret_cast<const uint8_t*>(data() + size_);
    return clean(bytes_.data(), first) &&
           clean(last, bytes_.data() + bytes_.size());
  }

 private:
  size_t size_;
  size_t shift_;
  std::vector<uint8_t> bytes_;
};

class Random {
 public:
  Doubles Draw(int64_t size) {
    Doubles values(static_cast<size_t>(size));
    for (double& value : values) value = normal_(bits_);
    return values;
  }

 private:
  std::mt19937 bits_{5};
  std::normal_distribution<double> normal_;
};

template <class T>
constexpr ElementType kTypeOf =
    std::is_same_v<T, float>    ? ElementType::kFloat
    : std::is_same_v<T, __half> ? ElementType::kHalf
                                : ElementType::kBfloat16;
// How far a value that is kept as T may be off: some roundings of it, in fp32
// of a long sum.
template <class T>
constexpr double kTolerance = std::is_same_v<T, float>    ? 2e-5
                              : std::is_same_v<T, __half> ? 2e-3
                                                          : 1.6e-2;

void CheckNear(const char* what,
               const Doubles& got,
               const Doubles& want,
               double tolerance) {
  DOCTEST_INFO(std::string(what));
  DOCTEST_REQUIRE(got.size() == want.size());
  double largest = 0;
  double off = 0;
  bool finite = true;
  for (size_t i = 0; i < got.size(); ++i) {
    finite = finite && std::isfinite(got[i]);
    largest = std::max(largest, std::abs(want[i]));
    off = std::max(off, std::abs(got[i] - want[i]));
  }
  DOCTEST_CHECK(finite);
  DOCTEST_CHECK(off <= tolerance * (largest + 1));
}

// run() in each order of threads; it returns all that it computed.
template <class Run>
std::vector<Doubles> InEveryOrder(const Run& run) {
  std::vector<Doubles> first;
  for (const Order order : {Order::kUp, Order::kDown, Order::kInterleaved}) {
    cuda_on_cpu::order = order;
    std::vector<Doubles> results = run();
    if (first.empty()) {
      first = std::move(results);
    } else {
      DOCTEST_CHECK((results == first));
    }
  }
  cuda_on_cpu::order = Order::kUp;
  return first;
}

Doubles Rounded(const Doubles& values, auto type) {
  return Array<decltype(type)>(values).Values();
}

// Sums of the partial sums of each of `planes` planes.
Doubles ColumnSums(const Doubles& partials, int64_t columns, int64_t planes) {
  Doubles sums(static_cast<size_t>(planes * columns));
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t chunk = 0; chunk < kFusedChunks; ++chunk) {
      for (int64_t c = 0; c < columns; ++c) {
        sums[static_cast<size_t>(plane * columns + c)] +=
            partials[static_cast<size_t>(
                (plane * kFusedChunks + chunk) * columns + c)];
      }
    }
  }
  return sums;
}

// For each type of element, body(T()).
template <class Body>
void ForEachType(const Body& body) {
  body(float());
  body(__half());
  body(__nv_bfloat16());
}

struct Shape {
  int64_t rows;
  int64_t columns;
};
// More rows than partial sums and fewer, more columns than threads and fewer.
constexpr Shape kShapes[] = {{34, 37}, {5, 300}, {1, 19}};

DOCTEST_TEST_CASE("CUDA: bias and activation") {
  Random random;
  ForEachType([&](auto type) {
    using T = decltype(type);
    for (const auto& [rows, columns] : kShapes) {
      for (const Activation activation :
           {Activation::kGelu, Activation::kGeluTanh, Activation::kRelu}) {
        DOCTEST_INFO(sizeof(T));
        DOCTEST_INFO(columns);
        const int64_t count = rows * columns;
        Doubles input = Rounded(random.Draw(count), T());
        Doubles bias = Rounded(random.Draw(columns), float());
        Doubles gradient = Rounded(random.Draw(count), T());

        const std::vector<Doubles> got = InEveryOrder([&] {
          Array<T> x(input);
          Array<float> b(bias);
          Array<T> g(gradient);
          Array<T> y(count);
          Array<T> dx(count);
          Array<float> db(kFusedChunks * columns);
          BiasActivation a{rows,
                           columns,
                           activation,
                           kTypeOf<T>,
                           x.data(),
                           b.data(),
                           y.data(),
                           g.data(),
                           dx.data(),
                           db.data()};
          DOCTEST_REQUIRE(LaunchForward(a, nullptr) == cudaSuccess);
          DOCTEST_REQUIRE(LaunchBackward(a, nullptr) == cudaSuccess);
          DOCTEST_CHECK((y.Unharmed() && dx.Unharmed() && db.Unharmed()));
          return std::vector<Doubles>{y.Values(), dx.Values(), db.Values()};
        });

        Doubles y(input.size());
        Doubles dx(input.size());
        Doubles db(static_cast<size_t>(kFusedChunks * columns));
        const BiasActivation a{rows,
                               columns,
                               activation,
                               ElementType::kDouble,
                               input.data(),
                               bias.data(),
                               y.data(),
                               gradient.data(),
                               dx.data(),
                               db.data()};
        FusedForward(a);
        FusedBackward(a);
        CheckNear("output", got[0], y, kTolerance<T>);
        CheckNear("input", got[1], dx, kTolerance<T>);
        CheckNear("bias",
                  ColumnSums(got[2], columns, 1),
                  ColumnSums(db, columns, 1),
                  kTolerance<float>);
      }
    }
  });
}

// A quarter is dropped, or nothing.
constexpr MaskDraw kDraw{0x5eed, 0x40000000U};

DOCTEST_TEST_CASE("CUDA: bias, dropout, residual and LayerNorm") {
  Random random;
  ForEachType([&](auto type) {
    using T = decltype(type);
    for (const auto& [rows, columns] : kShapes) {
      for (const bool dropout : {false, true}) {
        for (const bool sum_used : {false, true}) {
          DOCTEST_INFO(sizeof(T));
          DOCTEST_INFO(columns);
          DOCTEST_INFO(dropout);
          const int64_t count = rows * columns;
          const double scale = dropout ? 1 / 0.75 : 1;
          Doubles input = Rounded(random.Draw(count), T());
          Doubles bias = Rounded(random.Draw(columns), float());
          Doubles residual = Rounded(random.Draw(count), float());
          Doubles weight = Rounded(random.Draw(columns), float());
          Doubles shift = Rounded(random.Draw(columns), float());
          Doubles normed_gradient = Rounded(random.Draw(count), float());
          Doubles sum_gradient = Rounded(random.Draw(count), float());
          // As fused_layers.cc: without a mask the residual's is the input's.
          const bool own = dropout || !std::is_same_v<T, float>;

          std::vector<uint8_t> mask;
          const std::vector<Doubles> got = InEveryOrder([&] {
            Array<T> x(input);
            Array<float> b(bias);
            Array<float> r(residual);
            Array<float> w(weight);
            Array<float> s(shift);
            Array<float> dn(normed_gradient);
            Array<float> ds(sum_gradient);
            Array<float> sum(count);
            Array<float> normed(count);
            Array<float> mean(rows);
            Array<float> deviation(rows);
            Array<float> dr(count);
            Array<T> dx(count);
            Array<float> partials(3 * kFusedChunks * columns);
            mask.assign(static_cast<size_t>(count), 7);
            AddNorm a{};
            a.rows = rows;
            a.columns = columns;
            a.type = kTypeOf<T>;
            a.epsilon = 1e-5;
            a.scale = scale;
            a.draw = kDraw;
            a.mask = dropout ? mask.data() : nullptr;
            a.input = x.data();
            a.bias = b.data();
            a.residual = r.data();
            a.weight = w.data();
            a.shift = s.data();
            a.sum = sum.data();
            a.normed = normed.data();
            a.mean = mean.data();
            a.deviation = deviation.data();
            a.normed_gradient = dn.data();
            a.sum_gradient = sum_used ? ds.data() : nullptr;
            a.residual_gradient = dr.data();
            a.input_gradient = own ? dx.data() : nullptr;
            a.partials = partials.data();
            DOCTEST_REQUIRE(LaunchForward(a, nullptr) == cudaSuccess);
            DOCTEST_REQUIRE(LaunchBackward(a, nullptr) == cudaSuccess);
            DOCTEST_CHECK((sum.Unharmed() && normed.Unharmed() &&
                           mean.Unharmed() && deviation.Unharmed() &&
                           dr.Unharmed() && dx.Unharmed() &&
                           partials.Unharmed()));
            return std::vector<Doubles>{sum.Values(),
                                        normed.Values(),
                                        mean.Values(),
                                        deviation.Values(),
                                        dr.Values(),
                                        own ? dx.Values() : dr.Values(),
                                        partials.Values()};
          });

          Doubles sum(input.size());
          Doubles normed(input.size());
          Doubles mean(static_cast<size_t>(rows));
          Doubles deviation(static_cast<size_t>(rows));
          Doubles dr(input.size());
          Doubles dx(input.size());
          Doubles partials(static_cast<size_t>(3 * kFusedChunks * columns));
          AddNorm a{};
          a.rows = rows;
          a.columns = columns;
          a.type = ElementType::kDouble;
          a.epsilon = 1e-5;
          a.scale = scale;
          a.mask = dropout ? mask.data() : nullptr;
          a.input = input.data();
          a.bias = bias.data();
          a.residual = residual.data();
          a.weight = weight.data();
          a.shift = shift.data();
          a.sum = sum.data();
          a.normed = normed.data();
          a.mean = mean.data();
          a.deviation = deviation.data();
          a.normed_gradient = normed_gradient.data();
          a.sum_gradient = sum_used ? sum_gradient.data() : nullptr;
          a.residual_gradient = dr.data();
          a.input_gradient = dropout ? dx.data() : nullptr;
          a.partials = partials.data();
          FusedForward(a);
          FusedBackward(a);
          CheckNear("sum", got[0], sum, kTolerance<float>);
          CheckNear("normed", got[1], normed, kTolerance<float>);
          CheckNear("mean", got[2], mean, kTolerance<float>);
          CheckNear("deviation", got[3], deviation, kTolerance<float>);
          CheckNear("residual", got[4], dr, kTolerance<float>);
          CheckNear("input", got[5], dropout ? dx : dr, kTolerance<T>);
          CheckNear("bias, weight, shift",
                    ColumnSums(got[6], columns, 3),
                    ColumnSums(partials, columns, 3),
                    kTolerance<float>);
        }
      }
    }
  });
}

DOCTEST_TEST_CASE("CUDA: softmax and dropout") {
  constexpr int64_t kBatch = 2;
  constexpr int64_t kHeads = 3;
  Random random;
  ForEachType([&](auto type) {
    using T = decltype(type);
    for (const int64_t length : {7, 40}) {
      for (const bool dropout : {false, true}) {
        for (const bool causal : {false, true}) {
          for (const bool padded : {false, true}) {
            DOCTEST_INFO(sizeof(T));
            DOCTEST_INFO(length);
            DOCTEST_INFO(causal);
            const int64_t rows = kBatch * kHeads * length;
            const int64_t count = rows * length;
            const double scale = dropout ? 1 / 0.75 : 1;
            Doubles scores = Rounded(random.Draw(count), T());
            Doubles gradient = Rounded(random.Draw(count), T());
            Doubles padding(static_cast<size_t>(kBatch * length));
            padding.back() = -3e38;  // the second sequence's last token

            std::vector<uint8_t> mask;
            const std::vector<Doubles> got = InEveryOrder([&] {
              Array<T> s(scores);
              Array<float> pad(padding);
              Array<T> g(gradient);
              Array<T> p(count);
              Array<T> d(count);
              Array<T> ds(count);
              mask.assign(static_cast<size_t>(count), 7);
              SoftmaxDropout a{};
              a.rows = rows;
              a.columns = length;
              a.queries = length;
              a.rows_per_batch = kHeads * length;
              a.type = kTypeOf<T>;
              a.score_scale = 0.3;
              a.causal = causal;
              a.scale = scale;
              a.draw = kDraw;
              a.mask = dropout ? mask.data() : nullptr;
              a.scores = s.data();
              a.padding = padded ? pad.data() : nullptr;
              a.probabilities = p.data();
              a.dropped = dropout ? d.data() : nullptr;
              a.gradient = g.data();
              a.score_gradient = ds.data();
              DOCTEST_REQUIRE(LaunchForward(a, nullptr) == cudaSuccess);
              DOCTEST_REQUIRE(LaunchBackward(a, nullptr) == cudaSuccess);
              DOCTEST_CHECK((p.Unharmed() && d.Unharmed() && ds.Unharmed()));
              return std::vector<Doubles>{p.Values(), d.Values(), ds.Values()};
            });

            Doubles p(scores.size());
            Doubles d(scores.size());
            Doubles ds(scores.size());
            SoftmaxDropout a{};
            a.rows = rows;
            a.columns = length;
            a.queries = length;
            a.rows_per_batch = kHeads * length;
            a.type = ElementType::kDouble;
            a.score_scale = 0.3;
            a.causal = causal;
            a.scale = scale;
            a.mask = dropout ? mask.data() : nullptr;
            a.scores = scores.data();
            a.padding = padded ? padding.data() : nullptr;
            a.probabilities = p.data();
            a.dropped = dropout ? d.data() : nullptr;
            a.gradient = gradient.data();
            a.score_gradient = ds.data();
            FusedForward(a);
            FusedBackward(a);
            CheckNear("probabilities", got[0], p, kTolerance<T>);
            CheckNear("dropped", got[1], d, kTolerance<T>);
            CheckNear("scores", got[2], ds, kTolerance<T>);
          }
        }
      }
    }
  });
}

DOCTEST_TEST_CASE("CUDA: masks keep what they should, and depend on the key") {
  const auto kept = [](MaskDraw draw) {
    std::vector<bool> bits;
    for (int64_t i = 0; i < 100000; ++i) bits.push_back(Kept(draw, i));
    return bits;
  };
  const std::vector<bool> bits = kept(kDraw);
  const auto count =
      static_cast<double>(std::count(bits.begin(), bits.end(), true));
  // Five standard deviations of a binomial count.
  DOCTEST_CHECK(std::abs(count - 75000) < 5 * std::sqrt(100000 * 0.1875));
  DOCTEST_CHECK((kept(kDraw) == bits));
  DOCTEST_CHECK((kept({kDraw.key + 1000003, kDraw.threshold}) != bits));
}

// Tensors that fill chunks, do not, are one element, or start where no vector
// may; more of them than one launch takes.
struct Layout {
  int64_t size;
  size_t shift;           // of the parameter and its state
  size_t gradient_shift;  // and of the narrow parameter
};
const std::vector<Layout>& Layouts() {
  static const std::vector<Layout> all = [] {
    std::vector<Layout> layouts = {{2 * 16384 + 5, 0, 0},
                                   {16384, 0, 0},
                                   {16383, 0, 0},
                                   {3000, 1, 0},
                                   {2051, 0, 3},
                                   {3, 0, 0}};
    layouts.resize(407, Layout{1, 0, 0});
    return layouts;
  }();
  return all;
}

constexpr int kSteps = 3;
constexpr float kFactor = 0.25F;  // what a scaler leaves of gradients

// Every tensor's arrays, the parameter first and the narrow one last, after
// kSteps times step(number, states).
template <class T, int kArrays, class Step>
std::vector<Doubles> Updated(const Step& step) {
  Random random;
  struct State {
    std::vector<Array<float>> arrays;
    Array<T> gradient;
    Array<T> narrow;
  };
  std::vector<State> states;
  for (const auto& [size, shift, gradient_shift] : Layouts()) {
    State state{
        {}, Array<T>(size, gradient_shift), Array<T>(size, gradient_shift)};
    state.arrays.emplace_back(random.Draw(size), shift);
    for (int i = 1; i < kArrays; ++i) state.arrays.emplace_back(size, shift);
    states.push_back(std::move(state));
  }
  for (int number = 0; number < kSteps; ++number) {
    for (size_t i = 0; i < states.size(); ++i) {
      const Layout& layout = Layouts()[i];
      states[i].gradient =
          Array<T>(random.Draw(layout.size), layout.gradient_shift);
    }
    step(number, states);
  }
  std::vector<Doubles> results;
  for (State& state : states) {
    for (Array<float>& array : state.arrays) {
      DOCTEST_CHECK(array.Unharmed());
      results.push_back(array.Values());
    }
    DOCTEST_CHECK(state.narrow.Unharmed());
    results.push_back(state.narrow.Values());
  }
  return results;
}

void CheckUpdates(const std::vector<Doubles>& got,
                  const std::vector<Doubles>& want,
                  int per_tensor,
                  double narrow_tolerance) {
  DOCTEST_REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    DOCTEST_INFO(i);
    const bool narrow = static_cast<int>(i) % per_tensor == per_tensor - 1;
    CheckNear("value", got[i], want[i], narrow ? narrow_tolerance : 1e-6);
  }
}

DOCTEST_TEST_CASE("CUDA: Adan in one kernel") {
  ForEachType([&](auto type) {
    using T = decltype(type);
    constexpr bool kNarrow = !std::is_same_v<T, float>;
    const auto updated = [](const auto& update) {
      return Updated<T, 5>([&](int number, auto& states) {
        std::vector<AdanTensor> tensors;
        for (auto& state : states) {
          tensors.push_back({state.arrays[0].data(),
                             state.gradient.data(),
                             kNarrow ? state.narrow.data() : nullptr,
                             state.arrays[1].data(),
                             state.arrays[2].data(),
                             state.arrays[3].data(),
                             state.arrays[4].data(),
                             state.arrays[0].size(),
                             1e-2F,
                             0.9998F});
        }
        AdanScalars scalars{
            0.98F, 0.92F, 0.99F, 1e-8F, 0.0F, 0.0F, 0.0F, number == 0};
        const double t = number + 1;
        scalars.first_correction =
            static_cast<float>(1 / (1 - std::pow(0.98, t)));
        scalars.difference_correction =
            static_cast<float>(0.92 / (1 - std::pow(0.92, t)));
        scalars.second_correction =
            static_cast<float>(1 / std::sqrt(1 - std::pow(0.99, t)));
        scalars.type = kTypeOf<T>;
        scalars.gradient_factor = kNarrow ? &kFactor : nullptr;
        update(tensors, scalars);
      });
    };
    const std::vector<Doubles> got = InEveryOrder([&] {
      return updated([](const auto& tensors, const AdanScalars& scalars) {
        DOCTEST_REQUIRE(
            LaunchAdan(tensors.data(), tensors.size(), scalars, nullptr) ==
            cudaSuccess);
      });
    });
    CheckUpdates(got,
                 updated([](const auto& tensors, const auto& scalars) {
                   FusedAdan(tensors, scalars);
                 }),
                 6,
                 kTolerance<T>);
  });
}

DOCTEST_TEST_CASE("CUDA: AdamW of narrow parameters in one kernel") {
  ForEachType([&](auto type) {
    using T = decltype(type);
    if constexpr (!std::is_same_v<T, float>) {  // that is LibTorch's
      const auto updated = [](const auto& update) {
        return Updated<T, 3>([&](int number, auto& states) {
          const double t = number + 1;
          std::vector<AdamWTensor> tensors;
          for (auto& state : states) {
            tensors.push_back(
                {state.arrays[0].data(),
                 state.gradient.data(),
                 state.narrow.data(),
                 state.arrays[1].data(),
                 state.arrays[2].data(),
                 state.arrays[0].size(),
                 static_cast<float>(1e-2 / (1 - std::pow(0.9, t))),
                 0.9998F});
          }
          const AdamWScalars scalars{
              0.9F,
              0.999F,
              1e-8F,
              static_cast<float>(1 / std::sqrt(1 - std::pow(0.999, t))),
              kTypeOf<T>,
              &kFactor};
          update(tensors, scalars);
        });
      };
      const std::vector<Doubles> got = InEveryOrder([&] {
        return updated([](const auto& tensors, const AdamWScalars& scalars) {
          DOCTEST_REQUIRE(
              LaunchAdamW(tensors.data(), tensors.size(), scalars, nullptr) ==
              cudaSuccess);
        });
      });
      CheckUpdates(got,
                   updated([](const auto& tensors, const auto& scalars) {
                     FusedAdamW(tensors, scalars);
                   }),
                   4,
                   kTolerance<T>);
    }
  });
}

}  // namespace
}  // namespace trainfare::trainer
