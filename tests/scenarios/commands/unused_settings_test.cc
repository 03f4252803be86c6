#include "scenarios/commands/unused_settings.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "scenarios/commands/predict.h"
#include "scenarios/report/json.h"
#include "tests/scenarios/commands/predicted.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {

TEST_CASE("what only 8 bits have is said to be of no effect in others") {
  const FitFolder none;
  PredictOptions options;
  options.scenario = "llama_8b_fsdp";
  options.instances = {"aws/p5.48xlarge"};
  const auto says = [&] {
    const Json notes = Json::parse(Predict(options).json).at("notes");
    return std::any_of(notes.begin(), notes.end(), [](const Json& note) {
      return note.get<std::string>() ==
             "fp8: of no effect in bf16; hint: precision: fp8";
    });
  };
  CHECK(!says());
  options.overrides.settings = {"fp8.scaling=rows"};
  CHECK(says());
  options.overrides.settings.push_back("precision=fp8");
  CHECK(!says());
}

TEST_CASE("a setting that changes nothing says what it lacks") {
  const FitFolder none;
  struct Asked {
    std::vector<std::string> settings;
    std::string note;
    std::string effective;  // with which it is of effect; empty: with nothing
  };
  for (const Asked& asked : std::vector<Asked>{
           {{"optimizer.masters=none"},
            "optimizer.masters: of no effect where weights are in fp32; hint: "
            "narrow_weights: true",
            "narrow_weights=true"},
           {{"optimizer.wide_gradients=true"},
            "optimizer.wide_gradients: of no effect where gradients are in "
            "fp32; hint: narrow_weights: true",
            "narrow_weights=true"},
           {{"trainable.lora.rank=8", "trainable.lora.double_quantised=false"},
            "trainable.lora.double_quantised: of no effect without a base in 4 "
            "bits; hint: trainable.lora.base_bits: 4",
            "trainable.lora.base_bits=4"},
           {{"target_length=64"},
            "target_length: of no effect in a model of one side",
            ""},
           {{"compiler_level=1"},
            "compiler_level: of no effect on h100_sxm, whose compiler has none",
            ""},
           {{"gradient_compression=half"},
            "gradient_compression: of no effect where no ranks sum gradients",
            ""}}) {
    CAPTURE(asked.note);
    PredictOptions options = OfModel("llama-3.2-1b", 512, "h100_sxm");
    options.overrides.batches = {1};
    options.overrides.precisions = {"bf16"};
    const std::string key = asked.note.substr(0, asked.note.find(':'));
    CHECK_FALSE(HasNote(Predict(options), key + ": of no effect"));
    options.overrides.settings = asked.settings;
    const Report report = Predict(options);
    CHECK(std::any_of(
        report.notes.begin(), report.notes.end(), [&](const Note& note) {
          return note.text == asked.note;
        }));
    if (asked.effective.empty()) continue;
    options.overrides.settings.push_back(asked.effective);
    CHECK_FALSE(HasNote(Predict(options), key + ": of no effect"));
  }
}

TEST_CASE("what several devices have of a setting one has not") {
  const FitFolder none;
  PredictOptions several = OfModel("llama-3.2-1b", 512, "h100_sxm");
  several.devices = 8;
  several.overrides.settings = {"gradient_compression=half"};
  CHECK_FALSE(HasNote(Predict(several), "gradient_compression: of no effect"));
  several.overrides.settings = {"trainable.lora.rank=8",
                                "trainable.lora.as_units=true"};
  CHECK(HasNote(Predict(several),
                "trainable.lora.as_units: of no effect where nothing is "
                "gathered; hint: parallel.shard: fsdp"));
  several.overrides.settings.emplace_back("parallel.shard=fsdp");
  CHECK_FALSE(HasNote(Predict(several), "as_units: of no effect"));
}

TEST_CASE("exchanges of experts have no other micro-batch beside one") {
  const FitFolder none;
  PredictOptions options = OfModel("qwen3-30b-a3b", 512, "h100_sxm");
  options.devices = 8;
  options.overrides.batches = {1};
  options.overrides.precisions = {"bf16"};
  options.overrides.settings = {"parallel.expert=8",
                                "parallel.shard=fsdp",
                                "parallel.expert_overlap=true"};
  const char* words =
      "parallel.expert_overlap: of no effect with one micro-batch; hint: "
      "accumulation: 2";
  CHECK(HasNote(Predict(options), words));
  options.overrides.settings.emplace_back("accumulation=2");
  CHECK_FALSE(HasNote(Predict(options), words));
}

}  // namespace trainfare::scenarios
