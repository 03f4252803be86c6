#include "scenarios/commands/memory_advice.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sstream>
#include <string>

#include "scenarios/commands/predict.h"
#include "tests/scenarios/commands/predicted.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {

TEST_CASE("what does not fit is told what to change, and then fits") {
  const FitFolder none;
  PredictOptions options = OfModel("llama-3.1-8b", 2048, "rtx_3090");
  const Report report = Predict(options);
  CHECK(report.exit_code == kNothingFits);
  std::string advice;
  for (const Note& note : report.notes) {
    if (note.text.starts_with("it fits with ")) advice = note.text;
  }
  CAPTURE(advice);
  // 16 GiB of weights alone: no change but adapters serves.
  REQUIRE(advice.starts_with("it fits with --set"));
  CHECK(advice.find("trainable.lora.rank=16") != std::string::npos);
  std::istringstream words(advice);
  for (std::string word; words >> word;) {
    if (word == "--set" && words >> word) {
      options.overrides.settings.push_back(word);
    } else if (word == "--batch") {
      options.overrides.batches = {1};
    }
  }
  CHECK(Predict(options).exit_code == kOk);
}

TEST_CASE("all of a model is offered with a coarser update, where that fits") {
  const FitFolder none;
  PredictOptions options = OfModel("llama-3.1-8b", 2048, "h100_sxm");
  options.overrides.batches = {1};
  options.overrides.precisions = {"bf16"};
  const Report report = Predict(options);
  CHECK(report.exit_code == kNothingFits);
  const char* pure = "--set narrow_weights=true --set optimizer.masters=none (";
  CHECK(HasNote(report, fmt::format("it fits with {}", pure)));
  CHECK(HasNote(report, "or with --set trainable.lora.rank=16 ("));
  // Fewer bytes than as it is asked, and it fits.
  options.overrides.settings = {"narrow_weights=true",
                                "optimizer.masters=none"};
  const Report narrow = Predict(options);
  CHECK(narrow.exit_code == kOk);
  CHECK_FALSE(HasNote(narrow, "it fits with"));
  // What leaves the update as it is goes before that.
  PredictOptions long_one = OfModel("llama-3.2-1b", 65536, "h100_sxm");
  long_one.overrides.batches = {1};
  const Report recomputed = Predict(long_one);
  CHECK(recomputed.exit_code == kNothingFits);
  CHECK_FALSE(HasNote(recomputed, "optimizer."));
  // Both where one is not enough, each by itself where it is.
  PredictOptions small = OfModel("llama-3.2-3b", 1024, "rtx_3090");
  small.overrides.batches = {1};
  CHECK(HasNote(Predict(small),
                "--set optimizer.masters=none --set optimizer.state_bits=8 ("));
  small.device = {"l40s"};
  CHECK(HasNote(Predict(small), "or with --set optimizer.state_bits=8 ("));
}

TEST_CASE("where attention is latent the advice names matrices that it has") {
  const FitFolder none;
  PredictOptions options = OfModel("deepseek-v2-lite", 4096, "h200_sxm");
  options.overrides.batches = {1};
  CHECK(Predict(options).exit_code == kNothingFits);
  options.overrides.settings = {
      "trainable.lora.rank=16",
      "trainable.lora.matrices=[key_value_down,output]"};
  CHECK(Predict(options).exit_code == kOk);
  options.overrides.settings.clear();
  const Report report = Predict(options);
  CHECK(HasNote(report,
                "--set trainable.lora.rank=16 --set "
                "trainable.lora.matrices=[key_value_down,output]"));
}

}  // namespace trainfare::scenarios
