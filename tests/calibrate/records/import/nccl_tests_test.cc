#include "calibrate/records/import/nccl_tests.h"

#include <doctest/doctest.h>

#include "calibrate/records/measurement.h"
#include "model/error.h"
#include "tests/calibrate/records/replaced.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;

// Four ranks on two hosts, times made up: 1 MiB in place in 50 us is
// 1048576 B / 50 us = 20.97 GB/s, times 2 x 3 / 4 = 31.46 GB/s of the bus.
const std::string kHead =
    R"(# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807
# Collective test starting: ./build/all_reduce_perf
# nThread 1 nGpus 1 minBytes 0 maxBytes 16777216 step: 16(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1100 on     node-a device  0 [0000:8d:00] NVIDIA A100-SXM4-80GB
#  Rank  1 Group  0 Pid   1101 on     node-a device  1 [0000:91:00] NVIDIA A100-SXM4-80GB
#  Rank  2 Group  0 Pid   2100 on     node-b device  0 [0000:8d:00] NVIDIA A100-SXM4-80GB
#  Rank  3 Group  0 Pid   2101 on     node-b device  1 [0000:91:00] NVIDIA A100-SXM4-80GB
#
)";
const std::string kColumns =
    R"(#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
)";
const std::string kRows =
    R"(           0             0     float     sum      -1     5.70    0.00    0.00       0     5.54    0.00    0.00       0
     1048576        262144     float     sum      -1    51.20   20.48   30.72       0    50.00   20.97   31.46       0
    16777216       4194304     float     sum      -1    410.0   40.92   61.38       0    400.0   41.94   62.91       0
)";
const std::string kEnd = R"(# Out of bounds values : 0 OK
# Avg bus bandwidth    : 31.2
#
)";

std::vector<NcclTestsRun> ParseNccl(const std::string& text) {
  return ParseNcclTests(text, "n.txt");
}

void CheckRefused(const std::string& text, const std::string& message) {
  CHECK_THROWS_WITH_AS(ParseNccl(text), message.c_str(), InputError);
}

}  // namespace

TEST_CASE("all_reduce_perf: a line cut off behind its program is refused") {
  CheckRefused("#test starting:  ",
               "n.txt:1: expected all_reduce_perf behind \"test starting:\", "
               "got nothing; is the line cut off?");
}

TEST_CASE("all_reduce_perf: sizes, and the times in place") {
  const auto runs = ParseNccl(kHead + kColumns + kRows + kEnd);
  REQUIRE(runs.size() == 1);
  const NcclTestsRun& run = runs.front();
  CHECK(run.device == "NVIDIA A100-SXM4-80GB");
  CHECK(run.version ==
        "nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807");
  CHECK(run.ranks == 4);
  CHECK(run.hosts == 2);
  CHECK(run.iterations == 20);
  CHECK(run.ended);
  REQUIRE(run.rows.size() == 2);  // none of the empty message
  CHECK(run.rows[0].line == 15);
  CHECK(model::ToBytes(run.rows[0].size) == 1048576);
  CHECK(model::ToSeconds(run.rows[0].time) == Near(50e-6, 1e-12));
  CHECK(model::ToSeconds(run.rows[1].time) == Near(400e-6, 1e-12));
}

TEST_CASE("all_reduce_perf: its records are what the trainer writes") {
  const std::string text =
      ToRecords(ParseNccl(kHead + kColumns + kRows + kEnd));
  const Measurements read = ParseMeasurements(text, "r.jsonl");
  REQUIRE(read.collectives.size() == 2);
  const MeasuredCollective& first = read.collectives.front();
  CHECK(first.ranks == 4);
  CHECK(model::ToBytes(first.size) == 1048576);
  CHECK(model::ToSeconds(first.time) == Near(50e-6, 1e-12));
  CHECK_FALSE(first.computation_speed.has_value());
}

TEST_CASE("all_reduce_perf: older and newer tables, other programs' lines") {
  SUBCASE("before 2.11: no root, an error instead of #wrong") {
    const auto runs = ParseNccl(
        "# nThread 1 nGpus 2 minBytes 8 maxBytes 8 step: 2(factor) "
        "warmup iters: 5 iters: 100 validation: 1\n#\n"
        "# Using devices\n"
        "#   Rank  0 Pid  71 on    host device  0 [0x1a] Tesla V100\n"
        "#   Rank  1 Pid  71 on    host device  1 [0x1b] Tesla V100\n"
        "#\n"
        "#       size     count    type   redop     time   algbw   "
        "busbw  error     time   algbw   busbw  error\n"
        "           8         2   float     sum    158.3    0.00    "
        "0.00  1e-07    158.4    0.00    0.00  0e+00\n");
    REQUIRE(runs.size() == 1);
    CHECK(runs[0].device == "Tesla V100");
    CHECK(runs[0].iterations == 100);
    CHECK_FALSE(runs[0].ended);
    CHECK(model::ToSeconds(runs[0].rows.at(0).time) == Near(158.4e-6, 1e-12));
  }
  SUBCASE("times of single iterations and a time stamp at the end") {
    const auto runs = ParseNccl(
        kHead +
        "# size count type redop root time algbw busbw #wrong i_min i_max "
        "i_p99 i_cv% time algbw busbw #wrong i_min i_max i_p99 i_cv% "
        "timestamp\n"
        "1048576 262144 float sum -1 51.20 20.48 30.72 N/A 50 53 53 1 50.00 "
        "20.97 31.46 N/A 49 52 52 1 2026-05-20 12:00:00\n");
    CHECK(model::ToSeconds(runs.at(0).rows.at(0).time) == Near(50e-6, 1e-12));
  }
  SUBCASE("mpirun's tags and NCCL's lines") {
    std::string text = "[1,0]<stdout>:NCCL version 2.28.7+cuda13.0\n";
    for (size_t at = 0; at < (kHead + kColumns + kRows).size();) {
      const std::string all = kHead + kColumns + kRows;
      const size_t end = all.find('\n', at);
      text += "[1,0]<stdout>:" + all.substr(at, end + 1 - at);
      text += "node-a:1100:1103 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1]\n";
      at = end + 1;
    }
    CHECK(ParseNccl(text).at(0).rows.size() == 2);
  }
  SUBCASE("two runs in a file") {
    const std::string one = kHead + kColumns + kRows + kEnd;
    CHECK(ParseNccl(one + one).size() == 2);
  }
}

TEST_CASE("all_reduce_perf: what it is not") {
  CheckRefused("",
               "n.txt: expected what all_reduce_perf of nccl-tests prints, got "
               "no line of its table");
  CheckRefused(kHead + kColumns,
               "n.txt: expected what all_reduce_perf of nccl-tests prints, got "
               "no line of its table");
  CheckRefused(Replaced(kHead, "all_reduce_perf", "all_gather_perf"),
               "n.txt:2: expected all_reduce_perf, got all_gather_perf");
  // Three quarters of algbw is what all-gathers over four ranks have.
  CheckRefused(kHead + kColumns + Replaced(kRows, "31.46", "15.73"),
               "n.txt:15: expected a busbw of 1.5 times algbw as all-reduces "
               "over 4 ranks have, got 0.7501; another collective?");
  CheckRefused(kHead + kHead,
               "n.txt:16: rank 0 stands twice: each process measured itself "
               "alone; build nccl-tests with MPI=1");
  CheckRefused(
      Replaced(kHead, "Rank  3 Group  0", "Rank  3 Group  1"),
      "n.txt:9: expected one group of ranks, got several (NCCL_TESTS_SPLIT)");
  CheckRefused(Replaced(kHead, "00] NVIDIA A100-SXM4-80GB\n#\n", "00] L4\n") +
                   kColumns + kRows,
               "n.txt:9: expected one kind of device, got NVIDIA "
               "A100-SXM4-80GB and L4");
  CheckRefused(Replaced(kHead, "Rank  1", "Rank  9") + kColumns + kRows,
               "n.txt:14: expected ranks 0 to 9 above the table, got 4 of "
               "them");
  CheckRefused(kHead + kColumns + "     1048576        262144     float\n",
               "n.txt:14: expected 13 columns (size .. #wrong), got 3; is the "
               "line cut off?");
  CheckRefused(
      kHead + kColumns + Replaced(kRows, "31.46       0", "31.46       7"),
      "n.txt:15: expected right results, got 7 wrong elements");
  CheckRefused(
      kHead +
          Replaced(
              Replaced(kColumns, "  time", "cputime"), "  time", "cputime") +
          kRows,
      "n.txt:14: expected the time of the operation, got that of the "
      "host (-C); run without it");
  CheckRefused(kHead + kColumns + Replaced(kRows, "50.00", "nan"),
               "n.txt:15: time: expected a number, got \"nan\"");
  // As a double it is beyond what an int64_t holds.
  CheckRefused(
      kHead + kColumns + Replaced(kRows, "16777216", "9223372036854775807"),
      "n.txt:16: size: expected bytes from 0 to 1000000000000000, got "
      "\"9223372036854775807\"");
}

}  // namespace trainfare::calibrate
