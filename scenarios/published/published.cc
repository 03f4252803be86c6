#include "scenarios/published/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "hardware/catalog/device.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/unit_text.h"
#include "hardware/files/yaml_reader.h"
#include "model/error.h"

namespace trainfare::scenarios {
namespace {

using hardware::Dimension;
using hardware::Reader;
using model::InputError;

constexpr std::string_view kSchema = "trainfare.published/1";
constexpr int64_t kMany = 1'000'000'000'000;
constexpr double kAbout = 0.10;

// What a quantity is measured in. Ratios take "%" or stand alone.
enum class Measure {
  kBytes,
  kBandwidth,
  kFlops,
  kComputeRate,
  kTime,
  kPower,
  kEnergy,
  kMoney,
  kPrice,
  kRatio,
  kCount,
  kSamplesPerSecond,
  kTokensPerSecond,
  kIntensity,
  kOutcome,
};

struct Quantity {
  std::string_view name;
  Measure measure;
};
constexpr auto kQuantities = std::to_array<Quantity>({
    {"accuracy", Measure::kRatio},
    {"achieved_flops", Measure::kComputeRate},
    {"active_ratio", Measure::kRatio},
    {"active_time", Measure::kTime},
    {"allreduce_bandwidth", Measure::kBandwidth},
    {"allreduce_time", Measure::kTime},
    {"arithmetic_intensity", Measure::kIntensity},
    {"backward_time", Measure::kTime},
    {"billing_unit_price", Measure::kMoney},
    {"billing_units_per_hour", Measure::kCount},
    {"bytes_per_gradient", Measure::kBytes},
    {"bytes_per_parameter", Measure::kBytes},
    {"cost", Measure::kMoney},
    {"energy", Measure::kEnergy},
    {"epoch_cost", Measure::kMoney},
    {"epoch_time", Measure::kTime},
    {"estimate_error", Measure::kRatio},
    {"failing_batch", Measure::kCount},
    {"fits", Measure::kOutcome},
    {"flops_per_step", Measure::kFlops},
    {"forward_time", Measure::kTime},
    {"gemm_share", Measure::kRatio},
    {"hbm_traffic", Measure::kBytes},
    {"host_memory", Measure::kBytes},
    {"kernel_time", Measure::kTime},
    {"largest_batch", Measure::kCount},
    {"latency", Measure::kTime},
    {"launches", Measure::kCount},
    {"layer_time", Measure::kTime},
    {"loss", Measure::kRatio},
    {"matrix_unit", Measure::kCount},
    {"mean_power", Measure::kPower},
    {"memory_capacity", Measure::kBytes},
    {"memory_used", Measure::kBytes},
    {"mfu", Measure::kRatio},
    {"normalised.cost", Measure::kRatio},
    {"normalised.energy", Measure::kRatio},
    {"normalised.occupancy", Measure::kRatio},
    {"normalised.time", Measure::kRatio},
    {"occupancy", Measure::kRatio},
    {"optimizer_time", Measure::kTime},
    {"peak_bandwidth", Measure::kBandwidth},
    {"peak_compute", Measure::kComputeRate},
    {"peak_memory", Measure::kBytes},
    {"price", Measure::kPrice},
    {"ratio", Measure::kRatio},
    {"run_time", Measure::kTime},
    {"samples_in_run", Measure::kCount},
    {"score", Measure::kRatio},
    {"speedup", Measure::kRatio},
    {"step_time", Measure::kTime},
    {"swap", Measure::kBytes},
    {"throughput", Measure::kSamplesPerSecond},
    {"token_length", Measure::kCount},
    {"token_rate", Measure::kTokensPerSecond},
    {"utilisation.bandwidth", Measure::kRatio},
    {"utilisation.dma", Measure::kRatio},
    {"utilisation.scalar", Measure::kRatio},
    {"utilisation.sm", Measure::kRatio},
    {"utilisation.tensor", Measure::kRatio},
    {"utilisation.vector", Measure::kRatio},
    {"weight.cost", Measure::kRatio},
    {"weight.energy", Measure::kRatio},
    {"weight.occupancy", Measure::kRatio},
    {"weight.time", Measure::kRatio},
});

constexpr auto kGroups = std::to_array<std::string_view>({
    "accuracy",
    "active_ratio",
    "adan_kernels",
    "adan_steps",
    "baseline_optimised",
    "cerebras",
    "cost",
    "data_parallel",
    "energy",
    "facts",
    "fits",
    "gpu_run_times",
    "gpu_step_times",
    "graphcore",
    "groq",
    "kernel_times",
    "launches",
    "memory",
    "occupancy",
    "profile_ratios",
    "recursion",
    "sambanova",
    "score",
    "speedups",
    "tpu_run_times",
    "trainium_run_times",
    "trainium_step",
    "utilisation_by_batch",
});

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
    // Of its memory; its time is of an eager list that is traced anew every
    // step (published_runs.cc).
    {"pytorch-xla", model::Fusion::kCompiled},
    {"sambaflow", model::Fusion::kCompiled},
    {"tensorflow", model::Fusion::kCompiled},
});

template <class Table, class Name>
std::string Unknown(std::string_view what,
                    std::string_view text,
                    const Table& table,
                    Name name) {
  std::vector<std::string> known;
  known.reserve(std::size(table));
  for (const auto& entry : table) known.emplace_back(name(entry));
  return fmt::format(
      "unknown {} \"{}\"; known: {}", what, text, fmt::join(known, ", "));
}

std::optional<Dimension> DimensionOf(Measure measure) {
  switch (measure) {
    case Measure::kBytes:
      return Dimension::kBytes;
    case Measure::kBandwidth:
      return Dimension::kBandwidth;
    case Measure::kFlops:
      return Dimension::kFlops;
    case Measure::kComputeRate:
      return Dimension::kComputeRate;
    case Measure::kTime:
      return Dimension::kTime;
    case Measure::kPower:
      return Dimension::kPower;
    case Measure::kEnergy:
      return Dimension::kEnergy;
    case Measure::kMoney:
      return Dimension::kMoney;
    case Measure::kPrice:
      return Dimension::kPrice;
    case Measure::kRatio:
    case Measure::kCount:
    case Measure::kSamplesPerSecond:
    case Measure::kTokensPerSecond:
    case Measure::kIntensity:
    case Measure::kOutcome:
      return std::nullopt;
  }
  return std::nullopt;
}

// Base units in one `unit`; nullopt: not a unit of this measure.
std::optional<double> UnitScale(Measure measure, std::string_view unit) {
  if (const std::optional<Dimension> dimension = DimensionOf(measure)) {
    return hardware::ParseBase(*dimension, fmt::format("1 {}", unit));
  }
  const auto is = [unit](std::string_view only) -> std::optional<double> {
    if (unit == only) return 1.0;
    return std::nullopt;
  };
  switch (measure) {
    case Measure::kRatio:
      return unit == "%" ? std::optional(0.01) : is("");
    case Measure::kCount:
      return is("");
    case Measure::kSamplesPerSecond:
      return is("samples/s");
    case Measure::kTokensPerSecond:
      return is("tokens/s");
    case Measure::kIntensity:
      return is("FLOP/B");
    default:
      return std::nullopt;
  }
}

std::string_view ExampleOf(Measure measure) {
  switch (measure) {
    case Measure::kRatio:
      return "a share such as \"18.48 %\" or a bare ratio";
    case Measure::kCount:
      return "a bare number";
    case Measure::kSamplesPerSecond:
      return "a rate such as \"583.9 samples/s\"";
    case Measure::kTokensPerSecond:
      return "a rate such as \"300000 tokens/s\"";
    case Measure::kIntensity:
      return "an intensity such as \"69 FLOP/B\"";
    case Measure::kOutcome:
      return "fits, \"does not fit\" or \"not supported\"";
    default:
      return hardware::Description(*DimensionOf(measure));
  }
}

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

const Quantity& FindQuantity(std::string_view name) {
  for (const Quantity& quantity : kQuantities) {
    if (quantity.name == name) return quantity;
  }
  throw InputError(Unknown(
      "quantity", name, kQuantities, [](const auto& q) { return q.name; }));
}

model::Fusion FusionOfStack(const std::string& name) {
  for (const StackName& stack : kStacks) {
    if (stack.name == name) return stack.fusion;
  }
  throw InputError(Unknown(
      "stack", name, kStacks, [](const auto& stack) { return stack.name; }));
}

std::string ReadGroup(const std::string& name) {
  if (std::find(kGroups.begin(), kGroups.end(), name) != kGroups.end()) {
    return name;
  }
  throw InputError(Unknown(
      "group", name, kGroups, [](std::string_view group) { return group; }));
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
  const auto head = reader.Parsed("head", model::HeadFromText);
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
  optimizer.kind = map.Parsed("name", model::OptimizerKindFromText);
  if (map.Has("implementation")) {
    optimizer.implementation =
        map.Parsed("implementation", model::OptimizerImplementationFromText);
  }
  if (map.Has("access")) {
    optimizer.single_tensor =
        map.Choice<bool>("access", {{"single", true}, {"multi", false}});
  }
  return optimizer;
}

// Counts of one core in the run are sequences of one core: a TPU chip has two.
std::optional<int64_t> ReadBatch(const RunReader& reader,
                                 const PublishedRun& run) {
  const std::optional<int64_t> batch = reader.Count("batch");
  const std::optional<int64_t> per_core = reader.Count("batch_per_core");
  if (!per_core) return batch;
  const Reader& map = reader.At("batch_per_core");
  if (batch) map.Fail("batch_per_core", "expected this or batch, got both");
  if (!run.device) {
    map.Fail("batch_per_core", "expected a device beside it, got none");
  }
  return *per_core * hardware::DeviceCatalog::Shipped().Find(*run.device).cores;
}

PublishedRun ReadRun(const std::string& name,
                     const Reader& map,
                     const Reader* workload,
                     std::string position) {
  const RunReader reader(map, workload);
  PublishedRun run;
  run.name = name;
  run.position = std::move(position);
  ReadArchitecture(reader, run);
  if (reader.At("work").Has("work")) {
    run.work = reader.At("work").Choice<model::Work>(
        "work", {{"forward", model::Work::kForward}});
  }
  run.device = reader.Parsed("device", KnownDevice);
  run.or_device = reader.Parsed("or_device", KnownDevice);
  run.device_count = reader.Count("device_count").value_or(1);
  run.batch = ReadBatch(reader, run);
  run.sequence_length = reader.Count("sequence_length");
  run.epochs = reader.Count("epochs");
  run.train_samples = reader.Parsed("train_samples", ReadCounts);
  run.samples_in_run = reader.Count("samples_in_run");
  run.steps = reader.Count("steps");
  run.precision = reader.Parsed("precision", model::PrecisionFromText);
  if (map.Has("optimizer")) run.optimizer = ReadOptimizer(map.Map("optimizer"));
  run.fusion = reader.Parsed("stack", FusionOfStack);
  run.stack = reader.At("stack").OptionalText("stack");
  if (map.Has("against")) map.Parsed("against", FusionOfStack);
  run.against = map.OptionalText("against");
  run.price = map.OptionalPrice("price");
  run.setting = map.OptionalText("setting");
  run.grid = map.OptionalInteger("grid", 1, kMany);
  run.block = map.OptionalInteger("block", 1, kMany);
  run.same_as = map.OptionalText("same_as");
  run.inferred = map.OptionalTexts("inferred");
  if (workload != nullptr) {
    for (const std::string& key : workload->OptionalTexts("inferred")) {
      run.inferred.push_back(key);
    }
  }
  for (const std::string& key : run.inferred) {
    // "price" and the like: what is inferred must be there.
    if (!reader.At(key).Has(key)) {
      map.Fail("inferred",
               fmt::format("expected a key of the run, got \"{}\"", key));
    }
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
  row.group = map.Parsed("group", ReadGroup);
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
  Aliases aliases;
  std::set<int64_t> corrections;
};

OpenFile OpenPublished(const std::string& path) {
  OpenFile file{Reader::FromFile(path), {}, {}};
  const Reader& root = file.root;
  if (root.Text("schema") != kSchema) {
    root.Fail("schema",
              fmt::format(
                  "expected \"{}\", got \"{}\"", kSchema, root.Text("schema")));
  }
  root.Text("title");
  root.Text("document");
  const Reader sources = root.Map("sources");
  for (const std::string& key : sources.Keys()) {
    const Reader source = sources.Map(key);
    file.aliases[key] = {source.Text("records"), source.Text("ref")};
  }
  return file;
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
  const Reader runs = file.root.Map("runs");
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
    PublishedRun run = ReadRun(name, map, workload, runs.Position(name));
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
  for (const Reader& map : file.root.Maps("rows")) {
    PublishedRow row = ReadRow(map, file.aliases);
    if (!published.runs.contains(row.run)) {
      map.Fail("run", fmt::format("unknown run \"{}\"", row.run));
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

}  // namespace

PublishedValue ParsePublishedValue(std::string_view quantity,
                                   std::string_view text) {
  const Measure measure = FindQuantity(quantity).measure;
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
  if (measure == Measure::kOutcome) {
    value.kind = PublishedValue::Kind::kOutcome;
    if (text != "fits" && text != "does not fit" && text != "not supported") {
      throw InputError(
          fmt::format("expected {}, got \"{}\"", ExampleOf(measure), text));
    }
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
  for (const auto& [name, run] : published.runs) {
    if (run.same_as && !published.runs.contains(*run.same_as)) {
      throw InputError(fmt::format(
          "{}: same_as: unknown run \"{}\"", run.position, *run.same_as));
    }
  }
  std::map<std::string, std::string> seen;
  for (const OpenFile& file : files) ReadRows(file, seen, published);
  for (const OpenFile& file : files) file.root.Finish();
  return published;
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

}  // namespace trainfare::scenarios
