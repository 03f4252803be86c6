#include "scenarios/commands/largest.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "model/error.h"
#include "scenarios/commands/predict.h"
#include "scenarios/report/json.h"
#include "tests/scenarios/commands/predicted.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {

TEST_CASE("the largest that fits: one more does not") {
  const FitFolder none;
  PredictOptions options;
  options.scenario = "llama_8b_lora";
  options.device = {"rtx_4090"};
  for (const std::string what : {"batch", "length", "model"}) {
    CAPTURE(what);
    options.largest = what;
    const Json json = Json::parse(Predict(options).json);
    const Json& trials = json.at("trials");
    REQUIRE(trials.size() == 2);
    CHECK(trials[0].at("fits") == true);
    CHECK(trials[1].at("fits") == false);
    if (what == "model") continue;
    // The same question of predict.
    PredictOptions again = options;
    again.largest.reset();
    const auto size = json.at("largest").get<int64_t>();
    for (const int64_t more : {0, 1}) {
      (what == "batch" ? again.overrides.batches
                       : again.overrides.lengths) = {size + more};
      const Json answer = Json::parse(Predict(again).json);
      CHECK(answer.at("predictions")[0].at("fits") == (more == 0));
    }
  }
  // A sequence holds its documents: the search begins with a token of each.
  PredictOptions packed = options;
  packed.overrides.settings = {"documents=2"};
  packed.largest = "length";
  CHECK(Json::parse(Predict(packed).json).at("largest").get<int64_t>() > 2);
  // Models of whose experts adapters cannot be asked are none of the job's.
  PredictOptions many = options;
  many.scenario = "llama_70b_qlora";
  many.device = {"h100_sxm"};
  many.largest = "model";
  CHECK(Predict(many).exit_code == kOk);
  options.largest = "batch";
  const Json lora = Json::parse(Predict(options).json);
  CHECK(lora.at("trials")[0].at("trainable_parameters") <
        lora.at("trials")[0].at("parameters"));
  options.largest = "cluster";
  CHECK_THROWS_WITH_AS(
      Predict(options),
      "--largest: expected batch, length or model, got \"cluster\"",
      UsageError);
  options.device = {"t4"};
  options.overrides.precisions = {"fp16"};
  options.largest = "batch";
  CHECK(Predict(options).exit_code == kNothingFits);
}

TEST_CASE("the largest model is one that the device runs") {
  const FitFolder none;
  PredictOptions options;
  options.scenario = "llama_8b_lora";
  options.device = {"tpu_v5e"};
  options.largest = "model";
  const Report report = Predict(options);
  CHECK(report.exit_code == kOk);
  const Json json = Json::parse(report.json);
  PredictOptions again = options;
  again.largest.reset();
  again.overrides.model = json.at("largest").get<std::string>();
  CHECK(Predict(again).exit_code == kOk);
  // Where it can run none, the job that was asked about says why.
  options.device = {"a100_sxm4_80gb"};
  options.overrides.precisions = {"fp4"};
  CHECK_THROWS_AS(Predict(options), model::InputError);
}

TEST_CASE("no larger model fits, whatever positions it was trained with") {
  const FitFolder none;
  PredictOptions options;
  options.overrides.model = "llama-3.1-8b";
  options.overrides.samples = 1000;
  options.overrides.lengths = {4096};
  options.overrides.settings = {"parallel.tensor=8"};
  options.instances = {"aws/p5.48xlarge"};
  options.largest = "model";
  const Report report = Predict(options);
  const Json trials = Json::parse(report.json).at("trials");
  const auto parameters = trials.at(0).at("parameters").get<int64_t>();
  options.largest.reset();
  for (const char* model : {"mpt-7b", "pythia-6.9b"}) {
    CAPTURE(model);
    options.overrides.model = model;
    const Json json = Json::parse(Predict(options).json);
    CHECK(json.at("predictions")[0].at("fits") == true);
    CHECK(json.at("scenario").at("parameters").get<int64_t>() <= parameters);
  }
}

TEST_CASE("what a job asks of its model it asks of every model") {
  const FitFolder none;
  PredictOptions options = OfModel("bert-base-uncased", 128, "a10g");
  options.largest = "model";
  options.overrides.settings = {"labels=1000", "dropout=0.3"};
  const Json trials = Json::parse(Predict(options).json).at("trials");
  PredictOptions again = options;
  again.largest.reset();
  again.overrides.model = trials.at(0).at("model").get<std::string>();
  const Json one = Json::parse(Predict(again).json);
  CHECK(one.at("scenario").at("parameters") == trials.at(0).at("parameters"));
  CHECK(one.at("predictions")[0].at("memory_bytes") ==
        trials.at(0).at("memory_bytes"));
  // A model's own dropout stays where nobody asks for another.
  PredictOptions plain = OfModel("gpt2", 512, "a10g");
  plain.largest = "model";
  const Json of_plain = Json::parse(Predict(plain).json).at("trials");
  CHECK(of_plain.at(0).at("parameters").get<int64_t>() > 1'000'000'000);
}

TEST_CASE("the largest batch says which one is safe") {
  const FitFolder none;
  PredictOptions options;
  options.scenario = "llama_8b_lora";
  options.device = {"rtx_4090"};
  options.largest = "batch";
  const Report report = Predict(options);
  PredictOptions asked = options;
  asked.largest.reset();
  asked.overrides.batches = {
      Json::parse(report.json).at("largest").get<int64_t>()};
  std::string note;
  for (const Note& one : Predict(asked).notes) {
    if (one.caution == Caution::kMemoryInInterval) note = one.text;
  }
  REQUIRE(note.find(" is safe") != std::string::npos);
  CHECK(HasNote(report, note));
}

}  // namespace trainfare::scenarios
