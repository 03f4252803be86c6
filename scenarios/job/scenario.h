#pragma once

// A training job as a user writes it down: model, data, shape, optimizer.
// scenarios/job/scenario_fields.h has every key.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/records/observation.h"
#include "hardware/files/yaml_reader.h"
#include "model/padding.h"
#include "model/units.h"
#include "model/workload.h"
#include "scenarios/job/named_model.h"

namespace trainfare::scenarios {

enum class PaddingKind {
  kStatic,   // every batch to one length
  kDynamic,  // every batch to its own longest sequence
  kBuckets,  // that, rounded up to one of a few lengths
};

struct Padding {
  PaddingKind kind = PaddingKind::kStatic;
  int64_t length = 0;  // static: the length; dynamic: the longest allowed
  std::vector<int64_t> buckets;  // rising
};

// What the clock adds to the steps, as the user knows it; what is absent is
// taken as usual, and less sure (scenarios/job/open_times.h).
struct RunExtras {
  std::optional<model::Seconds<>> start_up;  // from renting to the first step
  // What a device with static shapes takes to compile a shape; absent: not
  // known. 0 is as good as known.
  std::optional<model::Seconds<>> compile_per_shape;
  // Every shape was compiled by an earlier run and is found again.
  bool warm_cache = false;
  std::optional<model::Seconds<>> checkpoint;       // of one, after every epoch
  std::optional<model::Seconds<>> load_per_sample;  // of the input pipeline
  model::Bytes<> swap;  // of the host, for a compiler
};

struct Scenario {
  std::string name;   // file stem: the name people type
  std::string title;  // in words
  std::string path;
  bool ends_in_line = false;  // its file may be cut off
  // `sequence_length` is the longest that a batch can have.
  model::Workload workload;
  std::string dataset;
  int64_t train_samples = 0;
  int64_t eval_samples = 0;
  std::optional<model::LengthHistogram> lengths;
  std::string lengths_source;
  int64_t epochs = 1;
  Padding padding;
  bool drop_last = false;
  std::string asked_model;      // its name as it was written; may be empty
  bool names_optimizer = true;  // forward passes need none
  double layer_decay = 1.0;     // of the learning rate, from layer to layer
  RunExtras extras;
  // On whose hosts, by whose software, as fits name their sources.
  std::string source = std::string(calibrate::kOwnSource);

  // Where its values stand; none: in a text that nobody wrote.
  std::optional<hardware::Reader> places = std::nullopt;
  std::string precision_flag = "";  // that said the precision; empty: none

  // What is wrong with a value on a device, "precision: ..", with its place
  // where somebody wrote the value; a flag stands for the key.
  std::string WithPlace(const std::string& message) const;
  // Lengths in which batches of `batch` sequences come.
  std::vector<model::PaddedLength> BatchLengths(int64_t batch) const;
  // Changes padding to a static length.
  void PadTo(int64_t length);
};

// `name` is a path (it has a '/' or ends in ".yaml"), or the bare name of a
// scenario that ships with the tool; `settings` change what the file says.
// `given`: a model that has been read already, for where the scenario or a
// setting names it; a pipe is read once. Throws InputError with file:line:col,
// or with the nearest names.
Scenario LoadScenario(const std::string& name,
                      const std::vector<hardware::YamlSetting>& settings = {},
                      const std::optional<NamedModel>& given = std::nullopt);
// The same of the text of a scenario, `name` in messages. Paths in it are
// relative to where the program was started.
Scenario ParseScenario(std::string_view text,
                       const std::string& name,
                       const std::vector<hardware::YamlSetting>& settings,
                       const std::optional<NamedModel>& given = std::nullopt);

// Names of the scenarios that ship with the tool, sorted.
std::vector<std::string> ShippedScenarios();
std::string ScenarioDirectory();

// A file of lengths: counts by length, or points of their distribution.
struct LengthFile {
  model::LengthHistogram histogram;
  std::string source;
};
LengthFile LoadLengths(const std::string& path);

std::string Describe(const Padding& padding);
// "adamw fused", or "forward passes only".
std::string DescribeUpdate(const model::Workload& workload);

// "eager"; of models with experts also how these run: "eager, experts grouped".
std::string DescribeStack(const model::Workload& workload);

// What of a step a job may run, and its words. WorkFromText throws InputError on
// another.
inline constexpr std::array kWorkOfJobs = {model::Work::kTraining,
                                           model::Work::kForward};
std::vector<std::string_view> WordsOfWork();
model::Work WorkFromText(std::string_view text);

// What is wrong with sequences so long: the model's table has fewer positions.
// nullopt: nothing.
std::optional<std::string> BeyondPositions(const model::Architecture& model,
                                           int64_t length);

}  // namespace trainfare::scenarios
