#include "scenarios/validation/room_notes.h"

#include <doctest/doctest.h>

#include <vector>

#include "calibrate/records/observation.h"
#include "model/presets.h"
#include "model/workload.h"

namespace trainfare::scenarios {
namespace {

calibrate::Observation StepOf(const char* label, const char* model) {
  calibrate::Observation o;
  o.label = label;
  o.device = "rtx_4090";
  o.workload.architecture = model::FindArchitecture(model);
  o.workload.precision = model::Precision::kBf16;
  o.workload.batch = 1;
  o.workload.sequence_length = 1024;
  o.measured = model::Second(1.0);
  return o;
}

// Llama 3.1 8B of fp32 weights, gradients and two moments: 16 B each of 8.03e9
// parameters, 120 GiB, on 24.
TEST_CASE("rows that have no room as they are read are named") {
  CHECK_FALSE(RoomNote({StepOf("t.csv:2", "bert-base-uncased")}));
  const auto one = RoomNote({StepOf("t.csv:2", "bert-base-uncased"),
                             StepOf("t.csv:3", "llama-3.1-8b")});
  REQUIRE(one);
  CHECK(one->text.starts_with(
      "a row has no room as it is read: t.csv:3 needs 1"));
  CHECK(one->text.ends_with(
      " GiB of 24 GiB; is it of adapters, sharded or recomputed?"));
  const std::vector<calibrate::Observation> four(
      4, StepOf("t.csv:3", "llama-3.1-8b"));
  const auto more = RoomNote(four);
  REQUIRE(more);
  CHECK(more->text.starts_with("4 rows have no room as they are read: "));
  CHECK(more->text.ends_with(
      ", and 1 more; are they of adapters, sharded or recomputed?"));
  // Sharded, and of parts of a step, nothing is said.
  calibrate::Observation sharded = StepOf("t.csv:4", "llama-3.1-8b");
  sharded.device_count = 16;
  sharded.workload.parallel.data = 16;
  sharded.workload.parallel.shard = model::Shard::kFsdp;
  calibrate::Observation part = StepOf("t.csv:5", "llama-3.1-8b");
  part.quantity = calibrate::Quantity::kForward;
  CHECK_FALSE(RoomNote({sharded, part}));
}

}  // namespace
}  // namespace trainfare::scenarios
