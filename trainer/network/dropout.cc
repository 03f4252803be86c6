#include "trainer/network/dropout.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <type_traits>

#include "trainer/kernels/vector_versions.h"
#include "trainer/network/random.h"
#include "trainer/runtime/parallel.h"

#define TRAINFARE_VERSIONS TRAINFARE_VECTOR_VERSIONS("avx512f", "avx2")

namespace trainfare::trainer {
namespace {

// Elements that share one generator state: the unit of work of a thread, so
// that masks do not depend on how many threads there are.
constexpr int64_t kBlock = 4096;
constexpr int kLanes = 16;

DropoutSequence& Sequence() {
  static DropoutSequence sequence;
  return sequence;
}

// kLanes xorshift32 generators (Marsaglia 2003, shifts 13, 17, 5) side by side,
// in the form that compilers turn into vector instructions.
struct Lanes {
  std::array<uint32_t, kLanes> state;

  explicit Lanes(uint64_t key) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const auto word = static_cast<uint32_t>(SplitMix64(key + lane) >> 32);
      state[lane] = word == 0 ? 1U : word;  // 0 is a fixed point
    }
  }
  TRAINFARE_INLINE void Advance() {
    for (uint32_t& word : state) {
      word ^= word << 13;
      word ^= word >> 17;
      word ^= word << 5;
    }
  }
};

// All ones where an element is kept, else 0: an `and` and no condition, which
// would keep the loops below from becoming vector instructions.
TRAINFARE_INLINE uint32_t KeptBits(bool kept) {
  return 0U - static_cast<uint32_t>(kept);
}

template <class Scalar>
TRAINFARE_INLINE Scalar Masked(Scalar value, uint32_t kept_bits, float scale) {
  const float scaled = static_cast<float>(value) * scale;
  return static_cast<Scalar>(
      std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) & kept_bits));
}

template <class Scalar>
TRAINFARE_INLINE void Apply(const Scalar* __restrict input,
                            Scalar* __restrict output,
                            uint8_t* __restrict mask,
                            int64_t count,
                            uint64_t key,
                            uint32_t threshold,
                            float scale) {
  Lanes lanes(key);
  lanes.Advance();
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    lanes.Advance();
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t kept =
          KeptBits(lanes.state[static_cast<size_t>(lane)] >= threshold);
      mask[at + lane] = static_cast<uint8_t>(kept & 1U);
      output[at + lane] = Masked(input[at + lane], kept, scale);
    }
  }
  lanes.Advance();
  for (int64_t lane = 0; at < count; ++at, ++lane) {
    const uint32_t kept =
        KeptBits(lanes.state[static_cast<size_t>(lane)] >= threshold);
    mask[at] = static_cast<uint8_t>(kept & 1U);
    output[at] = Masked(input[at], kept, scale);
  }
}

template <class Scalar>
TRAINFARE_INLINE void ApplyMask(const Scalar* __restrict gradient,
                                const uint8_t* __restrict mask,
                                Scalar* __restrict output,
                                int64_t count,
                                float scale) {
  for (int64_t at = 0; at < count; ++at) {
    output[at] = Masked(gradient[at], KeptBits(mask[at] != 0), scale);
  }
}

// The mask of ApplyBlock() alone.
TRAINFARE_VERSIONS
void MaskBlock(uint8_t* mask, int64_t count, uint64_t key, uint32_t threshold) {
  Lanes lanes(key);
  lanes.Advance();
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    lanes.Advance();
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      mask[at + lane] =
          lanes.state[static_cast<size_t>(lane)] >= threshold ? 1 : 0;
    }
  }
  lanes.Advance();
  for (int64_t lane = 0; at < count; ++at, ++lane) {
    mask[at] = lanes.state[static_cast<size_t>(lane)] >= threshold ? 1 : 0;
  }
}

#define TRAINFARE_DROPOUT(Scalar)                              \
  TRAINFARE_VERSIONS void ApplyBlock(const Scalar* input,      \
                                     Scalar* output,           \
                                     uint8_t* mask,            \
                                     int64_t count,            \
                                     uint64_t key,             \
                                     uint32_t threshold,       \
                                     float scale) {            \
    Apply(input, output, mask, count, key, threshold, scale);  \
  }                                                            \
  TRAINFARE_VERSIONS void MaskGradient(const Scalar* gradient, \
                                       const uint8_t* mask,    \
                                       Scalar* output,         \
                                       int64_t count,          \
                                       float scale) {          \
    ApplyMask(gradient, mask, output, count, scale);           \
  }
TRAINFARE_DROPOUT(float)
TRAINFARE_DROPOUT(at::BFloat16)
TRAINFARE_DROPOUT(at::Half)
#undef TRAINFARE_DROPOUT

template <class Body>
void ForBlocks(int64_t count, const Body& body) {
  const int64_t blocks = (count + kBlock - 1) / kBlock;
  ParallelRanges(blocks, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = block * kBlock;
      body(block, begin, std::min(kBlock, count - begin));
    }
  });
}

template <class Body>
void ForScalar(const at::Tensor& tensor, const Body& body) {
  if (tensor.scalar_type() == at::kBFloat16) {
    body(at::BFloat16());
  } else if (tensor.scalar_type() == at::kHalf) {
    body(at::Half());
  } else {
    TORCH_CHECK(tensor.scalar_type() == at::kFloat,
                "dropout: expected fp32, bf16 or fp16, got ",
                tensor.scalar_type());
    body(float());
  }
}

class HostDropout : public torch::autograd::Function<HostDropout> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& given,
                            double probability) {
    const at::Tensor input = given.contiguous();
    at::Tensor output = at::empty_like(input);
    at::Tensor mask = at::empty(input.sizes(), at::kByte);
    const uint32_t threshold = DropoutThreshold(probability);
    const auto scale = static_cast<float>(1.0 / (1.0 - probability));
    const uint64_t key = NextDropoutKey();
    ForScalar(input, [&](auto scalar) {
      using Scalar = decltype(scalar);
      const Scalar* from = input.const_data_ptr<Scalar>();
      Scalar* to = output.mutable_data_ptr<Scalar>();
      uint8_t* bytes = mask.mutable_data_ptr<uint8_t>();
      ForBlocks(input.numel(), [&](int64_t block, int64_t at, int64_t count) {
        ApplyBlock(from + at,
                   to + at,
                   bytes + at,
                   count,
                   SplitMix64(key + static_cast<uint64_t>(block)),
                   threshold,
                   scale);
      });
    });
    context->save_for_backward({mask});
    context->saved_data["scale"] = static_cast<double>(scale);
    return output;
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      const torch::autograd::variable_list& gradients) {
    const at::Tensor mask = context->get_saved_variables()[0];
    const auto scale =
        static_cast<float>(context->saved_data["scale"].toDouble());
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor output = at::empty_like(gradient);
    ForScalar(gradient, [&](auto scalar) {
      using Scalar = decltype(scalar);
      const Scalar* from = gradient.const_data_ptr<Scalar>();
      Scalar* to = output.mutable_data_ptr<Scalar>();
      const uint8_t* bytes = mask.const_data_ptr<uint8_t>();
      ForBlocks(gradient.numel(), [&](int64_t, int64_t at, int64_t count) {
        MaskGradient(from + at, bytes + at, to + at, count, scale);
      });
    });
    return {output, at::Tensor()};
  }
};

}  // namespace

void SeedDropout(uint64_t seed, uint64_t calls) { Sequence() = {seed, calls}; }

DropoutSequence DropoutState() { return Sequence(); }

uint64_t NextDropoutKey() {
  DropoutSequence& sequence = Sequence();
  return SplitMix64(sequence.seed ^ SplitMix64(sequence.calls++));
}

uint32_t DropoutThreshold(double probability) {
  return static_cast<uint32_t>(std::lround(probability * 4294967296.0));
}

at::Tensor DropoutMask(at::IntArrayRef sizes, double probability) {
  at::Tensor mask = at::empty(sizes, at::kByte);
  const uint64_t key = NextDropoutKey();
  const uint32_t threshold = DropoutThreshold(probability);
  uint8_t* bytes = mask.mutable_data_ptr<uint8_t>();
  ForBlocks(mask.numel(), [&](int64_t block, int64_t at, int64_t count) {
    MaskBlock(bytes + at,
              count,
              SplitMix64(key + static_cast<uint64_t>(block)),
              threshold);
  });
  return mask;
}

at::Tensor Dropout(const at::Tensor& input, double probability, bool training) {
  if (!training || probability <= 0.0) return input;
  if (!input.is_cpu()) return at::dropout(input, probability, true);
  return HostDropout::apply(input, probability);
}

}  // namespace trainfare::trainer
