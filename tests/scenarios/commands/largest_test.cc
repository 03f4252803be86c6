#include "scenarios/commands/largest.h"

#include <doctest/doctest.h>

#include <string>

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

}  // namespace trainfare::scenarios
