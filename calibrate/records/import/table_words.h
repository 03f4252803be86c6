#pragma once

// What words of a row say that a column of its own would say, where that is not
// there or empty: adapters, sharding, recomputation.

#include <optional>

#include "calibrate/records/import/table_row.h"
#include "calibrate/records/import/table_rules.h"

namespace trainfare::calibrate {

// Each throws Unused where the words may mean several things, or stand in
// `notes` alone, which speak of other runs, too.

// What adapters are, words hardly say: their rank and matrices.
void RefuseAdaptersInWords(const TableRow& row);

// What a column `sharding` says, each word of it, or else words; nullptr:
// nothing is said.
const ShardWords* ShardInWords(const TableRow& row);

// Whether a column `sharding` says that devices share what they train.
bool SharesState(const TableRow& row);

// "reshard_after_forward=False", of FSDP, which then gathers weights once.
bool KeepsGathered(const TableRow& row);

// nullopt: nothing is said.
std::optional<Recomputed> RecomputedInWords(const TableRow& row);

}  // namespace trainfare::calibrate
