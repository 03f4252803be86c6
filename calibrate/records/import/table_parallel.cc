#include "calibrate/records/import/table_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <string>
#include <string_view>
#include <utility>

#include "calibrate/records/import/table_rules.h"
#include "calibrate/records/import/table_said.h"
#include "calibrate/records/import/table_words.h"
#include "model/limits.h"
#include "model/parallel.h"

namespace trainfare::calibrate {
namespace {

using model::Shard;
using model::Work;
using model::Workload;

constexpr const char* kFewerThanDevices =
    "the global batch is less than its devices' micro-batches: how they share "
    "the model is not stated (columns tp, pp, cp)";

// Columns that say how many ways a model is split: ours, and others' name.
using WaysColumns = std::array<std::string_view, 2>;
constexpr WaysColumns kTensorColumns = {"tp", "tensor_parallel"};
constexpr WaysColumns kContextColumns = {"cp", "context_parallel"};
constexpr WaysColumns kExpertColumns = {"ep", "expert_parallel"};
constexpr WaysColumns kExpertTensorColumns = {"etp", "expert_tensor_parallel"};
constexpr WaysColumns kPipelineColumns = {"pp", "pipeline_parallel"};
constexpr WaysColumns kCopiesColumns = {"dp", "data_parallel"};

bool StatesWays(const TableRow& row, const WaysColumns& columns) {
  return std::any_of(columns.begin(), columns.end(), [&](const auto column) {
    return !row.Blank(column);
  });
}

// 1: it is not split so, or nobody says. Throws Unused for no whole number of
// devices.
int64_t WaysOf(const TableRow& row, const WaysColumns& columns) {
  for (const std::string_view column : columns) {
    if (row.Blank(column)) continue;
    const int64_t ways = row.WholeNumber(column, column);
    if (ways <= model::kMostDevices) return ways;
    throw Unused{fmt::format("{} is no number of devices", column)};
  }
  return 1;
}

// Where no column and no words of the row's own say it.
Shard ShardOfProgram(const TableRow& row) {
  const std::string words = Lowered(row.StackWords());
  for (const ShardRule& rule : RulesOfTables().sharding) {
    if (Says(words, rule.words)) return rule.shard;
  }
  throw Unused{
      "how its devices share the model is not stated: column sharding"};
}

// Groups over which all is replicated.
int64_t CopiesOf(const TableRow& row, int64_t devices) {
  const std::string notes = Lowered(row.AllNotes());
  static const std::regex group(R"(\bfsdp group (\d{1,7})\b)");
  int64_t copies = 1;
  if (const auto ranks = NumberIn(notes, group)) {
    if (devices % *ranks != 0) {
      throw Unused{"its groups of FSDP do not divide its devices"};
    }
    copies = devices / *ranks;
  } else if (Contains(notes, "fsdp within a slice")) {
    copies = SlicesOf(row);
  }
  if (copies > 1 && copies < devices) return copies;
  throw Unused{"hybrid sharding: over how many ranks is not stated"};
}

// What ranks divide of an update where nothing is sharded.
Shard DividedUpdateOf(const TableRow& row) {
  const std::string notes = Lowered(row["stack_notes"]);
  for (const ShardRule& rule : RulesOfTables().divided_updates) {
    if (Contains(notes, rule.words)) return rule.shard;
  }
  return Shard::kNone;
}

// What waits on the host.
void SetOffload(const TableRow& row, model::Parallel& parallel) {
  const std::string notes = Lowered(row.StackWords() + "; " + row["sharding"]);
  for (const OffloadRule& words : RulesOfTables().offload) {
    if (!Says(notes, words.words)) continue;
    parallel.offload = words.offload;
    parallel.offload_activations = words.activations;
    return;
  }
  if (Says(notes, "offload")) {
    throw Unused{"not predicted: what is offloaded is not stated"};
  }
}

// Copies of the model: as the row says, else one each so many ranks as have one
// together.
int64_t CopiesOfModel(const TableRow& row) {
  if (StatesWays(row, kCopiesColumns)) return WaysOf(row, kCopiesColumns);
  const int64_t devices = row.Count("n_devices").value_or(1);
  return devices / model::RanksOfModel(WaysOfModel(row));
}

// What the row says, where its batches do not say otherwise.
int64_t StatedAccumulation(const TableRow& row, const Workload& workload) {
  const int64_t stated = row.WholeNumber("grad_accum", "gradient accumulation");
  // Batches of packed rows may count their documents.
  const bool unclear =
      !StatesWays(row, kCopiesColumns) && workload.documents > 1;
  if (row.Blank("global_batch") || unclear) return stated;
  const int64_t whole = row.WholeNumber("global_batch", "global batch");
  const int64_t replicas = CopiesOfModel(row);
  const int64_t said =
      model::CheckedProduct({workload.batch, stated, replicas}, "batch");
  if (whole < said && !StatesWays(row, kCopiesColumns)) {
    throw Unused{kFewerThanDevices};
  }
  if (whole != said) {
    throw Unused{"the global batch is not that of its micro-batches"};
  }
  return stated;
}

void RefuseRemainder(const TableRow& row) {
  const int64_t devices = row.Count("n_devices").value_or(1);
  const int64_t of_model = model::RanksOfModel(WaysOfModel(row));
  if (devices % of_model == 0) return;
  throw Unused{fmt::format(
      "{} devices do not divide by tp x pp x cp, {}", devices, of_model)};
}

// Sequences of a step over those of a micro-batch of all replicas.
int64_t AccumulationByBatches(const TableRow& row, const Workload& workload) {
  const int64_t whole = row.WholeNumber("global_batch", "global batch");
  const int64_t at_once =
      model::CheckedProduct({workload.batch, CopiesOfModel(row)}, "batch");
  if (whole < at_once) throw Unused{kFewerThanDevices};
  if (whole % at_once == 0) return whole / at_once;
  throw Unused{"the global batch does not divide over its replicas"};
}

// A way to split a model: its columns, and how notes say that it is of more than
// one device: "TP=4", "pp 2", "CP8", "tp_size=4", "DP4xTP2", "TP degree 2",
// "2-way TP". "cp310" is a Python, "pp 12-14" are pages.
struct Split {
  WaysColumns columns;
  std::regex in_notes;
};

Split SplitBy(const WaysColumns& columns) {
  constexpr const char* kSeveral = "([2-9]|[1-9]\\d)";
  return {
      columns,
      std::regex(fmt::format(
          R"(((^|[^a-z]|\dx){0}([-_ ]?(size|degree))?(\s?[=:]\s?\d{{0,2}}|[- ]?){1}(?![\d.\-])))"
          R"(|((^|[^\d.]){1}[- ]?way {0}\b))",
          columns.front(),
          kSeveral))};
}

// Made once, since a pattern takes longer to make than to look for.
const std::array<Split, 4>& Splits() {
  static const std::array<Split, 4> splits = {SplitBy(kTensorColumns),
                                              SplitBy(kPipelineColumns),
                                              SplitBy(kContextColumns),
                                              SplitBy(kExpertColumns)};
  return splits;
}

// What a row's stages have alike.
model::StageCut StageCutOf(const TableRow& row) {
  const std::string words = Lowered(row.StackWords()) + " " +
                            Lowered(row.AllNotes()) + " " +
                            Lowered(row["model"]);
  for (const StageCutRule& rule : RulesOfTables().stage_cuts) {
    if (Contains(words, rule.words)) return rule.stages;
  }
  return model::StageCut::kBlocks;
}

// How experts lie over ranks, and what these send each other, as the row says it
// or the program that it names does it.
void SetExperts(const TableRow& row, model::Parallel& parallel) {
  if (parallel.expert == 1) return;
  const std::string words = Lowered(row.StackWords());
  const std::string name = Lowered(row["model"]);
  const auto first = [&](const auto& rules) {
    return std::find_if(rules.begin(), rules.end(), [&](const auto& rule) {
      return Contains(words, rule.words) && Contains(name, rule.model);
    });
  };
  const TableRules& rules = RulesOfTables();
  if (StatesWays(row, kExpertTensorColumns)) {
    parallel.expert_tensor = WaysOf(row, kExpertTensorColumns);
  } else if (parallel.tensor > 1) {
    const auto rule = first(rules.expert_tensor);
    if (rule != rules.expert_tensor.end()) parallel.expert_tensor = rule->ranks;
  }
  const auto exchange = first(rules.expert_exchanges);
  if (exchange != rules.expert_exchanges.end()) {
    parallel.expert_exchange = exchange->exchange;
  }
  parallel.expert_overlap =
      SaysAny(words + " " + Lowered(row.AllNotes()), rules.expert_overlaps);
}

// What sums within layers go on beside, of a stack of such words.
model::TensorOverlap TensorOverlapOf(const std::string& words) {
  for (const TensorOverlapRule& rule : RulesOfTables().tensor_overlaps) {
    if (Contains(words, rule.words)) return rule.overlap;
  }
  return model::TensorOverlap::kNone;
}

// In how many chunks a stage has its blocks.
int64_t ChunksOf(const TableRow& row) {
  if (!row.Blank("vpp")) return row.WholeNumber("vpp", "chunks of a stage");
  static const std::regex interleaved(
      R"(\binterleaved pipeline stages (\d{1,3})\b)");
  return NumberIn(Lowered(row.AllNotes()), interleaved).value_or(1);
}

// How ranks have parts of a model.
model::Parallel PartsOfModel(const TableRow& row) {
  model::Parallel parallel = WaysOfModel(row);
  if (parallel.tensor > 1) {
    const std::string words = Lowered(row.StackWords());
    parallel.sequence = SaysAny(words, RulesOfTables().sequence_parallel);
    parallel.tensor_overlap = TensorOverlapOf(words);
  }
  SetExperts(row, parallel);
  if (parallel.pipeline > 1) {
    parallel.stages = StageCutOf(row);
    parallel.chunks = ChunksOf(row);
  }
  return parallel;
}

// "tensor parallel 1" is none.
std::string WithoutOneWay(const std::string& words) {
  static const std::regex one_way(
      R"((tensor|pipeline|context|expert|sequence|model)[- ])"
      R"((model[- ])?parallel(ism)?([- ](size|degree))?\s?[=:(]?\s?1(?![\d.\-]))");
  return std::regex_replace(words, one_way, "");
}

}  // namespace

int64_t SlicesOf(const TableRow& row) {
  static const std::regex slices(R"(\bslices=(\d{1,5})\b)");
  return NumberIn(Lowered(row["stack_notes"]), slices).value_or(1);
}

void RefuseSplit(const TableRow& row) {
  const std::string stack = WithoutOneWay(Lowered(row["stack_notes"]));
  const bool denied = ContainsAny(stack, RulesOfTables().no_splits);
  // Columns say more than notes.
  const bool stated =
      StatesWays(row, kTensorColumns) && StatesWays(row, kPipelineColumns);
  const bool named =
      !stated && !denied && SaysAny(stack, RulesOfTables().splits);
  const std::string notes = Lowered(row.AllNotes());
  const bool counted =
      std::any_of(Splits().begin(), Splits().end(), [&](const Split& split) {
        return !StatesWays(row, split.columns) &&
               std::regex_search(notes, split.in_notes);
      });
  if (named || counted) {
    throw Unused{
        "tensor or pipeline parallel in words: columns tp, pp, cp, ep"};
  }
}

model::Parallel WaysOfModel(const TableRow& row) {
  model::Parallel ways;
  ways.tensor = WaysOf(row, kTensorColumns);
  ways.context = WaysOf(row, kContextColumns);
  ways.expert = WaysOf(row, kExpertColumns);
  ways.pipeline = WaysOf(row, kPipelineColumns);
  return ways;
}

int64_t AccumulationOf(const TableRow& row, const Workload& workload) {
  RefuseRemainder(row);
  if (!row.Blank("grad_accum")) {
    return StatedAccumulation(row, workload);
  }
  const bool stated = !row.Blank("global_batch");
  if (stated && StatesWays(row, kCopiesColumns)) {
    return AccumulationByBatches(row, workload);
  }
  if (ContainsAny(row["notes"], RulesOfTables().whole_batches)) return 1;
  const bool pretrains = workload.work == Work::kTraining &&
                         TaskOf(row["task"]) == Task::kPretrain;
  // Of how many ranks have a model together these columns are most.
  const bool split_stated =
      StatesWays(row, kTensorColumns) && StatesWays(row, kPipelineColumns);
  if (pretrains && !(stated && split_stated)) {
    throw Unused{"gradient accumulation not stated"};
  }
  return stated ? AccumulationByBatches(row, workload) : 1;
}

// Devices of which each had a model of its own would have computed more than
// the whole batch.
void RefuseSharedModel(const TableRow& row, const Workload& workload) {
  const int64_t devices = row.Count("n_devices").value_or(1);
  const int64_t copies = devices / model::RanksOfModel(WaysOfModel(row));
  const int64_t stated = WaysOf(row, kCopiesColumns);
  if (StatesWays(row, kCopiesColumns) && stated != copies) {
    throw Unused{
        fmt::format("dp is {}, but {} devices have {} copies by tp, pp "
                    "and cp",
                    stated,
                    devices,
                    copies)};
  }
  if (StatesWays(row, kCopiesColumns)) return;
  if (row.Blank("global_batch")) return;
  const int64_t whole = row.WholeNumber("global_batch", "global batch");
  if (whole / copies <
      model::CheckedProduct({workload.batch, workload.accumulation}, "batch")) {
    throw Unused{kFewerThanDevices};
  }
}

model::Parallel ParallelOf(const TableRow& row, int64_t devices) {
  model::Parallel parallel = PartsOfModel(row);
  SetOffload(row, parallel);
  const int64_t copies = devices / model::RanksOfModel(parallel);
  if (copies * parallel.context == 1) return parallel;
  const ShardWords* words = ShardInWords(row);
  // Tables without that column are of replicas; those of micro-batches are of
  // models that are shared more often than not.
  const bool stated = row.Has("sharding") || row.Has("micro_batch");
  if (!stated && words == nullptr) return parallel;
  parallel.shard = words != nullptr ? *words->shard : ShardOfProgram(row);
  parallel.reshard_after_forward =
      (words == nullptr || words->reshard_after_forward) && !KeepsGathered(row);
  if (parallel.shard == Shard::kNone) parallel.shard = DividedUpdateOf(row);
  if (parallel.shard == Shard::kNone) return parallel;
  parallel.data = copies;
  // No other kind of FSDP goes with a pipeline.
  if (parallel.shard == Shard::kFsdp && parallel.pipeline > 1) {
    parallel.reshard_after_forward = false;
  }
  if (words != nullptr && words->within_groups) {
    parallel.replicate = CopiesOf(row, copies);
  } else if (SlicesOf(row) > 1) {
    throw Unused{"sharded within or over its slices is not stated"};
  }
  return parallel;
}

}  // namespace trainfare::calibrate
