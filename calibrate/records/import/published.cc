#include "calibrate/records/import/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "calibrate/records/import/published_quantity.h"
#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/unit_text.h"
#include "hardware/files/yaml_reader.h"
#include "model/error.h"
#include "model/presets.h"
#include "model/validate.h"

namespace trainfare::calibrate {
namespace {

using hardware::Reader;
using model::InputError;

constexpr std::string_view kPublishedSchema = "trainfare.published/1";
constexpr int64_t kMany = 1'000'000'000'000;
constexpr double kAbout = 0.10;

struct StackName {
  std::string_view name;
  model::Fusion fusion;
};
constexpr auto kStacks = std::to_array<StackName>({
    {"cerebras", model::Fusion::kCompiled},
    {"fairseq", model::Fusion::kFairseq},
    {"fairseq-apex", model::Fusion::kFairseq},
    {"groqflow", model::Fusion::kCompiled},
    {"hugging-face", model::Fusion::kEager},
    {"lightseq", model::Fusion::kLightSeq},
    {"neuron", model::Fusion::kCompiled},
    {"poplar", model::Fusion::kCompiled},
    // Traced operation by operation, anew every step
    // (hardware/models/systolic.h).
    {"pytorch-xla", model::Fusion::kEager},
    {"sambaflow", model::Fusion::kCompiled},
    {"tensorflow", model::Fusion::kCompiled},
});

// Half a unit of the last digit of "2034.45": 0.005.
double HalfLastDigit(std::string_view number) {
  const size_t point = number.find('.');
  if (point == std::string_view::npos) return 0.5;
  const size_t decimals = number.size() - point - 1;
  return 0.5 * std::pow(10.0, -static_cast<double>(decimals));
}

bool TakePrefix(std::string_view prefix, std::string_view& text) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

model::Fusion FusionOfStack(const std::string& name) {
  for (const StackName& stack : kStacks) {
    if (stack.name == name) return stack.fusion;
  }
  std::vector<std::string_view> known;
  for (const StackName& stack : kStacks) known.push_back(stack.name);
  throw InputError(fmt::format(
      "unknown stack \"{}\"; known: {}", name, fmt::join(known, ", ")));
}

std::string KnownDevice(const std::string& name) {
  return hardware::DeviceCatalog::Shipped().Find(name).name;
}

// "16000" or "20000 .. 25000".
CountRange ReadCounts(const std::string& text) {
  const size_t dots = text.find(" .. ");
  const std::string first = text.substr(0, dots);
  const std::string last =
      dots == std::string::npos ? first : text.substr(dots + 4);
  const std::optional<int64_t> least = hardware::ParseInteger(first);
  const std::optional<int64_t> most = hardware::ParseInteger(last);
  if (!least || !most || *least < 1 || *most < *least) {
    throw InputError(fmt::format(
        "expected a count or a range such as \"20000 .. 25000\", got \"{}\"",
        text));
  }
  return {*least, *most};
}

// A run may take these from its workload; its own value comes first.
class RunReader {
 public:
  RunReader(const Reader& run, const Reader* workload)
      : run_(run), workload_(workload) {}

  // The map that holds `key`; the run where neither does.
  const Reader& At(std::string_view key) const {
    if (run_.Has(key) || workload_ == nullptr) return run_;
    return workload_->Has(key) ? *workload_ : run_;
  }
  std::optional<int64_t> Count(std::string_view key) const {
    return At(key).OptionalInteger(key, 1, kMany);
  }
  template <class Parse>
  auto Parsed(std::string_view key, Parse parse) const
      -> std::optional<decltype(parse(std::string()))> {
    const Reader& map = At(key);
    if (!map.Has(key)) return std::nullopt;
    return map.Parsed(key, parse);
  }

 private:
  const Reader& run_;
  const Reader* workload_;
};

void ReadArchitecture(const RunReader& reader, PublishedRun& run) {
  run.architecture = reader.Parsed("model", [](const std::string& name) {
    return model::FindArchitecture(name);
  });
  const auto head = reader.Parsed("head", model::FromText<model::Head>);
  const auto labels = reader.Count("labels");
  const auto layers = reader.Count("layers");
  if (!run.architecture) {
    for (const char* key : {"head", "labels", "layers"}) {
      if (reader.At(key).Has(key)) {
        reader.At(key).Fail(key, "expected a model beside it, got none");
      }
    }
    return;
  }
  if (head) run.architecture->head = *head;
  if (labels) run.architecture->labels = *labels;
  if (layers) {
    run.architecture->layers = *layers;
    if (run.architecture->family == model::Family::kEncoderDecoder) {
      run.architecture->decoder_layers = *layers;
    }
  }
}

PublishedOptimizer ReadOptimizer(const Reader& map) {
  PublishedOptimizer optimizer;
  optimizer.kind = map.Parsed("name", model::FromText<model::OptimizerKind>);
  if (map.Has("implementation")) {
    optimizer.implementation = map.Parsed(
        "implementation", model::FromText<model::OptimizerImplementation>);
  }
  if (map.Has("access")) {
    optimizer.single_tensor =
        map.Choice<bool>("access", {{"single", true}, {"multi", false}});
  }
  return optimizer;
}

// Counts of one core in the run are sequences of one core: a TPU chip has two.
void ReadBatch(const RunReader& reader, PublishedRun& run) {
  run.batch = reader.Count("batch");
  const std::optional<int64_t> per_core = reader.Count("batch_per_core");
  if (!per_core) return;
  const Reader& map = reader.At("batch_per_core");
  if (run.batch) map.Fail("batch_per_core", "expected this or batch, got both");
  if (!run.device) {
    map.Fail("batch_per_core", "expected a device beside it, got none");
  }
  run.cores_per_batch =
      hardware::DeviceCatalog::Shipped().Find(*run.device).cores;
  run.batch = *per_core * run.cores_per_batch;
}

// How the run was set up besides its shape.
void ReadSettings(const RunReader& reader,
                  const Reader& map,
                  PublishedRun& run) {
  run.accumulation = reader.Count("accumulation").value_or(1);
  run.predictions_per_sequence = reader.Count("predictions_per_sequence");
  run.layer_decay = map.OptionalFlag("layer_decay").value_or(false);
  run.gradient_checkpointing =
      map.OptionalFlag("gradient_checkpointing").value_or(false);
  run.stochastic_rounding =
      map.OptionalFlag("stochastic_rounding").value_or(false);
  run.compiler_level = map.OptionalInteger("compiler_level", 1, 3).value_or(2);
  run.swap = map.OptionalBytes("swap");
  run.lengths = map.OptionalText("lengths");
  run.overlap_gap = map.OptionalTime("overlap_gap");
  run.setting = map.OptionalText("setting");
  run.grid = map.OptionalInteger("grid", 1, kMany);
  run.block = map.OptionalInteger("block", 1, kMany);
}

// What nobody states, by its key, with the reason.
std::map<std::string, std::string> ReadAssumed(const Reader& map,
                                               const RunReader& reader) {
  std::map<std::string, std::string> assumed;
  const std::optional<Reader> reasons = map.OptionalMap("assumed");
  if (!reasons) return assumed;
  for (const std::string& key : reasons->Keys()) {
    if (!reader.At(key).Has(key)) {
      reasons->Fail(key,
                    fmt::format("expected a key of the run, got \"{}\"", key));
    }
    assumed[key] = reasons->Text(key);
  }
  return assumed;
}

PublishedRun ReadRun(const std::string& name,
                     const Reader& map,
                     const Reader* workload,
                     std::string position,
                     const std::string& document) {
  const RunReader reader(map, workload);
  PublishedRun run;
  run.name = name;
  run.position = std::move(position);
  run.document = document;
  ReadArchitecture(reader, run);
  if (reader.At("work").Has("work")) {
    run.work = reader.At("work").Choice<model::Work>(
        "work", {{"forward", model::Work::kForward}});
  }
  run.device = reader.Parsed("device", KnownDevice);
  run.or_device = reader.Parsed("or_device", KnownDevice);
  run.device_count = reader.Count("device_count").value_or(1);
  run.instance = reader.Parsed("instance", [](const std::string& text) {
    return hardware::InstanceCatalog::Shipped().Find(text).FullName();
  });
  ReadBatch(reader, run);
  run.sequence_length = reader.Count("sequence_length");
  run.epochs = reader.Count("epochs");
  run.train_samples = reader.Parsed("train_samples", ReadCounts);
  run.samples_from = reader.At("samples_from").OptionalTexts("samples_from");
  run.samples_in_run = reader.Count("samples_in_run");
  run.steps = reader.Count("steps");
  run.precision = reader.Parsed("precision", model::FromText<model::Precision>);
  if (reader.At("optimizer").Has("optimizer")) {
    run.optimizer = ReadOptimizer(reader.At("optimizer").Map("optimizer"));
  }
  run.fusion = reader.Parsed("stack", FusionOfStack);
  run.stack = reader.At("stack").OptionalText("stack");
  if (map.Has("against")) map.Parsed("against", FusionOfStack);
  run.against = map.OptionalText("against");
  run.against_run = map.OptionalText("against_run");
  run.price = map.OptionalPrice("price");
  ReadSettings(reader, map, run);
  run.same_as = map.OptionalText("same_as");
  run.assumed = ReadAssumed(map, reader);
  if (workload != nullptr) {
    run.assumed_of_workload = ReadAssumed(*workload, reader);
  }
  return run;
}

struct SourceAlias {
  std::string records;
  std::string ref;
};
using Aliases = std::map<std::string, SourceAlias>;

// "t4_7/fp16" -> its table and the record it stands for.
std::pair<SourceAlias, std::string> Resolve(const Reader& map,
                                            std::string_view key,
                                            const std::string& from,
                                            const Aliases& aliases) {
  const size_t slash = from.find('/');
  const auto alias = aliases.find(from.substr(0, slash));
  if (slash == std::string::npos || slash + 1 == from.size() ||
      alias == aliases.end()) {
    map.Fail(key,
             fmt::format("expected a source of this file and a record, such "
                         "as \"t4_7/fp16\", got \"{}\"",
                         from));
  }
  return {alias->second,
          fmt::format("{}/{}", alias->second.records, from.substr(slash + 1))};
}

// A tolerance widens what the printed digits give, never narrows it.
void WidenTolerance(const std::string& text, PublishedValue& value) {
  std::string_view rest = text;
  const bool absolute = rest.ends_with(" absolute");
  if (absolute) rest.remove_suffix(std::string_view(" absolute").size());
  const bool percent = !absolute && rest.ends_with(" %");
  if (percent) rest.remove_suffix(2);
  const std::optional<double> number = hardware::ParseNumber(rest);
  if (!number || !(*number > 0) || absolute == percent) {
    throw InputError(fmt::format(
        "expected a tolerance such as \"2 %\" or \"0.001 absolute\", got "
        "\"{}\"",
        text));
  }
  const double widened =
      absolute ? *number : *number / 100.0 * std::abs(value.high);
  value.tolerance = std::max(value.tolerance, widened);
}

PublishedRow ReadRow(const Reader& map, const Aliases& aliases) {
  PublishedRow row;
  row.position = map.Position("run");
  row.run = map.Text("run");
  row.group = map.Text("group");
  row.quantity = map.Parsed("quantity", [](const std::string& name) {
    return std::string(FindQuantity(name).name);
  });
  row.part = map.OptionalText("part");
  row.id = row.run + "/" + row.quantity;
  if (row.part) row.id += "/" + *row.part;
  row.value = map.Parsed("value", [&row](const std::string& text) {
    return ParsePublishedValue(row.quantity, text);
  });
  if (map.Has("tolerance")) {
    map.Parsed("tolerance", [&row](const std::string& text) {
      WidenTolerance(text, row.value);
      return true;
    });
  }
  row.size = map.OptionalBytes("size");
  row.use = map.Choice<PublishedUse>("use",
                                     {{"fit", PublishedUse::kFit},
                                      {"check", PublishedUse::kCheck},
                                      {"show", PublishedUse::kShow},
                                      {"none", PublishedUse::kNone}});
  if (map.Has("corrections")) {
    row.corrections = map.Integers("corrections", 1, kMany);
  }
  row.why = map.OptionalText("why");
  if (row.use == PublishedUse::kNone && row.corrections.empty() && !row.why) {
    map.Fail("use", "expected a reason beside \"none\": corrections or why");
  }
  for (const std::string& from : map.Texts("from")) {
    auto [alias, record] = Resolve(map, "from", from, aliases);
    row.records.push_back(std::move(record));
    row.refs.push_back(alias.ref);
  }
  if (row.records.empty()) map.Fail("from", "expected a record, got none");
  return row;
}

// One file, read in two passes: a run may name a workload, and a row a run, of
// a file that comes later.
struct OpenFile {
  Reader root;
  std::string document;
  Aliases aliases;
  std::set<int64_t> corrections;
};

OpenFile OpenPublished(const std::string& path) {
  OpenFile file{Reader::FromFile(path), {}, {}, {}};
  const Reader& root = file.root;
  if (root.Text("schema") != kPublishedSchema) {
    root.Fail("schema",
              fmt::format("expected \"{}\", got \"{}\"",
                          kPublishedSchema,
                          root.Text("schema")));
  }
  root.Text("title");
  file.document = root.OptionalText("document").value_or("");
  const std::optional<Reader> optional = root.OptionalMap("sources");
  if (!optional) return file;
  const Reader& sources = *optional;
  for (const std::string& key : sources.Keys()) {
    const Reader source = sources.Map(key);
    file.aliases[key] = {source.Text("records"), source.Text("ref")};
  }
  return file;
}

// Percent asked of a group, or words of an outcome.
PublishedGroup::Limit ReadLimit(const Reader& map) {
  PublishedGroup::Limit limit;
  limit.median = map.OptionalNumber("median", 0, Reader::kNoBound);
  limit.worst = map.OptionalNumber("worst", 0, Reader::kNoBound);
  limit.all_right = map.OptionalFlag("all_right").value_or(false);
  limit.all_answered = map.OptionalFlag("all_answered").value_or(false);
  limit.all_inside = map.OptionalFlag("all_inside").value_or(false);
  return limit;
}

void ReadGroups(const OpenFile& file, Published& published) {
  for (const Reader& map : file.root.OptionalMaps("groups")) {
    PublishedGroup group;
    group.name = map.Text("name");
    group.title = map.Text("title");
    if (published.Group(group.name) != nullptr) {
      map.Fail("name", "expected a new group, got one that stands before it");
    }
    if (const auto limit = map.OptionalMap("as_shipped")) {
      group.as_shipped = ReadLimit(*limit);
    }
    if (const auto limit = map.OptionalMap("leave_one_out")) {
      group.leave_one_out = ReadLimit(*limit);
    }
    group.chosen = map.Choice<std::string>(
        "chosen_on_these_rows",
        {{"yes", "yes"}, {"no", "no"}, {"priors", "priors"}});
    group.why = map.OptionalText("why");
    published.groups.push_back(std::move(group));
  }
}

void ReadCorrections(OpenFile& file, Published& published) {
  for (const Reader& map : file.root.OptionalMaps("corrections")) {
    const int64_t id = map.Integer("id", 1, kMany);
    PublishedCorrection correction{map.Text("what"), map.Text("handled")};
    file.corrections.insert(id);
    const auto [known, added] =
        published.corrections.try_emplace(id, correction);
    // A contradiction that touches two files is handled in one way.
    if (!added && (known->second.what != correction.what ||
                   known->second.handled != correction.handled)) {
      map.Fail(
          "id",
          fmt::format("correction {} is worded otherwise in another file", id));
    }
  }
}

void ReadRuns(const OpenFile& file,
              const std::map<std::string, Reader>& workloads,
              Published& published) {
  const std::optional<Reader> optional = file.root.OptionalMap("runs");
  if (!optional) return;
  const Reader& runs = *optional;
  for (const std::string& name : runs.Keys()) {
    const Reader map = runs.Map(name);
    const Reader* workload = nullptr;
    if (map.Has("workload")) {
      const auto found = workloads.find(map.Text("workload"));
      if (found == workloads.end()) {
        map.Fail("workload",
                 fmt::format("unknown workload \"{}\"", map.Text("workload")));
      }
      workload = &found->second;
    }
    PublishedRun run =
        ReadRun(name, map, workload, runs.Position(name), file.document);
    const auto [known, added] = published.runs.try_emplace(name, run);
    if (!added) {
      runs.Fail(name,
                fmt::format("expected a new run, got one that stands at {}",
                            known->second.position));
    }
  }
}

void ReadRows(const OpenFile& file,
              std::map<std::string, std::string>& seen,
              Published& published) {
  for (const Reader& map : file.root.OptionalMaps("rows")) {
    PublishedRow row = ReadRow(map, file.aliases);
    if (!published.runs.contains(row.run)) {
      map.Fail("run", fmt::format("unknown run \"{}\"", row.run));
    }
    if (published.Group(row.group) == nullptr) {
      std::vector<std::string> known;
      for (const PublishedGroup& group : published.groups) {
        known.push_back(group.name);
      }
      map.Fail("group",
               fmt::format("unknown group \"{}\"; known: {}",
                           row.group,
                           fmt::join(known, ", ")));
    }
    for (const int64_t id : row.corrections) {
      if (!file.corrections.contains(id)) {
        map.Fail("corrections",
                 fmt::format("correction {} does not stand in this file", id));
      }
    }
    const auto [known, added] = seen.try_emplace(row.id, row.position);
    if (!added) {
      map.Fail(fmt::format(
          "{} stands at {}; tell them apart by part", row.id, known->second));
    }
    published.rows.push_back(std::move(row));
  }
  for (const Reader& map : file.root.OptionalMaps("not_carried")) {
    const std::string why = map.Text("why");
    for (const std::string& from : map.Texts("records")) {
      published
          .not_carried[Resolve(map, "records", from, file.aliases).second] =
          why;
    }
  }
}

void RequireOutcome(const Measure& measure, std::string_view text) {
  if (text == "fits" || text == "does not fit" || text == "not supported") {
    return;
  }
  throw InputError(
      fmt::format("expected {}, got \"{}\"", ExampleOf(measure), text));
}

}  // namespace

PublishedValue ParsePublishedValue(std::string_view quantity,
                                   std::string_view text) {
  const Measure& measure = FindQuantity(quantity).measure;
  const auto fail = [&]() -> InputError {
    return InputError(
        fmt::format("expected {}, got \"{}\"; before it may "
                    "stand about, at least or at most, and a "
                    "range is written 1 .. 2",
                    ExampleOf(measure),
                    text));
  };
  PublishedValue value;
  value.text = text;
  if (measure.outcome) {
    value.kind = PublishedValue::Kind::kOutcome;
    RequireOutcome(measure, text);
    return value;
  }
  std::string_view rest = text;
  const bool about = TakePrefix("about ", rest);
  if (!about) {
    if (TakePrefix("at least ", rest)) {
      value.kind = PublishedValue::Kind::kAtLeast;
    } else if (TakePrefix("at most ", rest)) {
      value.kind = PublishedValue::Kind::kAtMost;
    }
  }
  const auto take_number = [&rest, &fail] {
    const size_t end =
        std::min(rest.find_first_not_of("0123456789."), rest.size());
    const std::string_view digits = rest.substr(0, end);
    const std::optional<double> number = hardware::ParseNumber(digits);
    if (!number) throw fail();
    rest.remove_prefix(end);
    return std::pair(*number, digits);
  };
  const auto [low, digits] = take_number();
  double high = low;
  double half = HalfLastDigit(digits);
  if (TakePrefix(" .. ", rest)) {
    if (value.kind != PublishedValue::Kind::kNumber) throw fail();
    value.kind = PublishedValue::Kind::kRange;
    const auto [last, last_digits] = take_number();
    high = last;
    half = std::max(half, HalfLastDigit(last_digits));
    if (!(high > low)) throw fail();
  }
  TakePrefix(" ", rest);
  const std::optional<double> scale = UnitScale(measure, rest);
  if (!scale) throw fail();
  value.low = low * *scale;
  value.high = high * *scale;
  value.tolerance = half * *scale;
  if (about) {
    value.tolerance = std::max(value.tolerance, kAbout * value.high);
  }
  return value;
}

const PublishedRun& Published::RunOf(const PublishedRow& row) const {
  const auto found = runs.find(row.run);
  ENSURE(found != runs.end(), "a row belongs to a run");
  return found->second;
}

const PublishedRow* Published::Find(std::string_view id) const {
  for (const PublishedRow& row : rows) {
    if (row.id == id) return &row;
  }
  return nullptr;
}

Published LoadPublished(const std::string& directory) {
  std::vector<OpenFile> files;
  for (const std::string& path : hardware::YamlFiles(directory)) {
    files.push_back(OpenPublished(path));
  }
  Published published;
  std::map<std::string, Reader> workloads;
  for (OpenFile& file : files) {
    ReadGroups(file, published);
    ReadCorrections(file, published);
    const std::optional<Reader> maps = file.root.OptionalMap("workloads");
    if (!maps) continue;
    for (const std::string& name : maps->Keys()) {
      if (!workloads.try_emplace(name, maps->Map(name)).second) {
        maps->Fail(name, "expected a new workload, got one of another file");
      }
    }
  }
  for (const OpenFile& file : files) ReadRuns(file, workloads, published);
  for (const auto& named : published.runs) {
    const PublishedRun& run = named.second;
    const auto require = [&](std::string_view key, const std::string& other) {
      if (published.runs.contains(other)) return;
      throw InputError(
          fmt::format("{}: {}: unknown run \"{}\"", run.position, key, other));
    };
    if (run.same_as) require("same_as", *run.same_as);
    if (run.against_run) require("against_run", *run.against_run);
    for (const std::string& other : run.samples_from) {
      require("samples_from", other);
    }
  }
  std::map<std::string, std::string> seen;
  for (const OpenFile& file : files) ReadRows(file, seen, published);
  for (const OpenFile& file : files) file.root.Finish();
  return published;
}

const PublishedGroup* Published::Group(std::string_view name) const {
  for (const PublishedGroup& group : groups) {
    if (group.name == name) return &group;
  }
  return nullptr;
}

bool Published::Same(const std::string& run, const std::string& other) const {
  const auto root = [this](const std::string& name) {
    std::string at = name;
    // A chain of runs ends, however its links are written.
    for (size_t i = 0; i < runs.size(); ++i) {
      const auto found = runs.find(at);
      if (found == runs.end() || !found->second.same_as) break;
      at = *found->second.same_as;
    }
    return at;
  };
  return root(run) == root(other);
}

namespace {

template <class T>
const T& Stated(const std::optional<T>& value, std::string_view what) {
  if (!value) throw InputError(fmt::format("{} not stated", what));
  return *value;
}

}  // namespace

model::Workload WorkloadOf(const PublishedRun& run) {
  model::Workload w;
  w.architecture = Stated(run.architecture, "the model is");
  w.work = run.work;
  w.batch = Stated(run.batch, "the batch is");
  w.accumulation = run.accumulation;
  w.sequence_length = Stated(run.sequence_length, "the sequence length is");
  w.precision = Stated(run.precision, "the precision is");
  w.predictions_per_sequence = run.predictions_per_sequence.value_or(0);
  w.gradient_checkpointing = run.gradient_checkpointing;
  w.stack.fusion = Stated(run.fusion, "the software is");
  w.stack.compiler_level = run.compiler_level;
  w.stack.stochastic_rounding = run.stochastic_rounding;
  if (run.work == model::Work::kForward) {
    w.optimizer.kind = model::OptimizerKind::kNone;
  } else {
    const PublishedOptimizer& optimizer =
        Stated(run.optimizer, "the optimizer is");
    w.optimizer.kind = optimizer.kind;
    w.optimizer.implementation =
        Stated(optimizer.implementation, "how the update is implemented is");
    w.optimizer.by_layer = run.layer_decay;
    if (optimizer.single_tensor &&
        w.optimizer.implementation == model::OptimizerImplementation::kFused) {
      throw InputError("a fused update of one tensor at a time is not known");
    }
  }
  model::Validate(w);
  return w;
}

int64_t EpochSamples(const Published& published,
                     const PublishedRun& run,
                     const KeepRun& keep) {
  const CountRange& range = Stated(run.train_samples, "the samples are");
  double sum = 0;
  int64_t seen = 0;
  for (const std::string& name : run.samples_from) {
    const PublishedRow* whole = published.Find(name + "/run_time");
    const PublishedRow* step = published.Find(name + "/step_time");
    const PublishedRun& other = published.runs.at(name);
    if (whole == nullptr || step == nullptr || !other.batch || !other.epochs ||
        published.Same(name, run.name) || (keep && !keep(other))) {
      continue;
    }
    sum += whole->value.low / step->value.low *
           static_cast<double>(*other.batch * other.device_count) /
           static_cast<double>(*other.epochs);
    ++seen;
  }
  const double least = static_cast<double>(range.least);
  const double most = static_cast<double>(range.most);
  return std::llround(
      seen == 0 ? 0.5 * (least + most)
                : std::clamp(sum / static_cast<double>(seen), least, most));
}

model::RunPlan PlanOf(const Published& published,
                      const PublishedRun& run,
                      const KeepRun& keep) {
  model::RunPlan plan;
  plan.batch = Stated(run.batch, "the batch is");
  plan.accumulation = run.accumulation;
  plan.devices = run.device_count;
  if (run.samples_in_run) {
    plan.train_samples = *run.samples_in_run;
  } else if (run.steps) {
    plan.train_samples =
        *run.steps * plan.batch * plan.accumulation * plan.devices;
  } else {
    plan.train_samples = EpochSamples(published, run, keep);
    plan.epochs = Stated(run.epochs, "the epochs are");
  }
  return plan;
}

std::string_view ToText(PublishedUse use) {
  switch (use) {
    case PublishedUse::kFit:
      return "fit";
    case PublishedUse::kCheck:
      return "check";
    case PublishedUse::kShow:
      return "show";
    case PublishedUse::kNone:
      return "none";
  }
  ENSURE(false, "unknown use");
  return "";
}

}  // namespace trainfare::calibrate
