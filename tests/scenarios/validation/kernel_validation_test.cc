#include "scenarios/validation/kernel_validation.h"

#include <doctest/doctest.h>

#include "calibrate/fit/predictor.h"
#include "model/error.h"
#include "scenarios/commands/validate.h"
#include "scenarios/report/json.h"
#include "scenarios/report/limits.h"
#include "tests/near.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {
namespace {

constexpr int64_t kBatch = 16;
constexpr int64_t kLength = 128;

// The step of BERT-base on an L40S, of which no fit ships, as a record.
Json Record(std::string_view operation,
            std::string_view kind,
            int64_t per_step,
            double time_s,
            Json kernel) {
  kernel.update({{"kind", kind},
                 {"special_ops", 0},
                 {"random_draws", 0},
                 {"parameter_bytes_written", 0},
                 {"launches", 1}});
  return {{"schema", "trainfare.measurement/1"},
          {"kind", "kernel"},
          {"device", {{"name", "l40s"}, {"kind", "cuda"}}},
          {"workload",
           {{"model",
             {{"name", "bert-base-uncased"},
              {"family", "encoder"},
              {"layers", 12},
              {"hidden", 768},
              {"heads", 12},
              {"intermediate", 3072},
              {"vocabulary", 30522},
              {"positions", 512},
              {"token_types", 2},
              {"head", "sequence-classification"}}},
            {"batch", kBatch},
            {"sequence_length", kLength},
            {"precision", "fp32"},
            {"optimizer", {{"name", "adamw"}, {"implementation", "fused"}}},
            {"stack", "eager"},
            {"attention", "materialised"}}},
          {"operation", operation},
          {"kernel_kind", kind},
          {"phase", "forward"},
          {"per_step", per_step},
          {"kernels", Json::array({std::move(kernel)})},
          {"samples",
           Json::array({{{"time_s", 0.9 * time_s}},
                        {{"time_s", time_s}},
                        {{"time_s", 1.3 * time_s}}})}};
}

// A feed-forward product, 12 times, and a LayerNorm, 25 times.
Json Product(double time_s) {
  return Record(
      "linear",
      "gemm",
      12,
      time_s,
      {{"matrix_flops", 2LL * 2048 * 3072 * 768},
       {"vector_flops", 0},
       {"bytes_read", 4LL * (2048 * 768 + 768 * 3072)},
       {"bytes_written", 4LL * 2048 * 3072},
       {"parameter_bytes", 4LL * 768 * 3072},
       {"work_items", 2048LL * 3072},
       {"gemm", {{"batch", 1}, {"m", 2048}, {"n", 3072}, {"k", 768}}}});
}
Json LayerNorm(double time_s) {
  return Record("layer norm",
                "reduction",
                25,
                time_s,
                {{"matrix_flops", 0},
                 {"vector_flops", 8LL * 2048 * 768},
                 {"bytes_read", 4LL * 2048 * 768},
                 {"bytes_written", 4LL * 2048 * 768},
                 {"parameter_bytes", 0},
                 {"work_items", 2048}});
}

ValidateOptions OptionsOf(const std::string& file) {
  ValidateOptions options;
  options.files = {file};
  return options;
}

std::string Lines(const std::vector<Json>& records) {
  std::string text;
  for (const Json& record : records) text += record.dump() + "\n";
  return text;
}

}  // namespace

TEST_CASE("kernels by themselves: which kind moves the step, and by how much") {
  const FitFolder folder;
  const std::string any =
      folder.Write("any.jsonl", Lines({Product(1.0), LayerNorm(1.0)}));
  REQUIRE(HoldKernels({any}));
  const Json at_one = Json::parse(Validate(OptionsOf(any)).json);
  const double product_s = at_one["rows"][0]["predicted_s"];
  const double norm_s = at_one["rows"][1]["predicted_s"];
  // fp32 of an L40S: no faster than its peak of 91.6 TFLOP/s, not ten times
  // slower either.
  const double least_s = 2.0 * 2048 * 3072 * 768 / 91.6e12;
  CHECK(product_s > least_s);
  CHECK(product_s < 10 * least_s);

  // The product is predicted right, LayerNorm at half of what it takes.
  const std::string file = folder.Write(
      "half.jsonl", Lines({Product(product_s), LayerNorm(2 * norm_s)}));
  const Report report = Validate(OptionsOf(file));
  CHECK(report.exit_code == kOk);
  const Json json = Json::parse(report.json);
  CHECK(json["of"] == "kernels");
  CHECK(std::abs(json["rows"][0]["error_percent"].get<double>()) < 1e-5);
  CHECK(json["rows"][0]["extents"] == "2048 x 3072 x 768");
  CHECK(json["rows"][1]["error_percent"].get<double>() == Near(-50.0, 1e-5));
  REQUIRE(json["groups"].size() == 2);
  CHECK(json["groups"][0]["group"] == "gemm");
  CHECK(json["groups"][1]["group"] == "reduction");
  CHECK(json["groups"][1]["measured_per_step_s"].get<double>() ==
        Near(25 * 2 * norm_s, 1e-5));
  CHECK(json["groups"][1]["predicted_per_step_s"].get<double>() ==
        Near(25 * norm_s, 1e-5));
  const double step_s = 12 * product_s + 50 * norm_s;
  CHECK(json["overall"]["measured_per_step_s"].get<double>() ==
        Near(step_s, 1e-5));
  CHECK_FALSE(json["overall"].contains("coverage"));
  // The table of kinds: what LayerNorm's miss takes off the step.
  const Table& kinds = report.tables.at(1);
  REQUIRE(kinds.rows.size() == 3);
  CHECK(kinds.rows[1][0].text == "reduction");
  CHECK(std::stod(kinds.rows[1][6].raw) ==
        Near(-100.0 * 25 * norm_s / step_s, 1e-5));
}

TEST_CASE("limits and protocols of kernels") {
  const FitFolder folder;
  const std::string file = folder.Write("k.jsonl", Lines({Product(1.0)}));
  ValidateOptions options = OptionsOf(file);
  Report report = Validate(options);
  // A kernel by itself has no interval to cover it.
  CHECK_THROWS_AS(CheckLimits({LimitFromText("coverage<50%")}, report),
                  UsageError);
  CheckLimits({LimitFromText("median>5%")}, report);
  CHECK(report.exit_code == kLimitPassed);
  // One kernel leaves nothing to fit to.
  options.protocol = Protocol::kLeaveOneOut;
  CHECK_THROWS_AS(Validate(options), model::InputError);
  options.protocol = Protocol::kRunsPerDevice;
  CHECK_THROWS_AS(Validate(options), UsageError);
}

TEST_CASE("each kernel is predicted by a fit to the others") {
  const FitFolder folder;
  const std::string any =
      folder.Write("any.jsonl", Lines({Product(1.0), LayerNorm(1.0)}));
  const Json at_prior = Json::parse(Validate(OptionsOf(any)).json);
  const double product_s = at_prior["rows"][0]["predicted_s"];
  // Products that take 1.3 times what the priors say, and one that does not.
  std::vector<Json> records(5, Product(1.3 * product_s));
  records.push_back(Product(2.6 * product_s));
  const std::string file = folder.Write("k.jsonl", Lines(records));
  ValidateOptions options = OptionsOf(file);
  options.protocol = Protocol::kLeaveOneOut;
  const Json left_out = Json::parse(Validate(options).json);
  REQUIRE(left_out["rows"].size() == 6);
  // The odd one out is not known to the fit that predicts it.
  CHECK(left_out["rows"][5]["predicted_s"].get<double>() ==
        Near(1.3 * product_s, 0.1));
  CHECK(left_out["overall"]["median"].get<double>() < 10);
  options.protocol = Protocol::kInSample;
  const Json inside = Json::parse(Validate(options).json);
  CHECK(inside["rows"][5]["predicted_s"].get<double>() >
        left_out["rows"][5]["predicted_s"].get<double>());
}

TEST_CASE("kernels on a device that runs whole graphs are refused") {
  const FitFolder folder;
  Json record = LayerNorm(1e-3);
  record["device"]["name"] = "tpu_v3";
  record["workload"]["precision"] = "bf16";
  const std::string file = folder.Write("k.jsonl", Lines({record}));
  CHECK_THROWS_AS(Validate(OptionsOf(file)), model::InputError);
}

TEST_CASE("a record of a kernel that says too little is refused by line") {
  const FitFolder folder;
  const auto message = [&](const Json& record) {
    const std::string file = folder.Write("k.jsonl", Lines({record}));
    try {
      HoldKernels({file});
    } catch (const model::InputError& error) {
      const std::string text = error.what();
      return text.substr(text.find("k.jsonl"));
    }
    return std::string();
  };
  Json record = Product(1.0);
  record["kernels"][0].erase("gemm");
  CHECK(message(record) == "k.jsonl:1: kernels[0].gemm: missing");
  record = Product(1.0);
  record["kernels"][0]["bytes_read"] = -4;
  CHECK(message(record) ==
        "k.jsonl:1: kernels[0].bytes_read: expected an integer from 0 to "
        "1000000000000000000, got -4");
  record = Product(1.0);
  record["samples"] = Json::array();
  CHECK(message(record) ==
        "k.jsonl:1: samples: expected a list that is not empty");
  record = Product(1.0);
  record["kernel_kind"] = "gem";
  CHECK(message(record).find("k.jsonl:1: kernel_kind: unknown kind of kernel "
                             "\"gem\"") == 0);
}

}  // namespace trainfare::scenarios
