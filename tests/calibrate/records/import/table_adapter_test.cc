#include "calibrate/records/import/table_adapter.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "calibrate/records/import/table.h"
#include "model/trainable.h"
#include "model/workload.h"
#include "tests/calibrate/records/import/table_rows.h"

namespace trainfare::calibrate {
namespace {

using model::Fusion;

// A row that says what no workload has costs that row alone.
TEST_CASE("what nobody widens or copies so is not predicted") {
  const auto reason = [](const std::string& model,
                         const std::string& adapter,
                         const std::string& stack) {
    const Table table = ParseTable(
        "device,model,seq_len,batch_per_device,grad_accum,precision,adapter,"
        "framework,stack_notes,task,metric,value,notes\n"
        "A100-SXM4-80GB," +
            model + ",256,1,8," + adapter + " rank 8,HF PEFT," + stack +
            ",finetune,step_s,1,q_proj\n",
        "t.csv");
    REQUIRE(table.unused.size() == 1);
    return table.unused.begin()->first;
  };
  CHECK(reason("mixtral-8x7b", "int4,qlora", "int4 GPTQ base") ==
        "not predicted: such a base widened by operations");
  CHECK(reason("bert-large", "bf16,lora", "method LoRA (emb)") ==
        "not predicted: such embeddings trained beside adapters");
}

// Qwen's script of one device trains without DeepSpeed, that of several with.
TEST_CASE("masters of adapters are those of the program's script") {
  const auto masters = [](const std::string& devices,
                          const std::string& adapter,
                          const std::string& precision) {
    const Table table = ParseTable(
        "source,device,n_devices,model,seq_len,batch_per_device,grad_accum,"
        "recompute,precision,adapter,sharding,framework,stack_notes,task,"
        "metric,value,notes\n"
        "QwenLM/Qwen@2df8e8ac,A100-SXM4-80GB," +
            devices + ",llama2-7b,256,1,8,full," + precision + "," + adapter +
            " rank 64,none,HF Transformers + PEFT + DeepSpeed,x,finetune,"
            "step_s,1,\n",
        "t.csv");
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.optimizer.masters;
  };
  CHECK(masters("1", "lora", "bf16") == model::Masters::kNone);
  CHECK(masters("4", "lora", "bf16") == model::Masters::kApart);
  CHECK(masters("1", "qlora", "int4") == model::Masters::kApart);
}

TEST_CASE("adapters of a program are its defaults where a row says nothing") {
  const auto trainable = [](const std::string& adapter,
                            const std::string& framework,
                            const std::string& notes) {
    const Table table = ParseDecoder(
        "RTX 3090,2,llama2-7b,,,,,,,2048,4,1,8,,1,1,fsdp,full,bf16," + adapter +
        ",," + framework + ",gradient checkpointing,finetune,step_s,10," +
        notes + "\n");
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.trainable;
  };
  const model::Trainable defaults = trainable("qlora", "fsdp_qlora (FSDP)", "");
  CHECK(defaults.lora_rank == 64);
  CHECK(defaults.base_bits == 4);
  CHECK(defaults.lora.value);
  CHECK(defaults.lora.feed_forward_out);
  CHECK_FALSE(defaults.lora.output);
  CHECK(defaults.adapters_as_units);
  CHECK(defaults.lora_dropout == 0.1);
  // Some of a program's kernels drop nothing.
  const auto dropout = [](const std::string& kernels) {
    const Table table = ParseTable(
        "source,device,model,seq_len,micro_batch,precision,adapter,framework,"
        "stack_notes,task,metric,value\n"
        "foundation-model-stack/fms-acceleration@1,A100-SXM4-80GB,llama2-7b,"
        "2048,4,bf16,lora rank 16,PyTorch HF Trainer,framework_config=" +
            kernels + ",finetune,step_s,10\n",
        "t.csv");
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.trainable.lora_dropout;
  };
  CHECK(dropout("none") == 0.1);
  CHECK(dropout("foak-fast-kernels") == 0.0);
  // What the row says goes first.
  const model::Trainable said =
      trainable("lora rank 8", "fsdp_qlora (FSDP)", "on q_proj");
  CHECK(said.lora_rank == 8);
  CHECK(said.base_bits == 0);
  CHECK(said.lora.query);
  CHECK_FALSE(said.lora.value);
  CHECK_FALSE(trainable("lora rank 8", "HF PEFT", "q_proj").adapters_as_units);
  CHECK_FALSE(said.embeddings_beside_adapters);
  CHECK(trainable("lora rank 8", "HF PEFT; method LoRA (emb)", "q_proj")
            .embeddings_beside_adapters);
  // GPTQ's base is widened by operations where no kernels are named.
  CHECK_FALSE(defaults.base_by_operations);
  CHECK(trainable("qlora rank 8", "HF PEFT; int4 GPTQ base", "q_proj")
            .base_by_operations);
}

TEST_CASE("adapters of all matrices, over a base of nf4") {
  const auto read = [](const std::string& modules, const std::string& notes) {
    const Table table = ParseTable(
        "device,model,seq_len,batch_per_device,grad_accum,precision,adapter,"
        "lora_rank,target_modules,framework,task,metric,value,notes\n"
        "A100-SXM4-80GB,llama2-7b,256,1,8,nf4,qlora,8," +
            modules + ",HF PEFT,finetune,step_s,1," + notes + "\n",
        "t.csv");
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.trainable;
  };
  const model::Trainable all = read("all-linear", "");
  CHECK(all.base_bits == 4);
  CHECK(all.lora_rank == 8);
  CHECK(all.lora.query);
  CHECK(all.lora.feed_forward_gate);
  CHECK(read("all", "").lora == all.lora);
  CHECK(read("", "target_modules=all").lora == all.lora);
  CHECK(read("", "target_modules: all-linear").lora == all.lora);
  CHECK_FALSE(read("q_proj v_proj", "").lora.key);
  CHECK(read("q_proj v_proj", "").lora.value);
}

TEST_CASE("dropout of adapters is stated, or there is none") {
  const auto table = [](const std::string& column, const std::string& notes) {
    return ParseTable(
        "device,model,seq_len,batch_per_device,grad_accum,precision,adapter,"
        "lora_dropout,framework,stack_notes,task,metric,value,notes\n"
        "A100-SXM4-80GB,llama2-7b,256,1,8,bf16,lora rank 8," +
            column + ",HF PEFT,x,finetune,step_s,1,q_proj " + notes + "\n",
        "t.csv");
  };
  const auto dropout = [&](const std::string& column,
                           const std::string& notes) {
    const Table read = table(column, notes);
    REQUIRE(read.observations.size() == 1);
    return read.observations[0].workload.trainable.lora_dropout;
  };
  CHECK(dropout("", "") == 0.0);
  CHECK(dropout("", "lora_dropout=0.05") == 0.05);
  CHECK(dropout("", "LoRA dropout 0.1; bias none") == 0.1);
  CHECK(dropout("", "dropout 0.1 of hidden states") == 0.0);
  CHECK(dropout("0.05", "") == 0.05);
  const Table refused = table("1", "");
  REQUIRE(refused.unused.size() == 1);
  CHECK(refused.unused.begin()->first ==
        "the adapters' dropout is no share below 1");
}

TEST_CASE("a program is known by a row's source, too") {
  const auto parsed = [](const std::string& source, const std::string& stack) {
    return ParseTable(
        "source,device,n_devices,model,seq_len,micro_batch,grad_accum,adapter,"
        "precision,framework,stack_notes,task,metric,value\n" +
            source + ",A100-SXM4-80GB,1,llama2-7b,2048,1,8,lora rank 64,bf16," +
            "HF PEFT," + stack + ",finetune,step_s,5\n",
        "d.csv");
  };
  const Table known = parsed("QwenLM/Qwen@2df8e8ac", "method LoRA");
  REQUIRE(known.observations.size() == 1);
  const model::Workload& w = known.observations[0].workload;
  CHECK(w.trainable.lora == model::LoraMatricesOf(w.architecture));
  const auto reason = [&](const std::string& source, const std::string& stack) {
    const Table table = parsed(source, stack);
    REQUIRE(table.unused.size() == 1);
    return table.unused.begin()->first;
  };
  CHECK(reason("someone", "method LoRA") ==
        "the adapters' matrices are not stated");
  CHECK(reason("QwenLM/Qwen@2df8e8ac", "method DoRA") == "not predicted: DoRA");
}

// Submissions to MLPerf whose notes are empty: the benchmark says the adapters,
// the base in 8 bits and what is computed again.
TEST_CASE("a source says what the notes do not") {
  const std::string header =
      "source,source_file,device,n_devices,model,seq_len,batch_per_device,"
      "grad_accum,global_batch,dp,tp,recompute,adapter,lora_rank,precision,"
      "framework,stack_notes,task,metric,value\n";
  const auto read = [&](std::string_view source, std::string_view layout) {
    return ParseTable(
        header +
            fmt::format("{},X/results/y/llama2_70b_lora,B200-SXM-180GB,16,"
                        "llama-2-70b,8192,1,{},lora,16,fp8,PyTorch,,finetune,"
                        "step_ms,1519.8\n",
                        source,
                        layout),
        "t.csv");
  };
  constexpr std::string_view kSubmission = "mlcommons/training_results_v5.0@0f";
  const Table table = read(kSubmission, "1,16,16,1,");
  REQUIRE(table.observations.size() == 1);
  const model::Workload& w = table.observations[0].workload;
  CHECK(w.stack.fusion == Fusion::kLightSeq);
  CHECK(w.trainable.lora.output);
  CHECK_FALSE(w.trainable.lora.feed_forward_in);
  CHECK(w.trainable.base_bits == 8);
  CHECK(w.gradient_checkpointing);
  CHECK(w.checkpointed_blocks == 21);
  CHECK(read("another", "1,16,16,1,").observations.empty());
  // 16 devices, 8 sequences: some devices share a model.
  CHECK(read(kSubmission, "1,8,,,")
            .unused.contains(
                "the global batch is less than its devices' micro-batches: "
                "how they share the model is not stated (columns tp, pp, cp)"));
}

// What the first row of one adapter's kind is read as.
Table TableOfAdapter(std::string_view adapter,
                     std::string_view modules,
                     std::string_view stack) {
  return ParseTable(
      fmt::format(
          "device,model,seq_len,batch_per_device,grad_accum,precision,adapter,"
          "lora_rank,target_modules,framework,stack_notes,task,metric,value\n"
          "H100-SXM5-80GB,llama2-7b,256,1,8,bfloat16,\"{}\",16,\"{}\",HF PEFT,"
          "\"{}\",finetune,step_s,1\n",
          adapter,
          modules,
          stack),
      "t.csv");
}

model::Trainable TrainableOf(std::string_view adapter,
                             std::string_view modules,
                             std::string_view stack) {
  const Table table = TableOfAdapter(adapter, modules, stack);
  CAPTURE(adapter);
  CAPTURE(modules);
  CAPTURE(stack);
  REQUIRE(table.observations.size() == 1);
  return table.observations[0].workload.trainable;
}

std::string ReasonOfAdapter(std::string_view adapter,
                            std::string_view modules,
                            std::string_view stack) {
  const Table table = TableOfAdapter(adapter, modules, stack);
  REQUIRE(table.unused.size() == 1);
  return table.unused.begin()->first;
}

TEST_CASE("what a base beside adapters has of bits is said in three places") {
  const auto bits = [](std::string_view adapter, std::string_view stack) {
    return TrainableOf(adapter, "all", stack).base_bits;
  };
  CHECK(bits("lora", "") == 0);
  CHECK(bits("qlora", "") == 4);
  CHECK(bits("lora 4bit", "") == 4);
  CHECK(bits("lora (int4 base)", "") == 4);
  CHECK(bits("lora 8-bit", "") == 8);
  CHECK(bits("qlora-8bit", "") == 8);
  CHECK(bits("qlora-bnb-nf4", "") == 4);
  CHECK(bits("lora", "load_in_4bit") == 4);
  CHECK(bits("lora", "load_in_4bit=False") == 0);
  CHECK(bits("lora", "NF4 base") == 4);
  CHECK(bits("lora", "QLoRA") == 4);
  CHECK(bits("lora", "8-bit base") == 8);
  CHECK(bits("lora", "adamw_8bit") == 0);
  CHECK(ReasonOfAdapter("lora (adalora)", "all", "") ==
        "not predicted: adapters lora (adalora) (\"adalora\" of it)");
  CHECK(ReasonOfAdapter("lora", "all", "GPTQ base")
            .starts_with("a base of few bits in words"));
}

TEST_CASE("each name of a list of matrices has to be known") {
  const auto lora = [](std::string_view modules, std::string_view stack) {
    return TrainableOf("lora", modules, stack).lora;
  };
  const model::LoraMatrices all = lora("all-linear", "");
  CHECK(lora("qkv_proj,o_proj,gate_up_proj,down_proj", "") == all);
  CHECK(lora("q_proj,k_proj,v_proj,output_proj,w1,w2,w3", "") == all);
  CHECK(lora("['model.layers.0.self_attn.q_proj']", "") == lora("q_proj", ""));
  CHECK(lora("", "target_modules=q_proj and v_proj") ==
        lora("q_proj v_proj", ""));
  CHECK_FALSE(lora("o_proj", "").value);
  CHECK(ReasonOfAdapter("lora", "q_proj,lm_head", "") ==
        "not predicted: adapters beside lm_head (target_modules)");
  CHECK(ReasonOfAdapter("lora", "", "target_modules=q_proj,embed_tokens; x") ==
        "not predicted: adapters beside embed_tokens (target_modules)");
}

}  // namespace
}  // namespace trainfare::calibrate
