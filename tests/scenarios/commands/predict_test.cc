#include "scenarios/commands/predict.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "model/error.h"
#include "scenarios/report/json.h"
#include "tests/near.h"
#include "tests/scenarios/commands/predicted.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {
TEST_CASE("JSON has one prediction for every batch and length, lengths outer") {
  const FitFolder none;
  // No fit of an L4 ships.
  PredictOptions options = On("l4");
  options.overrides.precisions = {"fp16"};
  options.overrides.batches = {8, 16};
  options.overrides.lengths = {32, 128};
  const Json json = Json::parse(Predict(options).json);
  const Json& all = json.at("predictions");
  REQUIRE(all.size() == 4);
  CHECK(all[0].at("batch") == 8);
  CHECK(all[1].at("batch") == 16);
  CHECK(all[1].at("sequence_length") == 32);
  CHECK(all[3].at("sequence_length") == 128);
  CHECK(json.at("fit").is_null());
  for (const Json& p : all) {
    CHECK(p.at("grade") == "datasheet only");
    CHECK(p.at("step_time_low_s") < p.at("step_time_s"));
    CHECK(p.at("step_time_high_s") > p.at("step_time_s"));
    double share = 0;
    for (const Json& term : p.at("breakdown")) {
      share += term.at("share").get<double>();
    }
    CHECK(share == Near(1.0));
    double memory = 0;
    for (const Json& term : p.at("memory_terms")) {
      memory += term.at("memory_bytes").get<double>();
    }
    CHECK(memory == Near(p.at("memory_bytes").get<double>(), 1e-5));
    CHECK(p.at("cost_usd").is_null());
  }
}

TEST_CASE("JSON has the kernels of one prediction by kind, as the table does") {
  const FitFolder none;
  PredictOptions options = On("l4");
  const Report report = Predict(options);
  const Json one = Json::parse(report.json).at("predictions").at(0);
  const auto table = std::find_if(
      report.tables.begin(), report.tables.end(), [](const Table& t) {
        return t.title.starts_with("kernels of a micro-batch by kind");
      });
  REQUIRE(table != report.tables.end());
  const Json& kernels = one.at("kernels");
  REQUIRE(kernels.size() == table->rows.size());
  double share = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const Json& kernel = kernels[i];
    CHECK(kernel.at("kind") == table->rows[i][0].text);
    CHECK(kernel.at("time_s").get<double>() ==
          Near(kernel.at("forward_s").get<double>() +
                   kernel.at("backward_s").get<double>() +
                   kernel.at("optimizer_s").get<double>(),
               1e-5));
    if (i > 0) CHECK(kernel.at("time_s") <= kernels[i - 1].at("time_s"));
    share += kernel.at("share").get<double>();
  }
  CHECK(share == Near(1.0));
  options.overrides.batches = {8, 16};
  const Json several = Json::parse(Predict(options).json);
  CHECK_FALSE(several.at("predictions").at(0).contains("kernels"));
}

TEST_CASE("columns of what does not fit have no unit but memory's") {
  const FitFolder none;
  const Report report = Predict(OfModel("llama-3.1-8b", 2048, "l4"));
  CHECK(report.exit_code == kNothingFits);
  std::set<std::string> titles;
  for (const Column& column : report.tables.front().columns) {
    titles.insert(column.title);
  }
  CHECK(titles.contains("step"));
  CHECK(titles.contains("in all"));
  CHECK(titles.contains("memory (GiB)"));
}

TEST_CASE("what does not fit has a reason and exit code 3") {
  const FitFolder none;
  PredictOptions options = On("t4");
  options.overrides.precisions = {"fp16"};
  options.overrides.batches = {100000};
  const Report report = Predict(options);
  CHECK(report.exit_code == kNothingFits);
  const Json json = Json::parse(report.json);
  const Json& p = json.at("predictions")[0];
  CHECK(p.at("fits") == false);
  CHECK_FALSE(p.contains("step_time_s"));
  CHECK(
      p.at("reason").get<std::string>().starts_with("does not fit memory by "));
  options.overrides.batches = {8, 100000};
  CHECK(Predict(options).exit_code == kOk);
}

TEST_CASE("a length that is asked for stands in the place of the file's") {
  const FitFolder none;
  PredictOptions options = On("h100_sxm");
  options.scenario = "llama_8b_lora";
  // Its 2048 tokens are past the positions of GPT-2.
  options.overrides.model = "gpt2";
  CHECK_THROWS_AS(Predict(options), model::InputError);
  options.overrides.lengths = {512};
  const Report report = Predict(options);
  CHECK(report.exit_code == kOk);
  CHECK(report.headline.front().starts_with("Llama 3.1 8B, LoRA, as gpt2 "));
}

TEST_CASE("a precision that the device lacks is refused with one that it has") {
  const FitFolder none;
  const char* words =
      "precision: t4 has no bf16; it runs fp32, fp16; hint: --precision fp16";
  PredictOptions options = OfModel("gpt2", 512, "t4");
  CHECK_THROWS_WITH_AS(Predict(options), words, model::InputError);
  options.largest = "batch";
  CHECK_THROWS_WITH_AS(Predict(options), words, model::InputError);
}

TEST_CASE("words of other programs stand in answers as our own") {
  const FitFolder none;
  PredictOptions options = OfModel("llama-3.2-1b", 512, "h200_sxm");
  options.overrides.settings = {"attention=sdpa",
                                "stack=torch.compile",
                                "optimizer.name=adamw_torch",
                                "parallel.shard=full_shard",
                                "parallel.data=8",
                                "trainable.lora.rank=8",
                                "trainable.lora.matrices=all-linear"};
  options.overrides.precisions = {"bfloat16"};
  const Json scenario =
      Json::parse(Predict(options).json).at("scenario").at("workload");
  CHECK(scenario.at("attention") == "flash");
  CHECK(scenario.at("stack") == "compiled");
  CHECK(scenario.at("precision") == "bf16");
  CHECK(scenario.at("optimizer").at("name") == "adamw");
  CHECK(scenario.at("parallel").at("shard") == "fsdp");
  CHECK(scenario.at("trainable").at("lora").at("matrices").size() == 7);
}

TEST_CASE("values out of range are refused by the name of their flag") {
  const FitFolder none;
  PredictOptions options = On("a100_sxm4_80gb");
  options.overrides.batches = {0};
  CHECK_THROWS_WITH_AS(Predict(options),
                       "--batch: expected an integer from 1 to 1048576, got 0",
                       model::InputError);
  options.overrides = {};
  options.overrides.lengths = {513};
  CHECK_THROWS_WITH_AS(Predict(options),
                       "--seq: padding: expected a length of at most 512, the "
                       "positions of bert-base-uncased, got 513",
                       model::InputError);
  options.overrides = {};
  options.devices = 0;
  CHECK_THROWS_WITH_AS(
      Predict(options),
      "--devices: expected an integer from 1 to 1048576, got 0",
      model::InputError);
  options = On("a100_sxm4_80gb");
  options.instances = {"aws/g5.xlarge"};
  CHECK_THROWS_AS(Predict(options), UsageError);
}

TEST_CASE("forward passes become training only with an optimizer") {
  const FitFolder none;
  const TemporaryFolder folder;
  const auto predict = [&](const std::string& more, const char* work) {
    PredictOptions options;
    options.scenario = folder.Write("s.yaml",
                                    "name: passes\n"
                                    "model: bert-tiny\n"
                                    "task: sequence-classification\n"
                                    "dataset: { train: 512 }\n"
                                    "epochs: 1\n"
                                    "batch: 4\n"
                                    "padding: { static: 32 }\n"
                                    "precision: fp16\n"
                                    "stack: eager\n"
                                    "work: forward\n" +
                                        more);
    options.device = {"t4"};
    options.overrides.work = work;
    return Json::parse(Predict(options).json).at("scenario").at("work");
  };
  CHECK(predict("", "forward") == "forward");
  CHECK_THROWS_WITH_AS(
      predict("", "training"),
      "--work: expected forward, the scenario names no optimizer to train with",
      model::InputError);
  CHECK(predict("optimizer: { name: sgd, implementation: fused }\n",
                "training") == "training");
}

TEST_CASE("a precision that the device lacks is an error, not a guess") {
  const FitFolder none;
  CHECK_THROWS_AS(Predict(On("t4")), model::InputError);  // bf16
}

TEST_CASE("the same question has the same bytes for an answer") {
  const FitFolder none;
  for (const Format format :
       {Format::kTable, Format::kJson, Format::kCsv, Format::kMarkdown}) {
    CHECK(Render(Predict(On("a100_sxm4_80gb")), format) ==
          Render(Predict(On("a100_sxm4_80gb")), format));
  }
}

// Hugging Face's guide to training on one GPU (Transformers 4.21, page
// perf_train_gpu_one): BERT-large, 512 sequences of length 512, V100-SXM2-16GB,
// driver 460.91; `used` of NVML / 1024^2, and train_runtime of 128 optimizer
// steps. Nothing is fitted to them.
TEST_CASE("runs of a guide: times, and memory that the tensors stay below") {
  struct Run {
    int batch;
    int accumulation;
    const char* precision;
    bool checkpointing;
    double seconds;
    double used_mib;
    double limit;  // of the time's error
  };
  const FitFolder none;
  const TemporaryFolder folder;
  for (const Run& run : {Run{4, 1, "fp32", false, 57.82, 14949, 0.10},
                         Run{1, 4, "fp32", false, 66.03, 8681, 0.10},
                         Run{1, 4, "fp32", true, 85.47, 6775, 0.10},
                         Run{4, 1, "fp16", false, 27.46, 13939, 0.10},
                         Run{1, 4, "fp16", true, 50.76, 7275, 0.17}}) {
    CAPTURE(run.used_mib);
    PredictOptions options;
    options.scenario = folder.Write(
        "guide.yaml",
        fmt::format("name: guide\n"
                    "model: bert-large-uncased\n"
                    "task: sequence-classification\n"
                    "dataset: {{ train: 512 }}\n"
                    "epochs: 1\n"
                    "batch: {}\n"
                    "accumulation: {}\n"
                    "padding: {{ static: 512 }}\n"
                    "precision: {}\n"
                    "optimizer: {{ name: adamw, implementation: for_loop }}\n"
                    "stack: eager\n"
                    "gradient_checkpointing: {}\n",
                    run.batch,
                    run.accumulation,
                    run.precision,
                    run.checkpointing));
    options.device = {"v100_sxm2_16gb"};
    options.overrides.start_up.emplace(
        "0");  // the guide's times are of training
    const Json p = Json::parse(Predict(options).json).at("predictions").at(0);
    CHECK(p.at("run_time_s").get<double>() == Near(run.seconds, run.limit));
    // What the allocator keeps besides grows towards the end of the card.
    const double share =
        p.at("memory_bytes").get<double>() / (run.used_mib * 1048576.0);
    CHECK(share < 1.0);
    CHECK(share > 0.75);
  }
}

}  // namespace trainfare::scenarios
