#include "scenarios/job/scenario_text.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "model/architecture.h"
#include "model/presets.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {
namespace {

// What is read from what is written of it is the same job.
void CheckRoundTrip(const Scenario& s) {
  const std::string text = ToYaml(s);
  CAPTURE(text);
  const Scenario back = ParseScenario(text, "shown.yaml", {});
  CHECK(back.workload == s.workload);
  CHECK(back.title == s.title);
  CHECK(back.dataset == s.dataset);
  CHECK(back.train_samples == s.train_samples);
  CHECK(back.eval_samples == s.eval_samples);
  CHECK(back.epochs == s.epochs);
  CHECK(back.padding.kind == s.padding.kind);
  CHECK(back.padding.length == s.padding.length);
  CHECK(back.padding.buckets == s.padding.buckets);
  CHECK(back.drop_last == s.drop_last);
  CHECK(back.names_optimizer == s.names_optimizer);
  CHECK(back.extras.start_up == s.extras.start_up);
  CHECK(back.extras.compile_per_shape == s.extras.compile_per_shape);
  CHECK(back.extras.warm_cache == s.extras.warm_cache);
  CHECK(back.extras.checkpoint == s.extras.checkpoint);
  CHECK(back.extras.load_per_sample == s.extras.load_per_sample);
  CHECK(back.extras.swap == s.extras.swap);
  REQUIRE(back.lengths.has_value() == s.lengths.has_value());
  if (s.lengths) {
    CHECK(back.lengths_source == s.lengths_source);
    CHECK(back.lengths->longest() == s.lengths->longest());
    for (int64_t l = 0; l <= s.lengths->longest(); ++l) {
      CHECK(std::abs(back.lengths->Cdf(l) - s.lengths->Cdf(l)) < 1e-8);
    }
  }
  // Once written, nothing is lost any more.
  CHECK(ToYaml(back) == text);
}

// A job of a model with lines of one's own.
Scenario Job(const std::string& model, const std::string& more) {
  const TemporaryFolder folder;
  folder.Write("lengths.yaml",
               "source: 'counted: by hand'\nlengths: [4, 8, 9, 40]\n"
               "counts: [1, 2, 3, 1]\n");
  return LoadScenario(folder.Write("s.yaml",
                                   fmt::format("name: 'a \"job\": 1'\n"
                                               "model: {}\n"
                                               "epochs: 3\nbatch: 8\n"
                                               "{}\n",
                                               model,
                                               more)));
}

constexpr const char* kTraining =
    "task: sequence-classification\n"
    "dataset: { train: 100, lengths: lengths.yaml }\n"
    "padding: dynamic\nprecision: fp16\nstack: eager\n"
    "optimizer: { name: adamw, implementation: fused, masters: in_update }\n";

}  // namespace

TEST_CASE("shipped scenarios are shown as what they are") {
  for (const std::string& name : ShippedScenarios()) {
    CAPTURE(name);
    CheckRoundTrip(LoadScenario(name));
  }
}

TEST_CASE("every preset is shown by its dimensions") {
  for (const model::Architecture& a : model::ArchitecturePresets()) {
    CAPTURE(a.name);
    CheckRoundTrip(Job(
        a.name,
        fmt::format("task: none\ndataset: {{ train: 10 }}\n"
                    "padding: {{ static: 64 }}\nprecision: bf16\nstack: eager\n"
                    "target_length: {}\n"
                    "optimizer: {{ name: sgd, implementation: for_loop }}\n",
                    a.decoder_layers > 0 ? 32 : 0)));
  }
}

TEST_CASE("what a scenario may say is in what is shown") {
  const std::string training = kTraining;
  for (const std::string& more :
       {std::string("drop_last: true\naccumulation: 4\n"
                    "run: { start_up: 90 s, checkpoint: 0.1 s, "
                    "load_per_sample: 33 us, swap: 90 GB, warm_cache: true }"),
        std::string("trainable: { frozen_layers: 6 }\n"
                    "gradient_compression: { power_sgd: 4 }"),
        std::string("trainable: { lora: { rank: 8, matrices: [query, output], "
                    "base_bits: 4 } }\ngradient_compression: half"),
        std::string("learning_rate: { schedule: linear, layer_decay: 0.9 }"),
        std::string("narrow_weights: true\ngradient_checkpointing: true\n"
                    "attention: flash\nlabels: 3\ndropout: 0.25"),
        std::string("source: some/repository"),
        std::string("power_limit: 150 W"),
        std::string("parallel: { data: 8, shard: zero2 }")}) {
    CAPTURE(more);
    CheckRoundTrip(Job("bert-base-uncased", training + more));
  }
  CheckRoundTrip(Job("bert-base-uncased",
                     "task: none\nwork: forward\nprecision: fp32\n"
                     "stack: eager\npadding: { buckets: [8, 16, 40] }\n"
                     "dataset: { train: 9, eval: 3, lengths: lengths.yaml }"));
}

TEST_CASE("the decay that was given is shown, none where there is none") {
  const std::string training = kTraining;
  const std::string decaying = ToYaml(Job(
      "bert-base-uncased", training + "learning_rate: { layer_decay: 0.9 }"));
  CHECK(decaying.find("learning_rate: { layer_decay: 0.9 }\n") !=
        std::string::npos);
  CHECK(ToYaml(Job("bert-base-uncased", training)).find("learning_rate") ==
        std::string::npos);
}

TEST_CASE("lengths are shown as points of their distribution") {
  const std::string text = ToYaml(Job("bert-base-uncased", kTraining));
  CHECK(text.find("source: \"counted: by hand\"") != std::string::npos);
  CHECK(text.find("# lengths 4 to 40, mean ") != std::string::npos);
  const std::string model = ToYaml(LoadScenario("emotion_bert_base"), 400);
  CHECK(model.find("shortest: 4, lengths: [20, 38, 45, 57, 87], share_up_to: "
                   "[0.5, 0.9, 0.95, 0.99, 1.0]") != std::string::npos);
}

}  // namespace trainfare::scenarios
