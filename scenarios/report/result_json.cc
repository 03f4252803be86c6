#include "scenarios/report/result_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "hardware/files/date.h"
#include "hardware/files/json_text.h"
#include "model/error.h"
#include "model/json_fields.h"
#include "model/trainable.h"

namespace trainfare::scenarios {
namespace {

// The first two keys of every answer and what all schemas begin with.
constexpr std::string_view kSchema = "schema";
constexpr std::string_view kToolVersion = "tool_version";
constexpr std::string_view kSchemaFamily = "trainfare.";

// Each part of the answer adds its keys to it.

Json TermsJson(const std::vector<model::MemoryTerm>& terms) {
  Json json = Json::array();
  for (const model::MemoryTerm& term : terms) {
    json.push_back({{"name", term.name}, {"memory_bytes", ToBytes(term.size)}});
  }
  return json;
}

void AddMemory(const JobEstimate& job, Json& json) {
  AddFigures(FigurePart::kMemory, {job}, json);
  json["memory_moment"] = model::ToText(job.memory.moment);
  json["memory_terms"] = TermsJson(job.memory.terms);
  json["largest_batch"] = OrNull(job.largest_batch);
  json["any_batch_fits"] = job.any_batch;
  json["compiler_memory_bytes"] =
      job.compilation ? Json(ToBytes(job.compilation->memory)) : Json(nullptr);
  if (!job.host) return;
  json["host_memory"] = {
      {"ranks", job.host->ranks},
      {"memory_bytes", ToBytes(job.host->total())},
      {"capacity_bytes",
       job.host->capacity ? Json(ToBytes(*job.host->capacity)) : Json(nullptr)},
      {"terms_of_rank", TermsJson(job.host->terms)}};
}

void AddStep(const JobEstimate& job, Json& json) {
  const StepEstimate& step = job.step;
  AddFigures(FigurePart::kStep, {job}, json);
  json["interval"] = 0.8;
  json["grade"] = calibrate::ToText(step.grade);
  json["fit_figures"] = step.figures;
  json["source_seen"] = step.source_seen;
  json["source_log_sigma"] = step.source_sigma;
  json["ring_ranks"] =
      step.ring_ranks > 0 ? Json(step.ring_ranks) : Json(nullptr);
  json["ring"] = nullptr;
  if (step.ring) {
    json["ring"] = {{"step_latency_s", ToSeconds(step.ring->step_latency)},
                    {"link_bytes_per_s", step.ring->link.base()}};
  }
  json["phases"] = {
      {"forward_s", ToSeconds(step.forward.total())},
      {"backward_s", ToSeconds(step.backward.total())},
      {"optimizer_s", ToSeconds(step.optimizer.total())},
      {"other_s", ToSeconds(step.other)},
      {"communication_s", ToSeconds(step.communication)},
      {"slowed_computation_s", ToSeconds(step.slowed_computation)},
      {"waiting_s", ToSeconds(step.waiting)},
      {"host_update_s", ToSeconds(step.host_update)},
      {"input_s", ToSeconds(step.input)}};
  const auto interval =
      [&](std::string_view part, model::Seconds<> time, double log_sigma) {
        json["phase_intervals"][part] = {
            {"low_s", ToSeconds(time) * step.LowFactor(log_sigma)},
            {"high_s", ToSeconds(time) * step.HighFactor(log_sigma)}};
      };
  interval("forward", step.forward.total(), step.forward_log_sigma);
  interval("backward", step.backward_with_messages(), step.backward_log_sigma);
  interval("optimizer", step.optimizer.total(), step.optimizer_log_sigma);
}

void AddBreakdown(const StepEstimate& step, Json& json) {
  Json breakdown = Json::array();
  for (const Term& term : TermsOf(step)) {
    breakdown.push_back({{"name", term.name},
                         {"time_s", ToSeconds(term.time)},
                         {"share", term.time / step.total()}});
  }
  json["breakdown"] = breakdown;
  if (!step.traffic.empty()) {
    Json traffic = Json::array();
    for (const calibrate::ShardTraffic& part : step.traffic) {
      traffic.push_back({{"name", part.part},
                         {"sent_bytes", ToBytes(part.sent)},
                         {"host_bytes", ToBytes(part.copied)},
                         {"time_s", ToSeconds(part.sending)},
                         {"exposed_s", ToSeconds(part.exposed)}});
    }
    json["shard_traffic"] = traffic;
  }
}

void AddRun(const JobEstimate& job, Json& json) {
  json["run"] = {{"start_up_s", ToSeconds(job.run.start_up)},
                 {"start_up_known", job.start_up_known},
                 {"compile_s", ToSeconds(job.run.compile)},
                 {"training_s", ToSeconds(job.run.training)},
                 {"evaluation_s", ToSeconds(job.run.evaluation)},
                 {"checkpoint_s", ToSeconds(job.run.checkpoint)},
                 {"input_wait_s", ToSeconds(job.run.input_wait)},
                 {"distinct_shapes", job.run.distinct_shapes},
                 {"compile_known", job.compile_known}};
  AddFigures(FigurePart::kRun, {job}, json);
  AddFigures(FigurePart::kEnergy, {job}, json);
  json["energy_is_upper_bound"] = job.energy && job.energy_is_bound;
}

}  // namespace

Json ResultHead(std::string_view schema,
                const Origin& origin,
                const Grounds& grounds) {
  ENSURE(schema.starts_with(kSchemaFamily), "a schema of ours");
  Json head;
  head[kSchema] = schema;
  head[kToolVersion] = TRAINFARE_VERSION;
  head["timestamp"] = hardware::TimeText(origin.time);
  head["seed"] = OrNull(grounds.seed);
  head["price_catalogs"] = Json::object();
  for (const PriceSource& source : grounds.prices) {
    head["price_catalogs"][source.cloud] = {{"date", source.date},
                                            {"source", source.source}};
  }
  if (!origin.arguments.empty()) head["arguments"] = origin.arguments;
  return head;
}

bool IsAnswer(std::string_view text) {
  const auto skip = [&text](std::string_view word) {
    text.remove_prefix(
        std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
    return true;
  };
  const auto skip_key = [&skip](std::string_view key) {
    return skip(fmt::format("\"{}\"", key)) && skip(":") && skip("\"");
  };
  if (!skip("{") || !skip_key(kSchema) || !text.starts_with(kSchemaFamily)) {
    return false;
  }
  text.remove_prefix(std::min(text.find('"'), text.size()));
  return skip("\"") && skip(",") && skip_key(kToolVersion);
}

std::string AnswerText(Json json, const Report& report) {
  Json notes = Json::array();
  Json warnings = Json::array();
  const auto add_warning = [&](const Note& note) {
    warnings.push_back(
        {{"code", ToText(note.caution)}, {"message", note.text}});
  };
  for (const Note& note : report.notes) {
    notes.push_back(note.text);
    if (note.caution != Caution::kNone) add_warning(note);
  }
  for (const Note& warning : report.warnings) add_warning(warning);
  json["notes"] = std::move(notes);
  json["warnings"] = std::move(warnings);
  return hardware::WriteJson(json, hardware::JsonLayout::kIndented);
}

Json ToJson(const Scenario& s) {
  const model::Workload& w = s.workload;
  Json json;
  json["name"] = s.name;
  json["title"] = s.title;
  json["model"] = w.architecture.name;
  json["parameters"] = model::TotalParameters(w.architecture);
  json["trainable_parameters"] = model::TrainableParameters(w);
  json["task"] = model::ToText(w.architecture.head);
  json["dataset"] = s.dataset;
  json["train_samples"] = s.train_samples;
  json["eval_samples"] = s.eval_samples;
  json["epochs"] = s.epochs;
  json["accumulation"] = w.accumulation;
  json["padding"] = Describe(s.padding);
  json["precision"] = model::ToText(w.precision);
  json["work"] = model::ToText(w.work);
  json["optimizer"] = model::ToText(w.optimizer.kind);
  json["optimizer_implementation"] = model::ToText(w.optimizer.implementation);
  json["stack"] = model::ToText(w.stack.fusion);
  json["attention"] = model::ToText(w.stack.attention);
  // All of it, the shorter words above among them.
  json["workload"] = ToJson(w);
  return json;
}

Json ToJson(const model::Workload& workload) {
  Json json = Json::object();
  model::JsonFieldWriter writer(json);
  VisitFields(writer, workload);
  return json;
}

Json ToJson(const Tariff& t) {
  Json json;
  json["price_usd_per_hour"] = ToDollarsPerHour(t.price);
  json["price_low_usd_per_hour"] = ToDollarsPerHour(t.price_low);
  json["list_price_share"] = t.factor;
  json["billed_in_s"] = ToSeconds(t.billing.granularity);
  json["billed_at_least_s"] = ToSeconds(t.billing.minimum);
  json["market"] = t.spot ? "spot" : "on-demand";
  json["region"] = t.region;
  json["date"] = t.date;
  json["source"] = t.source;
  json["caution"] = t.caution.empty() ? Json(nullptr) : Json(t.caution);
  json["excludes"] = t.excludes;
  return json;
}

Json ToJson(const std::optional<Tariff>& tariff) {
  return tariff ? ToJson(*tariff) : Json(nullptr);
}

void AddFigures(FigurePart part, const Answered& answered, Json& json) {
  for (const AnswerFigure& figure : AnswerFigures()) {
    if (figure.part != part) continue;
    json[std::string(figure.key)] = OrNull(ValueOf(figure, answered));
  }
}

Json ToJson(const JobEstimate& job) {
  Json json;
  json["batch"] = job.workload.batch;
  json["sequence_length"] = job.workload.sequence_length;
  json["mean_length"] = model::MeanLength(job.own_lengths);
  json["devices"] = job.devices;
  json["fits"] = job.fits();
  AddMemory(job, json);
  if (!job.fits()) {
    json["reason"] = job.Obstacle();
    return json;
  }
  AddStep(job, json);
  AddBreakdown(job.step, json);
  json["bottleneck"] = job.Bottleneck();
  if (job.engines) {
    const calibrate::EngineProfile& engines = *job.engines;
    json["engines"] = {{"tensor", OrNull(engines.tensor)},
                       {"vector", OrNull(engines.vector)},
                       {"scalar", OrNull(engines.scalar)},
                       {"dma", OrNull(engines.dma)},
                       {"traffic_bytes", ToBytes(*engines.traffic)},
                       {"spill_bytes", ToBytes(*engines.spill)}};
  }
  AddFigures(FigurePart::kSpeed, {job}, json);
  json["mfu_rule"] = "palm";
  json["steps_per_epoch"] = job.run.steps_per_epoch;
  AddRun(job, json);
  return json;
}

}  // namespace trainfare::scenarios
