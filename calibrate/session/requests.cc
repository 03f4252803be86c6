#include "calibrate/session/requests.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "hardware/files/json_text.h"
#include "model/json_fields.h"
#include "model/request_fields.h"

namespace trainfare::calibrate::internal {

std::string RequestLine(const PlannedRun& run, double max_seconds) {
  const model::MeasureRequest request = {.workload = run.workload,
                                         .steps = run.steps,
                                         .warmup = run.warmup,
                                         .max_seconds = max_seconds};
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  model::JsonFieldWriter writer(json);
  VisitFields(writer, request);
  return hardware::WriteJson(json);
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
