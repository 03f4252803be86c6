#pragma once

// Rows of tables of measurements, for tests of what they mean.

#include <doctest/doctest.h>

#include <string>

#include "calibrate/records/import/table.h"

namespace trainfare::calibrate {

inline const std::string kRowHeader =
    "source,source_file,system_name,device,n_devices,nodes,model,hidden,layers,"
    "heads,intermediate,vocab,seq_len,batch_per_device,grad_accum,precision,"
    "framework,stack_notes,task,metric,value,notes\n";

inline Table ParseRows(const std::string& rows) {
  return ParseTable(kRowHeader + rows, "t.csv");
}

inline Observation OneRow(const std::string& row) {
  const Table table = ParseRows(row + "\n");
  CAPTURE(row);
  REQUIRE(table.observations.size() == 1);
  return table.observations[0];
}

inline std::string ReasonOfRow(const std::string& row) {
  const Table table = ParseRows(row + "\n");
  CAPTURE(row);
  REQUIRE(table.unused.size() == 1);
  CHECK(table.observations.empty());
  return table.unused.begin()->first;
}

// Rows of tables of today's decoders.
inline const std::string kDecoderHeader =
    "device,n_devices,model,hidden,layers,heads,kv_heads,intermediate,vocab,"
    "seq_len,micro_batch,grad_accum,global_batch,dp,tp,pp,sharding,recompute,"
    "precision,adapter,lora_rank,framework,stack_notes,task,metric,value,"
    "notes\n";

inline Table ParseDecoder(const std::string& rows) {
  return ParseTable(kDecoderHeader + rows, "d.csv");
}

inline std::string ReasonOfDecoder(const std::string& row) {
  const Table table = ParseDecoder(row + "\n");
  CAPTURE(row);
  REQUIRE(table.unused.size() == 1);
  CHECK(table.observations.empty());
  CHECK(table.memory.empty());
  return table.unused.begin()->first;
}

}  // namespace trainfare::calibrate
