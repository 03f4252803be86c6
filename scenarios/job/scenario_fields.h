#pragma once

// The keys of a scenario file, once (model/fields.h): ReadScenario() reads
// them, `trainfare list keys` shows them. Those of a step are the fields of a
// workload; those of `model:` as a map are VisitModel().

#include <string>
#include <string_view>
#include <vector>

#include "hardware/files/yaml_reader.h"
#include "model/fields.h"
#include "model/limits.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {

// Values with a form of their own: what the form is, and its reader, which
// throws InputError with file:line:col.
template <class A>
struct ModelKey {
  A& architecture;
};
template <class A>
ModelKey(A&) -> ModelKey<A>;
template <class S>
struct LengthsKey {
  S& scenario;
};
template <class W>
struct WorkKey {
  W& work;
};
template <class W>
WorkKey(W&) -> WorkKey<W>;
template <class C>
struct CompressionKey {
  C& compression;
};
template <class C>
CompressionKey(C&) -> CompressionKey<C>;
struct ScheduleKey {};

template <class A>
std::string FormOf(const ModelKey<A>&) {
  return "a preset, a config.json, its folder, or a map of its keys";
}
template <class S>
std::string FormOf(const LengthsKey<S>&) {
  return "FILE or { source: .., lengths: .., .. }";
}
template <class W>
std::string FormOf(const WorkKey<W>&) {
  return "training, forward";
}
template <class C>
std::string FormOf(const CompressionKey<C>&) {
  return "none, half or { power_sgd: RANK }";
}
std::string FormOf(const Padding& padding);
std::string FormOf(ScheduleKey schedule);
// Their defaults.
template <class W>
std::string_view ToText(const WorkKey<W>& key) {
  return model::ToText(key.work);
}
template <class C>
std::string_view ToText(const CompressionKey<C>& key) {
  return model::ToText(key.compression.kind);
}

void ReadValue(const hardware::Reader& map,
               std::string_view key,
               const ModelKey<model::Architecture>& model);
void ReadValue(const hardware::Reader& map,
               std::string_view key,
               const LengthsKey<Scenario>& lengths);
void ReadValue(const hardware::Reader& map,
               std::string_view key,
               const WorkKey<model::Work>& work);
void ReadValue(const hardware::Reader& map,
               std::string_view key,
               const CompressionKey<model::GradientCompression>& compression);
void ReadValue(const hardware::Reader& map,
               std::string_view key,
               Padding& padding);
void ReadValue(const hardware::Reader& map,
               std::string_view key,
               ScheduleKey& schedule);

// `of`: the name of a model that the dimensions of the map change, or empty.
template <class Archive, class A>
void VisitModel(Archive& archive, std::string& of, A& a) {
  archive(model::Field{.name = kModelOf,
                       .about = "A preset, a config.json or its folder, which "
                                "the other keys change"},
          of);
  VisitDimensions(archive, a);
}

// Parts of a scenario that are structs of their own in files.
template <class S>
struct Dataset {
  S& scenario;
};
template <class S>
struct LearningRate {
  S& scenario;
};

template <class Archive, class S>
void VisitFields(Archive& archive, const Dataset<S>& dataset) {
  using model::Field;
  S& s = dataset.scenario;
  archive(Field{.name = "name", .about = "What answers call it"}, s.dataset);
  archive(Field{.name = "train",
                .about = "Samples of an epoch",
                .required = true,
                .least = 1,
                .most = model::kMostSamples},
          s.train_samples);
  archive(Field{.name = "eval",
                .about = "Samples that each epoch is evaluated on",
                .most = model::kMostSamples},
          s.eval_samples);
  std::string source;
  archive(Field{.name = "source", .about = "For readers"}, source);
  const LengthsKey<S> lengths{s};
  archive(
      Field{
          .name = "lengths",
          .about = "Tokens of its samples, which any padding but static needs"},
      lengths);
}

template <class Archive, class S>
void VisitFields(Archive& archive, const LearningRate<S>& rate) {
  using model::Field;
  ScheduleKey schedule;
  archive(Field{.name = "schedule", .about = "For readers, it takes no time"},
          schedule);
  archive(
      Field{
          .name = "layer_decay",
          .about =
              "Factor to the layer below, above 0; under 1 each has an update"},
      rate.scenario.layer_decay);
  if constexpr (model::ReadingArchive<Archive>) {
    if (rate.scenario.layer_decay == 0.0) {
      archive.Fail("layer_decay", "expected a factor above 0, got 0");
    }
  }
}

template <class Archive, model::Of<RunExtras> R>
void VisitFields(Archive& archive, R& run) {
  const auto extra =
      [&](std::string_view name, std::string_view about, auto& value) {
        archive(model::Field{.name = name, .about = about, .may_be_zero = true},
                value);
      };
  extra("start_up", "From renting to the first step", run.start_up);
  extra("compile_per_shape", "Of each distinct shape", run.compile_per_shape);
  archive(model::Field{.name = "warm_cache",
                       .about = "An earlier run compiled every shape"},
          run.warm_cache);
  extra("checkpoint", "Of one, after each epoch", run.checkpoint);
  extra("load_per_sample",
        "Time of a sample in the input pipeline",
        run.load_per_sample);
  extra("swap", "Memory of the host for Trainium's compiler", run.swap);
}

template <class Archive, model::Of<Scenario> S>
void VisitFields(Archive& archive, S& s) {
  using model::Field;
  auto& w = s.workload;
  archive(Field{.name = "name", .about = "The job in words", .required = true},
          s.title);
  const ModelKey model{w.architecture};
  archive(Field{.name = "model", .about = "What is trained", .required = true},
          model);
  VisitTask(archive, w.architecture, "task");
  const Dataset<S> dataset{s};
  archive(Field{.name = "dataset",
                .about = "What it is trained on",
                .required = true},
          dataset);
  archive(Field{.name = "epochs",
                .about = "Passes over the data",
                .required = true,
                .least = 1,
                .most = model::kMostEpochs},
          s.epochs);
  archive(Field{.name = "padding",
                .about = "What batches are filled up to",
                .required = true},
          s.padding);
  const WorkKey work{w.work};
  archive(Field{.name = "work", .about = "Forward is inference"}, work);
  std::vector<std::string_view> apart = {
      "model", "sequence_length", "work", "by_layer", "gradient_compression"};
  if (w.work == model::Work::kForward && !s.names_optimizer) {
    apart.emplace_back("optimizer");
  }
  auto step = archive.Without(std::move(apart));
  VisitFields(step, w);
  const CompressionKey compression{w.compression};
  archive(Field{.name = "gradient_compression",
                .about = "What is done to gradients before they are sent"},
          compression);
  const LearningRate<S> rate{s};
  archive(Field{.name = "learning_rate",
                .about = "Its schedule, and its decay from layer to layer"},
          rate);
  archive(Field{.name = "drop_last",
                .about = "An epoch leaves out what does not fill a step"},
          s.drop_last);
  archive(Field{.name = "run",
                .about = "What the clock adds to the steps; else as usual"},
          s.extras);
  archive(Field{.name = "source",
                .about = "Who runs it, as the provenance of fits names them"},
          s.source);
  std::string notes;
  archive(Field{.name = "notes", .about = "For readers"}, notes);
}

}  // namespace trainfare::scenarios
