#include "model/hardware_flops.h"

#include <doctest/doctest.h>

#include <cstdint>

#include "model/kernels.h"
#include "model/presets.h"
#include "model/workload.h"

namespace trainfare::model {
namespace {

// Narayanan et al. 2021: 96 B s l h^2 (1 + s / (6 h) + V / (16 l h)). GPT-2,
// 12 blocks of 768, 50257 words, 2 of 1024 tokens, by three terms of it.
TEST_CASE("hardware FLOPs of a decoder are Megatron's formula") {
  Workload w;
  w.architecture = FindArchitecture("gpt2");
  w.architecture.head = Head::kCausalLanguageModel;
  w.batch = 2;
  w.sequence_length = 1024;
  w.accumulation = 3;
  const int64_t tokens = 2 * 1024;
  const int64_t weights = 96 * tokens * 12 * 768 * 768;
  const int64_t scores = 16 * tokens * 12 * 768 * 1024;
  const int64_t logits = 6 * tokens * 768 * 50257;
  CHECK(StepHardwareFlops(w) == 3 * (weights + scores + logits));
  CHECK(StepHardwareFlops(w) == StepModelFlops(w) + 3 * (weights + scores) / 4);
  // A convention, whatever the workload does, and whichever attention.
  w.gradient_checkpointing = true;
  w.stack.attention = Attention::kFlash;
  CHECK(StepHardwareFlops(w) == 3 * (weights + scores + logits));
  CHECK(StepHardwareFlops(w, CountedPairs::kSeen) ==
        3 * (4 * ForwardModelFlops(w, CountedPairs::kSeen) - logits / 3));
  w.work = Work::kForward;
  CHECK(StepHardwareFlops(w) == StepModelFlops(w));
}

}  // namespace
}  // namespace trainfare::model
