#include "calibrate/records/assumed.h"

#include <doctest/doctest.h>

#include "calibrate/records/import/published_reader.h"
#include "calibrate/records/import/published_records.h"

namespace trainfare::calibrate {
namespace {

TEST_CASE("what makes a step, and what is around it") {
  CHECK_FALSE(MakesStep({}));
  CHECK_FALSE(MakesStep({{"epochs", "three"}, {"train_samples", "the split"}}));
  CHECK_FALSE(MakesStep({{"price", "of another page"}}));
  for (const char* key :
       {"batch", "sequence_length", "precision", "device", "stack", "model"}) {
    CAPTURE(key);
    CHECK(MakesStep({{"epochs", "three"}, {key, "not stated"}}));
  }
}

// A run is as sure as its workload, but for what it says itself.
TEST_CASE("published figures of which something is assumed") {
  const Published published =
      LoadPublished(TRAINFARE_ROOT "/scenarios/published");
  const auto& runs = published.runs;
  CHECK(runs.at("imdb_tpuv2_tf_bf16_b16").assumed.contains("sequence_length"));
  CHECK(runs.at("cerebras_b512").assumed.contains("sequence_length"));
  CHECK_FALSE(runs.at("cerebras_b512").assumed.contains("precision"));
  bool seen = false;
  for (const Observation& o : RecordsOf(published).observations) {
    if (o.label != "emotion_l4_baseline/run_time") continue;
    seen = true;
    CHECK(o.assumed);
  }
  CHECK(seen);
}

}  // namespace
}  // namespace trainfare::calibrate
