// Which of two fits stays (calibrate/fit/replacement.h).

#include "calibrate/fit/replacement.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "calibrate/fit/fit_file.h"
#include "calibrate/fit/prior_fit.h"
#include "hardware/models/device_models.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

// A fit of 82 runs that errs by 2 %.
Fit GoodFit() {
  hardware::Device device = hardware::HostCpu();
  device.reported_name = "Example 9000";
  Fit fit = PriorFit(device);
  fit.provenance.runs = 82;
  fit.leave_one_out_error = 0.02;
  fit.range.min_tokens = 64;
  fit.range.max_tokens = 4096;
  fit.range.min_sequence_length = 32;
  fit.range.max_sequence_length = 512;
  fit.range.min_parameters = 4'000'000;
  fit.range.max_parameters = 110'000'000;
  fit.range.settings = {"fp32 eager materialised training"};
  return fit;
}

TEST_CASE("a fit gives way to one that is no worse") {
  const Fit old = GoodFit();
  CHECK(!WhyNotReplace(old, old));
  Fit other = GoodFit();
  other.provenance.runs = 41;
  CHECK(!WhyNotReplace(old, other));
  // 2.34 sqrt(1 / 82 + 1 / 41) = 0.45: an error of 2.9 % may be chance.
  other.leave_one_out_error = 0.0289;
  CHECK(!WhyNotReplace(old, other));
  // One setting more, and runs beyond the old ones.
  other.range.settings.emplace_back("bf16 eager materialised training");
  other.range.max_tokens = 65536;
  CHECK(!WhyNotReplace(old, other));
}

TEST_CASE("a fit stays where the new one is worse, and that says in what") {
  const Fit old = GoodFit();
  const auto why = [&](const auto& change) {
    Fit other = GoodFit();
    change(other);
    return WhyNotReplace(old, other).value_or("it is replaced");
  };
  // What Ctrl-C after one run leaves.
  CHECK(why([](Fit& fit) {
          fit.provenance.runs = 1;
          fit.leave_one_out_error = 0;
        }) == "it has 82 runs, the new one 1");
  CHECK(why([](Fit& fit) { fit.provenance.runs = 40; }) ==
        "it has 82 runs, the new one 40");
  CHECK(why([](Fit& fit) { fit.leave_one_out_error.reset(); }) ==
        "its left-out error is 2.0 %, the new one has none");
  CHECK(why([](Fit& fit) { fit.leave_one_out_error = 0.46; }) ==
        "its left-out error is 2.0 %, the new one's 46.0 %");
  CHECK(why([](Fit& fit) { fit.range.settings = {"bf16 eager"}; }) ==
        "the new one has no run of fp32 eager materialised training");
  // From 64 to 1024 is 4 of the 6 doublings from 64 to 4096.
  CHECK(why([](Fit& fit) { fit.range.max_tokens = 1024; }) ==
        "the new one's runs span 67 % of its tokens");
  CHECK(why([](Fit& fit) { fit.range.min_parameters = 50'000'000; }) ==
        "the new one's runs span 24 % of its parameters");
  CHECK(why([](Fit& fit) { fit.reported_name = "Other 5000"; }) ==
        "it is of cpu (Example 9000), not of cpu (Other 5000)");
  Fit over_ranks = old;
  over_ranks.ranks.resize(1);
  over_ranks.ranks[0].network.ranks = 2;
  CHECK(WhyNotReplace(over_ranks, old) ==
        "the new one knows nothing of 2 ranks");
  Fit of_kernels = old;
  of_kernels.provenance.kernels = 100;
  CHECK(WhyNotReplace(of_kernels, old) ==
        "it has 100 kernels by themselves, the new one 0");
}

TEST_CASE("a fit is kept, or what gave way is") {
  const fs::path folder =
      fs::temp_directory_path() /
      ("trainfare_replacement_test_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const std::string path = (folder / "fit.yaml").string();
  const Fit good = GoodFit();
  Fit poor = GoodFit();
  poor.provenance.runs = 1;

  CHECK(PlaceFit(good, path, Replace::kIfNotWorse, false).note.empty());
  // Provisional: its runs are kept, it is not.
  Placed placed = PlaceFit(poor, path, Replace::kIfNotWorse, true);
  CHECK(!placed.in_place);
  CHECK(placed.path.empty());
  CHECK(placed.note == path +
                           ": the fit there is kept: it has 82 runs, the "
                           "new one 1");
  CHECK(LoadFit(path).provenance.runs == 82);

  // Enough runs of today for a finished calibration, not for one broken off.
  Fit fewer = GoodFit();
  fewer.provenance.runs = 60;
  CHECK(!WhyNotReplace(good, fewer));
  placed = PlaceFit(fewer, path, Replace::kIfNotWorse, true);
  CHECK(!placed.in_place);
  CHECK(LoadFit(path).provenance.runs == 82);

  placed = PlaceFit(poor, path, Replace::kIfNotWorse, false);
  CHECK(!placed.in_place);
  CHECK(placed.path == path + ".new");
  CHECK(LoadFit(path).provenance.runs == 82);
  CHECK(LoadFit(placed.path).provenance.runs == 1);

  placed = PlaceFit(poor, path, Replace::kAlways, true);
  CHECK(placed.in_place);
  CHECK(placed.note == path +
                           ": the fit of 82 runs that was there is kept as " +
                           path + ".old");
  CHECK(LoadFit(path).provenance.runs == 1);
  CHECK(LoadFit(path + ".old").provenance.runs == 82);

  // The next takes no place but that of the one before it.
  placed = PlaceFit(good, path, Replace::kAlways, false);
  CHECK(placed.note.ends_with(" is kept as " + path + ".old.2"));
  CHECK(LoadFit(path + ".old").provenance.runs == 82);
  CHECK(LoadFit(path + ".old.2").provenance.runs == 1);

  // Nor does one that stays beside it.
  Fit other = GoodFit();
  other.provenance.runs = 2;
  placed = PlaceFit(other, path, Replace::kIfNotWorse, false);
  CHECK(placed.path == path + ".new");
  CHECK(LoadFit(path + ".new").provenance.runs == 2);
  CHECK(LoadFit(path + ".new.old").provenance.runs == 1);

  // A fit that cannot be read any more: nothing to compare with, and nothing is
  // lost.
  const std::string broken = "device: cpu\nkind: cpu\n";
  std::ofstream(path) << broken;
  placed = PlaceFit(good, path, Replace::kIfNotWorse, false);
  CHECK(placed.in_place);
  CHECK(placed.note.starts_with(path + ":1:1: missing key \""));
  CHECK(placed.note.ends_with("; it is kept as " + path + ".old.3"));
  CHECK(fs::file_size(path + ".old.3") == broken.size());
  fs::remove_all(folder);
}

TEST_CASE("somebody else's file gives way to no fit") {
  const fs::path folder =
      fs::temp_directory_path() /
      ("trainfare_others_test_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const std::string path = (folder / "job.yaml").string();
  std::ofstream(path) << "model: bert-tiny\n";
  CHECK_THROWS_WITH_AS(
      PlaceFit(GoodFit(), path, Replace::kAlways, false),
      (path + ": expected a new file, or a fit to replace; the one that is "
              "there is none")
          .c_str(),
      model::InputError);
  CHECK(fs::file_size(path) == 17);
  // Nor does one that has the name under which a fit is kept.
  fs::rename(path, path + ".old");
  PlaceFit(GoodFit(), path, Replace::kAlways, false);
  const Placed placed = PlaceFit(GoodFit(), path, Replace::kAlways, false);
  CHECK(placed.note.ends_with(" is kept as " + path + ".old.2"));
  CHECK(fs::file_size(path + ".old") == 17);
  // What is empty is nobody's.
  std::ofstream(path, std::ios::trunc).close();
  CHECK(PlaceFit(GoodFit(), path, Replace::kIfNotWorse, false).in_place);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace trainfare::calibrate
