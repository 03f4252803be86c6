#include "calibrate/session/requests.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "hardware/files/json_text.h"
#include "model/architecture.h"

namespace trainfare::calibrate::internal {

std::string RequestLine(const PlannedRun& run, double max_seconds) {
  const model::Workload& w = run.workload;
  const model::Architecture& a = w.architecture;
  nlohmann::ordered_json request;
  const auto preset = model::TryFindArchitecture(a.name);
  if (preset && *preset == a) {
    request["model"] = a.name;
  } else {
    request["model"] = {{"name", a.name},
                        {"family", model::ToText(a.family)},
                        {"layers", a.layers},
                        {"hidden", a.hidden},
                        {"heads", a.heads},
                        {"intermediate", a.intermediate},
                        {"vocabulary", a.vocabulary},
                        {"positions", a.positions},
                        {"position_offset", a.position_offset},
                        {"token_types", a.token_types},
                        {"pooler", a.pooler},
                        {"classifier_dense", a.classifier_dense},
                        {"head", model::ToText(a.head)},
                        {"labels", a.labels},
                        {"dropout", a.dropout}};
  }
  request["batch"] = w.batch;
  request["sequence_length"] = w.sequence_length;
  request["accumulation"] = w.accumulation;
  request["precision"] = model::ToText(w.precision);
  request["optimizer"] = {
      {"name", model::ToText(w.optimizer.kind)},
      {"implementation", model::ToText(w.optimizer.implementation)}};
  request["stack"] = model::ToText(w.stack.fusion);
  // The trainer's own kind of masters; it has no other.
  if (model::MastersInUpdate(w)) request["narrow_weights"] = true;
  request["attention"] = model::ToText(w.stack.attention);
  request["steps"] = run.steps;
  request["warmup"] = run.warmup;
  request["max_seconds"] = max_seconds;
  return hardware::WriteJson(request);
}

std::string RunWords(const model::Workload& workload) {
  return fmt::format("{} {}, batch {}, length {}",
                     workload.architecture.name,
                     model::ToText(workload.precision),
                     workload.batch,
                     workload.sequence_length);
}

}  // namespace trainfare::calibrate::internal
