#include "scenarios/commands/measured_step.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "hardware/catalog/device.h"
#include "model/error.h"
#include "model/validate.h"
#include "scenarios/commands/predict.h"
#include "scenarios/commands/setting_changes.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/fits.h"
#include "scenarios/report/json.h"
#include "tests/near.h"
#include "tests/scenarios/commands/predicted.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {
namespace {

PredictOptions LlamaOnHost() {
  PredictOptions options;
  options.scenario = "llama_8b_fsdp";
  options.instances = {"aws/p5.48xlarge"};
  return options;
}

Json OnlyPrediction(const PredictOptions& options) {
  return Json::parse(Predict(options).json).at("predictions").at(0);
}

double StepOfPrediction(const PredictOptions& options) {
  return OnlyPrediction(options).at("step_time_s").get<double>();
}

Json MeasuredOf(PredictOptions options, const std::string& measured) {
  options.measured = measured;
  return OnlyPrediction(options).at("measured");
}

std::string RefusalOfMeasured(const std::string& text) {
  try {
    ParseMeasured(text);
  } catch (const model::InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a measured step is a time, a rate or a share of the peak") {
  CHECK(ParseMeasured("1.5s").value == Near(1.5, 1e-5));
  CHECK(ParseMeasured("650 ms").value == Near(0.65, 1e-5));
  const Measured tokens = ParseMeasured("3200tokens/s");
  CHECK(tokens.as == MeasuredAs::kTokens);
  CHECK_FALSE(tokens.of_device);
  const Measured samples = ParseMeasured("12.5 samples/s/device");
  CHECK(samples.as == MeasuredAs::kSamples);
  CHECK(samples.value == Near(12.5, 1e-5));
  CHECK(samples.of_device);
  CHECK(ParseMeasured("38%").value == Near(0.38, 1e-5));
  CHECK(RefusalOfMeasured("3200").find("; a number needs its unit") !=
        std::string::npos);
  for (const char* nonsense : {"",
                               "fast",
                               "0s",
                               "-1s",
                               "nan%",
                               "0tokens/s",
                               "104%",
                               "1s/device",
                               "38%/device"}) {
    CAPTURE(nonsense);
    CHECK(RefusalOfMeasured(nonsense).starts_with("--measured: expected "));
  }
}

TEST_CASE("a step as predicted is inside, however it was measured") {
  const FitFolder none;
  const PredictOptions options = LlamaOnHost();
  const Json predicted = OnlyPrediction(options);
  const auto number = [&](const char* key) {
    return predicted.at(key).get<double>();
  };
  const double devices = 8;
  for (const std::string& measured :
       {fmt::format("{}s", number("step_time_s")),
        fmt::format("{}tokens/s", number("tokens_per_s")),
        fmt::format("{}samples/s/device", number("samples_per_s") / devices),
        fmt::format("{}%", 100.0 * number("mfu"))}) {
    CAPTURE(measured);
    const Json answer = MeasuredOf(options, measured);
    CHECK(answer.at("ratio").get<double>() == Near(1.0, 1e-5));
    CHECK(answer.at("inside_80").get<bool>());
    CHECK(answer.at("inside_95").get<bool>());
    CHECK(answer.at("would_be").empty());
  }
}

TEST_CASE("what would make a slow step so is predicted with that setting") {
  const FitFolder none;
  const PredictOptions options = LlamaOnHost();
  for (const char* setting : {"attention=materialised", "precision=tf32"}) {
    CAPTURE(setting);
    PredictOptions slower = options;
    slower.overrides.settings = {setting};
    const double step = StepOfPrediction(slower);
    const Json answer = MeasuredOf(options, fmt::format("{}s", step));
    CHECK_FALSE(answer.at("inside_80").get<bool>());
    const Json& would_be = answer.at("would_be");
    const std::string said = std::string(setting) == "precision=tf32"
                                 ? "--precision tf32"
                                 : fmt::format("--set {}", setting);
    const auto found =
        std::find_if(would_be.begin(), would_be.end(), [&](const Json& other) {
          return other.at("settings").get<std::string>() == said;
        });
    REQUIRE(found != would_be.end());
    CHECK(found->at("ratio").get<double>() == Near(1.0, 1e-5));
  }
}

TEST_CASE("what would make a fast step so is tried, too") {
  const FitFolder none;
  PredictOptions options = LlamaOnHost();
  options.overrides.settings = {"stack=eager", "attention=materialised"};
  PredictOptions faster = options;
  faster.overrides.settings = {"stack=eager", "attention=flash"};
  const Json answer =
      MeasuredOf(options, fmt::format("{}s", StepOfPrediction(faster)));
  CHECK(answer.at("ratio").get<double>() < 1.0);
  const Json& would_be = answer.at("would_be");
  REQUIRE(!would_be.empty());
  CHECK(would_be.at(0).at("settings").get<std::string>() ==
        "--set attention=flash");
}

TEST_CASE("a slower network is tried where hosts are joined") {
  const FitFolder none;
  PredictOptions options = LlamaOnHost();
  options.hosts = 2;
  options.network = "100Gbit/s";
  options.overrides.settings = {"parallel.data=16"};
  PredictOptions slower = options;
  slower.network = "25Gbit/s";
  const Json answer =
      MeasuredOf(options, fmt::format("{}s", StepOfPrediction(slower)));
  const Json& would_be = answer.at("would_be");
  const bool named =
      std::any_of(would_be.begin(), would_be.end(), [](const Json& other) {
        return other.at("settings")
            .get<std::string>()
            .starts_with("--network ");
      });
  CHECK(named);
}

TEST_CASE("what is farther off than any one setting is said to be so") {
  const FitFolder none;
  PredictOptions options = LlamaOnHost();
  options.measured = "1h";
  const Report report = Predict(options);
  CHECK(std::any_of(report.headline.begin(),
                    report.headline.end(),
                    [](const std::string& line) {
                      return line.find("no one setting that was tried") !=
                             std::string::npos;
                    }));
  options.measured = "1s";
  options.overrides.batches = {1, 2};
  CHECK_THROWS_AS(Predict(options), UsageError);
}

TEST_CASE("a step above the device's peak is refused") {
  const FitFolder none;
  const PredictOptions options = LlamaOnHost();
  CHECK_THROWS_AS(MeasuredOf(options, "1ms"), model::InputError);
  const Json predicted = OnlyPrediction(options);
  const double least = predicted.at("step_time_s").get<double>() *
                       predicted.at("mfu_causal").get<double>();
  CHECK_THROWS_AS(MeasuredOf(options, fmt::format("{}s", 0.99 * least)),
                  model::InputError);
  CHECK(MeasuredOf(options, fmt::format("{}s", 1.01 * least))
            .at("ratio")
            .get<double>() < 1.0);
}

namespace {

// What the flags of a setting change in a question: "--set a=1 --batch 2 (..)".
PredictOptions Asking(PredictOptions options, const std::string& flags) {
  const auto value = [&](std::string_view flag) -> std::string {
    size_t at = flags.find(flag);
    if (at == std::string::npos) return "";
    at += flag.size();
    const bool quoted = flags[at] == '\'';
    at += quoted ? 1 : 0;
    return flags.substr(at, flags.find(quoted ? '\'' : ' ', at) - at);
  };
  if (const auto set = value("--set "); !set.empty()) {
    options.overrides.settings.push_back(set);
  }
  if (const auto batch = value("--batch "); !batch.empty()) {
    options.overrides.batches = {std::stoll(batch)};
  }
  if (const auto word = value("--precision "); !word.empty()) {
    options.overrides.precisions = {word};
  }
  return options;
}

// Each setting that may be suggested of a job can be asked for, and is the job
// that was timed.
void CheckEverySetting(PredictOptions options) {
  options.overrides.settings.emplace_back("run.start_up=0 s");
  const Scenario scenario = LoadJob(options.scenario, options.overrides);
  const hardware::Device& device =
      hardware::DeviceCatalog::Shipped().Find(options.device.front());
  Fits fits;
  fits.Of(device);
  const calibrate::Predictor predictor = fits.PredictorOf(device);
  const Cluster cluster = ClusterOf(predictor, options.devices.value_or(1));
  const JobEstimate job = EstimateJob(scenario, predictor, cluster);
  const TimedJob asked{device, cluster.devices, job};
  for (const auto settings :
       {FasterSettings(), LargerSteps(), SlowerSettings()}) {
    for (const SettingChange setting : settings) {
      Scenario changed = scenario;
      const std::string flags = setting(asked, changed);
      CAPTURE(flags);
      if (!flags.starts_with("--")) continue;
      JobEstimate then;
      try {
        model::Validate(changed.workload);
        then = EstimateJob(changed, predictor, cluster);
      } catch (const model::InputError&) {
        continue;  // not of this model or device: nobody is told
      }
      if (!then.fits()) continue;
      const double said =
          OnlyPrediction(Asking(options, flags)).at("run_time_s");
      CHECK(said == Near(ToSeconds(then.run.total())));
    }
  }
}

}  // namespace

TEST_CASE("each setting that is suggested is the job that it is timed as") {
  const FitFolder none;
  PredictOptions options;
  options.scenario = "emotion_bert_base";
  options.device = {"a10g"};
  CheckEverySetting(options);
  options.overrides.settings = {"padding=dynamic"};
  CheckEverySetting(options);
  options.scenario = "llama_8b_lora";
  options.device = {"h100_sxm"};
  options.devices = 2;
  options.overrides.settings.clear();
  CheckEverySetting(options);
}

}  // namespace trainfare::scenarios
