#include <set>
#include <string>

#include "model/sharding.h"
#include "scenarios/commands/prediction_report.h"
#include "scenarios/report/answer_figures.h"
#include "scenarios/report/result_json.h"

namespace trainfare::scenarios {
namespace {

Json NameOfInstance(const PredictionTarget& target) {
  return target.instance != nullptr ? Json(target.instance->FullName())
                                    : Json(nullptr);
}

Json FitOf(const PredictionTarget& target) {
  return target.fit_name.empty() ? Json(nullptr) : Json(target.fit_name);
}

Json FitProvenanceOf(const PredictionTarget& target) {
  if (target.fit_name.empty()) return nullptr;
  const calibrate::Provenance& of = target.predictor.fit().provenance;
  const auto error = LeftOutError(target);
  return {
      {"runs", of.runs},
      {"left_out_error_percent", error ? Json(100.0 * *error) : Json(nullptr)},
      {"date", of.date}};
}

Json JsonOf(const Prediction& prediction, const Scenario& scenario) {
  const PredictionTarget& target = *prediction.target;
  const JobEstimate& job = prediction.job;
  Json json;
  json["device"] = target.predictor.device().name;
  json["instance"] = NameOfInstance(target);
  json["price"] = ToJson(target.tariff);
  json["fit"] = FitOf(target);
  json["fit_provenance"] = FitProvenanceOf(target);
  json["precision"] = model::ToText(job.workload.precision);
  json.update(ToJson(job));
  if (!job.fits()) return json;
  const Answered answered = {job,
                             CostOf(job, target.tariff),
                             scenario.epochs,
                             target.predictor.device().memory_bandwidth};
  AddFigures(FigurePart::kEpoch, answered, json);
  AddFigures(FigurePart::kWork, answered, json);
  AddFigures(FigurePart::kCost, answered, json);
  return json;
}

Json PredictionsJson(const std::vector<Prediction>& predictions,
                     const Scenario& scenario) {
  Json json = Json::array();
  for (const Prediction& prediction : predictions) {
    json.push_back(JsonOf(prediction, scenario));
  }
  return json;
}

Json KernelsJson(const KernelGroups& kernels) {
  Json json = Json::array();
  for (const KindTime& time : TimesByKind(kernels)) {
    json.push_back({{"kind", model::ToText(time.kind)},
                    {"time_s", time.all},
                    {"forward_s", time.seconds[0]},
                    {"backward_s", time.seconds[1]},
                    {"optimizer_s", time.seconds[2]},
                    {"share", time.share}});
  }
  return json;
}

Json CollectivesJson(const std::vector<CollectiveTime>& times) {
  Json json = Json::array();
  for (const CollectiveTime& one : times) {
    json.push_back({{"collective", model::ToText(one.collective)},
                    {"ranks", one.ranks},
                    {"message_bytes", ToBytes(one.size)},
                    {"time_s", ToSeconds(one.time)},
                    {"bus_bytes_per_s", one.bus.base()}});
  }
  return json;
}

// What all predictions have alike; of several devices each says its own.
Json HeadOf(const std::vector<PredictionTarget>& targets,
            const Scenario& scenario,
            const PredictOptions& options) {
  const PredictionTarget& target = targets.front();
  const bool one = targets.size() == 1;
  Grounds grounds;
  std::set<std::string> clouds;
  for (const PredictionTarget& any : targets) {
    if (any.instance != nullptr) clouds.insert(any.instance->cloud);
  }
  if (!clouds.empty()) grounds.prices = SourcesOf(options.prices, clouds);
  Json json = ResultHead("trainfare.prediction/1", options.origin, grounds);
  json["scenario"] = ToJson(scenario);
  const hardware::Device& device = target.predictor.device();
  json["device"] = one ? Json(device.name) : Json(nullptr);
  json["reported_name"] = one ? Json(device.reported_name) : Json(nullptr);
  json["instance"] = one ? NameOfInstance(target) : Json(nullptr);
  json["fit"] = one ? FitOf(target) : Json(nullptr);
  json["hosts"] = target.cluster.hosts;
  json["price"] = one ? ToJson(target.tariff) : Json(nullptr);
  return json;
}

}  // namespace

Json PredictionJson(const std::vector<PredictionTarget>& targets,
                    const std::vector<Prediction>& predictions,
                    const std::optional<KernelGroups>& kernels,
                    const Scenario& scenario,
                    const PredictOptions& options) {
  Json json = HeadOf(targets, scenario, options);
  json["predictions"] = PredictionsJson(predictions, scenario);
  Json& last = json["predictions"].back();
  if (kernels) last["kernels"] = KernelsJson(*kernels);
  if (predictions.size() == 1 && predictions.front().job.fits()) {
    const auto collectives = CollectivesOf(predictions.front());
    if (!collectives.empty()) {
      last["collectives"] = CollectivesJson(collectives);
    }
  }
  return json;
}

}  // namespace trainfare::scenarios
