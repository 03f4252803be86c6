#include "scenarios/commands/memory_advice.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sstream>
#include <string>

#include "scenarios/commands/predict.h"
#include "scenarios/report/json.h"
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

TEST_CASE("logits in parts are proposed where the stack has all at once") {
  const FitFolder none;
  PredictOptions options = OfModel("llama-3.2-1b", 16384, "rtx_4090");
  options.overrides.precisions = {"bf16"};
  options.overrides.batches = {1};
  options.overrides.settings = {"stack=unsloth",
                                "gradient_checkpointing=true",
                                "trainable.lora.rank=16",
                                "trainable.lora.base_bits=4"};
  std::string advice;
  for (const int64_t length : {32768, 65536, 98304, 131072}) {
    options.overrides.lengths = {length};
    const Report report = Predict(options);
    if (report.exit_code != kNothingFits) continue;
    CHECK(HasNote(report, "it fits with --set loss=chunked ("));
    options.overrides.settings.emplace_back("loss=chunked");
    CHECK(Predict(options).exit_code == kOk);
    return;
  }
  FAIL("each of these lengths fits");
}

TEST_CASE("what may not fit is told what is safe by its own prediction") {
  const FitFolder none;
  PredictOptions options = OfModel("phi-2", 128, "rtx_a6000");
  options.overrides.precisions = {"bf16"};
  options.overrides.batches = {2};
  // 42.7 GiB, nearly all of it weights and their update: nothing helps.
  const Report full = Predict(options);
  CHECK(HasNote(full, "the 80 % interval of its memory reaches to 49.58"));
  CHECK_FALSE(HasNote(full, "safe"));
  // Where activations are most of it, either does.
  PredictOptions wide = OfModel("gpt2", 1024, "rtx_a6000");
  wide.overrides.precisions = {"bf16"};
  wide.overrides.batches = {1};
  const auto largest = Json::parse(Predict(wide).json)
                           .at("predictions")[0]
                           .at("largest_batch")
                           .get<int64_t>();
  wide.overrides.batches = {largest};
  const Report close = Predict(wide);
  std::string note;
  for (const Note& one : close.notes) {
    if (one.text.find(" is safe") != std::string::npos) note = one.text;
  }
  CAPTURE(note);
  CHECK(note.find(" or --set gradient_checkpointing=true is safe") !=
        std::string::npos);
  const size_t flag = note.find("; --batch ");
  REQUIRE(flag != std::string::npos);
  // The batch that is named is safe, and the largest that is.
  const int64_t safe = std::stoll(note.substr(flag + 10));
  CHECK(safe < largest);
  wide.overrides.batches = {safe};
  CHECK_FALSE(HasNote(Predict(wide), "interval of its memory"));
  wide.overrides.batches = {safe + 1};
  CHECK(HasNote(Predict(wide), "interval of its memory"));
}

TEST_CASE("dropout is offered to be left out where that makes it fit") {
  const FitFolder none;
  PredictOptions options = OfModel("bert-base-uncased", 512, "t4");
  options.overrides.precisions = {"fp16"};
  const std::string scores = "attention=materialised";
  options.overrides.settings = {scores, "dropout=0"};
  // The largest batch without dropout does not fit with it.
  options.overrides.batches = {1};
  const int64_t largest = Json::parse(Predict(options).json)
                              .at("predictions")
                              .at(0)
                              .at("largest_batch");
  options.overrides.batches = {largest};
  CHECK(Predict(options).exit_code == kOk);
  options.overrides.settings = {scores};
  const Report report = Predict(options);
  CHECK(report.exit_code == kNothingFits);
  CHECK(HasNote(report, "or with --set dropout=0 ("));
  options.overrides.settings = {scores, "dropout=0"};
  options.overrides.batches = {100 * largest};
  CHECK_FALSE(HasNote(Predict(options), "dropout"));
}

TEST_CASE("where attention is latent the advice names matrices that it has") {
  const FitFolder none;
  PredictOptions options = OfModel("deepseek-v2-lite", 4096, "h200_sxm");
  options.overrides.batches = {1};
  CHECK(Predict(options).exit_code == kNothingFits);
  const Report report = Predict(options);
  CHECK(HasNote(report, "--set trainable.lora.rank=16 ("));
  // As it is advised, with matrices that nobody has to name.
  options.overrides.settings = {"trainable.lora.rank=16"};
  const Report adapted = Predict(options);
  CHECK(adapted.exit_code == kOk);
  CHECK(Json::parse(adapted.json)
            .at("/scenario/workload/trainable/lora/matrices"_json_pointer) ==
        Json({"output", "key_value_down"}));
}

TEST_CASE("a model that no device has room for is divided among several") {
  const FitFolder none;
  PredictOptions options = OfModel("llama-3.1-405b", 8192, "");
  options.device.clear();
  options.instances = {"aws/p5.48xlarge"};
  options.hosts = 16;
  const Report report = Predict(options);
  CHECK(report.exit_code == kNothingFits);
  std::string advice;
  for (const Note& note : report.notes) {
    if (note.text.starts_with("it fits with ")) advice = note.text;
  }
  CAPTURE(advice);
  CHECK(advice.find("--set parallel.tensor=8 ") != std::string::npos);
  const std::string first = advice.substr(0, advice.find(" ("));
  std::istringstream words(first);
  for (std::string word; words >> word;) {
    if (word == "--set" && words >> word) {
      options.overrides.settings.push_back(word);
    } else if (word == "--batch") {
      options.overrides.batches = {1};
    }
  }
  CHECK(Predict(options).exit_code == kOk);
  // Where nothing serves, no model is named that would not fit either.
  PredictOptions small = OfModel("llama-3.1-70b", 16384, "p40");
  small.overrides.precisions = {"fp32"};
  const Report none_fits = Predict(small);
  CHECK(HasNote(none_fits, "adapters make it fit"));
  small.largest = "model";
  CHECK(HasNote(none_fits, "--largest model") ==
        (Predict(small).exit_code == kOk));
}

}  // namespace trainfare::scenarios
