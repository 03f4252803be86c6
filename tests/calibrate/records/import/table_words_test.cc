#include "calibrate/records/import/table_words.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "calibrate/records/import/table.h"
#include "calibrate/records/import/table_row.h"
#include "calibrate/records/import/table_said.h"
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
  CHECK(shard("PyTorch", "DDP; w/o ZeRO-3") == Shard::kNone);
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
  for (const char* other : {"full recompute",
                            "recompute=full",
                            "recompute_granularity=full",
                            "activation ckpt",
                            "act. checkpointing",
                            "activation checkpoint",
                            "full AC"}) {
    CAPTURE(other);
    CHECK(again(other));
  }
  CHECK_FALSE(again("w/o activation checkpointing"));
  CHECK_FALSE(again("gradient_checkpointing: null"));
  CHECK_FALSE(again("gradient checkpointing not enabled"));
  CHECK_FALSE(again("recompute=False"));
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
                            "remat_policy=custom",
                            "recompute",
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

TEST_CASE("attention in one kernel has many names") {
  const auto flash = [](std::string_view framework, std::string_view stack) {
    return ReadInWords(framework, stack).stack.attention ==
           model::Attention::kFlash;
  };
  for (const char* name : {"flash-attention-2",
                           "FlashAttn-2",
                           "flash attn 2",
                           "FA3",
                           "xformers",
                           "FlexAttention",
                           "flex_attention",
                           "cuDNN attention",
                           "fused attention",
                           "attn_implementation=flash_attention_2",
                           "memory-efficient attention"}) {
    CAPTURE(name);
    CHECK(flash("PyTorch", name));
  }
  for (const char* none : {"use_flash_attention_2=False",
                           "flash_attn_2=False",
                           "--no-flash-attn",
                           "disable_flash_attn",
                           "flash attention (disabled)",
                           "flash_attn: null",
                           "eager attention",
                           "w/o flash attention",
                           "xformers: no"}) {
    CAPTURE(none);
    CHECK_FALSE(flash("PyTorch", none));
  }
  for (const char* framework : {"lit-gpt", "Unsloth", "Megatron-Bridge"}) {
    CAPTURE(framework);
    CHECK(flash(framework, "DDP"));
  }
}

TEST_CASE("a flag that is off is no stack") {
  const auto fusion = [](std::string_view framework, std::string_view stack) {
    return ReadInWords(framework, stack).stack.fusion;
  };
  using model::Fusion;
  for (const char* on : {"torch_compile=True",
                         "compile=True",
                         "torch compile",
                         "Inductor",
                         "sdpa; compiled",
                         "torch.compile"}) {
    CAPTURE(on);
    CHECK(fusion("PyTorch", on) == Fusion::kCompiled);
  }
  for (const char* off : {"torch_compile=False",
                          "compile False",
                          "torch.compile not supported",
                          "didn't use torch.compile",
                          "use_liger_kernel=False",
                          "non-Liger",
                          "liger kernel: false",
                          "use_unsloth: false"}) {
    CAPTURE(off);
    CHECK(fusion("PyTorch", off) == Fusion::kEager);
  }
  CHECK(fusion("PyTorch", "use_liger_kernel=True") == Fusion::kLiger);
  CHECK(fusion("NeMo", "DDP") == Fusion::kMegatron);
  CHECK(ReadInWords("NeMo 2.0", "DDP").optimizer.masters ==
        model::Masters::kApart);
}

TEST_CASE("optimizers by the names that people write") {
  const auto optimizer = [](std::string_view stack) {
    return ReadInWords("PyTorch", stack).optimizer;
  };
  using model::OptimizerKind;
  CHECK(optimizer("paged_lion_8bit").kind == OptimizerKind::kLion);
  for (const char* narrow : {"paged_lion_8bit",
                             "lion_8bit",
                             "8-bit AdamW",
                             "paged_adamw_8bit",
                             "optim=adamw_bnb_8bit",
                             "bitsandbytes 8-bit optimizer"}) {
    CAPTURE(narrow);
    CHECK(optimizer(narrow).state_bits == 8);
  }
  CHECK(optimizer("optim=adamw_torch").state_bits == 0);
  CHECK(optimizer("Fused AdamW").implementation ==
        model::OptimizerImplementation::kFused);
  const auto refused = [](std::string_view stack, std::string_view reason) {
    CHECK(ReasonOfRow(RowInWords("PyTorch", stack)) == reason);
  };
  refused("AdaLomo", "not predicted: LOMO");
  refused("BAdam", "not predicted: BAdam");
  refused("Adam-mini", "not predicted: Adam-mini");
  refused("APOLLO", "not predicted: APOLLO");
  refused("CAME", "not predicted: CAME");
  refused("optim=rmsprop", "not predicted: optimizer rmsprop");
  refused("optimizer: foo", "not predicted: optimizer foo");
  refused("4-bit AdamW", "not predicted: an optimizer's state of 4 bits");
}

TEST_CASE("words of precision beside a column of it") {
  const auto masters = [](std::string_view stack) {
    return ReadInWords("PyTorch", stack).optimizer.masters;
  };
  for (const char* narrow :
       {"pure bf16", "bf16 weights", "torch_dtype=bfloat16"}) {
    CAPTURE(narrow);
    CHECK(masters(narrow) == model::Masters::kNone);
    CHECK(ReadInWords("PyTorch", narrow).stack.narrow_weights);
  }
  CHECK_FALSE(ReadInWords("PyTorch", "bf16 weights; fp32 master weights")
                  .stack.narrow_weights);
  CHECK(ReasonOfRow(RowInWords("torchtitan", "torch.compile + Float8")) ==
        "precision is bf16, stack_notes say float8: column precision, fp8 "
        "where products are in 8 bits");
  CHECK(ReadInWords("torchtitan", "no FP8").precision ==
        model::Precision::kBf16);
}

TEST_CASE("what is trained otherwise is not plain training") {
  for (const auto& said :
       {std::pair{"DPO", "preferences beside a reference model"},
        std::pair{"PPO step 3 (hybrid engine)", "reinforcement learning"},
        std::pair{"ORPO", "pairs of sequences"},
        std::pair{"BitFit", "biases trained alone"},
        std::pair{"LISA", "layers trained in turn"},
        std::pair{"frozen backbone", "a frozen backbone"}}) {
    const std::string expected = fmt::format("not predicted: {}", said.second);
    CHECK(ReasonOfRow(RowInWords("PyTorch", said.first)).starts_with(expected));
    CHECK(ReasonOfRow(RowInWords("PyTorch", "DDP", said.first))
              .starts_with(expected));
  }
}

TEST_CASE("columns of a stack's settings are words of it") {
  const Table table = ParseTable(
      "device,model,seq_len,batch_per_device,precision,framework,optimizer,"
      "torch_compile,attention,packing,metric,value\n"
      "A100-SXM4-80GB,llama2-7b,512,1,bf16,PyTorch,lion,True,flash,True,"
      "step_s,1\n"
      "A100-SXM4-80GB,llama2-7b,512,1,bf16,PyTorch,lion,False,eager,True,"
      "step_s,2\n"
      "A100-SXM4-80GB,llama2-7b,512,1,bf16,PyTorch,lion,True,flash,False,"
      "step_s,1\n",
      "t.csv");
  CHECK(table.unread.empty());
  REQUIRE(table.observations.size() == 2);
  const model::Workload& on = table.observations[0].workload;
  CHECK(on.stack.fusion == model::Fusion::kCompiled);
  CHECK(on.stack.attention == model::Attention::kFlash);
  CHECK(on.optimizer.kind == model::OptimizerKind::kLion);
  const model::Workload& off = table.observations[1].workload;
  CHECK(off.stack.fusion == model::Fusion::kEager);
  CHECK(off.stack.attention == model::Attention::kMaterialised);
  CHECK(table.unused.contains(
      "samples of unequal length: real length not known"));
}

}  // namespace
}  // namespace trainfare::calibrate
