#include "calibrate/records/import/table_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/records/import/table_adapter.h"
#include "calibrate/records/import/table_figures.h"
#include "calibrate/records/import/table_model.h"
#include "calibrate/records/import/table_parallel.h"
#include "calibrate/records/import/table_rules.h"
#include "calibrate/records/import/table_said.h"
#include "calibrate/records/import/table_words.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/fields.h"
#include "model/limits.h"
#include "model/parallel.h"
#include "model/rounding.h"
#include "model/trainable.h"
#include "model/validate.h"

namespace trainfare::calibrate {
namespace {

using model::Architecture;
using model::Fusion;
using model::Head;
using model::InputError;
using model::OptimizerImplementation;
using model::OptimizerKind;
using model::Work;
using model::Workload;

Fusion FusionOf(const TableRow& row) {
  const std::string words = Lowered(row.StackWords());
  for (const StackRule& rule : RulesOfTables().stacks) {
    if (Says(words, rule.words)) return rule.fusion;
  }
  const std::string& framework = row["framework"];
  const auto& eager = RulesOfTables().eager_frameworks;
  // Words that end in a blank are those alone, whatever mark is behind.
  if (!framework.empty() && !ContainsAny(words, eager) &&
      !ContainsAny(WordsApart(words), eager)) {
    throw Unused{fmt::format("framework {} is not known", framework)};
  }
  return Fusion::kEager;
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
  } else if (TaskOf(row["task"]) == Task::kPretrain) {
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

// "optimizer=lomo", "optim: came": a name that no list has would be AdamW.
void RefuseUnknownOptimizer(const std::string& words) {
  static const std::regex named(R"(\boptim(izer)?\s?[=:]\s?([\w.\-]+))");
  const TableRules& rules = RulesOfTables();
  for (auto match = std::sregex_iterator(words.begin(), words.end(), named);
       match != std::sregex_iterator();
       ++match) {
    const std::string name = " " + match->str(2);
    const bool known = ContainsAny(name, rules.adam_names) ||
                       std::any_of(rules.optimizers.begin(),
                                   rules.optimizers.end(),
                                   [&](const OptimizerRule& rule) {
                                     return Says(name, rule.words);
                                   });
    if (!known) {
      throw Unused{fmt::format("not predicted: optimizer{}", name)};
    }
  }
}

OptimizerKind OptimizerOf(std::string_view words) {
  for (const OptimizerRule& rule : RulesOfTables().optimizers) {
    if (Says(words, rule.words)) return rule.kind;
  }
  return OptimizerKind::kAdamW;
}

void SetOptimizer(const TableRow& row, Workload& workload) {
  if (workload.work != Work::kTraining) {
    workload.optimizer.kind = OptimizerKind::kNone;
    return;
  }
  const std::string words = row.StackWords();
  RefuseUnknownOptimizer(Lowered(words));
  if (SaysAny(Lowered(words), RulesOfTables().eight_bit_states)) {
    workload.optimizer.state_bits = 8;
  }
  workload.optimizer.in_backward =
      SaysAny(Lowered(words), RulesOfTables().updates_in_backward);
  workload.optimizer.kind = OptimizerOf(WordsApart(words));
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
  const bool fused = SaysAny(Lowered(words), RulesOfTables().fused_update);
  const bool lists = ContainsAny(words, RulesOfTables().multi_tensor_update);
  if (fused || (!lists && workload.stack.fusion != Fusion::kEager)) {
    implementation = OptimizerImplementation::kFused;
  } else {
    implementation = lists ? OptimizerImplementation::kMultiTensor
                           : OptimizerImplementation::kForLoop;
  }
  // There is no kernel for all of it.
  if (workload.optimizer.kind == OptimizerKind::kAdafactor &&
      implementation == OptimizerImplementation::kFused) {
    implementation = OptimizerImplementation::kMultiTensor;
  }
}

void SetPowerLimit(const TableRow& row, Workload& workload) {
  const std::string& text = row["power_limit_w"];
  if (text.empty()) return;
  const auto limit = row.Number("power_limit_w");
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
      !Lowered(row["sharding"]).starts_with("fsdp") &&
      ContainsAny(row["stack_notes"], RulesOfTables().widened_beside_adapters);
  if (widened) return;
  if (workload.trainable.lora_rank > 0) workload.stack.narrow_weights = true;
  const std::string words = Lowered(row.StackWords() + "; " + row["precision"]);
  const std::string notes = words + "; " + Lowered(row["notes"]);
  for (const WeightRule& rule : RulesOfTables().narrow_weights) {
    const bool in_notes = rule.masters == model::Masters::kNone;
    const std::string& said = in_notes ? notes : words;
    if (!Says(said, rule.words)) continue;
    if (!rule.but.empty() && Contains(said, rule.but)) continue;
    workload.stack.narrow_weights = true;
    workload.optimizer.masters = rule.masters;
    for (const WideGradientRule& wide : RulesOfTables().wide_gradients) {
      if (!Contains(words, wide.words)) continue;
      workload.optimizer.wide_gradients |=
          wide.precision.empty() || Lowered(row["precision"]) == wide.precision;
    }
    return;
  }
}

void PadVocabulary(const TableRow& row, Architecture& architecture) {
  for (const PaddedVocabulary& padded : RulesOfTables().padded_vocabularies) {
    if (!Contains(row.StackWords(), padded.words)) continue;
    architecture.vocabulary = model::CeilToMultiple(
        architecture.vocabulary, padded.multiple * WaysOfModel(row).tensor);
    return;
  }
}

void SetLoss(const TableRow& row, model::Stack& stack) {
  const std::string words = Lowered(row.StackWords());
  for (const LossRule& rule : RulesOfTables().losses) {
    if (!Says(words, rule.words)) continue;
    stack.loss = rule.loss;
    return;
  }
}

void SetExperts(const TableRow& row, Workload& workload) {
  if (workload.architecture.experts == 0) return;
  const std::string words = Lowered(row.StackWords());
  for (const ExpertRule& rule : RulesOfTables().experts) {
    if (!Says(words, rule.words)) continue;
    workload.stack.experts = rule.experts;
    return;
  }
}

void SetNextToken(const TableRow& row, model::Architecture& architecture) {
  const std::string words = Lowered(row.StackWords());
  const std::string name = Lowered(row["model"]);
  for (const NextTokenRule& rule : RulesOfTables().next_token_blocks) {
    if (!Contains(words, rule.words) || !Contains(name, rule.model)) continue;
    architecture.next_token_blocks = rule.blocks;
    return;
  }
}

void SetAttention(const TableRow& row, model::Stack& stack) {
  const TableRules& rules = RulesOfTables();
  const std::string words = Lowered(row.StackWords());
  // Words with a blank before or behind them are whole ones.
  if (!SaysAny(words, rules.flash_attention) &&
      !SaysAny(WordsApart(words), rules.flash_attention) &&
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

// What a precision that is not known may mean; empty: nobody knows.
std::string PrecisionsMeant(const std::string& precision) {
  const TableRules& rules = RulesOfTables();
  for (const Hint& hint : rules.precision_hints) {
    if (Contains(precision, hint.words)) return "; " + hint.text;
  }
  return "";
}

// Products in 8 bits by words, where the column says 16.
void RefuseOtherPrecision(const TableRow& row, model::Precision precision) {
  if (precision != model::Precision::kBf16 &&
      precision != model::Precision::kFp16) {
    return;
  }
  const std::string words = WordsApart(row["stack_notes"] + row.more_stack);
  for (const std::string& narrow : RulesOfTables().narrow_products) {
    if (!SaysWhole(words, narrow)) continue;
    throw Unused{
        fmt::format("precision is {}, stack_notes say {}: column "
                    "precision, fp8 where products are in 8 bits",
                    row["precision"],
                    narrow)};
  }
}

void SetPrecision(const TableRow& row, Workload& workload) {
  const std::string precision = Lowered(row["precision"]);
  if (row.Blank("precision")) {
    workload.precision = UnstatedPrecisionOf(row);
    return;
  }
  const auto rule = RulesOfTables().precisions.find(precision);
  if (rule != RulesOfTables().precisions.end() &&
      (rule->second.base_bits == 0 || workload.trainable.lora_rank > 0)) {
    workload.precision = rule->second.products;
    if (rule->second.base_bits > 0) {
      workload.trainable.base_bits = rule->second.base_bits;
    }
    if (rule->second.scaling) workload.fp8.scaling = *rule->second.scaling;
    RefuseOtherPrecision(row, workload.precision);
    return;
  }
  try {
    workload.precision = model::FromText<model::Precision>(precision);
  } catch (const InputError&) {
    throw Unused{fmt::format("not predicted: precision {}{}",
                             row["precision"],
                             PrecisionsMeant(precision))};
  }
  RefuseOtherPrecision(row, workload.precision);
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
  throw Unused{"recomputation selective: what is computed again is not stated"};
}

void SetRecomputed(const TableRow& row,
                   Recomputed recomputed,
                   Workload& workload) {
  if (recomputed == Recomputed::kSelective) {
    SetSelective(row, workload);
  } else {
    workload.gradient_checkpointing = recomputed == Recomputed::kAll;
  }
}

// Where no column says it.
void SetUnstatedRecomputation(const TableRow& row, Workload& workload) {
  const TableRules& rules = RulesOfTables();
  if (const auto said = RecomputedInWords(row)) {
    SetRecomputed(row, *said, workload);
  } else {
    const std::vector<std::string>& recipes = rules.recomputing_recipes;
    workload.gradient_checkpointing =
        Lowered(row["sharding"]) != "none" &&
        std::find(recipes.begin(), recipes.end(), row["framework"]) !=
            recipes.end();
  }
  for (const RecomputedBlocks& rule : rules.recomputed_blocks) {
    if (!Contains(row["stack_notes"], rule.words)) continue;
    workload.gradient_checkpointing = true;
    workload.checkpointed_blocks = rule.blocks;
  }
}

void SetRecomputation(const TableRow& row, Workload& workload) {
  const std::string recompute = Lowered(row["recompute"]);
  const ByWord<Recomputed>& known = RulesOfTables().recomputation;
  if (row.Blank("recompute") || recompute == "not stated") {
    SetUnstatedRecomputation(row, workload);
  } else if (const auto word = known.find(recompute); word != known.end()) {
    SetRecomputed(row, word->second, workload);
  } else if (const auto layers = LayersOf(recompute)) {
    workload.gradient_checkpointing = true;
    workload.checkpointed_blocks = *layers;
  } else {
    throw Unused{fmt::format("not predicted: recomputation {}", recompute)};
  }
}

// What the notes of a row say against it.
void RefuseDoubtful(const TableRow& row) {
  for (const Doubt& doubt : RulesOfTables().doubts) {
    const std::string& notes = row[doubt.column];
    if (!Contains(notes, doubt.words)) continue;
    if (doubt.of_pipelines && WaysOfModel(row).pipeline == 1) continue;
    const bool trusted = !doubt.but.empty() && Contains(notes, doubt.but) &&
                         row["metric"] != doubt.but_metric;
    if (!trusted) throw Unused{doubt.reason};
  }
}

// Real tokens of a benchmark's sequence, which its program computes alone;
// nothing of sequences that are computed whole.
std::optional<double> UnpaddedLengthOf(const TableRow& row) {
  const Benchmark* of = BenchmarkOf(row);
  if (of == nullptr || ContainsAny(row["source_file"], of->padded_in)) {
    return std::nullopt;
  }
  if (!ContainsAny(Lowered(row["framework"]), of->unpadded_by) &&
      !ContainsAny(row["source_file"], of->unpadded_in)) {
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
  const auto real = row.Number("tokens_per_sample");
  if (!real && !row["tokens_per_sample"].empty()) {
    throw Unused{"tokens of a sample are not one number"};
  }
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
  const TableRules& rules = RulesOfTables();
  const bool unequal =
      SaysAny(notes, rules.unequal_lengths) ||
      (ContainsAny(notes, rules.packing) && !SaysAny(notes, rules.packing));
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

}  // namespace

Workload WorkloadOf(const TableRow& row,
                    const Measured& measured,
                    int64_t devices) {
  RefuseDoubtful(row);
  if (!row["copy_of"].empty()) throw Unused{"a run that was listed before"};
  RefuseSplit(row);
  Workload workload;
  workload.architecture = ArchitectureOf(row);
  PadVocabulary(row, workload.architecture);
  SetNextToken(row, workload.architecture);
  workload.work = measured.work;
  SetLengths(row, workload);
  workload.batch = row.WholeNumber(
      row.Has("micro_batch") ? "micro_batch" : "batch_per_device",
      "batch per device");
  workload.stack.fusion = FusionOf(row);
  SetAdapter(row, workload);
  SetPrecision(row, workload);
  SetWeights(row, workload);
  SetAttention(row, workload.stack);
  SetLoss(row, workload.stack);
  SetExperts(row, workload);
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
  workload.parallel = ParallelOf(row, devices);
  if (workload.work == Work::kForward && workload.parallel.data > 0) {
    throw Unused{"not predicted: inference of devices that share state"};
  }
  workload.parallel.embedding_units =
      workload.parallel.shard == model::Shard::kFsdp &&
      ContainsAny(row.StackWords(), RulesOfTables().embedding_units);
  if (workload.parallel.shard != model::Shard::kNone &&
      ContainsAny(row.StackWords(), RulesOfTables().narrow_sums)) {
    workload.compression.kind = model::CompressionKind::kTo16Bits;
  }
  SetFp8(row, workload);
  return workload;
}

}  // namespace trainfare::calibrate
