#include "calibrate/records/import/table_workload.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/error.h"
#include "model/units.h"
#include "model/workload.h"
#include "tests/calibrate/records/import/table_rows.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

using model::Fusion;
using model::Head;
using model::InputError;
using model::OptimizerImplementation;
using model::OptimizerKind;
using model::Work;

TEST_CASE("precisions by the words that people use") {
  const auto parse = [](const std::string& precision) {
    return ParseRows(
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
  CHECK(parse("AMP").unused.contains(
      "not predicted: precision AMP; which 16 bits: fp16 or bf16"));
  CHECK(parse("FP8-CS").unused.contains(
      "not predicted: precision FP8-CS; fp8, and its scaling (current scaling, "
      "delayed) in stack_notes; mxfp8"));
  CHECK(parse("4bit").unused.contains(
      "not predicted: precision 4bit; the frozen base's: nf4 or int4 beside "
      "adapters (column adapter)"));
  CHECK(parse("-").unused.contains("precision not stated"));
}

TEST_CASE("a framework that is not known is refused, not called eager") {
  const auto parse = [](const std::string& framework,
                        const std::string& stack) {
    return ParseRows(
        "o/r@1,readme,s,T4,1,1,bert-base,768,12,12,3072,30522,128,8,1,"
        "fp32," +
        framework + "," + stack + ",finetune,step_ms,100,\n");
  };
  for (const char* known : {"",
                            "HF",
                            "hf",
                            "hf+x",
                            "HF Transformers",
                            "TensorFlow 2.8",
                            "maxtext"}) {
    CAPTURE(known);
    CHECK(parse(known, "").observations.size() == 1);
  }
  CHECK(parse("Alpa", "").unused.contains("framework Alpa is not known"));
  CHECK(parse("Alpa", "on PyTorch").observations.size() == 1);
  CHECK(parse("Alpa", "XLA").observations.at(0).workload.stack.fusion ==
        Fusion::kXla);
}

TEST_CASE("a decoder's row says blocks, adapters, recomputation, weights") {
  // 4 x 4096 tokens over 3300 tokens/s.
  const Table table = ParseDecoder(
      "A100-SXM4-80GB,1,mistral-7b,4096,32,32,8,14336,32000,4096,4,1,,,1,1,,"
      "full,fp16,qlora-bnb-nf4,16,HF Trainer,flash attention 2,finetune,"
      "tokens_per_s,3300,LoRA on q_proj k_proj v_proj o_proj\n");
  REQUIRE(table.observations.size() == 1);
  const Observation& o = table.observations[0];
  CHECK(model::ToSeconds(o.measured) == Near(4.0 * 4096.0 / 3300.0, 1e-12));
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

TEST_CASE("words say how gradients and losses stand, and what FSDP wraps") {
  const auto read = [](std::string_view sharding,
                       std::string_view framework,
                       std::string_view notes) {
    const Table table = ParseDecoder(fmt::format(
        "A100-SXM4-80GB,2,mistral-7b,4096,32,32,8,14336,32000,4096,4,1,,,1,1,"
        "{},none,bf16,,,{},{},pretrain,tokens_per_s,3300,n\n",
        sharding,
        framework,
        notes));
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload;
  };
  const model::Workload sums =
      read("zero1", "nanotron", "fp32 gradient accumulation");
  CHECK(sums.optimizer.wide_gradients);
  CHECK(sums.stack.loss == model::LossKernels::kInPlace);
  CHECK_FALSE(read("zero1", "nanotron", "x").optimizer.wide_gradients);
  CHECK(read("fsdp", "torchtune", "x").parallel.embedding_units);
  CHECK_FALSE(read("fsdp", "torchtitan", "x").parallel.embedding_units);
  CHECK_FALSE(read("none", "torchtune", "x").parallel.embedding_units);
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
                          "full -1 layers"}) {
    CHECK(ReasonOfDecoder(row(odd)) ==
          fmt::format("not predicted: recomputation {}", odd));
  }
  CHECK(ReasonOfDecoder(row("selective")) ==
        "recomputation selective: what is computed again is not stated");
  // More than there are.
  CHECK_THROWS_WITH_AS(
      ParseDecoder(row("full 33 layers") + "\n"),
      "d.csv:2: checkpointed_blocks: expected a count of at most 32, got 33",
      InputError);
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
  const model::Workload other = read("none", "litgpt,x");
  CHECK(other.stack.attention == model::Attention::kFlash);
  CHECK(other.stack.loss == model::LossKernels::kOfStack);
  CHECK(read("none", "PyTorch,Adam + 8-bit AdamW").optimizer.state_bits == 8);
}

TEST_CASE("words of a stack say how experts run") {
  const auto read = [](std::string_view model, std::string_view stack) {
    const Table table = ParseDecoder(fmt::format(
        "H100-SXM5-80GB,8,{},,,,,,,4096,1,1,8,8,1,1,zero3,full,bf16,none,,"
        "{},pretrain,step_s,1,\n",
        model,
        stack));
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.stack.experts;
  };
  using enum model::ExpertKernels;
  CHECK(read("mixtral-8x7b", "HF Transformers,x") == kOfStack);
  CHECK(read("mixtral-8x7b", "HF Transformers 5.0,x") == kGrouped);
  CHECK(read("mixtral-8x7b", "PyTorch,eager; grouped_mm") == kGrouped);
  CHECK(read("mixtral-8x7b", "PyTorch,eager MoE loop") == kLoop);
  CHECK(read("deepseek-v2", "XTuner,implementation: deepseek v2 hf") ==
        kMaskedLoop);
  CHECK(read("deepseek-v2", "XTuner,implementation: deepseek v2 xtuner") ==
        kShardLoop);
  CHECK(read("llama2-7b", "HF Transformers 5.0,x") == kOfStack);
}

TEST_CASE("a step's parts and a step without optimizer") {
  const std::string front =
      "src,f,s,Tesla T4,1,1,bert_large,1024,24,16,4096,30522,512,8,1,fp32,"
      "PyTorch 2.1.0,HuggingFace eager attention; no fused attention,";
  const Observation inference =
      OneRow(front + "inference,step_ms,1341.12,forward only; mean");
  CHECK(inference.workload.work == Work::kForward);
  CHECK(inference.quantity == Quantity::kStep);
  CHECK(inference.workload.architecture.head == Head::kSequenceClassification);
  CHECK(inference.workload.optimizer.kind == OptimizerKind::kNone);
  CHECK(model::ToSeconds(inference.measured) == Near(1.34112, 1e-12));

  const Observation both = OneRow(
      front + "pretrain,step_ms,1350,forward+backward; no optimizer step");
  CHECK(both.workload.work == Work::kForwardBackward);
  CHECK(both.quantity == Quantity::kStep);
  CHECK(both.workload.architecture.head == Head::kPreTraining);
  // Hugging Face predicts at every position.
  CHECK(both.workload.predictions_per_sequence == 0);

  const Observation forward = OneRow(
      front + "pretrain,step_ms,45,FORWARD ONLY part of the training step;");
  CHECK(forward.workload.work == Work::kForwardBackward);
  CHECK(forward.quantity == Quantity::kForward);
  const Observation backward = OneRow(
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
    const Observation o =
        OneRow(std::string("src,f,s,T4-16GB,1,1,bert-base,,,,,,"
                           "384,4,,") +
               c.precision + "," + c.framework + ",\"" + c.notes +
               "\",finetune,samples_per_s,10,");
    CHECK(o.workload.stack.fusion == c.fusion);
    CHECK(o.workload.optimizer.implementation == c.implementation);
    CHECK(o.workload.accumulation == 1);
  }
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
  CHECK(OneRow(row("8.0", "Training", "")).device_count == 8);
  // A decimal comma is none of thousands.
  CHECK_THROWS_WITH_AS(
      ParseRows("s,f,,T4-16GB,1,1,bert-base,,,,,,128,4,1,fp16,PyTorch,,"
                "finetune,step_s,\"0,512\",\n"),
      "t.csv:2: value: expected a number above 0, got \"0,512\"",
      InputError);
  CHECK(OneRow(row("1", "Eval", "")).workload.work == Work::kForward);
  CHECK(ReasonOfRow(row("1", "dream", "")) == "task dream is not known");
  CHECK(OneRow(row("1", "", "torch.compile")).workload.stack.fusion ==
        Fusion::kCompiled);
  for (const char* denied : {"no torch.compile",
                             "torch.compile: off",
                             "without any torch.compile",
                             "torch.compile = false; x",
                             "torch.compile=0",
                             "without flash attention and torch.compile"}) {
    CAPTURE(denied);
    CHECK(OneRow(row("1", "", denied)).workload.stack.fusion == Fusion::kEager);
  }
  for (const char* compiled : {"no dropout, torch.compile",
                               "torch.compile no checkpointing",
                               "no dropout with torch.compile",
                               "no AMP | torch.compile"}) {
    CAPTURE(compiled);
    CHECK(OneRow(row("1", "", compiled)).workload.stack.fusion ==
          Fusion::kCompiled);
  }
  CHECK(OneRow(row("1", "", "JAX 0.4.30")).workload.stack.fusion ==
        Fusion::kXla);
  CHECK(OneRow(row("1", "", "adamw_8bit")).workload.optimizer.state_bits == 8);
  CHECK(OneRow(row("1", "", "paged LAMB")).workload.optimizer.kind ==
        OptimizerKind::kLamb);
  CHECK(OneRow(row("1", "", "x")).workload.stack.narrow_weights);
  // Its train.py asks for scaled_dot_product_attention.
  const Table of_program = ParseDecoder(
      "RTX 3090,1,llama2-7b,,,,,,,2048,4,1,,,1,1,,full,bf16,none,,fsdp_qlora,"
      "x,finetune,step_s,10,n\n");
  REQUIRE(of_program.observations.size() == 1);
  CHECK(of_program.observations[0].workload.stack.attention ==
        model::Attention::kFlash);
  CHECK(OneRow(row("1", "", "x")).workload.stack.attention ==
        model::Attention::kMaterialised);
}

}  // namespace
}  // namespace trainfare::calibrate
