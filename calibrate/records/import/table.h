#pragma once

// Tables of published measurements as observations: CSV with the columns
//
//   source, source_file, system_name, device, n_devices, nodes (or
//   devices_per_node), model, hidden, layers, heads, intermediate, vocab,
//   seq_len, batch_per_device, grad_accum, precision, framework, stack_notes,
//   task, metric, value, notes
//
// and of decoders kv_heads, experts, experts_per_token, micro_batch in place of
// batch_per_device, global_batch, dp, tp, pp, cp, ep, etp, sharding, recompute,
// adapter, lora_rank, tokens_per_sample; power_limit_w; assumed, which of what
// makes its step nobody states; by name in any order; others are not read, and named.
// `value` is of the whole system unless the metric says otherwise. What a row
// means as a workload is decided by the rules in tables.yaml.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/records/memory_observation.h"
#include "calibrate/records/observation.h"
#include "calibrate/records/power_observation.h"

namespace trainfare::calibrate {

struct Table {
  std::vector<Observation> observations;
  std::vector<MemoryObservation> memory;
  std::vector<PowerObservation> powers;
  int64_t rows = 0;
  // Columns that nothing reads, and which each may mean.
  std::vector<std::string> unread;
  // Lines of the rows that are not used, by the reason.
  std::map<std::string, std::vector<int64_t>> unused;
  // Of these reasons those that say what is wrong with a row.
  std::set<std::string> faults;
};

// A row that cannot be right is left out. Throws InputError
// "file:line: ..." when it is not such a table, or has nothing but such rows.
Table ReadTable(const std::string& path);
Table ParseTable(std::string_view text, const std::string& name);

}  // namespace trainfare::calibrate
