#include "scenarios/commands/faster_settings.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "scenarios/commands/predict.h"
#include "scenarios/report/json.h"
#include "tests/scenarios/commands/predicted.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {

TEST_CASE("one prediction says which settings save most, by predictions") {
  const FitFolder none;
  PredictOptions options;
  options.scenario = "llama_8b_fsdp";
  options.instances = {"aws/p5.48xlarge"};
  const auto speed = [](const PredictOptions& asked) {
    const Json json = Json::parse(Predict(asked).json);
    return json.at("predictions").at(0).at("samples_per_s").get<double>();
  };
  const double as_asked = speed(options);
  PredictOptions narrow = options;
  narrow.overrides.precisions = {"fp8"};
  PredictOptions kept = options;
  kept.overrides.settings = {"gradient_checkpointing=false"};
  const Report report = Predict(options);
  const auto said = [&](const char* setting, double changed) {
    return HasNote(
        report,
        fmt::format(
            "{} ({:.0f} % less", setting, 100.0 * (1.0 - as_asked / changed)));
  };
  CHECK(HasNote(report, "steps are faster with "));
  CHECK(said("--precision fp8", speed(narrow)));
  CHECK(said("--set gradient_checkpointing=false", speed(kept)));
  // Of what fits, and does as well as it can, nothing is said; nor of several.
  CHECK_FALSE(HasNote(report, "--set parallel.shard=none"));
  options.overrides.batches = {1, 2};
  CHECK_FALSE(HasNote(Predict(options), "steps are faster with "));
}

// Hopper has kernels of attention of its own, which LibTorch's is not; Ampere
// has none.
TEST_CASE(
    "attention of the device's generation is proposed where there is one") {
  const FitFolder none;
  PredictOptions options;
  options.overrides.model = "qwen3-0.6b";
  options.overrides.samples = 1000;
  options.overrides.batches = {1};
  options.overrides.lengths = {32'768};
  options.overrides.precisions = {"bf16"};
  options.overrides.settings = {"attention=flash", "stack=liger"};
  options.device = {"h100_sxm"};
  CHECK(HasNote(Predict(options), "--set attention=flash_3"));
  options.device = {"a100_sxm4_80gb"};
  CHECK_FALSE(HasNote(Predict(options), "--set attention=flash_3"));
}

// QLoRA multiplies in 16 bits what it keeps in 4; a base in 8 bits is multiplied
// so.
TEST_CASE("8 bits are proposed where a library multiplies them") {
  const FitFolder none;
  PredictOptions options;
  options.scenario = "llama_8b_lora";
  options.device = {"h100_sxm"};
  CHECK(HasNote(Predict(options), "--precision fp8"));
  options.overrides.settings = {"trainable.lora.base_bits=4"};
  CHECK_FALSE(HasNote(Predict(options), "--precision fp8"));
}

TEST_CASE("experts that wait for what they send are told what sends less") {
  const FitFolder none;
  PredictOptions options;
  options.overrides.model = "deepseek-v3";
  options.overrides.samples = 100'000;
  options.overrides.batches = {1};
  options.overrides.lengths = {4096};
  options.overrides.precisions = {"fp8"};
  options.overrides.settings = {"parallel.shard=zero1",
                                "parallel.expert=64",
                                "parallel.pipeline=4",
                                "accumulation=32",
                                "stack=megatron",
                                "gradient_checkpointing=true"};
  options.instances = {"aws/p5.48xlarge"};
  options.hosts = 32;
  const char* by_host = "--set parallel.expert_exchange=by_host (";
  const char* overlap = "--set parallel.expert_overlap=true (";
  const Report report = Predict(options);
  for (const Note& note : report.notes) CAPTURE(note.text);
  CHECK(HasNote(report, by_host));
  CHECK(HasNote(report, overlap));
  // What is so already is not proposed.
  options.overrides.settings.emplace_back("parallel.expert_overlap=true");
  CHECK_FALSE(HasNote(Predict(options), overlap));
}

TEST_CASE("what takes no more memory is proposed, however tight that is") {
  const FitFolder none;
  PredictOptions options;
  options.overrides.model = "gpt-oss-120b";
  options.overrides.samples = 1000;
  options.overrides.batches = {20};
  options.overrides.lengths = {1024};
  options.overrides.settings = {"trainable.lora.rank=16",
                                "trainable.lora.base_bits=4",
                                "stack=unsloth",
                                "gradient_checkpointing=true"};
  options.device = {"h100_sxm"};
  const Report report = Predict(options);
  REQUIRE(report.exit_code == kOk);
  CHECK(HasNote(report, "of its memory reaches to"));
  CHECK(HasNote(report, "--set experts=grouped ("));
}

}  // namespace trainfare::scenarios
