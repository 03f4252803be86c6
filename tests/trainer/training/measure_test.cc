#include "trainer/training/measure.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "model/error.h"
#include "model/presets.h"

namespace trainfare::trainer {
namespace {

std::string MessageOf(const std::string& request) {
  try {
    ParseMeasureRequest(request);
  } catch (const model::InputError& error) {
    return error.what();
  }
  return "";
}

DOCTEST_TEST_CASE("a request is read whole, the rest by default") {
  const MeasureRequest request = ParseMeasureRequest(
      R"({"model": "bert-tiny", "batch": 3, "sequence_length": 20,
          "precision": "bf16", "steps": 4, "seed": 9,
          "optimizer": {"name": "adamw", "implementation": "for_loop"}})");
  DOCTEST_CHECK(request.workload.architecture ==
                model::FindArchitecture("bert-tiny"));
  DOCTEST_CHECK(request.workload.batch == 3);
  DOCTEST_CHECK(request.workload.sequence_length == 20);
  DOCTEST_CHECK(request.workload.precision == model::Precision::kBf16);
  DOCTEST_CHECK(request.workload.optimizer.implementation ==
                model::OptimizerImplementation::kForLoop);
  DOCTEST_CHECK(request.workload.accumulation == 1);
  DOCTEST_CHECK(request.steps == 4);
  DOCTEST_CHECK(request.warmup == 2);
  DOCTEST_CHECK(request.seed == 9);
}

DOCTEST_TEST_CASE("a bad request is one line that names the key") {
  DOCTEST_CHECK(MessageOf("{") ==
                "request:1:2: expected one JSON object a line, got the end of "
                "the text; is it cut short?");
  DOCTEST_CHECK(MessageOf("[]") == "request: expected an object, got array");
  DOCTEST_CHECK(MessageOf(R"({"batch": 1})") == "model: missing");
  const auto with = [](const std::string& more) {
    return R"({"model": "bert-tiny", "batch": 1, "sequence_length": 8, )" +
           more + "}";
  };
  DOCTEST_CHECK(MessageOf(with(R"("seed": 1)")).empty());
  DOCTEST_CHECK(MessageOf(with(R"("steps": 0)")) ==
                "steps: expected an integer from 1 to 1000000000, got 0");
  DOCTEST_CHECK(MessageOf(R"({"model": "bert-tiny", "batch": 1.5,
                              "sequence_length": 8})") ==
                "batch: expected an integer from 1 to 1048576, got 1.5");
  DOCTEST_CHECK(MessageOf(with(R"("bach": 2)"))
                    .find("bach: unknown key; did you mean \"batch\"?") == 0);
  DOCTEST_CHECK(MessageOf(with(R"("stack": "fused")")).empty());
  DOCTEST_CHECK(MessageOf(with(R"("stack": "compiled")")) ==
                "stack: the trainer has eager and fused, got compiled");
  DOCTEST_CHECK(MessageOf(with(R"("stack": "lightseq")")) ==
                "stack: the trainer has eager and fused, got lightseq");
  const auto experts = [](const std::string& word) {
    return MessageOf(R"({"model": "mixtral-8x7b", "batch": 1,
                         "sequence_length": 8, "experts": ")" +
                     word + "\"}");
  };
  DOCTEST_CHECK(experts("split").empty());
  DOCTEST_CHECK(experts("grouped") ==
                "experts: the trainer has split, got grouped");
  DOCTEST_CHECK(MessageOf(with(R"("target_length": 8)")) ==
                "target_length: expected an encoder-decoder, got bert-tiny "
                "(encoder)");
  DOCTEST_CHECK(
      MessageOf(R"({"model": {"family": "encoder-decoder", "layers": 1,
                              "hidden": 8, "heads": 2, "vocabulary": 9},
                    "batch": 1, "sequence_length": 1})") ==
      "model.decoder_layers: missing");
  DOCTEST_CHECK(MessageOf(R"({"model": {"layers": 1}, "batch": 1,
                              "sequence_length": 1})") ==
                "model.hidden: missing");
  DOCTEST_CHECK(MessageOf(R"({"model": "bert-tiny", "batch": 1,
                              "sequence_length": 513})")
                    .find("sequence_length: ") == 0);
  DOCTEST_CHECK(MessageOf(with(R"("batch": 2)")) ==
                "request:1: the key \"batch\" stands twice");
}

DOCTEST_TEST_CASE("a record keeps every step, and its parts fit in the whole") {
  Measurer measurer(at::kCPU);
  const MeasureRequest request = ParseMeasureRequest(
      R"({"model": "bert-tiny", "batch": 2, "sequence_length": 16,
          "steps": 3, "warmup": 1, "seed": 4})");
  const auto record = measurer.Run(request);
  DOCTEST_REQUIRE(record.has_value());
  const auto line = nlohmann::json::parse(ToJsonLine(*record));
  DOCTEST_CHECK(line["schema"] == "trainfare.measurement/1");
  DOCTEST_CHECK(line["kind"] == "step");
  DOCTEST_CHECK(line["device"]["kind"] == "cpu");
  DOCTEST_CHECK(line["workload"]["model"]["layers"] == 2);
  DOCTEST_CHECK(line["workload"]["batch"] == 2);
  DOCTEST_CHECK(line["parameters"] ==
                model::TotalParameters(model::FindArchitecture("bert-tiny")));
  DOCTEST_CHECK(line["peak_memory_bytes"] > line["peak_allocated_bytes"]);
  DOCTEST_REQUIRE(line["samples"].size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    const auto& sample = line["samples"][i];
    DOCTEST_CHECK(sample["step"] == i);
    DOCTEST_CHECK(sample["warmup"] == (i < 1));
    const double parts = sample["forward_s"].get<double>() +
                         sample["backward_s"].get<double>() +
                         sample["optimizer_s"].get<double>();
    DOCTEST_CHECK(parts > 0);
    DOCTEST_CHECK(sample["step_s"].get<double>() >= parts);
  }
}

DOCTEST_TEST_CASE("answers do not depend on what was asked before") {
  const std::string text =
      R"({"model": "bert-tiny", "batch": 2, "sequence_length": 16, "seed": 4})";
  const auto losses = [](const StepRecord& record) {
    std::vector<double> all;
    for (const Sample& sample : record.samples)
      all.push_back(sample.times.loss);
    return all;
  };
  Measurer fresh(at::kCPU);
  const auto expected = losses(*fresh.Run(ParseMeasureRequest(text)));
  const auto again = losses(*fresh.Run(ParseMeasureRequest(text)));
  DOCTEST_CHECK(again == expected);
}

}  // namespace
}  // namespace trainfare::trainer
