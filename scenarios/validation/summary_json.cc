#include "scenarios/validation/summary_json.h"

#include <utility>

namespace trainfare::scenarios {

Json ToJson(const ErrorSummary& s) {
  const auto number = [&](double value) {
    return s.count > 0 ? Json(value) : Json(nullptr);
  };
  Json json;
  json["mape"] = number(s.mape);
  json["median"] = number(s.median);
  json["p90"] = number(s.p90);
  json["max"] = number(s.max);
  json["n"] = s.count;
  json["bias"] = number(s.bias);
  json["coverage"] = s.with_interval > 0 ? Json(s.coverage) : Json(nullptr);
  json["with_interval"] = s.with_interval;
  json["coverage_95"] =
      s.with_interval_95 > 0 ? Json(s.coverage_95) : Json(nullptr);
  return json;
}

Json RunJson(const std::string& label,
             const hardware::Device& device,
             int64_t devices,
             const model::Workload& workload) {
  Json json;
  json["label"] = label;
  json["device"] = device.name;
  json["devices"] = devices;
  json["model"] = workload.architecture.name;
  json["precision"] = model::ToText(workload.precision);
  json["batch"] = workload.batch;
  json["sequence_length"] = workload.sequence_length;
  json["accumulation"] = workload.accumulation;
  json["workload"] = ToJson(workload);
  return json;
}

Json GroupList(const ErrorGroups& groups) {
  Json list = Json::array();
  for (const auto& [name, members] : groups) {
    Json json;
    json["group"] = name;
    json.update(ToJson(Summarise(members)));
    list.push_back(std::move(json));
  }
  return list;
}

std::vector<std::string> SummaryFigures() {
  const Json json = ToJson(ErrorSummary());
  std::vector<std::string> names;
  for (const auto& item : json.items()) {
    names.push_back(item.key());
  }
  return names;
}

namespace {

Json ToJson(const MeasuredChoice& choice) {
  Json json;
  json["question"] = choice.question;
  json["objective"] = choice.objective;
  json["regret_percent"] = 100.0 * choice.regret;
  json["devices"] = Json::array();
  for (const MeasuredChoice::Entry& entry : choice.entries) {
    json["devices"].push_back(
        {{"device", entry.device},
         {"measured_s", ToSeconds(entry.measured)},
         {"predicted_s", entry.predicted.value},
         {"predicted_low_s", entry.predicted.low},
         {"predicted_high_s", entry.predicted.high},
         {"price_usd_per_hour",
          choice.objective == "cost" ? Json(entry.price) : Json(nullptr)},
         {"best_probability", entry.best_probability},
         {"best", entry.best}});
  }
  return json;
}

}  // namespace

Json ToJson(const std::vector<MeasuredChoice>& choices) {
  Json list = Json::array();
  for (const MeasuredChoice& choice : choices) list.push_back(ToJson(choice));
  return list;
}

Json ValidationHead(const ValidateOptions& options,
                    const std::vector<PriceSource>& prices) {
  return ResultHead("trainfare.validation/1",
                    options.origin,
                    {.seed = options.seed, .prices = prices});
}

}  // namespace trainfare::scenarios
