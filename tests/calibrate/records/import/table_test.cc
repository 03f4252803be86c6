#include "calibrate/records/import/table.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "calibrate/records/import/observations.h"
#include "model/error.h"
#include "model/validate.h"
#include "model/workload.h"
#include "tests/calibrate/records/import/table_rows.h"
#include "tests/near.h"
#include "tests/shared_data.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

using model::InputError;

// What is wrong with a table of one row; empty: it is read.
std::string FaultOfRow(const std::string& row) {
  try {
    return ParseRows(row + "\n").observations.size() == 1 ? "" : "left out";
  } catch (const InputError& fault) {
    return fault.what();
  }
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

TEST_CASE("a named model has no more positions than its table") {
  const auto row = [](const std::string& model, int length) {
    return FaultOfRow("s,f,,A10G,1,1," + model + ",,,,,," +
                      std::to_string(length) +
                      ",4,1,fp16,PyTorch,,finetune,step_ms,9000,");
  };
  for (const char* model : {"bert-base-uncased", "roberta-base", "gpt2"}) {
    CAPTURE(model);
    CHECK(row(model, 512).empty());
    CHECK(row(model, 1025).find("positions of") != std::string::npos);
  }
  // Of positions that are computed there is no end.
  CHECK(row("tinyllama-1.1b", 4096).empty());
}

TEST_CASE("repetitions of a run are each of their own row") {
  const std::string row =
      "s,f,,A10G,1,1,bert-base,768,12,12,3072,30522,384,16,1,fp16,PyTorch,,"
      "finetune,sequences_per_s,";
  const Table table = ParseRows(row + "100,\n" + row + "101,\n");
  REQUIRE(table.observations.size() == 2);
  CHECK(table.observations[0].name() == "t.csv:2");
  CHECK(table.observations[1].name() == "t.csv:3");
  // One run, to whoever leaves runs out.
  CHECK(table.observations[1].label == "t.csv:2");
}

TEST_CASE("what is assumed of a row stands beside a name or apart") {
  const auto assumed = [](const std::string& device) {
    return OneRow("s,f,,\"" + device +
                  "\",1,1,bert-base,768,12,12,3072,30522,384,16,1,"
                  "fp16,PyTorch,,finetune,sequences_per_s,100,")
        .assumed;
  };
  CHECK_FALSE(assumed("V100-32GB"));
  CHECK_FALSE(assumed("A10G (24GB)"));
  CHECK(assumed("V100-32GB (assumed; the series stops there)"));
  CHECK(assumed("A100 (80GB inferred)"));
  const Table table = ParseTable(
      "device,model,seq_len,batch_per_device,precision,framework,task,metric,"
      "value,assumed\n"
      "A10G,bert-large,128,4,fp16,PyTorch,finetune,step_ms,90,-\n"
      "A10G,bert-large,128,8,fp16,PyTorch,finetune,step_ms,90,precision\n"
      "A10G,bert-large,128,16,fp16,PyTorch,finetune,step_ms,180,No\n"
      "A10G,bert-large (assumed),128,32,fp16,PyTorch,finetune,step_ms,360,\n",
      "t.csv");
  REQUIRE(table.observations.size() == 4);
  CHECK_FALSE(table.observations[0].assumed);
  CHECK(table.observations[1].assumed);
  CHECK_FALSE(table.observations[2].assumed);
  CHECK(table.observations[3].assumed);
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
  const Table unstated = ParseDecoder(
      front + "peak_memory_gib,20.5,nvidia-smi or allocator not stated\n");
  REQUIRE(unstated.memory.size() == 1);
  CHECK(unstated.memory[0].figure == MemoryFigure::kUnstated);
}

TEST_CASE("rows that say nothing of a step here are counted by the reason") {
  const std::string v100 = "src,f,s,V100-SXM2-16GB,1,1,";
  const std::string tail = ",,,,,,384,4,1,fp16,PyTorch,,finetune,";
  CHECK(ReasonOfRow(v100 + "bert-base" + tail + "time_to_train_s,10,") ==
        "metric time_to_train_s: a whole run, whose steps are not stated");
  CHECK(ReasonOfRow(v100 + "transformer-xl-base" + tail + "tokens_per_s,10,") ==
        "model: Transformer-XL: recurrent memory, adaptive softmax");
  CHECK(ReasonOfRow(v100 + "\"gnmt-v2 (LSTM, not a Transformer)\"" + tail +
                    "tokens_per_s,10,") == "model: GNMT: an LSTM");
  CHECK(ReasonOfRow(v100 + "switchxl4 (MoE)" + tail + "step_ms,10,") ==
        "model: mixture of experts");
  CHECK(ReasonOfRow(v100 + "something" + tail + "step_ms,10,") ==
        "model: something is not known");
  CHECK(ReasonOfRow(v100 + "bert-base" + tail + "step_ms,10,BINNED: x") ==
        "length-binned data: real length not known");
  CHECK(ReasonOfRow(v100 + "bert-base" + tail +
                    "step_ms,10,INCONSISTENT: x (trust throughput)") ==
        "inconsistent by its notes");
  CHECK(ReasonOfRow(
            v100 +
            "bert-base,,,,,,128+512,4,1,fp16,PyTorch,,finetune,step_ms,9,") ==
        "sequence length is not one whole number");
  CHECK(ReasonOfRow(v100 +
                    "bert-base,,,,,,,4,1,fp16,PyTorch,,finetune,step_ms,9,") ==
        "sequence length not stated");
  CHECK(ReasonOfRow(
            v100 +
            "bert-base,,,,,,128,22.75,1,fp16,PyTorch,,finetune,step_ms,9,") ==
        "batch per device is not one whole number");
  CHECK(
      ReasonOfRow(
          v100 + "bert-base,,,,,,128,4,1,int8,PyTorch,,inference,step_ms,9,") ==
      "not predicted: precision int8; the frozen base's: int4 or int8 beside "
      "adapters (column adapter)");
  CHECK(ReasonOfRow(
            v100 + "bert-base,,,,,,128,4,,fp16,PyTorch,,pretrain,step_ms,9,") ==
        "gradient accumulation not stated");
  CHECK(ReasonOfRow(
            "src,f,s,A100,8,1,gpt-3.6B,3072,30,32,,51200,2048,16,1,fp16,"
            "Megatron-LM,model parallel size 2 (tensor x pipeline),pretrain,"
            "step_ms,9,") ==
        "tensor or pipeline parallel in words: columns tp, pp, cp, ep");
}

TEST_CASE("a system that names another device than its row is left out") {
  const auto named = [](const char* system, const char* device) {
    const Table table =
        ParseRows(std::string("s,f,") + system + "," + device +
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

TEST_CASE("a device that no file names keeps the name it has") {
  CHECK(OneRow("src,f,s,Some Chip "
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
    CHECK_THROWS_WITH_AS(ParseRows(front + bad + ",\n"),
                         ("t.csv:2: " + fault).c_str(),
                         InputError);
    // Beside rows that are right it costs itself.
    const Table table = ParseRows(front + "5,\n" + front + bad + ",\n");
    CHECK(table.observations.size() == 1);
    CHECK(table.unused.at(fault) == std::vector<int64_t>{3});
    CHECK(table.faults.contains(fault));
  }
  // A cell of any length is named in short.
  const Table longer =
      ParseRows(front + "5,\n" + front + std::string(5000, '[') + ",\n");
  REQUIRE(longer.unused.size() == 1);
  CHECK(longer.unused.begin()->first.starts_with("value: expected"));
  CHECK(longer.unused.begin()->first.size() <= 203);
  CHECK(OneRow(front + "\"1,234.5\",").measured.base() == Near(1.2345, 1e-5));
  CHECK_THROWS_WITH_AS(
      ParseRows("src,f,s,T4-16GB,1,1,bert-base,1024,,,,,128,4,1,fp16,PyTorch,,"
                "finetune,"
                "step_ms,5,\n"),
      "t.csv:2: model: the dimensions are not those of bert-base",
      InputError);
  CHECK_THROWS_WITH_AS(
      ParseRows(
          "src,f,s,T4-16GB,x,1,bert-base,,,,,,128,4,1,fp16,PyTorch,,finetune,"
          "step_ms,5,\n"),
      "t.csv:2: n_devices: expected a count from 1 to 16777216, got \"x\"",
      InputError);
  CHECK_THROWS_WITH_AS(
      ParseRows(front + "1e308,\n"),
      "t.csv:2: value: expected a step between 1e-12 s and 1000000000000 s, "
      "got \"1e308\"",
      InputError);
  for (const std::string batch :
       {"10000000000", "10000000000000", "281474976710656"}) {
    CHECK_THROWS_WITH_AS(
        ParseRows("src,f,s,T4-16GB,1,1,bert-base,,,,,,128," + batch +
                  ",1,fp16,PyTorch,,finetune,sequences_per_s,5,\n"),
        ("t.csv:2: batch: expected a count of at most 1048576, got " + batch)
            .c_str(),
        InputError);
  }
  // By its ending, once it is there.
  for (const char* absent : {"numbers.xlsx", "numbers", "numbers.csv"}) {
    CHECK_THROWS_WITH_AS(
        ReadObservations({absent}),
        (std::string(absent) + ": cannot be opened: No such file or directory")
            .c_str(),
        InputError);
  }
  CHECK_THROWS_WITH_AS(ReadObservations({"/dev/null"}),
                       "/dev/null: expected a file of measurements: .jsonl, "
                       ".csv, a trainer_state.json, an MLPerf log (.txt, "
                       ".log), or a folder of published figures",
                       InputError);
}

TEST_CASE("every published table is read, and every row accounted for" *
          doctest::test_suite("shared/measurements") *
          doctest::skip(!SharedHasMeasurements())) {
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
    for (const auto& [reason, lines] : table.unused) {
      accounted += static_cast<int64_t>(lines.size());
    }
    CHECK(accounted == table.rows);
    for (const Observation& o : table.observations) {
      CHECK(o.measured > model::Microseconds(100.0));
      CHECK_NOTHROW(model::Validate(o.workload));
    }
  }
}

}  // namespace
}  // namespace trainfare::calibrate
