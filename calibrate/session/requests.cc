#include "calibrate/session/requests.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "hardware/files/json_text.h"
#include "model/json_fields.h"

namespace trainfare::calibrate::internal {

std::string RequestLine(const PlannedRun& run, double max_seconds) {
  nlohmann::ordered_json request = nlohmann::ordered_json::object();
  model::JsonFieldWriter writer(request);
  VisitFields(writer, run.workload);
  request["steps"] = run.steps;
  request["warmup"] = run.warmup;
  request["max_seconds"] = max_seconds;
  return hardware::WriteJson(request);
}

std::string RunWords(const model::Workload& workload) {
  const model::Shard shard = workload.parallel.shard;
  return fmt::format("{} {}, batch {}, length {}{}",
                     workload.architecture.name,
                     model::ToText(workload.precision),
                     workload.batch,
                     workload.sequence_length,
                     shard == model::Shard::kNone
                         ? ""
                         : fmt::format(", {}", model::ToText(shard)));
}

}  // namespace trainfare::calibrate::internal
