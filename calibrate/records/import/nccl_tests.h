#pragma once

// What all_reduce_perf of NVIDIA's nccl-tests prints, as collective records of
// trainfare.measurement/1 (docs/guide/measurements.md).
//
// Format: src/util.cu and src/common.cu of nccl-tests 2.0 to 2.17, text output.
// Columns are found by their names; `size` is each rank's message, `time` the
// mean of the iterations, in microseconds.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.h"

namespace trainfare::calibrate {

struct NcclTestsRow {
  int line = 0;
  model::Bytes<> size;
  model::Seconds<> time;  // in place, as gradients are reduced
};

// One run of the program; a file may hold several.
struct NcclTestsRun {
  std::string device;   // as the driver reports it, one name for all
  std::string version;  // of nccl-tests and NCCL, in words; empty: not said
  int64_t ranks = 0;
  int64_t hosts = 0;
  int64_t iterations = 1;  // of each time
  bool ended = false;      // its last lines are there
  std::vector<NcclTestsRow> rows;
};

// Throws InputError "file:line: ..." for what is no all-reduce over two ranks
// and more: another collective, processes that each measured only themselves
// (built without MPI), wrong results, a line that is cut off.
std::vector<NcclTestsRun> ParseNcclTests(std::string_view text,
                                         const std::string& name);
std::vector<NcclTestsRun> ReadNcclTests(const std::string& path);

// One record a row, as `trainfare-trainer bench collectives` writes them.
std::string ToRecords(const std::vector<NcclTestsRun>& runs);
// Whether every line of a text is such a record.
bool AreNcclTestsRecords(std::string_view text);

}  // namespace trainfare::calibrate
