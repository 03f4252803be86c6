#pragma once

// Published measurements: scenarios/published/*.yaml, schema
// trainfare.published/1. A run is a configuration that somebody trained; a row
// is one figure printed about it. docs/results/published.md says what stands
// there and what a fit may use.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/architecture.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::scenarios {

// What the figure may serve for.
enum class PublishedUse {
  kFit,    // a model may be fitted to it, and is validated on it
  kCheck,  // compared, never fitted: arithmetic, bounds, too little known
  kShow,   // kept as data and shown beside an answer: accuracy, loss
  kNone,   // wrong or contradicted; the corrections or `why` say how
};

struct PublishedOptimizer {
  model::OptimizerKind kind = model::OptimizerKind::kAdamW;
  std::optional<model::OptimizerImplementation> implementation;
  bool single_tensor = false;  // one fused kernel a tensor, not for all
};

struct CountRange {
  int64_t least = 0;
  int64_t most = 0;
};

// What is absent the document does not say; what it does not say and we read
// from other figures is named in `inferred`.
struct PublishedRun {
  std::string name;
  std::string position;  // file:line:col
  std::optional<model::Architecture> architecture;
  model::Work work = model::Work::kTraining;
  std::optional<std::string> device;     // a name of the catalog
  std::optional<std::string> or_device;  // the label fits this one as well
  int64_t device_count = 1;
  std::optional<int64_t> batch;  // sequences per device
  std::optional<int64_t> sequence_length;
  std::optional<int64_t> epochs;
  std::optional<CountRange> train_samples;  // of one epoch
  std::optional<int64_t> samples_in_run;
  std::optional<int64_t> steps;
  std::optional<model::Precision> precision;  // fp16, bf16: mixed
  std::optional<PublishedOptimizer> optimizer;
  std::optional<std::string> stack;  // hugging-face, lightseq, tensorflow, ..
  std::optional<model::Fusion> fusion;         // what the stack means to us
  std::optional<std::string> against;          // stack that a ratio divides by
  std::optional<model::UsdPerSecond<>> price;  // of one device
  std::optional<std::string> setting;          // what else was varied
  std::optional<int64_t> grid, block;          // of the one kernel profiled
  std::optional<std::string> same_as;  // run of the same configuration: a
                                       // left-out row leaves both out
  std::vector<std::string> inferred;
};

// The figure in base units (B, FLOP, s, USD, J; a share or a ratio as a
// fraction), from the text as printed.
struct PublishedValue {
  enum class Kind { kNumber, kAtLeast, kAtMost, kRange, kOutcome };
  Kind kind = Kind::kNumber;
  std::string text;
  double low = 0;   // of a range; the number otherwise
  double high = 0;  // as low, but for a range
  // Within what `low` and `high` are known: half a unit of the last printed
  // digit, 10 % for "about", or what the row says where that is more.
  double tolerance = 0;
};

struct PublishedRow {
  std::string id;  // run/quantity or run/quantity/part
  std::string position;
  std::string run;
  std::string group;
  std::string quantity;
  std::optional<std::string> part;  // kernel, layer, engine, weighting
  PublishedValue value;
  PublishedUse use = PublishedUse::kNone;
  std::vector<int64_t> corrections;
  std::optional<std::string> why;
  std::vector<std::string> records;  // of the source: "file/record"
  std::vector<std::string> refs;     // tables and sections, one a record
};

struct PublishedCorrection {
  std::string what;
  std::string handled;
};

struct Published {
  std::map<std::string, PublishedRun> runs;
  std::vector<PublishedRow> rows;
  std::map<int64_t, PublishedCorrection> corrections;
  // "file/record" or "file/*" -> why it is no row.
  std::map<std::string, std::string> not_carried;

  const PublishedRun& RunOf(const PublishedRow& row) const;
  // nullptr when there is no such row.
  const PublishedRow* Find(std::string_view id) const;
};

// Reads every *.yaml of a folder. Throws InputError with file:line:col.
Published LoadPublished(const std::string& directory);

// The figure of a quantity ("run_time"); throws InputError without a position.
PublishedValue ParsePublishedValue(std::string_view quantity,
                                   std::string_view text);

std::string_view ToText(PublishedUse use);

}  // namespace trainfare::scenarios
