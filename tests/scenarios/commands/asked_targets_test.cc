#include "scenarios/commands/asked_targets.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/fit_file.h"
#include "calibrate/fit/predictor.h"
#include "model/error.h"
#include "scenarios/commands/predict.h"
#include "scenarios/commands/recommend.h"
#include "scenarios/report/json.h"
#include "tests/near.h"
#include "tests/scenarios/commands/predicted.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {

TEST_CASE("an instance brings its device, its count and its price") {
  const FitFolder none;
  PredictOptions options;
  options.scenario = "emotion_bert_base";
  options.instances = {"aws/g5.12xlarge"};
  const Json json = Json::parse(Predict(options).json);
  CHECK(json.at("device") == "a10g");
  const Json& p = json.at("predictions")[0];
  CHECK(p.at("devices") == 4);
  const double hours =
      std::max(60.0, std::ceil(p.at("run_time_s").get<double>())) / 3600.0;
  CHECK(p.at("cost_usd").get<double>() ==
        Near(hours * json.at("price").at("price_usd_per_hour").get<double>()));
}

TEST_CASE("several hosts are several instances, by their network") {
  const FitFolder none;
  PredictOptions options;
  options.scenario = "llama_8b_fsdp";
  options.instances = {"aws/p5.48xlarge"};
  const Json one = Json::parse(Predict(options).json);
  CHECK(one.at("hosts") == 1);
  options.overrides.settings = {"parallel.data=16"};
  // As many hosts as have the ranks.
  const Report two_report = Predict(options);
  const Json two = Json::parse(two_report.json);
  CHECK(two.at("hosts") == 2);
  CHECK(two.at("predictions")[0].at("devices") == 16);
  CHECK(two_report.headline[0].find("of 2 x aws/p5.48xlarge") !=
        std::string::npos);
  CHECK(two.at("price").at("price_usd_per_hour").get<double>() ==
        Near(2 * one.at("price").at("price_usd_per_hour").get<double>(), 1e-5));
  options.network = "100 Gbit/s";
  const Json slow = Json::parse(Predict(options).json);
  CHECK(slow.at("predictions")[0].at("step_time_s") >
        two.at("predictions")[0].at("step_time_s"));
  options.network = "fast";
  CHECK_THROWS_AS(Predict(options), model::InputError);
  options.network.reset();
  options.hosts = 3;
  CHECK_THROWS_WITH_AS(Predict(options),
                       "--hosts: expected a divisor of the 16 devices, got 3; "
                       "hint: --devices 18",
                       model::InputError);
  options.hosts = 0;
  CHECK_THROWS_AS(Predict(options), model::InputError);
  options.hosts = 1;
  options.network = "100 Gbit/s";
  CHECK_THROWS_AS(Predict(options), UsageError);
}

TEST_CASE("each host of a slice is paid for, and has memory of its own") {
  const FitFolder none;
  PredictOptions options;
  options.scenario = "llama_8b_fsdp";
  options.instances = {"gcp/tpu-v6e-8"};
  options.devices = 8;
  const Json one = Json::parse(Predict(options).json);
  options.devices = 32;
  options.hosts = 4;
  options.overrides.settings = {"parallel.data=0"};
  const Report report = Predict(options);
  const Json four = Json::parse(report.json);
  CHECK(four.at("hosts") == 4);
  CHECK(report.headline[0].find("of 4 x gcp/tpu-v6e-8") != std::string::npos);
  CHECK(four.at("price").at("price_usd_per_hour").get<double>() ==
        Near(4 * one.at("price").at("price_usd_per_hour").get<double>(), 1e-5));
  // What joins them is no network.
  CHECK_FALSE(HasNote(report, "hosts over"));

  RecommendOptions among;
  among.scenario = options.scenario;
  among.instances = options.instances;
  among.overrides.settings = options.overrides.settings;
  among.hosts = 4;
  const Json choice = Json::parse(Recommend(among).json);
  int among_four = 0;
  for (const Json& candidate : choice.at("candidates")) {
    if (candidate.at("hosts") != 4) continue;
    ++among_four;
    CHECK(
        candidate.at("cost_usd").get<double>() ==
        Near(four.at("predictions").at(0).at("cost_usd").get<double>(), 1e-5));
  }
  CHECK(among_four == 1);
}

TEST_CASE("a part of what an instance has may be asked about") {
  const FitFolder none;
  PredictOptions options = On("trainium1_core");
  options.instances = {"aws/trn1.2xlarge"};
  options.devices = 1;
  const Json core = Json::parse(Predict(options).json);
  CHECK(core.at("device") == "trainium1_core");
  CHECK(core.at("instance") == "aws/trn1.2xlarge");
  // The whole instance is paid for.
  CHECK_FALSE(core.at("predictions")[0].at("cost_usd").is_null());
  options.devices.reset();
  const Json both = Json::parse(Predict(options).json);
  CHECK(both.at("predictions")[0].at("devices") == 2);
  options.devices = 3;
  CHECK_THROWS_WITH_AS(Predict(options),
                       "--devices: expected at most 2, the trainium1_core of "
                       "aws/trn1.2xlarge, got 3",
                       model::InputError);
  options.devices = 1;
  options.device = {"t4"};
  CHECK_THROWS_WITH_AS(Predict(options),
                       "--device and --instance: give one of them; t4 is no "
                       "part of the trainium1 that aws/trn1.2xlarge has",
                       UsageError);
}

TEST_CASE("a family's name is its usual form, with a note") {
  const FitFolder none;
  const Report bare = Predict(On("H100"));
  CHECK(bare.headline.front().find("on h100_sxm") != std::string::npos);
  CHECK(HasNote(bare, "H100 is taken as h100_sxm; others: h100_nvl"));
  CHECK_FALSE(HasNote(Predict(On("h100_sxm")), "is taken as"));
  CHECK(HasNote(Predict(On("A100")), "A100 is taken as a100_sxm4_40gb"));
  PredictOptions largest = On("A100");
  largest.largest = "batch";
  CHECK(HasNote(Predict(largest), "A100 is taken as a100_sxm4_40gb"));
}

TEST_CASE("instances and slices in the place of a device are told apart") {
  const FitFolder none;
  const auto refusal = [](const char* name) -> std::string {
    try {
      Predict(On(name));
    } catch (const model::InputError& error) {
      return error.what();
    }
    return "";
  };
  const auto slice = [&](const char* name, const char* rest) {
    CHECK(refusal(name) ==
          fmt::format(
              "--device: unknown device \"{}\"; a slice of {}", name, rest));
  };
  slice("TPU v3-8", "4 chips; hint: --device tpu_v3 --devices 4");
  slice("v4-8", "4 chips; hint: --device tpu_v4 --devices 4");
  slice("v4-64", "32 chips; hint: --device tpu_v4 --devices 32");
  slice("v5litepod-8", "8 chips; hint: --device tpu_v5e --devices 8");
  slice("v5e-1", "1 chip; hint: --device tpu_v5e --devices 1");
  slice("v5p-8", "4 chips; hint: --device tpu_v5p --devices 4");
  slice("tpu-v6e-8", "8 chips; hint: --device tpu_v6e --devices 8");
  CHECK(refusal("-8").find("slice") == std::string::npos);
  CHECK(refusal("trn1") ==
        "--device: unknown device \"trn1\"; a family of instances; hint: "
        "--instance aws/trn1.2xlarge, or --device trainium1");
  CHECK(refusal("trn1.32xlarge") ==
        "--device: unknown device \"trn1.32xlarge\"; an instance; hint: "
        "--instance aws/trn1.32xlarge, or --device trainium1 --devices 16");
}

TEST_CASE("the user's fit is found, and one of another device refused") {
  const FitFolder folder;
  const hardware::Device& device =
      hardware::DeviceCatalog::Shipped().Find("a100_sxm4_80gb");
  calibrate::Observation run;
  run.label = "one";
  run.device = {device.name};
  run.workload = LoadScenario("emotion_bert_base").workload;
  const calibrate::Predictor datasheet(device);
  // Twice as slow as the datasheet says.
  run.measured = datasheet.Predict(run.workload).time.total() * 2.0;
  std::filesystem::create_directories(folder.Path("fits"));
  const std::string path = folder.Path("fits/a100_sxm4_80gb.yaml");
  calibrate::SaveFit(calibrate::FitDevice(device, {run}), path);

  const auto step = [](const PredictOptions& options) {
    return Json::parse(Predict(options).json)
        .at("predictions")[0]
        .at("step_time_s")
        .get<double>();
  };
  const double slow = step(On("a100_sxm4_80gb"));
  CHECK(slow > 1.3 * ToSeconds(run.measured) / 2.0);
  PredictOptions options;
  options.scenario = "emotion_bert_base";
  options.fit = path;  // and so its device
  CHECK(step(options) == slow);
  options.device = {"h100_sxm"};
  CHECK_THROWS_AS(Predict(options), model::InputError);
}

TEST_CASE("a fit that cannot be read is left out and named, in nobody's way") {
  const FitFolder folder;
  folder.Write("fits/h100_pcie.yaml", "device: h100_pcie\nkind: nonsense\n");
  CHECK_NOTHROW(Predict(On("l4")));
  const Report report = Predict(On("h100_pcie"));
  CHECK(Json::parse(report.json).at("fit") != "h100_pcie.yaml");
  REQUIRE_FALSE(report.warnings.empty());
  CHECK(report.warnings.front().text.find("h100_pcie.yaml:2:") !=
        std::string::npos);
  CHECK(report.warnings.front().text.find("this fit is left out") !=
        std::string::npos);
}

}  // namespace trainfare::scenarios
