#include "model/words.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.h"
#include "model/letters.h"
#include "model/workload.h"

namespace trainfare::model {
namespace {

// What is said against a word; empty where nothing.
template <class Read>
std::string Refusal(const Read& read) {
  try {
    read();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// Each of them means one thing, and is read whatever its letter case.
template <class Enum>
void CheckOtherWords() {
  std::set<std::string_view> seen;
  const auto check_new = [&](std::string_view text) {
    CAPTURE(text);
    CHECK(seen.insert(text).second);
    CHECK(Lowered(text) == text);
  };
  for (const Word<Enum>& word : kWords<Enum>.words) check_new(word.text);
  for (const Word<Enum>& alias : kWordAliases<Enum>) {
    check_new(alias.text);
    CHECK(FromText<Enum>(alias.text) == alias.value);
    CHECK(ToText(FromText<Enum>(alias.text)) != alias.text);
  }
  for (const WordHint& word : kWordHints<Enum>) {
    check_new(word.text);
    CHECK(Refusal([&] {
            FromText<Enum>(word.text);
          }).ends_with("; hint: " + std::string(word.hint)));
  }
}

}  // namespace

TEST_CASE("words of other programs are taken as what they mean, or hinted at") {
  CheckOtherWords<Precision>();
  CheckOtherWords<OptimizerKind>();
  CheckOtherWords<OptimizerImplementation>();
  CheckOtherWords<Fusion>();
  CheckOtherWords<Attention>();
  CheckOtherWords<LossKernels>();
  CheckOtherWords<ExpertKernels>();
  CheckOtherWords<Shard>();
  CheckOtherWords<Offload>();
  CheckOtherWords<Work>();
}

TEST_CASE("what newcomers write is read") {
  CHECK(FromText<Attention>("sdpa") == Attention::kFlash);
  CHECK(FromText<Attention>("flash_attention_2") == Attention::kFlash2);
  CHECK(FromText<Attention>("flash_attention_3") == Attention::kFlash3);
  CHECK(FromText<Attention>("eager") == Attention::kMaterialised);
  CHECK(FromText<OptimizerKind>("adam") == OptimizerKind::kAdamW);
  CHECK(FromText<OptimizerKind>("AdamW") == OptimizerKind::kAdamW);
  CHECK(FromText<Shard>("FULL_SHARD") == Shard::kFsdp);
  CHECK(FromText<Shard>("ddp") == Shard::kNone);
  CHECK(FromText<Fusion>("torch.compile") == Fusion::kCompiled);
  CHECK(FromText<Precision>("bfloat16") == Precision::kBf16);
  CHECK(Refusal([] { FromText<Precision>("amp"); }) ==
        "unknown precision \"amp\"; known: fp32, tf32, fp16, bf16, fp8, fp4; "
        "hint: fp16 or bf16, each mixed with fp32");
  CHECK(FromText<Precision>("NVFP4") == Precision::kFp4);
  CHECK(FromText<LossKernels>("fused_linear_cross_entropy") ==
        LossKernels::kChunked);
  CHECK(Refusal([] {
          FromText<LossKernels>("cut_cross_entropy");
        }).find("hint: chunked is the nearest") != std::string::npos);
  CHECK(Refusal([] {
          FromText<Fusion>("transformer_engine");
        }).find("hint: megatron, ") != std::string::npos);
  CHECK(Refusal([] {
          FromText<LossKernels>("liger");
        }).ends_with("stack liger has it"));
  CHECK(FromText<ExpertKernels>("megablocks") == ExpertKernels::kGrouped);
  CHECK(Refusal([] {
          FromText<ExpertKernels>("deepep");
        }).ends_with("hint: grouped, with parallel.expert_exchange=by_host"));
  CHECK(FromText<Fusion>("Megatron-LM") == Fusion::kMegatron);
  CHECK(Refusal([] {
          FromText<Precision>("mxfp8");
        }).ends_with("hint: precision fp8 with fp8.scaling=blocks"));
  CHECK(Refusal([] {
          FromText<Precision>("mxfp4");
        }).ends_with("hint: fp4, whose blocks are NVFP4's, is the nearest"));
  CHECK(Refusal([] {
          FromText<Shard>("zero2_offload");
        }).ends_with("hint: zero2, with parallel.offload: optimizer"));
  CHECK(Refusal([] {
          FromText<Offload>("all");
        }).ends_with("parallel.offload_activations"));
}

TEST_CASE("modules of other programs are the matrices that they hold") {
  const auto words = [](std::string_view name) {
    LoraMatrices matrices;
    AddLoraMatrix(name, matrices);
    return ToWords(matrices);
  };
  using Words = std::vector<std::string>;
  CHECK(words("q_proj") == Words{"query"});
  CHECK(words("Wqkv") == Words{"query", "key", "value"});
  CHECK(words("gate_up_proj") == Words{"feed_forward_gate", "feed_forward_in"});
  CHECK(words("kv_b_proj") == Words{"key_value_up"});
  CHECK(words("all-linear").size() == LoraMatrixNames().size());
  LoraMatrices none;
  // T5's is of the feed-forward block, Meta's Llama's of attention.
  CHECK_THROWS_AS(AddLoraMatrix("wo", none), InputError);
}

}  // namespace trainfare::model
