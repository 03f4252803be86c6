// From end to end, with a trainer that only pretends.

#include "calibrate/session/command.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "calibrate/fit/fit_file.h"
#include "calibrate/fit/fit_json.h"
#include "calibrate/fit/fit_options.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/records/measurement.h"
#include "hardware/catalog/device.h"
#include "hardware/models/device_models.h"
#include "hardware/models/gpu/parameters.h"
#include "model/error.h"
#include "model/units.h"
#include "model/workload.h"
#include "tests/calibrate/session/fake_trainer.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

using model::InputError;

TEST_CASE("runs become records, a fit file and a prediction" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("");
  std::ostringstream log;
  const CalibrateResult result = Calibrate(fake.Options(), log);
  REQUIRE(result.fit.has_value());
  CHECK(!result.interrupted);
  CHECK(result.fit_path == fake / "fits/here.yaml");
  CHECK(result.records_path == fake / "fits/here.jsonl");
  CHECK(!fs::exists(fake / "fits/here.partial.jsonl"));
  CHECK(result.fit->provenance.software == "trainer fake");
  CHECK(result.fit->provenance.runs == LinesOf(result.records_path));
  CHECK(result.fit->provenance.runs > 3);
  CHECK(log.str().find("calibrate: run 1: bert-tiny fp32, batch ") !=
        std::string::npos);

  const Fit read = LoadFit(result.fit_path);
  CHECK(read.name == "here");
  CHECK(read.Values() == result.fit->Values());
  const Predictor predictor(hardware::DeviceCatalog::Shipped().Find("cpu"),
                            read);
  CHECK(predictor.fit().device == "cpu");

  const std::string json = FitJson(*result.fit);
  CHECK(json.find("\"device\": \"cpu\"") != std::string::npos);
  CHECK(json.find("\"name\": \"narrow_gemm_ratio\"") != std::string::npos);

  // The records give the same fit again.
  CalibrateOptions again;
  again.from = {result.records_path};
  again.output = fake / "again.yaml";
  const CalibrateResult refit = Calibrate(again, log);
  REQUIRE(refit.fit.has_value());
  CHECK(refit.fit->Values() == result.fit->Values());
  CHECK(refit.fit->provenance.source == "here.jsonl");
}

TEST_CASE("what cannot start says why before anything is run" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("");
  std::ostringstream log;
  CalibrateOptions options = fake.Options();
  options.budget = model::Second(0.0);
  CHECK_THROWS_WITH_AS(Calibrate(options, log),
                       "budget: expected a time above 0, got 0 s",
                       InputError);
  options = fake.Options();
  options.device = "t4";
  CHECK_THROWS_WITH_AS(
      Calibrate(options, log),
      "device: t4 is not here, the trainer finds the processor alone; measure "
      "there, then: calibrate --from FILE --device t4",
      InputError);
  options = fake.Options();
  options.precisions = {model::Precision::kTf32};
  CHECK_THROWS_AS(Calibrate(options, log), InputError);
  options = fake.Options();
  options.output = fake / "fake-trainer/fit.yaml";  // a file in the way
  CHECK_THROWS_WITH_AS(Calibrate(options, log),
                       ((fake / "fake-trainer/fit.yaml") +
                        ": cannot be written: Not a directory")
                           .c_str(),
                       InputError);
  ::setenv("TRAINFARE_TRAINER", "/nowhere/trainer", 1);
  CHECK_THROWS_WITH_AS(
      Calibrate(fake.Options(), log),
      "TRAINFARE_TRAINER: expected a program, got \"/nowhere/trainer\"",
      InputError);
}

TEST_CASE("a fit to records of kernels alone") {
  const FakeTrainer fake("");
  // An L40S that streams at half of its 864 GB/s.
  const std::string records = fake / "kernels.jsonl";
  std::ofstream file(records);
  for (const int64_t bytes : {400'000'000,
                              800'000'000,
                              1'000'000'000,
                              1'200'000'000,
                              1'600'000'000,
                              2'000'000'000}) {
    file << fmt::format(
        R"({{"schema": "trainfare.measurement/1", "kind": "kernel", )"
        R"("id": "k{0}", "device": {{"name": "l40s", "kind": "cuda"}}, )"
        R"("workload": {{"model": {{"name": "bert-tiny", "family": "encoder", )"
        R"("layers": 2, "hidden": 128, "heads": 2, "intermediate": 512, )"
        R"("vocabulary": 30522, "positions": 512, "token_types": 2, )"
        R"("head": "sequence-classification"}}, "batch": 8, )"
        R"("sequence_length": 64, "precision": "fp32", "optimizer": )"
        R"({{"name": "adamw", "implementation": "fused"}}, "stack": "eager", )"
        R"("attention": "materialised"}}, "operation": "scale", )"
        R"("kernel_kind": "elementwise", "phase": "forward", "per_step": 1, )"
        R"("disturbed": {1}, "kernels": [{{"kind": "elementwise", )"
        R"("matrix_flops": 0, "vector_flops": 0, "special_ops": 0, )"
        R"("random_draws": 0, "bytes_read": {0}, "bytes_written": {0}, )"
        R"("parameter_bytes": 0, "parameter_bytes_written": 0, )"
        R"("work_items": {2}, "launches": 1}}], )"
        R"("samples": [{{"time_s": {3}}}]}})"
        "\n",
        bytes,
        bytes == 400'000'000,
        bytes / 4,
        2.0 * static_cast<double>(bytes) / 432e9);
  }
  file.close();
  CalibrateOptions options;
  options.from = {records};
  options.output = fake / "l40s.yaml";
  std::ostringstream log;
  const CalibrateResult result = Calibrate(options, log);
  CHECK(log.str().find("1 of 6 kernels were disturbed") != std::string::npos);
  REQUIRE(result.fit.has_value());
  const Fit read = LoadFit(options.output);
  for (const Fit* fit : {&*result.fit, &read}) {
    CHECK(fit->device == "l40s");
    CHECK(fit->provenance.kernels == 6);
    CHECK(fit->provenance.runs == 0);
    CHECK(fit->kernel_in_sample_error == result.fit->kernel_in_sample_error);
    CHECK(fit->kernel_leave_one_out_error > 0);
    REQUIRE(fit->runs.size() == 6);
    CHECK(fit->runs[1].label == "k800000000");
    CHECK(fit->runs[1].quantity == Quantity::kKernel);
    CHECK(fit->runs[1].modelled / fit->runs[1].measured > 0.7);
    CHECK(fit->runs[1].modelled / fit->runs[1].measured < 1.05);
    // The prior and the five kernels that nothing disturbed meet between them,
    // as sure as they are; the other adds to that.
    constexpr size_t kRate = hardware::models::kGpuBandwidthEfficiency;
    const FittedParameter& rate = fit->parameters[kRate];
    REQUIRE(rate.determined);
    const double needed =
        rate.value * (fit->runs[1].modelled / fit->runs[1].measured);
    const double moved =
        std::log(rate.value / rate.prior) / std::log(needed / rate.prior);
    const double sigmas =
        FitOptions().kernel_sigma /
        hardware::ParametersOf(hardware::DeviceKind::kGpu)[kRate].prior_sigma;
    CHECK(moved > 1.0 / (1.0 + sigmas * sigmas / 5.0));
    CHECK(moved < 1.0);
  }
}

TEST_CASE("measurements that no fit takes say what would do") {
  const FakeTrainer fake("");
  const std::string table = fake / "t.csv";
  const auto message =
      [&](const std::string& row) {
        std::ofstream(table)
            << "device,model,seq_len,batch_per_device,precision,metric,value\n"
            << row << "\n";
        CalibrateOptions options;
        options.from = {table};
        options.output = fake / "x.yaml";
        std::ostringstream log;
        try {
          Calibrate(options, log);
        } catch (const InputError& error) {
          return std::string(error.what());
        }
        return std::string("no error");
      };
  CHECK(message("V100S 33GB,bert-base,128,8,fp16,step_ms,100") ==
        "the measurements are of \"V100S 33GB\", which no device file names; "
        "write a name of `trainfare list devices` in its place");
  CHECK(message("T4-16GB,bert-base,128,8,fp16,peak_memory_gib,3") ==
        "expected measurements of steps, operations or engines, got none: 1 "
        "row of memory, which no fit takes");
}

TEST_CASE("measurements of several devices ask for one") {
  const FakeTrainer fake("");
  const std::string table = fake / "t.csv";
  std::ofstream(table)
      << "device,model,seq_len,batch_per_device,precision,metric,value\n"
         "T4-16GB,bert-base,128,8,fp16,step_ms,100\n"
         "T4-16GB,bert-base,128,16,fp16,step_ms,190\n"
         "V100-SXM2-16GB,bert-base,128,8,fp16,step_ms,40\n";
  CalibrateOptions options;
  options.from = {table};
  options.output = fake / "t4.yaml";
  std::ostringstream log;
  CHECK_THROWS_WITH_AS(Calibrate(options, log),
                       "the measurements are of several devices; choose one "
                       "with --device: t4, v100_sxm2_16gb",
                       InputError);
  options.device = "t4";
  const CalibrateResult result = Calibrate(options, log);
  REQUIRE(result.fit.has_value());
  CHECK(result.fit->device == "t4");
  CHECK(result.fit->provenance.observations == 2);
  CHECK(LoadFit(options.output).kind == hardware::DeviceKind::kGpu);
}

TEST_CASE("GPUs that the trainer finds are what is calibrated, all of them" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("");
  FakeTrainer::Gpus("2", "NVIDIA A100-SXM4-80GB");
  CalibrateOptions options = fake.Options();
  options.models = {"bert-base-uncased"};
  std::ostringstream log;
  const CalibrateResult result = Calibrate(options, log);
  REQUIRE(result.fit.has_value());
  CHECK(result.fit->device == "a100_sxm4_80gb");
  const Measurements all = ReadMeasurements(result.records_path);
  for (const MeasuredRun& run : all.runs) {
    CHECK(run.device_kind == "cuda");
    // Half precision is bf16 where there is a choice.
    CHECK(run.workload.precision != model::Precision::kFp16);
  }
  REQUIRE(result.fit->ranks.size() == 1);
  const RankFit& two = result.fit->ranks.front();
  CHECK(two.backend == "nccl");
  CHECK(two.ranks_per_device == 1);
  CHECK(two.share_prior == 1.0);
  CHECK_FALSE(two.network.beside_timed);
}

}  // namespace
}  // namespace trainfare::calibrate
