#include "calibrate/records/import/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "calibrate/records/import/system_name.h"
#include "calibrate/records/import/table_adapter.h"
#include "calibrate/records/import/table_figures.h"
#include "calibrate/records/import/table_model.h"
#include "calibrate/records/import/table_network.h"
#include "calibrate/records/import/table_row.h"
#include "calibrate/records/import/table_rules.h"
#include "calibrate/records/observation.h"
#include "hardware/catalog/device.h"
#include "hardware/files/csv_file.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/text_file.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/fields.h"
#include "model/limits.h"
#include "model/nearest.h"
#include "model/parallel.h"
#include "model/trainable.h"
#include "model/validate.h"

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
using model::Shard;
using model::Work;
using model::Workload;

Fusion FusionOf(const TableRow& row) {
  const std::string words = Lowered(row.StackWords());
  for (const StackRule& rule : RulesOfTables().stacks) {
    if (Contains(words, rule.words)) return rule.fusion;
  }
  const std::string& framework = row["framework"];
  if (!framework.empty() &&
      !ContainsAny(words, RulesOfTables().eager_frameworks)) {
    throw Unused{fmt::format("framework {} is not known", framework)};
  }
  return Fusion::kEager;
}

// --- Rules: what is run ---

struct Measured {
  Work work = Work::kTraining;
  Quantity quantity = Quantity::kStep;
};

Measured WorkOf(const TableRow& row) {
  const TimedParts& parts = RulesOfTables().timed_parts;
  const std::string notes = row.AllNotes();
  if (ContainsAny(notes, parts.forward)) {
    return {Work::kForwardBackward, Quantity::kForward};
  }
  if (ContainsAny(notes, parts.backward)) {
    return {Work::kForwardBackward, Quantity::kBackward};
  }
  if (row["task"] == "inference") return {Work::kForward, Quantity::kStep};
  if (ContainsAny(notes, parts.passes)) {
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

// Whether pre-training predicts every position, not masked ones alone.
bool PredictsAll(const TableRow& row, std::string_view words) {
  const std::vector<EveryPosition>& rules = RulesOfTables().every_position;
  return std::any_of(
      rules.begin(), rules.end(), [&](const EveryPosition& rule) {
        return Contains(words, rule.words) &&
               Contains(row["framework"], rule.framework) &&
               (rule.framework_is.empty() ||
                row["framework"] == rule.framework_is);
      });
}

Head HeadOf(std::string_view words) {
  for (const HeadRule& rule : RulesOfTables().heads) {
    if (Contains(words, rule.words)) return rule.head;
  }
  return Head::kSequenceClassification;
}

void SetHead(const TableRow& row, Workload& workload) {
  Architecture& a = workload.architecture;
  const std::string words = Lowered(row["stack_notes"] + " " + row["notes"]);
  if (a.family == model::Family::kDecoder) {
    a.head = Head::kCausalLanguageModel;
  } else if (row["task"] == "pretrain") {
    a.head = Head::kPreTraining;
    a.pooler = true;
    if (!PredictsAll(row, words)) {
      workload.predictions_per_sequence =
          MaskedPositions(workload.sequence_length) * workload.documents;
    }
  } else {
    a.head = HeadOf(words);
  }
}

OptimizerKind OptimizerOf(std::string_view words) {
  for (const OptimizerRule& rule : RulesOfTables().optimizers) {
    if (Contains(words, rule.words)) return rule.kind;
  }
  return OptimizerKind::kAdamW;
}

void SetOptimizer(const TableRow& row, Workload& workload) {
  if (workload.work != Work::kTraining) {
    workload.optimizer.kind = OptimizerKind::kNone;
    return;
  }
  const std::string words = row.StackWords();
  if (ContainsAny(Lowered(row["stack_notes"]),
                  RulesOfTables().eight_bit_states)) {
    workload.optimizer.state_bits = 8;
  }
  workload.optimizer.kind = OptimizerOf(words);
  OptimizerImplementation& implementation = workload.optimizer.implementation;
  if (ContainsAny(words, RulesOfTables().bert_adam_but_in_fp16)) {
    if (workload.precision == model::Precision::kFp16) {
      implementation = OptimizerImplementation::kFused;
    } else {
      implementation = OptimizerImplementation::kForLoop;
      workload.optimizer.kind = OptimizerKind::kBertAdam;
    }
    return;
  }
  const bool fused = ContainsAny(words, RulesOfTables().fused_update);
  const bool lists = ContainsAny(words, RulesOfTables().multi_tensor_update);
  if (fused || (!lists && workload.stack.fusion != Fusion::kEager)) {
    implementation = OptimizerImplementation::kFused;
  } else {
    implementation = lists ? OptimizerImplementation::kMultiTensor
                           : OptimizerImplementation::kForLoop;
  }
  if (workload.optimizer.kind == OptimizerKind::kMuon &&
      model::BytesPerElement(workload.precision) > 2) {
    throw Unused{fmt::format("not predicted: muon in {}",
                             model::ToText(workload.precision))};
  }
  // There is no kernel for all of it.
  if (workload.optimizer.kind == OptimizerKind::kAdafactor &&
      implementation == OptimizerImplementation::kFused) {
    implementation = OptimizerImplementation::kMultiTensor;
  }
}

int64_t AccumulationOf(const TableRow& row, const Workload& workload) {
  if (!row["grad_accum"].empty()) {
    return row.WholeNumber("grad_accum", "gradient accumulation");
  }
  // Sequences of a step over those of a micro-batch of all replicas.
  if (!row["global_batch"].empty() && !row["dp"].empty()) {
    const int64_t whole = row.WholeNumber("global_batch", "global batch");
    const int64_t replicas = row.WholeNumber("dp", "data-parallel replicas");
    if (whole % (workload.batch * replicas) == 0) {
      return whole / (workload.batch * replicas);
    }
    throw Unused{"the global batch does not divide over its replicas"};
  }
  if (ContainsAny(row["notes"], RulesOfTables().whole_batches)) return 1;
  if (workload.work == Work::kTraining && row["task"] == "pretrain") {
    throw Unused{"gradient accumulation not stated"};
  }
  return 1;
}

void SetPowerLimit(const TableRow& row, Workload& workload) {
  const std::string& text = row["power_limit_w"];
  if (text.empty()) return;
  const auto limit = hardware::ParseNumber(text);
  if (!limit || !(*limit > 0.0 && *limit <= model::kMostPower)) {
    row.Fail("power_limit_w",
             fmt::format("watts above 0, at most {}", model::kMostPower));
  }
  workload.power_limit = model::Watt(*limit);
}

void SetWeights(const TableRow& row, Workload& workload) {
  if (model::BytesPerElement(workload.precision) >= 4) return;
  // What adapters stand beside stays as it was loaded. FSDP wants one width
  // (trl's SFTTrainer: is_sharded_qlora).
  const bool widened =
      workload.trainable.base_bits > 0 &&
      !row["sharding"].starts_with("fsdp") &&
      ContainsAny(row["stack_notes"], RulesOfTables().widened_beside_adapters);
  if (widened) return;
  if (workload.trainable.lora_rank > 0) workload.stack.narrow_weights = true;
  const std::string words = row.StackWords();
  const std::string notes = words + "; " + row["notes"];
  for (const WeightRule& rule : RulesOfTables().narrow_weights) {
    const bool in_notes = rule.masters == model::Masters::kNone;
    if (!Contains(in_notes ? notes : words, rule.words)) continue;
    workload.stack.narrow_weights = true;
    workload.optimizer.masters = rule.masters;
    return;
  }
}

void SetLoss(const TableRow& row, model::Stack& stack) {
  const std::string words = Lowered(row.StackWords());
  for (const LossRule& rule : RulesOfTables().losses) {
    if (!Contains(words, rule.words)) continue;
    stack.loss = rule.loss;
    return;
  }
}

void SetAttention(const TableRow& row, model::Stack& stack) {
  const TableRules& rules = RulesOfTables();
  const std::string words = Lowered(row.StackWords());
  if (!ContainsAny(words, rules.flash_attention) &&
      !ContainsAny(Lowered(row["model"]), rules.flash_attention_models)) {
    return;
  }
  stack.attention = ContainsAny(words, rules.first_flash_attention)
                        ? model::Attention::kFlash1
                        : model::Attention::kFlash;
}

model::Precision UnstatedPrecisionOf(const TableRow& row) {
  for (const UnstatedPrecision& rule : RulesOfTables().unstated_precisions) {
    if (Contains(row["notes"], rule.words)) return rule.precision;
  }
  throw Unused{"precision not stated"};
}

void SetPrecision(const TableRow& row, Workload& workload) {
  const std::string precision = Lowered(row["precision"]);
  if (precision.empty()) {
    workload.precision = UnstatedPrecisionOf(row);
    return;
  }
  const auto rule = RulesOfTables().precisions.find(precision);
  if (rule != RulesOfTables().precisions.end() &&
      (rule->second.base_bits == 0 || workload.trainable.lora_rank > 0)) {
    workload.precision = rule->second.products;
    workload.trainable.base_bits = rule->second.base_bits;
    if (rule->second.scaling) workload.fp8.scaling = *rule->second.scaling;
    return;
  }
  try {
    workload.precision = model::FromText<model::Precision>(precision);
  } catch (const InputError&) {
    throw Unused{fmt::format("not predicted: precision {}", row["precision"])};
  }
  if (workload.precision == model::Precision::kFp8 &&
      workload.trainable.lora_rank > 0 &&
      ContainsAny(row["stack_notes"], RulesOfTables().fp8_bases)) {
    workload.trainable.base_bits = 8;
  }
}

// What scales products in fp8.
void SetFp8(const TableRow& row, Workload& workload) {
  if (workload.precision != model::Precision::kFp8) return;
  const auto& precisions = RulesOfTables().precisions;
  const auto named = precisions.find(Lowered(row["precision"]));
  // The precision's own name says it.
  if (named != precisions.end() && named->second.scaling) return;
  const std::string words = Lowered(row.StackWords());
  for (const Fp8Rule& rule : RulesOfTables().fp8) {
    if (!Contains(words, rule.words)) continue;
    workload.fp8.scaling = rule.scaling;
    workload.fp8.weight_gradients = rule.weight_gradients;
    break;
  }
  workload.fp8.gathered = model::ShardsParameters(workload.parallel) &&
                          ContainsAny(words, RulesOfTables().fp8_gathered);
}

// "full 21 layers": of so many blocks.
constexpr std::string_view kFullRecomputation = "full ";
constexpr std::string_view kRecomputedLayers = " layers";
std::optional<int64_t> LayersOf(std::string_view recompute) {
  if (!recompute.starts_with(kFullRecomputation) ||
      !recompute.ends_with(kRecomputedLayers)) {
    return std::nullopt;
  }
  recompute.remove_prefix(kFullRecomputation.size());
  recompute.remove_suffix(std::min(recompute.size(), kRecomputedLayers.size()));
  const auto number = hardware::ParseNumber(recompute);
  if (!number || *number != std::floor(*number) || *number < 1 ||
      *number > double{model::kMostLayers}) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*number);
}

void SetSelective(const TableRow& row, Workload& workload) {
  const std::string words = Lowered(row.StackWords());
  for (const SelectiveRule& rule : RulesOfTables().selective_recomputation) {
    if (!Contains(words, rule.words)) continue;
    switch (rule.of) {
      case Selective::kEverySecondBlock:
        workload.gradient_checkpointing = true;
        workload.checkpointed_blocks =
            std::max<int64_t>(1, workload.architecture.layers / 2);
        return;
      case Selective::kOperations:
        workload.operation_checkpointing = true;
        return;
      case Selective::kAttention:
        workload.attention_checkpointing = true;
        return;
    }
  }
  throw Unused{"not predicted: recomputation selective"};
}

void SetRecomputation(const TableRow& row, model::Workload& workload) {
  const std::string& recompute = row["recompute"];
  if (recompute.empty() || recompute == "not stated") {
    const std::vector<std::string>& recipes =
        RulesOfTables().recomputing_recipes;
    const bool recipe =
        row["sharding"] != "none" &&
        std::find(recipes.begin(), recipes.end(), row["framework"]) !=
            recipes.end();
    workload.gradient_checkpointing =
        recipe ||
        ContainsAny(row["stack_notes"], RulesOfTables().full_recomputation);
    for (const RecomputedBlocks& rule : RulesOfTables().recomputed_blocks) {
      if (!Contains(row["stack_notes"], rule.words)) continue;
      workload.gradient_checkpointing = true;
      workload.checkpointed_blocks = rule.blocks;
    }
  } else if (const auto layers = LayersOf(recompute)) {
    workload.gradient_checkpointing = true;
    workload.checkpointed_blocks = *layers;
  } else if (recompute == "full" || recompute == "none") {
    workload.gradient_checkpointing = recompute == "full";
  } else if (recompute == "selective") {
    SetSelective(row, workload);
  } else {
    throw Unused{fmt::format("not predicted: recomputation {}", recompute)};
  }
}

constexpr const char* kSharingNotStated =
    "how its devices share the model is not stated";

// Words of a sharding column, up to its first space.
constexpr auto kShards =
    std::to_array<std::pair<std::string_view, Shard>>({{"none", Shard::kNone},
                                                       {"zero1", Shard::kZero1},
                                                       {"zero2", Shard::kZero2},
                                                       {"zero3", Shard::kZero3},
                                                       {"fsdp", Shard::kFsdp}});

Shard ShardOf(const TableRow& row) {
  const std::string& sharding = row["sharding"];
  if (sharding.empty()) {
    for (const ShardRule& rule : RulesOfTables().sharding) {
      if (Contains(row["stack_notes"], rule.words)) return rule.shard;
    }
    throw Unused{kSharingNotStated};
  }
  const std::string_view word =
      std::string_view(sharding).substr(0, sharding.find(' '));
  for (const auto& [known, shard] : kShards) {
    if (known == word) return shard;
  }
  throw Unused{fmt::format("not predicted: {} over ranks", sharding)};
}

// What ranks divide of an update where nothing is sharded.
Shard DividedUpdateOf(const TableRow& row) {
  const std::string notes = Lowered(row["stack_notes"]);
  for (const ShardRule& rule : RulesOfTables().divided_updates) {
    if (Contains(notes, rule.words)) return rule.shard;
  }
  return Shard::kNone;
}

// How several devices share a model, where the table says so.
void SetOffload(const TableRow& row, model::Parallel& parallel) {
  const std::string notes = Lowered(row["stack_notes"]);
  for (const OffloadRule& words : RulesOfTables().offload) {
    if (!Contains(notes, words.words)) continue;
    parallel.offload = words.offload;
    parallel.offload_activations = words.activations;
    return;
  }
  if (Contains(notes, "offload")) {
    throw Unused{"not predicted: what is offloaded is not stated"};
  }
}

model::Parallel ParallelOf(const TableRow& row, int64_t devices) {
  model::Parallel parallel;
  SetOffload(row, parallel);
  if (!row.Has("sharding") || devices == 1) return parallel;
  parallel.shard = ShardOf(row);
  if (parallel.shard == Shard::kNone) parallel.shard = DividedUpdateOf(row);
  if (parallel.shard == Shard::kNone) return parallel;
  parallel.data = devices;
  return parallel;
}

// What the notes of a row say against it.
void RefuseDoubtful(const TableRow& row) {
  for (const Doubt& doubt : RulesOfTables().doubts) {
    const std::string& notes = row[doubt.column];
    if (!Contains(notes, doubt.words)) continue;
    const bool trusted = !doubt.but.empty() && Contains(notes, doubt.but) &&
                         row["metric"] != doubt.but_metric;
    if (!trusted) throw Unused{doubt.reason};
  }
}

void RefuseSplit(const TableRow& row) {
  const std::string stack = Lowered(row["stack_notes"]);
  if (ContainsAny(stack, RulesOfTables().splits) &&
      !ContainsAny(stack, RulesOfTables().no_splits)) {
    throw Unused{"tensor or pipeline parallel"};
  }
  for (const std::string_view column :
       {"tensor_parallel", "pipeline_parallel"}) {
    if (row.Count(column).value_or(1) > 1) {
      throw Unused{"tensor or pipeline parallel"};
    }
  }
  constexpr auto kSplits =
      std::to_array<std::pair<std::string_view, std::string_view>>({
          {"tp", "tensor"},
          {"pp", "pipeline"},
          {"cp", "context"},
          {"ep", "expert"},
      });
  for (const auto& [column, split] : kSplits) {
    const std::string& ways = row[column];
    if (ways.empty() || ways == "1" || ways == "1.0") continue;
    throw Unused{fmt::format("not predicted: {} parallel", split)};
  }
}

// Devices of which each had a model of its own would have computed more than
// the whole batch.
void RefuseSharedModel(const TableRow& row, const Workload& workload) {
  if (!row["dp"].empty() || row["global_batch"].empty()) return;
  const int64_t devices = row.Count("n_devices").value_or(1);
  const int64_t whole = row.WholeNumber("global_batch", "global batch");
  if (whole / devices < workload.batch * workload.accumulation) {
    throw Unused{kSharingNotStated};
  }
}

const MetricRule& MetricOf(const TableRow& row) {
  const std::string& metric = row["metric"];
  const TableRules& rules = RulesOfTables();
  const auto known = rules.metrics.find(metric);
  if (known != rules.metrics.end()) return known->second;
  const auto unused = rules.unused_metrics.find(metric);
  if (unused != rules.unused_metrics.end()) {
    throw Unused{fmt::format("metric {}: {}", metric, unused->second)};
  }
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
  // "V100-32GB (assumed; ...)", "A10G (24GB)": a remark about the name, not
  // part of it.
  const size_t remark = text.find(" (");
  if (remark == std::string::npos) return text;
  const std::string bare = text.substr(0, remark);
  // "A100 (80GB inferred)": the size belongs to it.
  const std::string size = text.substr(
      remark + 2, text.find_first_of(" )", remark + 2) - remark - 2);
  if (const hardware::Device* device = known(bare + "-" + size)) {
    return device->name;
  }
  if (const hardware::Device* device = known(bare)) return device->name;
  return text.find(" (assumed") == std::string::npos ? text : bare;
}

// Real tokens of a benchmark's sequence, which its program computes alone;
// nothing of other sequences.
std::optional<double> UnpaddedLengthOf(const TableRow& row) {
  const Benchmark* of = BenchmarkOf(row);
  if (of == nullptr) return std::nullopt;
  if (!ContainsAny(Lowered(row["framework"]), of->unpadded_by)) {
    throw Unused{"unpadded or packed sequences: real length not known"};
  }
  return of->tokens;
}

// Length and documents of a sequence as it is computed: whole, packed of
// several documents, or bare of padding, as long as they are in the mean.
void SetLengths(const TableRow& row, Workload& workload) {
  const int64_t length = row.WholeNumber("seq_len", "sequence length");
  workload.sequence_length = length;
  const std::string notes = Lowered(row.AllNotes());
  const auto real = hardware::ParseNumber(row["tokens_per_sample"]);
  const double share = real ? *real / static_cast<double>(length) : 1.0;
  const bool known = real && share > 0.0 && share <= 1.0;
  if (known && ContainsAny(notes, RulesOfTables().packed_documents)) {
    workload.documents = std::llround(1.0 / share);
    return;
  }
  if (known && ContainsAny(notes, RulesOfTables().unpadded)) {
    workload.sequence_length = std::max<int64_t>(1, std::llround(*real));
    return;
  }
  const bool unequal = ContainsAny(notes, RulesOfTables().unequal_lengths);
  if (!real && !unequal) {
    if (const auto bare = UnpaddedLengthOf(row)) {
      workload.sequence_length = std::llround(*bare);
      return;
    }
  }
  constexpr double kSame = 0.01;
  if (unequal || std::abs(share - 1.0) > kSame) {
    throw Unused{"samples of unequal length: real length not known"};
  }
}

Workload WorkloadOf(const TableRow& row, const Measured& measured) {
  RefuseDoubtful(row);
  if (!row["copy_of"].empty()) throw Unused{"a run that was listed before"};
  RefuseSplit(row);
  Workload workload;
  workload.architecture = ArchitectureOf(row);
  workload.work = measured.work;
  SetLengths(row, workload);
  workload.batch = row.WholeNumber(
      row.Has("micro_batch") ? "micro_batch" : "batch_per_device",
      "batch per device");
  SetAdapter(row, workload);
  SetPrecision(row, workload);
  workload.stack.fusion = FusionOf(row);
  SetWeights(row, workload);
  SetAttention(row, workload.stack);
  SetLoss(row, workload.stack);
  SetAdapterPlacing(row, workload);
  workload.accumulation = AccumulationOf(row, workload);
  SetPowerLimit(row, workload);
  RefuseSharedModel(row, workload);
  if (workload.work == Work::kTraining) SetRecomputation(row, workload);
  SetHead(row, workload);
  SetOptimizer(row, workload);
  try {
    model::Validate(workload);
  } catch (const InputError& error) {
    throw InputError(row.file, row.row.line, 0, error.what());
  }
  return workload;
}

const SourceRule* RuleOfSource(const std::string& source) {
  for (const SourceRule& rule : RulesOfTables().sources) {
    if (Contains(source, rule.source)) return &rule;
  }
  return nullptr;
}

// Who measured a row. Revisions of a source are of the same people; a round
// that many submit to is of each of them.
std::string SourceOf(const TableRow& row) {
  const std::string& source = row["source"];
  std::string people = source.substr(0, source.find('@'));
  const std::string& file = row["source_file"];
  const size_t folder = file.find('/');
  if (RuleOfSource(source) != nullptr && folder != std::string::npos) {
    people += "/" + Lowered(file.substr(0, folder));
  }
  return people;
}

UsedRow Read(const TableRow& row) {
  UsedRow used;
  const MetricRule& metric = MetricOf(row);
  used.metric = metric.metric;
  if (row["task"] == "mt") throw Unused{"batch counted in tokens"};
  const int64_t devices = row.Count("n_devices").value_or(1);
  Measured measured = WorkOf(row);
  if (metric.metric == Metric::kMicroTime) {
    measured.work = Work::kForwardBackward;
  }
  Observation& observation = used.observation;
  observation.quantity = measured.quantity;
  observation.workload = WorkloadOf(row, measured);
  Workload& workload = observation.workload;
  if (metric.metric == Metric::kMicroTime) workload.accumulation = 1;
  workload.parallel = ParallelOf(row, devices);
  SetFp8(row, workload);
  const std::string notes = Lowered(row["stack_notes"]);
  for (const Refusal& unknown : RulesOfTables().unknown_mechanisms) {
    if (!Contains(notes, unknown.words)) continue;
    throw Unused{fmt::format("not predicted: {}", unknown.reason)};
  }

  const auto value = hardware::ParseNumber(row["value"]);
  if (!value || *value <= 0.0) row.Fail("value", "a number above 0");
  used.value = *value * metric.unit;
  if (IsTime(metric.metric)) {
    observation.measured = TimeOf(row, metric, *value, workload, devices);
  }
  // Replicas of a forward pass do not talk to each other.
  observation.device_count = workload.work == Work::kForward ? 1 : devices;
  if (observation.device_count > 1) SetHosts(row, observation);
  const std::string& device = row["device"];
  if (device.empty()) throw Unused{"device not stated"};
  observation.device = DeviceName(device);
  const std::string other =
      OtherDeviceNamed(row["system_name"], observation.device);
  if (!other.empty()) {
    throw Unused{"system_name and device name two devices"};
  }
  observation.framework = row["framework"];
  for (const ReadOff& rule : RulesOfTables().read_off) {
    if (Contains(row["notes"], rule.words)) {
      observation.relative_noise = rule.noise;
    }
  }
  observation.group = hardware::Stem(row.file);
  if (row.Has("source")) observation.source = SourceOf(row);
  used.run = fmt::format("{}|{}|{}|{}|{}|{}|{}|{}",
                         row["source"],
                         row["source_file"],
                         row["system_name"],
                         row["model"],
                         device,
                         devices,
                         row.StackWords(),
                         Describe(workload));
  return used;
}

void RequireColumns(const CsvFile& csv, const std::string& name) {
  constexpr auto kRequired = std::to_array<std::string_view>(
      {"device", "model", "seq_len", "precision", "metric", "value"});
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
  if (!csv.TryColumn("batch_per_device") && !csv.TryColumn("micro_batch")) {
    throw InputError(name,
                     1,
                     0,
                     "expected a column \"batch_per_device\" or "
                     "\"micro_batch\", got neither; see "
                     "docs/guide/measurements.md");
  }
}

// With the notes that its source stands for where it has none: beside them the
// benchmark, by which the source's folders end.
CsvRow WithNotes(const CsvFile& csv, CsvRow row) {
  const auto notes = csv.TryColumn("stack_notes");
  if (!notes || *notes >= row.fields.size() || !row.fields[*notes].empty()) {
    return row;
  }
  if (const SourceRule* rule = RuleOfSource(csv.Field(row, "source"))) {
    const std::string& folder = csv.Field(row, "source_file");
    row.fields[*notes] =
        rule->notes + " " + folder.substr(folder.rfind('/') + 1);
  }
  return row;
}

}  // namespace

Table ParseTable(std::string_view text, const std::string& name) {
  const CsvFile csv = CsvFile::Parse(text, name, CsvFile::Rows::kAsHeader);
  RequireColumns(csv, name);
  Table table;
  table.rows = static_cast<int64_t>(csv.rows().size());
  std::vector<UsedRow> used;
  std::map<std::string, std::string> first_of;  // run to its first row
  // A run's throughputs and its step time are one measurement; a throughput
  // may include its start-up.
  std::map<std::string, Metric> best;
  std::set<std::string> failed;
  std::vector<UsedRow> memory;
  std::vector<UsedRow> powers;
  for (const CsvRow& as_published : csv.rows()) {
    const CsvRow csv_row = WithNotes(csv, as_published);
    const TableRow row{csv, csv_row, name};
    try {
      UsedRow read = Read(row);
      std::string label = fmt::format("{}:{}", name, csv_row.line);
      if (IsMemory(read.metric)) {
        read.observation.label = std::move(label);
        memory.push_back(std::move(read));
        continue;
      }
      if (read.metric == Metric::kPowerOfDevice) {
        read.observation.label = std::move(label);
        powers.push_back(std::move(read));
        continue;
      }
      if (read.metric == Metric::kFailed) {
        failed.insert(read.run);
        throw Unused{"a run that failed, the cause not stated"};
      }
      read.observation.label =
          first_of.emplace(read.run, std::move(label)).first->second;
      Metric& metric = best.emplace(read.run, read.metric).first->second;
      metric = std::min(metric, read.metric);
      used.push_back(std::move(read));
    } catch (const Unused& unused) {
      ++table.unused[unused.reason];
    }
  }
  for (UsedRow& row : used) {
    const Metric metric = best.at(row.run);
    if (row.metric == metric) {
      table.observations.push_back(std::move(row.observation));
    } else {
      ++table.unused[metric == Metric::kTime
                         ? "throughput of a run whose step time is there too"
                         : "throughput of a run in another unit"];
    }
  }
  for (UsedRow& row : powers) {
    // Power and time of one run have one label.
    const auto time = first_of.find(row.run);
    if (time == first_of.end()) {
      ++table.unused["power of a run whose time is not there"];
      continue;
    }
    row.observation.label = time->second;
    table.powers.push_back(PowerOf(std::move(row)));
  }
  for (UsedRow& row : memory) {
    if (failed.contains(row.run)) {
      ++table.unused["memory of a run that failed, the cause not stated"];
    } else {
      table.memory.push_back(MemoryOf(std::move(row)));
    }
  }
  return table;
}

Table ReadTable(const std::string& path) {
  return ParseTable(hardware::ReadTextFile(path, "a CSV file"), path);
}

}  // namespace trainfare::calibrate
