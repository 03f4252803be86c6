#include "calibrate/records/import/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "calibrate/fit/step_model.h"
#include "hardware/catalog/device.h"
#include "hardware/files/csv_file.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/text_file.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/limits.h"
#include "model/nearest.h"

namespace trainfare::calibrate {
namespace {

using hardware::CsvFile;
using hardware::CsvRow;
using model::Architecture;
using model::Fusion;
using model::Head;
using model::InputError;
using model::OptimizerImplementation;
using model::OptimizerKind;
using model::Work;
using model::Workload;

// Why a row is left out; counted, not an error.
struct Unused {
  std::string reason;
};

bool Contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

std::string Lowered(std::string_view text) {
  std::string lowered(text);
  for (char& letter : lowered) {
    letter =
        static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return lowered;
}

// --- Rules: stack
// -------------------------------------------------------------
//
// How a framework turns the graph into kernels, from the words of `framework`
// and `stack_notes`. The first rule whose words stand there decides. Kept in
// step with docs/guide/measurements.md, "Tables".
struct StackRule {
  std::string_view words;
  Fusion fusion;
  std::string_view why;
};
constexpr auto kStackRules = std::to_array<StackRule>({
    {"DeepSpeed stochastic", Fusion::kLightSeq, "hand-fused layers"},
    {"DeepSpeed deterministic", Fusion::kLightSeq, "hand-fused layers"},
    {"DeepSpeed fused transformer", Fusion::kLightSeq, "hand-fused layers"},
    {"DeepSpeed transformer kernel", Fusion::kLightSeq, "hand-fused layers"},
    {"LightSeq", Fusion::kLightSeq, "hand-fused layers"},
    {"FasterTransformer", Fusion::kLightSeq, "hand-fused layers"},
    {"torch.compile", Fusion::kCompiled, "Inductor"},
    {"NVFuser", Fusion::kCompiled, "TorchScript with nvFuser"},
    {"XLA", Fusion::kCompiled, "TensorFlow with XLA"},
    {"NeuronX", Fusion::kCompiled, "the Neuron compiler"},
    {"HPU", Fusion::kCompiled, "the graph compiler of SynapseAI"},
    {"optimum-habana", Fusion::kCompiled, "the graph compiler of SynapseAI"},
    {"Megatron", Fusion::kLightSeq, "fused softmax, bias and GELU kernels"},
    {"", Fusion::kEager, "one kernel an operation"},
});

Fusion FusionOf(std::string_view words) {
  for (const StackRule& rule : kStackRules) {
    if (Contains(words, rule.words)) return rule.fusion;
  }
  return Fusion::kEager;
}

// Stacks whose half-precision runs keep fp16 weights with fp32 masters instead
// of casting in every pass: Apex O2 and what was built on it.
constexpr auto kNarrowWeights = std::to_array<std::string_view>(
    {"apex", "O2 AMP", "DeepSpeed", "Megatron", "NVIDIA BERT", "Bing"});

bool KeepsNarrowWeights(std::string_view words) {
  return std::any_of(
      kNarrowWeights.begin(), kNarrowWeights.end(), [&](std::string_view word) {
        return Contains(words, word);
      });
}

// --- Rules: models
// ------------------------------------------------------------
//
// What is not a Transformer of the kinds in model/architecture.h, by words of
// the model's name in lower case.
struct RefusedModel {
  std::string_view word;
  std::string_view reason;
};
constexpr auto kRefusedModels = std::to_array<RefusedModel>({
    {"transformer-xl", "Transformer-XL: recurrent memory, adaptive softmax"},
    {"gnmt", "GNMT: an LSTM"},
    {"switch", "mixture of experts"},
    {"moe", "mixture of experts"},
    {"albert", "ALBERT: layers share their weights"},
    {"generator+discriminator", "ELECTRA pre-training: two models in a step"},
    {"bart", "BART: no such encoder-decoder yet"},
    {"llama", "Llama: gated feed-forward, grouped attention"},
    {"clip", "CLIP: two towers"},
    {"vit", "vision model"},
    {"perceiver", "Perceiver"},
    {"perveriver", "Perceiver"},
    {"open-", "MLPerf open division: another model"},
    {"not stated", "model size not stated"},
    {"assumed", "model size not stated"},
});

struct ModelName {
  std::string_view table;  // in lower case, '_' as '-'
  std::string_view preset;
};
constexpr auto kModelNames = std::to_array<ModelName>({
    {"bert-base", "bert-base-uncased"},
    {"bert-large", "bert-large-uncased"},
    {"bert-base (biobert)", "bert-base-cased"},
    // The discriminator is BERT-base with another head.
    {"electra-base", "bert-base-uncased"},
    {"google/electra-base-discriminator", "bert-base-uncased"},
    {"xlm-roberta-base", "roberta-base"},
    {"distilbert-base-uncased", "distilbert-base-uncased"},
    {"roberta-base", "roberta-base"},
    {"roberta-large", "roberta-large"},
    {"gpt2", "gpt2"},
    {"gpt2-medium", "gpt2-medium"},
    {"gpt2-large", "gpt2-large"},
    {"gpt2-xl", "gpt2-xl"},
});
constexpr int64_t kXlmRobertaVocabulary = 250002;
// GPT-2's own, where a table does not say.
constexpr int64_t kGptVocabulary = 50257;

struct Row {
  const CsvFile& table;
  const CsvRow& row;
  const std::string& file;

  const std::string& operator[](std::string_view column) const {
    return table.Field(row, column);
  }
  // framework and stack_notes as one text.
  std::string StackWords() const {
    return (*this)["framework"] + "; " + (*this)["stack_notes"];
  }
  [[noreturn]] void Fail(std::string_view column,
                         std::string_view expected) const {
    throw InputError(
        file,
        row.line,
        0,
        fmt::format(
            "{}: expected {}, got \"{}\"", column, expected, (*this)[column]));
  }
  // nullopt when the cell says nothing.
  std::optional<int64_t> Count(std::string_view column) const {
    const std::string& text = (*this)[column];
    if (text.empty()) return std::nullopt;
    const auto value = hardware::ParseInteger(text);
    if (!value || *value < 1 || *value > model::kLargestDimension) {
      Fail(column,
           fmt::format("a count from 1 to {}", model::kLargestDimension));
    }
    return value;
  }
};

int64_t WholeNumber(const Row& row,
                    std::string_view column,
                    std::string_view what) {
  const std::string& text = row[column];
  if (text.empty()) throw Unused{fmt::format("{} not stated", what)};
  const auto value = hardware::ParseInteger(text);
  // "128+512", "22.75", "64 (seq128)": several runs or an average.
  if (!value || *value < 1) {
    throw Unused{fmt::format("{} is not one whole number", what)};
  }
  return *value;
}

Architecture Decoder(const Row& row, std::string name) {
  const auto layers = row.Count("layers");
  const auto hidden = row.Count("hidden");
  const auto heads = row.Count("heads");
  if (!layers || !hidden || !heads) {
    throw Unused{"model dimensions not stated"};
  }
  Architecture a = model::FindArchitecture("gpt2");
  a.separate_projections = name.substr(0, 3) == "opt";
  a.name = std::move(name);
  a.layers = *layers;
  a.hidden = *hidden;
  a.heads = *heads;
  a.intermediate = row.Count("intermediate").value_or(4 * *hidden);
  a.vocabulary = row.Count("vocab").value_or(kGptVocabulary);
  a.positions = std::clamp(hardware::ParseInteger(row["seq_len"]).value_or(0),
                           a.positions,
                           model::kLongestSequence);
  return a;
}

Architecture ArchitectureOf(const Row& row) {
  std::string name = Lowered(row["model"]);
  std::replace(name.begin(), name.end(), '_', '-');
  if (name.empty()) throw Unused{"model not stated"};
  for (const RefusedModel& refused : kRefusedModels) {
    if (Contains(name, refused.word)) {
      throw Unused{"model: " + std::string(refused.reason)};
    }
  }
  for (const ModelName& known : kModelNames) {
    if (known.table != name) continue;
    Architecture a = model::FindArchitecture(known.preset);
    if (name == "xlm-roberta-base") {
      a.name = name;
      a.vocabulary = kXlmRobertaVocabulary;
    }
    // Columns that say otherwise than the name would be another model.
    const auto differs = [&](std::string_view column, int64_t value) {
      return row.Count(column).value_or(value) != value;
    };
    if (differs("hidden", a.hidden) || differs("layers", a.layers) ||
        differs("heads", a.heads) || differs("intermediate", a.intermediate)) {
      throw InputError(
          row.file,
          row.row.line,
          0,
          fmt::format("model: the dimensions are not those of {}", name));
    }
    return a;
  }
  if (name.substr(0, 3) == "gpt" || name.substr(0, 3) == "opt") {
    return Decoder(row, std::move(name));
  }
  throw Unused{fmt::format("model: {} is not known", row["model"])};
}

// --- Rules: what is run
// -------------------------------------------------------

struct Measured {
  Work work = Work::kTraining;
  Quantity quantity = Quantity::kStep;
};

Measured WorkOf(const Row& row) {
  const std::string& notes = row["notes"];
  if (Contains(row["stack_notes"], "decoding")) {
    throw Unused{"autoregressive decoding"};
  }
  if (Contains(notes, "FORWARD ONLY part")) {
    return {Work::kForwardBackward, Quantity::kForward};
  }
  if (Contains(notes, "BACKWARD ONLY part")) {
    return {Work::kForwardBackward, Quantity::kBackward};
  }
  if (row["task"] == "inference") return {Work::kForward, Quantity::kStep};
  if (Contains(notes, "no optimizer step") ||
      Contains(row["stack_notes"], "optimizer step excluded")) {
    return {Work::kForwardBackward, Quantity::kStep};
  }
  return {Work::kTraining, Quantity::kStep};
}

// The data of BERT pre-training hold at most 20 masked positions at length
// 128 and 80 at 512 (NVIDIA DeepLearningExamples, MLPerf); 15 % otherwise.
int64_t MaskedPositions(int64_t length) {
  if (length == 128) return 20;
  if (length == 512) return 80;
  return std::max<int64_t>(1, length * 15 / 100);
}

void SetHead(const Row& row, Workload& workload) {
  Architecture& a = workload.architecture;
  const std::string words = Lowered(row["stack_notes"] + " " + row["notes"]);
  if (a.family == model::Family::kDecoder) {
    a.head = Head::kCausalLanguageModel;
  } else if (row["task"] == "pretrain") {
    a.head = Head::kPreTraining;
    a.pooler = true;
    // Hugging Face's model predicts at every position (NeuSight's script), and
    // so did NVIDIA's in PyTorch until 2022 (its modeling.py).
    if (!Contains(words, "huggingface eager") &&
        !Contains(words, "huggingface; torch.compile") &&
        !Contains(row["framework"], "HuggingFace BERT") &&
        !Contains(row["framework"], "NVIDIA BERT") &&
        !(row["framework"] == "PyTorch" && Contains(words, "apex"))) {
      workload.predictions_per_sequence =
          MaskedPositions(workload.sequence_length);
    }
  } else if (Contains(words, "squad") || Contains(words, "ner ")) {
    a.head = Head::kQuestionAnswering;
  } else if (Contains(words, "encoder forward latency")) {
    a.head = Head::kNone;
  } else {
    a.head = Head::kSequenceClassification;
  }
}

void SetOptimizer(const Row& row, Workload& workload) {
  if (workload.work != Work::kTraining) {
    workload.optimizer.kind = OptimizerKind::kNone;
    return;
  }
  const std::string words = row.StackWords();
  workload.optimizer.kind = Contains(words, "LAMB") || Contains(words, "Lamb")
                                ? OptimizerKind::kLamb
                                : OptimizerKind::kAdamW;
  OptimizerImplementation& implementation = workload.optimizer.implementation;
  if (Contains(words, "FusedAdam + O2 AMP when fp16") ||
      Contains(words, "SQuAD v1.1 fine-tuning; apex FusedAdam")) {
    // run_squad.py takes apex's FusedAdam for fp16 and BertAdam otherwise.
    if (workload.precision == model::Precision::kFp16) {
      implementation = OptimizerImplementation::kFused;
    } else {
      implementation = OptimizerImplementation::kForLoop;
      workload.optimizer.kind = OptimizerKind::kBertAdam;
    }
  } else if (workload.stack.fusion != Fusion::kEager ||
             Contains(words, "apex") || Contains(words, "fused AdamW") ||
             Contains(words, "FusedAdam") || Contains(words, "NVIDIA BERT")) {
    implementation = OptimizerImplementation::kFused;
  } else {
    implementation = OptimizerImplementation::kForLoop;
  }
}

int64_t AccumulationOf(const Row& row, Work work) {
  const std::string& text = row["grad_accum"];
  if (text.empty()) {
    if (work == Work::kTraining && row["task"] == "pretrain") {
      throw Unused{"gradient accumulation not stated"};
    }
    return 1;
  }
  return WholeNumber(row, "grad_accum", "gradient accumulation");
}

// What the notes of a row say against it.
void RefuseDoubtful(const Row& row) {
  const std::string& notes = row["notes"];
  if (Contains(notes, "BINNED")) {
    throw Unused{"length-binned data: real length not known"};
  }
  if (Contains(row["stack_notes"], "MLPerf")) {
    throw Unused{"unpadded or packed sequences: real length not known"};
  }
  if (Contains(notes, "SUSPECT")) throw Unused{"doubted by its source's notes"};
  if (Contains(notes, "INCONSISTENT") &&
      // There the throughput is right and the latency is not.
      !(Contains(notes, "trust throughput") && row["metric"] != "step_ms")) {
    throw Unused{"inconsistent by its notes"};
  }
  const std::string stack = Lowered(row["stack_notes"]);
  constexpr auto kParallel = std::to_array<std::string_view>(
      {"tensor parallel", "pipeline parallel", "model parallel size"});
  for (const std::string_view words : kParallel) {
    if (!Contains(stack, words)) continue;
    if (Contains(stack, "model parallel size 1 ")) continue;
    throw Unused{"tensor or pipeline parallel"};
  }
  for (const std::string_view column :
       {"tensor_parallel", "pipeline_parallel"}) {
    if (row.Count(column).value_or(1) > 1) {
      throw Unused{"tensor or pipeline parallel"};
    }
  }
}

enum class Metric { kTime, kSequences, kTokens };

Metric MetricOf(const Row& row) {
  const std::string& metric = row["metric"];
  if (metric == "step_ms") return Metric::kTime;
  if (metric == "sequences_per_s" || metric == "samples_per_s") {
    return Metric::kSequences;
  }
  if (metric == "tokens_per_s") return Metric::kTokens;
  throw Unused{fmt::format("metric {}: no time of a step",
                           metric.empty() ? std::string("(none)") : metric)};
}

// Catalog name where there is one, else as the table says.
std::string DeviceName(const std::string& text) {
  const auto known = [](std::string_view name) -> const hardware::Device* {
    // "cpu" is this machine, never one of a table.
    return name == "cpu" ? nullptr
                         : hardware::DeviceCatalog::Shipped().TryFind(name);
  };
  if (const hardware::Device* device = known(text)) return device->name;
  // "V100-32GB (assumed; ...)": a remark about the name, not part of it.
  const size_t remark = text.find(" (assumed");
  if (remark != std::string::npos) {
    const std::string bare = text.substr(0, remark);
    const hardware::Device* device = known(bare);
    return device != nullptr ? device->name : bare;
  }
  return text;
}

struct UsedRow {
  Observation observation;
  Metric metric = Metric::kTime;
  std::string run;  // rows alike in it are of one run or its repetitions
};

UsedRow Read(const Row& row) {
  UsedRow used;
  used.metric = MetricOf(row);
  if (row["task"] == "mt") throw Unused{"batch counted in tokens"};
  Observation& observation = used.observation;
  Workload& workload = observation.workload;
  workload.architecture = ArchitectureOf(row);
  RefuseDoubtful(row);
  const Measured measured = WorkOf(row);
  workload.work = measured.work;
  observation.quantity = measured.quantity;
  workload.sequence_length = WholeNumber(row, "seq_len", "sequence length");
  workload.batch = WholeNumber(row, "batch_per_device", "batch per device");
  const std::string& precision = row["precision"];
  if (precision.empty()) throw Unused{"precision not stated"};
  try {
    workload.precision = model::PrecisionFromText(precision);
  } catch (const InputError&) {
    throw Unused{fmt::format("precision {}", precision)};
  }
  workload.stack.fusion = FusionOf(row.StackWords());
  workload.stack.narrow_weights =
      model::BytesPerElement(workload.precision) < 4 &&
      KeepsNarrowWeights(row.StackWords());
  workload.accumulation = AccumulationOf(row, workload.work);
  workload.gradient_checkpointing =
      workload.work == Work::kTraining &&
      (Contains(row["stack_notes"], "full recomputation") ||
       Contains(row["stack_notes"], "full activation recomputation"));
  SetHead(row, workload);
  SetOptimizer(row, workload);
  try {
    model::Validate(workload);
  } catch (const InputError& error) {
    throw InputError(row.file, row.row.line, 0, error.what());
  }

  const int64_t devices = row.Count("n_devices").value_or(1);
  const auto value = hardware::ParseNumber(row["value"]);
  if (!value || *value <= 0.0) row.Fail("value", "a number above 0");
  const auto sequences = static_cast<double>(model::CheckedProduct(
      {workload.batch, workload.accumulation, devices}, "batch_per_device"));
  double seconds = 0.0;
  switch (used.metric) {
    case Metric::kTime:
      seconds = *value * 1e-3;
      break;
    case Metric::kSequences:
      seconds = sequences / *value;
      break;
    case Metric::kTokens:
      seconds =
          sequences * static_cast<double>(workload.sequence_length) / *value;
      break;
  }
  observation.measured = model::Second(seconds);
  if (!model::IsPlausible(observation.measured)) {
    row.Fail("value",
             fmt::format("a step between {} s and {} s",
                         model::kShortestTime,
                         model::kLongestTime));
  }
  // Replicas of a forward pass do not talk to each other.
  observation.device_count = workload.work == Work::kForward ? 1 : devices;
  const std::string& device = row["device"];
  if (device.empty()) throw Unused{"device not stated"};
  observation.device = DeviceName(device);
  observation.framework = row["framework"];
  // Read off a figure.
  if (Contains(row["notes"], "DIGITISED")) observation.relative_noise = 0.01;
  observation.group = hardware::Stem(row.file);
  used.run = fmt::format("{}|{}|{}|{}|{}|{}|{}",
                         row["source"],
                         row["source_file"],
                         row["system_name"],
                         device,
                         devices,
                         row.StackWords(),
                         Describe(workload));
  return used;
}

}  // namespace

Table ParseTable(std::string_view text, const std::string& name) {
  const CsvFile csv = CsvFile::Parse(text, name, CsvFile::Rows::kAsHeader);
  constexpr auto kRequired =
      std::to_array<std::string_view>({"device",
                                       "model",
                                       "seq_len",
                                       "batch_per_device",
                                       "precision",
                                       "metric",
                                       "value"});
  for (const std::string_view column : kRequired) {
    if (csv.TryColumn(column)) continue;
    throw InputError(
        name,
        1,
        0,
        fmt::format("expected a column \"{}\"; a table of "
                    "measurements has: {}",
                    column,
                    model::JoinNames({kRequired.begin(), kRequired.end()})));
  }
  Table table;
  table.rows = static_cast<int64_t>(csv.rows().size());
  std::vector<UsedRow> used;
  std::map<std::string, std::string> first_of;  // run to its first row
  std::set<std::string> timed;                  // runs with a time
  for (const CsvRow& csv_row : csv.rows()) {
    const Row row{csv, csv_row, name};
    try {
      UsedRow read = Read(row);
      read.observation.label =
          first_of.emplace(read.run, fmt::format("{}:{}", name, csv_row.line))
              .first->second;
      if (read.metric == Metric::kTime) timed.insert(read.run);
      used.push_back(std::move(read));
    } catch (const Unused& unused) {
      ++table.unused[unused.reason];
    }
  }
  // A run's throughput and its step time are one measurement; the throughput
  // may include its start-up.
  for (UsedRow& row : used) {
    if (row.metric != Metric::kTime && timed.contains(row.run)) {
      ++table.unused["throughput of a run whose step time is there too"];
    } else {
      table.observations.push_back(std::move(row.observation));
    }
  }
  return table;
}

Table ReadTable(const std::string& path) {
  return ParseTable(hardware::ReadTextFile(path, "a CSV file"), path);
}

}  // namespace trainfare::calibrate
