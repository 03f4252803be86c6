// What predict notes beside its figures.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "model/error.h"
#include "scenarios/commands/predict.h"
#include "scenarios/report/json.h"
#include "tests/scenarios/commands/predicted.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {

TEST_CASE("a limit of power above the board's own is said to hold nobody") {
  const FitFolder none;
  PredictOptions options = OfModel("gpt2", 128, "h100_sxm");
  const char* words =
      "power_limit: 3 kW is above the 700 W of h100_sxm, whose "
      "own limit counts";
  options.overrides.settings = {"power_limit=3000W"};
  const Report above = Predict(options);
  CHECK(HasNote(above, words));
  options.overrides.settings = {"power_limit=700W"};
  const Report own = Predict(options);
  CHECK_FALSE(HasNote(own, "power_limit"));
  CHECK(Json::parse(above.json).at("predictions") ==
        Json::parse(own.json).at("predictions"));
}

TEST_CASE("MFU says which passes it counts") {
  const FitFolder none;
  PredictOptions options = OfModel("gpt2", 128, "h100_sxm");
  CHECK(HasNote(Predict(options),
                "MFU counts the matrix products of forward and backward, "));
  options.overrides.work = "forward";
  const Report forward = Predict(options);
  CHECK(HasNote(forward,
                "MFU counts the matrix products of the forward pass, all "));
  CHECK_FALSE(HasNote(forward, "recomputed"));
  options = OfModel("bert-base-uncased", 128, "h100_sxm");
  options.overrides.work = "forward";
  CHECK(HasNote(Predict(options),
                "MFU counts the matrix products of the forward pass with "
                "attention (PaLM's rule), against"));
}

TEST_CASE("MFU says what windows leave out, of encoders, too") {
  const FitFolder none;
  PredictOptions options = OfModel("modernbert-base", 8192, "h100_sxm");
  options.overrides.batches = {4};
  CHECK(HasNote(Predict(options),
                "all pairs of positions in attention though not all are seen, "
                "nothing recomputed (PaLM's rule), against the peak of the "
                "precision; of the pairs that it sees it is "));
  options.overrides.lengths = {64};
  CHECK_FALSE(HasNote(Predict(options), "that it sees"));
}

TEST_CASE("a network that nobody named is said before all else") {
  const FitFolder none;
  PredictOptions options = OfModel("gpt2", 128, "h800_sxm");
  options.devices = 8;
  options.hosts = 2;
  const std::string first = Predict(options).notes.front().text;
  CAPTURE(first);
  CHECK(first.starts_with("2 hosts over "));
  CHECK(
      first.ends_with("no network was named, so the interval is wider; say "
                      "which, such as --network 400Gbit/s"));
  options.network = "400Gbit/s";
  CHECK_FALSE(HasNote(Predict(options), "no network was named"));
  CHECK(HasNote(Predict(options), "the network that was named, not measured"));
}

TEST_CASE("a step of more than an epoch is said on one device, too") {
  const FitFolder none;
  PredictOptions options = OfModel("gpt2", 128, "h100_sxm");
  options.overrides.batches = {8};
  options.overrides.settings = {"accumulation=126"};
  const Report beyond = Predict(options);
  CHECK(HasNote(beyond,
                "the 1008 samples of a step are more than the 1000 of an "
                "epoch: one step, of those that there are"));
  CHECK(beyond.json.find("batch_beyond_epoch") != std::string::npos);
  options.overrides.settings = {"accumulation=125"};
  CHECK_FALSE(HasNote(Predict(options), "of an epoch: one step"));
}

TEST_CASE("how time is billed is said where it changes the cost") {
  const FitFolder none;
  PredictOptions options = OfModel("electra-large", 512, "l40s");
  options.overrides.samples = 100;
  options.overrides.batches = {1};
  options.device.clear();
  options.instances = {"nebius/gpu-l40s-a_1gpu-32vcpu-128gb"};
  const Report hour = Predict(options);
  CHECK(HasNote(hour, ", billed by the hour; excludes "));
  const Json price =
      Json::parse(hour.json).at("/predictions/0/price"_json_pointer);
  CHECK(price.at("billed_in_s") == 3600.0);
  CHECK(price.at("billed_at_least_s") == 3600.0);
  // Minutes of time, a second at most beside them.
  options.instances = {"aws/g5.xlarge"};
  CHECK_FALSE(HasNote(Predict(options), "billed"));
}

TEST_CASE("dropout and a head that is not there are said") {
  const FitFolder none;
  PredictOptions options = OfModel("gpt2", 128, "h100_sxm");
  const auto settings = [&] { return Predict(options).headline.at(1); };
  CHECK(settings().find(", dropout 0.1; ") != std::string::npos);
  CHECK_FALSE(HasNote(Predict(options), "task none"));
  options.overrides.settings = {"dropout=0", "task=none"};
  CHECK(settings().find("dropout") == std::string::npos);
  CHECK(HasNote(Predict(options),
                "task none: gpt2 is run without an output layer and its loss"));
  options.overrides.settings.clear();
  options.overrides.work = "forward";
  CHECK(settings().find("dropout") == std::string::npos);
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

TEST_CASE("chips of several cores are told to hold a model each") {
  const FitFolder none;
  PredictOptions options = OfModel("gpt2", 128, "trainium2");
  options.overrides.batches = {1};
  CHECK(HasNote(Predict(options),
                "trainium2 has 8 cores, which train data parallel with a copy "
                "of the model each, less what parallel.shard divides; with "
                "batch 1, 7 are idle"));
  options.overrides.batches = {8};
  CHECK_FALSE(HasNote(Predict(options), "are idle"));
  options.device = {"h100_sxm"};
  CHECK_FALSE(HasNote(Predict(options), "a copy of the model each"));
}

TEST_CASE("adapters beside routed experts are told of where PEFT has none") {
  const FitFolder none;
  PredictOptions options = On("h200_sxm");
  options.scenario = "llama_8b_lora";
  options.overrides.model = "qwen3-30b-a3b";
  const char* words = "beside routed experts";
  options.overrides.settings = {"experts=grouped"};
  CHECK_FALSE(HasNote(Predict(options), words));
  options.overrides.settings.emplace_back(
      "trainable.lora.matrices=q_proj,o_proj,up_proj,down_proj");
  // Rank 16, 48 blocks of 128: 16 x 2 x (2048 + 768) x 6144.
  CHECK(HasNote(Predict(options),
                "554 M of what trains are adapters beside routed experts, "));
  CHECK(HasNote(Predict(options),
                "; without: --set trainable.lora.matrices=query,output"));
  // Experts that are modules have them.
  options.overrides.settings[0] = "experts=loop";
  CHECK_FALSE(HasNote(Predict(options), words));
}

// Transformers' class of gpt-oss has never had another tensor, whatever runs it;
// Unsloth's has modules.
TEST_CASE("adapters beside experts that never were modules are told of") {
  const FitFolder none;
  PredictOptions options = On("h200_sxm");
  options.scenario = "llama_8b_lora";
  options.overrides.model = "gpt-oss-20b";
  const char* words =
      "which PEFT does not have where Transformers keeps a block's experts in "
      "one tensor";
  for (const char* stack : {"eager", "liger", "unsloth"}) {
    CAPTURE(stack);
    options.overrides.settings = {std::string("stack=") + stack,
                                  "trainable.lora.matrices=all-linear"};
    CHECK(HasNote(Predict(options), words) ==
          (std::string_view(stack) != "unsloth"));
  }
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

TEST_CASE("a checkpoint that is assumed is said where it counts") {
  const FitFolder none;
  PredictOptions options = OfModel("llama-3-8b", 128, "b200_sxm");
  options.overrides.batches = {1};
  const Report report = Predict(options);
  // By hand: 8.03e9 parameters with two moments each, 12 B of fp32.
  CHECK(HasNote(report, "up to one after each epoch, 89.75 GiB of parameters"));
  CHECK(HasNote(report, "run.checkpoint=30 s"));
  CHECK(report.json.find("checkpoint_assumed") != std::string::npos);
  options.overrides.settings = {"run.checkpoint=30 s"};
  CHECK_FALSE(HasNote(Predict(options), "checkpoints are assumed"));
  // Of adapters it is nothing beside the run.
  options.overrides.settings = {"trainable.lora.rank=16"};
  CHECK_FALSE(HasNote(Predict(options), "checkpoints are assumed"));
}

TEST_CASE("devices that idle are told by the flag that leaves them") {
  const FitFolder none;
  PredictOptions options = OfModel("llama-3.2-1b", 128, "");
  options.device.clear();
  options.instances = {"lambda/gpu_8x_h100_sxm5"};
  options.devices = 4;
  CHECK(HasNote(Predict(options),
                "4 devices are paid for and without work; no --devices has all "
                "of them train"));
  options.devices.reset();
  options.overrides.settings = {"parallel.data=4"};
  CHECK(HasNote(Predict(options), "--set parallel.data=8, and no other"));
}

TEST_CASE("ranks of a model that an instance does not divide into") {
  const FitFolder none;
  PredictOptions options = OfModel("llama-3.2-1b", 128, "");
  options.device.clear();
  options.instances = {"lambda/gpu_8x_h100_sxm5"};
  const auto hint = [&](const char* setting) {
    options.overrides.settings = {setting};
    try {
      Predict(options);
    } catch (const model::InputError& error) {
      const std::string text = error.what();
      return text.substr(text.find("; hint: ") + 8);
    }
    return std::string();
  };
  CHECK(hint("parallel.pipeline=5") == "--devices 5");
  CHECK(hint("parallel.pipeline=12") == "--hosts 3");
  // Both can be followed.
  options.hosts = 3;
  CHECK(hint("parallel.pipeline=12").empty());
  options.hosts.reset();
  options.devices = 5;
  CHECK(hint("parallel.pipeline=5").empty());
}

}  // namespace trainfare::scenarios
