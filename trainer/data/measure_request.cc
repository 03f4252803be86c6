#include "trainer/data/measure_request.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "hardware/files/json_text.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/json_fields.h"
#include "model/presets.h"
#include "model/validate.h"

namespace trainfare::trainer {
namespace {

using model::InputError;
using nlohmann::json;

// What a request need not say of its model; a preset's name says all.
json WithModelDefaults(const json& value) {
  json model = value;
  if (value.is_string()) {
    model = json::object();
    model::JsonFieldWriter writer(model);
    VisitFields(writer, model::FindArchitecture(value.get<std::string>()));
    return model;
  }
  if (!model.is_object()) return model;
  // Each only where the key is not there.
  model.emplace("name", "custom");
  model.emplace("family", "encoder");
  const bool encoder = model["family"] == "encoder";
  model.emplace("head",
                encoder ? "sequence-classification" : "causal-language-model");
  model.emplace("token_types", encoder ? 2 : 0);
  // A fixed table, of any length, has no rows of its own.
  if (model["family"] != "encoder-decoder") {
    model.emplace("positions", encoder ? 512 : 1024);
  }
  const bool distil = model["token_types"] == 0;
  const bool bert =
      encoder && !distil && model.value("position_offset", json(0)) == 0;
  model.emplace("pooler", bert);
  model.emplace("classifier_dense", encoder && !bert);
  return model;
}

json WithDefaults(json request) {
  if (request.contains("model")) {
    request["model"] = WithModelDefaults(request["model"]);
  }
  request.emplace("precision", "fp32");
  request.emplace("stack", "eager");
  if (!request.contains("optimizer")) request["optimizer"] = json::object();
  json& optimizer = request["optimizer"];
  if (optimizer.is_object()) {
    optimizer.emplace("name", "adamw");
    optimizer.emplace("implementation", "fused");
    optimizer.emplace("masters",
                      request.value("narrow_weights", json(false)) == true
                          ? "in_update"
                          : "apart");
  }
  return request;
}

}  // namespace

MeasureRequest ReadMeasureRequest(const std::string& text) {
  const json value = hardware::ParseJson(text, "request", 1);
  if (!value.is_object()) {
    throw InputError(
        fmt::format("request: expected an object, got {}", value.type_name()));
  }
  const json filled = WithDefaults(value);
  MeasureRequest request;
  model::JsonFieldReader reader(filled, "", model::UnknownKeys::kRefused);
  VisitFields(reader, request);
  reader.Finish();
  model::Validate(request.workload);
  return request;
}

}  // namespace trainfare::trainer
