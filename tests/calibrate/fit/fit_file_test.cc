// Fits as files (calibrate/fit/fit_file.cc).

#include "calibrate/fit/fit_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_folders.h"
#include "calibrate/fit/fit_json.h"
#include "calibrate/fit/prior_fit.h"
#include "calibrate/fit/step_model.h"
#include "hardware/files/data_directory.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/presets.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

using model::InputError;

// A folder of its own, gone at the end.
class Folder {
 public:
  Folder()
      : path_(fs::temp_directory_path() /
              ("trainfare_fit_test_" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string operator/(const char* name) const {
    return (path_ / name).string();
  }

 private:
  fs::path path_;
};

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

hardware::Device SmallDevice() {
  hardware::Device device = hardware::HostCpu();
  device.reported_name = "Example \"9000\" \\ 2";
  return device;
}

std::vector<Observation> SmallRuns() {
  const hardware::Device device = SmallDevice();
  std::vector<Observation> observations;
  const Fit prior = PriorFit(device);
  for (const int64_t batch : {1, 16}) {
    model::Workload workload;
    workload.architecture = model::FindArchitecture("bert-tiny");
    workload.batch = batch;
    workload.sequence_length = 64;
    Observation observation;
    observation.label = "run: " + std::to_string(batch);
    observation.device = "cpu";
    observation.workload = workload;
    observation.measured =
        StepModel(device, workload).Time(prior.Values()).total() * 1.1;
    observations.push_back(observation);
  }
  return observations;
}

Fit SmallFit() {
  Fit fit = FitDevice(SmallDevice(), SmallRuns());
  fit.provenance.source = "trainer";
  fit.provenance.host = "Linux 6.1, 2 cores\ttab";
  fit.provenance.software = "libtorch 2.11.0";
  fit.provenance.date = "2026-11-20T12:00:00Z";
  return fit;
}

TEST_CASE("a fit file reads back as it was, byte for byte") {
  const Folder folder;
  Fit fit = SmallFit();
  CHECK(fit.runs[0].devices == 1);
  fit.runs[0].devices.reset();
  fit.runs[1].devices = 16;
  fit.runs[1].hosts = 2;
  fit.runs[1].assumed = true;
  const std::string path = folder / "example.yaml";
  SaveFit(fit, path);
  const Fit read = LoadFit(path);
  CHECK_FALSE(read.runs[0].devices.has_value());
  CHECK(read.runs[0].hosts == 1);
  CHECK(read.runs[1].devices == 16);
  CHECK(read.runs[1].hosts == 2);
  CHECK_FALSE(read.runs[0].assumed);
  CHECK(read.runs[1].assumed);
  CHECK(read.name == "example");
  CHECK(read.device == "cpu");
  CHECK(read.reported_name == fit.reported_name);
  CHECK(read.Values() == fit.Values());
  CHECK(read.covariance == fit.covariance);
  CHECK(read.residual_scatter == fit.residual_scatter);
  CHECK(read.degrees_of_freedom == fit.degrees_of_freedom);
  CHECK(read.provenance.host == fit.provenance.host);
  CHECK(fit.provenance.sources ==
        std::vector<std::string>{"trainfare-trainer"});
  CHECK(read.provenance.sources == fit.provenance.sources);
  CHECK(read.range.max_tokens == 1024);
  CHECK(read.range.settings == fit.range.settings);
  REQUIRE(read.runs.size() == 2);
  CHECK(read.runs[1].label == "run: 16");
  CHECK(read.runs[1].measured == fit.runs[1].measured);
  CHECK(read.runs[1].left_out == fit.runs[1].left_out);
  REQUIRE(read.measured_device.has_value());
  CHECK(read.measured_device->memory_bandwidth ==
        fit.measured_device->memory_bandwidth);
  CHECK(read.measured_device->peak.fp32 == fit.measured_device->peak.fp32);
  CHECK(read.measured_device->name == "cpu");
  CHECK(read.measured_device->vendor == fit.measured_device->vendor);
  CHECK(read.measured_device->cores == fit.measured_device->cores);
  CHECK(read.measured_device->clock == fit.measured_device->clock);

  const std::string again = folder / "again.yaml";
  SaveFit(read, again);
  CHECK((Contents(again) == Contents(path)));
  // Nothing is left beside it.
  CHECK(std::distance(fs::directory_iterator(fs::path(path).parent_path()),
                      fs::directory_iterator()) == 2);
}

// Of one run alone nothing is left that would predict it.
TEST_CASE("the left-out error of one run alone is not known") {
  const Folder folder;
  const std::string path = folder / "one.yaml";
  Fit two = SmallFit();
  REQUIRE(two.LeftOutError().has_value());
  two.provenance.runs = 1;
  CHECK_FALSE(two.LeftOutError().has_value());

  const Fit one = FitDevice(SmallDevice(), {SmallRuns().front()});
  CHECK(one.provenance.runs == 1);
  CHECK_FALSE(one.leave_one_out_error.has_value());
  CHECK(FitJson(one).find("\"leave_one_out_error\": null") !=
        std::string::npos);
  SaveFit(one, path);
  CHECK(Contents(path).find("leave_one_out") == std::string::npos);
  CHECK_FALSE(LoadFit(path).leave_one_out_error.has_value());
}

TEST_CASE("a file leaves out its sources where there is one, named already") {
  const Folder folder;
  Fit fit = SmallFit();
  const std::string path = folder / "one.yaml";
  fit.provenance.source = kOwnSource;
  SaveFit(fit, path);
  CHECK(Contents(path).find("sources:") == std::string::npos);
  CHECK(LoadFit(path).provenance.sources == fit.provenance.sources);
  fit.provenance.source = "runs.jsonl, a.csv (owner/table@1)";
  fit.provenance.sources = {"owner/table", std::string(kOwnSource)};
  SaveFit(fit, path);
  CHECK(Contents(path).find(
            "  sources: [\"owner/table\", \"trainfare-trainer\"]\n") !=
        std::string::npos);
  CHECK(LoadFit(path).provenance.sources == fit.provenance.sources);
}

TEST_CASE("every fit that ships is written as it stands, byte for byte") {
  const Folder folder;
  const std::string again = folder / "again.yaml";
  const std::vector<std::string> paths =
      hardware::YamlFiles(hardware::ShippedDirectory("calibrate/fits"));
  REQUIRE(!paths.empty());
  for (const std::string& path : paths) {
    CAPTURE(path);
    SaveFit(LoadFit(path), again);
    CHECK((Contents(again) == Contents(path)));
  }
}

TEST_CASE("a fit that is cut short at any line is refused") {
  const Folder folder;
  const std::string cut = folder / "cut.yaml";
  const std::string text =
      Contents(hardware::ShippedDirectory("calibrate") + "/fits/a10g.yaml");
  size_t lines = 0;
  for (size_t end = text.find('\n'); end + 1 < text.size();
       end = text.find('\n', end + 1)) {
    std::ofstream(cut) << text.substr(0, end + 1);
    CAPTURE(end);
    CHECK_THROWS_AS(LoadFit(cut), InputError);
    ++lines;
  }
  CHECK(lines > 50);
}

// Two groups: one whose computation beside was timed, one without and with no
// run over its ranks.
std::vector<RankFit> Groups() {
  RankFit two;
  two.network.ranks = 2;
  two.ranks_per_device = 2;
  two.backend = "gloo";
  two.transport = "tcp within a host";
  two.source = "here \"1\".jsonl";
  two.network.alone = {{model::Second(1e-4), model::BytesPerSecond<>(1.1e9)},
                       model::Second(1e-5),
                       0.07,
                       -0.9,
                       0.03};
  two.network.beside = {{model::Second(0.0), model::BytesPerSecond<>(9e8)},
                        model::Seconds<>(),
                        0.1,
                        0.0,
                        0.05};
  two.network.beside_timed = true;
  two.network.speed = 0.75;
  two.network.speed_error = 0.02;
  two.share = 0.47;
  two.share_error = 0.03;
  two.share_prior = 0.5;
  two.share_determined = true;
  two.host = model::Second(0.02);
  two.host_error = 0.2;
  two.host_prior = model::Second(0.003);
  two.host_share_correlation = 0.3;
  two.host_determined = true;
  two.scatter = 0.06;
  two.all_reduces = {
      {model::MiB(1.0), false, model::Second(0.0012), model::Second(0.0011)},
      {model::MiB(4.0), true, model::Second(0.005), model::Second(0.0051)}};
  FittedRun run;
  run.label = "run: 1";
  run.workload = "bert-tiny of 2";
  run.quantity = Quantity::kBackward;
  run.measured = model::Second(0.1);
  run.modelled = model::Second(0.11);
  two.runs = {run};
  RankFit eight;
  eight.network.ranks = 8;
  eight.network.alone = two.network.alone;
  eight.network.beside = eight.network.alone;
  eight.all_reduces = {two.all_reduces.front()};
  return {two, eight};
}

TEST_CASE("the power of a fit stands in its file, and older files have none") {
  const Folder folder;
  Fit fit = SmallFit();
  const std::string path = folder / "example.yaml";
  SaveFit(fit, path);
  CHECK_FALSE(LoadFit(path).power.has_value());
  FittedPower power;
  power.products = 1.08;
  power.products_error = 0.03;
  power.others = 0.97;
  power.others_error = 0.06;
  power.correlation = -0.3;
  power.scatter = 0.07;
  power.runs = {
      {"run: 1", "words", model::Watts<>(220.5), model::Watts<>(210.0)}};
  fit.power = power;
  SaveFit(fit, path);
  const Fit read = LoadFit(path);
  REQUIRE(read.power.has_value());
  CHECK(read.power->products == 1.08);
  CHECK(read.power->products_error == 0.03);
  CHECK(read.power->others == 0.97);
  CHECK(read.power->others_error == 0.06);
  CHECK(read.power->correlation == -0.3);
  CHECK(read.power->scatter == 0.07);
  REQUIRE(read.power->runs.size() == 1);
  CHECK(read.power->runs[0].label == "run: 1");
  CHECK(read.power->runs[0].measured.base() == 220.5);
  CHECK(read.power->runs[0].modelled.base() == 210.0);
}

TEST_CASE("what kernels have by themselves stands in a fit's file") {
  const Folder folder;
  Fit fit = SmallFit();
  const std::string path = folder / "example.yaml";
  SaveFit(fit, path);
  CHECK_FALSE(LoadFit(path).alone.has_value());
  fit.alone = fit.parameters[hardware::models::kCpuKernelOverhead];
  fit.alone->value = 3e-6;
  fit.alone->determined = true;
  SaveFit(fit, path);
  const Fit read = LoadFit(path);
  REQUIRE(read.alone.has_value());
  CHECK(read.alone->name == "kernel_overhead");
  CHECK(read.alone->value == 3e-6);
  CHECK(read.alone->standard_error == fit.alone->standard_error);
  CHECK(read.alone->determined);
  fit.alone->value = 1.0;
  CHECK_THROWS_WITH_AS(
      SaveFit(fit, path),
      doctest::Contains("value: expected a value from 1e-07 s to 0.001 s"),
      model::InputError);
  fit.alone->value = 3e-6;
  fit.alone->name = "memory_latency";
  CHECK_THROWS_WITH_AS(
      SaveFit(fit, path),
      doctest::Contains(
          "name: expected \"kernel_overhead\", got \"memory_latency\""),
      model::InputError);
}

TEST_CASE("groups of ranks stand in a fit file, and older files have none") {
  const Folder folder;
  Fit fit = SmallFit();
  const std::string path = folder / "example.yaml";
  SaveFit(fit, path);
  CHECK(Contents(path).find("ranks:") == std::string::npos);
  CHECK(LoadFit(path).ranks.empty());
  fit.ranks = Groups();
  SaveFit(fit, path);
  const Fit read = LoadFit(path);
  REQUIRE(read.ranks.size() == 2);
  const RankFit& two = read.ranks[0];
  CHECK(two.source == "here \"1\".jsonl");
  CHECK(two.ranks_per_device == 2);
  CHECK(two.network.alone.ring.link.base() == 1.1e9);
  CHECK(two.network.alone.latency_error.base() == 1e-5);
  CHECK(two.network.alone.correlation == -0.9);
  CHECK(two.network.beside.ring.step_latency.base() == 0.0);
  CHECK(two.network.beside_timed);
  CHECK(two.network.speed == 0.75);
  CHECK(two.network.speed_error == 0.02);
  CHECK(two.share == 0.47);
  CHECK(two.share_prior == 0.5);
  CHECK(two.share_determined);
  CHECK(two.host.base() == 0.02);
  CHECK(two.host_error == 0.2);
  CHECK(two.host_prior.base() == 0.003);
  CHECK(two.host_share_correlation == 0.3);
  CHECK(two.host_determined);
  REQUIRE(two.all_reduces.size() == 2);
  CHECK(two.all_reduces[1].beside);
  CHECK(two.all_reduces[1].size == model::MiB(4.0));
  REQUIRE(two.runs.size() == 1);
  CHECK(two.runs[0].quantity == Quantity::kBackward);
  CHECK(two.runs[0].modelled.base() == 0.11);
  const RankFit& eight = read.ranks[1];
  CHECK_FALSE(eight.network.beside_timed);
  CHECK(eight.network.speed == 1.0);
  CHECK(eight.host.base() == 0.0);
  CHECK(eight.network.beside.ring.link.base() == 1.1e9);
  CHECK(eight.runs.empty());
  const std::string again = folder / "again.yaml";
  SaveFit(read, again);
  CHECK((Contents(again) == Contents(path)));
}

TEST_CASE("a group of ranks that is not right says where") {
  const Folder folder;
  Fit fit = SmallFit();
  fit.ranks = Groups();
  const std::string path = folder / "bad.yaml";
  SaveFit(fit, path);
  const std::string text = Contents(path);
  const auto message = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, from.size(), to);
    Write(path, changed);
    try {
      LoadFit(path);
    } catch (const InputError& error) {
      const std::string what = error.what();
      CHECK(what.rfind(path + ":", 0) == 0);
      return what.substr(what.find(": ") + 2);
    }
    return std::string("was read");
  };
  CHECK(message("  - ranks: 2", "  - ranks: 1") ==
        "ranks[0].ranks: expected an integer from 2 to 100000000, got 1");
  CHECK(message("link: 1100000000 B/s", "link: 1100000000 B")
            .starts_with("ranks[0].alone.link: expected a bandwidth"));
  CHECK(message("speed: 0.75", "speed: 1.75")
            .starts_with("ranks[0].beside.speed: expected a number from "));
  CHECK(message("correlation: -0.9", "correlation: -9")
            .starts_with("ranks[0].alone.correlation: expected a number"));
  CHECK(message("scatter: 0.06", "scattr: 0.06").find("\"scattr\"") !=
        std::string::npos);
}

TEST_CASE("a fit file that is not right says where") {
  const Folder folder;
  const std::string good = folder / "good.yaml";
  SaveFit(SmallFit(), good);
  const std::string text = Contents(good);
  const std::string path = folder / "bad.yaml";
  struct Case {
    std::string from;
    std::string to;
    std::string message;  // after "<path>:<line>:<column>: "
  };
  const Case cases[] = {
      {"device: \"cpu\"",
       "devise: \"cpu\"",
       "missing key \"device\", a text; is \"devise\" at 1:1 meant?"},
      {"kind: cpu",
       "kind: cqu",
       "kind: expected one of cpu, gpu, neuron, systolic, dataflow, got "
       "\"cqu\"; did you mean \"cpu\"?"},
      {"name: gemm_efficiency",
       "name: gemm_share",
       "parameters[0].name: expected \"gemm_efficiency\", got \"gemm_share\"; "
       "was the fit made by another version? calibrate again"},
      {"    determined: ", "    determined: x", ""},
      {"tokens: [64, 1024]",
       "tokens: [1024, 64]",
       "range.tokens: expected the least and the largest, such as [8, 512]"},
      {"in_sample: ", "in_sample: -", ""},
      {"errors:", "errors:\n  unheard_of: 1", ""},
  };
  for (const Case& bad : cases) {
    CAPTURE(bad.to);
    std::string changed = text;
    const size_t at = changed.find(bad.from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, bad.from.size(), bad.to);
    Write(path, changed);
    try {
      LoadFit(path);
      FAIL("expected an InputError");
    } catch (const InputError& error) {
      const std::string what = error.what();
      CHECK(what.rfind(path + ":", 0) == 0);
      const size_t colon = what.find(": ");
      if (!bad.message.empty()) CHECK(what.substr(colon + 2) == bad.message);
    }
  }
}

// A line of a fit file changed into another, and what is said of it.
std::string Message(const std::string& text,
                    const std::string& path,
                    const std::string& from,
                    const std::string& to) {
  std::string changed = text;
  const size_t at = changed.find(from);
  REQUIRE(at != std::string::npos);
  changed.replace(at, changed.find('\n', at) - at, to);
  Write(path, changed);
  try {
    LoadFit(path);
  } catch (const InputError& error) {
    const std::string what = error.what();
    CHECK(what.rfind(path + ":", 0) == 0);
    return what.substr(what.find(": ") + 2);
  }
  return "was read";
}

// SmallFit() with standard errors of 0.1 and no correlation, but `changed`.
Fit WithCovariance(std::initializer_list<std::pair<size_t, double>> changed) {
  Fit fit = SmallFit();
  const size_t count = fit.parameters.size();
  std::fill(fit.covariance.begin(), fit.covariance.end(), 0.0);
  for (size_t i = 0; i < count; ++i) {
    fit.parameters[i].standard_error = 0.1;
    fit.covariance[i * count + i] = 0.01;
  }
  for (const auto& [at, value] : changed) fit.covariance[at] = value;
  return fit;
}

TEST_CASE("a covariance that is none is refused, and none is written") {
  const Folder folder;
  const std::string path = folder / "fit.yaml";
  const size_t count = SmallFit().parameters.size();
  CHECK_NOTHROW(SaveFit(WithCovariance({}), path));
  const auto refused = [&](const Fit& fit) {
    std::string said = "was written";
    const std::string before = Contents(path);
    try {
      SaveFit(fit, path);
    } catch (const InputError& error) {
      said = error.what();
    }
    // What was there is as it was.
    CHECK(Contents(path) == before);
    return said;
  };
  CHECK(
      refused(WithCovariance({{0, -1.0}}))
          .find(
              "parameters[0].covariance: "
              "expected the square of standard_error, 0.010000000000000002, as "
              "number 1, got -1") != std::string::npos);
  CHECK(refused(WithCovariance({{1, 0.005}}))
            .find("parameters[0].covariance: "
                  "expected a symmetric matrix, got 0.005 as number 2 and 0 "
                  "for the "
                  "same two parameters in row 2") != std::string::npos);
  // Three correlations of -0.9 cannot be.
  CHECK(refused(WithCovariance({{1, -0.009},
                                {count, -0.009},
                                {2, -0.009},
                                {2 * count, -0.009},
                                {count + 2, -0.009},
                                {2 * count + 1, -0.009}}))
            .find("positive semidefinite, got one of whose correlations an "
                  "eigenvalue is -0.8") != std::string::npos);
}

TEST_CASE("figures of a fit are bounded, so that an answer never overflows") {
  const Folder folder;
  const std::string path = folder / "fit.yaml";
  SaveFit(SmallFit(), path);
  const std::string text = Contents(path);
  const auto message = [&](const std::string& from, const std::string& to) {
    return Message(text, path, from, to);
  };
  CHECK(message("  degrees_of_freedom: ",
                "  degrees_of_freedom: 9223372036854775807")
            .starts_with("errors.degrees_of_freedom: expected an integer "
                         "from 0 to 1000000000000"));
  CHECK(message("  residual_scatter: ", "  residual_scatter: 1e300")
            .starts_with("errors.residual_scatter: expected a number from "));
  CHECK(message("    standard_error: ", "    standard_error: 1e300")
            .starts_with("parameters[0].standard_error: expected a number "));
  CHECK(message("    covariance: [", "    covariance: [1e300, 1]")
            .starts_with("parameters[0].covariance"));
  CHECK(message("    modelled: ", "    modelled: 1e300 s")
            .starts_with("runs[0].modelled: expected a time such as "));
  CHECK(message("  in_sample: ", "  in_sample: .inf").starts_with("errors"));
}

TEST_CASE("a name that is not UTF-8 does not make a fit unreadable") {
  const Folder folder;
  Fit fit = SmallFit();
  fit.provenance.source = "runs\xff\xc3.jsonl";
  fit.runs[0].label = "runs\xe2\x82.csv:3\x7f";
  const std::string path = folder / "fit.yaml";
  SaveFit(fit, path);
  const Fit read = LoadFit(path);
  CHECK(read.provenance.source == "runs\xef\xbf\xbd\xef\xbf\xbd.jsonl");
  CHECK(read.runs[0].label == "runs\xef\xbf\xbd.csv:3\x7f");
}

TEST_CASE("a bad file in a folder of fits is named, and the others are read") {
  const Folder folder;
  Fit fit = SmallFit();
  fs::create_directories(folder / "fits");
  SaveFit(fit, folder / "fits/good.yaml");
  const std::string bad = folder / "fits/bad.yaml";
  Write(bad, "device: \"cpu\"\nkind: cqu\n");
  const std::string torn = folder / "fits/torn.yaml";
  Write(torn, "device: \"cpu\"\n\xff\n");
  ::setenv("TRAINFARE_FITS", (folder / "fits").c_str(), 1);
  const LoadedFits all = LoadFits();
  const LoadedFits of_device = LoadFitsOf("cpu");
  ::unsetenv("TRAINFARE_FITS");
  REQUIRE(!all.fits.empty());
  CHECK(all.fits[0].name == "good");
  REQUIRE(all.left_out.size() == 2);
  CHECK(all.left_out[0].starts_with(bad + ":2:7: kind: expected one of "));
  CHECK(all.left_out[0].ends_with("; this fit is left out"));
  CHECK(all.left_out[1].starts_with(torn + ":2:1: expected text"));
  REQUIRE(of_device.fits.size() == 1);
  CHECK(of_device.left_out == all.left_out);
}

TEST_CASE("a queue in a folder of fits is named, and nobody waits for it") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "trainfare_queue_of_fits";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  REQUIRE(::mkfifo((folder / "queue.yaml").c_str(), 0600) == 0);
  REQUIRE(::setenv("TRAINFARE_FITS", folder.c_str(), 1) == 0);
  const LoadedFits loaded = LoadFits();
  CHECK(::unsetenv("TRAINFARE_FITS") == 0);
  std::filesystem::remove_all(folder);
  REQUIRE(loaded.left_out.size() == 1);
  CHECK(loaded.left_out[0].find("queue.yaml: no regular file") !=
        std::string::npos);
  CHECK(!loaded.fits.empty());
}

TEST_CASE("a place that cannot be written is one line, and nothing is left") {
  const Folder folder;
  Write(folder / "file", "in the way\n");
  const std::string below = folder / "file/fit.yaml";
  CHECK_THROWS_WITH_AS(SaveFit(SmallFit(), below),
                       (below + ": cannot be written: Not a directory").c_str(),
                       InputError);
}

TEST_CASE("fits of the user come first, from where they are told to be") {
  const Folder folder;
  fs::create_directories(folder / "fits");
  SaveFit(SmallFit(), folder / "fits/mine.yaml");
  ::setenv("TRAINFARE_FITS", (folder / "fits").c_str(), 1);
  CHECK(UserFitDirectory() == folder / "fits");
  const std::vector<Fit> fits = LoadFits().fits;
  REQUIRE(!fits.empty());
  CHECK(fits[0].name == "mine");
  ::unsetenv("TRAINFARE_FITS");
  ::setenv("XDG_DATA_HOME", "/data", 1);
  CHECK(UserFitDirectory() == "/data/trainfare/fits");
  ::unsetenv("XDG_DATA_HOME");
}

}  // namespace
}  // namespace trainfare::calibrate
