#include "model/fields.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "model/error.h"
#include "model/json_fields.h"
#include "model/presets.h"
#include "tests/model/walk_fields.h"

namespace trainfare::model {
namespace {

// Converts to anything: as many of it as an aggregate takes are its members.
struct Anything {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};
template <class Aggregate, class... Members>
consteval int MemberCount() {
  if constexpr (requires { Aggregate{Members()..., Anything()}; }) {
    return MemberCount<Aggregate, Members..., Anything>();
  } else {
    return sizeof...(Members);
  }
}

struct Count {
  int fields = 0;
  template <class T>
  void operator()(const Field&, const T&) {
    ++fields;
  }
};
template <class Struct>
int FieldCount() {
  Count count;
  const Struct value;
  VisitFields(count, value);
  return count.fields;
}

// Fails for a field that does not say what it is.
struct Described {
  template <class T>
  void operator()(const Field& field, const T& value) {
    CAPTURE(field.name);
    CHECK_FALSE(field.about.empty());
    CHECK(field.about.size() <= 80);
    CHECK_FALSE(field.about.ends_with('.'));
    if constexpr (!(std::is_enum_v<T> || HasWords<T> ||
                    std::is_arithmetic_v<T> || IsQuantity<T> ||
                    std::is_same_v<T, std::string>)) {
      VisitFields(*this, value);
    }
  }
};

Workload Start() {
  Workload workload;
  workload.architecture = FindArchitecture("bert-base-uncased");
  workload.batch = 8;
  workload.sequence_length = 128;
  workload.target_length = 64;
  workload.trainable.lora_rank = 4;
  workload.trainable.lora.query = true;
  workload.compression = {CompressionKind::kPowerSgd, 4};
  return workload;
}

nlohmann::ordered_json ToJson(const Workload& workload) {
  nlohmann::ordered_json json;
  JsonFieldWriter writer(json);
  VisitFields(writer, workload);
  return json;
}

Workload FromJson(const nlohmann::ordered_json& json) {
  Workload workload;
  JsonFieldReader reader(json, "", UnknownKeys::kRefused);
  VisitFields(reader, workload);
  reader.Finish();
  return workload;
}

TEST_CASE("every member is a field") {
  // What a rank has of a model is in no file: looks_up_tokens, expert_ranks,
  // expert_phase, embedded_layers, part.
  CHECK(FieldCount<Architecture>() == MemberCount<Architecture>() - 4);
  CHECK(FieldCount<Fp8>() == MemberCount<Fp8>());
  CHECK(FieldCount<Optimizer>() == MemberCount<Optimizer>());
  CHECK(FieldCount<GradientCompression>() ==
        MemberCount<GradientCompression>());
  CHECK(FieldCount<Parallel>() == MemberCount<Parallel>());
  CHECK(FieldCount<Stack>() == MemberCount<Stack>());
  // Rank and matrices of adapters are one field of Trainable; the stack's
  // fields stand among those of the workload.
  CHECK(FieldCount<Trainable>() == MemberCount<Trainable>() - 8);
  CHECK(FieldCount<Workload>() ==
        MemberCount<Workload>() - 2 + FieldCount<Stack>());
  // in_proj, out_proj and gate_proj stand for some of the others until the model
  // is known.
  CHECK(LoraMatrixNames().size() == MemberCount<LoraMatrices>() - 3);
}

TEST_CASE("every field says what it is") {
  Described described;
  const Workload workload;
  VisitFields(described, workload);
}

TEST_CASE("every field survives JSON and tells runs apart") {
  const Workload start = Start();
  CHECK(FromJson(ToJson(start)) == start);
  std::set<std::string> paths;
  ForEachChangedField(start,
                      [&](const std::string& path, const Workload& changed) {
                        CAPTURE(path);
                        paths.insert(path);
                        CHECK_FALSE(changed == start);
                        CHECK(FromJson(ToJson(changed)) == changed);
                        CHECK(FieldTexts(changed) != FieldTexts(start));
                        CHECK(FieldTexts(changed).count(path) == 1);
                      });
  CHECK(paths.size() == FieldTexts(start).size());
  CHECK(paths.count("model.decoder_layers") == 1);
  CHECK(paths.count("optimizer.by_layer") == 1);
  CHECK(paths.count("target_length") == 1);
}

TEST_CASE("what a file gets wrong is named by its path") {
  const auto message = [](const nlohmann::ordered_json& json) {
    try {
      FromJson(json);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  nlohmann::ordered_json json = ToJson(Start());
  CHECK(message(json).empty());
  json["model"]["heads"] = 0;
  CHECK(message(json) ==
        "model.heads: expected an integer from 1 to 16777216, got 0");
  json["model"].erase("heads");
  CHECK(message(json) == "model.heads: missing");
  json = ToJson(Start());
  json["optimizer"]["name"] = "adma";
  CHECK(message(json).find("optimizer.name: unknown optimizer \"adma\"") == 0);
  json = ToJson(Start());
  json["stac"] = "eager";
  CHECK(message(json).find("stac: unknown key; did you mean \"stack\"?") == 0);
  json = ToJson(Start());
  json["trainable"]["lora"]["matrices"] = {"query", 3};
  CHECK(message(json) == "trainable.lora.matrices: expected a text, got 3");
}

TEST_CASE("defaults that follow from other fields") {
  const Workload workload = FromJson(nlohmann::ordered_json::parse(R"({
      "model": {"family": "decoder", "layers": 2, "hidden": 64, "heads": 4,
                "vocabulary": 100, "head": "causal-language-model"},
      "batch": 1, "sequence_length": 8, "precision": "fp32", "stack": "eager",
      "optimizer": {"name": "none", "implementation": "fused"}})"));
  CHECK(workload.architecture.intermediate == 256);
  CHECK_FALSE(workload.architecture.pooler);
  CHECK(workload.work == Work::kForwardBackward);
}

}  // namespace
}  // namespace trainfare::model
