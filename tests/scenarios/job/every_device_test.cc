// Every kind of model on every device: an answer, or a reason why not.

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "hardware/catalog/device.h"
#include "model/error.h"
#include "scenarios/commands/predict.h"
#include "scenarios/commands/recommend.h"
#include "scenarios/report/json.h"
#include "tests/hardware/temporary_folder.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {
namespace {

struct Preset {
  std::string model;
  std::string task;
};

const std::vector<Preset>& Presets() {
  static const std::vector<Preset> presets = {
      {"roberta-base", "sequence-classification"},
      {"distilbert-base-uncased", "sequence-classification"},
      {"bert-large-uncased", "question-answering"},
      {"bert-base-uncased", "masked-language-model"},
      {"gpt2", "causal-language-model"},
      {"transformer-base", "causal-language-model"}};
  return presets;
}

// Text of a scenario, `more` keys at its end.
std::string Text(const Preset& preset, const std::string& more = "") {
  return "name: " + preset.model + "\nmodel: " + preset.model +
         "\ntask: " + preset.task +
         "\ndataset: { train: 1000 }\nepochs: 1\nbatch: 4\n"
         "padding: { static: 64 }\nprecision: bf16\n"
         "optimizer: { name: adamw, implementation: multi_tensor }\n"
         "stack: eager\n" +
         more;
}

// The best precision that a device has.
std::string PrecisionOf(const hardware::Device& device) {
  if (device.peak.bf16) return "bf16";
  if (device.peak.fp16) return "fp16";
  return "fp32";
}

// Empty: there is an answer, and it makes sense.
std::string ReasonOf(const hardware::Device& device, const std::string& path) {
  PredictOptions options;
  options.scenario = path;
  options.device = {device.name};
  options.overrides.precisions = {PrecisionOf(device)};
  Report report;
  try {
    report = Predict(options);
  } catch (const model::InputError& error) {
    return error.what();
  }
  const Json answer = Json::parse(report.json).at("predictions").at(0);
  if (!answer.at("fits").get<bool>()) return answer.at("reason");
  const double step = answer.at("step_time_s");
  CHECK(std::isfinite(step));
  CHECK(step > 1e-6);
  CHECK(step < 60);
  CHECK(answer.at("step_time_low_s").get<double>() < step);
  CHECK(answer.at("step_time_high_s").get<double>() > step);
  CHECK(answer.at("mfu").get<double>() > 0);
  CHECK(answer.at("mfu").get<double>() < 1);
  return "";
}

}  // namespace

TEST_CASE("every preset on every device has an answer or a reason") {
  const FitFolder own;
  for (const Preset& preset : Presets()) {
    const std::string path = own.Write("scenario.yaml", Text(preset));
    int answered = 0;
    for (const auto& device : hardware::DeviceCatalog::Shipped().devices()) {
      CAPTURE(preset.model);
      CAPTURE(device.name);
      const std::string reason = ReasonOf(device, path);
      if (device.inference_only) {
        CHECK(reason.find("runs inference only") != std::string::npos);
      } else if (!reason.empty()) {
        CHECK(reason.starts_with("does not fit memory by "));
      } else {
        ++answered;
      }
    }
    CHECK(answered > 50);
  }
}

TEST_CASE("forward passes run on every device, no slower than training") {
  const FitFolder own;
  const Preset preset = {"bert-tiny", "sequence-classification"};
  const std::string path = own.Write("scenario.yaml", Text(preset));
  for (const auto& device : hardware::DeviceCatalog::Shipped().devices()) {
    CAPTURE(device.name);
    PredictOptions options;
    options.scenario = path;
    options.device = {device.name};
    options.overrides.precisions = {PrecisionOf(device)};
    options.overrides.work = "forward";
    const auto step = [&] {
      const Json answer =
          Json::parse(Predict(options).json).at("predictions").at(0);
      CHECK(answer.at("fits").get<bool>());
      return answer.at("step_time_s").get<double>();
    };
    const double forward = step();
    CHECK(forward > 0);
    if (device.inference_only) continue;
    options.overrides.work = "training";
    CHECK(forward < step());
  }
}

TEST_CASE("what trains in part runs on every device, and no slower") {
  const FitFolder own;
  const Preset preset = {"bert-base-uncased", "sequence-classification"};
  const std::vector<std::string> parts = {"",
                                          "trainable: { frozen_layers: 12 }\n",
                                          "trainable: { lora: { rank: 8 } }\n"};
  for (const auto& device : hardware::DeviceCatalog::Shipped().devices()) {
    if (device.inference_only) continue;
    CAPTURE(device.name);
    std::vector<double> optimizer;
    for (const std::string& part : parts) {
      PredictOptions options;
      options.scenario = own.Write("scenario.yaml", Text(preset, part));
      options.device = {device.name};
      options.overrides.precisions = {PrecisionOf(device)};
      const Json answer =
          Json::parse(Predict(options).json).at("predictions").at(0);
      // All of it takes most memory, and comes first.
      if (!answer.at("fits").get<bool>()) break;
      optimizer.push_back(answer.at("phases").at("optimizer_s"));
    }
    if (optimizer.empty()) continue;
    REQUIRE(optimizer.size() == parts.size());
    CHECK(optimizer[1] <= optimizer[0]);
    CHECK(optimizer[2] <= optimizer[0]);
  }
}

TEST_CASE("recommend answers for every preset") {
  const FitFolder own;
  for (const Preset& preset : Presets()) {
    CAPTURE(preset.model);
    RecommendOptions options;
    options.scenario = own.Write("scenario.yaml", Text(preset));
    const Json json = Json::parse(Recommend(options).json);
    CHECK(json.at("chosen").is_object());
    for (const Json& candidate : json.at("candidates")) {
      if (candidate.at("chosen").get<bool>()) continue;
      CHECK_FALSE(candidate.at("reason").get<std::string>().empty());
    }
  }
}

TEST_CASE("dynamic lengths on a device that compiles need a compile time") {
  // The job of scenarios/emotion_bert_base.yaml, every batch its own length.
  const hardware::TemporaryFolder folder;
  std::filesystem::copy(
      std::string(TRAINFARE_ROOT) + "/scenarios/lengths/emotion.yaml",
      folder.path());
  PredictOptions options;
  options.scenario = folder.Write("dynamic_padding.yaml",
                                  "name: emotion, BERT-base, dynamic padding\n"
                                  "model: bert-base-uncased\n"
                                  "task: sequence-classification\n"
                                  "labels: 6\n"
                                  "dataset: { train: 16000, lengths: "
                                  "emotion.yaml }\n"
                                  "epochs: 3\n"
                                  "batch: 64\n"
                                  "padding: { dynamic: 128 }\n"
                                  "precision: bf16\n"
                                  "optimizer: { name: adamw, implementation: "
                                  "multi_tensor }\n"
                                  "stack: compiled\n");
  // By a dataflow chip's compiler: the middle of 1 min and 1 h for each.
  options.device = {"sambanova_sn30"};
  const Json placed =
      Json::parse(Predict(options).json).at("predictions").at(0);
  CHECK(placed.at("run").at("compile_known") == false);
  CHECK(placed.at("run").at("compile_s").get<double>() >=
        20 * std::sqrt(60.0 * 3600.0));
  // Where a range is known of the kind, it is the interval's.
  options.device = {"trainium1"};
  const Json range = Json::parse(Predict(options).json).at("predictions").at(0);
  CHECK(range.at("run").at("compile_known") == false);
  CHECK(range.at("run_time_high_s").get<double>() >
        50.0 * range.at("run_time_s").get<double>());
  // By XLA, too: the middle of 15 s and 5 min for each of them.
  options.device = {"tpu_v3"};
  const Json xla = Json::parse(Predict(options).json).at("predictions").at(0);
  CHECK(xla.at("run").at("compile_known") == false);
  CHECK(xla.at("run").at("compile_s").get<double>() >=
        20 * std::sqrt(15.0 * 300.0));
  // A GPU takes any length.
  options.device = {"a100_sxm4_80gb"};
  CHECK(Json::parse(Predict(options).json)
            .at("predictions")
            .at(0)
            .at("run")
            .at("compile_s") == 0.0);
}

}  // namespace trainfare::scenarios
