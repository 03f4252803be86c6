#pragma once

// The rules by which a row of a table becomes a workload, from tables.yaml:
// what words and columns mean. docs/guide/measurements.md says how a table is
// read.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/kernels.h"
#include "model/units.h"
#include "model/words.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// What `metric` is and in what unit. Of several times of one run the first
// here is used: the others say the same again, or hold a start-up.
enum class Metric {
  kTime,            // of a step
  kMicroTime,       // of a micro-batch, without the update
  kSteps,           // a second
  kTokens,          // a second, of all devices
  kTokensOfDevice,  // a second
  kSequences,       // a second, of all devices
  kEpoch,           // time of all samples, whose number the notes say
  kFlopsOfDevice,   // a second, counted by the convention that notes say
  kShareOfPeak,     // the same over a peak
  kPowerOfDevice,   // mean, of one
  kPeakAllocated,   // memory, of the fullest device, of tensors
  kPeakReserved,    // with what the allocator keeps
  kPeakUsed,        // with what the driver and the framework take
  kPeakUnstated,    // one of these, which is not said
  kOutOfMemory,     // the run died for want of memory
  kFailed,          // the run died, the cause not stated
};

inline constexpr bool IsMemory(Metric metric) {
  return metric == Metric::kPeakAllocated || metric == Metric::kPeakReserved ||
         metric == Metric::kPeakUsed || metric == Metric::kPeakUnstated ||
         metric == Metric::kOutOfMemory;
}

inline constexpr bool IsTime(Metric metric) {
  return metric != Metric::kPowerOfDevice && !IsMemory(metric) &&
         metric != Metric::kFailed;
}

// Times that a convention of counting FLOPs is needed for.
inline constexpr bool IsOfFlops(Metric metric) {
  return metric == Metric::kFlopsOfDevice || metric == Metric::kShareOfPeak;
}

struct MetricRule {
  Metric metric = Metric::kTime;
  double unit = 1;  // in s, B, W or 1/s
  bool holds_evaluations = false;
};

enum class Task { kInference, kPretrain, kFinetune, kTokenBatches };

struct StackRule {
  std::string words;  // in lower case
  model::Fusion fusion = model::Fusion::kEager;
};

// What words of a column say against a row; `but`: not, for other metrics than
// that, where these words stand there, too.
struct Doubt {
  std::string column;
  std::string words;
  std::string reason;
  bool of_pipelines = false;  // against none of one stage
  std::string but = {};
  std::string but_metric = {};
};

// Words by which notes say what of a step was timed.
struct TimedParts {
  std::vector<std::string> forward;
  std::vector<std::string> backward;
  std::vector<std::string> update;
  std::vector<std::string> only;
  std::vector<std::string> without;
  std::vector<std::string> with;
  std::vector<std::string> join;
  std::vector<std::string> breaks;
  std::vector<std::string> time;
  std::vector<std::string> description;
  std::vector<std::string> inference;
  std::vector<std::string> filler;
};

// Words that say that what they stand beside is not so, in lower case.
struct Denials {
  std::vector<std::string> before;        // of the three words before
  std::vector<std::string> right_before;  // the word before
  std::vector<std::string> between;       // say nothing, before those behind
  std::vector<std::string> behind;
  std::vector<std::string> behind_alone;  // the last of their clause
};

// Vocabularies that a program pads, so that each rank of a layer has such a
// multiple.
struct PaddedVocabulary {
  std::string words;
  int64_t multiple = 1;
};

struct WideGradientRule {
  std::string words;      // in lower case
  std::string precision;  // as its column says it; empty: any
};

struct TensorOverlapRule {
  std::string words;  // in lower case
  model::TensorOverlap overlap = model::TensorOverlap::kNone;
};

// What a program does with experts of some of its models; no `model`: of all.
struct ExpertTensorRule {
  std::string words;  // in lower case, as the other
  std::string model;
  int64_t ranks = 0;  // that have a part of every expert each
};
struct ExpertExchangeRule {
  std::string words;  // in lower case, as the other
  std::string model;
  model::ExpertExchange exchange = model::ExpertExchange::kAllToAll;
};
struct NextTokenRule {
  std::string words;  // in lower case, as the other
  std::string model;
  int64_t blocks = 0;
};

struct StageCutRule {
  std::string words;  // in lower case
  model::StageCut stages = model::StageCut::kBlocks;
};

struct HeadRule {
  std::string words;
  model::Head head = model::Head::kNone;
};

// All that is said of it must hold.
struct EveryPosition {
  std::string words;
  std::string framework;     // is in its column
  std::string framework_is;  // is its column
};

struct OptimizerRule {
  std::string words;
  model::OptimizerKind kind = model::OptimizerKind::kAdamW;
};

// A benchmark whose sequences and evaluations are known.
struct Benchmark {
  std::string words;
  std::string model;
  double tokens = 0;                     // real ones of a sequence, in the mean
  std::vector<std::string> unpadded_by;  // programs that compute these alone
  std::vector<std::string> unpadded_in;  // runs that do
  std::vector<std::string> padded_in;    // runs that compute all of a sequence
  // Samples evaluated; and trained in between: so many, and so many times those
  // of a step, cut to a multiple.
  int64_t evaluated = 0;
  int64_t every = 1;
  double every_of_batch = 0;
  int64_t every_step = 1;
};

struct ReadOff {
  std::string words;
  double noise = 0;
};

struct WeightRule {
  std::string words;  // in lower case
  model::Masters masters = model::Masters::kApart;
  std::string but = {};  // not where these words stand there, too
};

struct ShardRule {
  std::string words;
  model::Shard shard = model::Shard::kNone;
};

// Adapters, sharding and recomputation where no column says them: words as
// WordsApart has them. What words of the latter two leave open is not there.
struct WholeWords {
  std::string words;
};
struct ShardWords {
  std::string words;
  std::optional<model::Shard> shard;
  bool reshard_after_forward = true;
  bool within_groups = false;  // of ranks, each of which has all
};

struct OffloadRule {
  std::string words;
  model::Offload offload = model::Offload::kNone;
  bool activations = false;
};

// Of the frozen base beside adapters; which is left open where it is not there.
struct BaseBits {
  std::string words;
  std::optional<int64_t> bits;
};

// Which blocks are computed again.
enum class Recomputed { kNone, kAll, kSelective };
struct RecomputedWords {
  std::string words;
  std::optional<Recomputed> recomputed;
};

// What a framework computes again where it does so selectively.
enum class Selective { kEverySecondBlock, kOperations, kAttention };
struct SelectiveRule {
  std::string words;
  Selective of = Selective::kOperations;
};

// How the loss over a vocabulary is made, by words of its stack.
struct LossRule {
  std::string words;
  model::LossKernels loss = model::LossKernels::kOfStack;
};

// How experts run, by words of the stack.
struct ExpertRule {
  std::string words;
  model::ExpertKernels experts = model::ExpertKernels::kOfStack;
};

// A source that many submit to, and which notes its rows stand for that have
// none.
struct SourceRule {
  std::string source;
  std::string notes;
};

// What scales products in 8 bits, by words of its stack.
struct Fp8Rule {
  std::string words;
  model::Fp8Scaling scaling = model::Fp8Scaling::kDelayed;
  bool weight_gradients = true;
};

// Blocks that are computed again where a column says nothing.
struct RecomputedBlocks {
  std::string words;
  int64_t blocks = 0;
};

// What adapters of a program are where a row does not say, by words of
// `framework` or `source`.
struct ProgramAdapters {
  std::string words;
  int64_t rank = 0;
  std::vector<std::string> matrices;  // names of model::LoraMatrices
  // On one device, over a base in 16 bits.
  std::optional<model::Masters> masters_alone;
  double dropout = 0.0;
  // Words of `stack_notes` that name kernels of adapters without dropout; empty:
  // it has no such kernels.
  std::string undropped = {};
};

// How the FLOPs of a rate are counted, by words of the notes.
struct FlopsRule {
  std::string words;
  model::CountedPairs pairs = model::CountedPairs::kAll;
  bool recomputed = false;  // blocks once more: model::StepHardwareFlops
};

// How many samples an epoch has, by words of the notes.
struct EpochRule {
  std::string words;
  int64_t samples = 1;
};

// The precision of rows that say none, by words of the notes.
struct UnstatedPrecision {
  std::string words;
  model::Precision precision = model::Precision::kFp32;
};

struct PrecisionRule {
  model::Precision products = model::Precision::kFp32;
  int64_t base_bits = 0;  // of a frozen base beside adapters; 0: there is none
  std::optional<model::Fp8Scaling> scaling;
};

// What words say against a row.
struct Refusal {
  std::string words;
  std::string reason;
};

// What words that are not understood may mean.
struct Hint {
  std::string words;
  std::string text;
};

struct NamedModel {
  std::string preset;
  std::optional<int64_t> vocabulary;  // other than the preset's
};

struct ModelFamily {
  std::string beginning;
  std::string preset;
  // Words of `stack_notes` without which its blocks may be others.
  std::vector<std::string> stated;
};

template <class Value>
using ByWord = std::map<std::string, Value, std::less<>>;

// Names of columns.
struct ColumnRules {
  std::vector<std::string> read;
  std::vector<std::string> of_no_matter;  // in lower case
  // Whose names and values are words of stack_notes or notes, in lower case.
  std::vector<std::string> of_stack;
  std::vector<std::string> of_notes;
  ByWord<std::string> other_names;  // in lower case, and which is meant
};

struct TableRules {
  ColumnRules columns;
  std::vector<Doubt> doubts;
  TimedParts timed_parts;
  Denials denials;
  std::vector<HeadRule> heads;
  std::vector<EveryPosition> every_position;
  std::vector<OptimizerRule> optimizers;
  std::vector<std::string> adam_names;    // in lower case
  std::vector<std::string> fused_update;  // in lower case
  std::vector<std::string> bert_adam_but_in_fp16;
  std::vector<StackRule> stacks;
  ByWord<model::Fusion> published_stacks;
  std::vector<std::string> eager_frameworks;
  std::vector<WeightRule> narrow_weights;
  std::vector<WideGradientRule> wide_gradients;
  std::vector<std::string> multi_tensor_update;
  std::vector<std::string> flash_attention;
  std::vector<std::string> flash_attention_models;
  std::vector<std::string> first_flash_attention;
  std::vector<SelectiveRule> selective_recomputation;
  std::vector<std::string> widened_beside_adapters;
  std::vector<LossRule> losses;
  std::vector<ExpertRule> experts;
  std::vector<PaddedVocabulary> padded_vocabularies;
  std::vector<std::string> wide_adapters;
  std::vector<std::string> adapters_as_units;
  std::vector<std::string> embedding_units;
  std::vector<std::string> narrow_sums;
  std::vector<std::string> embeddings_beside_adapters;
  std::vector<std::string> base_by_operations;
  std::vector<std::string> eight_bit_states;
  std::vector<std::string> updates_in_backward;
  ByWord<Task> tasks;
  std::vector<std::string> reserved_peaks;
  std::vector<std::string> unstated_peaks;
  ByWord<double> measured_all_reduce;              // by column, in B/s
  ByWord<model::BytesPerSecond<>> slice_networks;  // of a device, by its name
  std::vector<ShardRule> sharding;
  std::vector<ShardWords> sharding_in_words;
  std::vector<ShardWords> sharding_column;  // of that column alone
  std::vector<std::string> sharding_fillers;
  std::vector<std::string> resharding;
  std::vector<ShardRule> divided_updates;
  std::vector<OffloadRule> offload;
  // Names of model::LoraMatrices.
  ByWord<std::vector<std::string>> adapters;
  ByWord<std::vector<std::string>> listed_adapters;  // in lists of them alone
  std::vector<std::string> all_adapters;
  std::vector<BaseBits> base_bits;           // of a column `adapter`
  std::vector<BaseBits> base_bits_in_words;  // of stack_notes
  std::vector<std::string> adapter_qualifiers;
  std::vector<WholeWords> adapters_in_words;
  std::vector<ProgramAdapters> program_adapters;
  ByWord<PrecisionRule> precisions;
  std::vector<UnstatedPrecision> unstated_precisions;
  std::vector<Hint> precision_hints;         // in lower case
  std::vector<std::string> narrow_products;  // whole words
  std::vector<std::string> recomputing_recipes;
  ByWord<Recomputed> recomputation;  // by what a column says
  std::vector<RecomputedWords> recomputation_in_words;
  std::vector<RecomputedBlocks> recomputed_blocks;
  std::vector<std::string> fp8_bases;
  std::vector<Fp8Rule> fp8;
  std::vector<std::string> fp8_gathered;
  std::vector<SourceRule> sources;
  std::vector<std::string> splits;
  std::vector<std::string> no_splits;
  std::vector<std::string> sequence_parallel;
  std::vector<TensorOverlapRule> tensor_overlaps;
  std::vector<ExpertTensorRule> expert_tensor;
  std::vector<ExpertExchangeRule> expert_exchanges;
  std::vector<NextTokenRule> next_token_blocks;
  std::vector<std::string> expert_overlaps;
  std::vector<StageCutRule> stage_cuts;
  ByWord<MetricRule> metrics;
  std::vector<EpochRule> epochs;
  std::vector<FlopsRule> flops;
  ByWord<std::string> unused_metrics;  // and why
  std::vector<std::string> packed_documents;
  std::vector<std::string> unpadded;
  std::vector<Benchmark> benchmarks;
  std::vector<std::string> with_evaluations;
  std::vector<std::string> whole_batches;
  std::vector<ReadOff> read_off;
  std::vector<std::string> unequal_lengths;
  std::vector<std::string> packing;
  std::vector<std::string> rates;
  std::vector<std::string> one_device;
  std::vector<Refusal> unknown_mechanisms;
  std::vector<Refusal> other_trainings;  // whole words of any notes
  ByWord<std::string> other_metrics;  // in lower case, and which may be meant
  std::vector<Refusal> refused_models;
  ByWord<NamedModel> model_names;
  std::vector<ModelFamily> model_families;
};

const TableRules& RulesOfTables();  // read once

// What a column `task` says; to be trained further where it says nothing. Throws
// Unused for another word.
Task TaskOf(const std::string& task);

}  // namespace trainfare::calibrate

namespace trainfare::model {

template <>
inline constexpr auto kWords<calibrate::Selective> =
    Words<calibrate::Selective>(
        "of",
        {{calibrate::Selective::kEverySecondBlock, "every second block"},
         {calibrate::Selective::kOperations, "operations"},
         {calibrate::Selective::kAttention, "attention"}});

template <>
inline constexpr auto kWords<calibrate::Recomputed> =
    Words<calibrate::Recomputed>("recomputed",
                                 {{calibrate::Recomputed::kNone, "nothing"},
                                  {calibrate::Recomputed::kAll, "all"},
                                  {calibrate::Recomputed::kSelective,
                                   "selective"}});

template <>
inline constexpr auto kWords<CountedPairs> = Words<CountedPairs>(
    "pairs", {{CountedPairs::kAll, "all"}, {CountedPairs::kSeen, "seen"}});

template <>
inline constexpr auto kWords<calibrate::Task> = Words<calibrate::Task>(
    "task",
    {{calibrate::Task::kInference, "inference"},
     {calibrate::Task::kPretrain, "pretrain"},
     {calibrate::Task::kFinetune, "finetune"},
     {calibrate::Task::kTokenBatches, "batches of tokens"}});

template <>
inline constexpr auto kWords<calibrate::Metric> = Words<calibrate::Metric>(
    "metric",
    {{calibrate::Metric::kTime, "step time"},
     {calibrate::Metric::kMicroTime, "micro-batch time"},
     {calibrate::Metric::kSteps, "steps"},
     {calibrate::Metric::kTokens, "tokens"},
     {calibrate::Metric::kTokensOfDevice, "tokens of a device"},
     {calibrate::Metric::kSequences, "sequences"},
     {calibrate::Metric::kEpoch, "epoch time"},
     {calibrate::Metric::kFlopsOfDevice, "FLOPs of a device"},
     {calibrate::Metric::kShareOfPeak, "share of a peak"},
     {calibrate::Metric::kPowerOfDevice, "power of a device"},
     {calibrate::Metric::kPeakAllocated, "peak allocated"},
     {calibrate::Metric::kPeakReserved, "peak reserved"},
     {calibrate::Metric::kPeakUsed, "peak used"},
     {calibrate::Metric::kPeakUnstated, "peak of a figure not stated"},
     {calibrate::Metric::kOutOfMemory, "out of memory"},
     {calibrate::Metric::kFailed, "failed"}});

}  // namespace trainfare::model
