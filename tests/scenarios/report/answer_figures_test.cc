#include "scenarios/report/answer_figures.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "hardware/files/json_text.h"
#include "hardware/files/text_file.h"

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
    const bool beside_estimate =
        of_the_price || figure.part == FigurePart::kEpoch;
    const json& schemas = beside_estimate ? prediction : estimate;
    REQUIRE(schemas.contains(key));
    CHECK(IsNumber(schemas[key]));
    CHECK(schemas[key].value("description", "") == figure.about);
    if (of_the_price) CHECK(candidate[key] == schemas[key]);
  }
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
