#include "trainer/network/random.h"

#include "trainer/runtime/parallel.h"

namespace trainfare::trainer {
namespace {

// Elements that share a generator.
constexpr int64_t kChunk = 1 << 18;

}  // namespace

void DrawNormal(const std::vector<at::Tensor>& tensors,
                const std::vector<double>& deviations,
                uint64_t seed) {
  std::vector<int64_t> sizes;
  sizes.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) sizes.push_back(tensor.numel());
  ParallelChunks(sizes, kChunk, [&](size_t which, int64_t first, int64_t last) {
    const uint64_t of_tensor = SplitMix64(SplitMix64(seed) + which);
    const at::Generator generator = at::detail::createCPUGenerator(
        SplitMix64(of_tensor + static_cast<uint64_t>(first / kChunk)));
    at::from_blob(tensors[which].mutable_data_ptr<float>() + first,
                  {last - first},
                  at::kFloat)
        .normal_(0.0, deviations[which], generator);
  });
}

}  // namespace trainfare::trainer
