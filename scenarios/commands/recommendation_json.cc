#include <string>
#include <utility>

#include "scenarios/commands/recommendation_report.h"
#include "scenarios/report/answer_figures.h"

namespace trainfare::scenarios {
namespace {

Json ToJson(const Candidate& c) {
  Json json;
  json["instance"] =
      c.instance != nullptr ? Json(c.instance->FullName()) : Json(nullptr);
  json["device"] = c.device;
  json["devices"] = c.devices;
  json["hosts"] = c.hosts;
  json["batch"] = c.batch;
  json["accumulation"] = c.accumulation;
  json["precision"] = ToText(c.precision);
  json["chosen"] = c.chosen;
  json["tied"] = c.tied;
  json["on_front"] = c.on_front;
  json["best_probability"] = OrNull(c.best_probability);
  json["limits_probability"] = OrNull(c.limits_probability);
  json["score"] = c.weighted ? Json(c.weighted->value) : Json(nullptr);
  json["reason"] = c.chosen ? Json(nullptr) : Json(c.Reason());
  json["price"] = scenarios::ToJson(c.tariff);
  for (const AnswerFigure& figure : AnswerFigures()) {
    if (figure.part != FigurePart::kCost) continue;
    json[std::string(figure.key)] =
        c.timed() ? OrNull(ValueOf(figure, {*c.job, c.cost})) : Json(nullptr);
  }
  json["estimate"] = c.job ? scenarios::ToJson(*c.job) : Json(nullptr);
  return json;
}

Json ToJson(const NextCalibration& next) {
  return {{"instance", next.on->FullName()},
          {"device", next.on->device},
          {"devices", next.on->count},
          {"time_s", ToSeconds(next.time)},
          {"cost_usd", ToDollars(next.cost)},
          {"best_probability", next.best_probability},
          {"saved_cost_usd",
           next.saved ? Json(ToDollars(*next.saved)) : Json(nullptr)}};
}

}  // namespace

Json RecommendationJson(const std::vector<Candidate>& candidates,
                        const Scenario& scenario,
                        const RecommendOptions& options,
                        const Overview& overview) {
  Json json = ResultHead(
      "trainfare.recommendation/1", options.origin, overview.grounds);
  json["scenario"] = ToJson(scenario);
  json["global_batch"] = OrNull(options.global_batch);
  json["objective"] = ToText(options.objective);
  json["market"] = options.spot ? "spot" : "on-demand";
  json["deadline_s"] =
      options.deadline ? Json(ToSeconds(*options.deadline)) : Json(nullptr);
  json["budget_usd"] =
      options.budget ? Json(ToDollars(*options.budget)) : Json(nullptr);
  json["chosen"] = nullptr;
  if (!candidates.empty() && candidates.front().chosen) {
    json["chosen"] = {
        {"instance", candidates.front().instance->FullName()},
        {"hosts", candidates.front().hosts},
        {"devices", candidates.front().devices},
        {"batch", candidates.front().batch},
        {"accumulation", candidates.front().accumulation},
        {"precision", ToText(candidates.front().precision)},
        {"ties", overview.ties},
        {"best_probability", OrNull(candidates.front().best_probability)},
        {"limits_probability", OrNull(candidates.front().limits_probability)}};
  }
  json["next_calibration"] =
      overview.calibration ? ToJson(*overview.calibration) : Json(nullptr);
  Json list = Json::array();
  for (const Candidate& candidate : candidates) {
    list.push_back(ToJson(candidate));
  }
  json["candidates"] = std::move(list);
  return json;
}

}  // namespace trainfare::scenarios
