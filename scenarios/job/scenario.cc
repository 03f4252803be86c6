#include "scenarios/job/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "hardware/files/data_directory.h"
#include "hardware/files/foreign_text.h"
#include "hardware/files/model_config.h"
#include "hardware/files/text_file.h"
#include "hardware/files/yaml_fields.h"
#include "hardware/files/yaml_reader.h"
#include "model/error.h"
#include "model/fields.h"
#include "model/limits.h"
#include "model/nearest.h"
#include "model/presets.h"
#include "model/sharding.h"
#include "model/stack_rules.h"
#include "model/trainable.h"
#include "model/validate.h"
#include "scenarios/job/scenario_fields.h"

namespace trainfare::scenarios {
namespace {

namespace fs = std::filesystem;
using hardware::Reader;
using hardware::YamlFieldReader;
using model::InputError;

using model::kLargestDimension;
using model::kMostSamples;
constexpr int64_t kLongest = model::kLongestSequence;

model::Architecture ReadConfig(const Reader& root, const std::string& name) {
  const hardware::NamedFile file = hardware::FileNamedIn(root.file(), name);
  try {
    return hardware::ReadModelConfig(file.path);
  } catch (const InputError&) {
    if (file.is_beside) throw;
    throw InputError(
        fmt::format("\"{}\" is no config.json that is understood; name it with "
                    "--model to see why",
                    hardware::OneLine(name, 200)));
  }
}

// The model that the text at `key` names; `given`: one that has been read
// already, where the text is its name.
model::Architecture ReadNamed(const Reader& map,
                              std::string_view key,
                              const std::optional<NamedModel>& given) {
  return map.Parsed(key, [&](const std::string& name) {
    if (given && name == given->name) return given->architecture;
    // A file that a flag names is where the program was started.
    if (map.IsSet(key)) {
      return ReadNamedModel(name, "config.json").architecture;
    }
    const std::string folder = fs::path(map.file()).parent_path().string();
    const auto config = ConfigNamed(name, folder);
    return config ? ReadConfig(map, *config)
                  : model::FindArchitectureOr(name, kOrConfig);
  });
}

// A model with dimensions of its own, by a name that says which: "gpt2 with
// vocabulary 50304".
model::Architecture ReadChanged(const Reader& dims, model::Architecture a) {
  const std::string name = a.name;
  const auto before = model::DimensionTexts(a);
  hardware::YamlFieldChanger changer(dims);
  VisitDimensions(changer, a);
  if (a.name != name) return a;
  std::vector<std::string> changes;
  for (const auto& [key, text] : model::DimensionTexts(a)) {
    if (text != before.at(key)) {
      changes.push_back(fmt::format("{} {}", key, text));
    }
  }
  if (!changes.empty()) {
    a.name += fmt::format(" with {}", fmt::join(changes, ", "));
  }
  return a;
}

model::Architecture ReadArchitecture(const Reader& root,
                                     const std::optional<NamedModel>& given) {
  if (!root.IsMap("model")) return ReadNamed(root, "model", given);
  const Reader dims = root.Map("model");
  if (dims.Has(kModelOf)) {
    return ReadChanged(dims, ReadNamed(dims, kModelOf, given));
  }
  model::Architecture a;
  a.name = "custom";
  YamlFieldReader reader(dims);
  VisitDimensions(reader, a);
  if (a.head_size == 0 && a.hidden % a.heads != 0) {
    dims.Fail(
        "heads",
        fmt::format(
            "expected a divisor of hidden = {}, got {}", a.hidden, a.heads));
  }
  // As the presets of such blocks are pre-trained.
  if (!model::HasPlainBlock(a)) a.dropout = 0.0;
  return a;
}

Padding ReadPadding(const Reader& root) {
  Padding padding;
  const std::string forms = fmt::format("expected {}", FormOf(padding));
  if (root.IsText("padding")) {
    if (root.Text("padding") != "dynamic") root.Fail("padding", forms);
    padding.kind = PaddingKind::kDynamic;
    return padding;
  }
  const Reader map = root.Map("padding");
  const bool is_static = map.Has("static");
  const bool is_dynamic = map.Has("dynamic");
  const bool is_buckets = map.Has("buckets");
  const std::array kinds = {is_static, is_dynamic, is_buckets};
  if (std::count(kinds.begin(), kinds.end(), true) != 1) {
    root.Fail("padding", forms);
  }
  if (is_static) {
    padding.kind = PaddingKind::kStatic;
    padding.length = map.Integer("static", 1, kLongest);
  } else if (is_dynamic) {
    padding.kind = PaddingKind::kDynamic;
    padding.length = map.Integer("dynamic", 1, kLongest);
  } else {
    padding.kind = PaddingKind::kBuckets;
    padding.buckets = map.Integers("buckets", 1, kLongest);
    if (padding.buckets.empty()) {
      map.Fail("buckets", "expected at least one length, got none");
    }
    for (size_t i = 1; i < padding.buckets.size(); ++i) {
      if (padding.buckets[i] <= padding.buckets[i - 1]) {
        map.Fail("buckets",
                 fmt::format("expected rising lengths, got {} after {}",
                             padding.buckets[i],
                             padding.buckets[i - 1]));
      }
    }
    padding.length = padding.buckets.back();
  }
  return padding;
}

LengthFile ReadLengths(const Reader& root) {
  LengthFile file;
  file.source = root.Text("source");
  root.OptionalNumber("mean", 0, kLongest);  // stated, not used
  const std::vector<int64_t> lengths = root.Integers("lengths", 1, kLongest);
  if (lengths.empty()) root.Fail("lengths", "expected at least one, got none");
  for (size_t i = 1; i < lengths.size(); ++i) {
    if (lengths[i] <= lengths[i - 1]) {
      root.Fail("lengths",
                fmt::format("expected rising lengths, got {} after {}",
                            lengths[i],
                            lengths[i - 1]));
    }
  }
  const bool counted = root.Has("counts");
  const std::string_view other = counted ? "counts" : "share_up_to";
  const std::vector<double> values =
      counted ? root.Numbers(other, 0, static_cast<double>(kMostSamples))
              : root.Numbers(other, 0, 1);
  if (values.size() != lengths.size()) {
    root.Fail(other,
              fmt::format("expected {} values, one a length, got {}",
                          lengths.size(),
                          values.size()));
  }
  std::vector<std::pair<int64_t, double>> points;
  double sum = 0.0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    points.emplace_back(lengths[i], values[i]);
    sum += values[i];
  }
  if (counted) {
    if (!(sum > 0)) root.Fail(other, "expected a count above 0");
    file.histogram = model::LengthHistogram::FromCounts(points);
    return file;
  }
  const int64_t shortest = root.Integer("shortest", 1, lengths.front());
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i] < values[i - 1]) {
      root.Fail(other,
                fmt::format("expected rising shares, got {} after {}",
                            values[i],
                            values[i - 1]));
    }
  }
  if (values.back() != 1.0) {
    root.Fail(
        other,
        fmt::format("expected the last share to be 1, got {}", values.back()));
  }
  file.histogram = model::LengthHistogram::FromQuantiles(shortest, points);
  return file;
}

// { frozen_layers: N } or { lora: { rank: R, matrices: [query, ..] } }.
void CheckTrainable(const Reader& root,
                    const model::Architecture& architecture) {
  const auto map = root.OptionalMap("trainable");
  if (!map) return;
  if (map->Has("lora") == map->Has("frozen_layers")) {
    root.Fail("trainable",
              "expected one of { frozen_layers: LAYERS } or { lora: { rank: "
              "RANK, matrices: [query, value, ..] } }");
  }
  if (map->Has("frozen_layers")) {
    map->Integer("frozen_layers", 1, architecture.layers);
  }
}

// Before the range of any rank, of which this is a part.
void CheckRank(const Reader& root, const model::Architecture& architecture) {
  if (!root.IsMap("trainable")) return;
  const Reader map = root.Map("trainable");
  if (!map.IsMap("lora")) return;
  const Reader lora = map.Map("lora");
  // A key that nobody knows is named before a rank that is missing.
  model::Trainable trainable;
  YamlFieldReader::ExpectFields(lora, model::Lora<model::Trainable>{trainable});
  lora.Integer("rank", 1, architecture.hidden);
}

// The rules of model::Parallel, at the key that breaks one.
void CheckParallel(const Reader& root, const model::Parallel& parallel) {
  const auto map = root.OptionalMap("parallel");
  if (!map) return;
  const auto fault = model::FaultOf(parallel);
  if (!fault) return;
  if (map->Has(fault->field)) map->Fail(fault->field, fault->message);
  root.Fail("parallel", fmt::format("{}: {}", fault->field, fault->message));
}

// half, or { power_sgd: RANK }.
model::GradientCompression ReadCompression(const Reader& root) {
  model::GradientCompression compression;
  if (!root.IsMap("gradient_compression")) {
    compression.kind = root.Choice<model::CompressionKind>(
        "gradient_compression",
        {{"none", model::CompressionKind::kNone},
         {"half", model::CompressionKind::kTo16Bits}});
    return compression;
  }
  const Reader map = root.Map("gradient_compression");
  compression.kind = model::CompressionKind::kPowerSgd;
  compression.rank = map.Integer("power_sgd", 1, kLargestDimension);
  return compression;
}

// The longest batch: what padding allows, what the data holds.
int64_t LongestBatch(const Reader& root, const Scenario& scenario) {
  const Padding& padding = scenario.padding;
  if (padding.kind == PaddingKind::kStatic) return padding.length;
  if (!scenario.lengths) {
    root.Fail("padding",
              fmt::format("{} padding needs dataset.lengths, the file of the "
                          "data's lengths",
                          padding.kind == PaddingKind::kDynamic ? "dynamic"
                                                                : "bucketed"));
  }
  if (padding.kind == PaddingKind::kBuckets) return padding.length;
  int64_t longest = scenario.lengths->longest();
  if (padding.length > 0) longest = std::min(longest, padding.length);
  return longest;
}

// A model's name ("llama-3.1-8b") may stand for a file's.
std::string NameOf(const std::string& path) {
  const bool is_file = path.ends_with(".yaml") || path.ends_with(".yml");
  return is_file ? hardware::Stem(path)
                 : std::filesystem::path(path).filename().string();
}

// The name of the model as it was written; empty: all of it is spelled out.
std::string AskedModel(const Reader& root) {
  if (root.IsText("model")) return root.Text("model");
  if (!root.IsMap("model")) return "";
  const Reader dims = root.Map("model");
  return dims.IsText(kModelOf) ? dims.Text(kModelOf) : "";
}

Scenario ReadScenario(const Reader& root,
                      const std::optional<NamedModel>& given) {
  Scenario s;
  s.path = root.file();
  s.name = NameOf(s.path);
  s.ends_in_line = root.EndsInLine();
  s.names_optimizer = root.Has("optimizer");
  s.asked_model = AskedModel(root);
  model::Workload& w = s.workload;
  std::vector<std::string_view> apart;
  if (root.Has("model")) {
    w.architecture = ReadArchitecture(root, given);
    apart.emplace_back("model");
    CheckRank(root, w.architecture);
  }
  YamlFieldReader keys(root, std::move(apart));
  VisitFields(keys, s);

  w.sequence_length = LongestBatch(root, s);
  if (w.documents > 1 && s.padding.kind != PaddingKind::kStatic) {
    root.Fail("padding",
              fmt::format("expected {{ static: LENGTH }} beside documents, got "
                          "{}: sequences packed of {} are of one length",
                          Describe(s.padding),
                          w.documents));
  }
  if (w.work == model::Work::kForward && w.accumulation > 1 &&
      w.parallel.pipeline == 1) {
    root.Fail("accumulation",
              "expected 1 with work: forward, which has no update, but in the "
              "stages of a pipeline");
  }
  // Below 1 every layer has a learning rate of its own.
  w.optimizer.by_layer = s.layer_decay < 1.0;
  CheckTrainable(root, w.architecture);
  model::NameAllMatrices(w.architecture, w.stack.fusion, w.trainable);
  CheckParallel(root, w.parallel);
  root.Finish();
  s.places = root;

  if (auto wrong = BeyondPositions(w.architecture, w.sequence_length)) {
    root.Fail("padding", *wrong);
  }
  try {
    model::Validate(w);
  } catch (const InputError& error) {
    root.FailAbout(error.what());
  }
  return s;
}

// Where the value stands that a message begins with the path of
// ("trainable.lora.rank: .."); nullopt: there is none.
std::optional<std::string> PlaceAbout(Reader map, std::string_view message) {
  std::string_view path = message.substr(0, message.find(": "));
  while (true) {
    const size_t end = std::min(path.find('.'), path.size());
    const std::string_view key = path.substr(0, end);
    if (!map.Has(key)) return std::nullopt;
    if (end == path.size()) return map.Position(key);
    if (!map.IsMap(key)) return std::nullopt;
    map = map.Map(key);
    path.remove_prefix(end + 1);
  }
}

bool LooksLikeAPath(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".yaml") ||
         name.ends_with(".yml");
}

}  // namespace

std::string FormOf(const Padding&) {
  return "dynamic, { static: LENGTH }, { dynamic: LONGEST } or "
         "{ buckets: [LENGTH, ..] }";
}

std::string FormOf(ScheduleKey) {
  return "constant, linear, cosine, polynomial";
}

void ReadValue(const Reader& map,
               std::string_view,
               const ModelKey<model::Architecture>& model) {
  model.architecture = ReadArchitecture(map, std::nullopt);
}

// A copy of a shipped scenario finds what lies beside the original, unless it
// has a file of that name beside itself.
std::string LengthsPath(const std::string& scenario, const std::string& name) {
  const fs::path shipped = fs::path(ScenarioDirectory()) / name;
  std::error_code ignored;
  const bool copied =
      !fs::exists(fs::path(scenario).parent_path() / name, ignored) &&
      fs::exists(shipped, ignored);
  return hardware::PathBeside(
      copied ? (fs::path(ScenarioDirectory()) / "any.yaml").string() : scenario,
      name);
}

// What the file would say, or its name.
void ReadValue(const Reader& map,
               std::string_view key,
               const LengthsKey<Scenario>& lengths) {
  LengthFile file =
      map.IsMap(key)
          ? ReadLengths(map.Map(key))
          : LoadLengths(map.Parsed(key, [&](const std::string& name) {
              return LengthsPath(map.file(), name);
            }));
  lengths.scenario.lengths = std::move(file.histogram);
  lengths.scenario.lengths_source = std::move(file.source);
}

void ReadValue(const Reader& map,
               std::string_view key,
               const WorkKey<model::Work>& work) {
  work.work = map.Parsed(key, WorkFromText);
}

void ReadValue(const Reader& map,
               std::string_view,
               const CompressionKey<model::GradientCompression>& compression) {
  compression.compression = ReadCompression(map);
}

void ReadValue(const Reader& map, std::string_view, Padding& padding) {
  padding = ReadPadding(map);
}

// The host works out one number a step and group: no time of its own.
void ReadValue(const Reader& map, std::string_view key, ScheduleKey&) {
  map.Choice<bool>(key,
                   {{"constant", true},
                    {"linear", true},
                    {"cosine", true},
                    {"polynomial", true}});
}

std::string Scenario::WithPlace(const std::string& message) const {
  constexpr std::string_view kPrecision = "precision: ";
  if (!precision_flag.empty() && message.starts_with(kPrecision)) {
    return fmt::format(
        "{}: {}", precision_flag, message.substr(kPrecision.size()));
  }
  const auto place = places ? PlaceAbout(*places, message) : std::nullopt;
  return place ? fmt::format("{}: {}", *place, message) : message;
}

std::vector<model::PaddedLength> Scenario::BatchLengths(int64_t batch) const {
  switch (padding.kind) {
    case PaddingKind::kStatic:
      return {{workload.sequence_length, 1.0}};
    case PaddingKind::kDynamic:
      ENSURE(lengths.has_value(), "dynamic padding was read with lengths");
      return model::DynamicLengths(*lengths, batch, workload.sequence_length);
    case PaddingKind::kBuckets:
      ENSURE(lengths.has_value(), "bucketed padding was read with lengths");
      return model::BucketedLengths(*lengths, batch, padding.buckets);
  }
  ENSURE(false, "a padding without lengths");
}

void Scenario::PadTo(int64_t length) {
  padding = {PaddingKind::kStatic, length, {}};
  workload.sequence_length = length;
}

std::string ScenarioDirectory() {
  return hardware::ShippedDirectory("scenarios");
}

std::vector<std::string> ShippedScenarios() {
  std::vector<std::string> names;
  for (const std::string& file : hardware::YamlFiles(ScenarioDirectory())) {
    names.push_back(hardware::Stem(file));
  }
  return names;
}

Scenario LoadScenario(const std::string& name,
                      const std::vector<hardware::YamlSetting>& settings,
                      const std::optional<NamedModel>& given) {
  const auto read = [&](const std::string& path) {
    return ReadScenario(Reader::FromFile(path, settings), given);
  };
  if (LooksLikeAPath(name)) {
    std::error_code ignored;
    const std::string stem = hardware::Stem(name);
    const std::vector<std::string> names = ShippedScenarios();
    if (!fs::exists(name, ignored) &&
        std::find(names.begin(), names.end(), stem) != names.end()) {
      throw InputError(
          name,
          0,
          0,
          fmt::format("no such file; \"{}\" alone is the shipped one", stem));
    }
    return read(name);
  }
  const fs::path shipped = fs::path(ScenarioDirectory()) / (name + ".yaml");
  std::error_code ignored;  // no file has a name that long
  if (fs::exists(shipped, ignored)) return read(shipped.string());
  if (model::TryFindArchitecture(name)) {
    throw InputError(
        fmt::format("unknown scenario \"{}\"; that is a model, did you mean "
                    "--model {}?",
                    name,
                    name));
  }
  const std::vector<std::string> names = ShippedScenarios();
  const std::vector<std::string_view> known = model::NameViews(names);
  throw InputError(
      fmt::format("unknown scenario \"{}\"{}; or give the path of a .yaml file",
                  name,
                  model::OfKnown(name, known)));
}

Scenario ParseScenario(std::string_view text,
                       const std::string& name,
                       const std::vector<hardware::YamlSetting>& settings,
                       const std::optional<NamedModel>& given) {
  return ReadScenario(Reader::FromText(text, name, settings), given);
}

LengthFile LoadLengths(const std::string& path) {
  const Reader root = Reader::FromFile(path);
  LengthFile file = ReadLengths(root);
  root.Finish();
  return file;
}

std::string Describe(const Padding& padding) {
  switch (padding.kind) {
    case PaddingKind::kStatic:
      return fmt::format("static {}", padding.length);
    case PaddingKind::kDynamic:
      return "dynamic";
    case PaddingKind::kBuckets:
      return fmt::format("buckets {}", fmt::join(padding.buckets, ", "));
  }
  ENSURE(false, "a padding without a name");
}

std::string DescribeUpdate(const model::Workload& workload) {
  if (workload.work == model::Work::kForward) return "forward passes only";
  return fmt::format("{} {}",
                     model::ToText(workload.optimizer.kind),
                     model::ToText(workload.optimizer.implementation));
}

std::string DescribeStack(const model::Workload& workload) {
  std::string text(model::ToText(workload.stack.fusion));
  if (workload.architecture.experts > 0) {
    text +=
        fmt::format(", experts {}", model::ToText(model::ExpertsOf(workload)));
  }
  return text;
}

std::optional<std::string> BeyondPositions(const model::Architecture& model,
                                           int64_t length) {
  const auto positions = model.longest_of_table();
  if (!positions || length <= *positions) return std::nullopt;
  return fmt::format(
      "expected a length of at most {}, the positions of {}, got {}",
      *positions,
      model.name,
      length);
}

std::vector<std::string_view> WordsOfWork() {
  std::vector<std::string_view> words;
  for (const model::Work work : kWorkOfJobs) {
    words.push_back(model::ToText(work));
  }
  return words;
}

model::Work WorkFromText(std::string_view text) {
  const auto work = model::TryFromText<model::Work>(text);
  if (work && std::find(kWorkOfJobs.begin(), kWorkOfJobs.end(), *work) !=
                  kWorkOfJobs.end()) {
    return *work;
  }
  throw InputError(fmt::format(
      "unknown work \"{}\"; known: {}", text, fmt::join(WordsOfWork(), ", ")));
}

}  // namespace trainfare::scenarios
