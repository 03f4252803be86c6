// Memory and time of one device agree: what a shipped fit has run is never
// refused as too large.

#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_file.h"
#include "calibrate/fit/step_model.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/device_memory.h"
#include "hardware/models/device_models.h"
#include "hardware/models/memory_plan.h"

namespace trainfare::calibrate {
namespace {

int64_t NumberOf(const std::string& text) {
  const auto number = hardware::ParseInteger(text);
  REQUIRE(number.has_value());
  return *number;
}

// "24x1024x16x4096x30522": layers, hidden size, heads, intermediate size,
// vocabulary.
void ReadSizes(const std::string& text, model::Architecture& a) {
  std::stringstream parts(text);
  std::string part;
  for (int64_t* size :
       {&a.layers, &a.hidden, &a.heads, &a.intermediate, &a.vocabulary}) {
    std::getline(parts, part, 'x');
    *size = NumberOf(part);
  }
}

// The workload that Describe() put into the words of a fit file.
model::Workload WorkloadOf(const std::string& words) {
  std::stringstream stream(words);
  std::vector<std::string> word;
  for (std::string next; stream >> next;) word.push_back(next);
  REQUIRE(word.size() >= 8);
  model::Workload w;
  w.architecture.name = word[0];
  w.architecture.head = model::FromText<model::Head>(word[1]);
  if (w.architecture.head == model::Head::kCausalLanguageModel) {
    w.architecture.family = model::Family::kDecoder;
  }
  ReadSizes(word[2], w.architecture);
  w.batch = NumberOf(word[3].substr(1));
  w.sequence_length = NumberOf(word[4].substr(1));
  w.precision = model::FromText<model::Precision>(word[5]);
  const size_t dash = word[6].find('-');
  w.optimizer = {model::FromText<model::OptimizerKind>(word[6].substr(0, dash)),
                 model::FromText<model::OptimizerImplementation>(
                     word[6].substr(dash + 1))};
  const size_t between = word[7].find('-');
  w.stack.fusion = model::FromText<model::Fusion>(word[7].substr(0, between));
  w.stack.attention =
      model::FromText<model::Attention>(word[7].substr(between + 1));
  // The words leave out that the tables' runs in fp16 keep narrow weights.
  w.stack.narrow_weights = w.precision == model::Precision::kFp16;
  for (size_t i = 8; i < word.size(); ++i) {
    if (word[i] == "forward") w.work = model::Work::kForward;
    if (word[i] == "forward-backward") w.work = model::Work::kForwardBackward;
    if (word[i][0] == 'p') {
      w.predictions_per_sequence = NumberOf(word[i].substr(1));
    }
  }
  return w;
}

// Decoders of today and what of them trains have more words than WorkloadOf()
// reads: tests/scenarios/validation/own_runs_test.cc has their verdicts.
bool SaysMore(const std::string& words) {
  return words.find(" dropout 0") != std::string::npos;
}

TEST_CASE("what a shipped fit has run is not refused") {
  int runs = 0;
  for (const std::string& path :
       hardware::YamlFiles(std::string(TRAINFARE_ROOT) + "/calibrate/fits")) {
    const Fit fit = LoadFit(path);
    const hardware::Device& device =
        hardware::DeviceCatalog::Shipped().Find(fit.device);
    for (const FittedRun& run : fit.runs) {
      CAPTURE(path);
      CAPTURE(run.label);
      CAPTURE(run.workload);
      if (SaysMore(run.workload)) continue;
      const model::Workload w = WorkloadOf(run.workload);
      CHECK_NOTHROW(hardware::RequireSupported(device, w));
      const hardware::MemoryPlan plan = hardware::PlanMemory(device, w);
      CAPTURE(hardware::FormatBytes(plan.needed.total()));
      CHECK(plan.fits());
      ++runs;
    }
  }
  CHECK(runs > 300);
}

}  // namespace
}  // namespace trainfare::calibrate
