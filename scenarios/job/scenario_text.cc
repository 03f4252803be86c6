#include "scenarios/job/scenario_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "hardware/files/yaml_text.h"
#include "model/error.h"
#include "model/fields.h"
#include "model/json_fields.h"
#include "model/trainable.h"

namespace trainfare::scenarios {
namespace {

using Node = nlohmann::ordered_json;

// Shares of lengths are written where they leave a line by more.
constexpr double kSameShare = 1e-9;

Node PaddingNode(const Padding& padding) {
  switch (padding.kind) {
    case PaddingKind::kStatic:
      return {{"static", padding.length}};
    case PaddingKind::kDynamic:
      return padding.length > 0 ? Node{{"dynamic", padding.length}}
                                : Node("dynamic");
    case PaddingKind::kBuckets:
      return {{"buckets", padding.buckets}};
  }
  ENSURE(false, "a padding without a form");
}

// Points of the distribution, between which the lengths are equally frequent.
Node LengthsNode(const model::LengthHistogram& lengths,
                 const std::string& source) {
  std::vector<int64_t> points;
  std::vector<double> shares;
  int64_t from = lengths.shortest() - 1;
  double below = 0.0;
  for (int64_t l = lengths.shortest(); l <= lengths.longest(); ++l) {
    const double rise = lengths.Cdf(from + 1) - below;
    const double line = below + rise * static_cast<double>(l + 1 - from);
    const bool straight = l < lengths.longest() &&
                          std::abs(lengths.Cdf(l + 1) - line) <= kSameShare;
    if (straight) continue;
    points.push_back(l);
    shares.push_back(lengths.Cdf(l));
    from = l;
    below = shares.back();
  }
  return {{"source", source},
          {"shortest", lengths.shortest()},
          {"lengths", points},
          {"share_up_to", shares}};
}

Node DatasetNode(const Scenario& s) {
  Node json;
  if (!s.dataset.empty()) json["name"] = s.dataset;
  json["train"] = s.train_samples;
  json["eval"] = s.eval_samples;
  if (s.lengths) json["lengths"] = LengthsNode(*s.lengths, s.lengths_source);
  return json;
}

// What the fields of a workload look like in a scenario.
Node StepNode(const Scenario& s) {
  const model::Workload& w = s.workload;
  Node json;
  model::JsonFieldWriter writer(json);
  VisitFields(writer, w);
  // Forms of their own: ReadScenario() has them.
  for (const char* key :
       {"model", "sequence_length", "gradient_compression", "power_limit_w"}) {
    json.erase(key);
  }
  if (w.power_limit.base() > 0.0) {
    json["power_limit"] = fmt::format("{} W", ToWatts(w.power_limit));
  }
  json["optimizer"].erase("by_layer");
  if (!s.names_optimizer) json.erase("optimizer");
  // Without an optimizer the work says itself.
  if (w.work == model::Work::kForwardBackward) json.erase("work");
  if (w.trainable.lora_rank > 0) {
    json["trainable"].erase("frozen_layers");
  } else if (w.trainable.frozen_layers > 0) {
    json["trainable"].erase("lora");
  } else {
    json.erase("trainable");
  }
  return json;
}

Node CompressionNode(const model::GradientCompression& compression) {
  if (compression.kind == model::CompressionKind::kPowerSgd) {
    return {{"power_sgd", compression.rank}};
  }
  return std::string(model::ToText(compression.kind));
}

// Only what is known: the rest is as usual on the device that is asked about.
Node RunNode(const RunExtras& extras) {
  Node json = Node::object();
  const auto time = [&](const char* key, const auto& value) {
    if (value) json[key] = fmt::format("{} s", ToSeconds(*value));
  };
  time("start_up", extras.start_up);
  time("compile_per_shape", extras.compile_per_shape);
  time("checkpoint", extras.checkpoint);
  time("load_per_sample", extras.load_per_sample);
  json["warm_cache"] = extras.warm_cache;
  json["swap"] = fmt::format("{} B", ToBytes(extras.swap));
  return json;
}

void AddComments(const Scenario& s, hardware::YamlLines& lines) {
  const model::Workload& w = s.workload;
  const int64_t all = model::TotalParameters(w.architecture);
  const int64_t trained = model::TrainableParameters(w);
  lines.Comment(trained == all
                    ? fmt::format("{} parameters", all)
                    : fmt::format("{} parameters, {} of them and of adapters "
                                  "train",
                                  all,
                                  trained));
  if (s.lengths) {
    lines.Comment(fmt::format("lengths {} to {}, mean {:.1f}; batches up to {}",
                              s.lengths->shortest(),
                              s.lengths->longest(),
                              s.lengths->MeanCutAt(s.lengths->longest()),
                              w.sequence_length));
  }
}

}  // namespace

std::string ToYaml(const Scenario& s, size_t width) {
  const model::Workload& w = s.workload;
  hardware::YamlLines lines(width);
  AddComments(s, lines);
  lines.Add("name", s.title);
  Node model;
  model::JsonFieldWriter dimensions(model);
  VisitDimensions(dimensions, w.architecture);
  lines.AddMap("model", model);
  Node task;
  model::JsonFieldWriter head(task);
  VisitTask(head, w.architecture, "task");
  lines.AddAll(task);
  lines.AddMap("dataset", DatasetNode(s));
  lines.Add("epochs", s.epochs);
  lines.Add("padding", PaddingNode(s.padding));
  lines.AddAll(StepNode(s));
  if (s.layer_decay < 1.0) {
    lines.Add("learning_rate", {{"layer_decay", s.layer_decay}});
  }
  lines.Add("gradient_compression", CompressionNode(w.compression));
  lines.Add("drop_last", s.drop_last);
  lines.AddMap("run", RunNode(s.extras));
  lines.Add("source", s.source);
  return lines.text();
}

}  // namespace trainfare::scenarios
