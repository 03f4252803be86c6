#include "calibrate/records/import/table_parallel.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "calibrate/records/import/table.h"
#include "model/workload.h"
#include "tests/calibrate/records/import/table_rows.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

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
        "hybrid sharding: over how many ranks is not stated");
  CHECK(ReasonOfDecoder(model + "mics" + rest.substr(0, rest.size() - 1)) ==
        "not predicted: mics over ranks; sharding none, zero1, zero2, zero3, "
        "fsdp, hybrid are");
  CHECK(ReasonOfDecoder(model + rest.substr(0, rest.size() - 1)) ==
        "how its devices share the model is not stated: column sharding");
}

TEST_CASE("hybrid sharding says within how many ranks") {
  const auto row = [](std::string_view stack, std::string_view notes) {
    return fmt::format(
        "H100-SXM5-80GB,512,llama3.1-70b,,,,,,,8192,2,1,1024,512,1,1,hybrid,"
        "none,bf16,none,,MaxText (JAX),{},pretrain,step_s,15.519,{}",
        stack,
        notes);
  };
  const auto parallel = [&](std::string_view stack, std::string_view notes) {
    const Table table = ParseDecoder(row(stack, notes) + "\n");
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.parallel;
  };
  const model::Parallel groups = parallel("v25", "FSDP group 128; MFU 51 %");
  CHECK(groups.shard == model::Shard::kFsdp);
  CHECK(groups.data == 512);
  CHECK(groups.replicate == 4);
  CHECK(ReasonOfDecoder(row("v25", "FSDP group 100")) ==
        "its groups of FSDP do not divide its devices");
  for (const char* none : {"FSDP group 1", "FSDP group 512", ""}) {
    CHECK(ReasonOfDecoder(row("FSDP within a slice", none)) ==
          "hybrid sharding: over how many ranks is not stated");
  }
}

// A pod of 256 v5e has 6.4 Tbit/s to the data centre: 800 GB/s.
TEST_CASE("slices of TPUs are data parallel over the data centre's network") {
  const auto row = [](std::string_view device,
                      std::string_view devices,
                      std::string_view stack,
                      std::string_view sharding = "hybrid") {
    return fmt::format(
        "{},{},llama2-7b,,,,,,,2048,6,1,,,1,1,{},full,bf16,none,,"
        "MaxText (JAX),{},pretrain,step_s,2,n",
        device,
        devices,
        sharding,
        stack);
  };
  const Table table = ParseDecoder(
      row("TPU v5e", "512", "FSDP within a slice; slices=2") + "\n");
  REQUIRE(table.observations.size() == 1);
  const Observation& o = table.observations[0];
  CHECK(o.workload.parallel.shard == model::Shard::kFsdp);
  CHECK(o.workload.parallel.replicate == 2);
  CHECK(o.hosts == 2);
  CHECK(o.network->base() == Near(800e9, 1e-5));
  CHECK(
      ReasonOfDecoder(row("TPU v5e", "511", "FSDP within a slice; slices=2")) ==
      "devices that do not fill their slices");
  CHECK(
      ReasonOfDecoder(row("TPU v4", "512", "FSDP within a slice; slices=2")) ==
      "the network between its slices is not known");
  CHECK(ReasonOfDecoder(row("TPU v5e", "512", "slices=2")) ==
        "hybrid sharding: over how many ranks is not stated");
  CHECK(ReasonOfDecoder(row("TPU v5e", "512", "slices=2", "fsdp")) ==
        "sharded within or over its slices is not stated");
}

TEST_CASE("what of a decoder's row is not predicted says so") {
  const std::string model = "A100-SXM4-80GB,8,llama2-7b,,,,,,,4096,1,1,8,8,";
  CHECK(ReasonOfDecoder(model +
                        "2,1,none,none,bf16,none,,PyTorch,,pretrain,step_s,1,"
                        "") ==
        "dp is 8, but 8 devices have 4 copies by tp, pp and cp");
  CHECK(ReasonOfDecoder(model +
                        "1,1,none,selective,bf16,none,,PyTorch,,pretrain,"
                        "step_s,1,") ==
        "recomputation selective: what is computed again is not stated");
  CHECK(ReasonOfDecoder(model +
                        "1,1,none,none,mxfp4,none,,PyTorch,,pretrain,step_s,"
                        "1,") ==
        "not predicted: precision mxfp4; fp32, tf32, fp16, bf16, fp8, mxfp8, "
        "nvfp4 are");
  CHECK(ReasonOfDecoder(model +
                        "1,1,none,none,bf16,ia3,,PyTorch,,pretrain,step_s,1,"
                        "") == "not predicted: adapters ia3");
  CHECK(ReasonOfDecoder(
            model + "1,1,none,none,bf16,lora rank 8,,PyTorch,,finetune,"
                    "step_s,1,") == "the adapters' matrices are not stated");
  CHECK(ReasonOfDecoder(model + "1,1,none,none,bf16,none,,PyTorch,,finetune,"
                                "tflops_per_device,100,")
            .starts_with("metric tflops_per_device: by which convention"));
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

TEST_CASE("ranks that have a model together are so many a copy") {
  const auto read = [](std::string_view dp,
                       std::string_view tp,
                       std::string_view pp,
                       std::string_view framework,
                       std::string_view notes) {
    const Table table = ParseDecoder(
        fmt::format("A100-SXM4-80GB,8,llama2-7b,,,,,,,4096,1,4,,{},{},{},zero1,"
                    "none,bf16,none,,{},,pretrain,tokens_per_s,16384,{}\n",
                    dp,
                    tp,
                    pp,
                    framework,
                    notes));
    REQUIRE(table.observations.size() == 1);
    return table.observations[0];
  };
  const Observation plain = read("2", "4", "1", "PyTorch", "");
  const model::Parallel& p = plain.workload.parallel;
  CHECK(p.tensor == 4);
  CHECK(p.pipeline == 1);
  CHECK(p.data == 2);
  CHECK_FALSE(p.sequence);
  CHECK(p.tensor_overlap == model::TensorOverlap::kNone);
  CHECK(plain.device_count == 8);
  // Four micro-batches of two copies, 4096 tokens each.
  CHECK(plain.measured.base() == Near(2.0, 1e-5));
  const model::Parallel nemo =
      read("1", "4", "2", "NeMo", "interleaved pipeline stages 6")
          .workload.parallel;
  CHECK(nemo.sequence);
  CHECK(nemo.tensor_overlap == model::TensorOverlap::kProducts);
  CHECK(nemo.pipeline == 2);
  CHECK(nemo.chunks == 6);
  CHECK(nemo.shard == model::Shard::kNone);  // of one copy
  CHECK(nemo.stages == model::StageCut::kBlocks);
  CHECK(read("2", "1", "4", "nanotron", "").workload.parallel.stages ==
        model::StageCut::kCost);
}

TEST_CASE("ranks that divide sequences are no copies") {
  const std::string header =
      "device,n_devices,model,seq_len,micro_batch,grad_accum,global_batch,dp,"
      "tp,"
      "pp,cp,sharding,precision,framework,task,metric,value\n";
  const auto copies = [&](std::string_view dp, std::string_view cp) {
    return ParseTable(
        header + fmt::format("A100-SXM4-80GB,8,llama2-7b,4096,1,4,8,{},2,1,{},"
                             "fsdp,bf16,PyTorch,pretrain,step_s,2\n",
                             dp,
                             cp),
        "d.csv");
  };
  const Table two = copies("2", "2");
  REQUIRE(two.observations.size() == 1);
  const model::Parallel& p = two.observations[0].workload.parallel;
  CHECK(p.context == 2);
  CHECK(p.tensor == 2);
  CHECK(p.data == 2);
  CHECK(p.shard == model::Shard::kFsdp);
  // More than there are devices.
  CHECK(copies("2", "4").observations.empty());
}

// 2^32 by 2^32 is none in 64 bits.
TEST_CASE("ways that no devices have are no row's") {
  for (const char* ways : {"4294967296", "3037000500", "1048577"}) {
    CAPTURE(ways);
    CHECK(ReasonOfDecoder(fmt::format(
              "A100-SXM4-80GB,8,llama2-7b,,,,,,,4096,1,1,1,1,{},{},none,none,"
              "bf16,none,,PyTorch,,pretrain,step_s,1,",
              ways,
              ways)) == "tp is no number of devices");
  }
}

TEST_CASE("ranks that divide experts are among the copies") {
  const Table table = ParseTable(
      "device,n_devices,model,seq_len,micro_batch,grad_accum,global_batch,dp,"
      "tp,"
      "pp,ep,sharding,precision,framework,task,metric,value\n"
      "A100-SXM4-80GB,8,mixtral-8x7b,4096,1,4,32,8,1,1,8,zero1,bf16,PyTorch,"
      "pretrain,step_s,10\n",
      "d.csv");
  REQUIRE(table.observations.size() == 1);
  CHECK(table.observations[0].workload.parallel.expert == 8);
  CHECK(table.observations[0].workload.parallel.data == 8);
}

TEST_CASE("how experts lie and what they send is of a program") {
  const auto read = [](const std::string& model,
                       const std::string& framework,
                       const std::string& notes,
                       const std::string& etp) {
    const Table table = ParseTable(
        "device,n_devices,model,seq_len,micro_batch,grad_accum,global_batch,dp,"
        "tp,pp,ep,etp,sharding,precision,framework,stack_notes,task,metric,"
        "value\n"
        "H100-SXM5-80GB,16," +
            model + ",4096,1,4,32,8,2,1,8," + etp + ",zero1,bf16," + framework +
            "," + notes + ",pretrain,step_s,10\n",
        "d.csv");
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.parallel;
  };
  using enum model::ExpertExchange;
  const std::string nemo = "NeMo / Megatron-Core";
  const std::string container = "container 26.04 NeMo Container";
  CHECK(read("mixtral-8x7b", "Megatron-Core", "", "").expert_tensor == 0);
  CHECK(read("mixtral-8x7b", "Megatron-Core", "", "1").expert_tensor == 1);
  CHECK(read("qwen3-30b-a3b", nemo, "", "").expert_tensor == 1);
  CHECK(read("qwen3-30b-a3b", nemo, "", "2").expert_tensor == 2);
  CHECK(read("qwen3-30b-a3b", nemo, "", "").expert_exchange == kAllToAll);
  CHECK(read("qwen3-30b-a3b", nemo, container, "").expert_exchange == kByHost);
  CHECK(read("qwen3-30b-a3b", nemo, container + "; tokendrop", "")
            .expert_exchange == kAllToAll);
  CHECK(read("qwen3-30b-a3b", nemo, "1F1B all-to-all overlap", "")
            .expert_overlap);
  CHECK_FALSE(read("qwen3-30b-a3b", nemo, container, "").expert_overlap);
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
  CHECK(compression("fsdp", "mixed precision PURE") ==
        CompressionKind::kTo16Bits);
  CHECK(compression("fsdp", "mixed precision DEFAULT") ==
        CompressionKind::kNone);
  CHECK(compression("none", "mixed precision PURE") == CompressionKind::kNone);
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
  CHECK(reason("2", "") ==
        "dp is 2, but 8 devices have 8 copies by tp, pp and cp");
  for (const char* split : {"TP=2",
                            "pp 4",
                            "CP8",
                            "tp_size=4",
                            "tp-4",
                            "tensor-parallel",
                            "2-way TP",
                            "MP=2; model parallel 2",
                            "tensor model parallel 2",
                            "DP4xTP2",
                            "TP degree=2",
                            "pipeline 4 stages",
                            "Ulysses",
                            "ring attention",
                            "context parallel 4"}) {
    CAPTURE(split);
    CHECK(reason("8", split) ==
          "tensor or pipeline parallel in words: columns tp, pp, cp, ep");
  }
  for (const char* whole : {"TP=1; no tensor parallel",
                            "tensor parallel 1; pipeline parallel size 1",
                            "no tensor or pipeline parallelism",
                            "tensor parallelism: none",
                            "python cp310",
                            "see pp 12-14",
                            "tensor parallel (1)",
                            "1-way TP",
                            "tensor model parallel 1",
                            "w/o ring attention",
                            "no activation or CPU offload",
                            "CPU offloading: off",
                            "without LoRA or DoRA"}) {
    CAPTURE(whole);
    CHECK(reason("8", whole) == "used");
  }
}

TEST_CASE("a column of sharding is read to its end") {
  const auto row = [](std::string_view sharding, std::string_view stack) {
    return fmt::format(
        "A100-SXM4-80GB,8,llama2-7b,,,,,,,4096,1,1,8,8,1,1,\"{}\",none,bf16,"
        "none,,PyTorch,{},pretrain,step_s,1,",
        sharding,
        stack);
  };
  const auto parallel = [&](std::string_view sharding,
                            std::string_view stack = "") {
    const Table table = ParseDecoder(row(sharding, stack) + "\n");
    CAPTURE(sharding);
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.parallel;
  };
  using model::Shard;
  for (const auto& said : {std::pair{"DDP", Shard::kNone},
                           std::pair{"none (ZeRO 0)", Shard::kNone},
                           std::pair{"0", Shard::kNone},
                           std::pair{"3", Shard::kZero3},
                           std::pair{"ZeRO 3", Shard::kZero3},
                           std::pair{"DDP + ZeRO-1", Shard::kZero1},
                           std::pair{"DeepSpeed ZeRO Stage 2", Shard::kZero2},
                           std::pair{"distributed optimizer", Shard::kZero1},
                           std::pair{"FSDP2", Shard::kFsdp},
                           std::pair{"FULL_SHARD", Shard::kFsdp},
                           std::pair{"fsdp (full_shard)", Shard::kFsdp}}) {
    CHECK(parallel(said.first).shard == said.second);
  }
  CHECK(parallel("fsdp full_shard").reshard_after_forward);
  CHECK_FALSE(parallel("fsdp shard_grad_op").reshard_after_forward);
  CHECK_FALSE(parallel("fsdp, no reshard").reshard_after_forward);
  CHECK_FALSE(
      parallel("fsdp", "reshard_after_forward=False").reshard_after_forward);
  CHECK(parallel("fsdp", "reshard_after_forward=True").reshard_after_forward);
  CHECK(parallel("zero3 (CPU offload of parameters)").offload ==
        model::Offload::kParameters);
  for (const char* offload :
       {"zero3 offload", "zero3 (cpu offload)", "fsdp + offload"}) {
    CAPTURE(offload);
    CHECK(ReasonOfDecoder(row(offload, "")) ==
          "not predicted: what is offloaded is not stated");
  }
  CHECK(ReasonOfDecoder(row("zero3 frozen", ""))
            .starts_with("not predicted: zero3 frozen over ranks (\"frozen\""));
  CHECK(ReasonOfDecoder(row("fsdp zero2", ""))
            .starts_with("not predicted: fsdp zero2 over ranks"));
  CHECK(ReasonOfDecoder(row("HSDP", "")) ==
        "hybrid sharding: over how many ranks is not stated");
}

TEST_CASE("a global batch says or contradicts how often gradients are summed") {
  const auto row = [](std::string_view batches,
                      std::string_view ways,
                      std::string_view task) {
    return fmt::format(
        "H100-SXM5-80GB,64,llama-3-70b,,,,,,,8192,{},{},zero1,none,bf16,none,,"
        "NeMo / Megatron-Core,,{},step_s,10.9,",
        batches,
        ways,
        task);
  };
  const auto accumulation = [&](const std::string& text) {
    const Table table = ParseDecoder(text + "\n");
    CAPTURE(text);
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.accumulation;
  };
  // 64 devices, 32 of a model: two copies, of 64 micro-batches each.
  CHECK(accumulation(row("1,,128", ",4,8", "train")) == 64);
  CHECK(accumulation(row("1,,128", ",4,8", "pretrain")) == 64);
  CHECK(accumulation(row("1,64,128", ",4,8", "train")) == 64);
  CHECK(ReasonOfDecoder(row("1,4,128", ",4,8", "train")) ==
        "the global batch is not that of its micro-batches");
  CHECK(ReasonOfDecoder(row("1,,1", ",4,8", "train"))
            .starts_with("the global batch is less than its devices'"));
  CHECK(ReasonOfDecoder(row("1,,128", ",,", "pretrain")) ==
        "gradient accumulation not stated");
  CHECK(ReasonOfDecoder(row("1,,128", ",5,8", "train")) ==
        "64 devices do not divide by tp x pp x cp, 40");
}

TEST_CASE("state that is shared is of more devices than nobody states") {
  for (const char* none : {"", "-", "NaN"}) {
    CAPTURE(none);
    CHECK(ReasonOfDecoder(
              fmt::format("A100-SXM4-80GB,{},llama2-7b,,,,,,,4096,1,1,,,,,fsdp,"
                          "none,bf16,none,,PyTorch,,finetune,step_s,1,",
                          none))
              .starts_with("n_devices not stated, though its state is shared"));
  }
}

TEST_CASE("inference of devices that share state is not predicted") {
  CHECK(ReasonOfDecoder("A100-SXM4-80GB,8,llama2-7b,,,,,,,4096,1,1,,,,,fsdp,"
                        "none,bf16,none,,PyTorch,,inference,step_s,1,") ==
        "not predicted: inference of devices that share state");
}

}  // namespace
}  // namespace trainfare::calibrate
