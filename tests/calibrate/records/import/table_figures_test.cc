#include "calibrate/records/import/table_figures.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "calibrate/records/import/table.h"
#include "model/error.h"
#include "model/units.h"
#include "model/workload.h"
#include "tests/calibrate/records/import/table_rows.h"
#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::calibrate {
namespace {

using model::Fusion;
using model::Head;
using model::OptimizerKind;

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
  CHECK(ToSeconds(packed.measured) == Near(0.096, 1e-5));
  const Observation rate = parse("MLPerf BERT; LAMB; packed 512-token rows",
                                 "sequences_per_s,8000",
                                 "packed: a row of 512 holds 1.999");
  CHECK(ToSeconds(rate.measured) == Near(768.0 / 8000.0, 1e-5));
  const Observation bare = parse(
      "MLPerf BERT; LAMB; unpadded (one sequence a row)", "step_ms,96", "");
  CHECK(bare.workload.sequence_length == 254);
  CHECK(bare.workload.documents == 1);
}

// Which tokens were computed is in the scripts of a submission.
TEST_CASE("MLPerf's BERT of other implementations, by their submissions") {
  const auto table = [](const std::string& file, const std::string& framework) {
    return ParseTable(
        "source,source_file,device,n_devices,nodes,model,seq_len,"
        "batch_per_device,grad_accum,precision,framework,stack_notes,task,"
        "metric,value,notes\n"
        "mlcommons/training_results_v2.0@8437fbb7," +
            file + "/bert,Habana Gaudi2,8,1,bert-large,512,56,1,bf16," +
            framework +
            ",MLPerf Training v2.0 BERT-large; LAMB,pretrain,sequences_per_s,"
            "448,includes evaluation time; submissions unpad or pack\n",
        "t.csv");
  };
  for (const char* file : {"Baidu/results/XMan4.0_1_node_8_A100_PaddlePaddle",
                           "Intel-HabanaLabs/results/HLS-Gaudi2"}) {
    const Table unpadded = table(file, "TensorFlow 2.8.0");
    REQUIRE(unpadded.observations.size() == 1);
    CHECK(unpadded.observations[0].workload.sequence_length == 254);
  }
  const Table padded = table("Habana/results/SYS-420GH-TNGR", "TensorFlow");
  REQUIRE(padded.observations.size() == 1);
  CHECK(padded.observations[0].workload.sequence_length == 512);
  CHECK(table("Google/results/cloud-tpu-v4-8192-TF", "Tensorflow v2.8.0")
            .unused.contains(
                "unpadded or packed sequences: real length not known"));
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
  CHECK(ToSeconds(run.measured) == Near(0.2 / (1 + 1.0 / 45), 1e-5));

  // 3072 sequences a step: each 7 x 25,000 of 150,000 + 11.5 x 3072.
  const Table large = table("NGC 21.09", "384", notes);
  REQUIRE(large.observations.size() == 1);
  CHECK(ToSeconds(large.observations[0].measured) ==
        Near(3072.0 / 2240 / (1 + 10.0 / 175 / 3), 1e-5));

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
        Near(0.2 / (1 + 2.0 / 45), 1e-5));
}

// Narayanan et al. 2021: of 16 blocks of 1536, 51200 words, 2 of 2048 tokens
// 96 x 4096 x 16 x 1536^2 (1 + 2048 / 9216 + 51200 / 393216) = 20.0747 TFLOPs, of
// which three passes over all are 15.5392.
TEST_CASE("a rate in FLOPs is a time by the convention that notes say") {
  const auto row = [](std::string_view metric,
                      std::string_view value,
                      std::string_view notes) {
    return fmt::format(
        "V100-SXM2-16GB,1,gpt-1536x16,1536,16,16,16,6144,51200,2048,2,1,2,1,1,"
        "1,none,full,fp16,none,,Megatron-LM,x,pretrain,{},{},{}",
        metric,
        value,
        notes);
  };
  const auto seconds = [&](std::string_view notes) {
    const Table table =
        ParseDecoder(row("tflops_per_device", "43.25", notes) + "\n");
    REQUIRE(table.observations.size() == 1);
    return ToSeconds(table.observations[0].measured);
  };
  CHECK(seconds("case 1; hardware FLOPs (4 passes)") ==
        Near(20.0747 / 43.25, 1e-5));
  const double all = seconds("TFLOP counts full (not causal) attention");
  CHECK(all == Near(15.5392 / 43.25, 1e-5));
  // Scores of all pairs are 2.4739 of these; masks leave 2049 / 4096 of them.
  CHECK(seconds("TFLOP counts causal attention") ==
        Near((15.5392 - 2.4739 * 2047 / 4096) / 43.25, 1e-3));
  for (const char* notes : {"", "TFLOP convention depends on the tag"}) {
    CHECK(ReasonOfDecoder(row("tflops_per_device", "43.25", notes)) ==
          "metric tflops_per_device: by which convention its FLOPs are counted "
          "is not stated");
  }
  CHECK(ReasonOfDecoder(row("mfu_pct", "35", "hardware FLOPs (4 passes)")) ==
        "metric mfu_pct: of which peak it is a share is not stated");
  CHECK(ReasonOfDecoder(row("tflops_per_device",
                            "43.25",
                            "published TFLOPs under-report; hardware FLOPs (4 "
                            "passes)")) ==
        "fewer FLOPs than its convention counts");
}

TEST_CASE("a run's time is read where a rate in FLOPs is there, too") {
  const auto row = [](std::string_view figure) {
    return fmt::format(
        "V100-SXM2-16GB,1,gpt-1536x16,1536,16,16,16,6144,51200,2048,2,1,2,1,1,"
        "1,none,full,fp16,none,,OneFlow,x,pretrain,{}; under-report; hardware "
        "FLOPs (4 passes)\n",
        figure);
  };
  const Table table =
      ParseDecoder(row("tflops_per_device,49.43,a") + row("step_s,0.40616,b") +
                   row("mfu_pct,40,a"));
  REQUIRE(table.observations.size() == 1);
  CHECK(ToSeconds(table.observations[0].measured) == Near(0.40616, 1e-5));
  const std::string reason =
      ": a rate in FLOPs, whose convention differs: the same runs' tokens/s or "
      "step times are read";
  CHECK(table.unused.at("metric tflops_per_device" + reason).size() == 1);
  CHECK(table.unused.at("metric mfu_pct" + reason).size() == 1);
}

// 16 B: 32 blocks of 4 x 4096 x 8192 + 3 x 4096 x 28672, 2 x 32000 x 4096.
TEST_CASE("MaxText's own decoders say their heads and gate") {
  const auto row = [](std::string_view stack) {
    return fmt::format(
        "TPU v5e,256,maxtext-16B,4096,32,64,64,28672,32000,2048,6,1,1536,256,"
        "1,1,fsdp,full,bf16,none,,MaxText (JAX),{},pretrain,tflops_per_device,"
        "120,TFLOP counts full (not causal) attention",
        stack);
  };
  const Table table =
      ParseDecoder(row("gated MLP (silu) with head_dim 128") + "\n");
  REQUIRE(table.observations.size() == 1);
  const Observation& o = table.observations[0];
  CHECK(o.workload.architecture.query_head_size() == 128);
  CHECK(o.workload.architecture.gated);
  const double weights =
      32.0 * (4.0 * 4096 * 8192 + 3.0 * 4096 * 28672) + 32000.0 * 4096;
  const double scores = 32.0 * 4 * 2048 * 8192;
  CHECK(ToSeconds(o.measured) ==
        Near(6 * 2048 * 3 * (2 * weights + scores) / 120e12, 1e-5));
  CHECK(ReasonOfDecoder(row("head_dim 128")) ==
        "model: \"gated MLP\" of maxtext-16B is not stated");
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
  CHECK(ToSeconds(first.measured) == Near(910.0 * 32 / 88'500, 1e-5));
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

TEST_CASE("a throughput becomes the time of a step, by hand") {
  // 32 sequences a device, 128 micro-batches, 8 devices at 387 sequences/s:
  // 32768 / 387 s. Length 128: 20 masked positions.
  const Observation o = OneRow(
      "owner/"
      "table@1f2e,readme,DGX-1,V100-SXM2-32GB,8,1,bert-large,1024,24,16,"
      "4096,30522,"
      "128,32,128,fp32,PyTorch,NGC; LAMB (fused; apex),pretrain,"
      "sequences_per_s,387,n");
  CHECK(model::ToSeconds(o.measured) == Near(32768.0 / 387.0, 1e-12));
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

TEST_CASE("of several rates of one run the first in the order is used") {
  const std::string front =
      "A100-SXM4-80GB,1,llama2-7b,,,,,,,512,1,1,,,1,1,none,none,bf16,none,,"
      "PyTorch,,finetune,";
  const Table table =
      ParseDecoder(front + "samples_per_s,2,\n" + front + "steps_per_s,2,\n");
  REQUIRE(table.observations.size() == 1);
  CHECK(model::ToSeconds(table.observations[0].measured) == 0.5);
  CHECK(table.unused.at("throughput of a run in another unit") ==
        std::vector<int64_t>{2});
}

TEST_CASE("a metric may be written as a rate") {
  const auto seconds = [](const std::string& metric) {
    return model::ToSeconds(
        OneRow("src,f,s,T4-16GB,2,1,bert-base,,,,,,128,4,1,fp16,PyTorch,,"
               "finetune," +
               metric + ",64,")
            .measured);
  };
  // 2 devices of 4 sequences of 128 tokens a step.
  CHECK(seconds("tokens/s") == 2.0 * 4 * 128 / 64);
  CHECK(seconds("tokens/s/device") == 4.0 * 128 / 64);
  CHECK(seconds("sequences/s") == 2.0 * 4 / 64);
  CHECK(seconds("samples/s") == 2.0 * 4 / 64);
  CHECK(seconds("steps/s") == 1.0 / 64);
}

TEST_CASE("tokens a second count the length too") {
  const Observation o = OneRow(
      "src,f,s,T4-16GB,1,1,gpt2,,,,,,256,4,1,fp16,PyTorch,,finetune,"
      "tokens_per_s,2048,");
  CHECK(model::ToSeconds(o.measured) == Near(4.0 * 256.0 / 2048.0, 1e-12));
  CHECK(o.workload.architecture.head == Head::kCausalLanguageModel);
}

TEST_CASE("a throughput with INCONSISTENT latency is the one to trust") {
  const Observation o = OneRow(
      "src,f,s,T4-16GB,1,1,bert-base,,,,,,128,1,,fp16,TensorFlow,SQuAD XLA,"
      "inference,sequences_per_s,206.82,"
      "INCONSISTENT: latency (trust throughput)");
  CHECK(model::ToSeconds(o.measured) == Near(1.0 / 206.82, 1e-12));
}

TEST_CASE("a run's throughput and step time count once") {
  const std::string front =
      "src,f,s,V100-SXM2-16GB,1,1,bert-base,,,,,,384,20,1,fp16,PyTorch,SQuAD,"
      "finetune,";
  const Table table =
      ParseRows(front + "sequences_per_s,35.13,\n" + front +
                "step_ms,627.6,\n" + front + "step_ms,630.0,\n");
  REQUIRE(table.observations.size() == 2);
  CHECK(model::ToMilliseconds(table.observations[0].measured) ==
        Near(627.6, 1e-12));
  // Repetitions of one run are left out together.
  CHECK(table.observations[0].label == table.observations[1].label);
  CHECK(table.unused.at("throughput of a run whose step time is there too") ==
        std::vector<int64_t>{2});
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
  CHECK(OneRow(row("1300")).measured.base() == Near(256.0 / 1300.0, 1e-5));
  CHECK(ReasonOfRow(row("10400")) == "faster than the device's peak");
}

// `metric` of eight devices, with such notes.
std::string RateWithNotes(std::string_view metric, std::string_view notes) {
  return fmt::format(
      "A100-SXM4-80GB,8,llama2-7b,,,,,,,4096,2,1,,,,,fsdp,full,bf16,,,PyTorch,"
      "sdpa,finetune,{},3875,{}",
      metric,
      notes);
}

TEST_CASE("a rate of one device by notes is none of all devices") {
  for (const char* notes :
       {"per GPU", "throughput per device", "tokens/s/GPU"}) {
    CAPTURE(notes);
    CHECK(ReasonOfDecoder(RateWithNotes("tokens_per_s", notes)) ==
          "metric tokens_per_s is of all devices, its notes say of one: "
          "tokens_per_s_per_device, or the value times its devices");
    CHECK(ParseDecoder(RateWithNotes("tokens_per_s_per_device", notes) + "\n")
              .observations.size() == 1);
  }
  for (const char* notes : {"max tokens per GPU",
                            "source lists 17188.262 = per GPU; times num_gpus",
                            "48 GiB per GPU"}) {
    CAPTURE(notes);
    CHECK(ParseDecoder(RateWithNotes("tokens_per_s", notes) + "\n")
              .observations.size() == 1);
  }
}

TEST_CASE("notes on lengths that are not those of the column") {
  for (const char* notes : {"dynamic padding",
                            "packing=False",
                            "not packed",
                            "avg length 350",
                            "real tokens only",
                            "unpacked",
                            "group_by_length"}) {
    CAPTURE(notes);
    CHECK(ReasonOfDecoder(RateWithNotes("tokens_per_s_per_device", notes)) ==
          "samples of unequal length: real length not known");
  }
  for (const char* notes : {"packing=True", "packed", "padded to max"}) {
    CAPTURE(notes);
    CHECK(ParseDecoder(RateWithNotes("tokens_per_s_per_device", notes) + "\n")
              .observations.size() == 1);
  }
}

TEST_CASE("a peak above what its device has is in another unit") {
  const auto read = [](std::string_view value) {
    return ParseDecoder(fmt::format(
        "A100-SXM4-80GB,1,llama2-7b,,,,,,,512,1,1,,,,,none,full,bf16,,,PyTorch,"
        "sdpa,finetune,peak_memory_gib,{},\n",
        value));
  };
  CHECK(read("79").memory.size() == 1);
  CHECK(read("95").unused.contains(
      "a peak above the 80.0 GiB that a100_sxm4_80gb has"));
  CHECK(read("20480").memory.empty());
}

TEST_CASE("a metric that is not read says which may be meant") {
  const auto reason = [](std::string_view metric) {
    return ReasonOfDecoder(RateWithNotes(metric, ""));
  };
  CHECK(reason("tps") ==
        "metric tps: not read; is tokens_per_s_per_device meant?");
  CHECK(reason("tokens/s/gpu") ==
        "metric tokens/s/gpu: not read; is tokens_per_s_per_device meant?");
  CHECK(reason("train_samples_per_second") ==
        "metric train_samples_per_second: not read; is samples_per_s meant?");
  CHECK(reason("Tokens/s") == "metric Tokens/s: not read; is tokens/s meant?");
  CHECK(reason("loss_curve") == "metric loss_curve: no time of a step");
}

}  // namespace
}  // namespace trainfare::calibrate
