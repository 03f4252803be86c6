#include "calibrate/records/import/table_words.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "calibrate/records/import/table.h"
#include "calibrate/records/import/table_row.h"
#include "model/workload.h"
#include "tests/calibrate/records/import/table_rows.h"

namespace trainfare::calibrate {
namespace {

using model::Shard;

// As people write them: no column says adapters, sharding or recomputation.
std::string RowInWords(std::string_view framework,
                       std::string_view stack,
                       std::string_view notes = "") {
  return fmt::format(
      "s,,,A100-SXM4-80GB,8,1,llama-3.1-8b,,,,,,1024,1,1,bf16,{},{},finetune,"
      "step_s,1,{}",
      framework,
      stack,
      notes);
}

model::Workload ReadInWords(std::string_view framework,
                            std::string_view stack) {
  return OneRow(RowInWords(framework, stack)).workload;
}

TEST_CASE("words stand apart whatever joins them") {
  CHECK(WordsApart("ZeRO_stage=3; TP") == " zero stage 3 ; tp ");
  CHECK(WordsApart("LoRA(r=16).") == " lora ( r 16 ) . ");
  CHECK(WordsApart("v0.4 x") == " v0.4 x ");
  CHECK(WordsApart("") == " ");
  CHECK(SaysWhole(" zero 3 ; tp ", "zero 3"));
  CHECK_FALSE(SaysWhole(" zero 30 ", "zero 3"));
  CHECK_FALSE(SaysWhole(" nonzero 3 ", "zero 3"));
  CHECK_FALSE(SaysWhole(" without lora ", "lora"));
  CHECK_FALSE(SaysWhole(" lora none ", "lora"));
  CHECK(SaysWhole(" no lora ; lora ", "lora"));
}

TEST_CASE("adapters in words cost the row and say which columns to give") {
  const auto refused = [](std::string_view framework,
                          std::string_view stack,
                          std::string_view notes) {
    CHECK(ReasonOfRow(RowInWords(framework, stack, notes)) ==
          "adapters in words: columns adapter, lora_rank");
  };
  refused("transformers + peft", "LoRA r=16", "");
  refused("transformers", "QLoRA; nf4", "");
  refused("PyTorch", "lora_r=8", "");
  refused("transformers", "x", "with LoRA of rank 8");
  refused("HF PEFT", "", "");
  CHECK(ReadInWords("PyTorch", "no LoRA; full").trainable.lora_rank == 0);
  CHECK(ReadInWords("PyTorch", "exploration").trainable.lora_rank == 0);
  // The column goes before.
  const std::string row =
      "A100-SXM4-80GB,1,llama2-7b,,,,,,,512,1,1,,1,1,1,none,none,bf16,{},{},"
      "HF PEFT,LoRA repository,finetune,step_s,1,on q_proj\n";
  const auto rank = [&](std::string_view adapter, std::string_view of) {
    const Table table =
        ParseDecoder(fmt::format(fmt::runtime(row), adapter, of));
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.trainable.lora_rank;
  };
  CHECK(rank("none", "") == 0);
  CHECK(rank("lora", "16") == 16);
  CHECK(ParseDecoder(fmt::format(fmt::runtime(row), "-", ""))
            .unused.contains("adapters in words: columns adapter, lora_rank"));
}

TEST_CASE("sharding in words is read where the column says nothing") {
  const auto shard = [](std::string_view framework, std::string_view stack) {
    const model::Parallel parallel = ReadInWords(framework, stack).parallel;
    CHECK(parallel.data == (parallel.shard == Shard::kNone ? 0 : 8));
    return parallel.shard;
  };
  CHECK(shard("transformers", "DeepSpeed ZeRO-1") == Shard::kZero1);
  CHECK(shard("transformers + DeepSpeed", "zero_stage: 2") == Shard::kZero2);
  CHECK(shard("DeepSpeed ZeRO Stage 3", "x") == Shard::kZero3);
  CHECK(shard("transformers", "zero3") == Shard::kZero3);
  CHECK(shard("PyTorch FSDP", "x") == Shard::kFsdp);
  CHECK(shard("PyTorch", "FULL_SHARD") == Shard::kFsdp);
  CHECK(shard("PyTorch", "no FSDP") == Shard::kNone);
  CHECK(shard("PyTorch FSDP", "NO_SHARD") == Shard::kNone);
  CHECK(shard("PyTorch", "DDP") == Shard::kNone);
  CHECK(ReadInWords("PyTorch", "FULL_SHARD").parallel.reshard_after_forward);
  const model::Parallel kept =
      ReadInWords("PyTorch FSDP", "SHARD_GRAD_OP").parallel;
  CHECK(kept.shard == Shard::kFsdp);
  CHECK_FALSE(kept.reshard_after_forward);
  for (const char* open : {"HYBRID_SHARD", "ZeRO++", "DeepSpeed ZeRO"}) {
    CAPTURE(open);
    CHECK(ReasonOfRow(RowInWords("PyTorch", open)) ==
          "sharding in words: column sharding");
  }
  // Notes speak of other runs, too.
  CHECK(ReasonOfRow(RowInWords("PyTorch", "x", "twice as fast as FSDP")) ==
        "sharding in words: column sharding");
  // One device has nothing to share.
  CHECK(OneRow("s,,,A100-SXM4-80GB,1,1,bert-base,,,,,,128,8,1,fp16,PyTorch,"
               "FSDP,finetune,step_s,1,")
            .workload.parallel.shard == Shard::kNone);
}

TEST_CASE("recomputation in words is read where the column says nothing") {
  const auto again = [](std::string_view stack) {
    return ReadInWords("PyTorch", stack).gradient_checkpointing;
  };
  CHECK(again("gradient checkpointing"));
  CHECK(again("gradient_checkpointing=True"));
  CHECK(again("full activation recomputation"));
  CHECK(again("activation checkpointing: on"));
  CHECK_FALSE(again("gradient_checkpointing=False"));
  CHECK_FALSE(again("no activation checkpointing"));
  CHECK_FALSE(again("gradient checkpointing: off"));
  CHECK_FALSE(again("gradient checkpointing not stated"));
  CHECK_FALSE(again("from a checkpoint"));
  CHECK(ReadInWords("Megatron", "selective activation recomputation")
            .attention_checkpointing);
  CHECK(ReasonOfRow(
            RowInWords("PyTorch", "selective activation checkpointing")) ==
        "recomputation selective: what is computed again is not stated");
  for (const char* stack : {"gradient checkpointing every 2 layers",
                            "activation checkpointing of 21 layers"}) {
    CAPTURE(stack);
    CHECK(ReasonOfRow(RowInWords("PyTorch", stack)) ==
          "recomputation in words: column recompute");
  }
  CHECK(ReasonOfRow(
            RowInWords("PyTorch", "x", "slower by gradient checkpointing")) ==
        "recomputation in words: column recompute");
}

TEST_CASE("a column of recomputation has words for yes and no") {
  const auto again = [](std::string_view recompute) {
    const Table table = ParseDecoder(fmt::format(
        "A100-SXM4-80GB,1,mistral-7b,,,,,,,4096,1,1,,,1,1,,{},bf16,,,"
        "HF Trainer,no gradient checkpointing,finetune,step_s,3,n\n",
        recompute));
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.gradient_checkpointing;
  };
  for (const char* yes : {"full", "yes", "True", "on", "1"}) CHECK(again(yes));
  for (const char* no : {"none", "no", "False", "off", "0", "", "n/a"}) {
    CHECK_FALSE(again(no));
  }
}

}  // namespace
}  // namespace trainfare::calibrate
