#include "scenarios/job/scenario.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "model/error.h"
#include "model/presets.h"
#include "model/validate.h"
#include "tests/near.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {
namespace {

constexpr std::string_view kGood =
    "name: a job\n"
    "model: bert-base-uncased\n"
    "task: sequence-classification\n"
    "labels: 6\n"
    "dataset: { train: 100, eval: 10, lengths: lengths.yaml }\n"
    "epochs: 3\n"
    "batch: 8\n"
    "padding: { static: 32 }\n"
    "precision: fp32\n"
    "optimizer: { name: adamw, implementation: fused }\n"
    "stack: eager\n";
constexpr std::string_view kLengths =
    "source: counted by hand\n"
    "lengths: [4, 8, 40]\n"
    "counts: [1, 2, 1]\n";

std::string Replaced(std::string_view from, std::string_view to) {
  std::string text(kGood);
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// The message without the folder in front.
std::string MessageOf(const TemporaryFolder& folder, const std::string& path) {
  try {
    LoadScenario(path);
  } catch (const model::InputError& error) {
    std::string message = error.what();
    const std::string prefix = folder.Path("");
    for (size_t at = message.find(prefix); at != std::string::npos;
         at = message.find(prefix)) {
      message.erase(at, prefix.size());
    }
    return message;
  }
  return "no error";
}

std::string Message(const std::string& text,
                    std::string_view lengths = kLengths) {
  const TemporaryFolder folder;
  folder.Write("lengths.yaml", lengths);
  return MessageOf(folder, folder.Write("s.yaml", text));
}

}  // namespace

TEST_CASE("a scenario arrives as it is written") {
  const TemporaryFolder folder;
  folder.Write("lengths.yaml", kLengths);
  const Scenario s = LoadScenario(folder.Write("s.yaml", kGood));
  CHECK(s.name == "s");
  CHECK(s.title == "a job");
  CHECK(s.workload.architecture.labels == 6);
  CHECK(s.workload.batch == 8);
  CHECK(s.workload.sequence_length == 32);
  CHECK(s.workload.precision == model::Precision::kFp32);
  CHECK(s.workload.optimizer.implementation ==
        model::OptimizerImplementation::kFused);
  CHECK(s.train_samples == 100);
  CHECK(s.eval_samples == 10);
  CHECK(s.epochs == 3);
  REQUIRE(s.lengths.has_value());
  CHECK(s.lengths_source == "counted by hand");
  const auto lengths = s.BatchLengths(8);
  REQUIRE(lengths.size() == 1);
  CHECK(lengths[0].length == 32);
}

TEST_CASE("a scenario says where masters are updated") {
  const TemporaryFolder folder;
  folder.Write("lengths.yaml", kLengths);
  const Scenario apart = LoadScenario(folder.Write("a.yaml", kGood));
  CHECK(apart.workload.optimizer.masters == model::Masters::kApart);
  const Scenario in_update = LoadScenario(
      folder.Write("b.yaml",
                   Replaced("implementation: fused",
                            "implementation: fused, masters: in_update")));
  CHECK(in_update.workload.optimizer.masters == model::Masters::kInUpdate);
}

TEST_CASE("dynamic and bucketed padding come from the histogram") {
  const TemporaryFolder folder;
  folder.Write("lengths.yaml", kLengths);
  const Scenario dynamic = LoadScenario(
      folder.Write("d.yaml", Replaced("{ static: 32 }", "dynamic")));
  CHECK(dynamic.workload.sequence_length == 40);
  // One sequence: 1/4 of length 4, 1/2 of 8, 1/4 of 40.
  const auto lengths = dynamic.BatchLengths(1);
  REQUIRE(lengths.size() == 3);
  CHECK(lengths[1].share == Near(0.5, 1e-12));

  const Scenario cut = LoadScenario(
      folder.Write("c.yaml", Replaced("{ static: 32 }", "{ dynamic: 16 }")));
  CHECK(cut.workload.sequence_length == 16);
  const Scenario buckets = LoadScenario(folder.Write(
      "b.yaml", Replaced("{ static: 32 }", "{ buckets: [8, 64] }")));
  CHECK(buckets.workload.sequence_length == 64);
  CHECK(buckets.BatchLengths(1).front().share == Near(0.75, 1e-12));
}

TEST_CASE("a model may be spelled out") {
  const TemporaryFolder folder;
  folder.Write("lengths.yaml", kLengths);
  const Scenario s = LoadScenario(folder.Write(
      "s.yaml",
      Replaced("model: bert-base-uncased",
               "model: { family: encoder, layers: 12, hidden: 768, heads: 12, "
               "vocabulary: 30522, positions: 512, token_types: 2 }")));
  model::Architecture bert = model::FindArchitecture("bert-base-uncased");
  bert.labels = 6;
  CHECK(model::TotalParameters(s.workload.architecture) ==
        model::TotalParameters(bert));
  CHECK(s.workload.architecture.dropout == 0.1);
  // Blocks of today have no dropout unless they are given some.
  const std::string rotary =
      Replaced("model: bert-base-uncased",
               "model: { family: decoder, layers: 2, hidden: 64, heads: 4, "
               "intermediate: 160, vocabulary: 500, position_kind: rotary }");
  CHECK(LoadScenario(folder.Write("r.yaml", rotary))
            .workload.architecture.dropout == 0.0);
}

TEST_CASE("what trains, and how gradients are sent, are read") {
  const auto read = [](const std::string& more) {
    const TemporaryFolder folder;
    folder.Write("lengths.yaml", kLengths);
    return LoadScenario(
        folder.Write("s.yaml", Replaced("epochs: 3", "epochs: 3\n" + more)));
  };
  CHECK(read("trainable: { frozen_layers: 6 }")
            .workload.trainable.frozen_layers == 6);
  const model::Trainable lora =
      read("trainable: { lora: { rank: 8, matrices: [key, output] } }")
          .workload.trainable;
  CHECK(lora.lora_rank == 8);
  CHECK(lora.lora.key);
  CHECK(lora.lora.output);
  CHECK_FALSE(lora.lora.query);
  CHECK(lora.lora_dropout == 0.0);
  CHECK(read("trainable: { lora: { rank: 8, dropout: 0.05 } }")
            .workload.trainable.lora_dropout == 0.05);
  // The matrices of the paper where none are named.
  CHECK(read("trainable: { lora: { rank: 4 } }").workload.trainable.lora.value);
  CHECK(read("gradient_compression: half").workload.compression.kind ==
        model::CompressionKind::kTo16Bits);
  CHECK(read("gradient_compression: { power_sgd: 4 }")
            .workload.compression.rank == 4);
  CHECK(read("compiler_level: 3").workload.stack.compiler_level == 3);
  CHECK(read("run: { warm_cache: true }").extras.warm_cache);
  CHECK_FALSE(read("run: { warm_cache: true }").extras.compile_per_shape);

  CHECK(Message(Replaced("epochs: 3",
                         "epochs: 3\ntrainable: { lora: { rank: 8,"
                         " matrices: [valeu] } }")) ==
        "s.yaml:7:41: trainable.lora.matrices: unknown matrix \"valeu\"; did "
        "you mean \"value\"?; known: query, key, value, output, "
        "attention_gate, feed_forward_gate, feed_forward_in, "
        "feed_forward_out, query_down, query_up, key_value_down, "
        "key_value_up, state_space_in, state_space_out, delta_rule_in, "
        "delta_rule_gate, delta_rule_write, delta_rule_decay, "
        "delta_rule_out, convolution_in, convolution_out, expert_latent_in, "
        "expert_latent_out, layer_gate, layer_projection, layer_embeddings");
  // A key that nobody knows is named before one that is missing beside it.
  CHECK(Message(Replaced("epochs: 3",
                         "epochs: 3\ntrainable: { lora: { droput: 0.05 } }"))
            .starts_with("s.yaml:7:22: trainable.lora: unknown key \"droput\"; "
                         "did you mean \"dropout\"? known: as_units, "));
  CHECK(Message(Replaced("epochs: 3",
                         "epochs: 3\ntrainable: { lora: { ranks: 8 } }")) ==
        "s.yaml:7:20: trainable.lora: missing key \"rank\", an integer from 1 "
        "to 768; is \"ranks\" at 7:22 meant?");
  CHECK(Message(Replaced("epochs: 3",
                         "epochs: 3\ntrainable: { lora: { dropout: 0.1 } }")) ==
        "s.yaml:7:20: trainable.lora: missing key \"rank\", an integer from 1 "
        "to 768");
  CHECK(Message(Replaced("epochs: 3", "epochs: 3\ntrainable: {}")) ==
        "s.yaml:7:12: trainable: expected one of { frozen_layers: LAYERS } or "
        "{ lora: { rank: RANK, matrices: [query, value, ..] } }");
}

TEST_CASE("ranks that share state are read, and refused where they stand") {
  const auto text = [](const std::string& parallel) {
    return Replaced("epochs: 3", "epochs: 3\nparallel: " + parallel);
  };
  const TemporaryFolder folder;
  folder.Write("lengths.yaml", kLengths);
  const model::Parallel parallel =
      LoadScenario(folder.Write("s.yaml",
                                text("{ data: 16, shard: zero3, replicate: 2, "
                                     "reshard_after_forward: false }")))
          .workload.parallel;
  CHECK(parallel == model::Parallel{16, model::Shard::kZero3, 2, false});
  CHECK(Message(text("{ shard: zero4 }")) ==
        "s.yaml:7:20: parallel.shard: unknown shard \"zero4\"; known: none, "
        "zero1, zero2, zero3, fsdp");
  CHECK(Message(text("{ data: 8, shard: fsdp, replicate: 3 }")) ==
        "s.yaml:7:46: parallel.replicate: expected a divisor of data = 8, got "
        "3; 8 ranks cannot be 3 alike groups");
  CHECK(Message(text("{ data: 1, shard: fsdp }"))
            .starts_with("s.yaml:7:29: parallel.shard: expected none"));
  const model::Parallel offloading =
      LoadScenario(folder.Write("o.yaml",
                                text("{ shard: zero3, offload: parameters, "
                                     "offload_activations: true }")))
          .workload.parallel;
  CHECK(offloading.offload == model::Offload::kParameters);
  CHECK(offloading.offload_activations);
  CHECK(Message(text("{ shard: zero1, offload: parameters }")) ==
        "s.yaml:7:36: parallel.offload: expected optimizer, or shard: zero3 or "
        "fsdp, got parameters with shard: zero1");
  CHECK(Message(text("{ shards: fsdp }"))
            .starts_with("s.yaml:7:13: parallel: unknown key \"shards\""));
}

TEST_CASE("bad files say what is wrong, where") {
  CHECK(Message(Replaced("epochs: 3\n", "")) ==
        "s.yaml:1:1: missing key \"epochs\", an integer from 1 to 1000000");
  CHECK(Message(Replaced("epochs: 3", "epochs: 3\nepoch: 4")) ==
        "s.yaml:7:1: unknown key \"epoch\"; did you mean \"epochs\"? "
        "known: accumulation, attention, attention_checkpointing, batch, "
        "checkpointed_blocks, "
        "compiler_level, dataset, documents, drop_last, dropout, epochs, "
        "experts, fp8, gradient_checkpointing, "
        "gradient_compression, labels, learning_rate, load_factor, loss, "
        "model, name, "
        "narrow_weights, next_token_blocks, notes, operation_checkpointing, "
        "optimizer, padding, "
        "parallel, power_limit, precision, "
        "predictions_per_sequence, run, shared_next_token, source, stack, "
        "stochastic_rounding, "
        "target_length, task, trainable, wide_blocks, work");
  CHECK(Message(Replaced("epochs: 3", "epochs: 3\nepochs: 4")) ==
        "s.yaml:7:1: duplicate key \"epochs\"; first at 6:1");
  // What rules of the whole workload refuse stands where its key does.
  CHECK(Message(Replaced("epochs: 3", "epochs: 3\ncheckpointed_blocks: 8")) ==
        "s.yaml:7:22: checkpointed_blocks: expected gradient_checkpointing "
        "beside it, got 8");
  CHECK(Message(Replaced("batch: 8", "batch: 0")) ==
        "s.yaml:7:8: batch: expected an integer from 1 to 1048576, got 0");
  CHECK(
      Message(Replaced("batch: 8", "batch: .nan")) ==
      "s.yaml:7:8: batch: expected an integer from 1 to 1048576, got \".nan\"");
  CHECK(Message(Replaced("static: 32", "static: 513")) ==
        "s.yaml:8:10: padding: expected a length of at most 512, the positions "
        "of bert-base-uncased, got 513");
  CHECK(Message("") == "s.yaml: expected a map of keys, got an empty file");
  CHECK(
      Message(Replaced("fp32", "fp23")) ==
      "s.yaml:9:12: precision: unknown precision \"fp23\"; known: fp32, tf32, "
      "fp16, bf16, fp8, fp4");
  CHECK(
      Message(Replaced("{ static: 32 }", "{ static: 32, dynamic: 8 }")) ==
      "s.yaml:8:10: padding: expected dynamic, { static: LENGTH }, { dynamic: "
      "LONGEST } or { buckets: [LENGTH, ..] }");
  CHECK(Message(Replaced("{ static: 32 }", "{ buckets: [32, 16] }")) ==
        "s.yaml:8:21: padding.buckets: expected rising lengths, got 16 after "
        "32");
  CHECK(Message(Replaced("stack: eager\n",
                         "stack: eager\nrun: { start_up: 30 }\n")) ==
        "s.yaml:12:18: run.start_up: expected a time such as \"5 us\", got 30; "
        "a number needs its unit");
  CHECK(Message(Replaced("stack: eager\n",
                         "stack: eager\nrun: { start_up: 1e308 s }\n")) ==
        "s.yaml:12:18: run.start_up: expected a time such as \"5 us\", got "
        "\"1e308 s\"; it must be from 1e-15 to 1e+12 s");
  CHECK(Message(Replaced("lengths: lengths.yaml", "lengths: none.yaml")) ==
        "s.yaml:5:43: dataset.lengths: expected a file beside this one, "
        "got \"none.yaml\"");
  CHECK(Message(Replaced(", lengths: lengths.yaml", "").replace(0, 0, "")) ==
        "no error");
}

TEST_CASE("packed documents are of sequences of one length") {
  CHECK(Message(Replaced("{ static: 32 }", "{ dynamic: 32 }\ndocuments: 8")) ==
        "s.yaml:8:10: padding: expected { static: LENGTH } beside documents, "
        "got dynamic: sequences packed of 8 are of one length");
  CHECK(Message(Replaced("{ static: 32 }",
                         "{ buckets: [16, 32] }\ndocuments: 8")) ==
        "s.yaml:8:10: padding: expected { static: LENGTH } beside documents, "
        "got buckets 16, 32: sequences packed of 8 are of one length");
  CHECK(Message(Replaced("{ static: 32 }", "{ static: 32 }\ndocuments: 8")) ==
        "no error");
}

TEST_CASE("a rank has one range, whatever is beyond it") {
  for (const char* rank : {"0", "769", "99999999"}) {
    CHECK(
        Message(Replaced("epochs: 3",
                         std::string("epochs: 3\ntrainable: { lora: { rank: ") +
                             rank + " } }")) ==
        std::string("s.yaml:7:28: trainable.lora.rank: expected an integer "
                    "from 1 to 768, got ") +
            rank);
  }
}

TEST_CASE("lengths are at least one") {
  CHECK(Message(std::string(kGood),
                "source: s\nshortest: 1\nlengths: []\nshare_up_to: []\n") ==
        "lengths.yaml:3:10: lengths: expected at least one, got none");
}

TEST_CASE("programs that train are told which stack is theirs") {
  const auto hint = [](const std::string& stack) {
    const std::string message = Message(Replaced("eager", stack));
    const size_t at = message.find("hint: ");
    return at == std::string::npos ? message : message.substr(at);
  };
  for (const char* program :
       {"axolotl", "Lightning", "litgpt", "torchtune", "trl"}) {
    CHECK(hint(program) ==
          "hint: eager, or compiled where it calls torch.compile");
  }
  CHECK(hint("torchtitan").ends_with("parallel.shard=fsdp"));
  CHECK(hint("nanoGPT").starts_with("hint: compiled"));
  CHECK(hint("neuronx").starts_with("hint: compiled"));
  CHECK(hint("llm.c").starts_with("hint: lightseq"));
  CHECK(hint("ddp").ends_with("parallel.data says the ranks"));
}

TEST_CASE("a model beside the scenario is read, one elsewhere not shown") {
  const TemporaryFolder folder;
  folder.Write("inner/lengths.yaml", kLengths);
  folder.Write("inner/beside.json", "{ \"secret\": 1 }");
  folder.Write("outside.json", "{ \"secret\": 1 }");
  REQUIRE(::mkfifo(folder.Path("inner/queue.json").c_str(), 0600) == 0);
  const auto message = [&](const std::string& model) {
    return MessageOf(
        folder,
        folder.Write("inner/s.yaml",
                     Replaced("model: bert-base-uncased", "model: " + model)));
  };
  CHECK(message("beside.json").find("model_type") != std::string::npos);
  CHECK(
      message("../outside.json") ==
      "inner/s.yaml:2:8: model: \"../outside.json\" is no config.json that is "
      "understood; name it with --model to see why");
  CHECK(message("queue.json") ==
        "inner/s.yaml:2:8: model: expected a regular file, got "
        "\"queue.json\"");
  CHECK(message("/dev/zero.json").find("expected a file beside this one") !=
        std::string::npos);
  // So is one that its folder names.
  folder.Write("inner/small/config.json", "{ \"secret\": 1 }");
  folder.Write("other/config.json", "{ \"secret\": 1 }");
  CHECK(message("small").find("small/config.json:1:1: model_type: missing") !=
        std::string::npos);
  CHECK(message("../other") ==
        "inner/s.yaml:2:8: model: \"../other/config.json\" is no config.json "
        "that is understood; name it with --model to see why");
}

TEST_CASE("an unknown model gets the nearest names") {
  const std::string message =
      Message(Replaced("bert-base-uncased", "bert-base-uncasde"));
  CHECK(message.find("s.yaml:2:8: model: ") == 0);
  CHECK(message.find("\"bert-base-uncased\"") != std::string::npos);
}

TEST_CASE("a file of lengths is checked, too") {
  CHECK(Message(std::string(kGood),
                "source: x\nlengths: [4, 4]\ncounts: [1, 1]\n") ==
        "lengths.yaml:2:10: lengths: expected rising lengths, got 4 after 4");
  CHECK(Message(std::string(kGood),
                "source: x\nlengths: [4, 8]\ncounts: [1]\n") ==
        "lengths.yaml:3:9: counts: expected 2 values, one a length, got 1");
  CHECK(Message(std::string(kGood),
                "source: x\nshortest: 1\nlengths: [4, 8]\n"
                "share_up_to: [0.5, 0.9]\n") ==
        "lengths.yaml:4:14: share_up_to: expected the last share to be 1, got "
        "0.9");
}

TEST_CASE("an unknown name gets the nearest shipped scenario") {
  CHECK_THROWS_WITH_AS(
      LoadScenario("emotion_bert_bse"),
      "unknown scenario \"emotion_bert_bse\"; did you mean "
      "\"emotion_bert_base\"? known: emotion_bert_base, "
      "imdb_bert_base, llama_1b_pretraining, llama_70b_qlora, "
      "llama_70b_splits, llama_8b_fsdp, llama_8b_lora, squad_bert_large; or "
      "give the path of a .yaml file",
      model::InputError);
}

TEST_CASE("forward passes need no optimizer, learning rates no number") {
  const TemporaryFolder folder;
  folder.Write("lengths.yaml", kLengths);
  const auto load = [&](const std::string& text) {
    return LoadScenario(folder.Write("scenario.yaml", text));
  };
  const auto with = [&](const char* line) {
    std::string text(kGood);
    text += line;
    return load(text);
  };
  std::string forward(kGood);
  const size_t at = forward.find("optimizer:");
  REQUIRE(at != std::string::npos);
  forward.erase(at, forward.find('\n', at) + 1 - at);
  CHECK_THROWS_AS(load(forward), model::InputError);
  CHECK(load(forward + "work: forward\n").workload.work ==
        model::Work::kForward);
  CHECK_THROWS_WITH_AS(load(forward + "work: backward\n"),
                       doctest::Contains("known: training, forward"),
                       model::InputError);
  CHECK_THROWS_WITH_AS(load(forward + "work: forward\naccumulation: 2\n"),
                       doctest::Contains("expected 1 with work: forward"),
                       model::InputError);

  const Scenario plain = load(std::string(kGood));
  const Scenario scheduled = with("learning_rate: { schedule: linear }\n");
  CHECK(scheduled.workload == plain.workload);
  CHECK(with("learning_rate: { layer_decay: 0.95 }\n")
            .workload.optimizer.by_layer);
  CHECK_FALSE(
      with("learning_rate: { layer_decay: 1 }\n").workload.optimizer.by_layer);
  CHECK_THROWS_AS(with("learning_rate: { layer_decay: 0 }\n"),
                  model::InputError);
  CHECK_THROWS_AS(with("learning_rate: { schedule: steps }\n"),
                  model::InputError);
}

TEST_CASE("every shipped scenario loads and is within its model") {
  const auto names = ShippedScenarios();
  CHECK(names.size() >= 3);
  for (const std::string& name : names) {
    CAPTURE(name);
    const Scenario s = LoadScenario(name);
    CHECK(s.name == name);
    CHECK_NOTHROW(model::Validate(s.workload));
    CHECK(s.train_samples > 0);
    // Shares of batches add up for any batch.
    double sum = 0;
    for (const auto& length : s.BatchLengths(s.workload.batch)) {
      sum += length.share;
    }
    CHECK(sum == Near(1.0, 1e-12));
  }
}

// published/s001_emotion_lengths_and_padding: 4 to 87, median 20, 90 % 38.
TEST_CASE("the emotion lengths are the published ones") {
  const Scenario s = LoadScenario("emotion_bert_base");
  REQUIRE(s.lengths.has_value());
  CHECK(s.lengths->shortest() == 4);
  CHECK(s.lengths->longest() == 87);
  CHECK(s.lengths->Cdf(20) == 0.5);
  CHECK(s.lengths->Cdf(38) == 0.9);
  // The comment in the scenario: 32 cuts 1 message in 4.
  CHECK(1.0 - s.lengths->Cdf(32) == Near(0.25, 0.1));
}

}  // namespace trainfare::scenarios
