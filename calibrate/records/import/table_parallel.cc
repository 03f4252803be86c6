#include "calibrate/records/import/table_parallel.h"

#include <fmt/format.h>

#include <array>
#include <regex>
#include <string>
#include <string_view>
#include <utility>

#include "calibrate/records/import/table_rules.h"
#include "model/limits.h"
#include "model/parallel.h"

namespace trainfare::calibrate {
namespace {

using model::Shard;
using model::Work;
using model::Workload;

constexpr const char* kSharingNotStated =
    "how its devices share the model is not stated";

// FSDP within groups of ranks, each of which has all.
constexpr std::string_view kHybrid = "hybrid";

// Words of a sharding column, up to its first space.
constexpr auto kShards = std::to_array<std::pair<std::string_view, Shard>>(
    {{"none", Shard::kNone},
     {"zero1", Shard::kZero1},
     {"zero2", Shard::kZero2},
     {"zero3", Shard::kZero3},
     {"fsdp", Shard::kFsdp},
     {kHybrid, Shard::kFsdp}});

Shard ShardOf(const TableRow& row) {
  std::string sharding = Lowered(row["sharding"]);
  std::erase(sharding, '-');  // "ZeRO-3"
  if (sharding.empty()) {
    const std::string words = Lowered(row.StackWords());
    for (const ShardRule& rule : RulesOfTables().sharding) {
      if (Says(words, rule.words)) return rule.shard;
    }
    throw Unused{kSharingNotStated};
  }
  const std::string_view word =
      std::string_view(sharding).substr(0, sharding.find(' '));
  for (const auto& [known, shard] : kShards) {
    if (known == word) return shard;
  }
  throw Unused{fmt::format("not predicted: {} over ranks", row["sharding"])};
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
  const std::string notes = Lowered(row.StackWords());
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

// What the row says, where its batches do not say otherwise.
int64_t StatedAccumulation(const TableRow& row, const Workload& workload) {
  const int64_t stated = row.WholeNumber("grad_accum", "gradient accumulation");
  if (row.Blank("global_batch") || row.Blank("dp")) return stated;
  const int64_t whole = row.WholeNumber("global_batch", "global batch");
  const int64_t replicas = row.WholeNumber("dp", "data-parallel replicas");
  if (model::CheckedProduct({workload.batch, stated, replicas}, "batch") !=
      whole) {
    throw Unused{"the global batch is not that of its micro-batches"};
  }
  return stated;
}

// A way to split a model: its column, its name, and how notes say that it is of
// more than one device: "TP=4", "pp 2", "CP8", "tp_size=4". "cp310" is a Python,
// "pp 12-14" are pages.
struct Split {
  std::string_view column;
  std::string_view name;
  std::regex in_notes;
};

Split SplitOf(std::string_view column, std::string_view name) {
  return {
      column,
      name,
      std::regex(fmt::format(
          R"((^|[^a-z]){}([-_ ]?size)?(\s?[=:]\s?\d{{0,2}}|[- ]?)([2-9]|[1-9]\d)(?![\d.\-]))",
          column))};
}

// Made once, since a pattern takes longer to make than to look for.
const std::array<Split, 4>& Splits() {
  static const std::array<Split, 4> splits = {SplitOf("tp", "tensor"),
                                              SplitOf("pp", "pipeline"),
                                              SplitOf("cp", "context"),
                                              SplitOf("ep", "expert")};
  return splits;
}

// "tensor parallel 1" is none.
std::string WithoutOneWay(const std::string& words) {
  static const std::regex one_way(
      R"((tensor|pipeline|context|expert)[- ]parallel(ism)?([- ]size)?\s?[=:(]?\s?1(?![\d.\-]))");
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
  const bool stated = !row.Blank("tp") && !row.Blank("pp");
  if (!stated && !denied && SaysAny(stack, RulesOfTables().splits)) {
    throw Unused{"tensor or pipeline parallel"};
  }
  const std::string notes = Lowered(row.AllNotes());
  for (const Split& split : Splits()) {
    if (row.Blank(split.column) && std::regex_search(notes, split.in_notes)) {
      throw Unused{"tensor or pipeline parallel"};
    }
  }
  for (const std::string_view column :
       {"tensor_parallel", "pipeline_parallel"}) {
    if (row.Count(column).value_or(1) > 1) {
      throw Unused{"tensor or pipeline parallel"};
    }
  }
  for (const Split& split : Splits()) {
    // One way, or none, is no split.
    if (row.Blank(split.column) || row.Number(split.column).value_or(2) <= 1) {
      continue;
    }
    throw Unused{fmt::format("not predicted: {} parallel", split.name)};
  }
}

int64_t AccumulationOf(const TableRow& row, const Workload& workload) {
  if (!row.Blank("grad_accum")) {
    return StatedAccumulation(row, workload);
  }
  // Sequences of a step over those of a micro-batch of all replicas.
  if (!row.Blank("global_batch") && !row.Blank("dp")) {
    const int64_t whole = row.WholeNumber("global_batch", "global batch");
    const int64_t replicas = row.WholeNumber("dp", "data-parallel replicas");
    const int64_t at_once =
        model::CheckedProduct({workload.batch, replicas}, "batch");
    if (whole % at_once == 0) return whole / at_once;
    throw Unused{"the global batch does not divide over its replicas"};
  }
  if (ContainsAny(row["notes"], RulesOfTables().whole_batches)) return 1;
  if (workload.work == Work::kTraining &&
      TaskOf(row["task"]) == Task::kPretrain) {
    throw Unused{"gradient accumulation not stated"};
  }
  return 1;
}

// Devices of which each had a model of its own would have computed more than
// the whole batch.
void RefuseSharedModel(const TableRow& row, const Workload& workload) {
  const int64_t devices = row.Count("n_devices").value_or(1);
  if (!row.Blank("dp")) {
    if (row.WholeNumber("dp", "data-parallel replicas") != devices) {
      throw Unused{kSharingNotStated};
    }
    return;
  }
  if (row.Blank("global_batch")) return;
  const int64_t whole = row.WholeNumber("global_batch", "global batch");
  if (whole / devices <
      model::CheckedProduct({workload.batch, workload.accumulation}, "batch")) {
    throw Unused{kSharingNotStated};
  }
}

model::Parallel ParallelOf(const TableRow& row, int64_t devices) {
  model::Parallel parallel;
  SetOffload(row, parallel);
  // Tables without that column are of replicas; those of micro-batches are of
  // models that are shared more often than not.
  const bool stated = row.Has("sharding") || row.Has("micro_batch");
  if (!stated || devices == 1) return parallel;
  parallel.shard = ShardOf(row);
  if (parallel.shard == Shard::kNone) parallel.shard = DividedUpdateOf(row);
  if (parallel.shard == Shard::kNone) return parallel;
  parallel.data = devices;
  if (Lowered(row["sharding"]).starts_with(kHybrid)) {
    parallel.replicate = CopiesOf(row, devices);
  } else if (SlicesOf(row) > 1) {
    throw Unused{"sharded within or over its slices is not stated"};
  }
  return parallel;
}

}  // namespace trainfare::calibrate
