#include "scenarios/commands/predict.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/fit_file.h"
#include "calibrate/fit/predictor.h"
#include "model/error.h"
#include "scenarios/report/json.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {
namespace {

PredictOptions On(std::string_view device) {
  PredictOptions options;
  options.scenario = "emotion_bert_base";
  options.device = {std::string(device)};
  return options;
}

// A model without a scenario.
PredictOptions OfModel(const char* model, int64_t length, const char* device) {
  PredictOptions options;
  options.overrides.model = model;
  options.overrides.samples = 1000;
  options.overrides.lengths = {length};
  options.device = {device};
  return options;
}

bool HasNote(const Report& report, std::string_view words) {
  return std::any_of(
      report.notes.begin(), report.notes.end(), [&](const Note& note) {
        return note.text.find(words) != std::string::npos;
      });
}

}  // namespace

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
    CHECK(share == doctest::Approx(1.0).epsilon(1e-9));
    double memory = 0;
    for (const Json& term : p.at("memory_terms")) {
      memory += term.at("memory_bytes").get<double>();
    }
    CHECK(memory == doctest::Approx(p.at("memory_bytes").get<double>()));
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
          doctest::Approx(kernel.at("forward_s").get<double>() +
                          kernel.at("backward_s").get<double>() +
                          kernel.at("optimizer_s").get<double>()));
    if (i > 0) CHECK(kernel.at("time_s") <= kernels[i - 1].at("time_s"));
    share += kernel.at("share").get<double>();
  }
  CHECK(share == doctest::Approx(1.0).epsilon(1e-9));
  options.overrides.batches = {8, 16};
  const Json several = Json::parse(Predict(options).json);
  CHECK_FALSE(several.at("predictions").at(0).contains("kernels"));
}

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

TEST_CASE("an instance brings its device, its count and its price") {
  const FitFolder none;
  PredictOptions options;
  options.scenario = "emotion_bert_base";
  options.instances = {"aws/g5.12xlarge"};
  const Json json = Json::parse(Predict(options).json);
  CHECK(json.at("device") == "a10g");
  const Json& p = json.at("predictions")[0];
  CHECK(p.at("devices") == 4);
  const double hours =
      std::max(60.0, std::ceil(p.at("run_time_s").get<double>())) / 3600.0;
  CHECK(p.at("cost_usd").get<double>() ==
        doctest::Approx(hours *
                        json.at("price").at("price_usd_per_hour").get<double>())
            .epsilon(1e-9));
}

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

TEST_CASE("a window of all positions is said to be one") {
  const FitFolder none;
  const auto says = [](const char* window) {
    PredictOptions options =
        OfModel(R"({"model_type": "mistral", "num_hidden_layers": 4,
                    "hidden_size": 64, "num_attention_heads": 4,
                    "num_key_value_heads": 4, "intermediate_size": 128,
                    "vocab_size": 100, "max_position_embeddings": 640,
                    "sliding_window": )",
                64,
                "l4");
    options.overrides.model = *options.overrides.model + window + "}";
    return HasNote(Predict(options),
                   "window 640: all positions of mistral are seen; a longer "
                   "one of a config.json is taken as that");
  };
  CHECK(says("65536"));
  CHECK(says("640"));
  CHECK(!says("639"));
  CHECK(!says("null"));
}

TEST_CASE("levels of a compiler count where a device's file says their cost") {
  const FitFolder none;
  PredictOptions options = On("trainium2");
  options.overrides.settings = {"compiler_level=3"};
  CHECK(HasNote(Predict(options),
                "compiler_level: what it changes was measured on trainium1 "
                "alone, not on trainium2: as level 2"));
  options.device = {"trainium1"};
  CHECK(!HasNote(Predict(options), "compiler_level: "));
}

TEST_CASE("a host is too small for a compiler where that was tried alone") {
  const FitFolder none;
  const std::string unknown = "memory of the host for compiling";
  PredictOptions options = On("trainium2");
  // Without an instance nobody knows the host.
  CHECK(!HasNote(Predict(options), unknown));
  options.device = {};
  options.instances = {"aws/trn2.48xlarge"};
  CHECK(HasNote(Predict(options),
                "memory of the host for compiling was measured on trainium1 "
                "alone, not on trainium2: no batch is refused for it"));
  options.overrides.settings = {"run.warm_cache=true"};
  CHECK(!HasNote(Predict(options), unknown));
  options.overrides.settings = {};
  options.instances = {"aws/trn1.2xlarge"};
  CHECK(!HasNote(Predict(options), unknown));
}

TEST_CASE("several hosts are several instances, by their network") {
  const FitFolder none;
  PredictOptions options;
  options.scenario = "llama_8b_fsdp";
  options.instances = {"aws/p5.48xlarge"};
  const Json one = Json::parse(Predict(options).json);
  CHECK(one.at("hosts") == 1);
  options.overrides.settings = {"parallel.data=16"};
  // As many hosts as have the ranks.
  const Report two_report = Predict(options);
  const Json two = Json::parse(two_report.json);
  CHECK(two.at("hosts") == 2);
  CHECK(two.at("predictions")[0].at("devices") == 16);
  CHECK(two_report.headline[0].find("of 2 x aws/p5.48xlarge") !=
        std::string::npos);
  CHECK(two.at("price").at("price_usd_per_hour").get<double>() ==
        doctest::Approx(
            2 * one.at("price").at("price_usd_per_hour").get<double>()));
  options.network = "100 Gbit/s";
  const Json slow = Json::parse(Predict(options).json);
  CHECK(slow.at("predictions")[0].at("step_time_s") >
        two.at("predictions")[0].at("step_time_s"));
  options.network = "fast";
  CHECK_THROWS_AS(Predict(options), model::InputError);
  options.network.reset();
  options.hosts = 3;
  CHECK_THROWS_WITH_AS(Predict(options),
                       "--hosts: expected a divisor of the 16 devices, got 3; "
                       "hint: --devices 18",
                       model::InputError);
  options.hosts = 0;
  CHECK_THROWS_AS(Predict(options), model::InputError);
  options.hosts = 1;
  options.network = "100 Gbit/s";
  CHECK_THROWS_AS(Predict(options), UsageError);
}

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

TEST_CASE("a part of what an instance has may be asked about") {
  const FitFolder none;
  PredictOptions options = On("trainium1_core");
  options.instances = {"aws/trn1.2xlarge"};
  options.devices = 1;
  const Json core = Json::parse(Predict(options).json);
  CHECK(core.at("device") == "trainium1_core");
  CHECK(core.at("instance") == "aws/trn1.2xlarge");
  // The whole instance is paid for.
  CHECK_FALSE(core.at("predictions")[0].at("cost_usd").is_null());
  options.devices.reset();
  const Json both = Json::parse(Predict(options).json);
  CHECK(both.at("predictions")[0].at("devices") == 2);
  options.devices = 3;
  CHECK_THROWS_WITH_AS(Predict(options),
                       "--devices: expected at most 2, the trainium1_core of "
                       "aws/trn1.2xlarge, got 3",
                       model::InputError);
  options.devices = 1;
  options.device = {"t4"};
  CHECK_THROWS_WITH_AS(Predict(options),
                       "--device and --instance: give one of them; t4 is no "
                       "part of the trainium1 that aws/trn1.2xlarge has",
                       UsageError);
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

TEST_CASE("what an allocator holds besides is said where it is too much") {
  const FitFolder none;
  PredictOptions options = OfModel("llama-3-70b", 4096, "h100_sxm");
  options.devices = 8;
  options.overrides.batches = {1};
  options.overrides.precisions = {"bf16"};
  options.overrides.settings = {"narrow_weights=true",
                                "optimizer.masters=none",
                                "gradient_checkpointing=true",
                                "parallel.shard=fsdp",
                                "attention=flash",
                                "stack=compiled"};
  const Report close = Predict(options);
  CHECK(close.exit_code == kOk);
  CHECK(HasNote(
      close, "batch 1, length 4096: may run out: an allocator holds up to "));
  // What is asked for already is no advice.
  CHECK_FALSE(HasNote(close, "is safe"));
  // With twice the devices there is room for that.
  options.devices = 16;
  CHECK_FALSE(HasNote(Predict(options), "may run out"));
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

TEST_CASE(
    "beyond a model's positions is an answer with a note, but of a table") {
  const FitFolder none;
  const Report beyond = Predict(OfModel("llama-2-7b", 8192, "h200_sxm"));
  const char* words =
      "8192 tokens are beyond the 4096 positions that llama-2-7b was trained "
      "with";
  CHECK(HasNote(beyond, words));
  CHECK(Json::parse(beyond.json)
            .at("warnings")
            .dump()
            .find("length_beyond_positions") != std::string::npos);
  CHECK_FALSE(HasNote(Predict(OfModel("llama-2-7b", 4096, "h200_sxm")),
                      "positions that"));
  CHECK_THROWS_AS(Predict(OfModel("gpt2", 1025, "h200_sxm")),
                  model::InputError);
  // What is largest stays within what it was trained for, unless asked beyond.
  const auto largest = [](int64_t length) {
    PredictOptions options = OfModel("tinyllama-1.1b", length, "h200_sxm");
    options.overrides.batches = {1};
    options.largest = "length";
    return Json::parse(Predict(options).json).at("largest").get<int64_t>();
  };
  CHECK(largest(128) == 2048);
  CHECK(largest(4096) == 4096);
  PredictOptions models = OfModel("llama-2-7b", 8192, "h200_sxm");
  models.largest = "model";
  CHECK(HasNote(Predict(models), "models are the presets"));
}

TEST_CASE("a family's name is its usual form, with a note") {
  const FitFolder none;
  const Report bare = Predict(On("H100"));
  CHECK(bare.headline.front().find("on h100_sxm") != std::string::npos);
  CHECK(HasNote(bare, "H100 is taken as h100_sxm; others: h100_nvl"));
  CHECK_FALSE(HasNote(Predict(On("h100_sxm")), "is taken as"));
  CHECK(HasNote(Predict(On("A100")), "A100 is taken as a100_sxm4_40gb"));
  PredictOptions largest = On("A100");
  largest.largest = "batch";
  CHECK(HasNote(Predict(largest), "A100 is taken as a100_sxm4_40gb"));
}

TEST_CASE("instances and slices in the place of a device are told apart") {
  const FitFolder none;
  const auto refusal = [](const char* name) -> std::string {
    try {
      Predict(On(name));
    } catch (const model::InputError& error) {
      return error.what();
    }
    return "";
  };
  const auto slice = [&](const char* name, const char* rest) {
    CHECK(refusal(name) ==
          fmt::format(
              "--device: unknown device \"{}\"; a slice of {}", name, rest));
  };
  slice("TPU v3-8", "4 chips; hint: --device tpu_v3 --devices 4");
  slice("v4-8", "4 chips; hint: --device tpu_v4 --devices 4");
  slice("v4-64", "32 chips; hint: --device tpu_v4 --devices 32");
  slice("v5litepod-8", "8 chips; hint: --device tpu_v5e --devices 8");
  slice("v5e-1", "1 chip; hint: --device tpu_v5e --devices 1");
  slice("v5p-8", "4 chips; hint: --device tpu_v5p --devices 4");
  slice("tpu-v6e-8", "8 chips; hint: --device tpu_v6e --devices 8");
  CHECK(refusal("-8").find("slice") == std::string::npos);
  CHECK(refusal("trn1") ==
        "--device: unknown device \"trn1\"; a family of instances; hint: "
        "--instance aws/trn1.2xlarge, or --device trainium1");
  CHECK(refusal("trn1.32xlarge") ==
        "--device: unknown device \"trn1.32xlarge\"; an instance; hint: "
        "--instance aws/trn1.32xlarge, or --device trainium1 --devices 16");
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

TEST_CASE("weights are not as narrow as a model's name says, with a note") {
  const FitFolder none;
  PredictOptions options =
      OfModel("unsloth/llama-3-8b-bnb-4bit", 512, "h200_sxm");
  const char* words =
      "unsloth/llama-3-8b-bnb-4bit: the 4 bits of its weights are not taken "
      "from its name; hint: --set trainable.lora.rank=16 --set "
      "trainable.lora.base_bits=4";
  CHECK(HasNote(Predict(options), words));
  options.overrides.settings = {"trainable.lora.rank=16",
                                "trainable.lora.base_bits=4"};
  CHECK_FALSE(HasNote(Predict(options), "not taken from its name"));
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

TEST_CASE("kernels of GPUs are not counted on a chip that compiles graphs") {
  const FitFolder none;
  PredictOptions options = On("tpu_v6e");
  options.scenario = "llama_8b_lora";  // with Liger's kernels
  const Report liger = Predict(options);
  CHECK(HasNote(liger, "stack liger: its kernels are GPUs' own"));
  options.overrides.settings = {"stack=xla"};
  const Report xla = Predict(options);
  CHECK_FALSE(HasNote(xla, "its kernels are GPUs' own"));
  const auto step = [](const Report& report) {
    return Json::parse(report.json)
        .at("predictions")
        .at(0)
        .at("step_time_s")
        .get<double>();
  };
  CHECK(step(liger) == step(xla));
  options.device = {"h100_sxm"};
  options.overrides.settings.clear();
  CHECK_FALSE(HasNote(Predict(options), "its kernels are GPUs' own"));
}

TEST_CASE("experts that run one by one are told what groups them") {
  const FitFolder none;
  PredictOptions options = On("h200_sxm");
  options.scenario = "llama_8b_lora";
  options.overrides.model = "qwen3-30b-a3b";
  const char* words = "the 128 experts of a block run one after another";
  CHECK(HasNote(Predict(options), words));
  CHECK(HasNote(Predict(options), "stack liger: the 128 experts"));
  options.overrides.settings = {"stack=compiled"};
  CHECK_FALSE(HasNote(Predict(options), words));
  options.overrides.settings = {"experts=grouped"};
  const Report grouped = Predict(options);
  CHECK_FALSE(HasNote(grouped, words));
  CHECK(grouped.headline[1].find("liger, experts grouped, ") !=
        std::string::npos);
  options.overrides.settings = {"experts=masked_loop"};
  const Report masked = Predict(options);
  CHECK(HasNote(masked, "experts masked_loop: the 128 experts of a block"));
  CHECK(HasNote(masked, "--set experts=grouped ("));
  // Chips whose graphs are whole have none that the host counts.
  options.device = {"tpu_v6e"};
  CHECK_THROWS_WITH_AS(
      Predict(options),
      "--set: experts: expected grouped or split on tpu_v6e, whose graphs have "
      "no rows that the host counts, got masked_loop",
      model::InputError);
  options.overrides.settings = {};
  CHECK_FALSE(HasNote(Predict(options), words));
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

TEST_CASE("the user's fit is found, and one of another device refused") {
  const FitFolder folder;
  const hardware::Device& device =
      hardware::DeviceCatalog::Shipped().Find("a100_sxm4_80gb");
  calibrate::Observation run;
  run.label = "one";
  run.device = {device.name};
  run.workload = LoadScenario("emotion_bert_base").workload;
  const calibrate::Predictor datasheet(device);
  // Twice as slow as the datasheet says.
  run.measured = datasheet.Predict(run.workload).time.total() * 2.0;
  std::filesystem::create_directories(folder.Path("fits"));
  const std::string path = folder.Path("fits/a100_sxm4_80gb.yaml");
  calibrate::SaveFit(calibrate::FitDevice(device, {run}), path);

  const auto step = [](const PredictOptions& options) {
    return Json::parse(Predict(options).json)
        .at("predictions")[0]
        .at("step_time_s")
        .get<double>();
  };
  const double slow = step(On("a100_sxm4_80gb"));
  CHECK(slow > 1.3 * ToSeconds(run.measured) / 2.0);
  PredictOptions options;
  options.scenario = "emotion_bert_base";
  options.fit = path;  // and so its device
  CHECK(step(options) == slow);
  options.device = {"h100_sxm"};
  CHECK_THROWS_AS(Predict(options), model::InputError);
}

TEST_CASE("a fit that cannot be read is left out and named, in nobody's way") {
  const FitFolder folder;
  folder.Write("fits/h100_pcie.yaml", "device: h100_pcie\nkind: nonsense\n");
  CHECK_NOTHROW(Predict(On("l4")));
  const Report report = Predict(On("h100_pcie"));
  CHECK(Json::parse(report.json).at("fit") != "h100_pcie.yaml");
  REQUIRE_FALSE(report.warnings.empty());
  CHECK(report.warnings.front().text.find("h100_pcie.yaml:2:") !=
        std::string::npos);
  CHECK(report.warnings.front().text.find("this fit is left out") !=
        std::string::npos);
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
    CHECK(p.at("run_time_s").get<double>() ==
          doctest::Approx(run.seconds).epsilon(run.limit).scale(0));
    // What the allocator keeps besides grows towards the end of the card.
    const double share =
        p.at("memory_bytes").get<double>() / (run.used_mib * 1048576.0);
    CHECK(share < 1.0);
    CHECK(share > 0.75);
  }
}

}  // namespace trainfare::scenarios
