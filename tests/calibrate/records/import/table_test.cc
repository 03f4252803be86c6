#include "calibrate/records/import/table.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_file.h"
#include "calibrate/fit/joined_devices.h"
#include "calibrate/fit/own_figures.h"
#include "calibrate/fit/rank_step.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/engine_profile.h"
#include "calibrate/records/import/observation_files.h"
#include "calibrate/records/import/observations.h"
#include "calibrate/records/import/published_reader.h"
#include "calibrate/records/import/published_records.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/validate.h"
#include "tests/shared_data.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

using model::Fusion;
using model::Head;
using model::InputError;
using model::OptimizerImplementation;
using model::OptimizerKind;
using model::Work;

const fs::path kFits = fs::path(TRAINFARE_ROOT) / "calibrate" / "fits";

const std::string kHeader =
    "source,source_file,system_name,device,n_devices,nodes,model,hidden,layers,"
    "heads,intermediate,vocab,seq_len,batch_per_device,grad_accum,precision,"
    "framework,stack_notes,task,metric,value,notes\n";

Table Parse(const std::string& rows) {
  return ParseTable(kHeader + rows, "t.csv");
}

Observation One(const std::string& row) {
  const Table table = Parse(row + "\n");
  CAPTURE(row);
  REQUIRE(table.observations.size() == 1);
  return table.observations[0];
}

std::string Reason(const std::string& row) {
  const Table table = Parse(row + "\n");
  CAPTURE(row);
  REQUIRE(table.unused.size() == 1);
  CHECK(table.observations.empty());
  return table.unused.begin()->first;
}

// MLPerf's BERT: sequences of 512 hold 254.2 real tokens in the mean. Packed
// rows hold two; 48 of them on 8 devices are 768 sequences a step.
TEST_CASE("packed and unpadded sequences have their real lengths") {
  const std::string header =
      "source,device,n_devices,nodes,model,hidden,layers,heads,intermediate,"
      "vocab,seq_len,batch_per_device,grad_accum,sharding,precision,framework,"
      "stack_notes,task,metric,value,tokens_per_sample,notes\n";
  const auto parse = [&](const std::string& stack,
                         const std::string& metric,
                         const std::string& notes) {
    const Table table = ParseTable(
        header +
            "mlperf,H100-SXM5-80GB,8,1,bert-large,1024,24,16,4096,30522,512,48,"
            "1,,fp8,NGC 23.09," +
            stack + ",pretrain," + metric + ",254.2," + notes + "\n",
        "t.csv");
    REQUIRE(table.observations.size() == 1);
    return table.observations[0];
  };
  const Observation packed = parse("MLPerf BERT; LAMB; packed 512-token rows",
                                   "step_ms,96",
                                   "packed: a row of 512 holds 1.999");
  CHECK(packed.workload.precision == model::Precision::kFp8);
  CHECK(packed.workload.sequence_length == 512);
  CHECK(packed.workload.documents == 2);
  CHECK(packed.workload.predictions_per_sequence == 160);
  CHECK(packed.workload.optimizer.kind == OptimizerKind::kLamb);
  CHECK(packed.workload.stack.fusion == Fusion::kGraphs);
  CHECK(packed.workload.parallel.shard == model::Shard::kZero1);
  CHECK(ToSeconds(packed.measured) == doctest::Approx(0.096));
  const Observation rate = parse("MLPerf BERT; LAMB; packed 512-token rows",
                                 "sequences_per_s,8000",
                                 "packed: a row of 512 holds 1.999");
  CHECK(ToSeconds(rate.measured) == doctest::Approx(768.0 / 8000.0));
  const Observation bare = parse(
      "MLPerf BERT; LAMB; unpadded (one sequence a row)", "step_ms,96", "");
  CHECK(bare.workload.sequence_length == 254);
  CHECK(bare.workload.documents == 1);
}

// 10,000 of 150,000 sequences evaluated by a third of a step's FLOPs are 2.2 %
// of the time, twice that where two are trained as one row. Half of 512 tokens
// is padding, which NVIDIA's implementation removes; of others nobody says.
TEST_CASE("MLPerf's BERT of rounds whose logs say little") {
  const auto table = [](const std::string& framework,
                        const std::string& batch,
                        const std::string& rest) {
    return ParseTable(
        "source,source_file,device,n_devices,nodes,model,seq_len,"
        "batch_per_device,precision,framework,stack_notes,task,metric,value,"
        "tokens_per_sample,notes\n"
        "mlcommons/training_results_v1.1@ebe92f81,Dell/results/r750xa/bert,"
        "NVIDIA A100-SXM4-80GB (400W),8,1,bert-large,512," +
            batch + ",fp16," + framework + "," + rest + "\n",
        "t.csv");
  };
  const std::string notes =
      "MLPerf Training v1.1 BERT-large; LAMB,pretrain,sequences_per_s,2240,,"
      "batch_per_device = global/n; accumulation not logged; includes "
      "evaluation time";
  const Table whole = table("PyTorch NVIDIA Release 21.09", "56", notes);
  REQUIRE(whole.observations.size() == 1);
  const Observation& run = whole.observations[0];
  CHECK(run.workload.sequence_length == 254);
  CHECK(run.workload.accumulation == 1);
  CHECK(run.device == "a100_sxm4_80gb");
  // Each submitter has hosts and software of its own.
  CHECK(run.source == "mlcommons/training_results_v1.1/dell");
  CHECK(ToSeconds(run.measured) == doctest::Approx(0.2 / (1 + 1.0 / 45)));

  // 3072 sequences a step: each 7 x 25,000 of 150,000 + 11.5 x 3072.
  const Table large = table("NGC 21.09", "384", notes);
  REQUIRE(large.observations.size() == 1);
  CHECK(ToSeconds(large.observations[0].measured) ==
        doctest::Approx(3072.0 / 2240 / (1 + 10.0 / 175 / 3)));

  const auto reason = [](const Table& unused) {
    REQUIRE(unused.unused.size() == 1);
    return unused.unused.begin()->first;
  };
  CHECK(reason(table(
            "PyTorch", "56", notes + "; packing or unpadding not stated")) ==
        "samples of unequal length: real length not known");
  CHECK(reason(table("TensorFlow 2.5.1", "56", notes)) ==
        "unpadded or packed sequences: real length not known");
  CHECK(reason(table("PopART",
                     "0.75",
                     notes + "; model is pipelined; so global/n/accum is not a "
                             "real per-device micro-batch")) ==
        "a pipeline whose micro-batch is not stated");
  CHECK(reason(table("PyTorch",
                     "56",
                     "x,pretrain,sequences_per_s_incl_eval,2240,,"
                     "batch_per_device = global/n")) ==
        "holds evaluations besides steps");

  const Table packed = table("PyTorch",
                             "28",
                             "MLPerf BERT; LAMB; packed rows,pretrain,"
                             "sequences_per_s_incl_eval,2240,254.2,packed: a "
                             "row of 512; batch_per_device = global/n");
  REQUIRE(packed.observations.size() == 1);
  CHECK(packed.observations[0].workload.documents == 2);
  CHECK(ToSeconds(packed.observations[0].measured) ==
        doctest::Approx(0.2 / (1 + 2.0 / 45)));
}

TEST_CASE("a run that was listed before is read once") {
  const Table table = ParseTable(
      "device,model,seq_len,batch_per_device,precision,framework,task,metric,"
      "value,copy_of\n"
      "A10G,bert-large,128,4,fp16,PyTorch,finetune,step_ms,90,\n"
      "A10G,bert-large,128,8,fp16,PyTorch,finetune,step_ms,90,round v3.0\n",
      "t.csv");
  REQUIRE(table.observations.size() == 1);
  CHECK(table.observations[0].workload.batch == 4);
  REQUIRE(table.unused.size() == 1);
  CHECK(table.unused.begin()->first == "a run that was listed before");
}

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

// 88,500 samples in steps of 32: 910 s are 0.329 s a step.
TEST_CASE("epochs and power of a run within a limit") {
  const std::string header =
      "source,device,n_devices,model,hidden,layers,heads,intermediate,vocab,"
      "seq_len,batch_per_device,precision,framework,stack_notes,task,metric,"
      "value,power_limit_w,notes\n";
  const auto row = [](const std::string& metric,
                      const std::string& value,
                      const std::string& limit,
                      const std::string& notes) {
    return "zeus,A40,1,bert-base,768,12,12,3072,30522,384,32,,PyTorch,squad,"
           "finetune," +
           metric + "," + value + "," + limit + "," + notes + "\n";
  };
  const std::string known =
      "fp32 or tf32; about 88.5 k features an epoch (inferred)";
  const Table table = ParseTable(header + row("epoch_s", "910", "300", known) +
                                     row("avg_power_w", "267", "300", known) +
                                     row("epoch_s", "1157", "175", known) +
                                     row("avg_power_w", "167", "175", known),
                                 "t.csv");
  REQUIRE(table.observations.size() == 2);
  REQUIRE(table.powers.size() == 2);
  const Observation& first = table.observations[0];
  CHECK(ToSeconds(first.measured) == doctest::Approx(910.0 * 32 / 88'500));
  CHECK(first.workload.precision == model::Precision::kTf32);
  CHECK(first.workload.power_limit.base() == 300);
  CHECK(Describe(first.workload).ends_with(" within 300 W"));
  for (size_t i = 0; i < 2; ++i) {
    CHECK(table.powers[i].label == table.observations[i].label);
    CHECK(table.powers[i].workload == table.observations[i].workload);
  }
  CHECK(table.powers[0].label != table.powers[1].label);
  CHECK(table.powers[1].measured.base() == 167);
  const auto reason = [&](const std::string& one) {
    return ParseTable(header + one, "t.csv").unused.begin()->first;
  };
  CHECK(reason(row("epoch_s", "910", "300", "fp32 or tf32")) ==
        "an epoch whose samples are not stated");
  CHECK(reason(row("epoch_s", "910", "300", "88.5 k features an epoch")) ==
        "precision not stated");
  CHECK(reason(row("avg_power_w", "267", "300", known)) ==
        "power of a run whose time is not there");
  CHECK_THROWS_WITH_AS(
      ParseTable(header + row("epoch_s", "910", "-5", known), "t.csv"),
      "t.csv:2: power_limit_w: expected watts above 0, at most 1000000, got "
      "\"-5\"",
      model::InputError);
}

TEST_CASE("precisions by the words that people use") {
  const auto parse = [](const std::string& precision) {
    return Parse(
        "o/r@1,readme,s,NVIDIA A100 80GB PCIe,1,1,Llama 3.1 8B,,,,,,512,1,1," +
        precision + ",PyTorch,,finetune,step_ms,9000,\n");
  };
  for (const auto& said : std::vector<std::pair<const char*, model::Precision>>{
           {"bf16", model::Precision::kBf16},
           {"BF16", model::Precision::kBf16},
           {"bfloat16", model::Precision::kBf16},
           {"bf16-mixed", model::Precision::kBf16},
           {"FP16", model::Precision::kFp16},
           {"half", model::Precision::kFp16},
           {"16-mixed", model::Precision::kFp16},
           {"TF32", model::Precision::kTf32},
           {"float32", model::Precision::kFp32}}) {
    CAPTURE(said.first);
    const Table table = parse(said.first);
    REQUIRE(table.observations.size() == 1);
    const Observation& o = table.observations[0];
    CHECK(o.workload.precision == said.second);
    CHECK(o.device == "a100_pcie_80gb");
    CHECK(o.workload.architecture.name == "llama-3.1-8b");
  }
  CHECK(parse("AMP").unused.contains("not predicted: precision AMP"));
}

TEST_CASE("a framework that is not known is refused, not called eager") {
  const auto parse = [](const std::string& framework,
                        const std::string& stack) {
    return Parse(
        "o/r@1,readme,s,T4,1,1,bert-base,768,12,12,3072,30522,128,8,1,"
        "fp32," +
        framework + "," + stack + ",finetune,step_ms,100,\n");
  };
  for (const char* known :
       {"", "HF Transformers", "TensorFlow 2.8", "maxtext"}) {
    CAPTURE(known);
    CHECK(parse(known, "").observations.size() == 1);
  }
  CHECK(parse("Alpa", "").unused.contains("framework Alpa is not known"));
  CHECK(parse("Alpa", "on PyTorch").observations.size() == 1);
  CHECK(parse("Alpa", "XLA").observations.at(0).workload.stack.fusion ==
        Fusion::kXla);
}

TEST_CASE("a throughput becomes the time of a step, by hand") {
  // 32 sequences a device, 128 micro-batches, 8 devices at 387 sequences/s:
  // 32768 / 387 s. Length 128: 20 masked positions.
  const Observation o =
      One("owner/"
          "table@1f2e,readme,DGX-1,V100-SXM2-32GB,8,1,bert-large,1024,24,16,"
          "4096,30522,"
          "128,32,128,fp32,PyTorch,NGC; LAMB (fused; apex),pretrain,"
          "sequences_per_s,387,n");
  CHECK(model::ToSeconds(o.measured) ==
        doctest::Approx(32768.0 / 387.0).epsilon(1e-12));
  CHECK(o.device == "v100_sxm2_32gb");
  CHECK(o.device_count == 8);
  CHECK(o.quantity == Quantity::kStep);
  CHECK(o.label == "t.csv:2");
  CHECK(o.group == "t");
  CHECK(o.source == "owner/table");
  CHECK(o.framework == "PyTorch");
  CHECK(o.workload.batch == 32);
  CHECK(o.workload.accumulation == 128);
  CHECK(o.workload.architecture.head == Head::kPreTraining);
  // With Apex the head predicts at every position.
  CHECK(o.workload.predictions_per_sequence == 0);
  CHECK(o.workload.optimizer.kind == OptimizerKind::kLamb);
  CHECK(o.workload.stack.fusion == Fusion::kEager);
}

// Rows of tables of today's decoders.
const std::string kDecoderHeader =
    "device,n_devices,model,hidden,layers,heads,kv_heads,intermediate,vocab,"
    "seq_len,micro_batch,grad_accum,global_batch,dp,tp,pp,sharding,recompute,"
    "precision,adapter,lora_rank,framework,stack_notes,task,metric,value,"
    "notes\n";

Table ParseDecoder(const std::string& rows) {
  return ParseTable(kDecoderHeader + rows, "d.csv");
}

std::string ReasonOfDecoder(const std::string& row) {
  const Table table = ParseDecoder(row + "\n");
  CAPTURE(row);
  REQUIRE(table.unused.size() == 1);
  CHECK(table.observations.empty());
  CHECK(table.memory.empty());
  return table.unused.begin()->first;
}

TEST_CASE("a decoder's row says blocks, adapters, recomputation, weights") {
  // 4 x 4096 tokens over 3300 tokens/s.
  const Table table = ParseDecoder(
      "A100-SXM4-80GB,1,mistral-7b,4096,32,32,8,14336,32000,4096,4,1,,,1,1,,"
      "full,fp16,qlora-bnb-nf4,16,HF Trainer,flash attention 2,finetune,"
      "tokens_per_s,3300,LoRA on q_proj k_proj v_proj o_proj\n");
  REQUIRE(table.observations.size() == 1);
  const Observation& o = table.observations[0];
  CHECK(model::ToSeconds(o.measured) ==
        doctest::Approx(4.0 * 4096.0 / 3300.0).epsilon(1e-12));
  const model::Workload& w = o.workload;
  CHECK(w.architecture.vocabulary == 32000);
  CHECK(w.architecture.key_heads() == 8);
  CHECK(w.architecture.gated);
  CHECK(w.gradient_checkpointing);
  CHECK(w.trainable.lora_rank == 16);
  CHECK(w.trainable.base_bits == 4);
  CHECK(w.trainable.lora.output);
  CHECK_FALSE(w.trainable.lora.feed_forward_in);
  CHECK(w.stack.attention == model::Attention::kFlash);
  CHECK(w.stack.narrow_weights);
  CHECK(w.optimizer.implementation == OptimizerImplementation::kMultiTensor);
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

TEST_CASE("a row says what waits in the host's memory") {
  const auto row = [](std::string_view stack) {
    return fmt::format(
        "A100-SXM4-80GB,2,mistral-7b,4096,32,32,8,14336,32000,4096,4,1,,,1,1,"
        "fsdp,full,bf16,,,HF Trainer,{},finetune,tokens_per_s,3300,n\n",
        stack);
  };
  const auto parallel = [&](std::string_view stack) {
    const Table table = ParseDecoder(row(stack));
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.parallel;
  };
  CHECK(parallel("packed").offload == model::Offload::kNone);
  const model::Parallel parameters =
      parallel("FSDP full shard; CPU offload of parameters");
  CHECK(parameters.offload == model::Offload::kParameters);
  CHECK_FALSE(parameters.offload_activations);
  CHECK(parallel("CPU offload of parameters and activations")
            .offload_activations);
  const model::Parallel activations = parallel(
      "cumulative: Activation "
      "Offloading");
  CHECK(activations.offload == model::Offload::kNone);
  CHECK(activations.offload_activations);
  CHECK(ReasonOfDecoder(row("Unsloth: with offload")) ==
        "not predicted: what is offloaded is not stated");
}

TEST_CASE("recipes over ranks compute again what a row does not state") {
  const auto again = [](std::string_view sharding,
                        std::string_view recompute,
                        std::string_view framework) {
    const Table table = ParseDecoder(fmt::format(
        "A100-SXM4-80GB,2,mistral-7b,4096,32,32,8,14336,32000,4096,4,1,,,1,1,"
        "{},{},bf16,,,{},packed data,finetune,tokens_per_s,3300,n\n",
        sharding,
        recompute,
        framework));
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.gradient_checkpointing;
  };
  CHECK(again("fsdp", "", "torchtune"));
  CHECK_FALSE(again("none", "", "torchtune"));
  CHECK_FALSE(again("fsdp", "none", "torchtune"));
  CHECK_FALSE(again("fsdp", "", "HF Trainer"));
}

TEST_CASE("a row says how many blocks are computed again") {
  const auto row = [](std::string_view recompute) {
    return fmt::format(
        "A100-SXM4-80GB,1,mistral-7b,4096,32,32,8,14336,32000,4096,4,1,,,1,1,,"
        "{},bf16,,,HF Trainer,flash attention 2,finetune,tokens_per_s,3300,n",
        recompute);
  };
  const Table table = ParseDecoder(row("full 21 layers") + "\n");
  REQUIRE(table.observations.size() == 1);
  CHECK(table.observations[0].workload.gradient_checkpointing);
  CHECK(table.observations[0].workload.checkpointed_blocks == 21);
  for (const char* odd : {"full layers",
                          "full 0 layers",
                          "full 2.5 layers",
                          "full 1e9 layers",
                          "full -1 layers",
                          "selective"}) {
    CHECK(ReasonOfDecoder(row(odd)) ==
          fmt::format("not predicted: recomputation {}", odd));
  }
  // More than there are.
  CHECK_THROWS_WITH_AS(
      ParseDecoder(row("full 33 layers") + "\n"),
      "d.csv:2: checkpointed_blocks: expected a count of at most 32, got 33",
      InputError);
}

// Of a ring that gets 235 of 300: the network that would give it so much.
TEST_CASE("an all-reduce that was measured beside says what joins the hosts") {
  const Table table = ParseTable(
      "device,n_devices,nodes,model,hidden,layers,heads,seq_len,micro_batch,"
      "grad_accum,sharding,precision,framework,task,metric,value,"
      "bw_allreduce_gbs\n"
      "A100-SXM4-80GB,16,2,llama2-7b,,,,512,1,1,none,bf16,nanotron,pretrain,"
      "step_s,1,94\n",
      "d.csv");
  REQUIRE(table.observations.size() == 1);
  CHECK(table.observations[0].network->base() ==
        doctest::Approx(94e9 * 300 / 235));
}

TEST_CASE("a row says on how many hosts, and what joins them") {
  const auto row = [](std::string_view nodes, std::string_view stack) {
    return fmt::format(
        "src,readme,DGX-1,V100-SXM2-32GB,16,{},bert-large,1024,24,16,4096,"
        "30522,128,32,1,fp32,PyTorch,\"{}\",pretrain,sequences_per_s,387,n",
        nodes,
        stack);
  };
  const Observation four =
      One(row("2", "x; 4 x 100 Gbit/s RoCE between nodes"));
  CHECK(four.hosts == 2);
  CHECK(four.network->base() == doctest::Approx(50e9));
  CHECK(One(row("2", "a 16, InfiniBand 100 Gbit/s between nodes"))
            .network->base() == doctest::Approx(12.5e9));
  CHECK_FALSE(One(row("2", "fast between nodes")).network.has_value());
  CHECK(One(row("1", "100 Gbit/s between nodes")).hosts == 1);
  // Where a table has no column for them, adapters stand in the notes.
  CHECK(One(row("2",
                "MLPerf; intra-node: NVLINK 600GB/s; host network: Management: "
                "1x Ethernet 40Gb/Sec  Compute: 8x IB HDR 200Gb/Sec"))
            .network->base() == doctest::Approx(200e9));
  CHECK_THROWS_AS(Parse(row("3", "x") + "\n"), InputError);
}

TEST_CASE("a host's adapters are its network") {
  const auto network = [](const std::string& adapters) {
    const Table table = ParseTable(
        "device,n_devices,nodes,model,seq_len,batch_per_device,precision,"
        "framework,stack_notes,task,metric,value,notes,host_network\n"
        "V100-SXM2-32GB,16,2,bert-large,128,4,fp32,PyTorch,x,finetune,step_ms,"
        "900,,\"" +
            adapters + "\"\n",
        "t.csv");
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].network;
  };
  CHECK(network("4x ConnectX-7 IB NDR 400Gb/Sec")->base() ==
        doctest::Approx(200e9));
  CHECK(network("Storage: 2x BF3 400Gb/s, Compute: 8 x ConnectX - 7 IB NDR 400 "
                "Gb / Sec, Management: 100Gb/s Ethernet NIC")
            ->base() == doctest::Approx(400e9));
  CHECK(
      network("1x Ethernet 40Gb/Sec  8x ConnectX-6 IB HDR 200Gb/Sec")->base() ==
      doctest::Approx(200e9));
  CHECK_FALSE(network("Infiniband, Ethernet").has_value());
  CHECK_FALSE(network("xGb, 100 Gb/s").has_value());
  CHECK_FALSE(network("").has_value());
}

TEST_CASE("weights that are all of 16 bits have no masters") {
  const Table table = ParseDecoder(
      "H100-SXM5-80GB,1,llama-1.34B,2048,16,32,32,8192,131072,4096,2,,16,1,1,"
      "1,none,none,bf16,none,,HF Trainer,flash attention,pretrain,"
      "tokens_per_s_per_device,1000,weights all bfloat16\n");
  REQUIRE(table.observations.size() == 1);
  const model::Workload& w = table.observations[0].workload;
  CHECK(w.optimizer.masters == model::Masters::kNone);
  CHECK(w.stack.narrow_weights);
  // There are 16 sequences a step on one replica, two at a time.
  CHECK(w.accumulation == 8);
  CHECK(w.architecture.layers == 16);
  CHECK(w.architecture.head_size == 0);
}

TEST_CASE("memory is read apart from times") {
  const std::string front =
      "A100-SXM4-80GB,1,llama2-7b,,,,,,,512,1,1,,,1,1,none,none,bf16,none,,"
      "PyTorch,,finetune,";
  const Table table =
      ParseDecoder(front + "peak_memory_gib,20.5,\n" + front + "oom,1,\n" +
                   front + "nvidia_smi_memory_gib,22,\n");
  CHECK(table.observations.empty());
  REQUIRE(table.memory.size() == 3);
  CHECK(table.memory[0].figure == MemoryFigure::kAllocated);
  CHECK(table.memory[0].measured.base() == 20.5 * 1024 * 1024 * 1024);
  CHECK(table.memory[0].label == "d.csv:2");
  CHECK(table.memory[1].figure == MemoryFigure::kOutOfMemory);
  CHECK(table.memory[2].figure == MemoryFigure::kUsed);
  CHECK(table.memory[2].workload.architecture.name == "llama-2-7b");
}

TEST_CASE("ranks that share the state of a decoder say how") {
  const std::string model =
      "A100-SXM4-80GB,8,llama2-7b,,,,,,,4096,1,1,8,8,1,1,";
  const std::string rest = ",none,bf16,none,,PyTorch,,pretrain,step_s,1,\n";
  for (const auto& expected :
       {std::pair{"none", model::Shard::kNone},
        std::pair{"zero1", model::Shard::kZero1},
        std::pair{"zero3", model::Shard::kZero3},
        std::pair{"fsdp full_shard", model::Shard::kFsdp}}) {
    const std::string word = expected.first;
    const model::Shard shard = expected.second;
    CAPTURE(word);
    const Table table = ParseDecoder(model + word + rest);
    REQUIRE(table.observations.size() == 1);
    const Observation& o = table.observations[0];
    CHECK(o.device_count == 8);
    CHECK(o.workload.parallel.shard == shard);
    CHECK(o.workload.parallel.data == (shard == model::Shard::kNone ? 0 : 8));
  }
  CHECK(ReasonOfDecoder(model + "hybrid" + rest.substr(0, rest.size() - 1)) ==
        "not predicted: hybrid over ranks");
  CHECK(ReasonOfDecoder(model + rest.substr(0, rest.size() - 1)) ==
        "how its devices share the model is not stated");
}

TEST_CASE("what of a decoder's row is not predicted says so") {
  const std::string model = "A100-SXM4-80GB,8,llama2-7b,,,,,,,4096,1,1,8,8,";
  CHECK(ReasonOfDecoder(model +
                        "2,1,none,none,bf16,none,,PyTorch,,pretrain,step_s,1,"
                        "") == "not predicted: tensor parallel");
  CHECK(ReasonOfDecoder(
            model + "1,1,none,selective,bf16,none,,PyTorch,,pretrain,"
                    "step_s,1,") == "not predicted: recomputation selective");
  CHECK(ReasonOfDecoder(model +
                        "1,1,none,none,nvfp4,none,,PyTorch,,pretrain,step_s,"
                        "1,") == "not predicted: precision nvfp4");
  CHECK(ReasonOfDecoder(model +
                        "1,1,none,none,bf16,ia3,,PyTorch,,pretrain,step_s,1,"
                        "") == "not predicted: adapters ia3");
  CHECK(ReasonOfDecoder(
            model + "1,1,none,none,bf16,lora rank 8,,PyTorch,,finetune,"
                    "step_s,1,") == "the adapters' matrices are not stated");
  CHECK(ReasonOfDecoder(model + "1,1,none,none,bf16,none,,PyTorch,,finetune,"
                                "tflops_per_device,100,")
            .starts_with("metric tflops_per_device: a rate in FLOPs"));
  CHECK(ReasonOfDecoder(model +
                        "1,1,none,none,bf16,none,,PyTorch,,finetune,step_s,1,"
                        "samples are shorter") ==
        "samples of unequal length: real length not known");
}

TEST_CASE("a batch that its replicas do not divide is another reason") {
  CHECK(
      ReasonOfDecoder("A100-SXM4-80GB,8,llama2-7b,,,,,,,4096,1,,13,8,1,1,none,"
                      "none,bf16,none,,PyTorch,,pretrain,step_s,1,") ==
      "the global batch does not divide over its replicas");
}

TEST_CASE("a split is said before a model that is not known") {
  CHECK(ReasonOfDecoder("A100-SXM4-80GB,8,nobody's,,,,,,,4096,1,1,8,1,8,1,none,"
                        "none,bf16,none,,PyTorch,,pretrain,step_s,1,") ==
        "not predicted: tensor parallel");
}

TEST_CASE("updates that ranks divide though nothing is sharded") {
  const auto shard = [](const std::string& sharding, const std::string& words) {
    const Table table = ParseDecoder(
        "A100-SXM4-80GB,8,llama2-7b,,,,,,,4096,1,1,8,8,1,1," + sharding +
        ",none,bf16,none,,PyTorch," + words + ",pretrain,step_s,1,\n");
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.parallel.shard;
  };
  CHECK(shard("none", "distributed Muon") == model::Shard::kZero1);
  CHECK(shard("fsdp", "distributed Muon") == model::Shard::kFsdp);
  CHECK(shard("none", "Muon") == model::Shard::kNone);
  CHECK(shard("fsdp", "Adafactor") == model::Shard::kFsdp);
}

TEST_CASE("ranks that share state may sum gradients in 16 bits") {
  const auto compression = [](const std::string& sharding,
                              const std::string& words) {
    const Table table = ParseDecoder(
        "A100-SXM4-80GB,8,llama2-7b,,,,,,,4096,1,1,8,8,1,1," + sharding +
        ",none,bf16,none,,PyTorch," + words + ",pretrain,step_s,1,\n");
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.compression.kind;
  };
  using model::CompressionKind;
  CHECK(compression("fsdp", "mixed precision PURE") == CompressionKind::kHalf);
  CHECK(compression("fsdp", "mixed precision DEFAULT") ==
        CompressionKind::kNone);
  CHECK(compression("none", "mixed precision PURE") == CompressionKind::kNone);
}

TEST_CASE("a program that pads its vocabulary is known") {
  const auto vocabulary = [](const std::string& words) {
    const Table table = ParseDecoder(
        "A100-SXM4-80GB,1,bert-large,1024,24,16,,4096,30522,128,8,1,8,1,1,1,"
        "none,none,fp16,none,,PyTorch," +
        words + ",pretrain,step_s,1,\n");
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.architecture.vocabulary;
  };
  CHECK(vocabulary("NGC pytorch:20.06-py3; LAMB (fused; apex); MLM+NSP") ==
        30528);
  CHECK(vocabulary("LAMB; MLM+NSP") == 30522);
}

TEST_CASE("words of an optimizer are read") {
  const auto optimizer = [](const std::string& words) {
    const Table table = ParseDecoder(
        "A100-SXM4-80GB,8,llama2-7b,,,,,,,4096,1,1,8,8,1,1,none,none,bf16,none,"
        ",PyTorch," +
        words + ",pretrain,step_s,1,\n");
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.optimizer.kind;
  };
  CHECK(optimizer("Adam + Muon") == model::OptimizerKind::kMuon);
  CHECK(optimizer("Adafactor") == model::OptimizerKind::kAdafactor);
  CHECK(optimizer("apex FusedLAMB") == model::OptimizerKind::kLamb);
  CHECK(optimizer("AdamW") == model::OptimizerKind::kAdamW);
}

TEST_CASE("words of a stack say what of it is its own") {
  const auto read = [](std::string_view recompute, std::string_view stack) {
    const Table table = ParseDecoder(fmt::format(
        "A100-SXM4-80GB,8,llama2-7b,,,,,,,4096,1,1,8,8,1,1,fsdp,{},bf16,none,,"
        "{},pretrain,step_s,1,\n",
        recompute,
        stack));
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload;
  };
  const model::Workload operations = read(
      "selective", "torchtitan (PyTorch FSDP2),selective op checkpointing");
  CHECK(operations.operation_checkpointing);
  CHECK_FALSE(operations.gradient_checkpointing);
  const model::Workload blocks = read(
      "selective", "torchtitan (PyTorch FSDP2),selective layer checkpointing");
  CHECK(blocks.gradient_checkpointing);
  CHECK(blocks.checkpointed_blocks == 16);
  CHECK(read("selective", "Megatron-LM,x").attention_checkpointing);
  const auto scaled = [](std::string_view precision, std::string_view stack) {
    const Table table = ParseDecoder(fmt::format(
        "H100-SXM5-80GB,8,llama2-7b,,,,,,,4096,1,1,8,8,1,1,fsdp,full,{},none,,"
        "{},pretrain,step_s,1,\n",
        precision,
        stack));
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.fp8;
  };
  using enum model::Fp8Scaling;
  CHECK(scaled("fp8", "NeMo / Megatron-Core,x") == model::Fp8{});
  CHECK(scaled("fp8", "NeMo / Megatron-Core,FP8 current scaling").scaling ==
        kTensor);
  CHECK(scaled("mxfp8", "NeMo / Megatron-Core,x").scaling == kBlocks);
  CHECK(scaled("fp8", "torchtitan + torchao,float8 linear").scaling == kTensor);
  CHECK(scaled("fp8",
               "torchtitan + torchao,float8 tensorwise with float8 "
               "all-gather") == model::Fp8{kTensor, true, true});
  CHECK(scaled("fp8", "torchtitan + torchao,float8 rowwise_with_gw_hp") ==
        model::Fp8{kRows, false, false});
  CHECK(scaled("bf16", "torchtitan + torchao,x") == model::Fp8{});
  const model::Workload foundry =
      read("none", "Composer/llm-foundry (PyTorch FSDP),FlashAttention");
  CHECK(foundry.stack.attention == model::Attention::kFlash1);
  CHECK(foundry.stack.loss == model::LossKernels::kFused);
  const model::Workload other = read("none", "nanotron,x");
  CHECK(other.stack.attention == model::Attention::kFlash);
  CHECK(other.stack.loss == model::LossKernels::kOfStack);
  CHECK(read("none", "PyTorch,Adam + 8-bit AdamW").optimizer.state_bits == 8);
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
            .unused.contains("how its devices share the model is not stated"));
}

TEST_CASE("of several rates of one run the first in the order is used") {
  const std::string front =
      "A100-SXM4-80GB,1,llama2-7b,,,,,,,512,1,1,,,1,1,none,none,bf16,none,,"
      "PyTorch,,finetune,";
  const Table table =
      ParseDecoder(front + "samples_per_s,2,\n" + front + "steps_per_s,2,\n");
  REQUIRE(table.observations.size() == 1);
  CHECK(model::ToSeconds(table.observations[0].measured) == 0.5);
  CHECK(table.unused.at("throughput of a run in another unit") == 1);
}

TEST_CASE("tokens a second count the length too") {
  const Observation o =
      One("src,f,s,T4-16GB,1,1,gpt2,,,,,,256,4,1,fp16,PyTorch,,finetune,"
          "tokens_per_s,2048,");
  CHECK(model::ToSeconds(o.measured) ==
        doctest::Approx(4.0 * 256.0 / 2048.0).epsilon(1e-12));
  CHECK(o.workload.architecture.head == Head::kCausalLanguageModel);
}

TEST_CASE("a step's parts and a step without optimizer") {
  const std::string front =
      "src,f,s,Tesla T4,1,1,bert_large,1024,24,16,4096,30522,512,8,1,fp32,"
      "PyTorch 2.1.0,HuggingFace eager attention; no fused attention,";
  const Observation inference =
      One(front + "inference,step_ms,1341.12,forward only; mean");
  CHECK(inference.workload.work == Work::kForward);
  CHECK(inference.quantity == Quantity::kStep);
  CHECK(inference.workload.architecture.head == Head::kSequenceClassification);
  CHECK(inference.workload.optimizer.kind == OptimizerKind::kNone);
  CHECK(model::ToSeconds(inference.measured) ==
        doctest::Approx(1.34112).epsilon(1e-12));

  const Observation both =
      One(front + "pretrain,step_ms,1350,forward+backward; no optimizer step");
  CHECK(both.workload.work == Work::kForwardBackward);
  CHECK(both.quantity == Quantity::kStep);
  CHECK(both.workload.architecture.head == Head::kPreTraining);
  // Hugging Face predicts at every position.
  CHECK(both.workload.predictions_per_sequence == 0);

  const Observation forward = One(
      front + "pretrain,step_ms,45,FORWARD ONLY part of the training step;");
  CHECK(forward.workload.work == Work::kForwardBackward);
  CHECK(forward.quantity == Quantity::kForward);
  const Observation backward = One(
      front + "pretrain,step_ms,90,BACKWARD ONLY part of the training step;");
  CHECK(backward.quantity == Quantity::kBackward);
}

TEST_CASE("words of the stack decide how the graph becomes kernels") {
  struct Case {
    const char* framework;
    const char* notes;
    const char* precision;
    Fusion fusion;
    OptimizerImplementation implementation;
  };
  const Case cases[] = {
      {"PyTorch",
       "NVIDIA DeepLearningExamples run_squad.py; apex FusedAdam + O2 AMP when "
       "fp16",
       "fp16",
       Fusion::kEager,
       OptimizerImplementation::kFused},
      {"PyTorch",
       "NVIDIA DeepLearningExamples run_squad.py; apex FusedAdam + O2 AMP when "
       "fp16",
       "fp32",
       Fusion::kEager,
       OptimizerImplementation::kForLoop},
      {"DeepSpeed",
       "DeepSpeed fused transformer kernels; SQuAD",
       "fp16",
       Fusion::kLightSeq,
       OptimizerImplementation::kFused},
      {"TensorFlow",
       "XLA + AMP; SQuAD v1.1 fine-tuning; Adam",
       "fp16",
       Fusion::kXla,
       OptimizerImplementation::kFused},
      {"PyTorch NeuronX",
       "Autocast:BF16+SR; optimizer AdamW",
       "bf16",
       Fusion::kCompiled,
       OptimizerImplementation::kFused},
      {"PyTorch (optimum-habana)",
       "task squad; HPU lazy or graph mode; fused AdamW",
       "bf16",
       Fusion::kCompiled,
       OptimizerImplementation::kFused},
      {"PyTorch",
       "HuggingFace; torch.compile (Inductor) fusion",
       "fp32",
       Fusion::kCompiled,
       OptimizerImplementation::kFused},
      {"PyTorch",
       "HuggingFace-style PyTorch BERT",
       "fp32",
       Fusion::kEager,
       OptimizerImplementation::kForLoop},
  };
  for (const Case& c : cases) {
    CAPTURE(c.notes);
    const Observation o = One(std::string("src,f,s,T4-16GB,1,1,bert-base,,,,,,"
                                          "384,4,,") +
                              c.precision + "," + c.framework + ",\"" +
                              c.notes + "\",finetune,samples_per_s,10,");
    CHECK(o.workload.stack.fusion == c.fusion);
    CHECK(o.workload.optimizer.implementation == c.implementation);
    CHECK(o.workload.accumulation == 1);
  }
}

TEST_CASE("rows that say nothing of a step here are counted by the reason") {
  const std::string v100 = "src,f,s,V100-SXM2-16GB,1,1,";
  const std::string tail = ",,,,,,384,4,1,fp16,PyTorch,,finetune,";
  CHECK(Reason(v100 + "bert-base" + tail + "time_to_train_s,10,") ==
        "metric time_to_train_s: a whole run, whose steps are not stated");
  CHECK(Reason(v100 + "transformer-xl-base" + tail + "tokens_per_s,10,") ==
        "model: Transformer-XL: recurrent memory, adaptive softmax");
  CHECK(Reason(v100 + "\"gnmt-v2 (LSTM, not a Transformer)\"" + tail +
               "tokens_per_s,10,") == "model: GNMT: an LSTM");
  CHECK(Reason(v100 + "switchxl4 (MoE)" + tail + "step_ms,10,") ==
        "model: mixture of experts");
  CHECK(Reason(v100 + "something" + tail + "step_ms,10,") ==
        "model: something is not known");
  CHECK(Reason(v100 + "bert-base" + tail + "step_ms,10,BINNED: x") ==
        "length-binned data: real length not known");
  CHECK(Reason(v100 + "bert-base" + tail +
               "step_ms,10,INCONSISTENT: x (trust throughput)") ==
        "inconsistent by its notes");
  CHECK(
      Reason(v100 +
             "bert-base,,,,,,128+512,4,1,fp16,PyTorch,,finetune,step_ms,9,") ==
      "sequence length is not one whole number");
  CHECK(
      Reason(v100 + "bert-base,,,,,,,4,1,fp16,PyTorch,,finetune,step_ms,9,") ==
      "sequence length not stated");
  CHECK(
      Reason(v100 +
             "bert-base,,,,,,128,22.75,1,fp16,PyTorch,,finetune,step_ms,9,") ==
      "batch per device is not one whole number");
  CHECK(Reason(v100 +
               "bert-base,,,,,,128,4,1,int8,PyTorch,,inference,step_ms,9,") ==
        "not predicted: precision int8");
  CHECK(Reason(v100 +
               "bert-base,,,,,,128,4,,fp16,PyTorch,,pretrain,step_ms,9,") ==
        "gradient accumulation not stated");
  CHECK(Reason("src,f,s,A100,8,1,gpt-3.6B,3072,30,32,,51200,2048,16,1,fp16,"
               "Megatron-LM,model parallel size 2 (tensor x pipeline),pretrain,"
               "step_ms,9,") == "tensor or pipeline parallel");
}

TEST_CASE("a system that names another device than its row is left out") {
  const auto named = [](const char* system, const char* device) {
    const Table table = Parse(std::string("s,f,") + system + "," + device +
                              ",1,1,bert-base,768,12,12,3072,30522,384,16,1,"
                              "fp16,PyTorch,,finetune,sequences_per_s,100,\n");
    if (table.unused.empty()) return std::string();
    return table.unused.begin()->first;
  };
  const std::string two = "system_name and device name two devices";
  CHECK(named("4xA4000", "GeForce RTX 3090") == two);
  CHECK(named("4xV100", "Quadro RTX 8000") == two);
  for (const auto& of_row :
       {std::pair{"4xA4000", "NVIDIA RTX A4000"},
        std::pair{"2xQuadroRTX8000NVlink_trt", "Quadro RTX 8000"},
        std::pair{"LambdaCloud_8xV10016G", "Tesla V100-SXM2-16GB"},
        std::pair{"dgxh100_n8", "NVIDIA H100 80GB HBM3"},
        std::pair{"LambdaOD_1xH100_80GB_192-222-52-83_v2",
                  "NVIDIA H100 80GB HBM3"},
        std::pair{"p3.16xlarge", "Tesla V100-SXM2-16GB"},
        std::pair{"ESC4000A-E11", "NVIDIA A100-PCIE-40GB"},
        std::pair{"4xA4000", "a device that no file names"},
        std::pair{"", "GeForce RTX 3090"}}) {
    CAPTURE(of_row.first);
    CHECK(named(of_row.first, of_row.second).empty());
  }
}

TEST_CASE("a throughput with INCONSISTENT latency is the one to trust") {
  const Observation o =
      One("src,f,s,T4-16GB,1,1,bert-base,,,,,,128,1,,fp16,TensorFlow,SQuAD XLA,"
          "inference,sequences_per_s,206.82,"
          "INCONSISTENT: latency (trust throughput)");
  CHECK(model::ToSeconds(o.measured) ==
        doctest::Approx(1.0 / 206.82).epsilon(1e-12));
}

TEST_CASE("a run's throughput and step time count once") {
  const std::string front =
      "src,f,s,V100-SXM2-16GB,1,1,bert-base,,,,,,384,20,1,fp16,PyTorch,SQuAD,"
      "finetune,";
  const Table table = Parse(front + "sequences_per_s,35.13,\n" + front +
                            "step_ms,627.6,\n" + front + "step_ms,630.0,\n");
  REQUIRE(table.observations.size() == 2);
  CHECK(model::ToMilliseconds(table.observations[0].measured) ==
        doctest::Approx(627.6).epsilon(1e-12));
  // Repetitions of one run are left out together.
  CHECK(table.observations[0].label == table.observations[1].label);
  CHECK(table.unused.at("throughput of a run whose step time is there too") ==
        1);
}

TEST_CASE("a device that no file names keeps the name it has") {
  CHECK(One("src,f,s,Some Chip "
            "9,1,1,bert-base,,,,,,128,4,1,fp16,PyTorch,,finetune,"
            "step_ms,9,")
            .device == "Some Chip 9");
}

TEST_CASE("a table that is not right says where") {
  CHECK_THROWS_WITH_AS(
      ParseTable("device,model\n", "t.csv"),
      "t.csv:1: expected a column \"seq_len\"; a table of measurements has: "
      "device, model, seq_len, precision, metric, value",
      InputError);
  const std::string front =
      "src,f,s,T4-16GB,1,1,bert-base,,,,,,128,4,1,fp16,PyTorch,,finetune,step_"
      "ms,";
  for (const std::string bad : {"fast", "nan", "0", "-3", ""}) {
    CAPTURE(bad);
    const std::string fault =
        "value: expected a number above 0, got \"" + bad + "\"";
    CHECK_THROWS_WITH_AS(
        Parse(front + bad + ",\n"), ("t.csv:2: " + fault).c_str(), InputError);
    // Beside rows that are right it costs itself.
    const Table table = Parse(front + "5,\n" + front + bad + ",\n");
    CHECK(table.observations.size() == 1);
    CHECK(table.unused.at("line 3: " + fault) == 1);
  }
  CHECK(One(front + "\"1,234.5\",").measured.base() == doctest::Approx(1.2345));
  CHECK_THROWS_WITH_AS(
      Parse("src,f,s,T4-16GB,1,1,bert-base,1024,,,,,128,4,1,fp16,PyTorch,,"
            "finetune,"
            "step_ms,5,\n"),
      "t.csv:2: model: the dimensions are not those of bert-base",
      InputError);
  CHECK_THROWS_WITH_AS(
      Parse("src,f,s,T4-16GB,x,1,bert-base,,,,,,128,4,1,fp16,PyTorch,,finetune,"
            "step_ms,5,\n"),
      "t.csv:2: n_devices: expected a count from 1 to 16777216, got \"x\"",
      InputError);
  CHECK_THROWS_WITH_AS(
      Parse(front + "1e308,\n"),
      "t.csv:2: value: expected a step between 1e-12 s and 1000000000000 s, "
      "got \"1e308\"",
      InputError);
  for (const std::string batch :
       {"10000000000", "10000000000000", "281474976710656"}) {
    CHECK_THROWS_WITH_AS(
        Parse("src,f,s,T4-16GB,1,1,bert-base,,,,,,128," + batch +
              ",1,fp16,PyTorch,,finetune,sequences_per_s,5,\n"),
        ("t.csv:2: batch: expected a count of at most 1048576, got " + batch)
            .c_str(),
        InputError);
  }
  CHECK_THROWS_WITH_AS(ReadObservations({"numbers.xlsx"}),
                       "numbers.xlsx: expected a file of measurements: .jsonl, "
                       ".csv, a trainer_state.json, an MLPerf log (.txt, "
                       ".log), or a folder of published figures",
                       InputError);
}

TEST_CASE("numbers and tasks as tables write them") {
  const auto row = [](std::string_view devices,
                      std::string_view task,
                      std::string_view stack) {
    return fmt::format(
        "src,f,s,T4-16GB,{},1,bert-base,-,n/a,nan,,,128.0,4,1,bf16-true,"
        "PyTorch,\"{}\",{},step_ms,9,",
        devices,
        stack,
        task);
  };
  CHECK(One(row("8.0", "Training", "")).device_count == 8);
  CHECK(One(row("1", "Eval", "")).workload.work == Work::kForward);
  CHECK(Reason(row("1", "dream", "")) == "task dream is not known");
  CHECK(One(row("1", "", "torch.compile")).workload.stack.fusion ==
        Fusion::kCompiled);
  for (const char* denied : {"no torch.compile",
                             "torch.compile: off",
                             "without any torch.compile",
                             "torch.compile = false; x",
                             "torch.compile=0",
                             "without flash attention and torch.compile"}) {
    CAPTURE(denied);
    CHECK(One(row("1", "", denied)).workload.stack.fusion == Fusion::kEager);
  }
  for (const char* compiled : {"no dropout, torch.compile",
                               "torch.compile no checkpointing",
                               "no packing with torch.compile",
                               "no AMP | torch.compile"}) {
    CAPTURE(compiled);
    CHECK(One(row("1", "", compiled)).workload.stack.fusion ==
          Fusion::kCompiled);
  }
  CHECK(One(row("1", "", "JAX 0.4.30")).workload.stack.fusion == Fusion::kXla);
  CHECK(One(row("1", "", "adamw_8bit")).workload.optimizer.state_bits == 8);
  CHECK(One(row("1", "", "paged LAMB")).workload.optimizer.kind ==
        OptimizerKind::kLamb);
  CHECK(One(row("1", "", "x")).workload.stack.narrow_weights);
}

TEST_CASE("a rate of eight devices as one's is seen") {
  const auto row = [](std::string_view rate) {
    return fmt::format(
        "src,f,s,A100-SXM4-80GB,8,1,bert-large,,,,,,512,32,1,bf16,PyTorch,,"
        "finetune,sequences_per_s,{},",
        rate);
  };
  // A sequence is some 336 GFLOPs forward and three times that in all, so that 8
  // devices of 312 TFLOP/s do 2,500 a second at most.
  CHECK(One(row("1300")).measured.base() == doctest::Approx(256.0 / 1300.0));
  CHECK(Reason(row("10400")) == "faster than the device's peak");
}

TEST_CASE("devices that share a model in words are not replicas") {
  const auto row = [](std::string_view dp, std::string_view stack) {
    return fmt::format(
        "A100-SXM4-80GB,8,llama-2-7b,2048,1,{},8,\"{}\",fsdp,bf16,torchtitan,"
        "tokens_per_s,9000,pretrain",
        dp,
        stack);
  };
  const auto reason = [&](std::string_view dp, std::string_view stack) {
    const Table table = ParseTable(
        "device,n_devices,model,seq_len,micro_batch,dp,global_batch,"
        "stack_notes,sharding,precision,framework,metric,value,task\n" +
            row(dp, stack) + "\n",
        "t.csv");
    return table.unused.empty() ? std::string("used")
                                : table.unused.begin()->first;
  };
  CHECK(reason("8", "") == "used");
  CHECK(reason("2", "") == "how its devices share the model is not stated");
  for (const char* split : {"TP=2",
                            "pp 4",
                            "CP8",
                            "tp_size=4",
                            "tp-4",
                            "tensor-parallel",
                            "context parallel 4"}) {
    CAPTURE(split);
    CHECK(reason("8", split) == "tensor or pipeline parallel");
  }
  for (const char* whole : {"TP=1; no tensor parallel",
                            "tensor parallel 1; pipeline parallel size 1",
                            "no tensor or pipeline parallelism",
                            "tensor parallelism: none",
                            "python cp310",
                            "see pp 12-14",
                            "tensor parallel (1)",
                            "no activation or CPU offload",
                            "CPU offloading: off",
                            "without LoRA or DoRA"}) {
    CAPTURE(whole);
    CHECK(reason("8", whole) == "used");
  }
}

TEST_CASE("every published table is read, and every row accounted for" *
          doctest::test_suite("shared") *
          doctest::skip(!SharedHas("measurements"))) {
  const fs::path folder = SharedPath("measurements");
  struct Expected {
    const char* file;
    int64_t rows;
    int64_t at_least;  // usable
  };
  for (const Expected& expected :
       {Expected{"nvidia_dle_training.csv", 522, 240},
        Expected{"nvidia_dle_inference.csv", 661, 350},
        Expected{"lambda_deeplearning_benchmark.csv", 2032, 800},
        Expected{"neusight_labels.csv", 100, 80},
        Expected{"deepspeed_bert.csv", 60, 50},
        Expected{"aws_neuron.csv", 141, 60},
        Expected{"optimum_habana_ci.csv", 500, 110},
        Expected{"vtrain_gpt.csv", 720, 100}}) {
    CAPTURE(expected.file);
    const Table table = ReadTable((folder / expected.file).string());
    CHECK(table.rows == expected.rows);
    int64_t accounted = static_cast<int64_t>(table.observations.size());
    CHECK(accounted >= expected.at_least);
    for (const auto& [reason, count] : table.unused) accounted += count;
    CHECK(accounted == table.rows);
    for (const Observation& o : table.observations) {
      CHECK(o.measured > model::Microseconds(100.0));
      CHECK_NOTHROW(model::Validate(o.workload));
    }
  }
}

// What the model that ships makes of a step by a fit's values; of several
// devices by its shares of their links, too.
model::Seconds<> ModelledBy(const Fit& fit,
                            const hardware::Device& device,
                            const Step& measured) {
  const Observation& row = measured.observation;
  const model::Workload workload = OnDevices(row.workload, row.device_count);
  const std::vector<double> values = fit.Values();
  const auto step =
      hardware::EstimateStep<double>(device,
                                     workload,
                                     model::ExpandKernels(workload),
                                     std::span<const double>(values));
  if (!measured.joined) return PartOf(step, row.quantity);
  return StepOverRanks(workload,
                       step,
                       DatasheetRanks(*measured.joined,
                                      NumbersOf(device.kind, fit.joined)))
      .total();
}

struct Sources {
  std::vector<Observation> observations;
  std::vector<EngineProfile> profiles;
};

// Runs of our own, which lie beside the tests.
void AddOwnRuns(Sources& sources) {
  const fs::path folder = TRAINFARE_ROOT "/tests/measurements";
  std::vector<std::string> files;
  for (const char* name : {"h200_sxm/calibration.jsonl",
                           "h200_sxm/unseen.jsonl",
                           "h200_sxm/energy.jsonl",
                           "h200_transformers.csv"}) {
    files.push_back((folder / name).string());
  }
  for (Observation& o : ReadObservations(files).observations) {
    if (o.label.find('/') != std::string::npos) {
      o.label = fs::path(o.label).filename().string();
    }
    sources.observations.push_back(std::move(o));
  }
}

// What GPUs' and NeuronCores' fits were made of; rows of tables by the file's
// name.
Sources SourcesOfFits() {
  ObservationFiles published =
      RecordsOf(LoadPublished(TRAINFARE_ROOT "/scenarios/published"));
  Sources sources{std::move(published.observations),
                  std::move(published.profiles)};
  for (const char* file : {"nvidia_dle_training.csv",
                           "lambda_deeplearning_benchmark.csv",
                           "neusight_labels.csv",
                           "deepspeed_bert.csv",
                           "nvidia_dle_inference.csv",
                           "aws_neuron.csv"}) {
    for (Observation& o :
         ReadTable((fs::path(SharedPath("measurements")) / file).string())
             .observations) {
      o.label = fs::path(o.label).filename().string();
      sources.observations.push_back(std::move(o));
    }
  }
  AddOwnRuns(sources);
  return sources;
}

// The steps of a device by label and quantity; more rows than one have a label
// where a table has a run in parts.
using StepsOfDevice = std::map<std::pair<std::string, Quantity>, Step>;

StepsOfDevice StepsOf(const hardware::Device& device, const Sources& sources) {
  OwnFigures own = OfDevice(device, sources.observations, {}, sources.profiles);
  StepsOfDevice steps;
  for (Step& step : own.steps) {
    const auto key =
        std::pair(step.observation.label, step.observation.quantity);
    steps.insert_or_assign(key, std::move(step));
  }
  for (const EngineProfile& profile : own.profiles) {
    if (!profile.step) continue;
    Observation of_profile;
    of_profile.workload = profile.workload;
    of_profile.measured = *profile.step;
    steps.insert_or_assign(std::pair(profile.label, Quantity::kStep),
                           Step{std::move(of_profile), std::nullopt});
  }
  return steps;
}

// A fit that another version of the model made would say so nowhere.
TEST_CASE("shipped fits are of the model that ships" *
          doctest::test_suite("shared") *
          doctest::skip(!SharedHas("measurements"))) {
  const Sources sources = SourcesOfFits();
  int64_t compared = 0;
  std::set<std::string> neuron;
  for (const fs::path& path : fs::directory_iterator(kFits)) {
    if (path.extension() != ".yaml") continue;
    const Fit fit = LoadFit(path.string());
    const hardware::Device& device =
        hardware::DeviceCatalog::Shipped().Find(fit.device);
    const bool of_neuron = device.kind == hardware::DeviceKind::kNeuron;
    if (!of_neuron && device.kind != hardware::DeviceKind::kGpu) continue;
    if (of_neuron) neuron.insert(device.name);
    CAPTURE(fit.device);
    const StepsOfDevice known = StepsOf(device, sources);
    for (const FittedRun& run : fit.runs) {
      CAPTURE(run.label);
      const auto found = known.find({run.label, run.quantity});
      REQUIRE(found != known.end());
      const Observation& row = found->second.observation;
      CHECK(Describe(row.workload) == run.workload);
      CHECK(model::ToSeconds(row.measured) ==
            doctest::Approx(model::ToSeconds(run.measured)));
      CHECK(model::ToSeconds(ModelledBy(fit, device, found->second)) ==
            doctest::Approx(model::ToSeconds(run.modelled)).epsilon(1e-6));
      ++compared;
    }
  }
  CHECK(compared > 400);
  CHECK(neuron ==
        std::set<std::string>{
            "inferentia2", "inferentia2_core", "trainium1", "trainium1_core"});
}

// The refits tell how far the leverages may be trusted: not further than the
// rows scatter anyway.
TEST_CASE("rows left out by leverage are as their refits" *
          doctest::test_suite("shared") *
          doctest::skip(!SharedHas("measurements"))) {
  const fs::path folder = SharedPath("measurements");
  FitOptions by_leverage;
  by_leverage.name_runs = false;
  FitOptions by_refits = by_leverage;
  by_refits.largest_leverage = 0;
  const std::vector<Observation> rows =
      ReadTable((folder / "nvidia_dle_training.csv").string()).observations;
  for (const char* name :
       {"a100_sxm4_40gb", "v100_sxm2_16gb", "v100_sxm3_32gb"}) {
    CAPTURE(name);
    const hardware::Device& device =
        hardware::DeviceCatalog::Shipped().Find(name);
    const Fit fit = FitDevice(device, rows, by_leverage);
    const Fit refits = FitDevice(device, rows, by_refits);
    REQUIRE(fit.runs.size() == refits.runs.size());
    double sum = 0;
    for (size_t i = 0; i < fit.runs.size(); ++i) {
      REQUIRE(fit.runs[i].left_out.has_value());
      REQUIRE(refits.runs[i].left_out.has_value());
      const double apart =
          std::abs(std::log(*fit.runs[i].left_out / *refits.runs[i].left_out));
      CHECK(apart < refits.residual_scatter);
      sum += apart;
    }
    CHECK(sum / static_cast<double>(fit.runs.size()) <
          0.1 * refits.residual_scatter);
    CHECK(std::abs(fit.leave_one_out_error - refits.leave_one_out_error) <
          0.1 * refits.residual_scatter);
  }
}

}  // namespace
}  // namespace trainfare::calibrate
