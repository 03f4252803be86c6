#pragma once

// How the devices of a row of a table share a model and its batch.

#include <cstdint>

#include "calibrate/records/import/table_row.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// Throws Unused where devices have a part of a model each as far as notes alone
// say.
void RefuseSplit(const TableRow& row);

// How many ways ranks divide layers, sequences, experts and blocks, and nothing
// else; 1: they do not, or nobody says. Throws Unused.
model::Parallel WaysOfModel(const TableRow& row);

// Micro-batches of a step. Work and batch are known. Throws Unused.
int64_t AccumulationOf(const TableRow& row, const model::Workload& workload);

// Slices of TPUs, each joined within and all by the data centre's network; 1
// where the row says nothing of them.
int64_t SlicesOf(const TableRow& row);

// Throws Unused where batch and devices say that a model was shared, and not
// how. Batch and accumulation are known.
void RefuseSharedModel(const TableRow& row, const model::Workload& workload);

// What so many devices divide, of the model and of its state, and what waits on
// the host. Throws Unused.
model::Parallel ParallelOf(const TableRow& row, int64_t devices);

}  // namespace trainfare::calibrate
