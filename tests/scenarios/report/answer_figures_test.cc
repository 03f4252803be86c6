#include "scenarios/report/answer_figures.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "hardware/files/json_text.h"
#include "hardware/files/text_file.h"
#include "model/presets.h"
#include "model/units.h"
#include "tests/near.h"

namespace trainfare::scenarios {
namespace {

using nlohmann::json;

json Schema(const std::string& name) {
  const std::string path =
      TRAINFARE_ROOT "/scenarios/report/schema/" + name + ".1.schema.json";
  return hardware::ParseJson(hardware::ReadTextFile(path, "a schema"), path);
}

json OfItems(const std::string& schema, const char* list) {
  return Schema(schema)["properties"][list]["items"]["properties"];
}

bool IsNumber(const json& schema) {
  const json type = schema.value("type", json());
  return type == "number" || type == json::array({"number", "null"});
}

TEST_CASE("every figure is in the schema, and says there what it is") {
  const json estimate = Schema("common")["$defs"]["estimate"]["properties"];
  const json prediction = OfItems("prediction", "predictions");
  const json candidate = OfItems("recommendation", "candidates");
  for (const AnswerFigure& figure : AnswerFigures()) {
    const std::string key(figure.key);
    CAPTURE(key);
    const bool of_the_price = figure.part == FigurePart::kCost;
    const bool beside_estimate = of_the_price ||
                                 figure.part == FigurePart::kEpoch ||
                                 figure.part == FigurePart::kWork;
    const json& schemas = beside_estimate ? prediction : estimate;
    REQUIRE(schemas.contains(key));
    CHECK(IsNumber(schemas[key]));
    CHECK(schemas[key].value("description", "") == figure.about);
    if (of_the_price) CHECK(candidate[key] == schemas[key]);
  }
}

TEST_CASE("what a step is made of goes together") {
  JobEstimate job;
  job.workload.architecture = model::FindArchitecture("bert-base-uncased");
  job.workload.batch = 8;
  job.workload.sequence_length = 128;
  job.step.forward.matrix = model::Milliseconds(2);
  job.step.optimizer.memory = model::Milliseconds(3);
  job.step.optimizer.overhead = model::Milliseconds(1);
  Answered answered{job};
  const auto of = [&](const char* key) { return FigureOf(key).of(answered); };
  CHECK(*of("optimizer_busy_s") == Near(3e-3, 1e-5));
  CHECK(*of("optimizer_busy_share") == Near(0.75, 1e-5));
  CHECK(*of("matrix_share") == Near(0.4, 1e-5));
  CHECK(*of("flops_per_s") == Near(*of("step_flops") / 6e-3, 1e-5));
  CHECK(*of("optimizer_launches") > 0);
  // Bytes are known where the device's model has engines alone.
  CHECK_FALSE(of("flops_per_byte").has_value());
  CHECK_FALSE(of("bandwidth_share").has_value());
  job.engines.emplace();
  job.engines->traffic = model::Bytes<>(6e6);
  CHECK(*of("flops_per_byte") == Near(*of("step_flops") / 6e6, 1e-5));
  CHECK_FALSE(of("bandwidth_share").has_value());
  answered.memory_bandwidth = model::BytesPerSecond<>(4e9);
  CHECK(*of("bandwidth_share") == Near(0.25, 1e-5));
}

TEST_CASE("every number of an estimate in the schema is a figure") {
  // What an answer rests on, and what a compiler takes of another machine.
  const std::set<std::string> others = {
      "mean_length", "interval", "source_log_sigma", "compiler_memory_bytes"};
  std::set<std::string> figures;
  for (const AnswerFigure& figure : AnswerFigures()) {
    CHECK(figures.emplace(figure.key).second);
  }
  const json schema = Schema("common");
  for (const auto& item : schema["$defs"]["estimate"]["properties"].items()) {
    if (!IsNumber(item.value()) || others.contains(item.key())) continue;
    CAPTURE(item.key());
    CHECK(figures.contains(item.key()));
  }
}

}  // namespace
}  // namespace trainfare::scenarios
