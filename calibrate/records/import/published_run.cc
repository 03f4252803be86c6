#include "calibrate/records/import/published_run.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "calibrate/records/import/table_rules.h"
#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/limits.h"
#include "model/presets.h"

namespace trainfare::calibrate {
namespace {

using hardware::Reader;
using model::InputError;

model::Fusion FusionOfStack(const std::string& name) {
  const ByWord<model::Fusion>& stacks = RulesOfTables().published_stacks;
  const auto found = stacks.find(name);
  if (found != stacks.end()) return found->second;
  std::vector<std::string_view> known;
  for (const auto& stack : stacks) known.push_back(stack.first);
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
    return At(key).OptionalInteger(key, 1, model::kMostSamples);
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

// What tells a reader more of a run, and no model asks for: which other device
// its label fits, what else was varied.
void CheckRemarks(const RunReader& reader, const Reader& map) {
  reader.Parsed("or_device", KnownDevice);
  map.OptionalText("setting");
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

}  // namespace

PublishedRun ReadPublishedRun(const Reader& map,
                              const Reader* workload,
                              const RunPlace& place) {
  const RunReader reader(map, workload);
  PublishedRun run;
  run.name = place.name;
  run.position = place.position;
  run.document = place.document;
  ReadArchitecture(reader, run);
  if (reader.At("work").Has("work")) {
    run.work = reader.At("work").Choice<model::Work>(
        "work", {{"forward", model::Work::kForward}});
  }
  run.device = reader.Parsed("device", KnownDevice);
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
  CheckRemarks(reader, map);
  run.same_as = map.OptionalText("same_as");
  run.assumed = ReadAssumed(map, reader);
  if (workload != nullptr) {
    // What the run says itself nobody assumes of it.
    for (auto& [key, why] : ReadAssumed(*workload, reader)) {
      if (!map.Has(key)) run.assumed.emplace(key, why);
    }
  }
  return run;
}

}  // namespace trainfare::calibrate
